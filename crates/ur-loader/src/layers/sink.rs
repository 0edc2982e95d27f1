//! Where traces are written and in which form: lines of text, JSON lines, or the trace event format of Chrome
//! and Perfetto. Each process writes a file of its own. It is created anew when it is first needed, later
//! starts of the loader in the same process append to it, and existing files are never overwritten.
use super::trace::Record;
use std::{
    ffi::OsString,
    fmt::Write as _,
    fs::{File, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    sync::Mutex,
};
use ur_adapter::log::spared;
use ur_lock::locked;

/// The form in which records are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A line for each call.
    Text,
    /// A JSON object on a line for each call.
    Json,
    /// A JSON array of complete events.
    Chrome,
}

/// An output of traces.
#[derive(Debug)]
pub struct Sink {
    form: Form,
    to: Mutex<To>,
}
#[derive(Debug)]
enum To {
    Stderr,
    /// A file that this process created, with the offset where the next record goes and whether there are
    /// records yet. A JSON array in it is complete after each record, even if the program is killed: each
    /// record is written together with the array's end, over the previous end.
    File {
        file: File,
        at: u64,
        any: bool,
    },
    /// A pipe or a device, and whether an array was started in it.
    Stream {
        file: File,
        any: bool,
    },
}

/// The values of `CAUSEWAY_TRACE` that this process has opened, with their sinks, which are never closed.
static OPEN: Mutex<Vec<(String, &Sink)>> = Mutex::new(Vec::new());

/// Returns this process's sink for a value of `CAUSEWAY_TRACE`.
///
/// # Errors
/// Returns what is wrong with the value, or why the file cannot be written.
pub fn of_process(value: &str) -> Result<&'static Sink, String> {
    let mut open = locked(&OPEN);
    if let Some((_, sink)) = open.iter().find(|(asked, _)| asked == value) {
        return Ok(sink);
    }
    let (form, path) = parse(value)?;
    let sink = Sink::open(form, path.as_deref()).map_err(|error| {
        let path = path.unwrap_or_default();
        format!("{} cannot be written: {error}", path.display())
    })?;
    let sink: &_ = Box::leak(Box::new(sink));
    open.push((value.to_string(), sink));
    Ok(sink)
}

/// Parses `CAUSEWAY_TRACE`: a form, and after a colon a file. `%p` in the file's name stands for the process
/// id; a name without it gets the id before its extension, because another process may get the same variable.
fn parse(value: &str) -> Result<(Form, Option<PathBuf>), String> {
    let (form, path) = match value.split_once(':') {
        Some((form, path)) => (form, Some(path)),
        None => (value, None),
    };
    let form = match form {
        "text" => Form::Text,
        "json" => Form::Json,
        "chrome" => Form::Chrome,
        _ => return Err(format!("{form:?} is none of text, json and chrome")),
    };
    let path = path.filter(|p| !p.is_empty());
    if form == Form::Chrome && path.is_none() {
        return Err("chrome needs a file: write chrome:FILE".into());
    }
    if let Some(path) = path.filter(|path| ["/", "/.", ".."].iter().any(|end| path.ends_with(end)))
    {
        return Err(format!("{path} is a folder: add the name of a file in it"));
    }
    let pid = std::process::id().to_string();
    let named = |path: &str| match path.contains("%p") {
        true => PathBuf::from(path.replace("%p", &pid)),
        false if is_stream(Path::new(path)) => PathBuf::from(path),
        false => before_extension(Path::new(path), &format!(".{pid}")),
    };
    Ok((form, path.map(named)))
}
/// Whether the path is a pipe, a device, or one of the system's names for a process's own outputs, and not a
/// regular file that this process can own.
fn is_stream(path: &Path) -> bool {
    let outputs = ["/dev/stdout", "/dev/stderr", "/dev/fd", "/proc"];
    let outputs = outputs.iter().any(|names| path.starts_with(names));
    outputs || path.metadata().is_ok_and(|there| !there.is_file() && !there.is_dir())
}
/// Inserts text before the extension: `trace.json` and `.7` give `trace.7.json`.
fn before_extension(path: &Path, what: &str) -> PathBuf {
    let mut name: OsString = path.file_stem().unwrap_or_default().into();
    name.push(what);
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    path.with_file_name(name)
}
/// Creates a new file. If a file of that name exists, because an earlier process had the same id, it is kept
/// and the new name gets a number.
fn create(path: &Path) -> io::Result<File> {
    const MOST: usize = 10_000;
    let first = std::iter::once(path.to_path_buf());
    let names = first.chain((2..MOST).map(|n| before_extension(path, &format!("-{n}"))));
    for name in names {
        match File::create_new(name) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => return made,
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

impl Sink {
    /// Creates the file or opens the stream; without a path, uses the standard error.
    fn open(form: Form, path: Option<&Path>) -> io::Result<Self> {
        let to = match path {
            None => To::Stderr,
            Some(path) if is_stream(path) => {
                To::Stream { file: OpenOptions::new().append(true).open(path)?, any: false }
            }
            Some(path) => {
                let file = create(path)?;
                spared(|| file.write_all_at(form.end(false).as_bytes(), 0))?;
                To::File { file, at: 0, any: false }
            }
        };
        Ok(Self { form, to: Mutex::new(to) })
    }
    /// Writes a whole record in one write. If that fails the record is lost, and the traced program
    /// continues.
    pub fn write(&self, record: &Record) {
        let text = match self.form {
            Form::Text => record.text(),
            Form::Json => format!("{}\n", json(record)),
            Form::Chrome => chrome(record),
        };
        let between = |any: bool| match (self.form, any) {
            (Form::Chrome, false) => "[\n",
            (Form::Chrome, true) => ",\n",
            _ => "",
        };
        let mut to = locked(&self.to);
        let _ = spared(|| match &mut *to {
            To::Stderr => io::stderr().lock().write_all(text.as_bytes()),
            To::File { file, at, any } => {
                let record = [between(*any), &text].concat();
                let whole = [&record, self.form.end(true)].concat();
                let written = file.write_all_at(whole.as_bytes(), *at);
                if written.is_ok() {
                    *any = true;
                    *at += record.len() as u64;
                } else {
                    // Undo a partial write, so that the records before it remain a complete array.
                    let end = self.form.end(*any);
                    let _ = file.write_all_at(end.as_bytes(), *at);
                    let _ = file.set_len(*at + end.len() as u64);
                }
                written
            }
            To::Stream { file, any } => {
                let whole = [between(*any), &text].concat();
                *any = true;
                file.write_all(whole.as_bytes())
            }
        });
    }
    /// Ends the array of a stream, which cannot be kept complete after each record; later records start
    /// another array.
    pub fn finish(&self) {
        let mut to = locked(&self.to);
        if let To::Stream { file, any } = &mut *to
            && self.form == Form::Chrome
        {
            let end = self.form.end(std::mem::take(any));
            let _ = spared(|| file.write_all(end.as_bytes()));
        }
    }
}
impl Form {
    /// Returns the text that ends the file, depending on whether there are records.
    fn end(self, any: bool) -> &'static str {
        match (self, any) {
            (Self::Chrome, true) => "\n]\n",
            (Self::Chrome, false) => "[]\n",
            _ => "",
        }
    }
}

/// A call as a JSON object.
fn json(record: &Record) -> String {
    let mut s = format!(
        "{{\"call\":\"{}\",\"pid\":{},\"thread\":{},\"begin_ns\":{},\"duration_ns\":{},\"result\":\"{:?}\",",
        record.call,
        std::process::id(),
        record.thread,
        record.begin_ns,
        record.duration_ns,
        record.result
    );
    s.push_str("\"arguments\":");
    arguments(&mut s, record);
    place(&mut s, record);
    s.push('}');
    s
}
/// A call as a complete event (`"ph":"X"`); times are in microseconds.
fn chrome(record: &Record) -> String {
    let us = |ns: u64| format!("{}.{:03}", ns / 1000, ns % 1000);
    let mut s = format!(
        "{{\"name\":\"{}\",\"cat\":\"ur\",\"ph\":\"X\",\"ts\":{},\"dur\":{},\"pid\":{},\"tid\":{},\"args\":",
        record.call,
        us(record.begin_ns),
        us(record.duration_ns),
        std::process::id(),
        record.thread
    );
    arguments(&mut s, record);
    s.pop();
    let between = if record.arguments.is_empty() { "" } else { "," };
    let _ = write!(s, "{between}\"result\":\"{:?}\"", record.result);
    place(&mut s, record);
    s.push_str("}}");
    s
}
fn arguments(s: &mut String, record: &Record) {
    s.push('{');
    for (i, (name, text)) in record.arguments.iter().enumerate() {
        s.push_str(if i == 0 { "" } else { "," });
        quoted(s, name);
        s.push(':');
        quoted(s, text);
    }
    s.push('}');
}
fn place(s: &mut String, record: &Record) {
    if let Some(place) = &record.place {
        s.push_str(",\"at\":");
        quoted(s, place);
    }
}
/// A JSON string.
fn quoted(s: &mut String, text: &str) {
    s.push('"');
    for c in text.chars() {
        match c {
            '"' => s.push_str("\\\""),
            '\\' => s.push_str("\\\\"),
            c if c < ' ' => {
                let _ = write!(s, "\\u{:04x}", c as u32);
            }
            c => s.push(c),
        }
    }
    s.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scratch(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("ur-loader-{name}-{}", std::process::id()))
    }
    fn record(count: u64) -> Record {
        Record {
            call: "urQueueFlush",
            thread: 1,
            begin_ns: count,
            duration_ns: 1,
            result: ur_sys::ur_result_t::SUCCESS,
            arguments: vec![("hQueue", "0x1".to_string())],
            place: None,
        }
    }
    #[test]
    fn forms_are_read_and_each_file_is_named_after_the_process() {
        assert_eq!(parse("text").unwrap(), (Form::Text, None));
        let pid = std::process::id();
        let named = |form, name: String| (form, Some(PathBuf::from(name)));
        assert_eq!(parse("json:a:b").unwrap(), named(Form::Json, format!("a:b.{pid}")));
        let expected = named(Form::Chrome, format!("a.b/t.x.{pid}.json"));
        assert_eq!(parse("chrome:a.b/t.x.json").unwrap(), expected);
        assert_eq!(
            parse("chrome:%p/t.json").unwrap(),
            named(Form::Chrome, format!("{pid}/t.json"))
        );
        for stream in ["/dev/null", "/dev/stderr", "/proc/self/fd/2"] {
            let is = parse(&format!("text:{stream}")).unwrap();
            assert_eq!(is, named(Form::Text, stream.into()));
        }
        // `/dev/shm` holds ordinary files, and `/processes` only begins like `/proc`.
        for folder in ["/dev/shm", "/processes"] {
            let expected = named(Form::Text, format!("{folder}/t.{pid}"));
            assert_eq!(parse(&format!("text:{folder}/t")).unwrap(), expected);
        }
        for folder in ["/tmp/", "..", "a/.."] {
            assert!(parse(&format!("json:{folder}")).unwrap_err().contains("is a folder"));
        }
        assert!(parse("chrome").unwrap_err().contains("chrome:FILE"));
        assert!(parse("xml:f").unwrap_err().contains("text, json and chrome"));
    }
    #[test]
    fn a_timeline_is_whole_after_each_record_though_nobody_ends_it() {
        let path = scratch("sink");
        let sink = Sink::open(Form::Chrome, Some(&path)).unwrap();
        for count in 0..=3 {
            let text = std::fs::read_to_string(&path).unwrap();
            let all: Vec<serde_json::Value> = serde_json::from_str(&text).unwrap();
            assert_eq!(all.len() as u64, count);
            sink.write(&record(count));
        }
        let before = std::fs::read(&path).unwrap();
        sink.finish();
        assert_eq!(std::fs::read(&path).unwrap(), before);
        std::fs::remove_file(path).unwrap();
    }
    #[test]
    fn a_file_that_is_there_stays_as_it_is() {
        let path = scratch("there");
        let second = before_extension(&path, "-2");
        std::fs::write(&path, "mine").unwrap();
        Sink::open(Form::Json, Some(&path)).unwrap().write(&record(7));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "mine");
        let line = std::fs::read_to_string(&second).unwrap();
        let line: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!(line["pid"], std::process::id());
        std::fs::remove_file(path).unwrap();
        std::fs::remove_file(second).unwrap();
    }
    #[test]
    fn every_character_has_a_json_string() {
        let mut s = String::new();
        quoted(&mut s, "a \"b\" \\ \n\u{1}é");
        assert_eq!(s, "\"a \\\"b\\\" \\\\ \\u000a\\u0001é\"");
    }
}
