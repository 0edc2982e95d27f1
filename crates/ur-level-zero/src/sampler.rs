//! Samplers: a driver object for each device on which one is used.
use super::{
    DriverDevice, LevelZero, context::DriverContext, driver::RawSampler,
    native::sampler::NativeSampler,
};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};
use ur_hal::{ErrorKind, Filter, MakesSamplers, NativeHandle, Repeat, Result, SamplerDesc};
use ur_lock::locked;
use ze_sys::*;

/// The settings of samplers created here, by driver handle, because the driver cannot report them.
static MADE: Mutex<BTreeMap<usize, SamplerDesc>> = Mutex::new(BTreeMap::new());

/// The driver's sampler for one device.
#[derive(Debug)]
pub struct OnDevice(NativeSampler);
impl OnDevice {
    /// The driver's handle.
    pub(super) fn raw(&self) -> RawSampler {
        self.0.raw()
    }
}
impl Drop for OnDevice {
    fn drop(&mut self) {
        if self.0.is_owned() {
            locked(&MADE).remove(&self.0.raw().addr());
        }
    }
}
impl MakesSamplers for LevelZero {
    const HAS_SAMPLERS: bool = true;
    fn sampler(
        context: &DriverContext,
        device: &Arc<DriverDevice>,
        desc: &SamplerDesc,
    ) -> Result<OnDevice> {
        let addressing = match desc.repeat {
            Repeat::Undefined => ZE_SAMPLER_ADDRESS_MODE_NONE,
            Repeat::Edge => ZE_SAMPLER_ADDRESS_MODE_CLAMP,
            Repeat::Border => ZE_SAMPLER_ADDRESS_MODE_CLAMP_TO_BORDER,
            Repeat::Repeat => ZE_SAMPLER_ADDRESS_MODE_REPEAT,
            Repeat::Mirror => ZE_SAMPLER_ADDRESS_MODE_MIRROR,
        };
        let filter = match desc.filter {
            Filter::Linear => ZE_SAMPLER_FILTER_MODE_LINEAR,
            Filter::Nearest => ZE_SAMPLER_FILTER_MODE_NEAREST,
        };
        let (native, raw) = (context.native(), device.raw());
        let made = NativeSampler::create(native, raw, addressing, filter, desc.is_normalized)?;
        locked(&MADE).insert(made.raw().addr(), *desc);
        Ok(OnDevice(made))
    }
}
/// Wraps a sampler of the application; `is_owned`: it is destroyed with the result. Also returns its description, if it
/// was made here.
///
/// # Errors
/// `InvalidSampler` for 0.
pub(super) fn adopt(
    context: &DriverContext,
    handle: NativeHandle,
    is_owned: bool,
) -> Result<(OnDevice, Option<SamplerDesc>)> {
    let raw = RawSampler::from_addr(handle.0 as usize).ok_or(ErrorKind::InvalidSampler)?;
    let desc = locked(&MADE).get(&raw.addr()).copied();
    let made = NativeSampler::adopted(raw, is_owned, context.native().clone());
    Ok((OnDevice(made), desc))
}
