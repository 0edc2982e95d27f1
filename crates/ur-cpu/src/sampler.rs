//! Samplers: the core keeps the choices and tells them; a kernel that is given a sampler applies them itself, as there are
//! no image units.
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
