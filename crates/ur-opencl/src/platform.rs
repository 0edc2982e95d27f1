//! Platforms: those that the ICD loader lists, each with its devices.
use super::{
    DriverDevice,
    cl::*,
    device,
    driver::{self, Extensions, RawPlatform, Version},
    log::notice,
    native::{device as native, own::Tells},
};
use std::{
    ffi::CStr,
    sync::{Arc, OnceLock},
};
use ur_hal::{Error, ErrorKind, NativeHandle, PlatformFacts, Result, Severity};

/// A platform of OpenCL.
#[derive(Debug)]
pub struct DriverPlatform {
    raw: RawPlatform,
    extensions: Arc<Extensions>,
    devices: OnceLock<Vec<Arc<DriverDevice>>>,
}
impl DriverPlatform {
    /// The driver's name of it.
    pub fn raw(&self) -> RawPlatform {
        self.raw
    }
    /// The functions of its extensions.
    pub(super) fn extensions(&self) -> &Arc<Extensions> {
        &self.extensions
    }
    /// Its root devices, in the driver's order.
    pub fn devices(&self) -> &[Arc<DriverDevice>] {
        self.devices.get().map_or(&[], Vec::as_slice)
    }
    /// What users are told of it.
    pub(super) fn facts(&self) -> Result<PlatformFacts> {
        let text = |name| self.raw.text(name);
        Ok(PlatformFacts {
            name: text(CL_PLATFORM_NAME)?,
            vendor: text(CL_PLATFORM_VENDOR)?,
            version: text(CL_PLATFORM_VERSION)?,
            extensions: text(CL_PLATFORM_EXTENSIONS)?,
            handle: Some(NativeHandle(self.raw.addr() as u64)),
        })
    }
}

/// What was found, once a process.
fn found() -> &'static [Arc<DriverPlatform>] {
    static FOUND: OnceLock<Vec<Arc<DriverPlatform>>> = OnceLock::new();
    FOUND.get_or_init(|| {
        let platforms = match driver::is_there() {
            true => works("the ICD loader", native::platforms()).unwrap_or_default(),
            false => {
                let why = "there is no libOpenCL.so.1: install an ICD loader and a driver";
                notice(Severity::Note, &why);
                vec![]
            }
        };
        platforms.into_iter().filter_map(|raw| works("a platform", platform(raw))?).collect()
    })
}
fn platform(raw: RawPlatform) -> Result<Option<Arc<DriverPlatform>>> {
    raw.text(CL_PLATFORM_NAME)?;
    let extensions = Arc::new(Extensions::of(raw, version(&raw.text(CL_PLATFORM_VERSION)?)?));
    let platform = Arc::new(DriverPlatform { raw, extensions, devices: OnceLock::new() });
    let make = |raw| works("a device", device::root(&platform, raw));
    let devices: Vec<_> = native::devices(raw)?.into_iter().filter_map(make).collect();
    let has_any = !devices.is_empty();
    let _ = platform.devices.set(devices); // the one that set it is this
    Ok(has_any.then_some(platform))
}
/// The version of a platform, from what it says of it: "OpenCL 3.0 " and what it likes.
///
/// # Errors
/// `Unsupported` for one that is too old, and for what is none.
fn version(said: &str) -> Result<Version> {
    let number = said.strip_prefix("OpenCL ").and_then(|rest| rest.split(' ').next());
    let parts = number.and_then(|number| number.split_once('.'));
    let parts = parts.and_then(|(one, two)| Some((one.parse().ok()?, two.parse::<u8>().ok()?)));
    let version = parts.map(|(one, two): (u8, u8)| Version::from(one) * 10 + Version::from(two));
    version.filter(|version| *version >= driver::OLDEST).ok_or_else(|| {
        let why = format!("{said:?} is its version: 1.2 or later is needed");
        Error::new(ErrorKind::Unsupported, why)
    })
}
/// What was found of a platform or a device; one that fails is logged and left out.
fn works<T>(what: &str, found: Result<T>) -> Option<T> {
    let logged = |error: &Error| {
        let left_out = format!("{what} of OpenCL is left out: {error}");
        notice(Severity::Warning, &left_out);
    };
    found.inspect_err(logged).ok()
}
/// Every root device, of every platform. Starts the drivers.
pub fn devices() -> impl Iterator<Item = &'static Arc<DriverDevice>> {
    found().iter().flat_map(|one| one.devices())
}
/// The error of whatever would use the drivers while the process exits.
#[cold]
pub(super) fn exits() -> Error {
    let why = "the process exits: OpenCL is used no more";
    Error::new(ErrorKind::Uninitialized, why)
}
/// # Errors
/// `Uninitialized` in a child that was forked after the drivers were started: their threads are the parent's; and while the process
/// exits.
pub fn check_process() -> Result<()> {
    match driver::is_unusable() {
        false => Ok(()),
        true if driver::is_left() => Err(exits()),
        true => Err(Error::new(
            ErrorKind::Uninitialized,
            "OpenCL was started before this process was forked and does not work in the child: fork \
             first, or start another program",
        )),
    }
}
/// What compilers call options of optimisation, as OpenCL does.
pub(super) fn compiler_option(option: &[u8]) -> Option<&'static CStr> {
    Some(match option {
        b"" | b"-O1" | b"-O2" | b"-O3" => c"",
        b"-O0" => c"-cl-opt-disable",
        b"-ftarget-compile-fast" => c"-igc_opts 'PartitionUnit=1,SubroutineThreshold=50000'",
        b"-foffload-fp32-prec-div" | b"-foffload-fp32-prec-sqrt" => {
            c"-cl-fp32-correctly-rounded-divide-sqrt"
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_before_1_2_and_what_is_none_are_refused() {
        let told = |said| version(said).ok();
        assert_eq!(told("OpenCL 1.2"), Some(12));
        assert_eq!(told("OpenCL 3.0 LINUX"), Some(30));
        for none in
            ["OpenCL 1.1 x", "OpenCL 1.0", "", "OpenCL", "OpenCL x.y", "OpenCL 999.9", "3.0"]
        {
            assert_eq!(told(none), None, "{none}");
        }
    }
}
