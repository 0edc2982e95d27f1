//! Properties as the bytes that an adapter returns, whatever their type.
use super::{Api, Device, Platform, slot};
use crate::Result;
use std::ffi::c_void;
use ur_sys::*;

impl Platform {
    /// The answer to any query; `None` if the adapter does not support it.
    pub(crate) fn bytes(&self, name: u32) -> Result<Option<Vec<u8>>> {
        let get = slot(self.api.table.platform.get_info, "urPlatformGetInfo")?;
        self.api.bytes("urPlatformGetInfo", |size, value, needed| {
            // SAFETY: `bytes` provides `size` bytes at `value`.
            unsafe { get(self.raw, ur_platform_info_t(name), size, value, needed) }
        })
    }
}
impl Device {
    /// The answer to any query; `None` if the adapter does not support it.
    pub(crate) fn bytes(&self, name: u32) -> Result<Option<Vec<u8>>> {
        let get = slot(self.api.table.device.get_info, "urDeviceGetInfo")?;
        self.api.bytes("urDeviceGetInfo", |size, value, needed| {
            // SAFETY: `bytes` provides `size` bytes at `value`.
            unsafe { get(self.raw, ur_device_info_t(name), size, value, needed) }
        })
    }
}
impl Api {
    /// Queries the size first, then the value.
    fn bytes(
        &self,
        entry: &'static str,
        query: impl Fn(usize, *mut c_void, *mut usize) -> ur_result_t,
    ) -> Result<Option<Vec<u8>>> {
        let mut length = 0;
        match query(0, std::ptr::null_mut(), &mut length) {
            ur_result_t::ERROR_UNSUPPORTED_ENUMERATION
            | ur_result_t::ERROR_INVALID_ENUMERATION
            | ur_result_t::ERROR_UNSUPPORTED_FEATURE => return Ok(None),
            code => self.check(entry, code)?,
        }
        let mut bytes = vec![0_u8; length];
        if length > 0 {
            let place = bytes.as_mut_ptr().cast();
            self.check(entry, query(length, place, std::ptr::null_mut()))?;
        }
        Ok(Some(bytes))
    }
}
