//! A shared event as its holders see it: where signals are published and debts are captured.
use super::{
    counter::Counter,
    layout::{Pair, SLOTS, nonsense, slot_word},
    protocol::{self, Progress, Word},
    shared::{Arena, Side},
    wait::Debt,
};
use crate::{Error, ErrorKind, Result, killpoint, ledger::live};
use std::sync::{
    Arc,
    atomic::{
        AtomicU64,
        Ordering::{AcqRel, Acquire, Release},
    },
};

/// An event's place in an arena; a clone is another hold on the same. Without holds, here and in other processes, the
/// place goes to another event.
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
            return; // the parent's
        }
        match &self.arena.0.side {
            Side::Own(own) => own.slot_released(self.index),
            Side::Joined(joined) => joined.link().slot_closed(self.index, self.generation),
        }
    }
}

/// What a wait that begins now is for.
#[derive(Clone, Debug)]
pub enum Captured {
    /// Nothing: never signalled, or the latest signal is done.
    Complete,
    /// The latest signal, submitted and not done when it was looked at; later ones neither change nor delay it.
    Debt(Debt),
}

/// The error for an event whose place is another's by now.
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
    /// The arena it lies in; whose counters it can name.
    pub fn arena(&self) -> &Arena {
        &self.0.arena
    }
    /// Its number there.
    pub fn index(&self) -> u16 {
        self.0.index
    }
    /// Which of the events that had this place it is.
    pub fn generation(&self) -> u32 {
        self.0.generation
    }
    /// Whether both are the same event.
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
    /// Whether this hold keeps the place from being given to another event: no other process has a say in that, and what
    /// is published here needs no look at the line, and no exchange.
    #[inline]
    fn is_held_by_owner(&self) -> bool {
        let arena = &self.0.arena.0;
        matches!(arena.side, Side::Own(_)) && !arena.is_inherited()
    }
    #[inline]
    fn pair(&self) -> &AtomicU64 {
        self.0.arena.0.words.word(slot_word(self.0.index))
    }
    /// Submits a signal: from here on the event is complete when `counter` reaches `value`, in every process. To be
    /// called when nothing can fail any more. `false` if the place is another event's by now: nobody has this one any
    /// more who could wait for it, and nothing was changed.
    ///
    /// # Panics
    /// If the counter is of another arena: nobody could find it.
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
            // Release: pairs with the Acquire in `capture`. Acquire, where it fails: with the exporter's new line.
            self.pair().compare_exchange(seen, pair.to_word(), AcqRel, Acquire).is_ok()
        };
        let seen = || self.pair().load(Acquire);
        protocol::publish(live(self.0.generation), || self.status(), seen, replace)
    }

    /// What a wait that is submitted now has to wait for. Asks the exporter once for each process whose debts appear,
    /// so that its death will be heard of.
    ///
    /// # Errors
    /// [`ErrorKind::Freed`] if the place is another event's by now; [`ErrorKind::PeerNonsense`] if it names no
    /// counter; [`ErrorKind::Forked`] in a forked child; else why the debtor cannot be watched.
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
                    return Ok(Captured::Debt(Debt::new(arena.clone(), owed, deaths, debtor)));
                }
                // It may have been done and the counter given back in between; else it never will be.
                None if progress() == Progress::Complete => return Ok(Captured::Complete),
                None if progress() == Progress::Failed => {}
                None => return Err(nonsense("an event waits for a counter that nobody has")),
            },
        }
        Ok(Captured::Debt(Debt::new(arena.clone(), owed, deaths, arena.0.participant)))
    }
}

impl Arena {
    /// An event of this joined arena, which the exporter counts as open here; when the last clone is dropped it is
    /// told, once.
    ///
    /// # Errors
    /// [`ErrorKind::Freed`] if the ledger does not know it, or no longer; [`ErrorKind::Unsupported`] for an own arena.
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
