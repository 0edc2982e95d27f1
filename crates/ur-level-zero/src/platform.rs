//! Platforms: the drivers of Level Zero that there are, each with its devices.
use super::{
    Adapter, Device, LevelZero,
    adapter::the_adapter,
    device,
    driver::{RawDriver, driver},
    extensions::Extensions,
    face,
    native::driver as native,
};
use std::{ffi::CStr, sync::OnceLock};
use ur_adapter::{
    api::PlatformApi,
    error::{Error, ErrorCode, Result},
    info::Answer,
    log,
    object::{Backend, Borrowed, Owned},
};
use ur_sys::{
    ur_api_version_t, ur_backend_t, ur_logger_level_t, ur_native_handle_t, ur_platform_info_t,
    ur_platform_native_properties_t,
};

/// What `ur_platform_handle_t` points at.
#[derive(Debug)]
pub struct Platform {
    raw: RawDriver,
    api_version: u32,
    version: u32,
    extensions: Extensions,
    devices: OnceLock<Vec<Owned<Device>>>,
}
impl Platform {
    fn new(raw: RawDriver) -> Result<Self> {
        Ok(Self {
            raw,
            api_version: native::api_version(raw)?,
            version: native::version(raw)?,
            extensions: Extensions::new(raw),
            devices: OnceLock::new(),
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
    /// Its root devices, in the driver's order.
    pub fn devices(&self) -> &[Owned<Device>] {
        self.devices.get().map_or(&[], Vec::as_slice)
    }
}

/// What was found, once a process.
#[derive(Debug)]
struct Found {
    /// In which of a line of forked processes the driver was started.
    fork: u64,
    platforms: Vec<Owned<Platform>>,
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
fn find() -> Result<Vec<Owned<Platform>>> {
    if !driver().is_there() {
        return Ok(vec![]);
    }
    let platform = |raw| {
        let platform = Owned::new(Platform::new(raw)?);
        let devices = device::find(&platform)?;
        let has_any = !devices.is_empty();
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
pub fn all() -> &'static [Owned<Platform>] {
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

impl PlatformApi for LevelZero {
    fn platform_get(_adapter: Borrowed<'_, Adapter>) -> Result<Vec<Owned<Platform>>> {
        check_fork()?;
        Ok(all().to_vec())
    }
    fn platform_get_info(
        platform: Borrowed<'_, Platform>,
        name: ur_platform_info_t,
        answer: &mut Answer<'_>,
    ) -> Result<()> {
        let version = platform.version;
        match name {
            ur_platform_info_t::NAME => answer.str(NAMES[usize::from(face::is_v2())]),
            ur_platform_info_t::VENDOR_NAME => answer.str("Intel(R) Corporation"),
            ur_platform_info_t::VERSION => {
                let api = platform.api_version;
                answer.str(&format!("{}.{}", api >> 16, api & 0xffff))
            }
            ur_platform_info_t::EXTENSIONS => answer.str(EXTENSIONS),
            ur_platform_info_t::PROFILE => answer.str("FULL_PROFILE"),
            ur_platform_info_t::BACKEND => answer.value(&ur_backend_t::LEVEL_ZERO.0),
            ur_platform_info_t::ADAPTER => answer.handle(&the_adapter()),
            _ => Err(Error::new(
                ErrorCode::UnsupportedEnumeration,
                format!("a platform of driver version {version:#x} has no answer to {name:?}"),
            )),
        }
    }
    fn platform_get_native_handle(platform: Borrowed<'_, Platform>) -> Result<ur_native_handle_t> {
        Ok(platform.raw.addr() as ur_native_handle_t)
    }
    fn platform_create_with_native_handle(
        native: ur_native_handle_t,
        _adapter: Borrowed<'_, Adapter>,
        _properties: Option<&ur_platform_native_properties_t>,
    ) -> Result<Owned<Platform>> {
        check_fork()?;
        let is_it = |one: &&Owned<Platform>| one.raw.addr() as ur_native_handle_t == native;
        all().iter().find(is_it).cloned().ok_or_else(|| {
            let why = format!("no driver of Level Zero with a GPU has the handle {native:#x}");
            Error::new(ErrorCode::InvalidValue, why)
        })
    }
    fn platform_get_api_version(_platform: Borrowed<'_, Platform>) -> Result<ur_api_version_t> {
        Ok(ur_api_version_t::CURRENT)
    }
    fn platform_get_backend_option(
        _platform: Borrowed<'_, Platform>,
        frontend_option: &CStr,
    ) -> Result<&'static CStr> {
        match frontend_option.to_bytes() {
            b"" => Ok(c""),
            b"-O0" => Ok(c"-ze-opt-disable"),
            b"-O1" | b"-O2" | b"-O3" => Ok(c"-ze-opt-level=2"),
            b"-ftarget-compile-fast" => {
                Ok(c"-igc_opts 'PartitionUnit=1,SubroutineThreshold=50000'")
            }
            b"-foffload-fp32-prec-div" => Ok(c"-ze-fp32-correctly-rounded-divide-sqrt"),
            b"-foffload-fp32-prec-sqrt" => Ok(c"-ze-fp32-correctly-rounded-divide-sqrt"),
            other => Err(Error::new(
                ErrorCode::InvalidValue,
                format!("no backend option stands for {}", String::from_utf8_lossy(other)),
            )),
        }
    }
}
