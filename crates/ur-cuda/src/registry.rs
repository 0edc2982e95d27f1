//! Everything that a process knows of one dialect's memory, in one place: statics cannot be generic.
use super::{
    Family,
    driver::{Dialect, RawPool},
    foreign,
    memory::{Allocation, Deferred},
    peers::Peers,
};
use std::{
    collections::{BTreeMap, HashMap, HashSet},
    fmt,
    sync::{Mutex, OnceLock, PoisonError, RwLock, atomic::AtomicUsize},
};
use ur_adapter::per_process::PerProcess;
use ur_core::memory::allocations::Allocations;
use ur_core::over_driver::share::OpenedObjects;
use ur_hal::Granularity;

/// Everything that a process knows of one dialect's memory.
pub struct Registry<D: Dialect> {
    store: PerProcess<Store<D>>,
    pub(super) desk: OpenedObjects<Family<D>>,
}
impl<D: Dialect> Registry<D> {
    pub(super) const fn new() -> Self {
        Self { store: PerProcess::new(), desk: OpenedObjects::new() }
    }
    /// This process's: a forked child finds an empty one.
    pub(super) fn get(&self) -> &Store<D> {
        self.store.get()
    }
}
impl<D: Dialect> fmt::Debug for Registry<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registry").finish_non_exhaustive()
    }
}
/// What is known in one process.
pub(super) struct Store<D: Dialect> {
    pub(super) ranges: Allocations<Allocation<D>>,
    pub(super) deferred: Deferred<D>,
    /// Bytes of chunks that go back to the driver when it is idle: see `memory.rs`.
    pub(super) leaving: AtomicUsize,
    pub(super) foreign: foreign::All,
    pub(super) peers: Peers<D>,
    pub(super) is_legacy_wished: OnceLock<bool>,
    pub(super) takes_offsets: OnceLock<bool>,
    /// Addresses of ours, taken or not: first and how many. What is not in an allocation there is nobody's.
    pieces: RwLock<BTreeMap<usize, usize>>,
    /// The driver's pools that are ours: what was freed of them in a stream's order is nobody's.
    pub(super) pools: Mutex<HashSet<RawPool>>,
    /// By the driver's number of the device.
    pub(super) granules: Mutex<HashMap<i32, Granularity>>,
}
impl<D: Dialect> Default for Store<D> {
    fn default() -> Self {
        Self {
            ranges: Allocations::default(),
            deferred: Deferred::<D>::default(),
            leaving: AtomicUsize::new(0),
            foreign: Mutex::default(),
            peers: Peers::default(),
            is_legacy_wished: OnceLock::new(),
            takes_offsets: OnceLock::new(),
            pieces: RwLock::default(),
            pools: Mutex::default(),
            granules: Mutex::default(),
        }
    }
}
impl<D: Dialect> Store<D> {
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
