//! Cells: the words that events consist of, in pages of shared memory that other processes map too. A cell
//! records promised and completed signals, and wakes waiting threads of all processes.
#![expect(unsafe_code, reason = "words in shared memory")]
use crate::inject::Answer;
use rustix::{
    fd::OwnedFd,
    fs::{MemfdFlags, SealFlags},
    io::Errno,
    mm::{MapFlags, ProtFlags},
    thread::futex,
    time::Timespec,
};
use std::{
    ops::Deref,
    ptr::NonNull,
    sync::{
        Arc, Mutex,
        atomic::{
            AtomicU32, AtomicU64,
            Ordering::{Acquire, Relaxed, SeqCst},
        },
    },
    time::{Duration, Instant},
};
use ur_lock::locked;
use ze_sys::*;

/// How many lists can owe one event a signal at the same time: slots of a cell.
const SLOTS: usize = 50;
/// The bits of a promise's number that name its slot; the others count.
const SLOT_BITS: u32 = 6;
const _: () = assert!(SLOTS <= 1 << SLOT_BITS);
/// The bytes of a cell.
pub const BYTES: usize = 2048;
/// The number of cells in a page of this process.
const PAGE: u32 = 32;

/// Where promises are kept one after the other: a later one begins when the earlier one is done, or is by the same list,
/// whose commands run in order. So `done >= n` says that signal `n` was given, however often the event is used later.
#[repr(C)]
struct Slot {
    /// The latest promise, and the list that made it; 0: it may be of any.
    last: AtomicU64,
    owner: AtomicU64,
    /// The latest signal that was given, and its times.
    done: AtomicU64,
    start: AtomicU64,
    end: AtomicU64,
}
impl Slot {
    /// Makes promise `n` of list `owner` here, unless another list's promise is pending. Threads and processes may race: who
    /// changes `last` has the slot.
    fn take(&self, owner: u64, n: u64) -> bool {
        let (last, seen) = (self.last.load(SeqCst), self.owner.load(SeqCst));
        let is_own = seen == owner;
        if !is_own && self.done.load(SeqCst) < last {
            return false;
        }
        let is_marked = is_own || swap(&self.owner, seen, owner);
        let is_taken = is_marked && last < n && swap(&self.last, last, n);
        if is_marked && !is_own && !is_taken {
            // Another list was faster. It must not look like this one's: else this one would not wait for it.
            swap(&self.owner, owner, 0);
        }
        is_taken
    }
    fn renew(&self) {
        let all = [&self.last, &self.owner, &self.done, &self.start, &self.end];
        all.into_iter().for_each(|word| word.store(0, SeqCst));
    }
}
fn swap(word: &AtomicU64, from: u64, to: u64) -> bool {
    word.compare_exchange(from, to, SeqCst, SeqCst).is_ok()
}
/// The words of one event. All zeros: nothing was promised yet.
#[repr(C, align(2048))]
pub struct Cell {
    serial: AtomicU64,
    users: AtomicU32,
    wake: AtomicU32,
    waiters: AtomicU32,
    /// How many promises were made, and the latest one.
    count: AtomicU64,
    assigned: AtomicU64,
    slots: [Slot; SLOTS],
}
const _: () = assert!(size_of::<Cell>() == BYTES);
impl Cell {
    fn slot(&self, n: u64) -> &Slot {
        &self.slots[(n % (1 << SLOT_BITS)) as usize % SLOTS]
    }
    /// Promises one more signal, by a command of list `owner`; returns its number. `None` if too many other lists owe one.
    pub fn promise(&self, owner: u64) -> Option<u64> {
        let count = self.count.fetch_add(1, SeqCst) + 1;
        let numbers = (0..SLOTS as u64).map(|slot| count << SLOT_BITS | slot);
        let n = numbers.into_iter().find(|n| self.slot(*n).take(owner, *n))?;
        self.assigned.fetch_max(n, SeqCst);
        Some(n)
    }
    /// The number of the latest promise; 0: none.
    pub fn latest(&self) -> u64 {
        self.assigned.load(SeqCst)
    }
    /// Whether signal `n` was given.
    pub fn is_done(&self, n: u64) -> bool {
        self.slot(n).done.load(SeqCst) >= n
    }
    /// Gives signal `n`, with the start and the end of its command by the devices' clock.
    pub fn keep(&self, n: u64, (start, end): (u64, u64)) {
        let slot = self.slot(n);
        slot.start.store(start, Relaxed);
        slot.end.store(end, Relaxed);
        slot.done.fetch_max(n, SeqCst);
        self.wake_all();
    }
    /// The times of signal `n`.
    pub fn times(&self, n: u64) -> (u64, u64) {
        let slot = self.slot(n);
        (slot.start.load(Relaxed), slot.end.load(Relaxed))
    }
    /// Signals an event with two states, whose only promise has the number 1.
    pub fn set(&self, times: (u64, u64)) {
        self.keep(1, times);
    }
    /// Resets an event with two states.
    pub fn clear(&self) {
        self.slot(1).done.store(0, SeqCst);
        self.wake_all();
    }
    /// Restores the state without promises.
    pub fn renew(&self) {
        self.count.store(0, SeqCst);
        self.assigned.store(0, SeqCst);
        self.slots.iter().for_each(Slot::renew);
    }
    /// The address of the word of signal `n`, for users that read the memory itself.
    pub fn address(&self, n: u64) -> u64 {
        std::ptr::from_ref(&self.slot(n).done).addr() as u64
    }
    fn wake_all(&self) {
        self.wake.fetch_add(1, SeqCst);
        if self.waiters.load(SeqCst) != 0 {
            // Waking no thread is no error, and there are no other errors.
            let _woken = futex::wake(&self.wake, futex::Flags::empty(), i32::MAX.unsigned_abs());
        }
    }
    /// Waits until signal `n` is given, or until `deadline`; returns whether it was given.
    pub fn wait(&self, n: u64, deadline: Option<Instant>) -> bool {
        for _ in 0..64 {
            if self.is_done(n) {
                return true;
            }
            std::hint::spin_loop();
        }
        self.waiters.fetch_add(1, SeqCst);
        let kept = loop {
            let seen = self.wake.load(SeqCst);
            if self.is_done(n) {
                break true;
            }
            // In slices, because the signalling process may have died before it woke the waiters.
            let mut slice = Duration::from_millis(100);
            if let Some(deadline) = deadline {
                let left = deadline.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    break false;
                }
                slice = slice.min(left);
            }
            let slice = Timespec { tv_sec: 0, tv_nsec: slice.subsec_nanos().into() };
            match futex::wait(&self.wake, futex::Flags::empty(), seen, Some(&slice)) {
                Ok(()) | Err(Errno::TIMEDOUT | Errno::AGAIN | Errno::INTR) => {}
                Err(error) => panic!("waiting in shared memory failed: {error}"),
            }
        };
        self.waiters.fetch_sub(1, SeqCst);
        kept
    }
}

/// Cells in one piece of shared memory.
pub struct Page {
    cells: NonNull<Cell>,
    count: u32,
    file: OwnedFd,
}
// SAFETY: cells are atomics, and the mapping lives as long as the page.
unsafe impl Send for Page {}
// SAFETY: as above.
unsafe impl Sync for Page {}
impl Page {
    /// Creates a piece of memory with `count` cells.
    ///
    /// # Errors
    /// `ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY` if the system has no memory.
    pub fn new(count: u32) -> Answer<Arc<Self>> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = rustix::fs::memfd_create("ze-software-events", flags).map_err(short)?;
        rustix::fs::ftruncate(&file, u64::from(count) * BYTES as u64).map_err(short)?;
        // No process that opens it can shrink it.
        let seals = SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL;
        rustix::fs::fcntl_add_seals(&file, seals).map_err(short)?;
        Self::map(file, count)
    }
    /// Maps the `count` cells in `file`.
    ///
    /// # Errors
    /// As for [`Page::new`].
    pub fn map(file: OwnedFd, count: u32) -> Answer<Arc<Self>> {
        let (bytes, access) = (count as usize * BYTES, ProtFlags::READ | ProtFlags::WRITE);
        let null = std::ptr::null_mut();
        // SAFETY: a new mapping at an address that the system chooses.
        let at = unsafe { rustix::mm::mmap(null, bytes, access, MapFlags::SHARED, &file, 0) };
        let cells = NonNull::new(at.map_err(short)?.cast()).ok_or(ZE_RESULT_ERROR_UNKNOWN)?;
        Ok(Arc::new(Self { cells, count, file }))
    }
    /// The memory, and its number of cells.
    pub const fn file(&self) -> (&OwnedFd, u32) {
        (&self.file, self.count)
    }
}
impl Drop for Page {
    fn drop(&mut self) {
        // SAFETY: the mapping of `map`, into which there are no references any more.
        let _unmapped =
            unsafe { rustix::mm::munmap(self.cells.as_ptr().cast(), self.count as usize * BYTES) };
    }
}
/// The driver's result for an error of the system.
pub fn short(error: Errno) -> ze_result_t {
    match error {
        Errno::NOMEM | Errno::MFILE | Errno::NFILE => ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY,
        _ => ZE_RESULT_ERROR_UNKNOWN,
    }
}

/// A cell, with the page that it is in.
#[derive(Clone)]
pub struct Seat {
    page: Arc<Page>,
    index: u32,
}
impl Seat {
    /// Cell `index` of `page`, if it exists.
    pub fn of(page: &Arc<Page>, index: u32) -> Option<Self> {
        (index < page.count).then(|| Self { page: page.clone(), index })
    }
    /// Its page and its index.
    pub const fn place(&self) -> (&Arc<Page>, u32) {
        (&self.page, self.index)
    }
}
impl Deref for Seat {
    type Target = Cell;
    fn deref(&self) -> &Cell {
        // SAFETY: within the mapping, as checked by `of`.
        let cell = unsafe { self.page.cells.add(self.index as usize) };
        // SAFETY: the mapping lives as long as the page, and consists of atomics.
        unsafe { cell.as_ref() }
    }
}

/// The unused seats of this process's pages, and the process's id.
static FREE: Mutex<(u32, Vec<Seat>)> = Mutex::new((0, Vec::new()));
/// The next serial number, which distinguishes successive uses of a seat.
static SERIAL: AtomicU64 = AtomicU64::new(1);

/// A seat of this process's pages, kept while it may be signalled or waited for here; and the process's id,
/// because forked children must not release it.
pub struct Own(Seat, u32);
impl Own {
    /// An unused seat with a new serial number.
    ///
    /// # Errors
    /// As for [`Page::new`].
    pub fn new() -> Answer<Arc<Self>> {
        let mut free = locked(&FREE);
        let process = std::process::id();
        if std::mem::replace(&mut free.0, process) != process {
            // The unused seats of a parent process stay the parent's.
            free.1.clear();
        }
        let free = &mut free.1;
        // Not one that another process still has open.
        let unused = free.iter().position(|seat| seat.users.load(Acquire) == 0);
        let seat = if let Some(at) = unused {
            free.swap_remove(at)
        } else {
            let page = Page::new(PAGE)?;
            let seat = |index| Seat { page: page.clone(), index };
            free.extend((1..PAGE).map(seat));
            seat(0)
        };
        seat.renew();
        seat.serial.store(SERIAL.fetch_add(1, Relaxed), SeqCst);
        Ok(Arc::new(Self(seat, process)))
    }
    /// The seat and its serial number.
    pub fn seat(&self) -> (&Seat, u64) {
        (&self.0, self.0.serial.load(SeqCst))
    }
}
impl Drop for Own {
    fn drop(&mut self) {
        if self.1 == std::process::id() {
            self.0.serial.store(0, SeqCst);
            locked(&FREE).1.push(self.0.clone());
        }
    }
}
/// A seat opened by its handle, of this or another process.
pub struct Opened(Seat);
impl Opened {
    /// Keeps `seat` in use, if it still has this serial number.
    pub fn new(seat: Seat, serial: u64) -> Option<Arc<Self>> {
        seat.users.fetch_add(1, SeqCst);
        let opened = Arc::new(Self(seat));
        (serial != 0 && opened.0.serial.load(SeqCst) == serial).then_some(opened)
    }
}
impl Drop for Opened {
    fn drop(&mut self) {
        self.0.users.fetch_sub(1, SeqCst);
    }
}
impl Deref for Own {
    type Target = Cell;
    fn deref(&self) -> &Cell {
        &self.0
    }
}
impl Deref for Opened {
    type Target = Cell;
    fn deref(&self) -> &Cell {
        &self.0
    }
}
/// How an event keeps its cell.
#[derive(Clone)]
pub enum Hold {
    Own(Arc<Own>),
    Opened(Arc<Opened>),
    Pooled(Seat),
}
impl Deref for Hold {
    type Target = Cell;
    fn deref(&self) -> &Cell {
        match self {
            Self::Own(own) => own,
            Self::Opened(opened) => opened,
            Self::Pooled(seat) => seat,
        }
    }
}
