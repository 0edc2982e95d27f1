//! What the core needs from a driver to implement devices. The entries are in `device_entries.rs`.
use super::{DriverDevice, usm_pool::HasUsm};
use crate::program::RunsCode;
use ur_adapter::{error::Result, info::Answer};
use ur_hal::{DescribesDevices, Graphs, PartitionsDevices};
use ur_sys::ur_device_info_t;

/// A driver over which the core implements the entries of devices.
pub trait HasDevices: RunsCode + HasUsm + DescribesDevices + PartitionsDevices + Graphs {
    /// Answers a property in place of the core, for drivers whose queries have the form of UR's. Returns `false` to let the
    /// core answer.
    ///
    /// # Errors
    /// Returns the driver's error.
    fn tell(
        device: &DriverDevice<Self>,
        name: ur_device_info_t,
        answer: &mut Answer<'_>,
    ) -> Result<bool> {
        let _ = (device, name, answer);
        Ok(false)
    }
}
