//! Memory that a queue allocates, and may free, in its order.
use super::totals::Totals;
use std::sync::{Arc, Mutex, MutexGuard};
use ur_lock::locked;

/// Memory that was allocated in queue order, counted in the pool that the caller sees.
#[derive(Debug)]
pub struct Ordered<A> {
    /// `None` after a free in queue order.
    memory: Mutex<Option<A>>,
    bytes: usize,
    totals: Arc<Totals>,
}
impl<A> Ordered<A> {
    /// Counts memory that a queue has allocated.
    pub(crate) fn new(memory: A, bytes: usize, totals: &Arc<Totals>) -> Self {
        totals.take(bytes);
        Self { memory: Mutex::new(Some(memory)), bytes, totals: Arc::clone(totals) }
    }
    /// The driver's memory.
    pub fn memory(&self) -> MutexGuard<'_, Option<A>> {
        locked(&self.memory)
    }
}
impl<A> Drop for Ordered<A> {
    fn drop(&mut self) {
        self.totals.put(self.bytes);
        self.totals.unclaim(self.bytes);
    }
}
