//! The syntax of `UR_LOG_<ADAPTER>`, which is UR's. `log` applies the values.
use std::{
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};
use ur_sys::ur_logger_level_t as Level;

/// The contents of one value of the variable.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Options {
    /// The lowest level that is written.
    pub(super) level: Level,
    /// The lowest level that is synced.
    pub(super) flush: Level,
    pub(super) output: Output,
}
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Output {
    Stderr,
    Stdout,
    File(PathBuf),
}
impl Default for Options {
    fn default() -> Self {
        Self { level: Level::QUIET, flush: Level::ERROR, output: Output::Stderr }
    }
}

const WORDS: [(&str, Level); 5] = [
    ("debug", Level::DEBUG),
    ("info", Level::INFO),
    ("warning", Level::WARN),
    ("error", Level::ERROR),
    ("quiet", Level::QUIET),
];
/// The variable's word for `level`.
pub(super) fn word(level: Level) -> &'static str {
    WORDS.iter().find(|(_, l)| *l == level).map_or("unknown", |(word, _)| word)
}

impl Options {
    /// Parses a value; an empty one yields the defaults.
    ///
    /// # Errors
    /// A sentence that says what is wrong with the value.
    pub(super) fn parse(value: &OsStr) -> Result<Self, String> {
        let (mut level, mut flush, mut output) = (None, None, None);
        for option in value.as_bytes().split(|b| *b == b';').filter(|o| !o.is_empty()) {
            let text = String::from_utf8_lossy(option);
            let mut halves = option.splitn(2, |b| *b == b':');
            let (name, value) = (halves.next().unwrap_or_default(), halves.next());
            let value = value.ok_or_else(|| format!("{text:?} has no colon: write NAME:VALUE"))?;
            let fresh = match name {
                b"level" => level.replace(level_of(value)?).is_none(),
                b"flush" => flush.replace(level_of(value)?).is_none(),
                b"output" => output.replace(output_of(value)?).is_none(),
                _ => return Err(format!("{text:?} is none of level, flush and output")),
            };
            if !fresh {
                let name = String::from_utf8_lossy(name);
                return Err(format!("{name} is given twice"));
            }
        }
        let default = Self::default();
        Ok(Self {
            level: level.unwrap_or(default.level),
            flush: flush.unwrap_or(default.flush),
            output: output.unwrap_or(default.output),
        })
    }
}
fn level_of(value: &[u8]) -> Result<Level, String> {
    let known = WORDS.iter().find(|(word, _)| word.as_bytes() == value);
    known.map(|(_, level)| *level).ok_or_else(|| {
        let value = String::from_utf8_lossy(value);
        format!("{value:?} is no level: use debug, info, warning, error or quiet")
    })
}
fn output_of(value: &[u8]) -> Result<Output, String> {
    match value {
        b"stderr" => Ok(Output::Stderr),
        b"stdout" => Ok(Output::Stdout),
        _ => match value.strip_prefix(b"file,") {
            Some(path) if !path.is_empty() => {
                Ok(Output::File(Path::new(OsStr::from_bytes(path)).into()))
            }
            _ => {
                let value = String::from_utf8_lossy(value);
                Err(format!("{value:?} is no output: use stderr, stdout or file,PATH"))
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(value: &str) -> Result<Options, String> {
        Options::parse(OsStr::new(value))
    }
    #[test]
    fn what_is_left_out_is_quiet_and_goes_to_stderr() {
        assert_eq!(parse(""), Ok(Options::default()));
        let info = Options { level: Level::INFO, ..Options::default() };
        assert_eq!(parse("level:info"), Ok(info.clone()));
        assert_eq!(parse("level:info;"), Ok(info));
    }
    #[test]
    fn options_come_in_any_order_and_paths_may_have_colons_and_commas() {
        let output = Output::File("/a:b,c.log".into());
        let all = Options { level: Level::DEBUG, flush: Level::WARN, output };
        assert_eq!(parse("output:file,/a:b,c.log;flush:warning;level:debug"), Ok(all));
        let stdout = Options { output: Output::Stdout, ..Options::default() };
        assert_eq!(parse("output:stdout;level:quiet"), Ok(stdout));
    }
    #[test]
    fn what_is_wrong_is_said_and_nothing_of_it_is_used() {
        for (value, said) in [
            ("debug", "no colon"),
            ("level:", "no level"),
            ("level:warn", "no level"),
            ("level:Debug", "no level"),
            ("flush:always", "no level"),
            ("output:file", "no output"),
            ("output:file,", "no output"),
            ("output:syslog", "no output"),
            ("colour:red", "none of level"),
            ("level:info;level:info", "level is given twice"),
            (" level:info", "none of level"),
        ] {
            let wrong = parse(value).unwrap_err();
            assert!(wrong.contains(said), "{value}: {wrong}");
        }
    }
}
