//! Commands in flight: the memory and host data that they need are kept until the device has finished with them,
//! whatever the user drops. Also records whether a command failed, for the thread that finishes the queue. Nothing here
//! waits.
use super::Event;
use crate::Status;
use std::{
    any::Any,
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard},
};
use ur_lock::{locked, unpoisoned};

/// A command in flight and what it needs.
pub(super) struct Flight {
    pub event: Arc<Event>,
    /// Dropped when the command is done.
    #[expect(dead_code, reason = "kept alive")]
    pub needs: Box<dyn Any + Send>,
}
impl Flight {
    /// Whether the device may still access what the command needs. An unknown status counts as yes.
    fn is_up(&self) -> bool {
        !matches!(self.event.status(), Ok(Status::Complete | Status::Failed))
    }
}

/// Commands that outlived their queue. They are checked whenever a queue is made or dropped.
static STRAYS: Mutex<VecDeque<Flight>> = Mutex::new(VecDeque::new());

/// The commands of one queue that may still be in flight.
#[derive(Default)]
pub(super) struct Flights(Mutex<List>);

#[derive(Default)]
struct List {
    /// Oldest first.
    up: VecDeque<Flight>,
    /// The first command that failed and was not reported yet.
    failed: Option<Arc<Event>>,
}

impl Flights {
    fn lock(&self) -> MutexGuard<'_, List> {
        locked(&self.0)
    }
    /// Adds a command, and releases the oldest ones that are done: at most two, so that submitting stays cheap and the
    /// list still shrinks.
    pub(super) fn add(&self, flight: Flight) {
        let oldest: Vec<_> = {
            let mut list = self.lock();
            let count = list.up.len().min(2);
            list.up.push_back(flight);
            list.up.drain(..count).collect()
        };
        self.put_back(oldest);
    }
    /// Releases all commands that are done. Returns the event of one that failed since the last call, if any.
    pub(super) fn sweep(&self) -> Option<Arc<Event>> {
        let all = std::mem::take(&mut self.lock().up);
        self.put_back(all);
        self.lock().failed.take()
    }
    /// Puts back those that are still in flight. Status queries and drops happen outside the lock, because both call
    /// the driver.
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

/// Releases commands left behind by queues that are done by now.
pub(super) fn sweep_strays() {
    let mut all = std::mem::take(&mut *locked(&STRAYS));
    all.retain(Flight::is_up);
    if !all.is_empty() {
        locked(&STRAYS).extend(all);
    }
}
