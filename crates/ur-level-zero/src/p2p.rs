//! Access of devices to each other's memory, which the driver enables by itself.
use super::{DriverDevice, LevelZero, driver::RawDevice, native::device as native};
use std::sync::Arc;
use ur_hal::{Error, Reach, ReachesPeers, Result};
use ur_lock::PerKey;
use ze_sys::*;

/// Whether one device can access the memory of another. The driver is queried once for each pair.
///
/// # Errors
/// Returns the driver's error.
pub fn can_access(from: &DriverDevice, peer: &DriverDevice) -> Result<bool> {
    static KNOWN: PerKey<(RawDevice, RawDevice), bool> = PerKey::new();
    let (from, peer) = (from.raw(), peer.raw());
    if from == peer { Ok(true) } else { KNOWN.get((from, peer), || native::can_access(from, peer)) }
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
    /// Does nothing: the driver enables access wherever it is possible, and cannot disable it.
    fn set_reach(_: &Arc<DriverDevice>, _: &Arc<DriverDevice>, _: bool) -> ur_hal::Result<()> {
        Ok(())
    }
}
