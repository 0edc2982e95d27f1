//! An arena as its holders have it: this process's own, or one that it joined. Which process holds what in an own one is
//! kept in `own`, what a joined one's exporter is asked in `joined`.
use super::{
    futex::FutexWord,
    joined::{Joined, Link},
    layout::{self, EXPORTER},
    memory,
    own::Own,
    protocol,
};
use crate::{
    Access, Error, ErrorKind, Result, fork, identity,
    ledger::{Holder, State},
    locked,
};
use rustix::fd::OwnedFd;
use std::{
    fmt,
    hash::{Hash, Hasher},
    sync::{
        Arc, Mutex, MutexGuard, Weak,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
};
use ur_mapping::SharedWords;

/// So many counters are kept for the next user before they go back.
pub(super) const IDLE: usize = 64;

/// Counters and slots that processes share, with the ledger that says whose they are: this process's own, or one it
/// joined. Clones are the same arena.
#[derive(Clone)]
pub struct Arena(pub(super) Arc<Core>);

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

pub(super) struct Core {
    id: u64,
    /// Of the process that made or joined it: a forked child must keep off.
    pub(super) fork: u64,
    instance: [u8; 16],
    number: u32,
    /// This process's number in it.
    pub(super) participant: u32,
    pub(super) words: SharedWords,
    /// Counters of this process that wait for their next user, each with its last value: what this process did itself
    /// it does not read back from shared memory.
    idle: Mutex<Vec<(u16, u64)>>,
    /// The process that made it is gone, or serves this one no more.
    orphaned: AtomicBool,
    pub(super) side: Side,
}
pub(super) enum Side {
    Own(Own),
    Joined(Joined),
}

impl Core {
    #[inline]
    pub(super) fn counter(&self, counter: u16) -> FutexWord<'_> {
        FutexWord::new(&self.words, counter)
    }
    pub(super) fn holder(&self, counter: u16) -> Holder {
        match &self.side {
            Side::Own(own) => own.ledger().holder(counter),
            Side::Joined(joined) => joined.ledger().holder(counter),
        }
    }
    pub(super) fn idle(&self) -> MutexGuard<'_, Vec<(u16, u64)>> {
        locked(&self.idle)
    }
    #[inline]
    pub(super) fn is_inherited(&self) -> bool {
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
    pub(super) fn make(access: Access, number: u32) -> Result<Self> {
        let instance = *identity::instance()?.as_bytes();
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

    /// A counter whose values were all reached goes to the next user. Never waits.
    pub(super) fn put_back(&self, index: u16, value: u64) {
        let mut idle = self.0.idle();
        if idle.len() < IDLE {
            idle.push((index, value));
            return;
        }
        drop(idle);
        self.give_back(index);
    }
    /// This process does not use the counter any more, whether it is dead or not. Never waits.
    pub(super) fn give_back(&self, index: u16) {
        match &self.0.side {
            // It is ours: the ledger said so when it was taken, and nobody else writes that ledger.
            Side::Own(own) => {
                let released = own.release_counter(&self.0.words, EXPORTER, index);
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

    /// Whether the ledger tells that another process, whose arena it is, lives.
    #[inline]
    pub(crate) fn tells_of_life(&self) -> bool {
        matches!(&self.0.side, Side::Joined(joined) if joined.ledger().tells_of_life())
    }
    pub(super) fn not_inherited(&self) -> Result<()> {
        if self.0.is_inherited() {
            return Err(fork::inherited("the event"));
        }
        Ok(())
    }
    pub(super) fn own(&self) -> Result<&Own> {
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
