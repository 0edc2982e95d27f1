//! Platforms, devices, their parts, and contexts of them.
#![expect(unsafe_code, reason = "calls into the vendors' drivers")]
use super::own::Own;
use crate::{cl::*, driver::*, error::broken};
use std::ptr::{null, null_mut};
use ur_hal::Result;

/// More platforms or devices than there are anywhere.
const MOST: usize = 1 << 16;
/// Objects of which the driver tells first how many there are; none where it says `NONE`.
fn listed<R: Copy>(
    none: Option<cl_int>,
    ask: impl Fn(u32, *mut Option<R>, *mut u32) -> Outcome,
) -> Result<impl Iterator<Item = R>> {
    let mut count = 0;
    let told = ask(0, null_mut(), &raw mut count);
    let is_none = told.status().is_some_and(|status| Some(status) == none);
    let room = if is_none { 0 } else { told.ok().map(|()| count as usize)? };
    if room > MOST {
        return Err(broken(&format!("it tells of {room} objects")));
    }
    let mut all = vec![None; room];
    if !all.is_empty() {
        ask(count, all.as_mut_ptr(), null_mut()).ok()?;
    }
    Ok(all.into_iter().flatten())
}
/// All platforms that the ICD loader lists; none where it finds none.
///
/// # Errors
/// The loader's own.
pub fn platforms() -> Result<Vec<RawPlatform>> {
    // SAFETY: `listed` passes room for as many as it promises.
    let ask = |room, to, count| unsafe { driver().get_platform_ids(room, to, count) };
    Ok(listed(Some(CL_PLATFORM_NOT_FOUND_KHR), ask)?.collect())
}
/// The root devices of a platform.
///
/// # Errors
/// The driver's own.
pub fn devices(platform: RawPlatform) -> Result<Vec<RawDevice>> {
    let kind = CL_DEVICE_TYPE_ALL;
    // SAFETY: a live platform; as above.
    let ask = |room, to, count| unsafe { driver().get_device_ids(platform, kind, room, to, count) };
    Ok(listed(Some(CL_DEVICE_NOT_FOUND), ask)?.collect())
}
/// Parts of a device by a rule: names and values of OpenCL's, which end with 0.
///
/// # Errors
/// The driver's own.
pub fn parts(device: RawDevice, rule: &[isize]) -> Result<Vec<Own<RawDevice>>> {
    let rule = rule.as_ptr();
    // SAFETY: a live device; the rule ends with 0; as above.
    let ask =
        |room, to, count| unsafe { driver().create_sub_devices(device, rule, room, to, count) };
    Ok(listed(None, ask)?.map(Own::given).collect())
}
/// The device's clock and the host's, in nanoseconds; `None` where the driver does not tell them together.
pub fn clocks(extensions: &Extensions, device: RawDevice) -> Option<(u64, u64)> {
    let (mut own, mut host) = (0, 0);
    // SAFETY: a live device, and two writable words.
    let told = unsafe { extensions.get_device_and_host_timer(device, &raw mut own, &raw mut host) };
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
