//! Samplers. The driver has samplers only as a part of texture objects, so a kernel gets the sampler's
//! settings as a number and applies them itself.
use super::{DriverDevice, Family, context::DriverContext, driver::Dialect};
use std::sync::Arc;
use ur_hal::{MakesSamplers, Result, SamplerDesc};

impl<D: Dialect> MakesSamplers for Family<D> {
    fn sampler(_: &DriverContext<D>, _: &Arc<DriverDevice<D>>, desc: &SamplerDesc) -> Result<u32> {
        Ok(desc.word())
    }
}
