//! The errors of a driver: a kind for programs and a sentence for people. `ur-adapter/src/hal.rs` maps the kinds to UR
//! codes.
use std::{borrow::Cow, fmt};

/// The result type of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong, for programs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum ErrorKind {
    /// An argument that is never valid.
    InvalidValue,
    /// A size, range, pitch or pattern that does not fit what it is applied to.
    InvalidSize,
    /// A valid request at the wrong time, or for an object that does not permit it.
    InvalidOperation,
    /// A device that the driver does not know, or that a context was not made for.
    InvalidDevice,
    /// Arguments that do not match the function's parameters.
    InvalidArguments,
    /// A group size that the device or the function does not allow.
    InvalidGroupSize,
    /// A binary that is for another device, or is damaged.
    InvalidBinary,
    /// Code that does not compile; the build log says why.
    BuildFailed,
    /// Code with undefined symbols; the build log names them.
    LinkFailed,
    /// No function or variable has that name.
    NotFound,
    /// A feature that this driver or this device does not have: see [`Capability`](crate::Capability).
    Unsupported,
    /// An image format that the device does not support.
    UnsupportedFormat,
    /// The host has no memory left.
    OutOfHostMemory,
    /// The device has no memory left.
    OutOfDeviceMemory,
    /// Descriptors, mappings, threads or another resource of the system has run out.
    OutOfResources,
    /// Something that a command or a wait depends on has failed.
    DependencyFailed,
    /// The device hung, was reset or was removed; its contexts are no longer usable.
    DeviceLost,
    /// The driver is not available in this process: none is installed, it has shut down, or the process is a forked
    /// child.
    Uninitialized,
    /// An error with a meaning that is specific to this driver.
    DriverSpecific,
    /// The driver does not tell the cause.
    Unknown,
}

/// An error. Its size is two words, also as a `Result<()>`.
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    detail: Option<Box<Detail>>,
}
#[derive(Debug)]
struct Detail {
    message: Cow<'static, str>,
    reason: Option<ur_ipc::ErrorKind>,
    status: Option<i32>,
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
    /// The result of a method that a driver does not implement.
    ///
    /// # Errors
    /// Always [`ErrorKind::Unsupported`], naming `what`.
    #[cold]
    pub fn unsupported<T>(what: &'static str) -> Result<T> {
        Err(Self::new(ErrorKind::Unsupported, format!("this driver does not have {what}")))
    }
}
impl From<ErrorKind> for Error {
    fn from(kind: ErrorKind) -> Self {
        Self { kind, detail: None }
    }
}
impl ErrorKind {
    fn words(self) -> &'static str {
        match self {
            Self::InvalidValue => "an argument is invalid",
            Self::InvalidSize => "a size is invalid",
            Self::InvalidOperation => "the operation is not possible now",
            Self::InvalidDevice => "the device is unknown, or of another context",
            Self::InvalidArguments => "the function takes other arguments",
            Self::InvalidGroupSize => "the group size is invalid",
            Self::InvalidBinary => "the binary is not for this device, or is damaged",
            Self::BuildFailed => "the code does not compile",
            Self::LinkFailed => "the code does not link",
            Self::NotFound => "there is nothing of that name",
            Self::Unsupported => "the driver does not support this",
            Self::UnsupportedFormat => "the device has no images of that format",
            Self::OutOfHostMemory => "the host has no memory left",
            Self::OutOfDeviceMemory => "the device has no memory left",
            Self::OutOfResources => "the system has run out of a resource",
            Self::DependencyFailed => "something that this depends on has failed",
            Self::DeviceLost => "the device is lost",
            Self::Uninitialized => "the driver is not running in this process",
            Self::DriverSpecific => "the driver failed",
            Self::Unknown => "the driver does not say why",
        }
    }
}
impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(detail) = &self.detail else { return f.write_str(self.kind.words()) };
        f.write_str(&detail.message)?;
        detail.status.map_or(Ok(()), |status| write!(f, " (driver status {status})"))
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
        assert_eq!(error.to_string(), "no descriptors are left (driver status 304)");
        assert_eq!((error.kind(), error.status()), (ErrorKind::OutOfResources, Some(304)));
        let error = Error::from(ErrorKind::DependencyFailed);
        assert_eq!(error.to_string(), "something that this depends on has failed");
        let error = error.because(ur_ipc::ErrorKind::ExporterGone);
        assert_eq!(error.reason(), Some(ur_ipc::ErrorKind::ExporterGone));
        assert_eq!(error.into_message().unwrap(), "something that this depends on has failed");
    }
}
