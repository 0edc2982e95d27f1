//! Where traces go, and in which form: lines for people, JSON lines for programs, or the trace event
//! format of Chrome and Perfetto.
use super::trace::Record;
use std::{
    fmt::Write as _,
    fs::File,
    io::{self, Write as _},
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

/// In which form records are written.
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
pub struct Sink {
    form: Form,
    to: Mutex<To>,
}
enum To {
    Stderr,
    /// A file proper, up to where it is written. It is whole after each record, also if the program
    /// is killed then: an array is closed, and the next record begins where it was.
    File {
        file: File,
        at: u64,
        any: bool,
    },
    /// A pipe or a device.
    Stream {
        file: File,
        any: bool,
    },
}

/// What `CAUSEWAY_TRACE` says: a form, and behind a colon a file, in whose name `%p` is the process.
pub fn parse(value: &str) -> Result<(Form, Option<PathBuf>), String> {
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
    let pid = std::process::id().to_string();
    Ok((form, path.map(|p| PathBuf::from(p.replace("%p", &pid)))))
}

impl Sink {
    /// Opens the file, or the standard error without one.
    pub fn open(form: Form, path: Option<&Path>) -> io::Result<Self> {
        let to = match path {
            None => To::Stderr,
            Some(path) => {
                let file = File::create(path)?;
                match file.metadata()?.is_file() {
                    true => To::File { file, at: 0, any: false },
                    false => To::Stream { file, any: false },
                }
            }
        };
        Ok(Self { form, to: Mutex::new(to) })
    }
    /// Writes a record. What cannot be written is lost: the traced program goes on.
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
        let mut to = self.to.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = match &mut *to {
            To::Stderr => io::stderr().lock().write_all(text.as_bytes()),
            To::File { file, at, any } => {
                let end = if self.form == Form::Chrome { END } else { "" };
                let whole = [between(*any), &text, end].concat();
                let written = file.write_all_at(whole.as_bytes(), *at);
                if written.is_ok() {
                    *any = true;
                    *at += (whole.len() - end.len()) as u64;
                }
                written
            }
            To::Stream { file, any } => {
                let whole = [between(*any), &text].concat();
                *any = true;
                file.write_all(whole.as_bytes())
            }
        };
    }
    /// Ends the array where that was put off.
    pub fn finish(&self) {
        let mut to = self.to.lock().unwrap_or_else(PoisonError::into_inner);
        if self.form != Form::Chrome {
            return;
        }
        let _ = match &mut *to {
            To::File { file, any: false, .. } => file.write_all_at(b"[]\n", 0),
            To::Stream { file, any } => file.write_all(if *any { END.as_bytes() } else { b"[]\n" }),
            To::Stderr | To::File { .. } => Ok(()),
        };
    }
}
/// What ends an array.
const END: &str = "\n]\n";

/// A call as a JSON object.
fn json(record: &Record) -> String {
    let mut s = format!(
        "{{\"call\":\"{}\",\"thread\":{},\"begin_ns\":{},\"duration_ns\":{},\"result\":\"{:?}\",",
        record.call, record.thread, record.begin_ns, record.duration_ns, record.result
    );
    s.push_str("\"arguments\":");
    arguments(&mut s, record);
    place(&mut s, record);
    s.push('}');
    s
}
/// A call as a complete event: times are in microseconds.
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

    #[test]
    fn forms_and_files_are_read() {
        assert_eq!(parse("text").unwrap(), (Form::Text, None));
        assert_eq!(parse("json:a:b").unwrap(), (Form::Json, Some("a:b".into())));
        let pid = std::process::id();
        let named = Some(PathBuf::from(format!("t.{pid}.json")));
        assert_eq!(parse("chrome:t.%p.json").unwrap(), (Form::Chrome, named));
        assert!(parse("chrome").unwrap_err().contains("chrome:FILE"));
        assert!(parse("xml:f").unwrap_err().contains("text, json and chrome"));
    }
    #[test]
    fn a_timeline_is_whole_after_each_record_though_nobody_ends_it() {
        let path = std::env::temp_dir().join(format!("ur-loader-sink-{}", std::process::id()));
        let sink = Sink::open(Form::Chrome, Some(&path)).unwrap();
        for count in 1..=3 {
            sink.write(&Record {
                call: "urQueueFlush",
                thread: 1,
                begin_ns: count,
                duration_ns: 1,
                result: ur_sys::ur_result_t::SUCCESS,
                arguments: vec![("hQueue", "0x1".to_string())],
                place: None,
            });
            let text = std::fs::read_to_string(&path).unwrap();
            let all: Vec<serde_json::Value> = serde_json::from_str(&text).unwrap();
            assert_eq!(all.len() as u64, count);
        }
        let before = std::fs::read(&path).unwrap();
        sink.finish();
        assert_eq!(std::fs::read(&path).unwrap(), before);
        std::fs::remove_file(path).unwrap();
    }
    #[test]
    fn every_character_has_a_json_string() {
        let mut s = String::new();
        quoted(&mut s, "a \"b\" \\ \n\u{1}é");
        assert_eq!(s, "\"a \\\"b\\\" \\\\ \\u000a\\u0001é\"");
    }
}
