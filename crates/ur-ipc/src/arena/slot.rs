//! A shared event as its users see it: signals are published in its slot, and pending signals are captured from it.
use super::{
    counter::Counter,
    layout::{Pair, SLOTS, nonsense, slot_word},
    protocol::{self, Progress, Word},
    shared::{Arena, Side},
    wait::PendingSignal,
};
use crate::{Error, ErrorKind, Result, killpoint, ledger::live};
use std::sync::{
    Arc,
    atomic::{
        AtomicU64,
        Ordering::{AcqRel, Acquire, Release},
    },
};

/// A reference to an event's slot in an arena; a clone refers to the same event. Once there are no references, here and
/// in other processes, the slot is given to another event.
#[derive(Clone, Debug)]
pub struct Slot(Arc<Hold>);

#[derive(Debug)]
struct Hold {
    arena: Arena,
    index: u16,
    generation: u32,
}
impl Drop for Hold {
    fn drop(&mut self) {
        if self.arena.0.is_inherited() {
            return; // it belongs to the parent
        }
        match &self.arena.0.side {
            Side::Own(own) => own.slot_released(self.index),
            Side::Joined(joined) => joined.link().slot_closed(self.index, self.generation),
        }
    }
}

/// What a wait that begins now has to wait for.
#[derive(Clone, Debug)]
pub enum Captured {
    /// Nothing: the event was never signalled, or its latest signal is complete.
    Complete,
    /// The latest signal, which is pending; later signals neither change nor delay it.
    PendingSignal(PendingSignal),
}

/// The error for an event whose slot has been given to another event.
#[cold]
fn stale() -> Error {
    let why =
        "the process that made the event let go of it while this one looked: open its ticket anew";
    Error::new(ErrorKind::Freed, why)
}

impl Slot {
    pub(super) fn new(arena: Arena, index: u16, generation: u32) -> Self {
        Self(Arc::new(Hold { arena, index, generation }))
    }
    /// The arena that the slot is in, whose counters the event can name.
    pub fn arena(&self) -> &Arena {
        &self.0.arena
    }
    /// The slot's number in the arena.
    pub fn index(&self) -> u16 {
        self.0.index
    }
    /// The slot's generation, which distinguishes the events that have used it.
    pub fn generation(&self) -> u32 {
        self.0.generation
    }
    /// Whether both refer to the same event.
    pub fn same(&self, other: &Self) -> bool {
        let (a, b) = (&*self.0, &*other.0);
        a.arena == b.arena && a.index == b.index && a.generation == b.generation
    }

    fn status(&self) -> u64 {
        match &self.0.arena.0.side {
            Side::Own(own) => own.ledger().status(self.0.index),
            Side::Joined(joined) => joined.ledger().status(self.0.index),
        }
    }
    /// Whether this process made the arena, so that this reference alone keeps the slot from being given to another
    /// event. Publishing then needs neither a check of the line nor an exchange.
    #[inline]
    fn is_held_by_owner(&self) -> bool {
        let arena = &self.0.arena.0;
        matches!(arena.side, Side::Own(_)) && !arena.is_inherited()
    }
    #[inline]
    fn pair(&self) -> &AtomicU64 {
        self.0.arena.0.words.word(slot_word(self.0.index))
    }
    /// Submits a signal: from now on the event is complete, in every process, when `counter` reaches `value`. To be
    /// called when nothing can fail any more. Returns `false`, and changes nothing, if the slot has been given to
    /// another event: then no process that could wait still has this event.
    ///
    /// # Panics
    /// If the counter is from another arena, where other processes could not find it.
    #[inline]
    pub fn publish(&self, counter: &Counter, value: u64) -> bool {
        assert!(*counter.arena() == self.0.arena, "an event names counters of its own arena only");
        killpoint::reach("publish.before");
        let pair = Pair { counter: counter.index(), value };
        if self.is_held_by_owner() {
            self.pair().store(pair.to_word(), Release); // pairs with the Acquire in `capture`
            return true;
        }
        let replace = |seen: u64| {
            killpoint::reach("publish.before_exchange");
            // Release: pairs with the Acquire in `capture`. Acquire on failure: pairs with the exporter's new line.
            self.pair().compare_exchange(seen, pair.to_word(), AcqRel, Acquire).is_ok()
        };
        let seen = || self.pair().load(Acquire);
        protocol::publish(live(self.0.generation), || self.status(), seen, replace)
    }

    /// Captures what a wait that is submitted now has to wait for. Asks the exporter once for each process whose
    /// signals are captured, so that the death of that process is reported.
    ///
    /// # Errors
    /// [`ErrorKind::Freed`] if the slot has been given to another event; [`ErrorKind::PeerNonsense`] if it names no
    /// valid counter; [`ErrorKind::Forked`] in a forked child; else the reason why the signalling process cannot be
    /// watched.
    pub fn capture(&self) -> Result<Captured> {
        let Hold { arena, generation, .. } = &*self.0;
        arena.not_inherited()?;
        let deaths = |pair: u64| match Pair::from_word(pair) {
            Ok(Some(pair)) => protocol::deaths_of(arena.0.counter(pair.counter).mark()),
            _ => 0,
        };
        let pair = || self.pair().load(Acquire);
        let captured = protocol::capture(live(*generation), || self.status(), pair, deaths)
            .ok_or_else(stale)?;
        let (pair, deaths) = captured;
        let Some(Pair { counter, value }) = Pair::from_word(pair)? else {
            return Ok(Captured::Complete);
        };
        let owed = (counter, value);
        let progress = || {
            let word = arena.0.counter(counter);
            protocol::judge(&word, word.load(), value, deaths)
        };
        match progress() {
            Progress::Complete => return Ok(Captured::Complete),
            Progress::Failed => {}
            Progress::Pending => match arena.0.holder(counter).participant {
                Some(debtor) => {
                    if let Side::Joined(joined) = &arena.0.side
                        && debtor != arena.0.participant
                        && !joined.watch(counter, debtor)?
                    {
                        arena.process_died(debtor);
                    }
                    return Ok(Captured::PendingSignal(PendingSignal::new(
                        arena.clone(),
                        owed,
                        deaths,
                        debtor,
                    )));
                }
                // It may have completed, and the counter been returned, in between; or it failed.
                None if progress() == Progress::Complete => return Ok(Captured::Complete),
                None if progress() == Progress::Failed => {}
                None => return Err(nonsense("an event waits for a counter that nobody has")),
            },
        }
        Ok(Captured::PendingSignal(PendingSignal::new(
            arena.clone(),
            owed,
            deaths,
            arena.0.participant,
        )))
    }
}

impl Arena {
    /// An event of this joined arena, which the exporter counts as open here. The exporter is told once, when the last
    /// clone is dropped.
    ///
    /// # Errors
    /// [`ErrorKind::Freed`] if the ledger does not have this generation of it; [`ErrorKind::Unsupported`] for an arena
    /// of this process.
    pub fn open_slot(&self, index: u16, generation: u32) -> Result<Slot> {
        self.not_inherited()?;
        let Side::Joined(joined) = &self.0.side else {
            let why = "an event of this process needs no opening: clone it";
            return Err(Error::new(ErrorKind::Unsupported, why));
        };
        if index >= SLOTS {
            return Err(nonsense("an event's number is out of range"));
        }
        if joined.ledger().status(index) != live(generation) {
            return Err(stale());
        }
        Ok(Slot::new(self.clone(), index, generation))
    }
}
