//! Samplers: what the driver has for each device on which one is used.
use super::{
    Context, Device, LevelZero, TABLE, driver::RawSampler, memory::Memory,
    native::sampler::NativeSampler,
};
use std::{collections::BTreeMap, sync::Mutex};
use ur_adapter::{
    error::{Error, ErrorCode, Result},
    object::{Borrowed, Object, Owned, Slab},
};
use ur_core::{
    memory::deferred_free,
    over_driver::sampler::{self, Choices, HasSamplers},
};
use ur_lock::locked;
use ur_sys::{ur_native_handle_t, ur_sampler_addressing_mode_t, ur_sampler_filter_mode_t};
use ze_sys::*;

/// What `ur_sampler_handle_t` points at.
pub type Sampler = sampler::Sampler<LevelZero>;

/// What the samplers do that were made here, by the driver's handles: the driver does not tell.
static MADE: Mutex<BTreeMap<usize, Choices>> = Mutex::new(BTreeMap::new());

/// The driver's samplers, for each device on which one was used.
#[derive(Debug)]
pub struct OnDevices {
    /// The context's handle: compared, never followed.
    context: usize,
    all: Mutex<Vec<(Owned<Device>, NativeSampler)>>,
}
impl OnDevices {
    fn new(context: &Object<Context>, all: Vec<(Owned<Device>, NativeSampler)>) -> Self {
        Self { context: context.as_handle().addr(), all: Mutex::new(all) }
    }
    /// The driver's handle for a device; made where there is none yet and the choices are known.
    fn raw(
        &self,
        context: &Context,
        choices: Option<Choices>,
        device: &Owned<Device>,
    ) -> Result<RawSampler> {
        let known = |all: &[(Owned<Device>, NativeSampler)]| {
            all.iter().find(|(one, _)| one.raw() == device.raw()).map(|(_, made)| made.raw())
        };
        if let Some(raw) = known(&locked(&self.all)) {
            return Ok(raw);
        }
        let Some(choices) = choices else {
            let why =
                "a sampler that was made of a native handle is for the context's first device";
            return Err(Error::new(ErrorCode::InvalidDevice, why));
        };
        let sampler = make(context, device, choices)?;
        let mut all = locked(&self.all);
        // Another thread may have been faster.
        let raw = known(&all).unwrap_or(sampler.raw());
        if raw == sampler.raw() {
            locked(&MADE).insert(raw.addr(), choices);
            all.push((device.clone(), sampler));
        }
        Ok(raw)
    }
}
impl Drop for OnDevices {
    /// Kernels that use it may be under way.
    fn drop(&mut self) {
        let all = std::mem::take(&mut *locked(&self.all));
        for (_, sampler) in all.iter().filter(|(_, sampler)| sampler.is_owned()) {
            locked(&MADE).remove(&sampler.raw().addr());
        }
        deferred_free::leave::<Memory>(self.context, all);
    }
}
fn make(context: &Context, device: &Device, choices: Choices) -> Result<NativeSampler> {
    use ur_sampler_addressing_mode_t as A;
    let addressing = match choices.addressing {
        A::REPEAT => ZE_SAMPLER_ADDRESS_MODE_REPEAT,
        A::CLAMP => ZE_SAMPLER_ADDRESS_MODE_CLAMP_TO_BORDER,
        A::CLAMP_TO_EDGE => ZE_SAMPLER_ADDRESS_MODE_CLAMP,
        A::MIRRORED_REPEAT => ZE_SAMPLER_ADDRESS_MODE_MIRROR,
        _ => ZE_SAMPLER_ADDRESS_MODE_NONE,
    };
    let filter = match choices.filter {
        ur_sampler_filter_mode_t::LINEAR => ZE_SAMPLER_FILTER_MODE_LINEAR,
        _ => ZE_SAMPLER_FILTER_MODE_NEAREST,
    };
    let (native, raw) = (context.native(), device.raw());
    NativeSampler::create(native, raw, addressing, filter, choices.normalized)
}
/// The driver's handle of a sampler for a device.
///
/// # Errors
/// The driver's own; `INVALID_DEVICE` for another device than the one that C brought it for.
pub(super) fn raw(sampler: &Sampler, device: &Owned<Device>) -> Result<RawSampler> {
    sampler.native().raw(sampler.context(), sampler.choices(), device)
}

impl HasSamplers for LevelZero {
    type NativeSampler = OnDevices;
    fn samplers() -> &'static Slab<Sampler> {
        static SLAB: Slab<Sampler> = Slab::new(&TABLE);
        &SLAB
    }
    fn make_sampler(context: &Owned<Context>, choices: Choices) -> Result<OnDevices> {
        let made = OnDevices::new(context, vec![]);
        made.raw(context, Some(choices), &context.devices()[0])?; // a driver that has no such one says so now
        Ok(made)
    }
    /// The driver's on the context's first device.
    fn native_sampler(sampler: &Object<Sampler>) -> Result<ur_native_handle_t> {
        Ok(raw(sampler, &sampler.context().devices()[0])?.addr() as ur_native_handle_t)
    }
    fn sampler_of_native(
        native: ur_native_handle_t,
        context: Borrowed<'_, Context>,
        is_owned: bool,
    ) -> Result<Owned<Sampler>> {
        let Some(raw) = RawSampler::from_addr(native) else {
            return Err(Error::new(ErrorCode::InvalidNullHandle, "the native sampler is null"));
        };
        let choices = locked(&MADE).get(&raw.addr()).copied();
        let sampler = NativeSampler::adopted(raw, is_owned, context.native());
        let made = OnDevices::new(&context, vec![(context.devices()[0].clone(), sampler)]);
        Ok(Sampler::of_native(context.own()?, choices, made))
    }
}
