//! The errors of sharing between processes, as sentences that the user can act on. The adapters map a kind to a UR
//! code.
use std::{borrow::Cow, fmt, io};

/// The result type of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong, for programs. The error's sentence is for people.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The handle's length is not that of a ticket.
    WrongSize,
    /// Magic, version, checksum or reserved bits are not those of a ticket.
    Damaged,
    /// A valid ticket, but of another kind of object than was requested.
    WrongKind,
    /// A valid ticket of another backend.
    WrongBackend,
    /// A valid ticket of another device, or one whose contents contradict what the exporter knows.
    WrongDevice,
    /// The ticket was made on another machine.
    OtherHost,
    /// The ticket was made before the last boot of this machine.
    OtherBoot,
    /// The exporter withdrew the ticket.
    Withdrawn,
    /// The exporter freed the object.
    Freed,
    /// The process that made the ticket is gone.
    ExporterGone,
    /// The export never existed, or it is not for this process.
    Unknown,
    /// The kernel or the export's policy refused; the sentence names the check.
    Denied,
    /// The limit on open descriptors is reached, here or in the exporter.
    TooManyDescriptors,
    /// The limit on mappings or on locked memory is reached.
    TooManyMappings,
    /// The system is out of memory.
    NoMemory,
    /// The kernel lacks a call that is needed.
    KernelLacks,
    /// The other process did not answer in time.
    TimedOut,
    /// No directory for sockets can be used.
    Directory,
    /// No directory in which this process looks has the exporter's socket.
    Unreachable,
    /// A file system or a table of the kernel is full, or a quota is used up.
    NoSpace,
    /// The system has no thread for this process.
    TooManyThreads,
    /// The other process violated the protocol.
    PeerNonsense,
    /// All arenas, slots, counters or exports are taken.
    Full,
    /// The object belongs to the parent of this forked process.
    Forked,
    /// The object cannot be shared in this way.
    Unsupported,
}

impl ErrorKind {
    /// All kinds.
    pub const ALL: [Self; 25] = [
        Self::WrongSize,
        Self::Damaged,
        Self::WrongKind,
        Self::WrongBackend,
        Self::WrongDevice,
        Self::OtherHost,
        Self::OtherBoot,
        Self::Withdrawn,
        Self::Freed,
        Self::ExporterGone,
        Self::Unknown,
        Self::Denied,
        Self::TooManyDescriptors,
        Self::TooManyMappings,
        Self::NoMemory,
        Self::KernelLacks,
        Self::TimedOut,
        Self::Directory,
        Self::PeerNonsense,
        Self::Full,
        Self::Forked,
        Self::Unsupported,
        Self::Unreachable,
        Self::NoSpace,
        Self::TooManyThreads,
    ];
    /// The kind as a word that does not change between versions, for programs that read it in text.
    pub const fn word(self) -> &'static str {
        match self {
            Self::WrongSize => "wrong_size",
            Self::Damaged => "damaged",
            Self::WrongKind => "wrong_kind",
            Self::WrongBackend => "wrong_backend",
            Self::WrongDevice => "wrong_device",
            Self::OtherHost => "other_host",
            Self::OtherBoot => "other_boot",
            Self::Withdrawn => "withdrawn",
            Self::Freed => "freed",
            Self::ExporterGone => "exporter_gone",
            Self::Unknown => "unknown",
            Self::Denied => "denied",
            Self::TooManyDescriptors => "too_many_descriptors",
            Self::TooManyMappings => "too_many_mappings",
            Self::NoMemory => "no_memory",
            Self::KernelLacks => "kernel_lacks",
            Self::TimedOut => "timed_out",
            Self::Directory => "directory",
            Self::PeerNonsense => "peer_nonsense",
            Self::Full => "full",
            Self::Forked => "forked",
            Self::Unsupported => "unsupported",
            Self::Unreachable => "unreachable",
            Self::NoSpace => "no_space",
            Self::TooManyThreads => "too_many_threads",
        }
    }
}

/// A failure: its kind, the system's error number where there was one, and whole sentences.
#[derive(Clone, PartialEq, Eq)]
pub struct Error {
    kind: ErrorKind,
    errno: Option<i32>,
    sentence: Cow<'static, str>,
}

impl Error {
    /// An error that no system call reported.
    pub fn new(kind: ErrorKind, sentence: impl Into<Cow<'static, str>>) -> Self {
        Self { kind, errno: None, sentence: sentence.into() }
    }
    /// The failure of a system call; `doing` completes "could not …". The kind follows from the error number.
    pub fn system(doing: impl fmt::Display, error: impl Into<io::Error>) -> Self {
        let error = error.into();
        let (kind, advice) = judge(error.raw_os_error());
        let sentence = format!("could not {doing}: {error}{advice}");
        Self { kind, errno: error.raw_os_error(), sentence: sentence.into() }
    }
    /// Returns the error with another kind, where the caller knows better than the error number.
    #[must_use]
    pub fn of_kind(mut self, kind: ErrorKind) -> Self {
        self.kind = kind;
        self
    }
    /// Returns the error with another kind, unless the error number indicates a limit, which the user needs to know.
    #[must_use]
    pub(crate) fn unless_limit(self, kind: ErrorKind) -> Self {
        use ErrorKind::{NoMemory, NoSpace, TooManyDescriptors, TooManyMappings};
        match self.kind {
            TooManyDescriptors | TooManyMappings | NoMemory | NoSpace => self,
            _ => self.of_kind(kind),
        }
    }
    /// Returns the error with the system's error number.
    #[must_use]
    pub fn with_errno(mut self, errno: i32) -> Self {
        self.errno = Some(errno);
        self
    }
    /// Returns the error with one more sentence, which says what to do next.
    #[must_use]
    pub fn advise(mut self, advice: impl fmt::Display) -> Self {
        self.sentence = format!("{}; {advice}", self.sentence).into();
        self
    }
    /// What went wrong, for programs.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }
    /// The system's error number, if a system call failed.
    pub fn errno(&self) -> Option<i32> {
        self.errno
    }
}

/// What an error number means everywhere in this crate, and what the user can do about it.
fn judge(errno: Option<i32>) -> (ErrorKind, &'static str) {
    use rustix::io::Errno;
    let Some(errno) = errno.map(Errno::from_raw_os_error) else {
        return (ErrorKind::PeerNonsense, "");
    };
    match errno {
        Errno::MFILE => (
            ErrorKind::TooManyDescriptors,
            "; this process has reached its limit of open descriptors (raise it with `ulimit -n`, or close handles)",
        ),
        Errno::NFILE => (
            ErrorKind::TooManyDescriptors,
            "; the system has reached its limit of open files (raise fs.file-max)",
        ),
        Errno::TOOMANYREFS => (
            ErrorKind::TooManyDescriptors,
            "; too many descriptors of this user are on their way between processes (some process does not read its socket)",
        ),
        Errno::NOMEM if ur_mapping::mappings_exhausted() => (
            ErrorKind::TooManyMappings,
            "; this process has reached the limit on mappings (raise vm.max_map_count, or close what is open)",
        ),
        Errno::NOMEM => (
            ErrorKind::NoMemory,
            "; memory is short, or the limit on addresses (`ulimit -v`), mappings (vm.max_map_count) or locked memory (`ulimit -l`) is reached",
        ),
        Errno::NOBUFS => (ErrorKind::NoMemory, "; memory is short"),
        Errno::NOSPC => (
            ErrorKind::NoSpace,
            "; a file system, or a table of the kernel (fs.epoll.max_user_watches), is full",
        ),
        Errno::DQUOT => (ErrorKind::NoSpace, "; this user's quota is used up"),
        Errno::AGAIN | Errno::TIMEDOUT => (ErrorKind::TimedOut, ""),
        Errno::ROFS => (
            ErrorKind::Directory,
            "; set CAUSEWAY_DIR to a directory of yours that can be written, and that only you can write",
        ),
        Errno::PERM | Errno::ACCESS => (ErrorKind::Denied, ""),
        Errno::NOSYS => {
            (ErrorKind::KernelLacks, "; this kernel, or its seccomp filter, lacks the call")
        }
        _ => (ErrorKind::PeerNonsense, ""),
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
    use rustix::io::Errno;

    #[test]
    fn an_exhausted_limit_names_what_to_raise() {
        let error = Error::system("open the arena", Errno::MFILE);
        assert_eq!(error.kind(), ErrorKind::TooManyDescriptors);
        assert_eq!(error.errno(), Some(Errno::MFILE.raw_os_error()));
        assert!(error.to_string().contains("ulimit -n"), "{error}");
    }
    #[test]
    fn advice_follows_the_sentence() {
        let error = Error::new(ErrorKind::Denied, "it was refused").advise("ask for leave");
        assert_eq!(error.to_string(), "it was refused; ask for leave");
        assert_eq!(error.errno(), None);
    }
}
