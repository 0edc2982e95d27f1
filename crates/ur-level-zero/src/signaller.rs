//! The signal record of a shared event: words in memory shared by all processes that have the event. They
//! tell which process signalled last, and which signals have completed. Needed because the driver does not
//! report the death of a process, and cannot be queried about an event after its exporter has ended.
//!
//! A signal is counted and its process is named by one exchange of one word, so a process may be killed or stopped at any
//! moment: no signal is counted whose process is not known, and none is taken for another's.
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use rustix::io::Errno;
use std::{
    fmt, fs, io,
    os::fd::{AsFd, OwnedFd},
    sync::{
        Arc, Mutex, OnceLock,
        atomic::{AtomicU64, Ordering::*},
    },
    time::{Duration, Instant},
};
use ur_hal::what_ran_out;
use ur_hal::{Error, ErrorKind, Result};
use ur_lock::locked;
use ur_mapping::SharedWords;

/// The size of the memory in bytes.
pub(super) const BYTES: usize = 4096;
/// How long a process that was seen alive is assumed to live.
const MOMENT: Duration = Duration::from_millis(5);
/// The value of the first word.
const MAGIC: u64 = u64::from_le_bytes(*b"zesigner");
/// The layout, as indexes of words: the magic number, the latest signal ([`Latest`]), the exporter, and its pid namespace.
const WHAT: usize = 0;
const LATEST: usize = 3;
const OWNER: usize = 4;
const HOME: usize = 5;
/// The first word of a ring of completed signals: the number of each, at its number modulo [`PLACES`].
const CAME: usize = 64;
/// The size of the ring. A signal that is so many signals late is taken for complete if a later one is.
const PLACES: u64 = 256;
/// The first word of the processes that signal the event: of each the pid namespace and the process. A process takes a
/// place before it first signals. It gets a free one or that of a process that has ended and did not signal last.
const SIGNERS: usize = CAME + PLACES as usize;
/// How many places there are. If all are taken, by living processes or by those of other pid namespaces, of which it is
/// not known whether they live, another process signals as [`Process::UNKNOWN`].
const SIGNERS_END: usize = BYTES / 8;
const _: () = assert!((SIGNERS_END - SIGNERS) / 2 < 1 << SIGNER_BITS);
/// The size of the part of the word [`LATEST`] that tells the process.
const SIGNER_BITS: u32 = 8;
/// Set in a word of the ring if the signal will never come, because its command failed.
const NEVER: u64 = 1 << 63;

/// The record of one event.
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
/// A process: `who` is its pid in the upper half and the lower half of its start time; `place` is its pid
/// namespace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Process {
    who: u64,
    place: u64,
}
/// The word of the latest signal: its number, and below it the place of the process that made it, counted from 1; 0 for a
/// process without a place.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Latest(u64);
impl Latest {
    fn count(self) -> u64 {
        self.0 >> SIGNER_BITS
    }
    fn place(self) -> u64 {
        self.0 & ((1 << SIGNER_BITS) - 1)
    }
    /// The signal after it, by the process at `place`.
    fn next(self, place: u64) -> Self {
        Self(self.count().wrapping_add(1) << SIGNER_BITS | place)
    }
}
/// The error for a failed system call. A lack of address space is a lack of host memory, a lack of
/// descriptors or mappings is a lack of resources; a descriptor that is too short or can be shortened is the
/// sender's fault.
fn failed(doing: &str, why: impl Into<io::Error>) -> Error {
    let why = why.into();
    let is_want_of_memory = why.raw_os_error() == Some(Errno::NOMEM.raw_os_error());
    let code = match why.kind() {
        io::ErrorKind::InvalidData => ErrorKind::InvalidValue,
        _ if is_want_of_memory => what_ran_out().unwrap_or(ErrorKind::OutOfHostMemory),
        _ => ErrorKind::OutOfResources,
    };
    let told = ur_ipc::Error::system(doing, why);
    Error::new(code, told.to_string()).because(told.kind())
}

impl SignalRecord {
    /// Creates the record of an event that has not been signalled.
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
    /// Maps a record that another process sent.
    ///
    /// # Errors
    /// `INVALID_VALUE` if it is no record; else as for [`Self::make`].
    pub(super) fn arrived(fd: OwnedFd) -> Result<Self> {
        let board = Self::of(fd)?;
        match board.word(WHAT).load(Acquire) {
            MAGIC => Ok(board),
            _ => Err(Error::new(
                ErrorKind::InvalidValue,
                "the exporter sent something that is no event of Level Zero: is it of the same \
                 version?",
            )),
        }
    }
    /// The descriptor to be sent to other processes.
    pub(super) fn fd(&self) -> Arc<OwnedFd> {
        Arc::clone(&self.fd)
    }
    fn word(&self, number: usize) -> &AtomicU64 {
        self.words.word(number)
    }
    /// Records that this process is about to signal; returns the number of that signal, starting at 1.
    pub(super) fn sign(&self) -> u64 {
        self.sign_as(Process::this())
    }
    fn sign_as(&self, process: Process) -> u64 {
        let place = self.place_of(process);
        let sign = |latest| Some(Latest(latest).next(place).0);
        // Release: who reads it finds the process in its place.
        let before = self.word(LATEST).fetch_update(AcqRel, Acquire, sign);
        let (Ok(before) | Err(before)) = before;
        Latest(before).next(place).count()
    }
    /// The words of a place: the pid namespace, and the process.
    fn signer(&self, place: u64) -> Option<[&AtomicU64; 2]> {
        let first = SIGNERS + 2 * usize::try_from(place.checked_sub(1)?).ok()?;
        (first + 1 < SIGNERS_END).then(|| [self.word(first), self.word(first + 1)])
    }
    /// The place of a process, which takes one if it has none yet; 0 if none is free.
    fn place_of(&self, process: Process) -> u64 {
        let all = || (1..).map_while(|place| Some((place, self.signer(place)?)));
        let is_its = |(_, [home, who]): &(u64, [&AtomicU64; 2])| {
            who.load(Acquire) == process.who && home.load(Relaxed) == process.place
        };
        let mut places = all();
        let known = places.find(is_its).or_else(|| all().find(|one| self.take(*one, process)));
        known.map_or(0, |(place, _)| place)
    }
    /// Takes a place, if it is free. Each of the two exchanges leaves a place that another process can take, so a process
    /// may end between them. The namespace stays: of the processes of another one it is not known whether they have ended.
    fn take(&self, (place, [home, who]): (u64, [&AtomicU64; 2]), process: Process) -> bool {
        if process.place == 0 {
            return false;
        }
        let (Ok(before) | Err(before)) = home.compare_exchange(0, process.place, AcqRel, Acquire);
        if before != 0 && before != process.place {
            return false;
        }
        let old = who.load(Acquire);
        let is_free = old == 0 || {
            // In this order: after its end it does not become the latest again.
            let is_dead = Process { who: old, place: process.place }.is_dead();
            is_dead && self.latest().place() != place
        };
        is_free && who.compare_exchange(old, process.who, AcqRel, Relaxed).is_ok() // pairs with `last`
    }
    fn latest(&self) -> Latest {
        Latest(self.word(LATEST).load(Acquire))
    }
    /// The process that exports the event.
    pub(super) fn owner(&self) -> Process {
        let (who, place) = (self.word(OWNER).load(Relaxed), self.word(HOME).load(Relaxed));
        Process { who, place }
    }
    fn place(&self, count: u64) -> &AtomicU64 {
        self.word(CAME + (count % PLACES) as usize)
    }
    /// Records that the signal with this number has come (`came`), or never will.
    pub(super) fn note(&self, count: u64, came: bool) {
        let _before = self.place(count).fetch_update(AcqRel, Acquire, |known| {
            let word = if came { count } else { count | NEVER };
            (known & !NEVER < count).then_some(word) // keeps a later signal's number
        });
    }
    /// Whether the signal with this number has come; `None` if it is not recorded.
    pub(super) fn came(&self, count: u64) -> Option<bool> {
        let word = self.place(count).load(Acquire);
        (word & !NEVER >= count).then_some(word & !NEVER != count || word & NEVER == 0)
    }
    /// The process that signalled last, and the number of signals; `None` before the first.
    pub(super) fn last(&self) -> Option<(Process, u64)> {
        // Repeated if another signals meanwhile, whose place may have been that of the first; bounded, because a malicious
        // process may go on.
        for _ in 0..1000 {
            let latest = self.latest();
            if latest.count() == 0 {
                return None;
            }
            let by = self.signer(latest.place()).map_or(Process::UNKNOWN, |[home, who]| {
                let who = who.load(Acquire); // pairs with `take`
                Process { who, place: home.load(Relaxed) }
            });
            if self.latest() == latest {
                return Some((by, latest.count()));
            }
        }
        Some((Process::UNKNOWN, self.count()))
    }
    /// The number of signals so far.
    pub(super) fn count(&self) -> u64 {
        self.latest().count()
    }
}

impl Process {
    /// One that is not known, and that therefore is not known to be dead.
    pub(super) const UNKNOWN: Self = Self { who: 0, place: 0 };
    /// This process. Not updated in a forked child, where the driver does not work anyway.
    pub(super) fn this() -> Self {
        static THIS: OnceLock<Process> = OnceLock::new();
        *THIS.get_or_init(|| {
            let number = std::process::id();
            let place = namespace().unwrap_or(0);
            Self { who: word(number, start_time(number).unwrap_or(0)), place }
        })
    }
    /// Whether it is certain that the process has ended.
    pub(super) fn is_dead(self) -> bool {
        let this = Self::this();
        if self == this || self.place != this.place || this.place == 0 {
            return false; // a pid of another namespace means nothing here
        }
        // A process that was seen alive within `MOMENT` is not checked again.
        static SEEN: Mutex<Option<(Process, Instant)>> = Mutex::new(None);
        let seen = || locked(&SEEN);
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
/// The start time of a process in clock ticks; `None` if it has ended, even if its parent has not reaped it
/// yet.
fn start_time(number: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{number}/stat")).ok()?;
    // The process name may contain blanks and parentheses: the fields begin after the last parenthesis.
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    let state = fields.next()?;
    if matches!(state, "Z" | "X" | "x") { None } else { fields.nth(18)?.parse().ok() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;
    use std::process::{Child, Command, Stdio};

    /// A process that lives until it is killed.
    fn child() -> (Child, Process) {
        let child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let started = start_time(child.id()).unwrap();
        let it = Process { who: word(child.id(), started), place: Process::this().place };
        (child, it)
    }
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
    fn every_signal_that_is_counted_has_its_process() {
        let board = SignalRecord::make().unwrap();
        let mut children: Vec<_> = (0..3).map(|_| child()).collect(); // the other processes, which live
        let signers: Vec<_> = children.iter().map(|(_, it)| *it).chain([Process::this()]).collect();
        let is_over = AtomicU64::new(0);
        let (signed, seen) = std::thread::scope(|scope| {
            let sign = |by| (0..20_000).map(|_| (board.sign_as(by), by)).collect();
            let start = |by| scope.spawn(move || -> Vec<_> { sign(by) });
            let threads: Vec<_> = signers.into_iter().map(start).collect();
            let look = || -> Vec<_> {
                std::iter::from_fn(|| (is_over.load(Acquire) == 0).then(|| board.last())).collect()
            };
            let looks = scope.spawn(look);
            let signed: HashMap<_, _> =
                threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
            is_over.store(1, Release);
            (signed, looks.join().unwrap())
        });
        assert_eq!(signed.len(), 80_000, "each has a number of its own");
        for (by, count) in seen.into_iter().flatten() {
            assert_eq!(by, signed[&count], "signal {count}");
        }
        for (child, _) in &mut children {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }
    #[test]
    fn the_places_of_processes_that_ended_are_taken_but_not_that_of_the_last_signal() {
        let (board, place) = (SignalRecord::make().unwrap(), Process::this().place);
        let of = |who| Process { who, place };
        board.signer(1).unwrap()[0].store(place, Release); // its process ended before it said which it is
        for who in 1..=1000 {
            let by = of(who);
            assert_eq!((board.sign_as(by), board.last()), (who, Some((by, who))));
        }
        (1..).map_while(|place| board.signer(place)).for_each(|[_, who]| {
            who.store(Process::this().who, Release); // all live
        });
        assert_eq!(board.sign_as(of(7)), 1001);
        assert_eq!(board.last(), Some((Process::UNKNOWN, 1001)), "there is no place");
        assert_eq!(board.sign(), 1002);
        assert_eq!(board.last(), Some((Process::this(), 1002)));
    }
    #[test]
    fn a_board_tells_which_signals_have_come() {
        let board = SignalRecord::make().unwrap();
        assert_eq!(board.came(1), None);
        board.note(2, true);
        board.note(3, false);
        assert_eq!([1, 2, 3].map(|count| board.came(count)), [None, Some(true), Some(false)]);
        board.note(3 + PLACES, true);
        board.note(3, false); // late: a later signal is recorded
        assert_eq!([3, 3 + PLACES].map(|count| board.came(count)), [Some(true); 2]);
        assert_eq!(board.came(4 + PLACES), None);
    }
    #[test]
    fn memory_without_the_word_is_no_board() {
        let fd = memfd_create("x", MemfdFlags::ALLOW_SEALING).unwrap();
        ftruncate(&fd, BYTES as u64).unwrap();
        fcntl_add_seals(&fd, SealFlags::SHRINK).unwrap();
        assert_eq!(SignalRecord::arrived(fd).unwrap_err().kind(), ErrorKind::InvalidValue);
        let fd = memfd_create("x", MemfdFlags::ALLOW_SEALING).unwrap(); // empty, and its size is not sealed
        assert_eq!(SignalRecord::arrived(fd).unwrap_err().kind(), ErrorKind::InvalidValue);
    }
    #[test]
    fn what_is_missing_decides_what_a_failure_is_called() {
        let code = |why: Errno| failed("map memory", why).kind();
        assert_eq!(code(Errno::NOMEM), ErrorKind::OutOfHostMemory);
        assert_eq!(code(Errno::MFILE), ErrorKind::OutOfResources);
    }
    #[test]
    fn a_process_that_ended_is_dead_before_its_parent_notices() {
        let (mut child, it) = child();
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
