//! What C released while commands may still use it: it stays until everything that was enqueued
//! before is done. Nothing waits for that; it is looked at when something else comes or goes.
use super::{
    driver::Dialect,
    queue::{self, Ticket},
};
use std::{
    any::Any,
    fmt,
    sync::{Mutex, MutexGuard, PoisonError},
};

type Left<D> = (Ticket<D>, Box<dyn Any + Send>);

/// What lingers, of one dialect.
pub struct Lingering<D: Dialect>(Mutex<Vec<Left<D>>>);
impl<D: Dialect> Lingering<D> {
    pub(super) const fn new() -> Self {
        Self(Mutex::new(Vec::new()))
    }
    fn all(&self) -> MutexGuard<'_, Vec<Left<D>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
impl<D: Dialect> fmt::Debug for Lingering<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Lingering({})", self.all().len())
    }
}
/// Drops `what` when the commands in queues of the context with this handle are done: now, if they are.
pub(super) fn leave<D: Dialect>(context: usize, what: impl Send + 'static) {
    sweep::<D>();
    let ticket = queue::ticket::<D>(context);
    if ticket.is_over() {
        return drop(what);
    }
    D::statics().lingering.all().push((ticket, Box::new(what)));
}
/// Drops what nothing uses any more.
pub(super) fn sweep<D: Dialect>() {
    let lingering = &D::statics().lingering;
    let all = std::mem::take(&mut *lingering.all());
    if all.is_empty() {
        return;
    }
    let (over, left): (Vec<_>, Vec<_>) = all.into_iter().partition(|(ticket, _)| ticket.is_over());
    lingering.all().extend(left);
    drop(over); // the driver's calls, and no lock
}
