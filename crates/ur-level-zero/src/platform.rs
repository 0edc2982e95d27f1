//! Platforms: the drivers of Level Zero that there are, each with its devices.
use super::{
    DriverDevice, device,
    driver::{RawDriver, driver},
    extensions::Extensions,
    native::driver as native,
    variant,
};
use std::{
    ffi::CStr,
    sync::{Arc, OnceLock},
};
use ur_adapter::{
    error::{Error, ErrorCode, Result},
    log,
    object::Backend,
};
use ur_hal::{NativeHandle, PlatformFacts};
use ur_sys::ur_logger_level_t;

/// A driver of Level Zero.
#[derive(Debug)]
pub struct DriverPlatform {
    raw: RawDriver,
    api_version: u32,
    version: u32,
    extensions: Extensions,
    devices: OnceLock<Vec<Arc<DriverDevice>>>,
    /// The wholes whose parts are `devices`: `ZE_FLAT_DEVICE_HIERARCHY=COMBINED`.
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
    /// The specification that the driver follows: major in the upper half, minor in the lower.
    pub fn api_version(&self) -> u32 {
        self.api_version
    }
    /// The driver's own version.
    pub fn version(&self) -> u32 {
        self.version
    }
    /// What the driver offers beyond what its loader exports by name.
    pub fn extensions(&self) -> &Extensions {
        &self.extensions
    }
    /// The wholes whose parts are its root devices, where the driver tells of both.
    pub fn composites(&self) -> &[Arc<DriverDevice>] {
        self.composites.get().map_or(&[], Vec::as_slice)
    }
    /// Its root devices, in the driver's order.
    pub fn devices(&self) -> &[Arc<DriverDevice>] {
        self.devices.get().map_or(&[], Vec::as_slice)
    }
}

/// What was found, once a process.
#[derive(Debug)]
struct Found {
    /// In which of a line of forked processes the driver was started.
    fork: u64,
    platforms: Vec<Arc<DriverPlatform>>,
}
fn found() -> &'static Found {
    static FOUND: OnceLock<Found> = OnceLock::new();
    FOUND.get_or_init(|| {
        let platforms = find().unwrap_or_else(|error| {
            log::say(Backend::LevelZero, ur_logger_level_t::WARN, &error);
            vec![]
        });
        Found { fork: ur_mapping::fork_count(), platforms }
    })
}
/// No driver and no device are no failure: then there are no platforms. A driver that fails is logged and left out.
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
        let _ = platform.devices.set(devices); // the one that set it is this
        Ok(has_any.then_some(platform))
    };
    let drivers = native::all(super::options().every_kind)?;
    Ok(drivers.into_iter().filter_map(|raw| works("a driver", platform(raw)).flatten()).collect())
}
/// What was found of a driver or a device; one that fails is logged.
pub(super) fn works<T>(what: &str, found: Result<T>) -> Option<T> {
    let logged = |error: &Error| {
        let left_out = format!("{what} of Level Zero is left out: {error}");
        log::say(Backend::LevelZero, ur_logger_level_t::WARN, &left_out);
    };
    found.inspect_err(logged).ok()
}
/// Every platform that has a device for us. Starts the driver.
pub fn all() -> &'static [Arc<DriverPlatform>] {
    &found().platforms
}
/// # Errors
/// `UNINITIALIZED` in a child that was forked after the driver was started: it does not work there.
pub fn check_fork() -> Result<()> {
    match found().fork == ur_mapping::fork_count() {
        true => Ok(()),
        false => Err(Error::new(
            ErrorCode::Uninitialized,
            "Level Zero was started before this process was forked and does not work in the child: \
             fork first, or start another program",
        )),
    }
}

/// What programs that choose a platform by its name look for.
const NAMES: [&str; 2] = [
    "Intel(R) oneAPI Unified Runtime over Level-Zero",
    "Intel(R) oneAPI Unified Runtime over Level-Zero V2",
];
/// What every device of a platform has, in OpenCL's words.
const EXTENSIONS: &str = "cl_khr_il_program cl_khr_subgroups cl_intel_subgroups \
                          cl_intel_subgroups_short cl_intel_required_subgroup_size ";

impl DriverPlatform {
    /// What users are told of it.
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
/// What options of a compiler's command line are called by the driver's compiler.
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
