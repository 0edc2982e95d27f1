//! The two names under which this adapter is loaded, and which devices each lists when a loader has
//! both: the same choice as Unified Runtime's own pair makes, so that no device is listed twice.
#![expect(unsafe_code, reason = "an entry of the C ABI")]
use std::sync::atomic::{AtomicBool, Ordering::*};
use ur_sys::{ur_adapter_handle_t, ur_result_t};

/// Whether the shared object in which this code lives is the one with `_v2` in its name.
static IS_V2: AtomicBool = AtomicBool::new(false);

/// `urAdapterGet` of the second name.
pub(super) unsafe extern "C" fn adapter_get_v2(
    count: u32,
    adapters: *mut ur_adapter_handle_t,
    total: *mut u32,
) -> ur_result_t {
    IS_V2.store(true, Relaxed);
    let get = super::TABLE.adapter.get.expect("no slot of a table is null");
    // SAFETY: forwarded from the C caller's own contract.
    unsafe { get(count, adapters, total) }
}
/// Whether this is the second name.
pub(super) fn is_v2() -> bool {
    IS_V2.load(Relaxed)
}
