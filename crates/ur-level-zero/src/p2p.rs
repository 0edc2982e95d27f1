//! Access of devices to each other's memory. The driver switches it on by itself.
use super::{DriverDevice, LevelZero, native::device as native};
use std::sync::Arc;
use std::{collections::HashMap, sync::Mutex};
use ur_adapter::error::{Error, Result};
use ur_hal::{Reach, ReachesPeers};
use ur_lock::locked;
use ze_sys::*;

/// Whether one device reaches the memory of another; asked once a pair.
///
/// # Errors
/// Returns the driver's error.
pub fn can_access(from: &DriverDevice, peer: &DriverDevice) -> Result<bool> {
    static KNOWN: Mutex<Option<HashMap<(usize, usize), bool>>> = Mutex::new(None);
    let pair = (from.raw().addr(), peer.raw().addr());
    if from.raw() == peer.raw() {
        return Ok(true);
    }
    let known = locked(&KNOWN).as_ref().and_then(|known| known.get(&pair).copied());
    if let Some(known) = known {
        return Ok(known);
    }
    let can = native::can_access(from.raw(), peer.raw())?;
    locked(&KNOWN).get_or_insert_default().insert(pair, can);
    Ok(can)
}

impl ReachesPeers for LevelZero {
    fn reach(device: &Arc<DriverDevice>, peer: &Arc<DriverDevice>) -> ur_hal::Result<Reach> {
        let has_atomics = || {
            let peer = native::peer(device.raw(), peer.raw())?;
            Ok::<_, Error>(peer.flags & ZE_DEVICE_P2P_PROPERTY_FLAG_ATOMICS != 0)
        };
        Ok(match () {
            () if !can_access(device, peer)? => Reach::None,
            () if has_atomics()? => Reach::Atomics,
            () => Reach::Memory,
        })
    }
    /// The driver has it enabled wherever it is possible, and nothing is lost by what it leaves enabled.
    fn set_reach(_: &Arc<DriverDevice>, _: &Arc<DriverDevice>, _: bool) -> ur_hal::Result<()> {
        Ok(())
    }
}
