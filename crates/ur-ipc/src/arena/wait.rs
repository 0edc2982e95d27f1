//! Waiting for one debt: a short spin where that helps, then a futex on the counter.
use super::{
    Arena, EXPORTER, Progress,
    layout::{counter_word, life_word, mark_word, polled_word},
    pace::Pace,
    protocol::{self, Word},
    spin,
};
use crate::waiting::sleep_on;
use rustix::thread::futex::{Flags, wake};
use std::{
    fmt,
    sync::atomic::{AtomicU32, AtomicU64, Ordering::*},
    thread,
    time::{Duration, Instant},
};
use ur_mapping::SharedWords;

/// A sleep is cut after so long and the word read again: only half of it can be watched, and a peer may misbehave.
pub(super) const SLEEP: Duration = Duration::from_secs(1);
/// How long to wait before the next look where the kernel offers no better way.
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
        // Not private: the other side is another process, and the memory is the memfd's.
        if sleep_on(self.low, Flags::empty(), seen as u32, until(deadline)).is_err() {
            thread::sleep(LOOK); // a filter forbids futexes, say: slow, and not a busy loop
        }
    }
    fn wake_all(&self) {
        // Fails for words that are no memory only. Who is not woken so reads again within a second.
        let _ = wake(self.low, Flags::empty(), i32::MAX.cast_unsigned());
    }
}

/// How long to sleep at most.
pub(super) fn until(deadline: Option<Instant>) -> Duration {
    deadline.map_or(SLEEP, |at| at.saturating_duration_since(Instant::now()).min(SLEEP))
}

/// A submitted signal that somebody owes: complete when the counter has reached the value. It stays what it is whatever
/// happens to the event.
#[derive(Clone)]
pub struct Debt {
    arena: Arena,
    counter: u16,
    value: u64,
    /// How often the counter had died when it was promised.
    deaths: u32,
    debtor: u32,
}

impl Debt {
    pub(super) fn new(
        arena: Arena,
        (counter, value): (u16, u64),
        deaths: u32,
        debtor: u32,
    ) -> Self {
        Self { arena, counter, value, deaths, debtor }
    }
    #[inline]
    pub(super) fn word(&self) -> FutexWord<'_> {
        self.arena.0.counter(self.counter)
    }
    pub(super) fn judge(&self, word: u64) -> Progress {
        protocol::judge(&self.word(), word, self.value, self.deaths)
    }
    /// The arena that its counter is in.
    pub fn arena(&self) -> &Arena {
        &self.arena
    }
    /// The value that its counter has to reach.
    pub fn value(&self) -> u64 {
        self.value
    }
    /// Where its counter's word is in this process.
    pub fn word_address(&self) -> usize {
        std::ptr::from_ref(self.arena.0.words.word(counter_word(self.counter))).addr()
    }
    /// Has devices go on that wait for it, if its debtor is gone.
    pub(super) fn release(&self) {
        protocol::release(&self.word(), self.deaths);
    }
    /// Whether a device will pay it, which wakes nobody.
    pub(super) fn is_polled(&self) -> bool {
        self.arena.0.words.word(polled_word(self.counter)).load(Relaxed) != 0
    }
    /// Whether it is this process itself which owes it.
    pub fn is_ours(&self) -> bool {
        self.debtor == self.arena.0.participant
    }
    /// How far it is, at a glance.
    #[inline]
    pub fn progress(&self) -> Progress {
        self.judge(self.word().load())
    }
    /// Sleeps until it is complete or failed; `Pending` if the deadline passed first. Without a deadline it may wait
    /// for ever: what the debtor never does, and yet lives, only the caller can give up.
    pub fn wait(&self, deadline: Option<Instant>) -> Progress {
        let is_polled = self.is_polled();
        if is_polled || !self.is_ours() {
            let ended = spin::look_for(deadline, || match self.progress() {
                Progress::Pending => None,
                ended => Some(ended),
            });
            if let Some(ended) = ended {
                return ended;
            }
        }
        let mut pace = Pace::default();
        protocol::wait(&self.word(), (self.value, self.deaths), deadline, |seen| {
            if is_polled { pace.look(deadline) } else { pace.nap(seen, self.value, deadline) }
        })
    }
}
impl fmt::Debug for Debt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let who = if self.debtor == EXPORTER { "exporter".into() } else { self.debtor.to_string() };
        write!(f, "Debt({} of counter {} in {:?}, by {who})", self.value, self.counter, self.arena)
    }
}
