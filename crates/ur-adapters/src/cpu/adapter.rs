//! The adapter itself: what it is, and the sentences of its last failures.
use super::{Adapter, Cpu};
use std::sync::OnceLock;
use ur_adapter::{
    api::AdapterApi,
    error::{ErrorCode, Result},
    info::Answer,
    object::{Borrowed, Owned},
};
use ur_sys::{ur_adapter_info_t, ur_backend_t};

/// The one adapter object of a process.
pub(super) fn the_adapter() -> Owned<Adapter> {
    static ADAPTER: OnceLock<Owned<Adapter>> = OnceLock::new();
    ADAPTER.get_or_init(|| Owned::new(Adapter)).clone()
}

impl AdapterApi for Cpu {
    fn adapter_get() -> Result<Vec<Owned<Adapter>>> {
        Ok(vec![the_adapter()])
    }
    fn adapter_get_info(
        adapter: Borrowed<'_, Adapter>,
        name: ur_adapter_info_t,
        answer: &mut Answer<'_>,
    ) -> Result<()> {
        match name {
            ur_adapter_info_t::BACKEND => answer.value(&ur_backend_t::NATIVE_CPU.0),
            ur_adapter_info_t::REFERENCE_COUNT => answer.value(&adapter.api_refs()),
            ur_adapter_info_t::VERSION => answer.value(&1u32),
            _ => Err(ErrorCode::UnsupportedEnumeration.into()),
        }
    }
}
