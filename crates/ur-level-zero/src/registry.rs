//! The state of this backend's memory in this process, in one place.
use super::opened;
use ur_hal::Claims;
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
    pub(super) claims: Claims,
}
