//! The errors of a driver: a kind for programs and a sentence for people. `ur-adapter/src/hal.rs` maps the kinds to UR
//! codes.
use std::{borrow::Cow, fmt};

/// The result type of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Defines the kinds, each with its documentation and its sentence.
macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident: $words:literal,)*) => {
        /// What went wrong, for programs. A whole word: the compiler moves a `Result` of points and the like in whole words
        /// then, and the processor can forward them from the stores before.
        #[repr(u64)]
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        #[non_exhaustive]
        pub enum ErrorKind {
            $($(#[$doc])* $kind,)*
        }
        impl ErrorKind {
            /// All kinds.
            pub const ALL: &[Self] = &[$(Self::$kind),*];

            fn words(self) -> &'static str {
                match self {
                    $(Self::$kind => $words,)*
                }
            }
        }
    };
}
kinds! {
    /// An argument that is never valid.
    InvalidValue: "an argument is invalid",
    /// A size, range, pitch or pattern that does not fit what it is applied to.
    InvalidSize: "a size is invalid",
    /// A valid request at the wrong time, or for an object that does not permit it.
    InvalidOperation: "the operation is not possible now",
    /// This user or this process does not have the right to do it.
    NotPermitted: "this process does not have the right to do it",
    /// A device that the driver does not know, or that a context was not made for.
    InvalidDevice: "the device is unknown, or of another context",
    /// A device that cannot be partitioned in this way.
    PartitionFailed: "the device cannot be partitioned like that",
    /// Parts of a device with more compute units than it has.
    InvalidPartitionCount: "the device has fewer compute units",
    /// Arguments that do not match the function's parameters.
    InvalidArguments: "the function takes other arguments",
    /// A group size that the device or the function does not allow.
    InvalidGroupSize: "the group size is invalid",
    /// A context of the driver that is no longer valid.
    InvalidContext: "the driver's context is not valid",
    /// A stream of a kind that the device does not have, such as one out of order.
    UnsupportedStream: "the device has no streams like that",
    /// Memory that the driver does not know, or that does not allow the request.
    InvalidMemory: "the memory is unknown, or does not allow this",
    /// A part of a buffer that does not begin at a multiple of what the device needs.
    Misaligned: "the part does not begin at a multiple of what the device needs",
    /// A sampler that the driver does not know.
    InvalidSampler: "the sampler is unknown",
    /// An event of the driver that cannot be used in this way.
    InvalidEvent: "the event cannot be used in this way",
    /// A function that the driver does not know.
    InvalidFunction: "the function is unknown",
    /// An argument that the function does not have.
    InvalidArgumentIndex: "the function has no such argument",
    /// An argument of another size than the function's parameter.
    InvalidArgumentSize: "an argument has another size",
    /// A range of work items that cannot be divided into groups.
    InvalidGlobalSize: "the range cannot be divided into groups",
    /// A binary that is for another device, or is damaged.
    InvalidBinary: "the binary is not for this device, or is damaged",
    /// A module that the driver does not know.
    InvalidModule: "the module is unknown",
    /// Code that is not built for the device.
    NotBuilt: "the code is not built for this device",
    /// Code that does not compile; the build log says why.
    BuildFailed: "the code does not compile",
    /// Code with undefined symbols; the build log names them.
    LinkFailed: "the code does not link",
    /// The driver has no compiler, or a library that its compiler needs is missing.
    NoCompiler: "the driver has no compiler",
    /// No function or variable has that name.
    NotFound: "there is nothing of that name",
    /// A function without an address that can be called.
    NoAddress: "the function has no address",
    /// A query or an option that this driver does not know.
    UnknownOption: "the driver does not know that value",
    /// A feature that this driver or this device does not have: see [`Capability`](crate::Capability).
    Unsupported: "the driver does not support this",
    /// An image format that the device does not support.
    UnsupportedFormat: "the device has no images of that format",
    /// The host has no memory left.
    OutOfHostMemory: "the host has no memory left",
    /// The device has no memory left.
    OutOfDeviceMemory: "the device has no memory left",
    /// Descriptors, mappings, threads or another resource of the system has run out.
    OutOfResources: "the system has run out of a resource",
    /// Something that a command or a wait depends on has failed.
    DependencyFailed: "something that this depends on has failed",
    /// The device hung, was reset or was removed; its contexts are no longer usable.
    DeviceLost: "the device is lost",
    /// The driver is not available in this process: none is installed, it has shut down, or the process is a forked
    /// child.
    Uninitialized: "the driver is not running in this process",
    /// An error with a meaning that is specific to this driver.
    DriverSpecific: "the driver failed",
    /// The driver does not tell the cause.
    Unknown: "the driver does not say why",
}

impl ErrorKind {
    /// Whether nothing runs any more where this is the error of a query. Any other says nothing about completion.
    pub fn is_gone(self) -> bool {
        matches!(self, Self::DeviceLost | Self::Uninitialized | Self::InvalidContext)
    }
    /// Whether resources have run out, or the device or its driver is gone: not the fault of a call's arguments.
    pub fn is_want(self) -> bool {
        self.has_run_out() || self.is_gone()
    }
    /// Whether memory or resources have run out, so that a later attempt may succeed.
    pub fn has_run_out(self) -> bool {
        matches!(self, Self::OutOfDeviceMemory | Self::OutOfHostMemory | Self::OutOfResources)
    }
}
/// An error. Its size is two words, also as a `Result<()>`.
#[derive(Clone, Debug)]
pub struct Error {
    kind: ErrorKind,
    detail: Option<Box<Detail>>,
}
#[derive(Clone, Debug)]
struct Detail {
    message: Cow<'static, str>,
    reason: Option<ur_ipc::ErrorKind>,
    status: Option<i32>,
}

/// Waits for what a driver took of a command that it then refused, or refused to wait for: its caller may use the
/// memory again when it is told so. While the driver cannot even tell whether all is over, it is asked again, but not for ever.
pub fn wait_for_taken(mut is_over: impl FnMut() -> Result<bool>) {
    let mut failures = 0;
    while failures < 1_000 {
        match is_over() {
            Ok(true) => return,
            Ok(false) => failures = 0,
            Err(error) if error.kind().is_gone() => return,
            Err(_) => failures += 1,
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}
/// Makes a call of the driver, and repeats it a few times while it is refused, but not for what it waits for, and not when nothing
/// runs any more: for a call without which something that the driver has taken would be left without an end.
///
/// # Errors
/// Returns the driver's last error.
pub fn repeated<T>(call: impl Fn() -> Result<T>) -> Result<T> {
    for _ in 1..8 {
        match call() {
            Err(error)
                if error.kind() != ErrorKind::DependencyFailed && !error.kind().is_gone() => {}
            done => return done,
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    call()
}
/// The outcome of a wait, without an error that says that nothing runs any more: then there is nothing to wait for.
///
/// # Errors
/// Any other.
pub fn unless_gone(waited: Result<()>) -> Result<()> {
    match waited {
        Err(error) if error.kind().is_gone() => Ok(()),
        waited => waited,
    }
}

impl Error {
    /// An error with a sentence that says what happened and what to do about it.
    pub fn new(kind: ErrorKind, message: impl Into<Cow<'static, str>>) -> Self {
        let detail = Detail { message: message.into(), reason: None, status: None };
        Self { kind, detail: Some(Box::new(detail)) }
    }
    fn detail(&mut self) -> &mut Detail {
        let message = Cow::Borrowed(self.kind.words());
        self.detail.get_or_insert_with(|| Box::new(Detail { message, reason: None, status: None }))
    }
    /// Adds the driver's own status, or the `errno` if the operating system takes the place of a driver.
    #[must_use]
    pub fn with_status(mut self, status: i32) -> Self {
        self.detail().status = Some(status);
        self
    }
    /// Adds the reason why sharing between processes failed.
    #[must_use]
    pub fn because(mut self, reason: ur_ipc::ErrorKind) -> Self {
        self.detail().reason = Some(reason);
        self
    }
    /// Changes the kind, where a driver's status means something else in a certain call.
    #[must_use]
    pub fn with_kind(mut self, kind: ErrorKind) -> Self {
        self.kind = kind;
        self
    }
    /// What went wrong.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }
    /// The driver's own status, if it was recorded.
    pub fn status(&self) -> Option<i32> {
        self.detail.as_ref()?.status
    }
    /// The reason why sharing failed, if that is what failed.
    pub fn reason(&self) -> Option<ur_ipc::ErrorKind> {
        self.detail.as_ref()?.reason
    }
    /// Returns the error's sentence, if it has one of its own.
    pub fn into_message(self) -> Option<Cow<'static, str>> {
        self.detail.map(|detail| detail.message)
    }
    /// The error of something that needs the thread `name`, which could not be started.
    pub fn no_thread(name: &str, why: &dyn fmt::Display) -> Self {
        // The system returns "try again" both for a stack that cannot be mapped and for too many threads.
        let (kind, advice) = match ur_mapping::addresses_exhausted() {
            true => (ErrorKind::OutOfHostMemory, "raise the limit on addresses (`ulimit -v`)"),
            false => (
                ErrorKind::OutOfResources,
                "raise the limit on processes (`ulimit -u`) or use fewer queues",
            ),
        };
        Self::new(kind, format!("the thread {name} could not be started: {why}; {advice}"))
    }
    /// The result of a method that a driver does not implement.
    ///
    /// # Errors
    /// Always [`ErrorKind::Unsupported`], naming `what`.
    #[cold]
    pub fn unsupported<T>(what: &'static str) -> Result<T> {
        Err(Self::new(ErrorKind::Unsupported, format!("this driver does not have {what}")))
    }
}
impl Error {
    /// The error of a command that is refused because an event that it is to wait for has failed.
    #[cold]
    pub fn failed_dependency() -> Self {
        let why = "an event that was to be waited for is of a command that failed: the command is not submitted";
        Self::new(ErrorKind::DependencyFailed, why)
    }
}
impl From<ur_ipc::Error> for Error {
    /// Kinds that are not a resource or a feature that is missing mean that the ticket cannot be opened here.
    fn from(error: ur_ipc::Error) -> Self {
        use ur_ipc::ErrorKind as K;
        let kind = match error.kind() {
            K::TooManyDescriptors | K::TooManyMappings | K::TooManyThreads | K::Full => {
                ErrorKind::OutOfResources
            }
            K::NoMemory => ErrorKind::OutOfHostMemory,
            K::KernelLacks | K::Unsupported => ErrorKind::Unsupported,
            K::Forked => ErrorKind::Uninitialized,
            K::Directory | K::NoSpace => ErrorKind::OutOfResources,
            _ => ErrorKind::InvalidValue,
        };
        let new = Self::new(kind, error.to_string()).because(error.kind());
        match error.errno() {
            Some(errno) => new.with_status(errno),
            None => new,
        }
    }
}
impl From<ErrorKind> for Error {
    fn from(kind: ErrorKind) -> Self {
        Self { kind, detail: None }
    }
}
/// The sentence, the kind and the driver's status.
impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(detail) = &self.detail else { return f.write_str(self.kind.words()) };
        write!(f, "{} ({:?}", detail.message, self.kind)?;
        if let Some(status) = detail.status {
            write!(f, ", driver status {status}")?;
        }
        f.write_str(")")
    }
}
impl std::error::Error for Error {}

const _: () = assert!(size_of::<Result<()>>() == 16, "submitting returns one by value");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_keeps_its_sentence_its_status_and_its_reason() {
        let error =
            Error::new(ErrorKind::OutOfResources, "no descriptors are left").with_status(304);
        assert_eq!(
            error.to_string(),
            "no descriptors are left (OutOfResources, driver status 304)"
        );
        assert_eq!((error.kind(), error.status()), (ErrorKind::OutOfResources, Some(304)));
        let error = Error::from(ErrorKind::DependencyFailed);
        assert_eq!(error.to_string(), "something that this depends on has failed");
        let error = error.because(ur_ipc::ErrorKind::ExporterGone);
        assert_eq!(error.reason(), Some(ur_ipc::ErrorKind::ExporterGone));
        assert_eq!(error.into_message().unwrap(), "something that this depends on has failed");
    }
}
