//! Platforms, devices, their parts, and contexts of them.
#![expect(unsafe_code, reason = "calls into the vendors' drivers")]
use super::own::Own;
use crate::{cl::*, driver::*};
use std::ptr::{null, null_mut};
use ur_adapter::error::Result;

/// All platforms that the ICD loader lists; none where it finds none.
///
/// # Errors
/// The loader's own.
pub fn platforms() -> Result<Vec<RawPlatform>> {
    /// `CL_PLATFORM_NOT_FOUND_KHR`
    const NONE: cl_int = -1001;
    let mut count = 0;
    // SAFETY: no room is promised, and the count is writable.
    let told = unsafe { driver().get_platform_ids(0, null_mut(), &raw mut count) };
    if told.status() == Some(NONE) {
        return Ok(vec![]);
    }
    told.ok()?;
    let mut all = vec![None; count as usize];
    if count > 0 {
        // SAFETY: there is room for as many as are promised.
        unsafe { driver().get_platform_ids(count, all.as_mut_ptr(), null_mut()) }.ok()?;
    }
    Ok(all.into_iter().flatten().collect())
}
/// The root devices of a platform.
///
/// # Errors
/// The driver's own.
pub fn devices(platform: RawPlatform) -> Result<Vec<RawDevice>> {
    let mut count = 0;
    let kind = CL_DEVICE_TYPE_ALL;
    // SAFETY: a live platform; no room is promised, and the count is writable.
    let told = unsafe { driver().get_device_ids(platform, kind, 0, null_mut(), &raw mut count) };
    if told.status() == Some(CL_DEVICE_NOT_FOUND) || count == 0 {
        return Ok(vec![]);
    }
    told.ok()?;
    let mut all = vec![None; count as usize];
    let to = all.as_mut_ptr();
    // SAFETY: there is room for as many as are promised.
    unsafe { driver().get_device_ids(platform, kind, count, to, null_mut()) }.ok()?;
    Ok(all.into_iter().flatten().collect())
}
/// Parts of a device by a rule: names and values of OpenCL's, which end with 0.
///
/// # Errors
/// The driver's own.
pub fn parts(device: RawDevice, rule: &[isize]) -> Result<Vec<Own<RawDevice>>> {
    let mut count = 0;
    let rule = rule.as_ptr();
    // SAFETY: a live device; the rule ends with 0; no room is promised.
    unsafe { driver().create_sub_devices(device, rule, 0, null_mut(), &raw mut count) }.ok()?;
    let mut all = vec![None; count as usize];
    let to = all.as_mut_ptr();
    // SAFETY: there is room for as many as are promised.
    unsafe { driver().create_sub_devices(device, rule, count, to, null_mut()) }.ok()?;
    Ok(all.into_iter().flatten().map(Own::given).collect())
}
/// The device's clock and the host's, in nanoseconds; `None` where the driver does not tell them together.
pub fn clocks(device: RawDevice) -> Option<(u64, u64)> {
    let (mut own, mut host) = (0, 0);
    // SAFETY: a live device, and two writable words.
    let told = unsafe { driver().get_device_and_host_timer(device, &raw mut own, &raw mut host) };
    (told.status() == Some(CL_SUCCESS) && own != 0).then_some((own, host))
}
/// A context of these devices of a platform.
///
/// # Errors
/// The driver's own.
pub fn context(platform: RawPlatform, devices: &[RawDevice]) -> Result<Own<RawContext>> {
    let properties = [CL_CONTEXT_PLATFORM, platform.addr() as isize, 0];
    let (count, first) = (devices.len() as u32, devices.as_ptr());
    // SAFETY: the list of properties ends with 0; as many devices as are told.
    let made =
        unsafe { driver().create_context(properties.as_ptr(), count, first, null(), null_mut()) };
    made.map(Own::given)
}
