//! Memory that a queue allocates, and may free, in its order.
use super::totals::Totals;
use std::sync::{Arc, Mutex, MutexGuard};
use ur_adapter::error::Result;
use ur_lock::locked;

/// Memory that was allocated in queue order, counted in the pool that the caller sees.
#[derive(Debug)]
pub struct Ordered<A> {
    /// `None` before the queue has allocated it, and after a free in queue order.
    memory: Mutex<Option<A>>,
    bytes: usize,
    totals: Arc<Totals>,
}
impl<A> Ordered<A> {
    /// Counts memory that is about to be allocated.
    ///
    /// # Errors
    /// `OUT_OF_RESOURCES` beyond the maximum of `totals`.
    pub(crate) fn claim(bytes: usize, totals: &Arc<Totals>) -> Result<Self> {
        totals.claim(bytes)?;
        totals.take(bytes);
        Ok(Self { memory: Mutex::new(None), bytes, totals: Arc::clone(totals) })
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
