//! The platform: the driver, if it is there and has a device.
use super::{
    Adapter, Family,
    adapter::{backend, the_adapter},
    device,
    driver::Dialect,
    native,
};
use std::{ffi::CStr, marker::PhantomData};
use ur_adapter::{
    api::PlatformApi,
    error::{Error, ErrorCode, Result},
    info::Answer,
    object::{Borrowed, Owned},
};
use ur_sys::{
    ur_api_version_t, ur_native_handle_t, ur_platform_info_t, ur_platform_native_properties_t,
};

/// What `ur_platform_handle_t` points at.
#[derive(Debug)]
pub struct Platform<D: Dialect>(PhantomData<fn() -> D>);

/// The one platform object of a process.
pub(super) fn the_platform<D: Dialect>() -> Owned<Platform<D>> {
    D::statics().platform.get(|| Owned::new(Platform(PhantomData))).clone()
}

impl<D: Dialect> PlatformApi for Family<D> {
    fn platform_get(_adapter: Borrowed<'_, Adapter<D>>) -> Result<Vec<Owned<Platform<D>>>> {
        device::check_fork::<D>()?;
        Ok(if device::all::<D>().is_empty() { vec![] } else { vec![the_platform()] })
    }
    fn platform_get_info(
        _platform: Borrowed<'_, Platform<D>>,
        name: ur_platform_info_t,
        answer: &mut Answer<'_>,
    ) -> Result<()> {
        match name {
            ur_platform_info_t::NAME => answer.str(&format!("Causeway {}", D::NAME)),
            ur_platform_info_t::VENDOR_NAME => answer.str("Causeway"),
            ur_platform_info_t::VERSION => {
                let version = native::device::version::<D>()?;
                answer.str(&format!("{} {}.{}", D::NAME, version / 1000, version % 1000 / 10))
            }
            ur_platform_info_t::EXTENSIONS => answer.str(""),
            ur_platform_info_t::PROFILE => answer.str("FULL_PROFILE"),
            ur_platform_info_t::BACKEND => answer.value(&backend::<D>().0),
            ur_platform_info_t::ADAPTER => answer.handle(&the_adapter::<D>()),
            _ => Err(Error::new(
                ErrorCode::UnsupportedEnumeration,
                format!("this platform has no answer to {name:?}"),
            )),
        }
    }
    fn platform_get_native_handle(
        _platform: Borrowed<'_, Platform<D>>,
    ) -> Result<ur_native_handle_t> {
        Error::unsupported("urPlatformGetNativeHandle: the driver has no platforms")
    }
    fn platform_create_with_native_handle(
        _native: ur_native_handle_t,
        _adapter: Borrowed<'_, Adapter<D>>,
        _properties: Option<&ur_platform_native_properties_t>,
    ) -> Result<Owned<Platform<D>>> {
        Error::unsupported("urPlatformCreateWithNativeHandle: the driver has no platforms")
    }
    fn platform_get_api_version(_platform: Borrowed<'_, Platform<D>>) -> Result<ur_api_version_t> {
        Ok(ur_api_version_t::CURRENT)
    }
    fn platform_get_backend_option(
        _platform: Borrowed<'_, Platform<D>>,
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
