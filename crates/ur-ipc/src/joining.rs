//! What a joined arena needs from outside: the connection to its exporter, and the watching of third processes that
//! have signals pending in it. `fetch` makes the requests.
use crate::{
    Result,
    arena::{Link, WeakArena},
    fetch::Held,
    fork::PerFork,
    liveness::{self, Source},
    locked,
    protocol::Request,
};
use rustix::event::epoll::EventFlags;
use std::{collections::HashMap, os::fd::OwnedFd, sync::Mutex};

/// All third processes that this process watches.
#[derive(Default)]
struct Debtors {
    watched: HashMap<u64, WatchedDebtor>,
    next: u64,
}
struct WatchedDebtor {
    pidfd: OwnedFd,
    arena: WeakArena,
    participant: u32,
}
static DEBTORS: PerFork<Mutex<Debtors>> = PerFork::new();

impl Debtors {
    /// Stops watching the processes whose arena has been dropped.
    fn forget(&mut self) {
        let stale = self.watched.extract_if(|_, watched| watched.arena.is_gone());
        stale.for_each(|(_, watched)| liveness::unwatch(&watched.pidfd));
    }
}

/// How a joined arena makes requests to its exporter.
pub(crate) struct Joining {
    pub host: Held,
    pub arena: u32,
    /// This process's participant number in the arena.
    pub participant: u32,
}
impl Link for Joining {
    fn take_counter(&self) -> Result<(u16, u32)> {
        self.host.take_counter(self.arena, self.participant)
    }
    fn release_counter(&self, counter: u16) {
        self.host.tell(Request::ReleaseCounter {
            ledger: self.arena,
            participant: self.participant,
            counter,
        });
    }
    fn slot_closed(&self, slot: u16, generation: u32) {
        self.host.tell(Request::SlotClosed {
            ledger: self.arena,
            participant: self.participant,
            slot,
            generation,
        });
    }
    fn watch(&self, counter: u16, participant: u32) -> Result<bool> {
        let request =
            Request::Debtor { ledger: self.arena, participant: self.participant, counter };
        let (answer, came) = self.host.ask(&request)?;
        let Some(pidfd) = came.into_iter().next().filter(|_| answer.participant == participant)
        else {
            return Ok(false); // the counter has changed owners: it was completed, or its owner died
        };
        let Some(arena) = self.host.arena(self.arena) else { return Ok(false) };
        let mut debtors = locked(DEBTORS.get()?);
        debtors.next += 1;
        let id = debtors.next;
        liveness::watch(Source::Debtor(id), &pidfd, EventFlags::IN)?;
        debtors.forget();
        debtors.watched.insert(id, WatchedDebtor { pidfd, arena: arena.downgrade(), participant });
        drop(debtors); // before the arena is dropped
        Ok(true)
    }
}

impl Drop for Joining {
    /// Leaves the arena, which was the only owner of this link.
    fn drop(&mut self) {
        self.host.tell(Request::Leave { ledger: self.arena, participant: self.participant });
        if let Some(debtors) = DEBTORS.peek() {
            locked(debtors).forget();
        }
    }
}

/// Handles the death of a third process that had a signal pending in a joined arena.
pub(crate) fn gone(id: u64) {
    let watched = DEBTORS.peek().and_then(|debtors| locked(debtors).watched.remove(&id));
    if let Some(WatchedDebtor { pidfd, arena, participant }) = watched {
        liveness::unwatch(&pidfd);
        if let Some(arena) = arena.upgrade() {
            arena.process_died(participant);
        }
    }
}
