//! Everything that a process knows of this driver's memory, in one place.
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
use ur_adapter::per_process::PerProcess;
use ur_core::memory::allocations::Allocations;
use ur_core::over_driver::share::OpenedObjects;

/// Everything that a process knows of the driver's memory.
pub struct Registry {
    store: PerProcess<Store>,
    pub(super) desk: OpenedObjects<LevelZero>,
}
impl Registry {
    const fn new() -> Self {
        Self { store: PerProcess::new(), desk: OpenedObjects::new() }
    }
    /// This process's: a forked child finds an empty one.
    pub(super) fn get(&self) -> &Store {
        self.store.get()
    }
}
impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registry").finish_non_exhaustive()
    }
}
/// The one registry.
pub(super) fn registry() -> &'static Registry {
    static REGISTRY: Registry = Registry::new();
    &REGISTRY
}
/// What is known in one process.
#[derive(Default)]
pub(super) struct Store {
    pub(super) ranges: Allocations<Allocation>,
    pub(super) deferred: Deferred,
    pub(super) foreign: foreign::All,
    /// What is open of other processes.
    pub(super) open: opened::Open,
    /// Addresses of ours, taken or not: first and how many. What is not in an allocation there is nobody's.
    pieces: RwLock<BTreeMap<usize, usize>>,
}
impl Store {
    /// Says that `bytes` addresses from `at` on are ours.
    pub(super) fn claim(&self, at: usize, bytes: usize) {
        self.pieces.write().unwrap_or_else(PoisonError::into_inner).insert(at, bytes);
    }
    /// Those from `at` on are not ours any more.
    pub(super) fn give_up(&self, at: usize) {
        self.pieces.write().unwrap_or_else(PoisonError::into_inner).remove(&at);
    }
    /// Whether the address is ours, in an allocation or not: then the driver is not asked what it is.
    pub(super) fn has(&self, at: usize) -> bool {
        let pieces = self.pieces.read().unwrap_or_else(PoisonError::into_inner);
        let (start, bytes) = pieces.range(..=at).next_back().map_or((0, 0), |(&s, &b)| (s, b));
        at - start < bytes
    }
}
