//! A counter's word in shared memory, with the kernel's futex on its low half.
use super::{
    layout::{counter_word, life_word, mark_word},
    protocol::Word,
};
use crate::waiting::sleep_on;
use rustix::thread::futex::{Flags, wake};
use std::{
    sync::atomic::{AtomicU32, AtomicU64, Ordering::*},
    thread,
    time::{Duration, Instant},
};
use ur_mapping::SharedWords;

/// The longest single sleep, after which the word is read again: the futex covers only half of the word, and a peer may
/// violate the protocol.
pub(super) const SLEEP: Duration = Duration::from_secs(1);
/// The polling interval where the kernel offers no better way.
pub(super) const LOOK: Duration = Duration::from_millis(1);

/// A counter word in shared memory, with the kernel's futex on its low half.
pub(super) struct FutexWord<'a> {
    words: &'a SharedWords,
    counter: u16,
    whole: &'a AtomicU64,
    low: &'a AtomicU32,
}
impl<'a> FutexWord<'a> {
    #[inline]
    pub fn new(words: &'a SharedWords, counter: u16) -> Self {
        let index = counter_word(counter);
        Self { words, counter, whole: words.word(index), low: words.low_half(index) }
    }
    pub fn low(&self) -> &'a AtomicU32 {
        self.low
    }
}
impl Word for FutexWord<'_> {
    #[inline]
    fn load(&self) -> u64 {
        self.whole.load(Acquire)
    }
    #[inline]
    fn swap(&self, new: u64) -> u64 {
        self.whole.swap(new, AcqRel)
    }
    fn fetch_or(&self, flags: u64) -> u64 {
        self.whole.fetch_or(flags, AcqRel)
    }
    #[inline]
    fn replace(&self, old: u64, new: u64) -> bool {
        self.whole.compare_exchange(old, new, AcqRel, Relaxed).is_ok()
    }
    #[inline]
    fn mark(&self) -> u64 {
        self.words.word(mark_word(self.counter)).load(Acquire)
    }
    fn replace_mark(&self, old: u64, new: u64) -> bool {
        let mark = self.words.word(mark_word(self.counter));
        mark.compare_exchange(old, new, AcqRel, Relaxed).is_ok()
    }
    fn reached_in(&self, deaths: u32) -> u64 {
        self.words.word(life_word(self.counter, deaths)).load(Acquire)
    }
    fn note_reached(&self, deaths: u32, value: u64) {
        self.words.word(life_word(self.counter, deaths)).store(value, Release);
    }
    fn sleep(&self, seen: u64, deadline: Option<Instant>) {
        // Not a private futex: the other side is another process, and the memory is a memfd.
        if sleep_on(self.low, Flags::empty(), seen as u32, until(deadline)).is_err() {
            thread::sleep(LOOK); // a filter may forbid futexes: slow, but not a busy loop
        }
    }
    fn wake_all(&self) {
        // Fails only for an address that is not mapped. A thread that is not woken reads the word again within a
        // second.
        let _ = wake(self.low, Flags::empty(), i32::MAX.cast_unsigned());
    }
}

/// How long to sleep at most.
pub(super) fn until(deadline: Option<Instant>) -> Duration {
    deadline.map_or(SLEEP, |at| at.saturating_duration_since(Instant::now()).min(SLEEP))
}
