//! The environment variables of Unified Runtime's own Level Zero adapters that have an effect here, read
//! once. If both names are set the newer one counts. The other variables of those adapters have no effect:
//! events are always reused and visible to the host, queues always use in-order lists of the driver, and no
//! lock is held while waiting for a queue.
//!
//! | Variable (older name) | |
//! | --- | --- |
//! | `UR_L0_INIT_ALL_DRIVERS` | 1: devices that are no GPUs are listed too |
//! | `UR_L0_USE_IMMEDIATE_COMMANDLISTS` (`SYCL_PI_LEVEL_ZERO_USE_IMMEDIATE_COMMANDLISTS`) | 0: queues submit in batches; else at once |
//! | `UR_L0_BATCH_SIZE` (`SYCL_PI_LEVEL_ZERO_BATCH_SIZE`) | commands of a batch |
//! | `UR_L0_MAX_NUMBER_OF_EVENTS_PER_EVENT_POOL` | events of a pool |
//! | `UR_L0_V2_FORCE_BATCHED` | 1: queues submit in batches |
//! | `UR_L0_V2_FORCE_DISABLE_COPY_OFFLOAD` | 1: as `UR_L0_USE_COPY_ENGINE` 0 |
//! | `UR_L0_USE_COPY_ENGINE` (`SYCL_PI_LEVEL_ZERO_USE_COPY_ENGINE`) | 0: copies run on the compute engines |
//! | `UR_L0_USE_DRIVER_COUNTER_BASED_EVENTS` | 0: events come from pools |
//! | `UR_L0_USM_RESIDENT` (`SYCL_PI_LEVEL_ZERO_USM_RESIDENT`) | `0xHSD`: the devices for which host, shared and device memory is made resident: 0 none, 1 its own, 2 all that can access it |
//! | `UR_L0_ENABLE_RELAXED_ALLOCATION_LIMITS` | 1: allocations may exceed the device's normal limit |
//! | `UR_L0_DISABLE_USM_ALLOCATOR` (`SYCL_PI_LEVEL_ZERO_DISABLE_USM_ALLOCATOR`) | 1: every allocation without a pool is a driver allocation |
//! | `UR_L0_VECTOR_WIDTH_SIZE` | bytes of the vectors whose widths are reported, if the driver reports several |
//! | `UR_L0_EXPOSE_CSLICE_IN_AFFINITY_PARTITIONING` (`SYCL_PI_LEVEL_ZERO_EXPOSE_CSLICE_IN_AFFINITY_PARTITIONING`) | 1: tiles can be partitioned into their engines by affinity domains too |
use std::{env, sync::OnceLock};

/// The settings from the environment.
#[derive(Debug)]
pub(super) struct Options {
    pub(super) every_kind: bool,
    pub(super) immediate: Option<bool>,
    pub(super) batch: Option<u32>,
    pub(super) places: u32,
    pub(super) copiers: bool,
    pub(super) counters: bool,
    /// The digits of `UR_L0_USM_RESIDENT`, as a number.
    pub(super) resident: u32,
    pub(super) relaxed_limits: bool,
    pub(super) pools: bool,
    pub(super) vector_bytes: Option<u32>,
    pub(super) slices_by_domain: bool,
}
/// Parses a hexadecimal number.
fn hex(text: &str) -> Option<u32> {
    u32::from_str_radix(text.trim().trim_start_matches("0x"), 16).ok()
}

/// The number in the first of these variables that has one.
pub(super) fn number(names: &[&str]) -> Option<i64> {
    names.iter().find_map(|name| env::var(name).ok()?.trim().parse().ok())
}
/// The settings; the environment is read at the first call.
pub(super) fn options() -> &'static Options {
    static OPTIONS: OnceLock<Options> = OnceLock::new();
    OPTIONS.get_or_init(|| {
        let named = |new: &str, old: &str| {
            number(&[&format!("UR_L0_{new}"), &format!("SYCL_PI_LEVEL_ZERO_{old}")])
        };
        let same = |name| named(name, name);
        Options {
            vector_bytes: number(&["UR_L0_VECTOR_WIDTH_SIZE"]).and_then(|n| u32::try_from(n).ok()),
            slices_by_domain: same("EXPOSE_CSLICE_IN_AFFINITY_PARTITIONING") == Some(1),
            every_kind: same("INIT_ALL_DRIVERS") == Some(1),
            immediate: match number(&["UR_L0_V2_FORCE_BATCHED"]) {
                Some(1) => Some(false),
                _ => same("USE_IMMEDIATE_COMMANDLISTS").map(|n| n != 0),
            },
            batch: same("BATCH_SIZE").and_then(|n| u32::try_from(n).ok()).filter(|&n| n != 0),
            places: number(&["UR_L0_MAX_NUMBER_OF_EVENTS_PER_EVENT_POOL"])
                .and_then(|n| u32::try_from(n).ok())
                .filter(|&n| n != 0)
                .unwrap_or(256),
            copiers: same("USE_COPY_ENGINE") != Some(0)
                && number(&["UR_L0_V2_FORCE_DISABLE_COPY_OFFLOAD"]) != Some(1),
            resident: ["UR_L0_USM_RESIDENT", "SYCL_PI_LEVEL_ZERO_USM_RESIDENT"]
                .iter()
                .find_map(|name| hex(&env::var(name).ok()?))
                .unwrap_or(2),
            relaxed_limits: number(&["UR_L0_ENABLE_RELAXED_ALLOCATION_LIMITS"]) == Some(1),
            pools: same("DISABLE_USM_ALLOCATOR") != Some(1),
            counters: same("USE_DRIVER_COUNTER_BASED_EVENTS") != Some(0),
        }
    })
}
