//! Queries of drivers: enumeration, versions and extensions.
#![expect(unsafe_code, reason = "calls into the vendor's driver")]
use super::super::driver::{RawDriver, driver};
use std::{
    ffi::{CStr, c_char},
    ptr::{null, null_mut},
};
use ur_hal::Result;
use ze_sys::*;

/// Initialises Level Zero, and lists the drivers of GPUs, or with `every_kind` of all devices.
///
/// # Errors
/// Returns the loader's error. Without a driver the list is empty; that is no error.
pub fn all(every_kind: bool) -> Result<Vec<RawDriver>> {
    let kinds = if every_kind { u32::MAX } else { ZE_INIT_DRIVER_TYPE_FLAG_GPU };
    let mut desc = ze_init_driver_type_desc_t {
        stype: ZE_STRUCTURE_TYPE_INIT_DRIVER_TYPE_DESC,
        pNext: null(),
        flags: kinds,
    };
    let mut count = 0;
    // SAFETY: both are writable, and no list is passed.
    let newer = unsafe { driver().init_drivers(&raw mut count, null_mut(), &raw mut desc) };
    if newer.status() == Some(ZE_RESULT_SUCCESS) {
        let mut found = vec![None; count as usize];
        // SAFETY: the list has `count` entries.
        unsafe { driver().init_drivers(&raw mut count, found.as_mut_ptr(), &raw mut desc) }.ok()?;
        return Ok(found.into_iter().take(count as usize).flatten().collect());
    }
    older(every_kind)
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
    let mut count = 0;
    // SAFETY: `count` is writable, and no list is passed.
    unsafe { driver().driver_get(&raw mut count, null_mut()) }.ok()?;
    let mut found = vec![None; count as usize];
    // SAFETY: the list has `count` entries.
    unsafe { driver().driver_get(&raw mut count, found.as_mut_ptr()) }.ok()?;
    Ok(found.into_iter().take(count as usize).flatten().collect())
}
/// The version of the specification that the driver implements: major in the upper half, minor in the lower.
///
/// # Errors
/// Returns the driver's error.
pub fn api_version(raw: RawDriver) -> Result<u32> {
    let mut version = 0;
    // SAFETY: `version` is writable.
    unsafe { driver().driver_get_api_version(raw, &raw mut version) }.ok()?;
    Ok(version)
}
/// The driver's own version.
///
/// # Errors
/// Returns the driver's error.
pub fn version(raw: RawDriver) -> Result<u32> {
    let mut properties =
        ze_driver_properties_t { stype: ZE_STRUCTURE_TYPE_DRIVER_PROPERTIES, ..Default::default() };
    // SAFETY: `properties` is writable and has its type.
    unsafe { driver().driver_get_properties(raw, &raw mut properties) }.ok()?;
    Ok(properties.driverVersion)
}
/// The flags `ze_ipc_property_flags_t`: what can be shared with other processes.
///
/// # Errors
/// Returns the driver's error.
pub fn ipc(raw: RawDriver) -> Result<u32> {
    let mut properties = ze_driver_ipc_properties_t {
        stype: ZE_STRUCTURE_TYPE_DRIVER_IPC_PROPERTIES,
        ..Default::default()
    };
    // SAFETY: `properties` is writable and has its type.
    unsafe { driver().driver_get_ipc_properties(raw, &raw mut properties) }.ok()?;
    Ok(properties.flags)
}
/// The names and versions of the driver's extensions.
///
/// # Errors
/// Returns the driver's error.
pub fn extensions(raw: RawDriver) -> Result<Vec<(String, u32)>> {
    let mut count = 0;
    // SAFETY: `count` is writable, and no list is passed.
    unsafe { driver().driver_get_extension_properties(raw, &raw mut count, null_mut()) }.ok()?;
    let mut all = vec![ze_driver_extension_properties_t::default(); count as usize];
    // SAFETY: the list has `count` entries.
    let told =
        unsafe { driver().driver_get_extension_properties(raw, &raw mut count, all.as_mut_ptr()) };
    told.ok()?;
    all.truncate(count as usize);
    Ok(all.iter().map(|one| (text(&one.name), one.version)).collect())
}
/// The text before the first NUL, or all of it.
pub fn text(chars: &[c_char]) -> String {
    let bytes: Vec<u8> = chars.iter().map(|&c| c as u8).collect();
    match CStr::from_bytes_until_nul(&bytes) {
        Ok(text) => text.to_string_lossy().into_owned(),
        Err(_) => String::from_utf8_lossy(&bytes).into_owned(),
    }
}
