//! Waiting for one pending signal: a short spin where that is worthwhile, then a futex on the counter.
use super::{
    futex::FutexWord,
    layout::{EXPORTER, counter_word, polled_word},
    pace::Pace,
    protocol::{self, Progress, Word},
    shared::Arena,
    spin,
};
use std::{fmt, sync::atomic::Ordering::Relaxed, time::Instant};

/// A submitted signal: complete when the counter has reached the value. It does not change when the event is signalled
/// again or released.
#[derive(Clone)]
pub struct PendingSignal {
    arena: Arena,
    counter: u16,
    value: u64,
    /// How often the counter had died when the value was reserved.
    deaths: u32,
    debtor: u32,
}

impl PendingSignal {
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
    /// The arena of its counter.
    pub fn arena(&self) -> &Arena {
        &self.arena
    }
    /// The value that its counter has to reach.
    pub fn value(&self) -> u64 {
        self.value
    }
    /// The address of its counter's word in this process.
    pub fn word_address(&self) -> usize {
        std::ptr::from_ref(self.arena.0.words.word(counter_word(self.counter))).addr()
    }
    /// Releases devices that wait for it, if the signalling process has gone.
    pub(super) fn release(&self) {
        protocol::release(&self.word(), self.deaths);
    }
    /// Whether a device will complete it, which wakes no thread.
    pub(super) fn is_polled(&self) -> bool {
        self.arena.0.words.word(polled_word(self.counter)).load(Relaxed) != 0
    }
    /// Whether this process itself is to complete it.
    pub fn is_ours(&self) -> bool {
        self.debtor == self.arena.0.participant
    }
    /// Its progress, without waiting.
    #[inline]
    pub fn progress(&self) -> Progress {
        self.judge(self.word().load())
    }
    /// Sleeps until it is complete or failed; returns `Pending` if the deadline passed first. Without a deadline it may
    /// wait for ever: if the signalling process lives and never completes it, only the caller can give up.
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
impl fmt::Debug for PendingSignal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let who = if self.debtor == EXPORTER { "exporter".into() } else { self.debtor.to_string() };
        write!(
            f,
            "PendingSignal({} of counter {} in {:?}, by {who})",
            self.value, self.counter, self.arena
        )
    }
}
