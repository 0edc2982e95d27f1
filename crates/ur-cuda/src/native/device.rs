//! What the driver says of a device.
#![expect(unsafe_code, reason = "calls into the vendor's driver")]
use super::{
    super::driver::{Dialect, RawContext},
    context::Entered,
};
use std::ffi::{CStr, c_char};
use ur_adapter::error::Result;

/// The version of the API that the driver speaks: 1000 * major + 10 * minor.
///
/// # Errors
/// Returns the driver's error.
pub fn version<D: Dialect>() -> Result<i32> {
    let mut version = 0;
    // SAFETY: `version` is writable.
    unsafe { D::driver().driver_version(&raw mut version) }.ok::<D>()?;
    Ok(version)
}
/// The driver's numbers of all devices that this process may see.
///
/// # Errors
/// Returns the driver's error.
pub fn all<D: Dialect>() -> Result<Vec<i32>> {
    let mut count = 0;
    // SAFETY: `count` is writable.
    unsafe { D::driver().device_count(&raw mut count) }.ok::<D>()?;
    (0..count)
        .map(|ordinal| {
            let mut device = 0;
            // SAFETY: `device` is writable.
            unsafe { D::driver().device_get(&raw mut device, ordinal) }.ok::<D>()?;
            Ok(device)
        })
        .collect()
}
/// One attribute, by the driver's number.
///
/// # Errors
/// The driver's own; an attribute that it does not know is `INVALID_VALUE`.
pub fn attribute<D: Dialect>(device: i32, attribute: i32) -> Result<i32> {
    let mut value = 0;
    // SAFETY: `value` is writable.
    unsafe { D::driver().device_attribute(&raw mut value, attribute, device) }.ok::<D>()?;
    Ok(value)
}
/// What the device is called.
///
/// # Errors
/// Returns the driver's error.
pub fn name<D: Dialect>(device: i32) -> Result<String> {
    let mut bytes = [0 as c_char; 256];
    // SAFETY: `bytes` has the room that is named.
    unsafe { D::driver().device_name(bytes.as_mut_ptr(), 256, device) }.ok::<D>()?;
    Ok(text(&mut bytes))
}
/// Where it sits: `DDDD:BB:DD.F`.
///
/// # Errors
/// Returns the driver's error.
pub fn pci_address<D: Dialect>(device: i32) -> Result<String> {
    let mut bytes = [0 as c_char; 256];
    // SAFETY: `bytes` has the room that is named.
    unsafe { D::driver().device_pci(bytes.as_mut_ptr(), 256, device) }.ok::<D>()?;
    Ok(text(&mut bytes))
}
fn text(bytes: &mut [c_char; 256]) -> String {
    bytes[255] = 0;
    // SAFETY: there is a NUL, at the end if nowhere else.
    unsafe { CStr::from_ptr(bytes.as_ptr()) }.to_string_lossy().into_owned()
}
/// Its UUID: the same in every process, whatever is visible there.
///
/// # Errors
/// Returns the driver's error.
pub fn uuid<D: Dialect>(device: i32) -> Result<[u8; 16]> {
    let mut uuid = [0; 16];
    // SAFETY: `uuid` is writable.
    unsafe { D::driver().device_uuid(&raw mut uuid, device) }.ok::<D>()?;
    Ok(uuid)
}
/// Bytes of its memory.
///
/// # Errors
/// Returns the driver's error.
pub fn memory<D: Dialect>(device: i32) -> Result<usize> {
    let mut bytes = 0;
    // SAFETY: `bytes` is writable.
    unsafe { D::driver().device_memory(&raw mut bytes, device) }.ok::<D>()?;
    Ok(bytes)
}
/// Whether `device` can reach the memory of `peer`.
///
/// # Errors
/// Returns the driver's error.
pub fn can_access<D: Dialect>(device: i32, peer: i32) -> Result<bool> {
    let mut can = 0;
    // SAFETY: `can` is writable.
    unsafe { D::driver().peer_can(&raw mut can, device, peer) }.ok::<D>()?;
    Ok(can != 0)
}
/// What the driver tells of the way from one device to another, by its number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(i32)]
pub enum PeerAttribute {
    /// Whether one reaches the other's memory.
    Access = 2,
    /// Whether its atomic operations there are the other's too.
    Atomics = 3,
}
/// One attribute of the way from `device` to `peer`: 1 or 0.
///
/// # Errors
/// Returns the driver's error.
pub fn peer_attribute<D: Dialect>(attribute: PeerAttribute, device: i32, peer: i32) -> Result<i32> {
    let mut value = 0;
    // SAFETY: `value` is writable.
    let outcome =
        unsafe { D::driver().peer_attribute(&raw mut value, attribute as i32, device, peer) };
    outcome.ok::<D>()?;
    Ok(value)
}

impl<D: Dialect> Entered<D> {
    /// Lets the current context reach the memory of `peer`; nothing happens where it does already.
    ///
    /// # Errors
    /// The driver's own; `UNSUPPORTED_FEATURE` where it has no such switch.
    pub fn reach(&self, peer: RawContext) -> Result<()> {
        // SAFETY: a context is current and the other one was retained. Flags are none.
        let outcome = unsafe { D::driver().peer_enable(peer, 0) };
        match outcome.status() {
            Some(704) => Ok(()), // enabled already
            _ => outcome.ok::<D>(),
        }
    }
    /// Ends that; nothing happens where it does not reach it.
    ///
    /// # Errors
    /// As for [`Entered::reach`].
    pub fn leave(&self, peer: RawContext) -> Result<()> {
        // SAFETY: as above.
        let outcome = unsafe { D::driver().peer_disable(peer) };
        match outcome.status() {
            Some(705) => Ok(()), // not enabled
            _ => outcome.ok::<D>(),
        }
    }
}
