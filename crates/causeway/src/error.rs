//! Errors: a kind for programs, a sentence for people.
use crate::names::in_rust;
use std::{borrow::Cow, fmt};

/// A result code of Unified Runtime.
pub use ur_sys::ur_result_t as Code;

/// The result type of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong, for programs. The error's sentence is for people.
///
/// [`is_transient`](Self::is_transient) tells whether the call is worth repeating.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The runtime returned this code, for a reason that no other kind names.
    Runtime(Code),
    /// The bytes or text are not a ticket, or the ticket is damaged.
    Ticket,
    /// The ticket is for another kind of object than the one requested.
    WrongKind,
    /// The ticket is for values of another type, or the memory is not aligned for them.
    WrongType,
    /// The ticket is for another device or another backend than the context's.
    WrongDevice,
    /// The ticket was made on another machine.
    OtherHost,
    /// The process that shared the object has withdrawn the ticket: its [`Export`](crate::Export) was dropped.
    Withdrawn,
    /// The process that shared the object has freed it.
    Freed,
    /// The other process ended before its ticket was opened, or before it completed a signal that it had submitted.
    PeerGone,
    /// The other process may be alive, but it cannot be reached: containers need a directory that both see
    /// (`CAUSEWAY_DIR`).
    Unreachable,
    /// The other process did not answer in time or has reached its own limits.
    Busy,
    /// The ticket is not for this process: the kernel or the other process refused. A ticket that never existed is
    /// refused in the same way.
    Denied,
    /// The other process violated the protocol.
    Protocol,
    /// A limit of this process, of the system or of the device is reached: descriptors or mappings, for example.
    Limit,
    /// The host or the device is out of memory.
    OutOfMemory,
    /// The device, its driver or the kernel cannot do this.
    Unsupported,
    /// The object belongs to the parent of this forked process.
    Forked,
    /// The object was not created for this use; the sentence names the call that creates one that is.
    Unsuitable,
    /// A length or range is invalid.
    Length,
    /// A write to memory that is mapped or was opened for reading only.
    ReadOnly,
    /// The deadline passed. What was waited for may still happen, and can be waited for again.
    TimedOut,
    /// There is no such device.
    NoDevice,
}

impl ErrorKind {
    /// Whether the same call may succeed later without a change to the program: the other process was busy, a limit was
    /// reached, memory was short, or the deadline passed.
    pub const fn is_transient(self) -> bool {
        matches!(self, Self::Busy | Self::Limit | Self::OutOfMemory | Self::TimedOut)
    }
    /// The kind for an adapter's code and, if sharing failed, for its reason (decision 0011).
    fn of(code: Code, reason: Option<&str>) -> Self {
        match reason {
            Some("wrong_size" | "damaged") => Self::Ticket,
            Some("wrong_kind") => Self::WrongKind,
            Some("wrong_backend" | "wrong_device") => Self::WrongDevice,
            Some("other_host") => Self::OtherHost,
            Some("withdrawn") => Self::Withdrawn,
            Some("freed") => Self::Freed,
            Some("exporter_gone" | "other_boot") => Self::PeerGone,
            Some("directory" | "unreachable") => Self::Unreachable,
            Some("timed_out" | "full") => Self::Busy,
            Some("unknown" | "denied") => Self::Denied,
            Some("peer_nonsense") => Self::Protocol,
            Some(
                "too_many_descriptors" | "too_many_mappings" | "too_many_threads" | "no_space",
            ) => Self::Limit,
            Some("no_memory") => Self::OutOfMemory,
            Some("kernel_lacks" | "unsupported") => Self::Unsupported,
            Some("forked") => Self::Forked,
            _ => Self::of_code(code),
        }
    }
    fn of_code(code: Code) -> Self {
        match code {
            Code::ERROR_OUT_OF_HOST_MEMORY | Code::ERROR_OUT_OF_DEVICE_MEMORY => Self::OutOfMemory,
            Code::ERROR_OUT_OF_RESOURCES => Self::Limit,
            Code::ERROR_UNSUPPORTED_FEATURE | Code::ERROR_UNSUPPORTED_ENUMERATION => {
                Self::Unsupported
            }
            code => Self::Runtime(code),
        }
    }
}

/// An error.
///
/// ```
/// use causeway::{ErrorKind, Event, Ticket};
///
/// let error = "cw1-mem-0".parse::<Ticket<Event>>().unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::WrongKind);
/// assert_eq!(error.to_string(), "this ticket is memory; an event was asked for");
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Error {
    kind: ErrorKind,
    code: Option<Code>,
    native: i32,
    sentence: Cow<'static, str>,
}

impl Error {
    /// An error that this crate detected.
    pub(crate) fn new(kind: ErrorKind, sentence: impl Into<Cow<'static, str>>) -> Self {
        Self { kind, code: None, native: 0, sentence: sentence.into() }
    }
    /// An error of `entry`, with the adapter's sentence if there is one, else with the code.
    pub(crate) fn runtime(entry: &str, code: Code, said: &str, native: i32) -> Self {
        let (said, reason) = without_code(said, code);
        let sentence = match said {
            "" => in_rust(&format!("{entry} failed with {code:?}")),
            said => in_rust(said),
        };
        let kind = ErrorKind::of(code, reason);
        Self { kind, code: Some(code), native, sentence: sentence.into() }
    }
    /// What went wrong, for programs.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }
    /// Whether the same call may succeed later: see [`ErrorKind::is_transient`].
    pub fn is_transient(&self) -> bool {
        self.kind.is_transient()
    }
    /// The runtime's code, if the runtime returned an error.
    pub fn code(&self) -> Option<Code> {
        self.code
    }
    /// The driver's own status, or the errno where the kernel is the driver; 0 if none is known.
    pub fn native(&self) -> i32 {
        self.native
    }
}

/// An adapter's sentence without the parenthesis `(CODE, reason WORD, driver status N)` that may end it, and the
/// reason's word from that parenthesis.
fn without_code(said: &str, code: Code) -> (&str, Option<&str>) {
    let name = format!("{code:?}");
    if said == name {
        return ("", None);
    }
    let ends = |(sentence, end)| {
        let mut parts = str::strip_suffix(end, ")")?.split(", ");
        (parts.next()? == name)
            .then(|| (sentence, parts.find_map(|part| part.strip_prefix("reason "))))
    };
    said.rsplit_once(" (").and_then(ends).unwrap_or((said, None))
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
        assert_eq!(error.kind(), ErrorKind::Runtime(code));
        let error = Error::runtime("urX", code, "open (the door) first", 0);
        assert_eq!(error.to_string(), "open (the door) first");
    }
    #[test]
    fn the_reason_in_an_adapters_sentence_is_the_kind() {
        let code = Code::ERROR_INVALID_VALUE;
        let said = format!("it was put ({code:?}, reason withdrawn, driver status 2)");
        let error = Error::runtime("urX", code, &said, 2);
        assert_eq!(
            (error.kind(), error.to_string().as_str()),
            (ErrorKind::Withdrawn, "it was put")
        );
        // Words in the sentence itself that look like a reason are not one.
        let said = format!("a reason withdrawn ({code:?})");
        assert_eq!(Error::runtime("urX", code, &said, 0).kind(), ErrorKind::Runtime(code));
    }
    #[test]
    fn every_reason_that_an_adapter_may_give_has_a_kind() {
        for reason in ur_ipc::ErrorKind::ALL {
            let kind = ErrorKind::of(Code::ERROR_UNKNOWN, Some(reason.word()));
            assert_ne!(kind, ErrorKind::Runtime(Code::ERROR_UNKNOWN), "{reason:?}");
        }
    }
    #[test]
    fn what_may_pass_is_told_from_what_will_not() {
        assert!(ErrorKind::Busy.is_transient() && ErrorKind::TimedOut.is_transient());
        assert!(!ErrorKind::Withdrawn.is_transient() && !ErrorKind::PeerGone.is_transient());
    }
    #[test]
    fn a_failure_without_a_sentence_names_the_call() {
        let error = Error::runtime("urEventWait", Code::ERROR_UNKNOWN, "", 0);
        assert!(error.to_string().starts_with("Event::wait failed with "), "{error}");
    }
}
