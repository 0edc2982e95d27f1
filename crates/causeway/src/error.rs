//! Failures: a kind for programs, a sentence for people.
use std::{borrow::Cow, fmt};

/// A result code of Unified Runtime.
pub use ur_sys::ur_result_t as Code;

/// What this crate returns.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong, for programs; the sentence beside it is for people.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The runtime refused, with this code.
    Runtime(Code),
    /// The ticket is not one, is damaged, or names another kind of object than was asked for.
    Ticket,
    /// A length or range that does not fit.
    Length,
    /// A write to memory that is mapped for reading.
    ReadOnly,
    /// The deadline passed. What was waited for may still happen, and can be waited for again.
    TimedOut,
    /// There is no such device.
    NoDevice,
}

/// A failure.
///
/// ```
/// use causeway::{ErrorKind, Event, Ticket};
///
/// let error = "cw1-mem-0".parse::<Ticket<Event>>().unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::Ticket);
/// assert_eq!(error.to_string(), "this ticket is memory; an event was asked for");
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Error {
    kind: ErrorKind,
    native: i32,
    sentence: Cow<'static, str>,
}

impl Error {
    /// A failure that was found here.
    pub(crate) fn new(kind: ErrorKind, sentence: impl Into<Cow<'static, str>>) -> Self {
        Self { kind, native: 0, sentence: sentence.into() }
    }
    /// A failure of `entry`: the adapter's sentence if it left one, else the code.
    pub(crate) fn runtime(entry: &str, code: Code, said: &str, native: i32) -> Self {
        let said = without_code(said, code);
        let sentence = match said {
            "" => format!("{entry} failed with {code:?}"),
            said => said.to_owned(),
        };
        Self { kind: ErrorKind::Runtime(code), native, sentence: sentence.into() }
    }
    /// What went wrong, for programs.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }
    /// The runtime's code, if the runtime refused.
    pub fn code(&self) -> Option<Code> {
        match self.kind {
            ErrorKind::Runtime(code) => Some(code),
            _ => None,
        }
    }
    /// The driver's own status, or errno where the kernel is the driver; 0 if none is known.
    pub fn native(&self) -> i32 {
        self.native
    }
}

/// An adapter's sentence without the code and status in parentheses that may end it: `kind` has the code.
fn without_code(said: &str, code: Code) -> &str {
    let name = format!("{code:?}");
    let is_code = |text: &str| text.split(',').next() == Some(&name);
    if is_code(said) {
        return "";
    }
    match said.rsplit_once(" (") {
        Some((sentence, code)) if code.strip_suffix(')').is_some_and(is_code) => sentence,
        _ => said,
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence)
    }
}
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.kind, self.sentence)
    }
}
impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_adapters_sentence_is_kept_and_its_code_is_not_repeated() {
        let code = Code::ERROR_INVALID_VALUE;
        let error = Error::runtime("urX", code, "the ticket was withdrawn", 0);
        assert_eq!(error.to_string(), "the ticket was withdrawn");
        assert_eq!(error.code(), Some(code));
        let error = Error::runtime("urX", code, &format!("no ({code:?}, driver status 5)"), 5);
        assert_eq!((error.to_string().as_str(), error.native()), ("no", 5));
        let error = Error::runtime("urX", code, "open (the door) first", 0);
        assert_eq!(error.to_string(), "open (the door) first");
    }
    #[test]
    fn a_failure_without_a_sentence_names_the_entry() {
        let error = Error::runtime("urEventWait", Code::ERROR_UNKNOWN, "", 0);
        assert!(error.to_string().starts_with("urEventWait failed with "), "{error}");
    }
}
