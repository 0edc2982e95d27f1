//! The ways in which a command can fail.
use std::{fmt::Display, io};

/// The result of a command.
pub type Result<T, E = Failure> = std::result::Result<T, E>;

/// How a command fails.
#[derive(Debug)]
pub enum Failure {
    /// With a sentence for the user.
    Said(String),
    /// The reader of standard output has closed it.
    BrokenPipe,
    /// By Ctrl-C or SIGTERM.
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
