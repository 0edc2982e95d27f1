//! Where traces go, and in which form: lines for people, JSON lines for programs, or the trace event
//! format of Chrome and Perfetto.
use super::trace::Record;
use std::{
    fmt::Write as _,
    fs::File,
    io::{self, BufWriter, Write as _},
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
    File { file: BufWriter<File>, any: bool },
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
            Some(path) => To::File { file: BufWriter::new(File::create(path)?), any: false },
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
        let mut to = self.to.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = match &mut *to {
            To::Stderr => io::stderr().lock().write_all(text.as_bytes()),
            To::File { file, any } => {
                let between = match (self.form, *any) {
                    (Form::Chrome, false) => "[\n",
                    (Form::Chrome, true) => ",\n",
                    _ => "",
                };
                *any = true;
                file.write_all(between.as_bytes()).and_then(|()| file.write_all(text.as_bytes()))
            }
        };
    }
    /// Writes what is left, and ends the array.
    pub fn finish(&self) {
        let mut to = self.to.lock().unwrap_or_else(PoisonError::into_inner);
        if let To::File { file, any } = &mut *to {
            let end = match (self.form, *any) {
                (Form::Chrome, true) => "\n]\n",
                (Form::Chrome, false) => "[]\n",
                _ => "",
            };
            let _ = file.write_all(end.as_bytes()).and_then(|()| file.flush());
        }
    }
}

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
    fn every_character_has_a_json_string() {
        let mut s = String::new();
        quoted(&mut s, "a \"b\" \\ \n\u{1}é");
        assert_eq!(s, "\"a \\\"b\\\" \\\\ \\u000a\\u0001é\"");
    }
}
