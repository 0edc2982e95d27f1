//! The state of this backend's memory in this process, in one place.
use super::{device::DriverDevice, opened, utility_lists::UtilityLists};
use std::sync::Arc;
use ur_hal::{Claims, MemoryKind};
use ur_mapping::PerProcess;

/// The store of this process; a forked child gets a new, empty one.
pub(super) fn registry() -> &'static Store {
    static STORE: PerProcess<Store> = PerProcess::new();
    STORE.get()
}
/// The state in one process.
#[derive(Default)]
pub(super) struct Store {
    /// Driver allocations opened from other processes.
    pub(super) open: opened::Open,
    /// `None` for reserved addresses, of which the driver knows what is mapped there.
    pub(super) claims: Claims<Option<Place>>,
}
/// Whose memory it is.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) kind: MemoryKind,
    pub(super) device: Arc<DriverDevice>,
    /// Command lists of the context that it is in.
    pub(super) lists: Arc<UtilityLists>,
}
