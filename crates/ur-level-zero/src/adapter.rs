//! The adapter itself.
use super::{LevelZero, face};
use std::sync::OnceLock;
use ur_adapter::{
    api::AdapterApi,
    error::{Error, ErrorCode, Result},
    info::Answer,
    log,
    object::{Backend, Borrowed, Owned},
};
use ur_sys::{ur_adapter_info_t, ur_backend_t};

/// What `ur_adapter_handle_t` points at.
#[derive(Debug)]
pub struct Adapter;

/// The one adapter object of a process.
pub(super) fn the_adapter() -> Owned<Adapter> {
    static ADAPTER: OnceLock<Owned<Adapter>> = OnceLock::new();
    ADAPTER.get_or_init(|| Owned::new(Adapter)).clone()
}

impl AdapterApi for LevelZero {
    fn adapter_get() -> Result<Vec<Owned<Adapter>>> {
        log::open(Backend::LevelZero, if face::is_v2() { "LEVEL_ZERO_V2" } else { "LEVEL_ZERO" });
        Ok(if face::is_chosen() { vec![the_adapter()] } else { vec![] })
    }
    fn adapter_get_info(
        adapter: Borrowed<'_, Adapter>,
        name: ur_adapter_info_t,
        answer: &mut Answer<'_>,
    ) -> Result<()> {
        match name {
            ur_adapter_info_t::BACKEND => answer.value(&ur_backend_t::LEVEL_ZERO.0),
            ur_adapter_info_t::REFERENCE_COUNT => answer.value(&adapter.api_refs()),
            ur_adapter_info_t::VERSION => answer.value(&(1 + u32::from(face::is_v2()))),
            _ => Err(Error::new(
                ErrorCode::UnsupportedEnumeration,
                format!("this adapter has no answer to {name:?}"),
            )),
        }
    }
}
