//! The importer's side of an arena: what it asks of the exporter, through a link that the broker's side makes, and
//! whom it watches.
use super::{
    futex::FutexWord,
    layout::{self, COUNTERS, EXPORTER},
    protocol,
};
use crate::{Result, ledger, locked};
use std::{
    collections::{HashMap, HashSet},
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};
use ur_mapping::SharedWords;

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
    /// Sees to it that [`Arena::process_died`](super::Arena::process_died) is called when `participant`, which owes `counter`, dies. `false` if it
    /// is gone already. Asked once for each participant, and never for the exporter: the link itself tells of its end.
    ///
    /// # Errors
    /// If it cannot be watched, and so must not be waited for.
    fn watch(&self, counter: u16, participant: u32) -> Result<bool>;
}

pub(super) struct Joined {
    ledger: ledger::Reader,
    link: Arc<dyn Link>,
    /// The participants whose signals this process has waited for, and which have not died.
    awaited: Mutex<HashMap<u32, Awaited>>,
    /// For a quick answer some of them: participant and counter, by the counter's last bits.
    latest: [AtomicU64; LATEST],
}
/// What this process has waited for of one participant.
#[derive(Default)]
struct Awaited {
    counters: HashSet<u16>,
    /// Whether its death will be heard of.
    is_watched: bool,
}
const LATEST: usize = 64;

impl Joined {
    pub fn new(ledger: ledger::Reader, link: Arc<dyn Link>) -> Self {
        let latest = [const { AtomicU64::new(0) }; LATEST];
        Self { ledger, link, awaited: Mutex::default(), latest }
    }
    pub fn ledger(&self) -> &ledger::Reader {
        &self.ledger
    }
    pub fn link(&self) -> &dyn Link {
        &*self.link
    }
    /// A counter of this process's, and the value to go on from.
    pub fn take_counter(&self, words: &SharedWords, participant: u32) -> Result<(u16, u64)> {
        let (counter, epoch) = self.link.take_counter()?;
        let holder = (1..COUNTERS).contains(&counter).then(|| self.ledger.holder(counter));
        let us = ledger::Holder { participant: Some(participant), epoch };
        if holder != Some(us) {
            return Err(layout::nonsense("an exporter granted a counter which its ledger denies"));
        }
        let start = protocol::value_of(protocol::Word::load(&FutexWord::new(words, counter)));
        if start > layout::TIRED_VALUE {
            return Err(layout::nonsense("a counter was overwritten before its first use"));
        }
        Ok((counter, start))
    }
    fn awaited(&self) -> MutexGuard<'_, HashMap<u32, Awaited>> {
        locked(&self.awaited)
    }
    /// The counters of a participant that died which this process has waited for; it forgets them.
    pub fn awaited_of(&self, participant: u32) -> HashSet<u16> {
        for latest in &self.latest {
            if latest.load(Relaxed) >> 16 == u64::from(participant) {
                latest.store(0, Relaxed);
            }
        }
        self.awaited().remove(&participant).unwrap_or_default().counters
    }
    /// Sees to it that the death of this participant, which owes by that counter, is heard of. `false` if it is gone.
    pub fn watch(&self, counter: u16, participant: u32) -> Result<bool> {
        let latest = &self.latest[usize::from(counter) % LATEST];
        let key = u64::from(participant) << 16 | u64::from(counter);
        if participant == EXPORTER || latest.load(Relaxed) == key {
            return Ok(true);
        }
        let is_watched = {
            let mut awaited = self.awaited();
            let of = awaited.entry(participant).or_default();
            of.counters.insert(counter); // before it is watched, so that its death finds it
            of.is_watched
        };
        if !is_watched {
            match self.link.watch(counter, participant) {
                Ok(true) => {
                    if let Some(of) = self.awaited().get_mut(&participant) {
                        of.is_watched = true;
                    }
                }
                Ok(false) => return Ok(false),
                // The counter stays noted: another thread, which was told that it will be heard of, may wait for it.
                Err(e) => return Err(e),
            }
        }
        latest.store(key, Relaxed);
        Ok(true)
    }
}
