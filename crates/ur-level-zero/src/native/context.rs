//! Contexts of the driver.
#![expect(unsafe_code, reason = "calls into the vendor's driver")]
use super::{
    super::driver::{RawContext, RawDevice, RawDriver, driver},
    owned::Owned,
};
use std::sync::Arc;
use ur_hal::{Result, made};
use ze_sys::*;

/// A context.
pub type NativeContext = Owned<RawContext, ()>;
/// An object that was created in a context.
pub type InContext<R> = Owned<R, Arc<NativeContext>>;
impl NativeContext {
    /// Creates a context for these devices, or for all devices of the driver if the driver cannot restrict
    /// it.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn create(on: RawDriver, devices: &[RawDevice]) -> Result<Self> {
        let (desc, count) = (ze_context_desc_t::default(), devices.len() as u32);
        let raw = match driver().has("context_create_ex") {
            // SAFETY: the devices are the driver's, `desc` has its type and `to` is writable.
            true => made(|to| unsafe {
                driver().context_create_ex(on, &desc, count, devices.as_ptr(), to)
            }),
            // SAFETY: as above.
            false => made(|to| unsafe { driver().context_create(on, &desc, to) }),
        };
        raw.map(|raw| Self::new(raw, ()))
    }
}
