//! The two names under which this adapter is loaded, and which of them lists the devices if a loader has
//! both. The rules are those of Unified Runtime's own two adapters, so that no device is listed twice.
//!
//! | | |
//! | --- | --- |
//! | `UR_ADAPTERS_FORCE_LOAD` names adapters | every named adapter lists its devices |
//! | `UR_LOADER_USE_LEVEL_ZERO_V2`, `SYCL_UR_USE_LEVEL_ZERO_V2` | 1: `_v2` lists them; 0: the other one |
//! | neither | `_v2` lists them if one is as new as Xe2 (IP version 20.1) |
use super::{device, device_info, log::notice, options::number};
use std::sync::{
    Once,
    atomic::{AtomicU8, Ordering::*},
};
use ur_hal::Severity;

/// Linked into a program without a loader that has both.
const ALONE: u8 = 0;
const V1: u8 = 1;
const V2: u8 = 2;
/// The name under which the shared object that contains this code was loaded.
static VARIANT: AtomicU8 = AtomicU8::new(ALONE);
/// The IP version of the first hardware for which `_v2` is preferred.
const XE2: u32 = 20 << 22 | 1 << 14;

/// Notes under which name this code was loaded: 1 or 2.
pub(super) fn set(version: u32) {
    VARIANT.store(if version == 1 { V1 } else { V2 }, Relaxed);
}
/// Whether it reports itself as version 2.
pub(super) fn is_v2() -> bool {
    VARIANT.load(Relaxed) != V1
}
/// Whether this variant lists the devices. May initialise the driver.
pub(super) fn is_chosen() -> bool {
    let variant = VARIANT.load(Relaxed);
    if variant == ALONE || std::env::var_os("UR_ADAPTERS_FORCE_LOAD").is_some() {
        return true;
    }
    let wished = number(&["UR_LOADER_USE_LEVEL_ZERO_V2", "SYCL_UR_USE_LEVEL_ZERO_V2"]);
    let v2 = match wished {
        Some(number) => number != 0,
        None if device::all().next().is_none() => return true, // there is no device to be listed twice
        None => device::all().any(|one| device_info::ip_version(one).is_ok_and(|ip| ip >= XE2)),
    };
    let is_listed = v2 == (variant == V2);
    if !is_listed {
        tell_why(wished.is_some());
    }
    is_listed
}
/// Says once who lists the devices instead, for those who loaded this variant alone.
fn tell_why(is_by_variable: bool) {
    static TOLD: Once = Once::new();
    let name =
        |is_v2| if is_v2 { "libur_adapter_level_zero_v2" } else { "libur_adapter_level_zero" };
    let (this, other) = (name(is_v2()), name(!is_v2()));
    let wanted = u8::from(is_v2());
    let because = match is_by_variable {
        true => "UR_LOADER_USE_LEVEL_ZERO_V2 or SYCL_UR_USE_LEVEL_ZERO_V2 says so",
        false => "it goes by the devices, as no variable says otherwise",
    };
    let why = format!(
        "{this} lists no devices, because {other} does: {because}. Set UR_LOADER_USE_LEVEL_ZERO_V2={wanted} to have them \
         here"
    );
    TOLD.call_once(|| notice(Severity::Note, &why));
}
