//! Cells: the words that events are made of, in pages of shared memory that other processes map too.
//! A cell knows what was promised and what is done, and wakes those who wait, wherever they are.
#![expect(unsafe_code, reason = "words in shared memory")]
use crate::inject::Answer;
use rustix::{
    fd::{AsRawFd, OwnedFd},
    fs::{Mode, OFlags},
    io::Errno,
    mm::{MapFlags, ProtFlags},
    thread::futex,
    time::Timespec,
};
use std::{
    ffi::c_char,
    ops::Deref,
    ptr::NonNull,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{
            AtomicU32, AtomicU64,
            Ordering::{Acquire, Relaxed, SeqCst},
        },
    },
    time::{Duration, Instant},
};
use ze_sys::*;

/// How many promises of one event may be open at once before a later one answers for an earlier.
const RING: usize = 8;
/// How many cells a page of the process's own has.
const PAGE: u32 = 256;

#[repr(C)]
struct Stamp {
    start: AtomicU64,
    end: AtomicU64,
}
/// One event's words. All zeros is a cell that nobody has promised anything with.
#[repr(C, align(256))]
pub struct Cell {
    serial: AtomicU64,
    users: AtomicU32,
    wake: AtomicU32,
    waiters: AtomicU32,
    assigned: AtomicU64,
    done: [AtomicU64; RING],
    stamps: [Stamp; RING],
}
const _: () = assert!(size_of::<Cell>() == 256);
const fn place(n: u64) -> usize {
    (n % RING as u64) as usize
}
impl Cell {
    /// Promises one more signal: its number, from 1 on.
    pub fn promise(&self) -> u64 {
        self.assigned.fetch_add(1, SeqCst) + 1
    }
    /// The number of the latest promise; 0: none yet.
    pub fn latest(&self) -> u64 {
        self.assigned.load(SeqCst)
    }
    /// Whether promise `n` is kept.
    pub fn is_done(&self, n: u64) -> bool {
        self.done[place(n)].load(SeqCst) >= n
    }
    /// Keeps promise `n`, which took from `start` to `end` of the devices' clock.
    pub fn keep(&self, n: u64, (start, end): (u64, u64)) {
        let stamp = &self.stamps[place(n)];
        stamp.start.store(start, Relaxed);
        stamp.end.store(end, Relaxed);
        self.done[place(n)].fetch_max(n, SeqCst);
        self.wake_all();
    }
    /// The times of promise `n`.
    pub fn times(&self, n: u64) -> (u64, u64) {
        let stamp = &self.stamps[place(n)];
        (stamp.start.load(Relaxed), stamp.end.load(Relaxed))
    }
    /// An event with two states takes one: its only promise is number 1, kept or not.
    pub fn set(&self, times: (u64, u64)) {
        self.keep(1, times);
    }
    /// And the other.
    pub fn clear(&self) {
        self.done[1].store(0, SeqCst);
        self.wake_all();
    }
    /// As if nobody had ever promised or kept anything.
    pub fn renew(&self) {
        self.assigned.store(0, SeqCst);
        self.done.iter().for_each(|done| done.store(0, SeqCst));
    }
    /// Where the word of promise `n` is, for those who look at the memory itself.
    pub fn address(&self, n: u64) -> u64 {
        std::ptr::from_ref(&self.done[place(n)]).addr() as u64
    }
    fn wake_all(&self) {
        self.wake.fetch_add(1, SeqCst);
        if self.waiters.load(SeqCst) != 0 {
            // Waking nobody is no failure, and there is no other.
            let _woken = futex::wake(&self.wake, futex::Flags::empty(), i32::MAX.unsigned_abs());
        }
    }
    /// Waits until promise `n` is kept, or `deadline`: whether it is.
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
            // In slices: whoever owed the wake may have died before it came to it.
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
    /// A new piece of memory with `count` cells.
    ///
    /// # Errors
    /// `ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY` when the system has none.
    pub fn new(count: u32) -> Answer<Arc<Self>> {
        let flags = rustix::fs::MemfdFlags::CLOEXEC;
        let file = rustix::fs::memfd_create("ze-software-events", flags).map_err(short)?;
        rustix::fs::ftruncate(&file, u64::from(count) * 256).map_err(short)?;
        Self::map(file, count)
    }
    fn map(file: OwnedFd, count: u32) -> Answer<Arc<Self>> {
        let (bytes, access) = (count as usize * 256, ProtFlags::READ | ProtFlags::WRITE);
        let null = std::ptr::null_mut();
        // SAFETY: a new mapping at an address of the system's choice.
        let at = unsafe { rustix::mm::mmap(null, bytes, access, MapFlags::SHARED, &file, 0) };
        let cells = NonNull::new(at.map_err(short)?.cast()).ok_or(ZE_RESULT_ERROR_UNKNOWN)?;
        Ok(Arc::new(Self { cells, count, file }))
    }
    /// Where other processes find this memory: the process, its descriptor and the file's number.
    fn whereabouts(&self) -> Answer<(u32, u32, u64)> {
        let file = rustix::fs::fstat(&self.file).map_err(short)?;
        Ok((std::process::id(), self.file.as_raw_fd().unsigned_abs(), file.st_ino))
    }
}
impl Drop for Page {
    fn drop(&mut self) {
        // SAFETY: the mapping of `map`, which nobody has a reference into any more.
        let _unmapped =
            unsafe { rustix::mm::munmap(self.cells.as_ptr().cast(), self.count as usize * 256) };
    }
}
fn short(error: Errno) -> ze_result_t {
    match error {
        Errno::NOMEM | Errno::MFILE | Errno::NFILE => ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY,
        _ => ZE_RESULT_ERROR_UNKNOWN,
    }
}

/// A cell and the page that it is in.
#[derive(Clone)]
pub struct Seat {
    page: Arc<Page>,
    index: u32,
}
impl Seat {
    /// Cell `index` of `page`, if there is such a one.
    pub fn of(page: &Arc<Page>, index: u32) -> Option<Self> {
        (index < page.count).then(|| Self { page: page.clone(), index })
    }
}
impl Deref for Seat {
    type Target = Cell;
    fn deref(&self) -> &Cell {
        // SAFETY: inside the mapping (`of`), which lives as long as the page.
        unsafe { self.page.cells.add(self.index as usize).as_ref() }
    }
}

/// Seats of the process's own pages that no event sits on: the oldest first.
static FREE: Mutex<Vec<Seat>> = Mutex::new(Vec::new());
/// Tells the lives of a seat apart.
static SERIAL: AtomicU64 = AtomicU64::new(1);

/// A seat of the process's own pages, held by whoever may still signal it or wait for it here.
pub struct Own(Seat);
impl Own {
    /// A seat with a new life.
    ///
    /// # Errors
    /// As [`Page::new`].
    pub fn new() -> Answer<Arc<Self>> {
        let mut free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
        // Processes that still have the event open keep its seat out of use.
        let unused = free.iter().position(|seat| seat.users.load(Acquire) == 0);
        let seat = if let Some(at) = unused {
            free.swap_remove(at)
        } else {
            let page = Page::new(PAGE)?;
            let seat = |index| Seat { page: page.clone(), index };
            free.extend((1..PAGE).map(seat));
            seat(0)
        };
        drop(free);
        seat.renew();
        seat.serial.store(SERIAL.fetch_add(1, Relaxed), SeqCst);
        Ok(Arc::new(Self(seat)))
    }
}
impl Drop for Own {
    fn drop(&mut self) {
        self.0.serial.store(0, SeqCst);
        FREE.lock().unwrap_or_else(PoisonError::into_inner).push(self.0.clone());
    }
}
/// A seat of another process's (or of this one's) that was opened by its handle.
pub struct Opened(Seat);
impl Drop for Opened {
    fn drop(&mut self) {
        self.0.users.fetch_sub(1, SeqCst);
    }
}
/// How an event holds its cell.
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
            Self::Own(own) => &own.0,
            Self::Opened(opened) => &opened.0,
            Self::Pooled(seat) => seat,
        }
    }
}

/// The bytes of a handle for other processes.
#[repr(C)]
#[derive(Clone, Copy)]
struct Ticket {
    magic: [u8; 8],
    process: u32,
    descriptor: u32,
    file: u64,
    serial: u64,
    index: u32,
    count: u32,
    flags: u32,
    rest: [u32; 5],
}
const _: () = assert!(size_of::<Ticket>() == ZE_MAX_IPC_HANDLE_SIZE as usize);
const EVENT: [u8; 8] = *b"zesoft-e";
const POOL: [u8; 8] = *b"zesoft-p";

fn ticket(magic: [u8; 8], page: &Page, seat: (u32, u64), flags: u32) -> Answer<Ticket> {
    let ((process, descriptor, file), (index, serial)) = (page.whereabouts()?, seat);
    let count = page.count;
    Ok(Ticket { magic, process, descriptor, file, serial, index, count, flags, rest: [0; 5] })
}
fn bytes(ticket: Ticket) -> [c_char; 64] {
    // SAFETY: 64 bytes of plain integers without padding.
    unsafe { std::mem::transmute(ticket) }
}
/// Reads a handle and maps the memory that it names.
fn page(magic: [u8; 8], data: [c_char; 64]) -> Answer<(Ticket, Arc<Page>)> {
    // SAFETY: any 64 bytes are such a value.
    let ticket: Ticket = unsafe { std::mem::transmute(data) };
    if ticket.magic != magic || ticket.count == 0 || ticket.index >= ticket.count {
        return Err(ZE_RESULT_ERROR_INVALID_ARGUMENT);
    }
    let path = format!("/proc/{}/fd/{}", ticket.process, ticket.descriptor);
    let file = rustix::fs::open(path, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty());
    let file = file.map_err(|_| ZE_RESULT_ERROR_INVALID_ARGUMENT)?;
    let stat = rustix::fs::fstat(&file).map_err(short)?;
    // The descriptor may be another file's by now.
    if stat.st_ino != ticket.file || stat.st_size.unsigned_abs() < u64::from(ticket.count) * 256 {
        return Err(ZE_RESULT_ERROR_INVALID_ARGUMENT);
    }
    Ok((ticket, Page::map(file, ticket.count)?))
}
impl Own {
    /// The handle by which other processes open this cell; `flags` travel with it.
    ///
    /// # Errors
    /// `ZE_RESULT_ERROR_UNKNOWN` when the system does not answer.
    pub fn handle(&self, flags: u32) -> Answer<[c_char; 64]> {
        let serial = self.0.serial.load(SeqCst);
        ticket(EVENT, &self.0.page, (self.0.index, serial), flags).map(bytes)
    }
}
impl Opened {
    /// Opens a cell by its handle; the flags that came with it.
    ///
    /// # Errors
    /// `ZE_RESULT_ERROR_INVALID_ARGUMENT` for bytes that are no such handle, or of an event or a
    /// process that is gone.
    pub fn open(data: [c_char; 64]) -> Answer<(Arc<Self>, u32)> {
        let (ticket, page) = page(EVENT, data)?;
        let seat = Seat { page, index: ticket.index };
        seat.users.fetch_add(1, SeqCst);
        let opened = Arc::new(Self(seat));
        if opened.0.serial.load(SeqCst) != ticket.serial {
            return Err(ZE_RESULT_ERROR_INVALID_ARGUMENT);
        }
        Ok((opened, ticket.flags))
    }
}
/// The handle by which other processes open all cells of `of`; `flags` travel with it.
///
/// # Errors
/// `ZE_RESULT_ERROR_UNKNOWN` when the system does not answer.
pub fn pool_handle(of: &Page, flags: u32) -> Answer<[c_char; 64]> {
    ticket(POOL, of, (0, 0), flags).map(bytes)
}
/// Opens what [`pool_handle`] gave.
///
/// # Errors
/// As [`Opened::open`].
pub fn open_pool(data: [c_char; 64]) -> Answer<(Arc<Page>, u32)> {
    page(POOL, data).map(|(ticket, page)| (page, ticket.flags))
}
