//! The platform: the one host.
use super::{
    Adapter, Cpu, Platform,
    adapter::{backend, is_opencl, the_adapter},
};
use std::{ffi::CStr, sync::OnceLock};
use ur_adapter::{
    api::PlatformApi,
    error::{Error, ErrorCode, Result},
    info::Answer,
    object::{Borrowed, Owned},
};
use ur_core::over_driver::own_handle;
use ur_sys::{
    ur_api_version_t, ur_native_handle_t, ur_platform_info_t, ur_platform_native_properties_t,
};

/// The one platform object of a process.
pub(super) fn the_platform() -> Owned<Platform> {
    static PLATFORM: OnceLock<Owned<Platform>> = OnceLock::new();
    PLATFORM.get_or_init(|| Owned::new(Platform)).clone()
}

/// The version of platform and device, in the words of the backend that they pass for: OpenCL's
/// start with the version of OpenCL.
pub(super) fn version() -> &'static str {
    match is_opencl() {
        true => concat!("OpenCL 3.0 Causeway native CPU ", env!("CARGO_PKG_VERSION")),
        false => concat!("Causeway native CPU ", env!("CARGO_PKG_VERSION")),
    }
}

impl PlatformApi for Cpu {
    fn platform_get(_adapter: Borrowed<'_, Adapter>) -> Result<Vec<Owned<Platform>>> {
        Ok(vec![the_platform()])
    }
    fn platform_get_info(
        _platform: Borrowed<'_, Platform>,
        name: ur_platform_info_t,
        answer: &mut Answer<'_>,
    ) -> Result<()> {
        match name {
            ur_platform_info_t::NAME => answer.str("Causeway native CPU"),
            ur_platform_info_t::VENDOR_NAME => answer.str("Causeway"),
            ur_platform_info_t::VERSION => answer.str(version()),
            ur_platform_info_t::EXTENSIONS => answer.str(""),
            ur_platform_info_t::PROFILE => answer.str("FULL_PROFILE"),
            ur_platform_info_t::BACKEND => answer.value(&backend().0),
            ur_platform_info_t::ADAPTER => answer.handle(&the_adapter()),
            _ => Err(Error::new(
                ErrorCode::UnsupportedEnumeration,
                format!("this platform has no answer to {name:?}"),
            )),
        }
    }
    fn platform_get_native_handle(platform: Borrowed<'_, Platform>) -> Result<ur_native_handle_t> {
        own_handle::of(&platform)
    }
    fn platform_create_with_native_handle(
        native: ur_native_handle_t,
        _adapter: Borrowed<'_, Adapter>,
        _properties: Option<&ur_platform_native_properties_t>,
    ) -> Result<Owned<Platform>> {
        own_handle::find(native)
    }
    fn platform_get_api_version(_platform: Borrowed<'_, Platform>) -> Result<ur_api_version_t> {
        Ok(ur_api_version_t::CURRENT)
    }
    fn platform_get_backend_option(
        _platform: Borrowed<'_, Platform>,
        frontend_option: &CStr,
    ) -> Result<&'static CStr> {
        match frontend_option.to_bytes() {
            b"-O0" | b"-O1" | b"-O2" | b"-O3" | b"" => Ok(c""),
            other => Err(Error::new(
                ErrorCode::InvalidValue,
                format!("no backend option stands for {}", String::from_utf8_lossy(other)),
            )),
        }
    }
}
