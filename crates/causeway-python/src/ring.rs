//! A ring of messages in memory that two processes have: one writes, the other reads. Waiting, and what the messages
//! are, is left to Python (`causeway_ipc/_channel.py`).
//!
//! The other process may write anything anywhere in it at any time: counts and lengths are checked after they are read.
#![expect(unsafe_code, reason = "words and bytes that two processes have")]
use crate::{
    array::Array,
    failure::{Failure, Result},
    host,
};
use pyo3::{prelude::*, types::PyBytes};
use std::sync::atomic::{AtomicU64, Ordering};

/// Words, each in a cache line of its own: how many messages were put and how many were taken; which sides are closed;
/// how many have opened the reader's side; how long the reader's note is.
const PUT: usize = 0;
const TAKEN: usize = 64;
const CLOSED: usize = 128;
const CLAIMED: usize = 192;
const NOTED: usize = 256;
/// What the reader leaves for the writer: a ticket by which the writer sees that the reader lives.
const NOTE: usize = 320;
const MESSAGES: usize = 4096;
/// Room for a message, its length before it.
const ROOM: usize = 8192;

/// One side of a ring.
#[pyclass(frozen, module = "causeway_ipc._causeway")]
pub struct Ring {
    array: Py<Array>,
    address: usize,
    capacity: u64,
}

impl Ring {
    fn word(&self, at: usize) -> &AtomicU64 {
        // SAFETY: `new` saw that the whole ring is in the array's memory, which is the CPU's, begins at a multiple of 8,
        // and lives as long as `self.array`; both sides use these words only so.
        unsafe { host::word(self.address + at) }
    }
    fn write(&self, at: usize, bytes: &[u8]) {
        // SAFETY: as above; every caller bounds the bytes by the room there.
        unsafe { host::write(self.address + at, bytes) };
    }
    fn read(&self, at: usize, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        // SAFETY: as above; every caller bounds the length by the room there.
        unsafe { host::read(self.address + at, &mut bytes) };
        bytes
    }
    fn message(&self, number: u64) -> usize {
        MESSAGES + (number % self.capacity) as usize * ROOM
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
        MESSAGES + capacity.saturating_mul(ROOM)
    }
    /// The ring that fills an array of bytes on the CPU; `fresh` empties it.
    #[new]
    fn new(array: &Bound<'_, Array>, fresh: bool) -> Result<Self> {
        let ours = array.get();
        let bytes = ours.layout.bytes();
        let capacity = bytes.saturating_sub(MESSAGES) / ROOM;
        let address = ours.memory.address() + ours.layout.offset;
        let fits = ours.memory.session.is_cpu()
            && ours.layout.is_contiguous()
            && address.is_multiple_of(8);
        if capacity == 0 || !fits {
            return Err(damaged());
        }
        let ring = Self { array: array.clone().unbind(), address, capacity: capacity as u64 };
        if fresh {
            ring.write(0, &[0; MESSAGES]);
        }
        Ok(ring)
    }
    #[getter]
    fn array(&self, py: Python<'_>) -> Py<Array> {
        self.array.clone_ref(py)
    }
    /// Puts a message if there is room; how many have been put before it.
    fn put(&self, message: &[u8]) -> Result<Option<u64>> {
        bounded(message, ROOM - 8)?;
        let (count, taken) = self.waiting()?;
        if count == self.capacity {
            return Ok(None);
        }
        let number = taken.wrapping_add(count);
        let at = self.message(number);
        self.write(at, &(message.len() as u64).to_le_bytes());
        self.write(at + 8, message);
        self.word(PUT).store(number.wrapping_add(1), Ordering::Release); // after the bytes; pairs with `waiting`
        Ok(Some(number))
    }
    /// The next message, which stays until `advance`.
    fn peek<'py>(&self, py: Python<'py>) -> Result<Option<Bound<'py, PyBytes>>> {
        let (count, taken) = self.waiting()?;
        if count == 0 {
            return Ok(None);
        }
        let at = self.message(taken);
        let length = self.read(at, 8).first_chunk().map_or(0, |length| u64::from_le_bytes(*length));
        let length = usize::try_from(length).ok().filter(|&length| length <= ROOM - 8);
        Ok(Some(PyBytes::new(py, &self.read(at + 8, length.ok_or_else(damaged)?))))
    }
    /// The next message is done with, and its place is free.
    fn advance(&self) {
        self.word(TAKEN).fetch_add(1, Ordering::Release); // after the bytes were read; pairs with `waiting`
    }
    /// How many messages were taken.
    #[getter]
    fn taken(&self) -> u64 {
        self.word(TAKEN).load(Ordering::Acquire) // pairs with `advance`: what the message names was opened
    }
    /// Closes a side: 1 is the writer's, 2 the reader's.
    fn close(&self, side: u64) {
        self.word(CLOSED).fetch_or(side, Ordering::Release); // after what was put; pairs with `is_closed`
    }
    fn is_closed(&self, side: u64) -> bool {
        self.word(CLOSED).load(Ordering::Acquire) & side != 0 // pairs with `close`
    }
    /// Whether the caller is the first to open the reader's side.
    fn claim(&self) -> bool {
        self.word(CLAIMED).fetch_add(1, Ordering::Relaxed) == 0 // one word decides; it orders nothing
    }
    /// Leaves a note for the writer, once.
    fn leave(&self, note: &[u8]) -> Result<()> {
        bounded(note, MESSAGES - NOTE)?;
        self.write(NOTE, note);
        self.word(NOTED).store(note.len() as u64, Ordering::Release); // after the bytes; pairs with `note`
        Ok(())
    }
    /// The reader's note, if it has left one.
    fn note<'py>(&self, py: Python<'py>) -> Result<Option<Bound<'py, PyBytes>>> {
        let length = self.word(NOTED).load(Ordering::Acquire); // pairs with `leave`
        match usize::try_from(length) {
            Ok(0) => Ok(None),
            Ok(length) if length <= MESSAGES - NOTE => {
                Ok(Some(PyBytes::new(py, &self.read(NOTE, length))))
            }
            _ => Err(damaged()),
        }
    }
}
