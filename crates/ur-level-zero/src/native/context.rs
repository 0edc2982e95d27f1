//! Contexts of the driver.
#![expect(unsafe_code, reason = "calls into the vendor's driver")]
use super::{
    super::driver::{Destroy, Outcome, RawContext, RawDevice, RawDriver, driver},
    owned::Owned,
};
use std::{ffi::c_void, ptr, sync::Arc};
use ur_hal::{Result, made};
use ze_sys::*;

/// A context.
pub type NativeContext = Owned<RawContext, ()>;
/// An object that was created in a context.
pub type InContext<R> = Owned<R, Arc<NativeContext>>;
/// The address as a pointer.
pub(super) fn pointer(at: u64) -> *mut c_void {
    ptr::with_exposed_provenance_mut(at as usize)
}
macro_rules! taken_back { ($($(#[$doc:meta])* $name:ident($field:ty), |$what:ident, $context:ident| $call:ident($($argument:expr),*);)*) => { $(
    $(#[$doc])*
    #[derive(Clone, Copy, Debug)]
    pub struct $name(pub $field);
    impl Destroy<Arc<NativeContext>> for $name {
        unsafe fn destroy(self, within: &Arc<NativeContext>) -> Outcome {
            let ($what, $context) = (self.0, within.raw());
            // SAFETY: the caller owns it.
            unsafe { driver().$call($($argument),*) }
        }
    }
)* } }
taken_back! {
    /// Memory at this address.
    Allocated(u64), |at, context| mem_free(context, pointer(at));
    /// The first of some reserved addresses, and how many there are.
    Reserved((u64, usize)), |range, context| virtual_mem_free(context, pointer(range.0), range.1);
    /// Memory of another process that was opened at this address.
    Opened(u64), |at, context| mem_close_ipc_handle(context, pointer(at));
    /// A handle for other processes, which is valid until it is returned.
    Lent(ze_ipc_mem_handle_t), |handle, context| mem_put_ipc_handle(context, handle);
}
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
