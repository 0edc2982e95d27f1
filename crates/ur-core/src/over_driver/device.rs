//! What the core needs from a driver to implement devices. The entries are in `device_entries.rs`.
use super::{
    objects::{Device, DriverDevice},
    usm_pool::HasUsm,
};
use crate::program::RunsCode;
use ur_adapter::{
    error::{Error, ErrorCode, Result},
    info::Answer,
    object::Object,
    partition::Rule,
};
use ur_sys::{ur_device_info_t, ur_device_type_t};

/// A driver over which the core implements the entries of devices.
pub trait HasDevices: RunsCode + HasUsm {
    /// The type of a device.
    fn kind(device: &DriverDevice<Self>) -> ur_device_type_t;
    /// Answers a property that only the driver knows, or for which the core's answer does not apply. Returns
    /// `false` to let the core answer.
    fn tell(
        device: &DriverDevice<Self>,
        name: ur_device_info_t,
        answer: &mut Answer<'_>,
    ) -> Result<bool>;
    /// The preferred and then the native vector widths: how many elements of char, short, int, long, float, double and
    /// half.
    ///
    /// # Errors
    /// Returns the driver's error.
    fn vector_widths(device: &DriverDevice<Self>) -> Result<[[u32; 7]; 2]> {
        let _ = device;
        Ok([[1; 7]; 2]) // work-items compute on scalars
    }
    /// Partitions a device.
    ///
    /// # Errors
    /// As `urDevicePartition` documents them.
    fn parts(device: &DriverDevice<Self>, rule: &Rule) -> Result<Vec<DriverDevice<Self>>> {
        let _ = (device, rule);
        let why = "this device has no parts: SUPPORTED_PARTITIONS is empty";
        Error::refuse(ErrorCode::DevicePartitionFailed, why)
    }
    /// The parts of a device for which the driver itself has native handles.
    fn parts_with_handles(device: &DriverDevice<Self>) -> Vec<DriverDevice<Self>> {
        let _ = device;
        vec![]
    }
    /// Waits for all commands submitted so far to queues of the device and of its parts.
    ///
    /// # Errors
    /// Returns the driver's error.
    fn wait_for_device(device: &Object<Device<Self>>) -> Result<()>;
}
/// The error for a property of a device that neither the driver nor the core can answer.
pub fn untold(name: ur_device_info_t) -> Error {
    let why = format!("this device has no answer to {name:?}");
    Error::new(ErrorCode::UnsupportedEnumeration, why)
}
