//! Queries of drivers: enumeration, versions and extensions.
#![expect(unsafe_code, reason = "calls into the vendor's driver")]
use super::super::driver::{RawDriver, driver};
use std::ffi::c_char;
use ur_hal::{Result, handles, listed, told};
use ze_sys::*;

/// Initialises Level Zero, and lists the drivers of GPUs, or with `every_kind` of all devices.
///
/// # Errors
/// Returns the loader's error. Without a driver the list is empty; that is no error.
pub fn all(every_kind: bool) -> Result<Vec<RawDriver>> {
    let kinds = if every_kind { u32::MAX } else { ZE_INIT_DRIVER_TYPE_FLAG_GPU };
    let desc = ze_init_driver_type_desc_t { flags: kinds, ..Default::default() };
    let newer = handles(|count, to| {
        let mut desc = desc;
        // SAFETY: `handles` passes a list with the length that it states; `desc` has its type.
        unsafe { driver().init_drivers(count, to, &raw mut desc) }
    });
    newer.or_else(|_| older(every_kind))
}
/// The enumeration for loaders before version 1.10.
fn older(every_kind: bool) -> Result<Vec<RawDriver>> {
    let flags = if every_kind { 0 } else { ZE_INIT_FLAG_GPU_ONLY };
    // SAFETY: may be called at any time, from any thread.
    let started = unsafe { driver().init(flags) };
    if started.status() == Some(ZE_RESULT_ERROR_UNINITIALIZED) {
        return Ok(vec![]); // the loader found no driver
    }
    started.ok()?;
    // SAFETY: `handles` passes a list with the length that it states.
    handles(|count, to| unsafe { driver().driver_get(count, to) })
}
/// The version of the specification that the driver implements: major in the upper half, minor in the lower.
///
/// # Errors
/// Returns the driver's error.
pub fn api_version(raw: RawDriver) -> Result<u32> {
    // SAFETY: `to` is writable.
    told(|to| unsafe { driver().driver_get_api_version(raw, to) })
}
/// The driver's own version.
///
/// # Errors
/// Returns the driver's error.
pub fn version(raw: RawDriver) -> Result<u32> {
    // SAFETY: `to` is writable and has its type.
    let properties: ze_driver_properties_t =
        told(|to| unsafe { driver().driver_get_properties(raw, to) })?;
    Ok(properties.driverVersion)
}
/// The flags `ze_ipc_property_flags_t`: what can be shared with other processes.
///
/// # Errors
/// Returns the driver's error.
pub fn ipc(raw: RawDriver) -> Result<u32> {
    // SAFETY: `to` is writable and has its type.
    let properties: ze_driver_ipc_properties_t =
        told(|to| unsafe { driver().driver_get_ipc_properties(raw, to) })?;
    Ok(properties.flags)
}
/// The names and versions of the driver's extensions.
///
/// # Errors
/// Returns the driver's error.
pub fn extensions(raw: RawDriver) -> Result<Vec<(String, u32)>> {
    let all = listed(ze_driver_extension_properties_t::default(), |count, to| {
        // SAFETY: `listed` passes a list with the length that it states.
        unsafe { driver().driver_get_extension_properties(raw, count, to) }
    })?;
    Ok(all.iter().map(|one| (text(&one.name), one.version)).collect())
}
/// The text before the first NUL, or all of it.
pub fn text(chars: &[c_char]) -> String {
    let bytes: Vec<u8> = chars.iter().map(|&c| c as u8).collect();
    String::from_utf8_lossy(ur_hal::text(&bytes)).into_owned()
}
