//! The adapter itself.
use super::{Family, driver::Dialect};
use std::{marker::PhantomData, sync::OnceLock};
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
pub struct Adapter<D: Dialect>(PhantomData<fn() -> D>);

/// The one object of a kind that a process has once of a dialect.
#[derive(Debug)]
pub struct Single<T: 'static>(OnceLock<T>);
impl<T> Single<T> {
    pub(super) const fn new() -> Self {
        Self(OnceLock::new())
    }
    pub(super) fn get(&self, make: impl FnOnce() -> T) -> &T {
        self.0.get_or_init(make)
    }
}
pub(super) fn the_adapter<D: Dialect>() -> Owned<Adapter<D>> {
    D::statics().adapter.get(|| Owned::new(Adapter(PhantomData))).clone()
}
/// What C calls the backend.
pub(super) fn backend<D: Dialect>() -> ur_backend_t {
    match D::BACKEND {
        Backend::Hip => ur_backend_t::HIP,
        _ => ur_backend_t::CUDA,
    }
}

impl<D: Dialect> AdapterApi for Family<D> {
    fn adapter_get() -> Result<Vec<Owned<Adapter<D>>>> {
        log::open(D::BACKEND, D::NAME);
        Ok(vec![the_adapter()])
    }
    fn adapter_get_info(
        adapter: Borrowed<'_, Adapter<D>>,
        name: ur_adapter_info_t,
        answer: &mut Answer<'_>,
    ) -> Result<()> {
        match name {
            ur_adapter_info_t::BACKEND => answer.value(&backend::<D>().0),
            ur_adapter_info_t::REFERENCE_COUNT => answer.value(&adapter.api_refs()),
            ur_adapter_info_t::VERSION => answer.value(&1u32),
            _ => Err(Error::new(
                ErrorCode::UnsupportedEnumeration,
                format!("this adapter has no answer to {name:?}"),
            )),
        }
    }
}
