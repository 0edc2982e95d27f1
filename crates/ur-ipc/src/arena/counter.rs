//! A queue's counter: values are reserved in private memory and completed in shared memory.
use super::{
    layout::{MAX_VALUE, TIRED_VALUE, counter_word, polled_word},
    protocol::{self, Word},
    shared::{Arena, Side},
};
use crate::Result;
use std::{
    fmt,
    sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
};

/// A counter of this process in an arena, used by one in-order queue or by one command. Dropping it returns it if all
/// reserved values were completed, and otherwise fails those that were not.
///
/// Its private fields use relaxed ordering: they belong to one queue, which orders its own calls.
pub struct Counter {
    arena: Arena,
    index: u16,
    reserved: AtomicU64,
    completed: AtomicU64,
    failed: AtomicBool,
    /// Another process marked this counter as dead, although this process lives.
    accused: AtomicBool,
    /// A device completes the counter: only the shared word tells what it has reached.
    device: AtomicBool,
}

impl Counter {
    pub(super) fn new(arena: Arena, index: u16, value: u64) -> Self {
        arena.0.words.word(polled_word(index)).store(0, Relaxed); // until a device completes it
        Self {
            arena,
            index,
            reserved: AtomicU64::new(value),
            completed: AtomicU64::new(value),
            failed: AtomicBool::new(false),
            accused: AtomicBool::new(false),
            device: AtomicBool::new(false),
        }
    }
    /// From now on a device completes values, by writing [`word_of`](super::protocol::word_of) of each to the word at
    /// [`word_address`](Self::word_address), in order. The device wakes no sleeping thread, so waiting threads have to
    /// poll.
    pub fn hand_to_device(&self) {
        self.device.store(true, Relaxed);
        // Before a slot names the counter: `publish` releases, `capture` acquires.
        self.arena.0.words.word(polled_word(self.index)).store(1, Relaxed);
    }
    /// The address of its word in this process.
    pub fn word_address(&self) -> usize {
        std::ptr::from_ref(self.arena.0.words.word(counter_word(self.index))).addr()
    }
    /// Whether every value reserved so far is complete.
    pub fn is_settled(&self) -> bool {
        self.reached() >= self.reserved.load(Relaxed)
    }
    fn reached(&self) -> u64 {
        match self.device.load(Relaxed) {
            true => protocol::value_of(protocol::Word::load(&self.arena.0.counter(self.index))),
            false => self.completed.load(Relaxed),
        }
    }
    /// The arena whose slots may name it.
    pub fn arena(&self) -> &Arena {
        &self.arena
    }
    pub(super) fn index(&self) -> u16 {
        self.index
    }
    /// Reserves the next value. Values must be completed in the order in which they were reserved.
    #[inline]
    pub fn reserve(&self) -> u64 {
        let value = self.reserved.fetch_add(1, Relaxed) + 1;
        debug_assert!(value <= MAX_VALUE, "a tired counter is asked for ever more values");
        value
    }
    /// Completes a value and all values before it: one swap, and a system call only if a thread sleeps on the counter.
    /// Does nothing on a counter that failed.
    #[inline]
    pub fn complete(&self, value: u64) {
        debug_assert!(value <= self.reserved.load(Relaxed), "completed before it was reserved");
        if self.failed.load(Relaxed) {
            return;
        }
        // Before the swap: a thread that waited for the value may drop the queue at once.
        self.completed.store(value, Relaxed);
        if protocol::complete(&self.arena.0.counter(self.index), value) {
            self.accused.store(true, Relaxed);
        }
    }
    /// Fails every value that is not complete, and wakes all waiting threads. The counter cannot be used after that. In a
    /// forked child it does nothing: the values are the parent's, which lives.
    pub fn fail(&self) {
        if self.arena.0.is_inherited() {
            return;
        }
        self.failed.store(true, Relaxed);
        protocol::fail(&self.arena.0.counter(self.index));
    }
    /// Whether [`fail`](Self::fail) was called.
    pub fn has_failed(&self) -> bool {
        self.failed.load(Relaxed)
    }
    /// Whether the queue should take a fresh counter for its next values. Values already reserved may still be
    /// completed.
    #[inline]
    pub fn is_retired(&self) -> bool {
        self.has_failed() || self.accused.load(Relaxed) || self.reserved.load(Relaxed) > TIRED_VALUE
    }
    /// Whether a thread has announced that it sleeps until this counter changes.
    pub fn is_waited_for(&self) -> bool {
        protocol::Word::load(&self.arena.0.counter(self.index)) & protocol::WAITERS != 0
    }
}

impl Arena {
    /// Takes a counter for one queue or one command. Only slots of this arena can name it.
    ///
    /// # Errors
    /// [`ErrorKind::Full`](crate::ErrorKind::Full) if all are taken; in a joined arena also the errors of the request
    /// to the exporter; [`ErrorKind::Forked`](crate::ErrorKind::Forked) in a forked child.
    pub fn take_counter(&self) -> Result<Counter> {
        self.not_inherited()?;
        let idle = loop {
            match self.0.idle().pop() {
                // Another process marked it as dead, and it stays so.
                Some((index, _)) if self.0.counter(index).mark() & protocol::DEAD != 0 => {
                    self.give_back(index);
                }
                idle => break idle,
            }
        };
        let (index, value) = match (idle, &self.0.side) {
            (Some(idle), _) => idle,
            (None, Side::Own(own)) => own.take_counter(&self.0.words)?,
            (None, Side::Joined(joined)) => {
                joined.take_counter(&self.0.words, self.0.participant)?
            }
        };
        Ok(Counter::new(self.clone(), index, value))
    }
}

impl Drop for Counter {
    fn drop(&mut self) {
        if self.arena.0.is_inherited() {
            return; // it belongs to the parent
        }
        let completed = self.reached();
        if *self.reserved.get_mut() != completed && !*self.failed.get_mut() {
            self.fail();
        }
        // A counter that a device may still write is not returned before this process has ended.
        let is_done = !*self.device.get_mut() || *self.reserved.get_mut() == completed;
        if !self.is_retired() {
            self.arena.put_back(self.index, completed);
        } else if is_done {
            self.arena.give_back(self.index);
        }
    }
}
impl fmt::Debug for Counter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Counter")
            .field("arena", &self.arena)
            .field("index", &self.index)
            .field("reserved", &self.reserved)
            .field("completed", &self.completed)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
