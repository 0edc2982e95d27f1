//! The exporter's side of its arenas: who has which counter, slot and ledger line, kept in private memory, for what
//! is in the arena anyone may overwrite. The broker calls it in its peers' names.
use super::{
    Arena, Core, EXPORTER, Side, Slot,
    layout::{COUNTERS, SLOTS, TIRED_VALUE, complete_pair, nonsense, slot_word},
    limbo::{Limbo, Who},
    memory,
    protocol::{self, DEAD, Word},
};
use crate::{
    Access, Error, ErrorKind, Result,
    access::Process,
    fork::PerFork,
    ledger::{self, State},
};
use rustix::fd::OwnedFd;
use std::{
    collections::{BTreeMap, HashMap, HashSet, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::Ordering::Release},
};
use ur_mapping::SharedWords;

/// So many arenas a policy.
const ARENAS: usize = 16;
/// Freed numbers wait in line behind so many others while there are fresh ones: what is stale is found out.
const LATE: usize = 256;
/// New events go where so many counters are free, that they can be signalled too.
const COUNTERS_FOR_EVENTS: usize = 256;

/// Numbers from 1 or 0 up to an end.
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

/// An event's slot and who has it.
struct Tenancy {
    generation: u32,
    /// Whether this process still has it, an export included.
    held: bool,
    /// How often each participant has it open.
    opens: BTreeMap<u32, u32>,
}

/// Who joined and lives, and what it holds: what its death has to look at.
struct Participant {
    who: Who,
    /// Others may want to watch it.
    pidfd: Arc<OwnedFd>,
    counters: HashSet<u16>,
    slots: HashSet<u16>,
}

struct Books {
    counters: Numbers,
    slots: Numbers,
    tenancies: HashMap<u16, Tenancy>,
    participants: BTreeMap<u32, Participant>,
    next_participant: u32,
    /// How many counters each has, those among them that are in limbo.
    held: HashMap<Who, usize>,
    limbo: Limbo,
}

pub(super) struct Own {
    access: Access,
    arena_fd: Arc<OwnedFd>,
    ledger_fd: Arc<OwnedFd>,
    ledger: ledger::Owner,
    books: Mutex<Books>,
}

/// Who owes a counter's next value.
#[derive(Debug)]
pub enum Debtor {
    /// This process.
    Exporter,
    /// The participant of that number, behind this pidfd.
    Participant(u32, Arc<OwnedFd>),
    /// The counter is free, or its owner is gone: nothing to watch.
    Nobody,
}

impl Own {
    pub fn make(access: Access, instance: [u8; 16], number: u32) -> Result<(SharedWords, Self)> {
        let memory::Fresh { arena_fd, ledger_fd, words, ledger } = memory::make(instance, number)?;
        let books = Books {
            counters: Numbers::new(1, COUNTERS),
            slots: Numbers::new(0, SLOTS),
            tenancies: HashMap::new(),
            participants: BTreeMap::new(),
            next_participant: EXPORTER + 1,
            held: HashMap::new(),
            limbo: Limbo::default(),
        };
        Ok((words, Self { access, arena_fd, ledger_fd, ledger, books: Mutex::new(books) }))
    }
    pub fn ledger(&self) -> &ledger::Owner {
        &self.ledger
    }
    fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }
    pub fn check(&self, line: u16, tag: u64, generation: u32) -> State {
        self.ledger.check(line, tag, generation)
    }

    /// A counter of this process's, and the value to go on from.
    pub fn take_counter(&self, core: &Core) -> Result<(u16, u64)> {
        self.grant(core, EXPORTER).map(|(counter, _, start)| (counter, start))
    }
    fn grant(&self, core: &Core, participant: u32) -> Result<(u16, u32, u64)> {
        let mut books = self.books();
        let who = books.who(participant)?;
        if !books.has_counter_for(who) {
            self.tend(core, &mut books, true);
        }
        while books.has_counter_for(who)
            && let Some(counter) = books.counters.take()
        {
            let word = core.counter(counter);
            if let Some(start) = protocol::adopt(&word, TIRED_VALUE) {
                let epoch = self.ledger.hand_over(counter, Some(participant));
                *books.held.entry(who).or_default() += 1;
                if let Some(participant) = books.participants.get_mut(&participant) {
                    participant.counters.insert(counter);
                }
                return Ok((counter, epoch, start));
            }
            // Somebody failed it since. One that is tired is left where it is and never taken again.
            if word.mark() & DEAD != 0 {
                *books.held.entry(who).or_default() += 1;
                books.limbo.add(counter, who);
            }
        }
        Err(full("counters"))
    }
    /// Brings back what can come back.
    fn tend(&self, core: &Core, books: &mut Books, all: bool) {
        let revived = books.limbo.tend(core, &self.ledger, books.slots.fresh, all);
        for (counter, who) in revived {
            books.give_counter(counter, who);
        }
    }
    /// The counters that a participant has.
    pub fn counters_of(&self, participant: u32) -> Vec<u16> {
        let books = self.books();
        let counters = books.participants.get(&participant).map(|p| p.counters.iter().copied());
        counters.into_iter().flatten().collect()
    }
    pub fn release_counter(&self, core: &Core, participant: u32, counter: u16) -> Result<()> {
        let mut books = self.books();
        let who = books.who(participant)?;
        let is_theirs = (1..COUNTERS).contains(&counter)
            && self.ledger.holder(counter).participant == Some(participant);
        if !is_theirs {
            return Err(nonsense("a process gave back a counter which is not its own"));
        }
        if let Some(participant) = books.participants.get_mut(&participant) {
            participant.counters.remove(&counter);
        }
        if self.take_back(core, &mut books, counter, who) {
            self.tend(core, &mut books, false);
        }
        Ok(())
    }
    /// Nobody's now. Whether it is dead, and so not free yet.
    fn take_back(&self, core: &Core, books: &mut Books, counter: u16, who: Who) -> bool {
        self.ledger.hand_over(counter, None);
        let is_dead = core.counter(counter).mark() & DEAD != 0;
        match is_dead {
            true => books.limbo.add(counter, who),
            false => books.give_counter(counter, who),
        }
        is_dead
    }

    #[cfg(test)]
    pub fn counters_left(&self) -> usize {
        self.books().counters.left()
    }
    #[cfg(test)]
    pub fn held_by_others(&self) -> usize {
        self.books().held.values().sum()
    }
    #[cfg(test)]
    pub fn has(&self, slot: u16) -> bool {
        self.books().tenancies.contains_key(&slot)
    }
    pub(super) fn new_slot(&self, core: &Core) -> Result<(u16, u32)> {
        let mut books = self.books();
        let index = books.slots.take().ok_or_else(|| full("events"))?;
        // First the line, then the pair: whoever reads the new pair under an old generation sees the line changed.
        let generation = self.ledger.begin(index, 0, -1);
        core.words.word(slot_word(index)).store(complete_pair(generation), Release);
        let tenancy = Tenancy { generation, held: true, opens: BTreeMap::new() };
        books.tenancies.insert(index, tenancy);
        self.show_opens(core, index, 0);
        Ok((index, generation))
    }
    /// Beside the pair, for those who inspect; nobody decides by it.
    fn show_opens(&self, core: &Core, index: u16, opens: u32) {
        core.words.word(slot_word(index) + 1).store(u64::from(opens), Release);
    }
    /// This process has no more use for the slot; it is free once nobody has it open.
    pub fn slot_released(&self, index: u16) {
        let mut books = self.books();
        if let Some(tenancy) = books.tenancies.get_mut(&index) {
            tenancy.held = false;
        }
        self.free_if_unused(&mut books, index);
    }
    /// Nobody of that number is here any more, and has anything open.
    fn strike(&self, books: &mut Books, participant: u32) -> Option<Participant> {
        let gone = books.participants.remove(&participant)?;
        for slot in &gone.slots {
            if let Some(tenancy) = books.tenancies.get_mut(slot) {
                tenancy.opens.remove(&participant);
            }
            self.free_if_unused(books, *slot);
        }
        Some(gone)
    }
    fn free_if_unused(&self, books: &mut Books, index: u16) {
        let unused = |tenancy: &Tenancy| !tenancy.held && tenancy.opens.is_empty();
        if books.tenancies.get(&index).is_some_and(unused) {
            let gone = books.tenancies.remove(&index).expect("it was there a line ago");
            self.ledger.end(index, gone.generation, State::Withdrawn);
            books.slots.give(index);
        }
    }
    /// Counts an open up or down.
    fn opens(&self, core: &Core, who: u32, index: u16, generation: u32, up: bool) -> Result<()> {
        let mut books = self.books();
        books.who(who)?;
        let tenancy = books.tenancies.get_mut(&index).filter(|t| t.generation == generation);
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
        self.show_opens(core, index, shown);
        if let Some(participant) = books.participants.get_mut(&who) {
            match is_open {
                true => participant.slots.insert(index),
                false => participant.slots.remove(&index),
            };
        }
        self.free_if_unused(&mut books, index);
        counted.map(drop).ok_or_else(|| nonsense("a process closed an event that it had not open"))
    }

    fn new_line(&self, tag: u64, descriptor: i32) -> Result<(u16, u32)> {
        let index = self.books().slots.take().ok_or_else(|| full("exports"))?;
        Ok((index, self.ledger.begin(index, tag, descriptor)))
    }
    fn end_line(&self, index: u16, generation: u32, last: State) {
        let mut books = self.books();
        self.ledger.end(index, generation, last);
        books.slots.give(index);
    }
}

impl Books {
    fn who(&self, participant: u32) -> Result<Who> {
        if participant == EXPORTER {
            return Ok(Who::Exporter);
        }
        let known = self.participants.get(&participant).map(|participant| participant.who);
        known.ok_or_else(|| nonsense("a process asks in the name of one that is gone or never was"))
    }
    /// Whether it may have one more. Others have at most as many as are left: so whoever takes all it can leaves half
    /// of all to the rest, and each refusal is for the one who took so many.
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
    /// A number that no participant has. Numbers begin again after the last: by then nobody remembers them.
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
fn full(what: &str) -> Error {
    let why =
        format!("all {what} of this arena are taken: release some events, queues or exports first");
    Error::new(ErrorKind::Full, why)
}

/// What the broker asks of an arena that this process made.
impl Arena {
    /// The arena's and the ledger's descriptor, to be sent to those whom the policy admits.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] for a joined arena, as of all methods of this block.
    pub fn descriptors(&self) -> Result<(Arc<OwnedFd>, Arc<OwnedFd>)> {
        let own = self.own()?;
        Ok((own.arena_fd.clone(), own.ledger_fd.clone()))
    }
    /// Takes in a process: its number here, which no other has meanwhile.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`], as of all methods of this block.
    pub fn join(&self, pidfd: impl Into<Arc<OwnedFd>>) -> Result<u32> {
        let own = self.own()?;
        let pidfd = pidfd.into();
        let process = Process::behind(&pidfd);
        let mut books = own.books();
        own.tend(&self.0, &mut books, false);
        let number = books.fresh_participant();
        let participant = Participant {
            who: process.map_or(Who::Participant(number), Who::Process),
            pidfd,
            counters: HashSet::new(),
            slots: HashSet::new(),
        };
        books.participants.insert(number, participant);
        Ok(number)
    }
    /// Gives a participant a counter: index and epoch.
    ///
    /// # Errors
    /// [`ErrorKind::Full`]; [`ErrorKind::PeerNonsense`] if there is no such participant.
    pub fn grant_counter(&self, participant: u32) -> Result<(u16, u32)> {
        let (counter, epoch, _) = self.own()?.grant(&self.0, participant)?;
        Ok((counter, epoch))
    }
    /// Takes a counter back, all of whose values were reached.
    ///
    /// # Errors
    /// [`ErrorKind::PeerNonsense`] if it is not that participant's.
    pub fn release_counter(&self, participant: u32, counter: u16) -> Result<()> {
        self.own()?.release_counter(&self.0, participant, counter)
    }
    /// Notes that a participant has this event open once more: it is not reused before that is closed.
    ///
    /// # Errors
    /// [`ErrorKind::PeerNonsense`] if there is no such participant or event.
    pub fn slot_opened(&self, participant: u32, slot: u16, generation: u32) -> Result<()> {
        self.own()?.opens(&self.0, participant, slot, generation, true)
    }
    /// Notes that a participant has it open once less.
    ///
    /// # Errors
    /// [`ErrorKind::PeerNonsense`] if it had not.
    pub fn slot_closed(&self, participant: u32, slot: u16, generation: u32) -> Result<()> {
        self.own()?.opens(&self.0, participant, slot, generation, false)
    }
    /// Who owes this counter's next value, for one who is about to wait for it.
    ///
    /// # Errors
    /// [`ErrorKind::PeerNonsense`] for a number that no counter has.
    pub fn debtor(&self, counter: u16) -> Result<Debtor> {
        let own = self.own()?;
        if !(1..COUNTERS).contains(&counter) {
            return Err(nonsense("a process asks after a counter that cannot be"));
        }
        let books = own.books();
        Ok(match own.ledger.holder(counter).participant {
            Some(EXPORTER) => Debtor::Exporter,
            Some(number) => books
                .participants
                .get(&number)
                .map_or(Debtor::Nobody, |one| Debtor::Participant(number, one.pidfd.clone())),
            None => Debtor::Nobody,
        })
    }
    /// A participant is gone: what it owes fails, what it had open is closed. Its counters come back when its process has
    /// ended and nothing names them.
    pub fn participant_died(&self, participant: u32) {
        let Ok(own) = self.own() else { return };
        self.process_died(participant); // while it is known: only what it holds is looked at
        let mut books = own.books();
        let Some(gone) = own.strike(&mut books, participant) else { return };
        let counters: Vec<_> = gone.counters.iter().copied().collect();
        for counter in &counters {
            own.ledger.hand_over(*counter, None);
        }
        books.limbo.add_departed(gone.who, counters, gone.pidfd);
        own.tend(&self.0, &mut books, false);
    }
    /// A participant says that it uses nothing here any more: what it had open is closed, and counters that did not fail
    /// are free at once, since it had reached all that it promised.
    pub fn participant_left(&self, participant: u32) {
        let Ok(own) = self.own() else { return };
        let mut books = own.books();
        let Some(gone) = own.strike(&mut books, participant) else { return };
        let is_dead = |counter: &u16| self.0.counter(*counter).mark() & DEAD != 0;
        let (dead, settled): (Vec<_>, Vec<_>) = gone.counters.iter().copied().partition(is_dead);
        for counter in settled {
            own.take_back(&self.0, &mut books, counter, gone.who);
        }
        // What it failed and did not give back, a device of its may write still.
        for counter in &dead {
            own.ledger.hand_over(*counter, None);
        }
        books.limbo.add_departed(gone.who, dead, gone.pidfd);
        own.tend(&self.0, &mut books, false);
    }
    /// Looks whether processes have ended whose connections ended before, so that what they held comes back. Whether
    /// some have not.
    pub(crate) fn tend(&self) -> bool {
        let Ok(own) = self.own() else { return false };
        let mut books = own.books();
        books.limbo.ask_after_all(&self.0);
        own.tend(&self.0, &mut books, false);
        books.limbo.has_departed()
    }
    /// A ledger line for one export.
    ///
    /// # Errors
    /// [`ErrorKind::Full`] if all lines of this arena are taken.
    pub fn line(&self, tag: u64, descriptor: i32) -> Result<Line> {
        self.not_inherited()?;
        let (index, generation) = self.own()?.new_line(tag, descriptor)?;
        Ok(Line { arena: self.clone(), index, generation, last: State::Withdrawn })
    }
}

/// An export's line in the ledger. Dropping it withdraws the export; the line is used again late, in another generation.
#[derive(Debug)]
pub struct Line {
    arena: Arena,
    index: u16,
    generation: u32,
    /// What it says when this is dropped, until it is used again.
    last: State,
}
impl Line {
    /// The arena in whose ledger it stands.
    pub fn arena(&self) -> &Arena {
        &self.arena
    }
    /// Which line.
    pub fn index(&self) -> u16 {
        self.index
    }
    /// How often the line was begun; tells this export from the line's earlier ones.
    pub fn generation(&self) -> u32 {
        self.generation
    }
    /// Ends the export because the object was freed.
    pub fn end_freed(mut self) {
        self.last = State::Freed;
    }
}
impl Drop for Line {
    fn drop(&mut self) {
        if let Side::Own(own) = &self.arena.0.side
            && !self.arena.0.is_inherited()
        {
            own.end_line(self.index, self.generation, self.last);
        }
    }
}
/// This process's own arenas, in the order they were made.
#[derive(Default)]
struct Pool {
    arenas: Vec<Arena>,
    made: u32,
}

/// Something from an own arena of this policy, a new arena if all others are full.
fn from_own<T>(access: Access, take: impl Fn(&Arena) -> Result<T>) -> Result<T> {
    static POOL: PerFork<Mutex<Pool>> = PerFork::new();
    let mut pool = POOL.get()?.lock().unwrap_or_else(PoisonError::into_inner);
    let is_meant = |arena: &&Arena| arena.own().is_ok_and(|own| own.access == access);
    for arena in pool.arenas.iter().filter(is_meant) {
        match take(arena) {
            Err(error) if error.kind() == ErrorKind::Full => {}
            done => return done,
        }
    }
    // Arenas that only the pool still has: nobody's event, counter, export or connection. Dead counters go with them.
    pool.arenas.retain(|arena| Arc::strong_count(&arena.0) > 1);
    if pool.arenas.iter().filter(is_meant).count() >= ARENAS {
        let why = format!(
            "this process shares as many events and exports as {ARENAS} arenas hold: release some first"
        );
        return Err(Error::new(ErrorKind::Full, why));
    }
    let arena = Arena::make(access, pool.made)?;
    pool.made += 1;
    let taken = take(&arena);
    pool.arenas.push(arena);
    taken
}

/// A new event in one of this process's own arenas for that policy; complete until it is first signalled.
///
/// # Errors
/// [`ErrorKind::Full`] if all 16 arenas of the policy are full; else why the kernel gave no memory or descriptor.
pub fn slot(access: Access) -> Result<Slot> {
    from_own(access, |arena| {
        let own = arena.own()?;
        if own.books().counters.left() < COUNTERS_FOR_EVENTS {
            return Err(full("counters"));
        }
        let (index, generation) = own.new_slot(&arena.0)?;
        Ok(Slot::new(arena.clone(), index, generation))
    })
}

/// A ledger line for one export of memory, in one of this process's own arenas for that policy.
///
/// # Errors
/// As [`slot`].
pub fn line(access: Access, tag: u64, descriptor: i32) -> Result<Line> {
    from_own(access, |arena| arena.line(tag, descriptor))
}

#[cfg(test)]
mod tests;
