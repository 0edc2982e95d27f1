//! Samplers: a driver object for each device on which one is used.
use super::{
    Context, DriverDevice, LevelZero, context::DriverContext, driver::RawSampler,
    native::sampler::NativeSampler,
};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};
use ur_adapter::{
    error::{Error, ErrorCode, Result},
    object::{Borrowed, Object, Owned},
};
use ur_core::over_driver::sampler::{self, HasSamplers};
use ur_hal::{Filter, MakesSamplers, Repeat, SamplerDesc};
use ur_lock::locked;
use ur_sys::ur_native_handle_t;
use ze_sys::*;

/// What `ur_sampler_handle_t` points at.
pub type Sampler = sampler::Sampler<LevelZero>;

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
    fn sampler(
        context: &DriverContext,
        device: &Arc<DriverDevice>,
        desc: &SamplerDesc,
    ) -> ur_hal::Result<OnDevice> {
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
impl HasSamplers for LevelZero {
    /// The driver's sampler for the context's first device.
    fn native_sampler(sampler: &Object<Sampler>) -> Result<ur_native_handle_t> {
        let made = sampler.on(&sampler.context().devices()[0])?;
        Ok(made.raw().addr() as ur_native_handle_t)
    }
    fn sampler_of_native(
        native: ur_native_handle_t,
        context: Borrowed<'_, Context>,
        is_owned: bool,
    ) -> Result<Owned<Sampler>> {
        let Some(raw) = RawSampler::from_addr(native) else {
            return Err(Error::new(ErrorCode::InvalidNullHandle, "the native sampler is null"));
        };
        let desc = locked(&MADE).get(&raw.addr()).copied();
        let made = NativeSampler::adopted(raw, is_owned, context.native().clone());
        Ok(Sampler::of_native(context.own()?, desc, OnDevice(made)))
    }
}
