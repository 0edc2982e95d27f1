//! An arena as its users see it: made by this process, or joined. For the arenas made here, `own` records which process
//! holds what; for joined arenas, `joined` makes the requests to the exporter.
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

/// How many returned counters are kept for the next user before they are given back.
pub(super) const IDLE: usize = 64;

/// Counters and slots that processes share, with the ledger that states their owners: an arena made by this process, or
/// one that it joined. Clones refer to the same arena.
#[derive(Clone)]
pub struct Arena(pub(super) Arc<Core>);

/// A weak reference to an arena, for tables that the arena's own link uses.
pub(crate) struct WeakArena(Weak<Core>);
impl WeakArena {
    /// The arena, if it still exists.
    pub fn upgrade(&self) -> Option<Arena> {
        self.0.upgrade().map(Arena)
    }
    /// Whether the arena has been dropped. Takes no strong reference, not even briefly.
    pub fn is_gone(&self) -> bool {
        self.0.strong_count() == 0
    }
}

pub(super) struct Core {
    id: u64,
    /// The fork count of the process that made or joined it: a forked child must not use it.
    pub(super) fork: u64,
    instance: [u8; 16],
    number: u32,
    /// This process's participant number in it.
    pub(super) participant: u32,
    pub(super) words: SharedWords,
    /// Returned counters of this process for its next users, each with its last value. This process does not read back
    /// from shared memory what it wrote itself.
    idle: Mutex<Vec<(u16, u64)>>,
    /// Whether the process that made it has gone, or no longer serves this process.
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
    /// Makes an arena of this process.
    pub(super) fn make(access: Access, number: u32) -> Result<Self> {
        let instance = *identity::instance()?.as_bytes();
        let (words, own) = Own::make(access, instance, number)?;
        Ok(Self::new(instance, number, EXPORTER, words, Side::Own(own)))
    }
    /// Joins another process's arena as `participant`, using `link` and the descriptors that the process sent. The
    /// caller ensures that a process joins an arena only once.
    ///
    /// # Errors
    /// [`ErrorKind::PeerNonsense`] if the descriptors are not the sealed memory of that arena; else the reason why the
    /// kernel would not map them.
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

    /// A weak reference to the arena.
    pub(crate) fn downgrade(&self) -> WeakArena {
        WeakArena(Arc::downgrade(&self.0))
    }
    /// A number that identifies this arena within this process.
    pub fn id(&self) -> u64 {
        self.0.id
    }
    /// The address and size of its memory in this process, for a driver that lets devices access it. The memory stays
    /// mapped as long as the arena exists.
    pub fn memory(&self) -> (usize, usize) {
        let words = self.0.words.words();
        (words.as_ptr().addr(), size_of_val(words))
    }
    /// The instance id of the process whose arena this is.
    pub fn instance(&self) -> [u8; 16] {
        self.0.instance
    }
    /// The number of the arena among those of that process.
    pub fn number(&self) -> u32 {
        self.0.number
    }
    /// This process's participant number in it; the exporter's is 0.
    pub fn participant(&self) -> u32 {
        self.0.participant
    }
    /// Whether the process that made it has gone, or no longer serves this process: then no new counters and events can
    /// be had from it.
    pub fn is_orphaned(&self) -> bool {
        self.0.orphaned.load(Relaxed)
    }
    /// Whether this process made it.
    pub fn is_own(&self) -> bool {
        matches!(self.0.side, Side::Own(_))
    }

    /// Keeps a counter whose values are all complete for the next user. Never waits.
    pub(super) fn put_back(&self, index: u16, value: u64) {
        let mut idle = self.0.idle();
        if idle.len() < IDLE {
            idle.push((index, value));
            return;
        }
        drop(idle);
        self.give_back(index);
    }
    /// Gives a counter back, dead or not. Never waits.
    pub(super) fn give_back(&self, index: u16) {
        match &self.0.side {
            // This cannot fail: the ledger named this process as owner, and only this process writes its ledger.
            Side::Own(own) => {
                let released = own.release_counter(&self.0.words, EXPORTER, index);
                debug_assert!(released.is_ok(), "{released:?}");
            }
            Side::Joined(joined) => joined.link().release_counter(index),
        }
    }

    /// Fails the pending signals of a participant whose process died, and wakes all threads that wait for them. The
    /// exporter does this for all its counters; every other process does it for the counters that it waits for.
    pub fn process_died(&self, participant: u32) {
        let core = &self.0;
        if core.is_inherited() || participant == core.participant {
            return;
        }
        if participant == EXPORTER {
            core.orphaned.store(true, Relaxed);
        }
        match &core.side {
            Side::Own(own) => self.mark_owner_dead(participant, own.counters_of(participant)),
            // An arena ends with its exporter: all of the exporter's counters are examined.
            Side::Joined(joined) if participant == EXPORTER => {
                self.mark_owner_dead(participant, 1..joined.ledger().high_water());
            }
            Side::Joined(joined) => {
                self.mark_owner_dead(participant, joined.awaited_of(participant))
            }
        }
    }
    /// The process that made the arena no longer serves this process. It may be alive, and may still complete its
    /// pending signals.
    pub(crate) fn orphan(&self) {
        self.0.orphaned.store(true, Relaxed);
    }
    fn mark_owner_dead(&self, participant: u32, counters: impl IntoIterator<Item = u16>) {
        let core = &self.0;
        for counter in counters {
            let is_theirs = || core.holder(counter).participant == Some(participant);
            if is_theirs() {
                protocol::mark_owner_dead(&core.counter(counter), is_theirs);
            }
        }
    }

    /// Whether the export of this ledger line still stands; makes no request.
    #[inline]
    pub fn check(&self, line: u16, tag: u64, generation: u32) -> State {
        match &self.0.side {
            Side::Own(own) => own.check(line, tag, generation),
            Side::Joined(joined) => joined.ledger().check(line, tag, generation),
        }
    }

    /// Whether the ledger of a joined arena states that its exporter is alive.
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
