//! The state of this backend's memory in this process, in one place.
use super::{foreign, memory::Memory, opened};
use std::{
    collections::BTreeMap,
    sync::{PoisonError, RwLock},
};
use ur_core::memory::allocation::OfProcess;
use ur_mapping::PerProcess;

/// The store of this process; a forked child gets a new, empty one.
pub(super) fn registry() -> &'static Store {
    static STORE: PerProcess<Store> = PerProcess::new();
    STORE.get()
}
/// The state in one process.
#[derive(Default)]
pub(super) struct Store {
    pub(super) memory: OfProcess<Memory>,
    pub(super) foreign: foreign::All,
    /// Driver allocations opened from other processes.
    pub(super) open: opened::Open,
    /// Address ranges that this adapter reserved or allocated, allocated to the application or not: length in
    /// bytes by start address.
    pieces: RwLock<BTreeMap<usize, usize>>,
}
impl Store {
    /// Records that the `bytes` addresses from `at` on belong to this adapter.
    pub(super) fn claim(&self, at: usize, bytes: usize) {
        self.pieces.write().unwrap_or_else(PoisonError::into_inner).insert(at, bytes);
    }
    /// Removes the range that starts at `at`.
    pub(super) fn give_up(&self, at: usize) {
        self.pieces.write().unwrap_or_else(PoisonError::into_inner).remove(&at);
    }
    /// Whether the address belongs to this adapter, in an allocation or not. The driver is not queried for
    /// such addresses.
    pub(super) fn has(&self, at: usize) -> bool {
        let pieces = self.pieces.read().unwrap_or_else(PoisonError::into_inner);
        let (start, bytes) = pieces.range(..=at).next_back().map_or((0, 0), |(&s, &b)| (s, b));
        at - start < bytes
    }
}
