//! Samplers: they are a kernel's own business, as the driver has them in textures only: it is given the choices as a number
//! and applies them.
use super::{Context, Family, driver::Dialect};
use ur_adapter::{
    error::Result,
    object::{Owned, Slab},
};
use ur_core::over_driver::sampler::{self, Choices, HasSamplers};

/// What `ur_sampler_handle_t` points at.
pub type Sampler<D> = sampler::Sampler<Family<D>>;

impl<D: Dialect> HasSamplers for Family<D> {
    type NativeSampler = ();
    fn samplers() -> &'static Slab<Sampler<D>> {
        &D::statics().samplers
    }
    fn make_sampler(_: &Owned<Context<D>>, _: Choices) -> Result<()> {
        Ok(())
    }
}
