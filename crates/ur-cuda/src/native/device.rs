//! Queries of device properties.
#![expect(unsafe_code, reason = "calls into the vendor's driver")]
use super::{
    super::driver::{Dialect, RawContext},
    context::Entered,
};
use std::ffi::{CStr, c_char};
use ur_hal::Result;

/// The driver's API version: 1000 * major + 10 * minor.
///
/// # Errors
/// Returns the driver's error.
pub fn version<D: Dialect>() -> Result<i32> {
    let mut version = 0;
    // SAFETY: `version` is writable.
    unsafe { D::driver().driver_version(&raw mut version) }.ok::<D>()?;
    Ok(version)
}
/// The driver's numbers of all devices that are visible to this process.
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
/// The value of an attribute, by the driver's number for it.
///
/// # Errors
/// Returns the driver's error; `INVALID_VALUE` for an attribute that it does not know.
pub fn attribute<D: Dialect>(device: i32, attribute: i32) -> Result<i32> {
    let mut value = 0;
    // SAFETY: `value` is writable.
    unsafe { D::driver().device_attribute(&raw mut value, attribute, device) }.ok::<D>()?;
    Ok(value)
}
/// The device's name.
///
/// # Errors
/// Returns the driver's error.
pub fn name<D: Dialect>(device: i32) -> Result<String> {
    let mut bytes = [0 as c_char; 256];
    // SAFETY: `bytes` has the length that is passed.
    unsafe { D::driver().device_name(bytes.as_mut_ptr(), 256, device) }.ok::<D>()?;
    Ok(text(&mut bytes))
}
/// Its PCI address: `DDDD:BB:DD.F`.
///
/// # Errors
/// Returns the driver's error.
pub fn pci_address<D: Dialect>(device: i32) -> Result<String> {
    let mut bytes = [0 as c_char; 256];
    // SAFETY: `bytes` has the length that is passed.
    unsafe { D::driver().device_pci(bytes.as_mut_ptr(), 256, device) }.ok::<D>()?;
    Ok(text(&mut bytes))
}
fn text(bytes: &mut [c_char; 256]) -> String {
    bytes[255] = 0;
    // SAFETY: the last byte is a NUL.
    unsafe { CStr::from_ptr(bytes.as_ptr()) }.to_string_lossy().into_owned()
}
/// Its UUID: the same in every process, whichever devices are visible there.
///
/// # Errors
/// Returns the driver's error.
pub fn uuid<D: Dialect>(device: i32) -> Result<[u8; 16]> {
    let mut uuid = [0; 16];
    // SAFETY: `uuid` is writable.
    unsafe { D::driver().device_uuid(&raw mut uuid, device) }.ok::<D>()?;
    Ok(uuid)
}
/// The size of its memory in bytes.
///
/// # Errors
/// Returns the driver's error.
pub fn memory<D: Dialect>(device: i32) -> Result<usize> {
    let mut bytes = 0;
    // SAFETY: `bytes` is writable.
    unsafe { D::driver().device_memory(&raw mut bytes, device) }.ok::<D>()?;
    Ok(bytes)
}
/// Whether `device` can access the memory of `peer`.
///
/// # Errors
/// Returns the driver's error.
pub fn can_access<D: Dialect>(device: i32, peer: i32) -> Result<bool> {
    let mut can = 0;
    // SAFETY: `can` is writable.
    unsafe { D::driver().peer_can(&raw mut can, device, peer) }.ok::<D>()?;
    Ok(can != 0)
}
/// Properties of the link from one device to another, by the driver's number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(i32)]
pub enum PeerAttribute {
    /// Whether the device can access the peer's memory.
    Access = 2,
    /// Whether its atomic operations on the peer's memory are atomic for the peer too.
    Atomics = 3,
}
/// A property of the link from `device` to `peer`: 1 or 0.
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
    /// Enables access of the current context to the memory of `peer`; no effect if it is enabled.
    ///
    /// # Errors
    /// `UNSUPPORTED_FEATURE` if the driver has no such function; else the driver's error.
    pub fn reach(&self, peer: RawContext) -> Result<()> {
        // SAFETY: a context is current and the other one is retained. Flags 0.
        let outcome = unsafe { D::driver().peer_enable(peer, 0) };
        match outcome.status() {
            Some(704) => Ok(()), // enabled already
            _ => outcome.ok::<D>(),
        }
    }
    /// Disables access to the memory of `peer`; no effect if it is not enabled.
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
