//! The entries of adapters and platforms.
use super::{
    OfVersion, OverDriver,
    objects::{Adapter, Contexts, Platform, platforms},
    own_handle,
};
use std::{ffi::CStr, sync::OnceLock};
use ur_adapter::{
    api::{AdapterApi, PlatformApi},
    error::{Error, ErrorCode, Result},
    info::Answer,
    log,
    object::{Borrowed, Owned},
};
use ur_sys::*;

fn the_adapter<D: Contexts>() -> &'static Owned<Adapter<D>> {
    let one = D::statics().get::<OnceLock<Owned<Adapter<D>>>>();
    one.get_or_init(|| Owned::new(Adapter::new()))
}

impl<D: Contexts> AdapterApi for OverDriver<D> {
    fn adapter_get() -> Result<Vec<Owned<Adapter<D>>>> {
        log::open(D::BACKEND, D::log_name());
        let _ = D::shown_as(); // logs problems with the environment before anything else is logged
        Ok(if D::is_chosen() { vec![the_adapter().clone()] } else { vec![] })
    }
    fn adapter_get_info(
        adapter: Borrowed<'_, Adapter<D>>,
        name: ur_adapter_info_t,
        answer: &mut Answer<'_>,
    ) -> Result<()> {
        match name {
            ur_adapter_info_t::BACKEND => answer.value(&D::shown_as().0),
            ur_adapter_info_t::REFERENCE_COUNT => answer.value(&adapter.api_refs()),
            ur_adapter_info_t::VERSION => answer.value(&D::adapter_version()),
            _ => Error::no_answer("an adapter", name),
        }
    }
}
impl<D: Contexts, const NUMBER: u32> AdapterApi for OfVersion<D, NUMBER> {
    fn adapter_get() -> Result<Vec<Owned<Adapter<D>>>> {
        D::loaded_as(NUMBER);
        OverDriver::<D>::adapter_get()
    }
    fn adapter_get_info(
        adapter: Borrowed<'_, Adapter<D>>,
        name: ur_adapter_info_t,
        answer: &mut Answer<'_>,
    ) -> Result<()> {
        OverDriver::<D>::adapter_get_info(adapter, name, answer)
    }
}
impl<D: Contexts> PlatformApi for OverDriver<D> {
    fn platform_get(_adapter: Borrowed<'_, Adapter<D>>) -> Result<Vec<Owned<Platform<D>>>> {
        Ok(platforms().to_vec())
    }
    fn platform_get_info(
        platform: Borrowed<'_, Platform<D>>,
        name: ur_platform_info_t,
        answer: &mut Answer<'_>,
    ) -> Result<()> {
        let facts = &platform.facts;
        match name {
            ur_platform_info_t::NAME => answer.str(&facts.name),
            ur_platform_info_t::VENDOR_NAME => answer.str(&facts.vendor),
            ur_platform_info_t::VERSION => answer.str(&facts.version),
            ur_platform_info_t::EXTENSIONS => answer.str(&facts.extensions),
            ur_platform_info_t::PROFILE => answer.str("FULL_PROFILE"),
            ur_platform_info_t::BACKEND => answer.value(&D::shown_as().0),
            ur_platform_info_t::ADAPTER => answer.handle(the_adapter::<D>()),
            _ => Error::no_answer("a platform", name),
        }
    }
    fn platform_get_native_handle(
        platform: Borrowed<'_, Platform<D>>,
    ) -> Result<ur_native_handle_t> {
        match platform.facts.handle {
            Some(handle) => Ok(handle.0 as ur_native_handle_t),
            None if D::HAS_HANDLES => Error::unsupported("a native handle of the platform"),
            None => own_handle::of(&platform),
        }
    }
    fn platform_create_with_native_handle(
        native: ur_native_handle_t,
        _adapter: Borrowed<'_, Adapter<D>>,
        _properties: Option<&ur_platform_native_properties_t>,
    ) -> Result<Owned<Platform<D>>> {
        if !D::HAS_HANDLES {
            return own_handle::find(native);
        }
        let all = platforms::<D>();
        if all.iter().all(|one| one.facts.handle.is_none()) {
            return Error::unsupported("a native handle of the platform");
        }
        let is_it = |one: &&Owned<Platform<D>>| {
            one.facts.handle.is_some_and(|handle| handle.0 as ur_native_handle_t == native)
        };
        all.iter().find(is_it).cloned().ok_or_else(|| {
            let why = format!("no driver with a device of this adapter has the handle {native:#x}");
            Error::new(ErrorCode::InvalidValue, why)
        })
    }
    fn platform_get_api_version(_platform: Borrowed<'_, Platform<D>>) -> Result<ur_api_version_t> {
        Ok(ur_api_version_t::CURRENT)
    }
    fn platform_get_backend_option(
        _platform: Borrowed<'_, Platform<D>>,
        frontend_option: &CStr,
    ) -> Result<&'static CStr> {
        D::compiler_option(frontend_option.to_bytes()).ok_or_else(|| {
            let option = frontend_option.to_string_lossy();
            Error::new(ErrorCode::InvalidValue, format!("no backend option stands for {option}"))
        })
    }
}
