//! Samplers: the core keeps the choices and tells them; a kernel that is given a sampler applies them itself, as there are
//! no image units.
use super::{Context, Cpu, TABLE};
use ur_adapter::{
    error::Result,
    object::{Owned, Slab},
};
use ur_core::over_driver::sampler::{self, Choices, HasSamplers};

/// What `ur_sampler_handle_t` points at.
pub type Sampler = sampler::Sampler<Cpu>;

impl HasSamplers for Cpu {
    type NativeSampler = ();
    fn samplers() -> &'static Slab<Sampler> {
        static SLAB: Slab<Sampler> = Slab::new(&TABLE);
        &SLAB
    }
    fn make_sampler(_: &Owned<Context>, _: Choices) -> Result<()> {
        Ok(())
    }
}
