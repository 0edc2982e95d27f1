//! The state of this backend's memory in this process, in one place.
use super::{
    LevelZero, foreign,
    memory::{Allocation, Deferred},
    opened,
};
use std::{
    collections::BTreeMap,
    fmt,
    sync::{PoisonError, RwLock},
};
use ur_core::memory::allocations::Allocations;
use ur_core::over_driver::share::OpenedObjects;
use ur_mapping::PerProcess;

/// The state of this backend's memory; empty after a fork.
pub struct Registry {
    store: PerProcess<Store>,
    pub(super) desk: OpenedObjects<LevelZero>,
}
impl Registry {
    const fn new() -> Self {
        Self { store: PerProcess::new(), desk: OpenedObjects::new() }
    }
    /// The store of this process; a forked child gets a new, empty one.
    pub(super) fn get(&self) -> &Store {
        self.store.get()
    }
}
impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registry").finish_non_exhaustive()
    }
}
/// The registry of the process.
pub(super) fn registry() -> &'static Registry {
    static REGISTRY: Registry = Registry::new();
    &REGISTRY
}
/// The state in one process.
#[derive(Default)]
pub(super) struct Store {
    pub(super) ranges: Allocations<Allocation>,
    pub(super) deferred: Deferred,
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
