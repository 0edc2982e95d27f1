//! Dead counters before their reuse: those that failed, and those of participants that are gone. A counter is revived
//! when no process writes it any more and no event names it. Slots are searched for its name in small steps.
use super::{
    futex::FutexWord,
    layout::{COUNTERS, Pair, TIRED_VALUE, complete_pair, lost_pair, polled_word, slot_word},
    protocol::{self, Word},
};
use crate::{
    access::{Process, is_dead},
    ledger,
};
use rustix::fd::OwnedFd;
use std::{
    collections::{HashSet, VecDeque},
    sync::{
        Arc,
        atomic::Ordering::{AcqRel, Acquire, Relaxed},
    },
    time::{Duration, Instant},
};
use ur_mapping::SharedWords;

/// Slots examined in one step.
const STEP: u16 = 64;
/// How many counters are collected before the slots are searched, unless counters run out.
const WORTH_IT: usize = 64;
/// Departed participants whose processes are checked in one step.
const ASKED: usize = 4;
/// A device's write may arrive shortly after the end of its process, where another process executes its work.
const LATE_WRITES: Duration = Duration::from_secs(10);

/// Whose quota a counter counts against.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Who {
    /// This process.
    Exporter,
    /// A process, however often it joined.
    Process(Process),
    /// A participant, where the kernel does not reliably identify processes.
    Participant(u32),
}
type Counter = (u16, Who);

/// A participant that has gone. While its process lives, the process may still write its counters.
struct Departed {
    who: Who,
    counters: Vec<u16>,
    /// `None` once the process is known to have ended.
    pidfd: Option<Arc<OwnedFd>>,
    free_at: Option<Instant>,
}

#[derive(Default)]
pub(super) struct DeferredFree {
    departed: VecDeque<Departed>,
    /// No process writes these any more.
    settled: Vec<Counter>,
    /// The slots are being searched for the names of these.
    sought: Vec<Counter>,
    names: HashSet<u16>,
    next_slot: u16,
    end: u16,
}

impl DeferredFree {
    /// Adds a counter that its owner failed and does not use any more.
    pub fn add(&mut self, counter: u16, who: Who) {
        self.settled.push((counter, who));
    }
    /// Adds the dead counters of a participant that has gone. However often a process joins and leaves, one pidfd is
    /// kept to see its end.
    pub fn add_departed(&mut self, who: Who, counters: Vec<u16>, pidfd: Arc<OwnedFd>) {
        if counters.is_empty() {
            return;
        }
        match self.departed.iter_mut().find(|one| one.who == who && one.pidfd.is_some()) {
            Some(known) => known.counters.extend(counters),
            None => {
                let pidfd = Some(pidfd);
                self.departed.push_back(Departed { who, counters, pidfd, free_at: None });
            }
        }
    }
    /// Whether the end of some process is still to be checked.
    pub fn has_departed(&self) -> bool {
        !self.departed.is_empty()
    }
    /// Checks all departed processes.
    pub fn ask_after_all(&mut self, words: &SharedWords) {
        for _ in 0..self.departed.len() {
            self.ask_after_one(words);
        }
    }
    /// Does one step or, with `all`, everything that is possible now. Returns the revived counters.
    pub fn tend(
        &mut self,
        words: &SharedWords,
        ledger: &ledger::Owner,
        slots: u16,
        all: bool,
    ) -> Vec<Counter> {
        if all {
            self.ask_after_all(words);
        }
        for _ in 0..ASKED {
            self.ask_after_one(words);
        }
        let mut revived = self.seek(words, ledger, slots, all);
        if all {
            revived.extend(self.seek(words, ledger, slots, all)); // what was added during an earlier search
        }
        revived
    }
    fn ask_after_one(&mut self, words: &SharedWords) {
        let Some(mut one) = self.departed.pop_front() else { return };
        let now = Instant::now();
        if one.pidfd.as_ref().is_some_and(is_dead) {
            one.pidfd = None;
            let is_device = |counter: &u16| words.word(polled_word(*counter)).load(Relaxed) != 0;
            let by_device = one.counters.iter().any(is_device);
            one.free_at = Some(if by_device { now + LATE_WRITES } else { now });
        }
        if one.free_at.is_some_and(|at| at <= now) {
            self.settled.extend(one.counters.iter().map(|counter| (*counter, one.who)));
        } else {
            self.departed.push_back(one);
        }
    }
    /// Searches slots that name one of the counters to be revived, and changes them to complete or to [`LOST`].
    fn seek(
        &mut self,
        words: &SharedWords,
        ledger: &ledger::Owner,
        slots: u16,
        all: bool,
    ) -> Vec<Counter> {
        if self.sought.is_empty() {
            if self.settled.is_empty() || (self.settled.len() < WORTH_IT && !all) {
                return Vec::new();
            }
            self.sought = std::mem::take(&mut self.settled);
            self.names = self.sought.iter().map(|(counter, _)| *counter).collect();
            (self.next_slot, self.end) = (0, slots);
        }
        let until = if all { self.end } else { self.end.min(self.next_slot.saturating_add(STEP)) };
        for slot in self.next_slot..until {
            self.unname(words, ledger, slot);
        }
        self.next_slot = until;
        if until < self.end {
            return Vec::new();
        }
        self.names.clear();
        let mut sought = std::mem::take(&mut self.sought);
        // A counter near the end of its values is not revived.
        sought
            .retain(|(counter, _)| protocol::revive(&FutexWord::new(words, *counter), TIRED_VALUE));
        sought
    }
    fn unname(&self, words: &SharedWords, ledger: &ledger::Owner, slot: u16) {
        let word = words.word(slot_word(slot));
        // Repeated if a live counter is published in the slot meanwhile; bounded, because a malicious process may go
        // on.
        for _ in 0..1000 {
            let seen = word.load(Acquire);
            let Ok(Some(Pair { counter, value })) = Pair::from_word(seen) else { return };
            if counter >= COUNTERS || !self.names.contains(&counter) {
                return;
            }
            let generation = ledger.status(slot) as u32;
            let is_reached = protocol::value_of(FutexWord::new(words, counter).load()) >= value;
            let new = if is_reached { complete_pair(generation) } else { lost_pair(generation) };
            // Release: ordered before the counter is revived; a reader that captures the pair reads the mark between
            // two reads of the pair.
            if word.compare_exchange(seen, new, AcqRel, Relaxed).is_ok() {
                return;
            }
        }
    }
}
