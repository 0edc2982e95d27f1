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
use ur_hal::{Error, ErrorKind, Result, Severity};
use ze_sys::*;

pub use rows::Driver;

macro_rules! raws { ($($(#[$doc:meta])* $name:ident: $c:ident;)*) => { $(
    $(#[$doc])*
    #[repr(transparent)]
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
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
        /// Checks the handle that a successful call returned.
        ///
        /// # Errors
        /// `UNKNOWN` for null.
        pub fn given(handle: Option<Self>, call: &'static str) -> Result<Self> {
            handle.ok_or_else(|| {
                let why = format!("{call} succeeded and gave a null handle: the driver is broken");
                Error::new(ErrorKind::Unknown, why)
            })
        }
    }
)* } }
raws! {
    /// `ze_driver_handle_t`
    RawDriver: _ze_driver_handle_t;
    /// `ze_device_handle_t`
    RawDevice: _ze_device_handle_t;
    /// `ze_context_handle_t`
    RawContext: _ze_context_handle_t;
    /// `ze_command_list_handle_t`
    RawList: _ze_command_list_handle_t;
    /// `ze_event_pool_handle_t`
    RawEventPool: _ze_event_pool_handle_t;
    /// `ze_event_handle_t`
    RawEvent: _ze_event_handle_t;
    /// `ze_image_handle_t`
    RawImage: _ze_image_handle_t;
    /// `ze_module_handle_t`
    RawModule: _ze_module_handle_t;
    /// `ze_module_build_log_handle_t`
    RawBuildLog: _ze_module_build_log_handle_t;
    /// `ze_kernel_handle_t`
    RawKernel: _ze_kernel_handle_t;
    /// `ze_sampler_handle_t`
    RawSampler: _ze_sampler_handle_t;
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

/// The result of a driver call.
#[must_use]
#[derive(Clone, Copy)]
pub struct Outcome {
    call: &'static str,
    /// The driver's status; `None` if this driver does not have the function.
    status: Option<ze_result_t>,
}
impl Outcome {
    pub(super) fn new(call: &'static str, status: Option<ze_result_t>) -> Self {
        Self { call, status }
    }
    /// # Errors
    /// Returns the driver's failure, mapped as in `error.rs`, with the name of the call and a description.
    #[inline]
    pub fn ok(self) -> Result<()> {
        if self.status == Some(ZE_RESULT_SUCCESS) { Ok(()) } else { self.failed() }
    }
    #[cold]
    fn failed(self) -> Result<()> {
        match self.status {
            Some(ZE_RESULT_SUCCESS) => Ok(()),
            Some(n) => Err(super::error::failure(self.call, n)),
            None => Err(super::error::missing(self.call)),
        }
    }
    /// The driver's status as it is; `None` if the driver does not have the function.
    pub fn status(self) -> Option<ze_result_t> {
        self.status
    }
    /// For queries and waits with a timeout: "not ready" is `false`, not an error.
    ///
    /// # Errors
    /// As for [`Outcome::ok`].
    #[inline]
    pub fn ready(self) -> Result<bool> {
        match self.status {
            Some(ZE_RESULT_NOT_READY) => Ok(false),
            _ => self.ok().map(|()| true),
        }
    }
    /// For releases: a driver that has already shut down has released everything, so that status is success.
    ///
    /// # Errors
    /// As for [`Outcome::ok`].
    pub fn released(self) -> Result<()> {
        match self.status {
            Some(ZE_RESULT_ERROR_UNINITIALIZED) => Ok(()),
            _ => self.ok(),
        }
    }
    /// For releases in destructors: a failure is logged, because it cannot be returned.
    pub fn let_go(self) {
        if let Err(error) = self.released() {
            notice(Severity::Warning, &error);
        }
    }
    /// Whether the driver does not support the call: the function is missing, or returned such a status.
    pub fn is_unsupported(self) -> bool {
        matches!(
            self.status,
            None | Some(
                ZE_RESULT_ERROR_UNSUPPORTED_FEATURE
                    | ZE_RESULT_ERROR_UNSUPPORTED_VERSION
                    | ZE_RESULT_ERROR_NOT_AVAILABLE
                    | ZE_RESULT_ERROR_UNSUPPORTED_ENUMERATION
            )
        )
    }
}
impl fmt::Debug for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {:x?}", self.call, self.status)
    }
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
