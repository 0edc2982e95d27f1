//! The state of a dialect's memory in this process. In one place, because a static cannot be generic.
use super::{
    driver::{Dialect, RawPool},
    peers::Peers,
};
use std::{
    collections::HashSet,
    sync::{Mutex, OnceLock},
};
use ur_hal::{Claims, Granularity, MemoryKind};
use ur_lock::PerKey;

/// The state in one process; a forked child gets a new, empty one.
#[derive(Default)]
pub(super) struct Store<D: Dialect> {
    pub(super) peers: Peers<D>,
    pub(super) is_legacy_wished: OnceLock<bool>,
    pub(super) takes_offsets: OnceLock<bool>,
    /// The kind of memory and the number of its device; `None` for reserved addresses, of which the driver knows what is
    /// mapped there.
    pub(super) claims: Claims<Option<(MemoryKind, i32)>>,
    /// Driver pools of this adapter. Memory in them that was freed in stream order is not reported as memory
    /// of other code.
    pub(super) pools: Mutex<HashSet<RawPool>>,
    /// The granularity of virtual memory, by the driver's number of the device.
    pub(super) granules: PerKey<i32, Granularity>,
}
