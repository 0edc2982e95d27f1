//! Platforms: the Level Zero drivers, each with its devices.
use super::{
    DriverDevice, device,
    driver::{RawDriver, driver},
    extensions::Extensions,
    native::{driver as native, fork},
    variant,
};
use crate::log::notice;
use std::{
    ffi::CStr,
    sync::{Arc, OnceLock},
};
use ur_hal::{Error, NativeHandle, PlatformFacts, Result, Severity};

/// A Level Zero driver.
#[derive(Debug)]
pub struct DriverPlatform {
    raw: RawDriver,
    api_version: u32,
    version: u32,
    extensions: Extensions,
    devices: OnceLock<Vec<Arc<DriverDevice>>>,
    /// The composite devices of which `devices` are components (`ZE_FLAT_DEVICE_HIERARCHY=COMBINED`).
    composites: OnceLock<Vec<Arc<DriverDevice>>>,
}
impl DriverPlatform {
    fn new(raw: RawDriver) -> Result<Self> {
        Ok(Self {
            raw,
            api_version: native::api_version(raw)?,
            version: native::version(raw)?,
            extensions: Extensions::new(raw),
            devices: OnceLock::new(),
            composites: OnceLock::new(),
        })
    }
    /// The driver's handle.
    pub fn raw(&self) -> RawDriver {
        self.raw
    }
    /// The version of the specification that it implements: major in the upper half, minor in the lower.
    pub fn api_version(&self) -> u32 {
        self.api_version
    }
    /// The driver's own version.
    pub fn version(&self) -> u32 {
        self.version
    }
    /// Its extensions, and the functions that the loader does not export by name.
    pub fn extensions(&self) -> &Extensions {
        &self.extensions
    }
    /// The composite devices of which its root devices are components, if the driver reports both.
    pub fn composites(&self) -> &[Arc<DriverDevice>] {
        self.composites.get().map_or(&[], Vec::as_slice)
    }
    /// Its root devices, in the driver's order.
    pub fn devices(&self) -> &[Arc<DriverDevice>] {
        self.devices.get().map_or(&[], Vec::as_slice)
    }
}

/// All platforms that have a supported device. The first call initialises the driver.
pub fn all() -> &'static [Arc<DriverPlatform>] {
    static FOUND: OnceLock<Vec<Arc<DriverPlatform>>> = OnceLock::new();
    FOUND.get_or_init(|| {
        let platforms = find().unwrap_or_else(|error| {
            notice(Severity::Warning, &error);
            vec![]
        });
        fork::note_start();
        platforms
    })
}
/// Enumerates the drivers. Without a driver or device the list is empty; that is no error. A driver that
/// fails is logged and skipped.
fn find() -> Result<Vec<Arc<DriverPlatform>>> {
    if !driver().is_there() {
        return Ok(vec![]);
    }
    let platform = |raw| {
        let platform = Arc::new(DriverPlatform::new(raw)?);
        let devices = device::find(&platform)?;
        let has_any = !devices.is_empty();
        let composites = device::composites(&platform, &devices)?;
        let _ = platform.composites.set(composites); // as below
        let _ = platform.devices.set(devices); // cannot fail: set only here
        Ok(has_any.then_some(platform))
    };
    let drivers = native::all(super::options().every_kind)?;
    Ok(drivers.into_iter().filter_map(|raw| works("a driver", platform(raw)).flatten()).collect())
}
/// The result for a driver or a device; one that failed is logged and skipped.
pub(super) fn works<T>(what: &str, found: Result<T>) -> Option<T> {
    let logged = |error: &Error| {
        let left_out = format!("{what} of Level Zero is left out: {error}");
        notice(Severity::Warning, &left_out);
    };
    found.inspect_err(logged).ok()
}
/// # Errors
/// `UNINITIALIZED` in a child process that was forked after the driver was initialised: the driver does not
/// work there.
pub fn check_fork() -> Result<()> {
    all();
    fork::check()
}

/// The platform names of Unified Runtime's own adapters, because programs select platforms by name.
const NAMES: [&str; 2] = [
    "Intel(R) oneAPI Unified Runtime over Level-Zero",
    "Intel(R) oneAPI Unified Runtime over Level-Zero V2",
];
/// The OpenCL names of the extensions that every device of a platform supports.
const EXTENSIONS: &str = "cl_khr_il_program cl_khr_subgroups cl_intel_subgroups \
                          cl_intel_subgroups_short cl_intel_required_subgroup_size ";

impl DriverPlatform {
    /// The properties that are reported to users.
    pub(super) fn facts(&self) -> PlatformFacts {
        PlatformFacts {
            name: NAMES[usize::from(variant::is_v2())].into(),
            vendor: "Intel(R) Corporation".into(),
            version: format!("{}.{}", self.api_version >> 16, self.api_version & 0xffff),
            extensions: EXTENSIONS.into(),
            handle: Some(NativeHandle(self.raw.addr() as u64)),
        }
    }
}
/// The option of the driver's compiler that corresponds to one of the compiler's command line.
pub(super) fn compiler_option(option: &[u8]) -> Option<&'static CStr> {
    Some(match option {
        b"" => c"",
        b"-O0" => c"-ze-opt-disable",
        b"-O1" | b"-O2" | b"-O3" => c"-ze-opt-level=2",
        b"-ftarget-compile-fast" => c"-igc_opts 'PartitionUnit=1,SubroutineThreshold=50000'",
        b"-foffload-fp32-prec-div" | b"-foffload-fp32-prec-sqrt" => {
            c"-ze-fp32-correctly-rounded-divide-sqrt"
        }
        _ => return None,
    })
}
