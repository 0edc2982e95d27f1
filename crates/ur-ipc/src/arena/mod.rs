//! Events between processes: a shared event is a pair (counter, value), a signal is one store, and waiting is a futex
//! on the counter. Here: arenas, slots, counters, debts, and what a death does to them. How an arena's descriptors
//! travel, and how one hears of a death, is left to the broker and to `liveness`.
mod counter;
mod joined;
pub(crate) mod layout;
mod limbo;
mod many;
mod memory;
mod own;
mod pace;
#[doc(hidden)]
pub mod protocol;
#[cfg(test)]
mod sessions;
mod slot;
mod spin;
pub(crate) mod streams;
#[cfg(test)]
mod tests;
mod wait;

pub use counter::Counter;
pub use joined::Link;
pub use many::{Any, LocalWake, wait_any};
pub use own::{Debtor, Line, line, slot};
pub use protocol::Progress;
pub use slot::{Captured, Slot};
pub use streams::DeviceWait;
pub use wait::Debt;

use crate::{
    Access, Error, ErrorKind, Result, fork,
    ledger::{Holder, State},
};
use joined::Joined;
use own::Own;
use protocol::Word;
use rustix::fd::OwnedFd;
use std::{
    fmt,
    hash::{Hash, Hasher},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
};
use ur_mapping::SharedWords;
use wait::FutexWord;

/// The exporter's number in its own arenas.
pub(crate) const EXPORTER: u32 = 0;
/// So many counters are kept for the next user before they go back.
const IDLE: usize = 64;

/// Counters and slots that processes share, with the ledger that says whose they are: this process's own, or one it
/// joined. Clones are the same arena.
#[derive(Clone)]
pub struct Arena(Arc<Core>);

/// An arena that lives only as long as others hold it: for tables of what an arena's own link reaches.
pub(crate) struct WeakArena(Weak<Core>);
impl WeakArena {
    /// The arena, if anybody still holds it.
    pub fn upgrade(&self) -> Option<Arena> {
        self.0.upgrade().map(Arena)
    }
    /// Whether nobody does. Takes no hold, not for an instant.
    pub fn is_gone(&self) -> bool {
        self.0.strong_count() == 0
    }
}

struct Core {
    id: u64,
    /// Of the process that made or joined it: a forked child must keep off.
    fork: u64,
    instance: [u8; 16],
    number: u32,
    /// This process's number in it.
    participant: u32,
    words: SharedWords,
    /// Counters of this process that wait for their next user, each with its last value: what this process did itself
    /// it does not read back from shared memory.
    idle: Mutex<Vec<(u16, u64)>>,
    /// The process that made it is gone, or serves this one no more.
    orphaned: AtomicBool,
    side: Side,
}
enum Side {
    Own(Own),
    Joined(Joined),
}

impl Core {
    #[inline]
    fn counter(&self, counter: u16) -> FutexWord<'_> {
        FutexWord::new(&self.words, counter)
    }
    fn holder(&self, counter: u16) -> Holder {
        match &self.side {
            Side::Own(own) => own.ledger().holder(counter),
            Side::Joined(joined) => joined.ledger().holder(counter),
        }
    }
    fn idle(&self) -> MutexGuard<'_, Vec<(u16, u64)>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
    #[inline]
    fn is_inherited(&self) -> bool {
        self.fork != ur_mapping::fork_count()
    }
}

impl Arena {
    fn new(instance: [u8; 16], number: u32, us: u32, words: SharedWords, side: Side) -> Self {
        static IDS: AtomicU64 = AtomicU64::new(1);
        Self(Arc::new(Core {
            id: IDS.fetch_add(1, Relaxed),
            fork: ur_mapping::fork_count(),
            instance,
            number,
            participant: us,
            words,
            idle: Mutex::default(),
            orphaned: AtomicBool::new(false),
            side,
        }))
    }
    /// Makes one of this process's own.
    fn make(access: Access, number: u32) -> Result<Self> {
        let instance = *crate::identity::instance()?.as_bytes();
        let (words, own) = Own::make(access, instance, number)?;
        Ok(Self::new(instance, number, EXPORTER, words, Side::Own(own)))
    }
    /// Joins another process's arena, as `participant` and over `link`, with the descriptors which that process sent.
    /// Once a process for each arena; the caller sees to it.
    ///
    /// # Errors
    /// [`ErrorKind::PeerNonsense`] if the descriptors are not the sealed memory of that arena; else why the kernel
    /// would not map them.
    pub fn joined(
        arena: &OwnedFd,
        ledger: &OwnedFd,
        instance: [u8; 16],
        number: u32,
        participant: u32,
        link: Arc<dyn Link>,
    ) -> Result<Self> {
        if participant == EXPORTER || participant == u32::MAX {
            return Err(layout::nonsense("an exporter gave this process a number that cannot be"));
        }
        let (words, ledger) = memory::map(arena, ledger, instance, number)?;
        let joined = Side::Joined(Joined::new(ledger, link));
        Ok(Self::new(instance, number, participant, words, joined))
    }

    /// The same without holding it.
    pub(crate) fn downgrade(&self) -> WeakArena {
        WeakArena(Arc::downgrade(&self.0))
    }
    /// Tells this arena from all others that this process has, for as long as it runs.
    pub fn id(&self) -> u64 {
        self.0.id
    }
    /// Where its memory is in this process, and how many bytes it has: for a driver that lets devices reach it. The
    /// memory is there for as long as this.
    pub fn memory(&self) -> (usize, usize) {
        let words = self.0.words.words();
        (words.as_ptr().addr(), size_of_val(words))
    }
    /// The instance id of the process whose arena this is.
    pub fn instance(&self) -> [u8; 16] {
        self.0.instance
    }
    /// Which of that process's arenas it is.
    pub fn number(&self) -> u32 {
        self.0.number
    }
    /// This process's number in it; the exporter's is 0.
    pub fn participant(&self) -> u32 {
        self.0.participant
    }
    /// Whether the process that made it is gone, or serves this one no more: then there are no new counters in it, and
    /// no new events.
    pub fn is_orphaned(&self) -> bool {
        self.0.orphaned.load(Relaxed)
    }
    /// Whether this process made it.
    pub fn is_own(&self) -> bool {
        matches!(self.0.side, Side::Own(_))
    }

    /// A counter for one queue, or for one command. Slots of this arena can name it, and only they.
    ///
    /// # Errors
    /// [`ErrorKind::Full`] if all are taken; in a joined arena also what goes wrong when the exporter is asked.
    /// [`ErrorKind::Forked`] in a forked child.
    pub fn take_counter(&self) -> Result<Counter> {
        self.not_inherited()?;
        let idle = loop {
            match self.0.idle().pop() {
                // Whoever took this process for dead has failed it; it stays so.
                Some((index, _)) if self.0.counter(index).mark() & protocol::DEAD != 0 => {
                    self.give_back(index);
                }
                idle => break idle,
            }
        };
        let (index, value) = match (idle, &self.0.side) {
            (Some(idle), _) => idle,
            (None, Side::Own(own)) => own.take_counter(&self.0)?,
            (None, Side::Joined(joined)) => joined.take_counter(&self.0)?,
        };
        Ok(Counter::new(self.clone(), index, value))
    }
    /// A counter whose values were all reached goes to the next user. Never waits.
    fn put_back(&self, index: u16, value: u64) {
        let mut idle = self.0.idle();
        if idle.len() < IDLE {
            idle.push((index, value));
            return;
        }
        drop(idle);
        self.give_back(index);
    }
    /// This process does not use the counter any more, whether it is dead or not. Never waits.
    fn give_back(&self, index: u16) {
        match &self.0.side {
            // It is ours: the ledger said so when it was taken, and nobody else writes that ledger.
            Side::Own(own) => {
                let released = own.release_counter(&self.0, EXPORTER, index);
                debug_assert!(released.is_ok(), "{released:?}");
            }
            Side::Joined(joined) => joined.link().release_counter(index),
        }
    }

    /// Fails whatever this participant still owes here, and wakes everybody who waits for it: to be called when its
    /// process died. The exporter does it for everybody; each process that waits for it, for what it waits for.
    pub fn process_died(&self, participant: u32) {
        let core = &self.0;
        if core.is_inherited() || participant == core.participant {
            return;
        }
        if participant == EXPORTER {
            core.orphaned.store(true, Relaxed);
        }
        match &core.side {
            Side::Own(own) => self.bury(participant, own.counters_of(participant)),
            // With its exporter the arena ends: whatever it owed there, to whomever.
            Side::Joined(joined) if participant == EXPORTER => {
                self.bury(participant, 1..joined.ledger().high_water());
            }
            Side::Joined(joined) => self.bury(participant, joined.awaited_of(participant)),
        }
    }
    /// The process that made it serves this one no more, and may live: what it owes here it may still complete.
    pub(crate) fn orphan(&self) {
        self.0.orphaned.store(true, Relaxed);
    }
    fn bury(&self, participant: u32, counters: impl IntoIterator<Item = u16>) {
        let core = &self.0;
        for counter in counters {
            let is_theirs = || core.holder(counter).participant == Some(participant);
            if is_theirs() {
                protocol::bury(&core.counter(counter), is_theirs);
            }
        }
    }

    /// Whether the export still stands that got this ledger line; without asking anybody.
    #[inline]
    pub fn check(&self, line: u16, tag: u64, generation: u32) -> State {
        match &self.0.side {
            Side::Own(own) => own.check(line, tag, generation),
            Side::Joined(joined) => joined.ledger().check(line, tag, generation),
        }
    }

    fn not_inherited(&self) -> Result<()> {
        if self.0.is_inherited() {
            return Err(fork::inherited("the event"));
        }
        Ok(())
    }
    fn own(&self) -> Result<&Own> {
        match &self.0.side {
            Side::Own(own) => Ok(own),
            Side::Joined(_) => Err(Error::new(
                ErrorKind::Unsupported,
                "the event is another process's, which alone can share it further",
            )),
        }
    }
}

impl PartialEq for Arena {
    fn eq(&self, other: &Self) -> bool {
        self.0.id == other.0.id
    }
}
impl Eq for Arena {}
impl Hash for Arena {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.id.hash(state);
    }
}
impl fmt::Debug for Arena {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whose = if self.is_own() { "own" } else { "joined" };
        write!(f, "Arena({}, {whose} {}, as {})", self.0.id, self.0.number, self.0.participant)
    }
}
