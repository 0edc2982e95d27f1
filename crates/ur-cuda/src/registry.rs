//! The state of a dialect's memory in this process. In one place, because a static cannot be generic.
use super::{
    driver::{Dialect, RawPool},
    foreign,
    memory::Memory,
    peers::Peers,
};
use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::{Mutex, OnceLock, PoisonError, RwLock, atomic::AtomicUsize},
};
use ur_core::memory::allocation::OfProcess;
use ur_hal::Granularity;

/// The state in one process; a forked child gets a new, empty one.
pub(super) struct Store<D: Dialect> {
    pub(super) memory: OfProcess<Memory<D>>,
    /// Bytes of chunks that are kept until the driver is idle: see `memory.rs`.
    pub(super) leaving: AtomicUsize,
    pub(super) foreign: foreign::All,
    pub(super) peers: Peers<D>,
    pub(super) is_legacy_wished: OnceLock<bool>,
    pub(super) takes_offsets: OnceLock<bool>,
    /// Address ranges that this adapter reserved or allocated, allocated to the application or not: length in
    /// bytes by start address.
    pieces: RwLock<BTreeMap<usize, usize>>,
    /// Driver pools of this adapter. Memory in them that was freed in stream order is not reported as memory
    /// of other code.
    pub(super) pools: Mutex<HashSet<RawPool>>,
    /// The granularity of virtual memory, by the driver's number of the device.
    pub(super) granules: Mutex<HashMap<i32, Granularity>>,
}
impl<D: Dialect> Default for Store<D> {
    fn default() -> Self {
        Self {
            memory: OfProcess::default(),
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
