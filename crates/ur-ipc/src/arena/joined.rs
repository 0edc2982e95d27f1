//! The importer's side of an arena: its requests to the exporter, through a link that `joining` provides, and the
//! participants that it watches.
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

/// How a joined arena makes requests to the process that made it. It is called with no lock held. An implementation may
/// hold the arena only weakly, because the arena holds the link.
pub trait Link: Send + Sync {
    /// Requests a counter; returns its index and epoch.
    ///
    /// # Errors
    /// Returns errors of the exchange between the processes, at the latest after a deadline.
    fn take_counter(&self) -> Result<(u16, u32)>;
    /// Returns a counter. It never waits; if the message cannot be sent, the counter is freed when this process ends.
    fn release_counter(&self, counter: u16);
    /// Reports that one open of the event has ended. It never waits.
    fn slot_closed(&self, slot: u16, generation: u32);
    /// Arranges that [`Arena::process_died`](super::Arena::process_died) is called when `participant`, which is to
    /// complete `counter`, dies. Returns `false` if it has gone already. It is called once for each participant, and
    /// never for the exporter, whose end the link itself reports.
    ///
    /// # Errors
    /// If the participant cannot be watched and thus must not be waited for.
    fn watch(&self, counter: u16, participant: u32) -> Result<bool>;
}

pub(super) struct Joined {
    ledger: ledger::Reader,
    link: Arc<dyn Link>,
    /// The living participants whose signals this process has waited for.
    awaited: Mutex<HashMap<u32, Awaited>>,
    /// A cache of some of them for a quick answer: participant and counter, indexed by the counter's low bits.
    latest: [AtomicU64; LATEST],
}
/// What this process has waited for from one participant.
#[derive(Default)]
struct Awaited {
    counters: HashSet<u16>,
    /// Whether the link reports its death.
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
    /// Takes a counter for this process; returns its index and its current value.
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
    /// Removes and returns the counters of a dead participant that this process has waited for.
    pub fn awaited_of(&self, participant: u32) -> HashSet<u16> {
        for latest in &self.latest {
            if latest.load(Relaxed) >> 16 == u64::from(participant) {
                latest.store(0, Relaxed);
            }
        }
        self.awaited().remove(&participant).unwrap_or_default().counters
    }
    /// Arranges that the death of this participant, which is to complete `counter`, is reported. `false` if it has
    /// gone.
    pub fn watch(&self, counter: u16, participant: u32) -> Result<bool> {
        let latest = &self.latest[usize::from(counter) % LATEST];
        let key = u64::from(participant) << 16 | u64::from(counter);
        if participant == EXPORTER || latest.load(Relaxed) == key {
            return Ok(true);
        }
        let is_watched = {
            let mut awaited = self.awaited();
            let of = awaited.entry(participant).or_default();
            of.counters.insert(counter); // before it is watched, so that its death finds the counter
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
                // The counter stays recorded: another thread may wait for it that was told that the death will be
                // reported.
                Err(e) => return Err(e),
            }
        }
        latest.store(key, Relaxed);
        Ok(true)
    }
}
