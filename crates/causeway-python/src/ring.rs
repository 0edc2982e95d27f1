//! A ring of messages in memory that two processes have: one writes, the other reads. Small arrays lie in blocks of the
//! same memory, so that they need no ticket; what other messages are, and how long is waited, is left to Python
//! (`causeway_ipc/_channel.py`).
//!
//! The other process may write anything anywhere in it at any time: counts and lengths are checked after they are read.
#![expect(unsafe_code, reason = "words and bytes that two processes have")]
use crate::{
    array::Array,
    asked::seconds,
    body,
    failure::{Failure, Result},
    host,
    layout::Layout,
    leaving::detached,
    loan::Loan,
    memory::Memory,
    source::{Source, locate},
};
use pyo3::{prelude::*, types::PyBytes};
use rustix::thread::futex;
use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

/// Words, each in a cache line of its own: how many messages were put and how many were taken; which sides are closed;
/// how many have opened the reader's side; how long the reader's note is; for how many messages there is room.
const PUT: usize = 0;
const TAKEN: usize = 64;
const CLOSED: usize = 128;
const CLAIMED: usize = 192;
const NOTED: usize = 256;
const CAPACITY: usize = 320;
/// For the writer and for the reader, a count of what the other side did, which is slept on, and how many sleep.
const DONE: [usize; 2] = [384, 448];
const ASLEEP: [usize; 2] = [512, 576];
/// What the reader leaves for the writer: a ticket by which the writer sees that the reader lives.
const NOTE: usize = 1024;
/// Words that say which blocks are in use.
const IN_USE: usize = 4096;
const MESSAGES: usize = 8192;
/// Room for a message, its length before it.
const ROOM: usize = 8192;
/// Bytes of a block. Copying as many takes less time than opening a ticket.
const BLOCK: usize = 64 << 10;
const MOST_BLOCKS: usize = 32;
/// The first byte of a message that names a block; tickets are text.
const IN_BLOCK: u8 = 0;

/// Sides, as numbers that can be added.
const WRITER: u64 = 1;
const READER: u64 = 2;
/// How long to look for what the other side does before sleeping, letting others run meanwhile: it may need this processor.
const EAGER: Duration = Duration::from_micros(20);
/// Who lets others run and does not run again for so long has met one who only computes, and sleeps at once the next
/// `SLEEPS` times: the kernel lets him run again as soon as he is woken.
const LOST: Duration = Duration::from_micros(300);
const SLEEPS: u32 = 100;

/// One side of a ring.
#[pyclass(frozen, module = "causeway_ipc._causeway")]
pub struct Ring {
    array: Py<Array>,
    memory: Arc<Memory>,
    offset: usize,
    capacity: u64,
    /// How many more times to sleep at once.
    sleeps: AtomicU32,
}

fn blocks(capacity: usize) -> usize {
    capacity.saturating_mul(2).saturating_add(2).min(MOST_BLOCKS)
}

impl Ring {
    fn address(&self) -> usize {
        self.memory.address() + self.offset
    }
    fn word(&self, at: usize) -> &AtomicU64 {
        // SAFETY: `new` saw that the whole ring is in the array's memory, which is the CPU's, begins at a multiple of 8,
        // and lives as long as `self`; both sides use these words only so.
        unsafe { host::word(self.address() + at) }
    }
    fn short_word(&self, at: usize) -> &AtomicU32 {
        // SAFETY: as above; no longer word is used there.
        unsafe { host::short_word(self.address() + at) }
    }
    fn write(&self, at: usize, bytes: &[u8]) {
        // SAFETY: as above; every caller bounds the bytes by the room there.
        unsafe { host::write(self.address() + at, bytes) };
    }
    fn read(&self, at: usize, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        // SAFETY: as above; every caller bounds the length by the room there.
        unsafe { host::read(self.address() + at, &mut bytes) };
        bytes
    }
    fn message(&self, number: u64) -> usize {
        MESSAGES + (number % self.capacity) as usize * ROOM
    }
    fn blocks(&self) -> usize {
        blocks(self.capacity as usize)
    }
    fn block(&self, number: usize) -> usize {
        MESSAGES + self.capacity as usize * ROOM + number * BLOCK
    }
    /// How many messages are in it, and the number of the first.
    fn waiting(&self) -> Result<(u64, u64)> {
        let taken = self.word(TAKEN).load(Ordering::Acquire); // pairs with `advance`: its place is free
        let put = self.word(PUT).load(Ordering::Acquire); // pairs with `put`: its bytes are there
        match put.wrapping_sub(taken) {
            count if count <= self.capacity => Ok((count, taken)),
            _ => Err(damaged()),
        }
    }
    /// Has the other side look.
    fn tell(&self, side: u64) {
        let place = place(side);
        // Sequentially consistent, as in `wait`: either this sees who sleeps, or he sees that something was done.
        self.short_word(DONE[place]).fetch_add(1, Ordering::SeqCst);
        if self.short_word(ASLEEP[place]).load(Ordering::SeqCst) > 0 {
            let word = self.short_word(DONE[place]);
            // Not private: the other side is another process. Who is not woken looks again when his slice of time is over.
            let _ = futex::wake(word, futex::Flags::empty(), i32::MAX.cast_unsigned());
        }
    }
    /// Looks whether there is news for a little while.
    fn is_news_soon(&self, is_news: impl Fn() -> bool, begun: Instant, timeout: Duration) -> bool {
        let sleeps = self.sleeps.load(Ordering::Relaxed); // a guess, of this process alone
        if sleeps > 0 {
            self.sleeps.store(sleeps - 1, Ordering::Relaxed);
            return is_news();
        }
        let mut now = begun;
        while now - begun < EAGER.min(timeout) {
            if is_news() {
                return true;
            }
            thread::yield_now();
            let before = std::mem::replace(&mut now, Instant::now());
            if now - before > LOST {
                self.sleeps.store(SLEEPS, Ordering::Relaxed);
            }
        }
        is_news()
    }
    /// The next message.
    fn next(&self) -> Result<Option<Vec<u8>>> {
        let (count, taken) = self.waiting()?;
        if count == 0 {
            return Ok(None);
        }
        let at = self.message(taken);
        let length = self.read(at, 8).first_chunk().map_or(0, |length| u64::from_le_bytes(*length));
        let length = usize::try_from(length).ok().filter(|&length| length <= ROOM - 8);
        Ok(Some(self.read(at + 8, length.ok_or_else(damaged)?)))
    }
    /// The array that a message says is in a block.
    fn lend(&self, message: &[u8]) -> Result<Array> {
        let (number, layout) = message.split_first_chunk().ok_or_else(damaged)?;
        let number = u32::from_le_bytes(*number) as usize;
        let layout = body::layout_of(layout).ok_or_else(damaged)?;
        if number >= self.blocks() || layout.within(BLOCK).is_none() {
            return Err(damaged());
        }
        let start = self.offset + self.block(number);
        let word = self.address() + IN_USE + number * 64;
        // SAFETY: a word of the ring's, which lies in this memory; both sides use it as one only.
        let loan = unsafe { Loan::new(word, self.memory.buffer()) };
        Ok(Array { memory: self.memory.lend(start..start + BLOCK, loan)?, layout })
    }
}

fn place(side: u64) -> usize {
    usize::from(side == READER)
}
fn damaged() -> Failure {
    Failure::new("InvalidTicket", "the other process has damaged the channel: create another")
}
fn bounded(bytes: &[u8], room: usize) -> Result<()> {
    if bytes.len() <= room {
        return Ok(());
    }
    Err(Failure::misuse(format!(
        "a message of {} bytes is longer than a channel takes ({room}): share fewer arrays at once",
        bytes.len()
    )))
}

#[pymethods]
impl Ring {
    /// Bytes that a ring of so many messages needs.
    #[staticmethod]
    fn size(capacity: usize) -> usize {
        MESSAGES
            .saturating_add(capacity.saturating_mul(ROOM))
            .saturating_add(blocks(capacity) * BLOCK)
    }
    /// The ring that fills an array of bytes on the CPU: an empty one for so many messages, or what the writer made there.
    #[new]
    #[pyo3(signature = (array, capacity=None))]
    fn new(array: &Bound<'_, Array>, capacity: Option<usize>) -> Result<Self> {
        let ours = array.get();
        let (bytes, memory, offset) =
            (ours.layout.bytes(), ours.memory.clone(), ours.layout.offset);
        let fits = memory.session.is_cpu()
            && ours.layout.is_contiguous()
            && (memory.address() + offset).is_multiple_of(8)
            && bytes >= MESSAGES;
        if !fits {
            return Err(damaged());
        }
        memory.session.usable()?;
        let mut ring = Self {
            array: array.clone().unbind(),
            memory,
            offset,
            capacity: 0,
            sleeps: AtomicU32::new(0),
        };
        ring.capacity = match capacity {
            Some(capacity) => {
                ring.write(0, &[0; MESSAGES]);
                ring.word(CAPACITY).store(capacity as u64, Ordering::Relaxed); // nobody has its ticket yet
                capacity as u64
            }
            None => ring.word(CAPACITY).load(Ordering::Relaxed), // written before the ticket was made
        };
        let whole = usize::try_from(ring.capacity).map(Self::size);
        if ring.capacity == 0 || whole.ok() != Some(bytes) {
            return Err(damaged());
        }
        Ok(ring)
    }
    #[getter]
    fn array(&self, py: Python<'_>) -> Py<Array> {
        self.array.clone_ref(py)
    }
    /// Copies a small array of the host into a block: the message for it, which is empty if no block is free. `None` for
    /// other arrays.
    fn lay<'py>(
        &self,
        py: Python<'py>,
        object: &Bound<'py, PyAny>,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        self.memory.session.usable()?;
        let (address, layout, _kept) = match locate(object)? {
            Source::Shareable(memory, layout) if memory.session.is_cpu() => {
                memory.session.usable()?;
                (memory.address() + layout.offset, layout, None)
            }
            Source::Host(host) => match host.address() {
                Some(address) => (address, host.layout.clone(), Some(host)),
                None => return Ok(None),
            },
            _ => return Ok(None),
        };
        let Some(placed) = Layout::contiguous(layout.dtype, &layout.shape) else { return Ok(None) };
        if placed.bytes() > BLOCK || placed.is_empty() {
            return Ok(None);
        }
        let is_taken = |number: &usize| {
            let word = self.word(IN_USE + number * 64);
            word.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_ok() // pairs with `drop` of a `Loan`
        };
        let Some(number) = (0..self.blocks()).find(is_taken) else {
            return Ok(Some(PyBytes::new(py, &[])));
        };
        // SAFETY: the array's library keeps its elements as long as `object`, or `locate` keeps them; the block is
        // longer than they are, and in nobody's use.
        unsafe { host::gather_to(address, &layout, self.address() + self.block(number)) };
        let mut message = vec![IN_BLOCK];
        message.extend_from_slice(&(number as u32).to_le_bytes());
        body::put_layout(&mut message, &placed);
        Ok(Some(PyBytes::new(py, &message)))
    }
    /// A message of `lay` was not put.
    fn take_back(&self, message: &[u8]) {
        if let Some((number, _)) = message.get(1..).and_then(|rest| rest.split_first_chunk()) {
            let number = u32::from_le_bytes(*number) as usize;
            if number < self.blocks() {
                self.word(IN_USE + number * 64).store(0, Ordering::Relaxed); // nobody else had it
            }
        }
    }
    /// Puts a message if there is room; how many have been put before it.
    fn put(&self, message: &[u8]) -> Result<Option<u64>> {
        bounded(message, ROOM - 8)?;
        self.memory.session.usable()?;
        let (count, taken) = self.waiting()?;
        if count == self.capacity {
            return Ok(None);
        }
        let number = taken.wrapping_add(count);
        let at = self.message(number);
        self.write(at, &(message.len() as u64).to_le_bytes());
        self.write(at + 8, message);
        self.word(PUT).store(number.wrapping_add(1), Ordering::Release); // after the bytes; pairs with `waiting`
        self.tell(READER);
        Ok(Some(number))
    }
    /// The next message: an array that is in a block, and then the message goes; or the bytes of another, which stays until
    /// `advance`.
    fn take<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.memory.session.usable()?;
        match self.next()?.as_deref() {
            Some([IN_BLOCK, message @ ..]) => {
                let array = self.lend(message);
                self.advance();
                Ok(Some(Bound::new(py, array?)?.into_any()))
            }
            Some(message) => Ok(Some(PyBytes::new(py, message).into_any())),
            None => Ok(None),
        }
    }
    /// Whether every message was taken.
    fn is_empty(&self) -> Result<bool> {
        self.memory.session.usable()?;
        Ok(self.waiting()?.0 == 0)
    }
    /// The next message is done with, and its place is free.
    fn advance(&self) {
        self.word(TAKEN).fetch_add(1, Ordering::Release); // after the bytes were read; pairs with `waiting`
        self.tell(WRITER);
    }
    /// How many messages were taken.
    #[getter]
    fn taken(&self) -> Result<u64> {
        self.memory.session.usable()?;
        Ok(self.word(TAKEN).load(Ordering::Acquire)) // pairs with `advance`: what the message names was opened
    }
    /// Closes a side.
    fn close(&self, side: u64) -> Result<()> {
        self.memory.session.usable()?;
        self.word(CLOSED).fetch_or(side, Ordering::Release); // after what was put; pairs with `is_closed`
        self.tell(WRITER);
        self.tell(READER);
        Ok(())
    }
    fn is_closed(&self, side: u64) -> bool {
        self.word(CLOSED).load(Ordering::Acquire) & side != 0 // pairs with `close`
    }
    /// What the other side has done so far, for `wait`.
    fn seen(&self, side: u64) -> Result<u32> {
        self.memory.session.usable()?;
        Ok(self.short_word(DONE[place(side)]).load(Ordering::SeqCst))
    }
    /// Waits until the other side does something more than `seen`, or so many seconds are over, or a signal comes.
    fn wait(&self, py: Python<'_>, side: u64, seen: u32, timeout: f64) -> Result<()> {
        let timeout = seconds(timeout)?;
        detached(py, || {
            let (word, begun) = (self.short_word(DONE[place(side)]), Instant::now());
            let is_news = || word.load(Ordering::SeqCst) != seen;
            if self.is_news_soon(is_news, begun, timeout) {
                return;
            }
            let asleep = self.short_word(ASLEEP[place(side)]);
            asleep.fetch_add(1, Ordering::SeqCst); // see `tell`
            if !is_news()
                && let Ok(rest) = timeout.saturating_sub(begun.elapsed()).try_into()
            {
                let slept = futex::wait(word, futex::Flags::empty(), seen, Some(&rest));
                if slept == Err(rustix::io::Errno::PERM) {
                    thread::sleep(Duration::from_millis(1)); // a filter forbids it: slow, and not a busy loop
                }
            }
            asleep.fetch_sub(1, Ordering::SeqCst);
        });
        Ok(())
    }
    /// Whether the caller is the first to open the reader's side.
    fn claim(&self) -> bool {
        self.word(CLAIMED).fetch_add(1, Ordering::Relaxed) == 0 // one word decides; it orders nothing
    }
    /// Leaves a note for the writer, once.
    fn leave(&self, note: &[u8]) -> Result<()> {
        bounded(note, IN_USE - NOTE)?;
        self.write(NOTE, note);
        self.word(NOTED).store(note.len() as u64, Ordering::Release); // after the bytes; pairs with `note`
        Ok(())
    }
    /// The reader's note, if it has left one.
    fn note<'py>(&self, py: Python<'py>) -> Result<Option<Bound<'py, PyBytes>>> {
        let length = self.word(NOTED).load(Ordering::Acquire); // pairs with `leave`
        match usize::try_from(length) {
            Ok(0) => Ok(None),
            Ok(length) if length <= IN_USE - NOTE => {
                Ok(Some(PyBytes::new(py, &self.read(NOTE, length))))
            }
            _ => Err(damaged()),
        }
    }
}
