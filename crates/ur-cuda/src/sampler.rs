//! Samplers: how a kernel reads between the pixels of an image. They are a kernel's own business, as
//! the driver has them in textures only: it is given the choices as a number and applies them.
//!
//! A sampler's native handle is the number of its own handle, for the driver has none.
use super::{Context, Family, driver::Dialect};
use ur_adapter::{
    api::SamplerApi,
    error::{Error, ErrorCode, Result},
    info::Answer,
    object::{Borrowed, Owned},
};
use ur_sys::{
    ur_native_handle_t, ur_sampler_addressing_mode_t, ur_sampler_desc_t, ur_sampler_filter_mode_t,
    ur_sampler_info_t, ur_sampler_native_properties_t,
};

/// What `ur_sampler_handle_t` points at.
#[derive(Debug)]
pub struct Sampler<D: Dialect> {
    context: Owned<Context<D>>,
    normalized: bool,
    addressing: ur_sampler_addressing_mode_t,
    filter: ur_sampler_filter_mode_t,
}

impl<D: Dialect> Sampler<D> {
    /// The choices as one number, for a kernel: bit 0 says whether coordinates are normalized, bit
    /// 1 whether the filter is linear, bits 2 to 4 hold the addressing mode.
    pub fn word(&self) -> u32 {
        u32::from(self.normalized) | self.filter.0 << 1 | self.addressing.0 << 2
    }
    /// The context it was made in.
    pub fn context(&self) -> &Owned<Context<D>> {
        &self.context
    }
}

impl<D: Dialect> SamplerApi for Family<D> {
    fn sampler_create(
        context: Borrowed<'_, Context<D>>,
        desc: &ur_sampler_desc_t,
    ) -> Result<Owned<Sampler<D>>> {
        let (addressing, filter) = (desc.addressingMode, desc.filterMode);
        let (context, normalized) = (context.own()?, desc.normalizedCoords);
        Ok(Owned::new(Sampler { context, normalized, addressing, filter }))
    }
    fn sampler_get_info(
        sampler: Borrowed<'_, Sampler<D>>,
        name: ur_sampler_info_t,
        answer: &mut Answer<'_>,
    ) -> Result<()> {
        match name {
            ur_sampler_info_t::REFERENCE_COUNT => answer.value(&sampler.api_refs()),
            ur_sampler_info_t::CONTEXT => answer.handle(&sampler.context),
            ur_sampler_info_t::NORMALIZED_COORDS => answer.bool(sampler.normalized),
            ur_sampler_info_t::ADDRESSING_MODE => answer.value(&sampler.addressing.0),
            ur_sampler_info_t::FILTER_MODE => answer.value(&sampler.filter.0),
            _ => Err(Error::new(
                ErrorCode::UnsupportedEnumeration,
                format!("a sampler of {} has no answer to {name:?}", D::NAME),
            )),
        }
    }
    fn sampler_get_native_handle(sampler: Borrowed<'_, Sampler<D>>) -> Result<ur_native_handle_t> {
        Ok(sampler.as_handle().expose_provenance())
    }
    fn sampler_create_with_native_handle(
        native: ur_native_handle_t,
        context: Borrowed<'_, Context<D>>,
        _properties: Option<&ur_sampler_native_properties_t>,
    ) -> Result<Owned<Sampler<D>>> {
        let sampler = Owned::<Sampler<D>>::find(native)?;
        match sampler.context.same(&context) {
            true => Ok(sampler),
            false => Err(Error::new(
                ErrorCode::InvalidContext,
                "the native handle is that of a sampler of another context",
            )),
        }
    }
}
