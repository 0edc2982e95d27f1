//! Queries of device properties.
#![expect(unsafe_code, reason = "calls into the vendor's driver")]
use super::{
    super::driver::{Dialect, Outcome, RawContext},
    context::Entered,
};
use std::ffi::c_char;
use ur_hal::{Result, text, told};

/// The driver's API version: 1000 * major + 10 * minor.
///
/// # Errors
/// Returns the driver's error.
pub fn version<D: Dialect>() -> Result<i32> {
    // SAFETY: `to` is writable.
    told(|to| unsafe { D::driver().driver_version(to) })
}
/// The driver's numbers of all devices that are visible to this process.
///
/// # Errors
/// Returns the driver's error.
pub fn all<D: Dialect>() -> Result<Vec<i32>> {
    // SAFETY: `to` is writable.
    let count: i32 = told(|to| unsafe { D::driver().device_count(to) })?;
    // SAFETY: as above.
    (0..count).map(|ordinal| told(|to| unsafe { D::driver().device_get(to, ordinal) })).collect()
}
/// The value of an attribute, by the driver's number for it.
///
/// # Errors
/// Returns the driver's error; `INVALID_VALUE` for an attribute that it does not know.
pub fn attribute<D: Dialect>(device: i32, attribute: i32) -> Result<i32> {
    // SAFETY: `to` is writable.
    told(|to| unsafe { D::driver().device_attribute(to, attribute, device) })
}
/// The device's name.
///
/// # Errors
/// Returns the driver's error.
pub fn name<D: Dialect>(device: i32) -> Result<String> {
    // SAFETY: `named` passes a buffer of this length.
    named(|to, room| unsafe { D::driver().device_name(to, room, device) })
}
/// Its PCI address: `DDDD:BB:DD.F`.
///
/// # Errors
/// Returns the driver's error.
pub fn pci_address<D: Dialect>(device: i32) -> Result<String> {
    // SAFETY: `named` passes a buffer of this length.
    named(|to, room| unsafe { D::driver().device_pci(to, room, device) })
}
/// Calls a query that returns a text of at most 255 bytes.
fn named<D: Dialect>(ask: impl FnOnce(*mut c_char, i32) -> Outcome<D>) -> Result<String> {
    let mut bytes = [0_u8; 256];
    ask(bytes.as_mut_ptr().cast(), 256).ok()?;
    Ok(String::from_utf8_lossy(text(&bytes)).into_owned())
}
/// Its UUID: the same in every process, whichever devices are visible there.
///
/// # Errors
/// Returns the driver's error.
pub fn uuid<D: Dialect>(device: i32) -> Result<[u8; 16]> {
    // SAFETY: `to` is writable.
    told(|to| unsafe { D::driver().device_uuid(to, device) })
}
/// The size of its memory in bytes.
///
/// # Errors
/// Returns the driver's error.
pub fn memory<D: Dialect>(device: i32) -> Result<usize> {
    // SAFETY: `to` is writable.
    told(|to| unsafe { D::driver().device_memory(to, device) })
}
/// Whether `device` can access the memory of `peer`.
///
/// # Errors
/// Returns the driver's error.
pub fn can_access<D: Dialect>(device: i32, peer: i32) -> Result<bool> {
    // SAFETY: `to` is writable.
    let can: i32 = told(|to| unsafe { D::driver().peer_can(to, device, peer) })?;
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
    // SAFETY: `to` is writable.
    told(|to| unsafe { D::driver().peer_attribute(to, attribute as i32, device, peer) })
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
            _ => outcome.ok(),
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
            _ => outcome.ok(),
        }
    }
}
