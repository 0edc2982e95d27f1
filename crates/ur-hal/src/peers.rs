//! How devices reach each other's memory: the verbs of a [`Driver`](crate::Driver) that are about two devices. They are a
//! trait of their own, so that a backend has them whose other verbs are not written yet.
use crate::{Error, Reach, Result, Types};

/// Access from device to device.
///
/// No verb blocks. All return the driver's own failures, with the kind that fits best and the driver's status.
#[expect(clippy::missing_errors_doc, reason = "said above for all of them")]
pub trait ReachesPeers: Types {
    /// How `device` can reach the memory of `peer`, a device of the same driver.
    fn reach(device: &Self::Device, peer: &Self::Device) -> Result<Reach> {
        Ok(if device == peer { Reach::Atomics } else { Reach::None })
    }
    /// Lets `device` reach the memory of `peer` or ends that; called with two devices, and to switch it on only where
    /// [`reach`](Self::reach) says that it can. Memory that is allocated already is reached too.
    fn set_reach(device: &Self::Device, peer: &Self::Device, on: bool) -> Result<()> {
        let _ = (device, peer, on);
        Error::unsupported("access from device to device")
    }
}
