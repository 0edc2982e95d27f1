//! Samplers: how a kernel reads between the pixels of an image. This adapter keeps the choices and
//! tells them; a kernel that is given a sampler applies them itself, as there are no image units.
use super::{Context, Cpu, native_handle};
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
pub struct Sampler {
    context: Owned<Context>,
    normalized: bool,
    addressing: ur_sampler_addressing_mode_t,
    filter: ur_sampler_filter_mode_t,
}

impl Sampler {
    /// The choices as one number, for a kernel: bit 0 says whether coordinates are normalized, bit
    /// 1 whether the filter is linear, bits 2 to 4 hold the addressing mode.
    pub fn word(&self) -> u32 {
        u32::from(self.normalized) | self.filter.0 << 1 | self.addressing.0 << 2
    }
    /// The context it was made in.
    pub fn context(&self) -> &Owned<Context> {
        &self.context
    }
}

impl SamplerApi for Cpu {
    fn sampler_create(
        context: Borrowed<'_, Context>,
        desc: &ur_sampler_desc_t,
    ) -> Result<Owned<Sampler>> {
        let (addressing, filter) = (desc.addressingMode, desc.filterMode);
        let (context, normalized) = (context.own()?, desc.normalizedCoords);
        Ok(Owned::new(Sampler { context, normalized, addressing, filter }))
    }
    fn sampler_get_info(
        sampler: Borrowed<'_, Sampler>,
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
                format!("a sampler of the CPU has no answer to {name:?}"),
            )),
        }
    }
    fn sampler_get_native_handle(sampler: Borrowed<'_, Sampler>) -> Result<ur_native_handle_t> {
        native_handle::of(&sampler)
    }
    fn sampler_create_with_native_handle(
        native: ur_native_handle_t,
        context: Borrowed<'_, Context>,
        _properties: Option<&ur_sampler_native_properties_t>,
    ) -> Result<Owned<Sampler>> {
        let sampler = native_handle::find::<Sampler>(native)?;
        native_handle::check_context(&sampler.context, context)?;
        Ok(sampler)
    }
}
