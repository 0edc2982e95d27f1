//! What the core asks of a driver about devices. What callers ask is answered in `device_entries.rs`.
use super::{
    objects::{Device, DriverDevice},
    usm_pool::HasUsm,
};
use crate::{command::Exists, program::RunsCode};
use ur_adapter::{
    api::Objects,
    error::{Error, ErrorCode, Result},
    info::Answer,
    object::Object,
    partition::Rule,
};
use ur_sys::{ur_device_info_t, ur_device_type_t};

/// A driver of whose devices the core answers what they have in common.
pub trait HasDevices:
    RunsCode + HasUsm + Objects<ExpCommandBuffer: Exists, ExpGraph: Exists>
{
    /// What kind of device it is.
    fn kind(device: &DriverDevice<Self>) -> ur_device_type_t;
    /// Answers what the driver tells, or has otherwise than most; `None` for what the core answers.
    fn tell(
        device: &DriverDevice<Self>,
        name: ur_device_info_t,
        answer: &mut Answer<'_>,
    ) -> Option<Result<()>>;
    /// How many numbers of char, short, int, long, float, double and half a vector is best made of, and how many the
    /// device's own vectors have.
    ///
    /// # Errors
    /// Returns the driver's error.
    fn vector_widths(device: &DriverDevice<Self>) -> Result<[[u32; 7]; 2]> {
        let _ = device;
        Ok([[1; 7]; 2]) // work-items compute on single numbers
    }
    /// Its parts by a rule.
    ///
    /// # Errors
    /// As `urDevicePartition` documents them.
    fn parts(device: &DriverDevice<Self>, rule: &Rule) -> Result<Vec<DriverDevice<Self>>> {
        let _ = (device, rule);
        let why = "this device has no parts: SUPPORTED_PARTITIONS is empty";
        Err(Error::new(ErrorCode::DevicePartitionFailed, why))
    }
    /// The parts that the driver itself has handles of.
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
/// The error for what neither driver nor adapter can tell of a device.
pub fn untold(name: ur_device_info_t) -> Error {
    let why = format!("this device has no answer to {name:?}");
    Error::new(ErrorCode::UnsupportedEnumeration, why)
}
