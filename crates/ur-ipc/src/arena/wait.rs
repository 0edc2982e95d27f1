//! Waiting for one debt: a short spin where that helps, then a futex on the counter.
use super::{
    futex::FutexWord,
    layout::{EXPORTER, counter_word, polled_word},
    pace::Pace,
    protocol::{self, Progress, Word},
    shared::Arena,
    spin,
};
use std::{fmt, sync::atomic::Ordering::Relaxed, time::Instant};

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
