//! Devices: what the core asks of a driver about them. What callers ask is answered in `device_entries.rs`.
use super::usm_pool::HasUsm;
use crate::program::RunsCode;
use ur_adapter::{
    api::Objects,
    error::{Error, ErrorCode, Result},
    info::Answer,
    object::{Borrowed, Object, Owned},
    partition::Rule,
};
use ur_hal::Clocks;
use ur_sys::{ur_device_info_t, ur_device_type_t, ur_native_handle_t};

pub(super) type Device<D> = <D as Objects>::Device;
pub(super) type Platform<D> = <D as Objects>::Platform;

/// A driver of whose devices the core answers what they have in common.
pub trait HasDevices: RunsCode + HasUsm {
    /// The root devices of a platform, in the driver's order.
    fn roots(platform: &Platform<Self>) -> Vec<Owned<Device<Self>>>;
    /// What kind of device it is.
    fn kind(device: &Device<Self>) -> ur_device_type_t;
    /// What it is a device of.
    fn platform(device: &Device<Self>) -> Owned<Platform<Self>>;
    /// Answers what the driver tells, or has otherwise than most; `None` for what the core answers.
    fn tell(
        device: Borrowed<'_, Device<Self>>,
        name: ur_device_info_t,
        answer: &mut Answer<'_>,
    ) -> Option<Result<()>>;
    /// How many numbers of char, short, int, long, float, double and half a vector is best made of, and how many the
    /// device's own vectors have.
    ///
    /// # Errors
    /// Returns the driver's error.
    fn vector_widths(device: &Device<Self>) -> Result<[[u32; 7]; 2]> {
        let _ = device;
        Ok([[1; 7]; 2]) // work-items compute on single numbers
    }
    /// Its parts by a rule.
    ///
    /// # Errors
    /// As `urDevicePartition` documents them.
    fn parts(device: Borrowed<'_, Device<Self>>, rule: &Rule) -> Result<Vec<Owned<Device<Self>>>> {
        let _ = (device, rule);
        let why = "this device has no parts: SUPPORTED_PARTITIONS is empty";
        Err(Error::new(ErrorCode::DevicePartitionFailed, why))
    }
    /// Its native handle.
    fn native_device(device: &Object<Device<Self>>) -> ur_native_handle_t;
    /// # Errors
    /// `INVALID_DEVICE` for what is no native handle of a device.
    fn device_of_native(native: ur_native_handle_t) -> Result<Owned<Device<Self>>>;
    /// Its clock and the host's.
    ///
    /// # Errors
    /// Returns the driver's error.
    fn clocks(device: &Device<Self>) -> Result<Clocks>;
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
