//! What commands on their way still need: memory and host data are kept until the device is done with them,
//! whatever the user drops meanwhile. And whether one failed, for who finishes the queue. Nothing here waits.
use super::Event;
use crate::Status;
use std::{
    any::Any,
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard},
};
use ur_lock::{locked, unpoisoned};

/// A command on its way, and what it needs.
pub(super) struct Flight {
    pub event: Arc<Event>,
    /// Dropped when the command is done.
    #[expect(dead_code, reason = "kept alive")]
    pub needs: Box<dyn Any + Send>,
}
impl Flight {
    /// Whether the device may still touch what the command needs. Unknown counts as yes.
    fn is_up(&self) -> bool {
        !matches!(self.event.status(), Ok(Status::Complete | Status::Failed))
    }
}

/// What outlived its queue. Looked through whenever a queue is made or dropped.
static STRAYS: Mutex<VecDeque<Flight>> = Mutex::new(VecDeque::new());

/// The commands of one queue that may still be on their way.
#[derive(Default)]
pub(super) struct Flights(Mutex<List>);

#[derive(Default)]
struct List {
    /// Oldest first.
    up: VecDeque<Flight>,
    /// The first that failed and was not told of.
    failed: Option<Arc<Event>>,
}

impl Flights {
    fn lock(&self) -> MutexGuard<'_, List> {
        locked(&self.0)
    }
    /// Notes one more, and lets go of the oldest ones that have landed: two at most, so that submitting stays cheap
    /// and the list still shrinks.
    pub(super) fn add(&self, flight: Flight) {
        let oldest: Vec<_> = {
            let mut list = self.lock();
            let count = list.up.len().min(2);
            list.up.push_back(flight);
            list.up.drain(..count).collect()
        };
        self.put_back(oldest);
    }
    /// Lets go of all that have landed; one that failed, once.
    pub(super) fn sweep(&self) -> Option<Arc<Event>> {
        let all = std::mem::take(&mut self.lock().up);
        self.put_back(all);
        self.lock().failed.take()
    }
    /// Puts back the older ones that are still up. Asked and dropped outside the lock: both call the driver.
    fn put_back(&self, older: impl IntoIterator<Item = Flight>) {
        let (up, landed): (Vec<_>, Vec<_>) = older.into_iter().partition(Flight::is_up);
        let failed = landed.iter().find(|one| matches!(one.event.status(), Ok(Status::Failed)));
        let failed = failed.map(|one| one.event.clone());
        drop(landed);
        if up.is_empty() && failed.is_none() {
            return;
        }
        let mut list = self.lock();
        list.failed = list.failed.take().or(failed);
        up.into_iter().rev().for_each(|flight| list.up.push_front(flight));
    }
}
impl Drop for Flights {
    fn drop(&mut self) {
        let list = unpoisoned(self.0.get_mut());
        let up: Vec<_> = std::mem::take(&mut list.up).into_iter().filter(Flight::is_up).collect();
        if !up.is_empty() {
            locked(&STRAYS).extend(up);
        }
    }
}

/// Lets go of what queues left behind and has landed since.
pub(super) fn sweep_strays() {
    let mut all = std::mem::take(&mut *locked(&STRAYS));
    all.retain(Flight::is_up);
    if !all.is_empty() {
        locked(&STRAYS).extend(all);
    }
}
