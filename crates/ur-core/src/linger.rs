//! What C released while commands may still use it: it stays until everything that was enqueued
//! before is done. Nothing waits for that; it is looked at when something else comes or goes.
use std::{
    any::Any,
    fmt,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// What was enqueued at some moment.
pub trait Ticket {
    /// Whether all of it is done.
    fn is_over(&self) -> bool;
}
/// What lingers.
pub struct Lingering<T>(Mutex<Vec<(T, Box<dyn Any + Send>)>>);
impl<T: Ticket> Lingering<T> {
    /// Nothing yet.
    #[expect(clippy::new_without_default, reason = "statics are made with it")]
    pub const fn new() -> Self {
        Self(Mutex::new(Vec::new()))
    }
    fn all(&self) -> MutexGuard<'_, Vec<(T, Box<dyn Any + Send>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Drops `what` when the commands of `ticket` are done: now, if they are.
    pub fn leave(&self, ticket: T, what: impl Send + 'static) {
        if ticket.is_over() {
            return drop(what);
        }
        self.all().push((ticket, Box::new(what)));
    }
    /// Drops what nothing uses any more.
    pub fn sweep(&self) {
        let all = std::mem::take(&mut *self.all());
        if all.is_empty() {
            return;
        }
        let (over, left): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|(ticket, _)| ticket.is_over());
        self.all().extend(left);
        drop(over); // the driver's calls, and no lock
    }
}
impl<T: Ticket> fmt::Debug for Lingering<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Lingering({})", self.all().len())
    }
}
