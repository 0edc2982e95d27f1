//! What commands on their way still need: memory and host data are kept until the device is done with them,
//! whatever the user drops meanwhile. Nothing here waits.
use super::Event;
use crate::Status;
use std::{
    any::Any,
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
};

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

/// The commands of one queue that may still be on their way, oldest first.
#[derive(Default)]
pub(super) struct Flights(Mutex<VecDeque<Flight>>);

impl Flights {
    /// Notes one more, and lets go of the oldest ones that have landed: two at most, so that submitting stays cheap
    /// and the list still shrinks.
    pub(super) fn add(&self, flight: Flight) {
        let mut oldest = Vec::new();
        {
            let mut list = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            list.push_back(flight);
            oldest
                .extend((0..2).map_while(|_| if list.len() > 1 { list.pop_front() } else { None }));
        }
        // Asked and dropped outside the lock: both call the driver.
        oldest.retain(Flight::is_up);
        if !oldest.is_empty() {
            let mut list = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            oldest.into_iter().rev().for_each(|flight| list.push_front(flight));
        }
    }
    /// Lets go of all that have landed.
    pub(super) fn sweep(&self) {
        sweep(&self.0);
    }
}
impl Drop for Flights {
    fn drop(&mut self) {
        let list = self.0.get_mut().unwrap_or_else(PoisonError::into_inner);
        let up: VecDeque<_> = std::mem::take(list).into_iter().filter(Flight::is_up).collect();
        if !up.is_empty() {
            STRAYS.lock().unwrap_or_else(PoisonError::into_inner).extend(up);
        }
    }
}

/// Lets go of what queues left behind and has landed since.
pub(super) fn sweep_strays() {
    sweep(&STRAYS);
}

fn sweep(list: &Mutex<VecDeque<Flight>>) {
    let mut all = std::mem::take(&mut *list.lock().unwrap_or_else(PoisonError::into_inner));
    all.retain(Flight::is_up);
    if !all.is_empty() {
        let mut list = list.lock().unwrap_or_else(PoisonError::into_inner);
        all.into_iter().rev().for_each(|flight| list.push_front(flight));
    }
}
