//! Contexts of the driver.
#![expect(unsafe_code, reason = "calls into the vendor's driver")]
use super::{
    super::driver::{RawContext, RawDevice, RawDriver, driver},
    fork::release,
};
use std::ptr::null;
use ur_hal::Result;
use ze_sys::*;

/// A context; destroyed on drop if owned.
#[derive(Debug)]
pub struct NativeContext {
    raw: RawContext,
    owned: bool,
}
impl NativeContext {
    /// Creates a context for these devices, or for all devices of the driver if the driver cannot restrict
    /// it.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn create(on: RawDriver, devices: &[RawDevice]) -> Result<Self> {
        let desc =
            ze_context_desc_t { stype: ZE_STRUCTURE_TYPE_CONTEXT_DESC, pNext: null(), flags: 0 };
        let mut raw = None;
        let count = devices.len() as u32;
        // SAFETY: the devices are the driver's, `desc` has its type and `raw` is writable.
        let made = unsafe {
            driver().context_create_ex(on, &raw const desc, count, devices.as_ptr(), &raw mut raw)
        };
        if made.status().is_none() {
            // SAFETY: as above.
            unsafe { driver().context_create(on, &raw const desc, &raw mut raw) }.ok()?;
        } else {
            made.ok()?;
        }
        Ok(Self { raw: RawContext::given(raw, "zeContextCreateEx")?, owned: true })
    }
    /// Wraps an existing context; `owned`: it is destroyed on drop.
    pub fn adopt(raw: RawContext, owned: bool) -> Self {
        Self { raw, owned }
    }
    /// The driver's handle.
    pub fn raw(&self) -> RawContext {
        self.raw
    }
}
impl Drop for NativeContext {
    fn drop(&mut self) {
        if self.owned {
            // SAFETY: owned, and destroyed once; the objects created in it no longer exist.
            release(|| unsafe { driver().context_destroy(self.raw) });
        }
    }
}
