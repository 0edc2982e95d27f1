//! How a command may end, other than well.
use std::{fmt::Display, io};

/// What a command returns.
pub type Result<T, E = Failure> = std::result::Result<T, E>;

/// How a command ends that does not end well.
#[derive(Debug)]
pub enum Failure {
    /// With a sentence for the user.
    Said(String),
    /// Whoever read our standard output has closed it.
    BrokenPipe,
    /// By Ctrl-C, or a request to end.
    Interrupted,
}

impl Failure {
    /// A sentence for the user.
    pub fn said(sentence: impl Into<String>) -> Self {
        Self::Said(sentence.into())
    }
    /// A failure of the system; `doing` completes "could not …".
    pub fn system(doing: impl Display, error: &io::Error) -> Self {
        Self::Said(format!("could not {doing}: {error}"))
    }
    /// A failure to write to standard output.
    pub fn stdout(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::BrokenPipe,
            _ => Self::system("write to standard output", error),
        }
    }
}
impl From<causeway::Error> for Failure {
    fn from(error: causeway::Error) -> Self {
        Self::Said(error.to_string())
    }
}
