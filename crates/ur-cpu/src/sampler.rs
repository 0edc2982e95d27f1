//! Samplers. There are no image units, so a kernel gets the sampler's settings as a number and applies them
//! itself.
use super::{
    Cpu,
    device::{DriverContext, DriverDevice},
};
use std::sync::Arc;
use ur_hal::{MakesSamplers, Result, SamplerDesc};

impl MakesSamplers for Cpu {
    fn sampler(_: &DriverContext, _: &Arc<DriverDevice>, desc: &SamplerDesc) -> Result<u32> {
        Ok(desc.word())
    }
}
