//! Samplers. There are no image units, so a kernel gets the sampler's settings as a number and applies them
//! itself.
use super::{Context, Cpu, Device};
use ur_adapter::error::Result;
use ur_core::over_driver::sampler::{self, HasSamplers};
use ur_hal::SamplerDesc;

/// What `ur_sampler_handle_t` points at.
pub type Sampler = sampler::Sampler<Cpu>;

impl HasSamplers for Cpu {
    fn make_sampler(_: &Context, _: &Device, desc: &SamplerDesc) -> Result<u32> {
        Ok(desc.word())
    }
}
