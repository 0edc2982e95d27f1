//! The importer's side of an arena: what it asks of the exporter, through a link that the broker's side makes, and
//! whom it watches.
use super::{Arena, Core, EXPORTER, Side, Slot, layout, layout::COUNTERS, protocol};
use crate::{Error, ErrorKind, Result, ledger};
use std::{
    collections::HashSet,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU32, Ordering::Relaxed},
    },
};

/// How a joined arena reaches the process that made it. Called under no lock. Who implements it holds the arena weakly,
/// if at all: the arena holds the link.
pub trait Link: Send + Sync {
    /// Asks for a counter: index and epoch.
    ///
    /// # Errors
    /// What goes wrong between the processes, within a deadline.
    fn take_counter(&self) -> Result<(u16, u32)>;
    /// Gives a counter back. Never waits; if it cannot be said, the counter ends with this process.
    fn release_counter(&self, counter: u16);
    /// Says that an event is open here once less. Never waits.
    fn slot_closed(&self, slot: u16, generation: u32);
    /// Sees to it that [`Arena::process_died`] is called when `participant`, which owes `counter`, dies. `false` if it
    /// is gone already. Asked once for each participant, and never for the exporter: the link itself tells of its end.
    ///
    /// # Errors
    /// If it cannot be watched, and so must not be waited for.
    fn watch(&self, counter: u16, participant: u32) -> Result<bool>;
}

pub(super) struct Joined {
    ledger: ledger::Reader,
    link: Arc<dyn Link>,
    /// The participants whose death will be heard of, and for a quick answer the latest of them.
    watched: Mutex<HashSet<u32>>,
    latest: AtomicU32,
}

impl Joined {
    pub fn new(ledger: ledger::Reader, link: Arc<dyn Link>) -> Self {
        Self { ledger, link, watched: Mutex::default(), latest: AtomicU32::new(EXPORTER) }
    }
    pub fn ledger(&self) -> &ledger::Reader {
        &self.ledger
    }
    pub fn link(&self) -> &dyn Link {
        &*self.link
    }
    /// A counter of this process's, and the value to go on from.
    pub fn take_counter(&self, core: &Core) -> Result<(u16, u64)> {
        let (counter, epoch) = self.link.take_counter()?;
        let holder = (1..COUNTERS).contains(&counter).then(|| self.ledger.holder(counter));
        let us = ledger::Holder { participant: Some(core.participant), epoch };
        if holder != Some(us) {
            return Err(layout::nonsense("an exporter granted a counter which its ledger denies"));
        }
        let start = protocol::value_of(protocol::Word::load(&core.counter(counter)));
        if start > layout::TIRED_VALUE {
            return Err(layout::nonsense("a counter was overwritten before its first use"));
        }
        Ok((counter, start))
    }
    /// Sees to it that the death of this participant is heard of.
    pub fn watch(&self, arena: &Arena, counter: u16, participant: u32) -> Result<()> {
        if participant == EXPORTER || participant == self.latest.load(Relaxed) {
            return Ok(());
        }
        let watched = || self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        if !watched().contains(&participant) {
            if !self.link.watch(counter, participant)? {
                arena.process_died(participant);
            }
            watched().insert(participant);
        }
        self.latest.store(participant, Relaxed);
        Ok(())
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
        if index >= layout::SLOTS {
            return Err(layout::nonsense("an event's number is out of range"));
        }
        if joined.ledger.status(index) != ledger::live(generation) {
            return Err(super::slot::stale());
        }
        Ok(Slot::new(self.clone(), index, generation))
    }
}
