//! The driver's functions, bound at run time by their names from the loader of Level Zero. What a
//! call means and who owns what is `native/`'s; which functions there are is `driver/rows.rs`'s.
#![expect(unsafe_code, reason = "calls into the vendor's driver")]
mod rows;

use std::{
    ffi::c_void,
    fmt,
    ptr::{NonNull, null_mut, with_exposed_provenance_mut},
    sync::OnceLock,
};
use ur_adapter::{
    error::{Error, ErrorCode, Result},
    object::Backend,
};
use ze_sys::*;

pub use rows::Driver;

macro_rules! raws { ($($(#[$doc:meta])* $name:ident: $c:ident;)*) => { $(
    $(#[$doc])*
    #[repr(transparent)]
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
    pub struct $name(NonNull<$c>);
    // SAFETY: a name that the driver gave; which threads may use it when is said where it is used.
    unsafe impl Send for $name {}
    // SAFETY: as above.
    unsafe impl Sync for $name {}
    impl $name {
        /// The handle as a number, as native handles are given to C.
        pub fn addr(self) -> usize {
            self.0.as_ptr().expose_provenance()
        }
        /// `None` for 0.
        pub fn from_addr(addr: usize) -> Option<Self> {
            NonNull::new(with_exposed_provenance_mut(addr)).map(Self)
        }
        /// As the driver's structures have it.
        pub fn ze(self) -> *mut $c {
            self.0.as_ptr()
        }
        /// From one of the driver's structures; `None` for null.
        pub fn from_ze(handle: *mut $c) -> Option<Self> {
            NonNull::new(handle).map(Self)
        }
        /// What a successful call must have given.
        ///
        /// # Errors
        /// `UNKNOWN` for null.
        pub fn given(handle: Option<Self>, call: &'static str) -> Result<Self> {
            handle.ok_or_else(|| {
                let why = format!("{call} succeeded and gave a null handle: the driver is broken");
                Error::new(ErrorCode::Unknown, why)
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

/// What a driver call came to.
#[must_use]
#[derive(Clone, Copy)]
pub struct Outcome {
    call: &'static str,
    /// `None`: this driver has no such function.
    status: Option<ze_result_t>,
}
impl Outcome {
    pub(super) fn new(call: &'static str, status: Option<ze_result_t>) -> Self {
        Self { call, status }
    }
    /// # Errors
    /// Our code for what the driver said, with the call's name and what it means.
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
    /// What the driver said, untranslated; `None` if it lacks the function.
    pub fn status(self) -> Option<ze_result_t> {
        self.status
    }
    /// For queries and waits with an end: "not ready" is an answer, not a failure.
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
    /// For releases: a driver that shut down first has released everything.
    ///
    /// # Errors
    /// As for [`Outcome::ok`].
    pub fn released(self) -> Result<()> {
        match self.status {
            Some(ZE_RESULT_ERROR_UNINITIALIZED) => Ok(()),
            _ => self.ok(),
        }
    }
    /// For releases in destructors: a failure is logged, since nobody can be told.
    pub fn let_go(self) {
        if let Err(error) = self.released() {
            ur_adapter::log::say(Backend::LevelZero, ur_sys::ur_logger_level_t::WARN, &error);
        }
    }
    /// Whether the driver said that it has not what was asked for: no such function, or one that
    /// answers so.
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

/// What the loader of Level Zero is called, newest first.
const LIBRARIES: [&str; 2] = ["libze_loader.so.1", "libze_loader.so"];

/// The driver's functions; bound at first use, whether there is a driver or not.
pub fn driver() -> &'static Driver {
    static DRIVER: OnceLock<Driver> = OnceLock::new();
    DRIVER.get_or_init(|| {
        // SAFETY: runs the library's initialisers; asking for this adapter is asking for that.
        let open = |name| unsafe { libloading::Library::new(name) }.ok();
        Driver::bind(LIBRARIES.into_iter().find_map(open))
    })
}
impl fmt::Debug for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Driver").field("is_there", &self.is_there()).finish_non_exhaustive()
    }
}

/// What the driver itself calls `raw`. A loader of several drivers may hand out handles of its own, which the functions
/// that it exports know, and the driver's extension functions, called by their addresses, do not.
pub(super) fn unwrapped(raw: RawDriver) -> RawDriver {
    /// `ZEL_HANDLE_DRIVER`
    const KIND: u32 = 0;
    let mut own = null_mut();
    let (from, to) = (raw.ze().cast(), &raw mut own);
    // SAFETY: a live handle of that kind; `own` is writable.
    let told = unsafe { driver().loader_translate_handle(KIND, from, to) };
    match told.status() {
        Some(ZE_RESULT_SUCCESS) => RawDriver::from_ze(own.cast()).unwrap_or(raw),
        _ => raw, // an older loader has no such function
    }
}
/// The address of one of a driver's extension functions; `None` where it has none of that name.
pub(super) fn extension(raw: RawDriver, name: &std::ffi::CStr) -> Option<NonNull<c_void>> {
    let mut at = null_mut();
    let (to, name) = (&raw mut at, name.as_ptr());
    // SAFETY: drivers live for as long as the process; the name ends with a NUL, `at` is writable.
    let told = unsafe { driver().driver_get_extension_function_address(raw, name, to) };
    NonNull::new(at).filter(|_| told.status() == Some(ZE_RESULT_SUCCESS))
}
