//! The exporter's side of its arenas: the owners of counters, slots and ledger lines. They are kept in private memory,
//! because every participant can overwrite the arena. The broker calls this on behalf of its peers.
use super::{
    deferred_free::{DeferredFree, Who},
    futex::FutexWord,
    layout::{COUNTERS, EXPORTER, SLOTS, TIRED_VALUE, complete_pair, nonsense, slot_word},
    memory,
    protocol::{self, DEAD, Word},
};
use crate::{
    Access, Error, ErrorKind, Result,
    access::Process,
    ledger::{self, State},
};
use rustix::fd::OwnedFd;
use std::{
    collections::{BTreeMap, HashMap, HashSet, VecDeque},
    sync::{Arc, Mutex, MutexGuard, atomic::Ordering::Release},
};
use ur_mapping::SharedWords;

/// While fresh numbers are left, a freed number is reused only after this many others were freed, so that stale uses of
/// it are detected.
const LATE: usize = 256;

/// Numbers from a start (0 or 1) up to an end.
struct Numbers {
    fresh: u16,
    end: u16,
    free: VecDeque<u16>,
}
impl Numbers {
    fn new(fresh: u16, end: u16) -> Self {
        Self { fresh, end, free: VecDeque::new() }
    }
    fn take(&mut self) -> Option<u16> {
        if self.fresh < self.end && self.free.len() < LATE {
            self.fresh += 1;
            return Some(self.fresh - 1);
        }
        self.free.pop_front()
    }
    fn give(&mut self, number: u16) {
        self.free.push_back(number);
    }
    fn left(&self) -> usize {
        usize::from(self.end - self.fresh) + self.free.len()
    }
}

/// An event in a slot, and the processes that use it.
struct Tenancy {
    generation: u32,
    /// Whether this process still uses it, which includes its exports.
    held: bool,
    /// How often each participant has it open.
    opens: BTreeMap<u32, u32>,
}

/// A living participant and what it holds, which its death has to release.
struct Participant {
    who: Who,
    /// Sent to other participants that want to watch it.
    pidfd: Arc<OwnedFd>,
    counters: HashSet<u16>,
    slots: HashSet<u16>,
}

struct ArenaState {
    counters: Numbers,
    slots: Numbers,
    tenancies: HashMap<u16, Tenancy>,
    participants: BTreeMap<u32, Participant>,
    next_participant: u32,
    /// How many counters each owner has, including those whose free is deferred.
    held: HashMap<Who, usize>,
    deferred_free: DeferredFree,
}

pub(super) struct Own {
    pub access: Access,
    pub arena_fd: Arc<OwnedFd>,
    pub ledger_fd: Arc<OwnedFd>,
    ledger: ledger::Owner,
    arena_state: Mutex<ArenaState>,
}

/// The process that is to complete a counter's next value.
#[derive(Debug)]
pub enum Debtor {
    /// This process.
    Exporter,
    /// The participant with this number and this pidfd.
    Participant(u32, Arc<OwnedFd>),
    /// The counter is free or its owner is gone: there is no process to watch.
    Nobody,
}

impl Own {
    pub fn make(access: Access, instance: [u8; 16], number: u32) -> Result<(SharedWords, Self)> {
        let memory::Fresh { arena_fd, ledger_fd, words, ledger } = memory::make(instance, number)?;
        let arena_state = ArenaState {
            counters: Numbers::new(1, COUNTERS),
            slots: Numbers::new(0, SLOTS),
            tenancies: HashMap::new(),
            participants: BTreeMap::new(),
            next_participant: EXPORTER + 1,
            held: HashMap::new(),
            deferred_free: DeferredFree::default(),
        };
        Ok((
            words,
            Self { access, arena_fd, ledger_fd, ledger, arena_state: Mutex::new(arena_state) },
        ))
    }
    pub fn ledger(&self) -> &ledger::Owner {
        &self.ledger
    }
    fn arena_state(&self) -> MutexGuard<'_, ArenaState> {
        ur_lock::locked(&self.arena_state)
    }
    pub fn check(&self, line: u16, tag: u64, generation: u32) -> State {
        self.ledger.check(line, tag, generation)
    }

    /// Takes a counter for this process; returns its index and its current value.
    pub fn take_counter(&self, words: &SharedWords) -> Result<(u16, u64)> {
        self.grant(words, EXPORTER).map(|(counter, _, start)| (counter, start))
    }
    pub fn grant(&self, words: &SharedWords, participant: u32) -> Result<(u16, u32, u64)> {
        let mut arena_state = self.arena_state();
        let who = arena_state.who(participant)?;
        if !arena_state.has_counter_for(who) {
            self.tend(words, &mut arena_state, true);
        }
        while arena_state.has_counter_for(who)
            && let Some(counter) = arena_state.counters.take()
        {
            let word = FutexWord::new(words, counter);
            if let Some(start) = protocol::adopt(&word, TIRED_VALUE) {
                let epoch = self.ledger.hand_over(counter, Some(participant));
                *arena_state.held.entry(who).or_default() += 1;
                if let Some(participant) = arena_state.participants.get_mut(&participant) {
                    participant.counters.insert(counter);
                }
                return Ok((counter, epoch, start));
            }
            // It was marked as dead since. A counter near the end of its values is not put back and never used again.
            if word.mark() & DEAD != 0 {
                *arena_state.held.entry(who).or_default() += 1;
                arena_state.deferred_free.add(counter, who);
            }
        }
        Err(full("counters"))
    }
    /// Revives the dead counters that can be revived.
    fn tend(&self, words: &SharedWords, arena_state: &mut ArenaState, all: bool) {
        let revived =
            arena_state.deferred_free.tend(words, &self.ledger, arena_state.slots.fresh, all);
        for (counter, who) in revived {
            arena_state.give_counter(counter, who);
        }
    }
    /// The counters that a participant owns.
    pub fn counters_of(&self, participant: u32) -> Vec<u16> {
        let arena_state = self.arena_state();
        let counters =
            arena_state.participants.get(&participant).map(|p| p.counters.iter().copied());
        counters.into_iter().flatten().collect()
    }
    pub fn release_counter(
        &self,
        words: &SharedWords,
        participant: u32,
        counter: u16,
    ) -> Result<()> {
        let mut arena_state = self.arena_state();
        let who = arena_state.who(participant)?;
        let is_theirs = (1..COUNTERS).contains(&counter)
            && self.ledger.holder(counter).participant == Some(participant);
        if !is_theirs {
            return Err(nonsense("a process gave back a counter which is not its own"));
        }
        if let Some(participant) = arena_state.participants.get_mut(&participant) {
            participant.counters.remove(&counter);
        }
        if self.take_back(words, &mut arena_state, counter, who) {
            self.tend(words, &mut arena_state, false);
        }
        Ok(())
    }
    /// Removes a counter's owner. Returns whether the counter is dead and therefore not free yet.
    fn take_back(
        &self,
        words: &SharedWords,
        arena_state: &mut ArenaState,
        counter: u16,
        who: Who,
    ) -> bool {
        self.ledger.hand_over(counter, None);
        let is_dead = FutexWord::new(words, counter).mark() & DEAD != 0;
        match is_dead {
            true => arena_state.deferred_free.add(counter, who),
            false => arena_state.give_counter(counter, who),
        }
        is_dead
    }

    /// How many counters are free.
    pub fn counters_left(&self) -> usize {
        self.arena_state().counters.left()
    }
    #[cfg(test)]
    pub fn held_by_others(&self) -> usize {
        self.arena_state().held.values().sum()
    }
    #[cfg(test)]
    pub fn has(&self, slot: u16) -> bool {
        self.arena_state().tenancies.contains_key(&slot)
    }
    pub(super) fn new_slot(&self, words: &SharedWords) -> Result<(u16, u32)> {
        let mut arena_state = self.arena_state();
        let index = arena_state.slots.take().ok_or_else(|| full("events"))?;
        // First the line, then the pair: a reader that sees the new pair with an old generation sees that the line has
        // changed.
        let generation = self.ledger.begin(index, 0, -1);
        words.word(slot_word(index)).store(complete_pair(generation), Release);
        let tenancy = Tenancy { generation, held: true, opens: BTreeMap::new() };
        arena_state.tenancies.insert(index, tenancy);
        self.show_opens(words, index, 0);
        Ok((index, generation))
    }
    /// Stores the number of opens beside the pair, for inspection only.
    fn show_opens(&self, words: &SharedWords, index: u16, opens: u32) {
        words.word(slot_word(index) + 1).store(u64::from(opens), Release);
    }
    /// This process no longer uses the slot, which is free once no process has it open.
    pub fn slot_released(&self, index: u16) {
        let mut arena_state = self.arena_state();
        if let Some(tenancy) = arena_state.tenancies.get_mut(&index) {
            tenancy.held = false;
        }
        self.free_if_unused(&mut arena_state, index);
    }
    /// Removes a participant and all its opens.
    fn strike(&self, arena_state: &mut ArenaState, participant: u32) -> Option<Participant> {
        let gone = arena_state.participants.remove(&participant)?;
        for slot in &gone.slots {
            if let Some(tenancy) = arena_state.tenancies.get_mut(slot) {
                tenancy.opens.remove(&participant);
            }
            self.free_if_unused(arena_state, *slot);
        }
        Some(gone)
    }
    fn free_if_unused(&self, arena_state: &mut ArenaState, index: u16) {
        let unused = |tenancy: &Tenancy| !tenancy.held && tenancy.opens.is_empty();
        if arena_state.tenancies.get(&index).is_some_and(unused) {
            let gone = arena_state.tenancies.remove(&index).expect("it was there a line ago");
            self.ledger.end(index, gone.generation, State::Withdrawn);
            arena_state.slots.give(index);
        }
    }
    /// Counts one open more or one less.
    pub fn opens(
        &self,
        words: &SharedWords,
        who: u32,
        index: u16,
        generation: u32,
        up: bool,
    ) -> Result<()> {
        let mut arena_state = self.arena_state();
        arena_state.who(who)?;
        let tenancy = arena_state.tenancies.get_mut(&index).filter(|t| t.generation == generation);
        let Some(tenancy) = tenancy else {
            return Err(nonsense("a process speaks of an event that is not, or no longer, there"));
        };
        let opens = tenancy.opens.entry(who).or_default();
        let counted = if up { opens.checked_add(1) } else { opens.checked_sub(1) };
        if let Some(counted) = counted {
            *opens = counted;
        }
        let is_open = *opens > 0;
        tenancy.opens.retain(|_, opens| *opens > 0);
        let shown = tenancy.opens.values().fold(0, |sum: u32, n| sum.saturating_add(*n));
        self.show_opens(words, index, shown);
        if let Some(participant) = arena_state.participants.get_mut(&who) {
            match is_open {
                true => participant.slots.insert(index),
                false => participant.slots.remove(&index),
            };
        }
        self.free_if_unused(&mut arena_state, index);
        counted.map(drop).ok_or_else(|| nonsense("a process closed an event that it had not open"))
    }

    /// Adds a process as a participant; returns its number.
    pub fn join(&self, words: &SharedWords, pidfd: Arc<OwnedFd>) -> u32 {
        let process = Process::behind(&pidfd);
        let mut arena_state = self.arena_state();
        self.tend(words, &mut arena_state, false);
        let number = arena_state.fresh_participant();
        let participant = Participant {
            who: process.map_or(Who::Participant(number), Who::Process),
            pidfd,
            counters: HashSet::new(),
            slots: HashSet::new(),
        };
        arena_state.participants.insert(number, participant);
        number
    }
    /// The process that is to complete this counter's next value.
    pub fn debtor(&self, counter: u16) -> Result<Debtor> {
        if !(1..COUNTERS).contains(&counter) {
            return Err(nonsense("a process asks after a counter that cannot be"));
        }
        let arena_state = self.arena_state();
        Ok(match self.ledger.holder(counter).participant {
            Some(EXPORTER) => Debtor::Exporter,
            Some(number) => arena_state
                .participants
                .get(&number)
                .map_or(Debtor::Nobody, |one| Debtor::Participant(number, one.pidfd.clone())),
            None => Debtor::Nobody,
        })
    }
    /// Handles the end of a participant, whose pending signals the caller has failed.
    pub fn participant_died(&self, words: &SharedWords, participant: u32) {
        let mut arena_state = self.arena_state();
        let Some(gone) = self.strike(&mut arena_state, participant) else { return };
        let counters: Vec<_> = gone.counters.iter().copied().collect();
        for counter in &counters {
            self.ledger.hand_over(*counter, None);
        }
        arena_state.deferred_free.add_departed(gone.who, counters, gone.pidfd);
        self.tend(words, &mut arena_state, false);
    }
    /// Handles a participant's message that it no longer uses the arena.
    pub fn participant_left(&self, words: &SharedWords, participant: u32) {
        let mut arena_state = self.arena_state();
        let Some(gone) = self.strike(&mut arena_state, participant) else { return };
        let is_dead = |counter: &u16| FutexWord::new(words, *counter).mark() & DEAD != 0;
        let (dead, settled): (Vec<_>, Vec<_>) = gone.counters.iter().copied().partition(is_dead);
        for counter in settled {
            self.take_back(words, &mut arena_state, counter, gone.who);
        }
        // Counters that it failed and did not return may still be written by one of its devices.
        for counter in &dead {
            self.ledger.hand_over(*counter, None);
        }
        arena_state.deferred_free.add_departed(gone.who, dead, gone.pidfd);
        self.tend(words, &mut arena_state, false);
    }
    /// Checks whether processes have ended whose connections ended before. Returns whether some have not.
    pub fn ask_after_departed(&self, words: &SharedWords) -> bool {
        let mut arena_state = self.arena_state();
        arena_state.deferred_free.ask_after_all(words);
        self.tend(words, &mut arena_state, false);
        arena_state.deferred_free.has_departed()
    }

    pub fn new_line(&self, tag: u64, descriptor: i32) -> Result<(u16, u32)> {
        let index = self.arena_state().slots.take().ok_or_else(|| full("exports"))?;
        Ok((index, self.ledger.begin(index, tag, descriptor)))
    }
    pub fn end_line(&self, index: u16, generation: u32, last: State) {
        let mut arena_state = self.arena_state();
        self.ledger.end(index, generation, last);
        arena_state.slots.give(index);
    }
}

impl ArenaState {
    fn who(&self, participant: u32) -> Result<Who> {
        if participant == EXPORTER {
            return Ok(Who::Exporter);
        }
        let known = self.participants.get(&participant).map(|participant| participant.who);
        known.ok_or_else(|| nonsense("a process asks in the name of one that is gone or never was"))
    }
    /// Whether this owner may have one more counter. Owners other than the exporter may have at most as many as are
    /// left: an owner that takes as many as it can leaves half of them to the others, and only it is refused.
    fn has_counter_for(&self, who: Who) -> bool {
        let left = self.counters.left();
        let held = || self.held.get(&who).copied().unwrap_or(0);
        left > 0 && (who == Who::Exporter || held() < left)
    }
    fn give_counter(&mut self, counter: u16, who: Who) {
        self.counters.give(counter);
        if let Some(held) = self.held.get_mut(&who) {
            *held -= 1;
            if *held == 0 {
                self.held.remove(&who);
            }
        }
    }
    /// A number that no participant has. Numbers wrap around after the last; by then the early ones are no longer in
    /// use.
    fn fresh_participant(&mut self) -> u32 {
        loop {
            let number = self.next_participant;
            self.next_participant = if number >= u32::MAX - 2 { EXPORTER + 1 } else { number + 1 };
            if !self.participants.contains_key(&number) {
                return number;
            }
        }
    }
}

#[cold]
pub(super) fn full(what: &str) -> Error {
    let why =
        format!("all {what} of this arena are taken: release some events, queues or exports first");
    Error::new(ErrorKind::Full, why)
}

#[cfg(test)]
mod tests;
