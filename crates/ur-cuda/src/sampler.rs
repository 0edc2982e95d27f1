//! Samplers. The driver has samplers only as a part of texture objects, so a kernel gets the sampler's
//! settings as a number and applies them itself.
use super::{Context, Device, Family, driver::Dialect};
use ur_adapter::error::Result;
use ur_core::over_driver::sampler::{self, HasSamplers};
use ur_hal::SamplerDesc;

/// What `ur_sampler_handle_t` points at.
pub type Sampler<D> = sampler::Sampler<Family<D>>;

impl<D: Dialect> HasSamplers for Family<D> {
    fn make_sampler(_: &Context<D>, _: &Device<D>, desc: &SamplerDesc) -> Result<u32> {
        Ok(desc.word())
    }
}
