//! Who signalled a shared event last, and which signals have come: words beside the driver's event, in memory that all
//! have who have the event. The driver tells neither of deaths, nor, once the exporter has ended, of anything: so whoever
//! waits looks here.
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use rustix::io::Errno;
use std::{
    fmt, fs, io,
    os::fd::{AsFd, OwnedFd},
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicU64, Ordering::*},
    },
    time::{Duration, Instant},
};
use ur_adapter::error::{Error, ErrorCode, Result};
use ur_core::exhausted::what_ran_out;
use ur_mapping::SharedWords;

/// Bytes of the memory.
pub(super) const BYTES: usize = 4096;
/// For so long a process is taken to live on.
const MOMENT: Duration = Duration::from_millis(5);
/// What its first word says.
const MAGIC: u64 = u64::from_le_bytes(*b"zeshared");
/// Its words: what it is, who signalled last, in which namespace of process numbers, how many
/// signals there were; who exports it, and in which namespace.
const WHAT: usize = 0;
const WHO: usize = 1;
const WHERE: usize = 2;
const COUNT: usize = 3;
const OWNER: usize = 4;
const HOME: usize = 5;
/// From here on the signals that have come, each by its number in the place that the number has in a ring.
const CAME: usize = 64;
/// How many places the ring has: who is so many signals late takes a later one for his.
const PLACES: u64 = 256;
/// Set with the number of a signal that never comes: its command failed.
const NEVER: u64 = 1 << 63;

/// The word of one event.
#[derive(Clone)]
pub struct SignalRecord {
    fd: Arc<OwnedFd>,
    words: Arc<SharedWords>,
}
impl fmt::Debug for SignalRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SignalRecord").field("fd", &self.fd).finish_non_exhaustive()
    }
}
/// A process: its number, the lower half of its start time, and its namespace's number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Process {
    who: u64,
    place: u64,
}
/// What is missing decides the code: addresses are the host's memory, descriptors and mappings are resources. A descriptor
/// that is too short, or could become so, is the sender's fault.
fn failed(doing: &str, why: impl Into<io::Error>) -> Error {
    let why = why.into();
    let is_want_of_memory = why.raw_os_error() == Some(Errno::NOMEM.raw_os_error());
    let code = match why.kind() {
        io::ErrorKind::InvalidData => ErrorCode::InvalidValue,
        _ if is_want_of_memory => what_ran_out().unwrap_or(ErrorCode::OutOfHostMemory),
        _ => ErrorCode::OutOfResources,
    };
    Error::new(code, format!("could not {doing}: {why}"))
}

impl SignalRecord {
    /// A new one, of an event that nobody has signalled.
    ///
    /// # Errors
    /// `OUT_OF_RESOURCES`, `OUT_OF_HOST_MEMORY`
    pub(super) fn make() -> Result<Self> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let make = || {
            let fd = memfd_create("causeway-ze-event", flags)?;
            ftruncate(&fd, BYTES as u64)?;
            fcntl_add_seals(&fd, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
            Ok::<_, rustix::io::Errno>(fd)
        };
        let fd = make().map_err(|e| failed("make memory for a shared event", e))?;
        let (board, me) = (Self::of(fd)?, Process::this());
        board.word(HOME).store(me.place, Relaxed);
        board.word(OWNER).store(me.who, Relaxed);
        board.word(WHAT).store(MAGIC, Release);
        Ok(board)
    }
    fn of(fd: OwnedFd) -> Result<Self> {
        let words = SharedWords::map(fd.as_fd(), BYTES);
        let words = words.map_err(|e| failed("map the memory of a shared event", e))?;
        Ok(Self { fd: Arc::new(fd), words: Arc::new(words) })
    }
    /// One that another process sent.
    ///
    /// # Errors
    /// `INVALID_VALUE` for what is none; as for [`Self::make`]
    pub(super) fn arrived(fd: OwnedFd) -> Result<Self> {
        let board = Self::of(fd)?;
        match board.word(WHAT).load(Acquire) {
            MAGIC => Ok(board),
            _ => Err(Error::new(
                ErrorCode::InvalidValue,
                "the exporter sent something that is no event of Level Zero: is it of the same \
                 version?",
            )),
        }
    }
    /// The descriptor that others get.
    pub(super) fn fd(&self) -> Arc<OwnedFd> {
        Arc::clone(&self.fd)
    }
    fn word(&self, number: usize) -> &AtomicU64 {
        self.words.word(number)
    }
    /// This process is about to signal: the number of that signal, from 1 on.
    pub(super) fn sign(&self) -> u64 {
        let me = Process::this();
        self.word(WHERE).store(me.place, Relaxed);
        self.word(WHO).store(me.who, Release); // after the namespace
        self.word(COUNT).fetch_add(1, AcqRel).wrapping_add(1)
    }
    /// The process that exports it.
    pub(super) fn owner(&self) -> Process {
        let (who, place) = (self.word(OWNER).load(Relaxed), self.word(HOME).load(Relaxed));
        Process { who, place }
    }
    fn place(&self, count: u64) -> &AtomicU64 {
        self.word(CAME + (count % PLACES) as usize)
    }
    /// The signal with this number has come, or never will.
    pub(super) fn note(&self, count: u64, came: bool) {
        let _before = self.place(count).fetch_update(AcqRel, Acquire, |known| {
            let word = if came { count } else { count | NEVER };
            (known & !NEVER < count).then_some(word) // not over a later one
        });
    }
    /// Whether the signal with this number has come; `None`: not that anybody said.
    pub(super) fn came(&self, count: u64) -> Option<bool> {
        let word = self.place(count).load(Acquire);
        (word & !NEVER >= count).then_some(word & !NEVER != count || word & NEVER == 0)
    }
    /// Who signalled last, and how many signals there were; `None` before the first.
    pub(super) fn last(&self) -> Option<(Process, u64)> {
        let count = self.count();
        let who = self.word(WHO).load(Acquire);
        let place = self.word(WHERE).load(Relaxed);
        (who != 0).then_some((Process { who, place }, count))
    }
    /// How many signals there were.
    pub(super) fn count(&self) -> u64 {
        self.word(COUNT).load(Acquire)
    }
}

impl Process {
    /// This one. A forked child is asked anew, in vain: it has no driver.
    pub(super) fn this() -> Self {
        static THIS: OnceLock<Process> = OnceLock::new();
        *THIS.get_or_init(|| {
            let number = std::process::id();
            let place = namespace().unwrap_or(0);
            Self { who: word(number, start_time(number).unwrap_or(0)), place }
        })
    }
    /// Whether it is gone for sure.
    pub(super) fn is_dead(self) -> bool {
        let this = Self::this();
        if self == this || self.place != this.place || this.place == 0 {
            return false; // numbers of elsewhere mean nothing here
        }
        // Who lived a moment ago need not be looked for again.
        static SEEN: Mutex<Option<(Process, Instant)>> = Mutex::new(None);
        let seen = || SEEN.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if seen().is_some_and(|(who, then)| who == self && now.duration_since(then) < MOMENT) {
            return false;
        }
        let number = (self.who >> 32) as u32;
        let is_dead = start_time(number).is_none_or(|time| word(number, time) != self.who);
        if !is_dead {
            *seen() = Some((self, now));
        }
        is_dead
    }
}
fn word(number: u32, start_time: u64) -> u64 {
    u64::from(number) << 32 | start_time & 0xffff_ffff
}
fn namespace() -> Option<u64> {
    let name = fs::read_link("/proc/self/ns/pid").ok()?;
    let name = name.to_str()?;
    name.trim_start_matches("pid:[").trim_end_matches(']').parse().ok()
}
/// When a process started, in the kernel's ticks; `None` for one that has ended, its parent having
/// taken notice or not.
fn start_time(number: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{number}/stat")).ok()?;
    // The name may itself hold blanks and parentheses: what counts begins after the last one.
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    let state = fields.next()?;
    if matches!(state, "Z" | "X" | "x") { None } else { fields.nth(18)?.parse().ok() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn a_board_tells_others_who_signed_it() {
        let board = SignalRecord::make().unwrap();
        assert!(board.last().is_none());
        let fd = board.fd().try_clone().unwrap();
        let other = SignalRecord::arrived(fd).unwrap();
        assert_eq!(board.sign(), 1);
        assert_eq!(other.last(), Some((Process::this(), 1)));
        assert_eq!(other.owner(), Process::this());
        assert!(!Process::this().is_dead());
    }
    #[test]
    fn a_board_tells_which_signals_have_come() {
        let board = SignalRecord::make().unwrap();
        assert_eq!(board.came(1), None);
        board.note(2, true);
        board.note(3, false);
        assert_eq!([1, 2, 3].map(|count| board.came(count)), [None, Some(true), Some(false)]);
        board.note(3 + PLACES, true);
        board.note(3, false); // late, and no news
        assert_eq!([3, 3 + PLACES].map(|count| board.came(count)), [Some(true); 2]);
        assert_eq!(board.came(4 + PLACES), None);
    }
    #[test]
    fn memory_without_the_word_is_no_board() {
        let fd = memfd_create("x", MemfdFlags::ALLOW_SEALING).unwrap();
        ftruncate(&fd, BYTES as u64).unwrap();
        fcntl_add_seals(&fd, SealFlags::SHRINK).unwrap();
        assert_eq!(SignalRecord::arrived(fd).unwrap_err().code(), ErrorCode::InvalidValue);
        let fd = memfd_create("x", MemfdFlags::ALLOW_SEALING).unwrap(); // it has no bytes, and could change
        assert_eq!(SignalRecord::arrived(fd).unwrap_err().code(), ErrorCode::InvalidValue);
    }
    #[test]
    fn what_is_missing_decides_what_a_failure_is_called() {
        let code = |why: Errno| failed("map memory", why).code();
        assert_eq!(code(Errno::NOMEM), ErrorCode::OutOfHostMemory);
        assert_eq!(code(Errno::MFILE), ErrorCode::OutOfResources);
    }
    #[test]
    fn a_process_that_ended_is_dead_before_its_parent_notices() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let started = start_time(child.id()).unwrap();
        let it = Process { who: word(child.id(), started), place: Process::this().place };
        assert!(!it.is_dead());
        child.kill().unwrap();
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
        while !it.is_dead() {
            assert!(std::time::Instant::now() < deadline, "the child never died");
            std::thread::yield_now();
        }
        child.wait().unwrap();
        assert!(it.is_dead());
    }
}
