//! The driver's functions, bound at run time by name from the Level Zero loader. What the calls mean and who
//! owns what is in `native/`; the table of functions is in `driver/rows.rs`.
#![expect(unsafe_code, reason = "calls into the vendor's driver")]
mod rows;

/// The name in messages.
pub const NAME: &str = "Level Zero";

use crate::log::notice;
use std::{
    ffi::c_void,
    fmt,
    ptr::{NonNull, null_mut, with_exposed_provenance_mut},
    sync::OnceLock,
};
use ur_hal::{Error, Severity, Statuses};
use ze_sys::*;

pub use rows::Driver;

/// Something that one call takes back, such as the handle of an object, which was made in a `K`.
pub trait Destroy<K>: Copy {
    /// Takes it back.
    ///
    /// # Safety
    /// The caller owns it, and nothing uses it any more.
    unsafe fn destroy(self, within: &K) -> Outcome;
}
macro_rules! raws { ($($(#[$doc:meta])* $name:ident: $c:ident $(, $destroy:ident)?;)*) => { $(
    $(#[$doc])*
    #[repr(transparent)]
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
    pub struct $name(NonNull<$c>);
    // SAFETY: an opaque handle from the driver; thread safety is considered where it is used.
    unsafe impl Send for $name {}
    // SAFETY: as above.
    unsafe impl Sync for $name {}
    impl $name {
        /// The handle as a number, for native handles.
        pub fn addr(self) -> usize {
            self.0.as_ptr().expose_provenance()
        }
        /// `None` for 0.
        pub fn from_addr(addr: usize) -> Option<Self> {
            NonNull::new(with_exposed_provenance_mut(addr)).map(Self)
        }
        /// The handle as the type in the driver's structures.
        pub fn ze(self) -> *mut $c {
            self.0.as_ptr()
        }
        /// Converts a handle from one of the driver's structures; `None` for null.
        pub fn from_ze(handle: *mut $c) -> Option<Self> {
            NonNull::new(handle).map(Self)
        }
    }
    $(impl<K> Destroy<K> for $name {
        unsafe fn destroy(self, _: &K) -> Outcome {
            // SAFETY: the caller owns the object.
            unsafe { driver().$destroy(self) }
        }
    })?
)* } }
raws! {
    /// `ze_driver_handle_t`
    RawDriver: _ze_driver_handle_t;
    /// `ze_device_handle_t`
    RawDevice: _ze_device_handle_t;
    /// `ze_context_handle_t`
    RawContext: _ze_context_handle_t, context_destroy;
    /// `ze_command_list_handle_t`
    RawList: _ze_command_list_handle_t, command_list_destroy;
    /// `ze_event_pool_handle_t`
    RawEventPool: _ze_event_pool_handle_t, event_pool_destroy;
    /// `ze_event_handle_t`
    RawEvent: _ze_event_handle_t, event_destroy;
    /// `ze_image_handle_t`
    RawImage: _ze_image_handle_t, image_destroy;
    /// `ze_module_handle_t`
    RawModule: _ze_module_handle_t, module_destroy;
    /// `ze_module_build_log_handle_t`
    RawBuildLog: _ze_module_build_log_handle_t, module_build_log_destroy;
    /// `ze_kernel_handle_t`
    RawKernel: _ze_kernel_handle_t, kernel_destroy;
    /// `ze_sampler_handle_t`
    RawSampler: _ze_sampler_handle_t, sampler_destroy;
    /// `ze_physical_mem_handle_t`
    RawPhysical: _ze_physical_mem_handle_t;
    /// `zes_driver_handle_t`
    RawSysmanDriver: _zes_driver_handle_t;
    /// `zes_device_handle_t`
    RawSysmanDevice: _zes_device_handle_t;
    /// `zes_mem_handle_t`
    RawMemoryModule: _zes_mem_handle_t;
    /// `zes_freq_handle_t`
    RawFrequency: _zes_freq_handle_t;
}

/// What the values of `ze_result_t` mean.
#[derive(Debug)]
pub enum ZeResults {}
impl Statuses for ZeResults {
    type Status = ze_result_t;
    const SUCCESS: ze_result_t = ZE_RESULT_SUCCESS;
    const ENDED: ze_result_t = ZE_RESULT_ERROR_UNINITIALIZED;
    fn is_pending(status: ze_result_t) -> bool {
        status == ZE_RESULT_NOT_READY
    }
    fn failure(call: &'static str, status: ze_result_t) -> Error {
        super::error::failure(call, status)
    }
    fn missing(call: &'static str) -> Error {
        super::error::missing(call)
    }
    fn report(error: &Error) {
        notice(Severity::Warning, error);
    }
}
/// The result of a driver call.
pub type Outcome = ur_hal::Outcome<ZeResults>;
/// Whether the driver does not support the call: the function is missing, or returned such a status.
pub fn is_unsupported(outcome: Outcome) -> bool {
    matches!(
        outcome.status(),
        None | Some(
            ZE_RESULT_ERROR_UNSUPPORTED_FEATURE
                | ZE_RESULT_ERROR_UNSUPPORTED_VERSION
                | ZE_RESULT_ERROR_NOT_AVAILABLE
                | ZE_RESULT_ERROR_UNSUPPORTED_ENUMERATION
        )
    )
}

/// File names of the Level Zero loader, preferred one first.
const LIBRARIES: [&str; 2] = ["libze_loader.so.1", "libze_loader.so"];

/// The driver's functions; bound at first use. Without a library all functions are missing.
pub fn driver() -> &'static Driver {
    static DRIVER: OnceLock<Driver> = OnceLock::new();
    DRIVER.get_or_init(|| {
        // SAFETY: loading runs the library's initialisers, which loading this adapter implies.
        let open = |name| unsafe { libloading::Library::new(name) }.ok();
        Driver::bind(LIBRARIES.into_iter().find_map(open))
    })
}
impl fmt::Debug for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Driver").field("is_there", &self.is_there()).finish_non_exhaustive()
    }
}

/// The driver's own handle for `raw`. A loader with several drivers may return wrapped handles, which only
/// its exported functions accept; extension functions, called by address, need the driver's own.
pub(super) fn unwrapped(raw: RawDriver) -> RawDriver {
    /// `ZEL_HANDLE_DRIVER`
    const KIND: u32 = 0;
    let mut own = null_mut();
    let (from, to) = (raw.ze().cast(), &raw mut own);
    // SAFETY: a live handle of that kind; `own` is writable.
    let told = unsafe { driver().loader_translate_handle(KIND, from, to) };
    match told.status() {
        Some(ZE_RESULT_SUCCESS) => RawDriver::from_ze(own.cast()).unwrap_or(raw),
        _ => raw, // an older loader does not have the function
    }
}
/// The address of a driver's extension function; `None` if the driver does not have it.
pub(super) fn extension(raw: RawDriver, name: &std::ffi::CStr) -> Option<NonNull<c_void>> {
    let mut at = null_mut();
    let (to, name) = (&raw mut at, name.as_ptr());
    // SAFETY: drivers live as long as the process; the name ends with a NUL, `at` is writable.
    let told = unsafe { driver().driver_get_extension_function_address(raw, name, to) };
    NonNull::new(at).filter(|_| told.status() == Some(ZE_RESULT_SUCCESS))
}
