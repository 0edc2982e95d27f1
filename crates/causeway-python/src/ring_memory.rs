//! The memory of a channel, which two processes have: a ring of messages, one side writes and the other reads; blocks for
//! small arrays; and words by which each side sees what the other has done. What messages mean is left to `ring.rs`.
//!
//! The other process may write anything anywhere in it at any time: counts and lengths are checked after they are read.
#![expect(unsafe_code, reason = "words and bytes that two processes have")]
use crate::{
    array::Array,
    body,
    failure::{Failure, Result},
    host,
    layout::Layout,
    loan::Loan,
    memory::Memory,
};
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
/// Bytes of the longest message.
pub const LONGEST: usize = ROOM - 8;
/// Bytes of a block. Copying as many takes less time than opening a ticket.
pub const BLOCK: usize = 64 << 10;
const MOST_BLOCKS: usize = 32;

/// Sides, as numbers that can be added.
pub const WRITER: u64 = 1;
pub const READER: u64 = 2;
/// How long to look for what the other side does before sleeping, letting others run meanwhile: it may need this processor.
const EAGER: Duration = Duration::from_micros(20);
/// Who lets others run and does not run again for so long has met one who only computes, and sleeps at once the next
/// `SLEEPS` times: the kernel lets him run again as soon as he is woken.
const LOST: Duration = Duration::from_micros(300);
const SLEEPS: u32 = 100;

/// The memory of a channel.
pub struct RingMemory {
    memory: Arc<Memory>,
    offset: usize,
    capacity: u64,
    /// How many more times to sleep at once.
    sleeps: AtomicU32,
}

fn blocks(capacity: usize) -> usize {
    capacity.saturating_mul(2).saturating_add(2).min(MOST_BLOCKS)
}
fn place(side: u64) -> usize {
    usize::from(side == READER)
}
pub fn damaged() -> Failure {
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

impl RingMemory {
    /// Bytes that a ring of so many messages needs.
    pub fn size(capacity: usize) -> usize {
        MESSAGES
            .saturating_add(capacity.saturating_mul(ROOM))
            .saturating_add(blocks(capacity) * BLOCK)
    }
    /// The ring that fills an array of bytes on the CPU: an empty one for so many messages, or what the writer made there.
    pub fn new(array: &Array, capacity: Option<usize>) -> Result<Self> {
        let (bytes, memory, offset) =
            (array.layout.bytes(), array.memory.clone(), array.layout.offset);
        let fits = memory.session.is_cpu()
            && array.layout.is_contiguous()
            && (memory.address() + offset).is_multiple_of(8)
            && bytes >= MESSAGES;
        if !fits {
            return Err(damaged());
        }
        memory.session.usable()?;
        let mut ring = Self { memory, offset, capacity: 0, sleeps: AtomicU32::new(0) };
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
    /// Refuses it in a forked child, where it is not mapped.
    pub fn usable(&self) -> Result<()> {
        self.memory.session.usable()
    }
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
    fn in_use(&self, number: usize) -> &AtomicU64 {
        self.word(IN_USE + number * 64)
    }
    /// How many messages are in it, and the number of the first.
    fn waiting(&self) -> Result<(u64, u64)> {
        let taken = self.taken();
        let put = self.word(PUT).load(Ordering::Acquire); // pairs with `put`: its bytes are there
        match put.wrapping_sub(taken) {
            count if count <= self.capacity => Ok((count, taken)),
            _ => Err(damaged()),
        }
    }
    /// Whether every message was taken.
    pub fn is_empty(&self) -> Result<bool> {
        Ok(self.waiting()?.0 == 0)
    }
    /// How many messages were taken.
    pub fn taken(&self) -> u64 {
        self.word(TAKEN).load(Ordering::Acquire) // pairs with `advance`: what the message names was opened
    }
    /// Puts a message if there is room; its number.
    pub fn put(&self, message: &[u8]) -> Result<Option<u64>> {
        bounded(message, LONGEST)?;
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
    /// The next message, and its number.
    pub fn next(&self) -> Result<Option<(u64, Vec<u8>)>> {
        let (count, taken) = self.waiting()?;
        if count == 0 {
            return Ok(None);
        }
        let at = self.message(taken);
        let length = self.read(at, 8).first_chunk().map_or(0, |length| u64::from_le_bytes(*length));
        let length = usize::try_from(length).ok().filter(|&length| length <= LONGEST);
        Ok(Some((taken, self.read(at + 8, length.ok_or_else(damaged)?))))
    }
    /// The message of this number is done with, and its place is free. Whether that is news.
    pub fn advance(&self, number: u64) -> bool {
        let (word, next) = (self.word(TAKEN), number.wrapping_add(1));
        // After the bytes were read; pairs with `waiting`.
        let moved = word.compare_exchange(number, next, Ordering::Release, Ordering::Relaxed);
        if moved.is_ok() {
            self.tell(WRITER);
        }
        moved.is_ok()
    }
    /// A block that nobody uses, where its bytes are, and its use.
    pub fn free_block(&self) -> Option<(u32, usize, Loan)> {
        let is_taken = |number: &usize| {
            let word = self.in_use(*number);
            word.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_ok() // pairs with `drop` of a `Loan`
        };
        let number = (0..self.blocks()).find(is_taken)?;
        Some((number as u32, self.address() + self.block(number), self.loan(number)))
    }
    /// The array of this layout that a message says is in a block: its use begins.
    pub fn lend(&self, message: &[u8]) -> Result<Array> {
        let (number, layout) = message.split_first_chunk().ok_or_else(damaged)?;
        let number = u32::from_le_bytes(*number) as usize;
        let layout = body::layout_of(layout).ok_or_else(damaged)?;
        if number >= self.blocks() || layout.within(BLOCK).is_none() {
            return Err(damaged());
        }
        let start = self.offset + self.block(number);
        Ok(Array { memory: self.memory.lend(start..start + BLOCK, self.loan(number))?, layout })
    }
    fn loan(&self, number: usize) -> Loan {
        let word = self.in_use(number).as_ptr().addr();
        // SAFETY: a word of the ring's, which lies in this memory; both sides use it as one only.
        unsafe { Loan::new(word, self.memory.buffer()) }
    }
    /// Closes a side.
    pub fn close(&self, side: u64) {
        self.word(CLOSED).fetch_or(side, Ordering::Release); // after what was put; pairs with `is_closed`
        self.tell(WRITER);
        self.tell(READER);
    }
    pub fn is_closed(&self, side: u64) -> bool {
        self.word(CLOSED).load(Ordering::Acquire) & side != 0 // pairs with `close`
    }
    /// Whether the caller is the first to open the reader's side, who leaves a note for the writer.
    pub fn claim(&self, note: &[u8]) -> Result<bool> {
        bounded(note, IN_USE - NOTE)?;
        let is_first = self.word(CLAIMED).fetch_add(1, Ordering::Relaxed) == 0; // one word decides; it orders nothing
        if is_first {
            self.write(NOTE, note);
            self.word(NOTED).store(note.len() as u64, Ordering::Release); // after the bytes; pairs with `note`
        }
        Ok(is_first)
    }
    /// The reader's note, if it has left one.
    pub fn note(&self) -> Result<Option<Vec<u8>>> {
        let length = self.word(NOTED).load(Ordering::Acquire); // pairs with `claim`
        match usize::try_from(length) {
            Ok(0) => Ok(None),
            Ok(length) if length <= IN_USE - NOTE => Ok(Some(self.read(NOTE, length))),
            _ => Err(damaged()),
        }
    }
    /// Has those who wait on a side look.
    pub fn tell(&self, side: u64) {
        let place = place(side);
        // Sequentially consistent, as in `wait`: either this sees who sleeps, or he sees that something was done.
        self.short_word(DONE[place]).fetch_add(1, Ordering::SeqCst);
        if self.short_word(ASLEEP[place]).load(Ordering::SeqCst) > 0 {
            let word = self.short_word(DONE[place]);
            // Not private: the other side is another process. Who is not woken looks again when his slice of time is over.
            let _ = futex::wake(word, futex::Flags::empty(), i32::MAX.cast_unsigned());
        }
    }
    /// What was done for those who wait on a side, for `wait`.
    pub fn seen(&self, side: u64) -> u32 {
        self.short_word(DONE[place(side)]).load(Ordering::SeqCst)
    }
    /// Waits until there is more than `seen`, or this time is over, or a signal comes.
    pub fn wait(&self, side: u64, seen: u32, timeout: Duration) {
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
}

/// The layout of an array as it lies in a block, if it fits into one.
pub fn in_block(layout: &Layout) -> Option<Layout> {
    (layout.bytes() <= BLOCK && !layout.is_empty()).then(|| layout.dense())
}
