//! Access between devices: the methods of a [`Driver`](crate::Driver) for two devices. They are a separate trait, so
//! that a backend can implement them before its other methods exist.
use crate::{Error, Reach, Result, Types};

/// Access of one device to another device's memory.
///
/// No method blocks. All return the driver's error, with the kind that fits best and the driver's status.
#[expect(clippy::missing_errors_doc, reason = "said above for all of them")]
pub trait ReachesPeers: Types {
    /// How `device` can access the memory of `peer`, a device of the same driver.
    fn reach(device: &Self::Device, peer: &Self::Device) -> Result<Reach> {
        Ok(if device == peer { Reach::Atomics } else { Reach::None })
    }
    /// Enables or disables access of `device` to the memory of `peer`. It is called for two different devices, and to
    /// enable access only where [`reach`](Self::reach) reports that it is possible. It also affects existing
    /// allocations.
    fn set_reach(device: &Self::Device, peer: &Self::Device, on: bool) -> Result<()> {
        let _ = (device, peer, on);
        Error::unsupported("access from device to device")
    }
}
