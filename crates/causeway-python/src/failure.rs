//! Failures as exceptions: the class for programs, the core's sentence for people, in the names that a Python program
//! has used. The classes themselves are Python (`causeway_ipc/_errors.py`).
use causeway::ErrorKind;
use pyo3::{prelude::*, sync::PyOnceLock, types::PyModule};
use std::{
    fmt::{self, Display},
    time::Duration,
};

pub type Result<T, E = Failure> = std::result::Result<T, E>;

/// An exception to be.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The name of its class.
    class: &'static str,
    sentence: String,
    /// Whether the same call may succeed later.
    pub is_transient: bool,
}

impl Failure {
    pub fn new(class: &'static str, sentence: impl Display) -> Self {
        Self { class, sentence: sentence.to_string(), is_transient: false }
    }
    /// An event was waited for so long, in several waits of the runtime's.
    pub fn late(timeout: Duration) -> Self {
        let sentence = format!(
            "the event is not complete after {timeout:?}: whoever owes it may be busy or stuck; wait again, or longer (timeout=)"
        );
        Self { is_transient: true, ..Self::new("Timeout", sentence) }
    }
    /// Whether what a ticket names cannot be opened any more, by anybody.
    pub fn is_of_a_dead_ticket(&self) -> bool {
        matches!(self.class, "Withdrawn" | "Freed" | "ExporterGone")
    }
    /// The same kind of failure, said in another sentence.
    pub fn said(self, sentence: impl Display) -> Self {
        Self { sentence: sentence.to_string(), ..self }
    }
    /// What a caller did that cannot be.
    pub fn misuse(sentence: impl Display) -> Self {
        Self::new("InvalidUse", sentence)
    }
    /// A ticket that is none, or not a whole one.
    pub fn damaged() -> Self {
        Self::new("InvalidTicket", "this ticket is damaged: copy it again, the whole of it")
    }
}

/// What is said of a ticket whose export is withdrawn.
pub const WITHDRAWN: &str = "the process that shared this has withdrawn the ticket: its export was closed, has expired, or was dropped, as share(array).ticket alone does at once; keep the export there until the ticket has been opened";
/// What is said of a ticket whose memory was given back.
const FREED: &str = "the process that shared this has given the memory back: keep the array there, or its export, until the ticket has been opened (where the connection to it was lost, close what is open of it, and open the ticket anew)";

impl Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence)
    }
}

/// Names of the Rust crate and what is called instead here; no name is the beginning of a later one.
const NAMES: [(&str, &str); 13] = [
    ("(Context::set_patience)", "(timeout=)"),
    ("Context::create_shared_event", "causeway_ipc.Event"),
    ("Context::create_event", "causeway_ipc.Event"),
    ("Context::open", "causeway_ipc.open"),
    ("Buffer::new", "causeway_ipc.empty"),
    ("Buffer::share", "causeway_ipc.share"),
    ("Event::share", "causeway_ipc.share"),
    ("Event::wait", "Event.synchronize"),
    ("Queue::signal", "Event.record"),
    ("Queue::wait_for", "Event.wait"),
    ("Queue::over_native", "the stream"),
    ("Device::all", "causeway_ipc.devices"),
    ("the exporter", "the process that shared it"),
];

impl From<causeway::Error> for Failure {
    fn from(error: causeway::Error) -> Self {
        let class = match error.kind() {
            ErrorKind::Ticket
            | ErrorKind::WrongKind
            | ErrorKind::WrongType
            | ErrorKind::Protocol => "InvalidTicket",
            ErrorKind::WrongDevice | ErrorKind::NoDevice => "WrongDevice",
            ErrorKind::OtherHost => "OtherHost",
            ErrorKind::Withdrawn => "Withdrawn",
            ErrorKind::Freed => "Freed",
            ErrorKind::PeerGone => "ExporterGone",
            ErrorKind::Unreachable => "Unreachable",
            ErrorKind::Busy => "Busy",
            ErrorKind::Denied => "NotPermitted",
            ErrorKind::Limit => "LimitReached",
            ErrorKind::OutOfMemory => "OutOfMemory",
            ErrorKind::Unsupported => "Unsupported",
            ErrorKind::Forked => "Forked",
            ErrorKind::TimedOut => "Timeout",
            ErrorKind::Unsuitable | ErrorKind::Length | ErrorKind::ReadOnly => "InvalidUse",
            _ => "DriverError",
        };
        let named = |sentence: String, (rust, here): &(&str, &str)| sentence.replace(rust, here);
        let sentence = match error.kind() {
            ErrorKind::Withdrawn => WITHDRAWN.into(),
            ErrorKind::Freed => FREED.into(),
            _ => NAMES.iter().fold(error.to_string(), named),
        };
        Self { class, sentence, is_transient: error.is_transient() }
    }
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> Self {
        static CLASSES: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
        Python::attach(|py| {
            let import = || PyModule::import(py, "causeway_ipc._errors").map(Bound::unbind);
            let made = CLASSES.get_or_try_init(py, import).and_then(|classes| {
                let made = classes.bind(py).getattr(failure.class)?.call1((failure.sentence,))?;
                made.setattr("is_transient", failure.is_transient)?;
                Ok(PyErr::from_value(made))
            });
            made.unwrap_or_else(|error| error)
        })
    }
}
