//! Samplers: how a kernel reads between the pixels of an image.
use super::{
    Context, Device, LevelZero, driver::RawSampler, memory::Memory, native::sampler::NativeSampler,
};
use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};
use ur_adapter::{
    api::SamplerApi,
    error::{Error, ErrorCode, Result},
    info::Answer,
    object::{Borrowed, Owned},
};
use ur_core::memory::deferred_free;
use ur_sys::{
    ur_native_handle_t, ur_sampler_addressing_mode_t, ur_sampler_desc_t, ur_sampler_filter_mode_t,
    ur_sampler_info_t, ur_sampler_native_properties_t,
};
use ze_sys::*;

/// What the samplers do that were made here, by the driver's handles: the driver does not tell.
static MADE: Mutex<BTreeMap<usize, Desc>> = Mutex::new(BTreeMap::new());
fn made() -> MutexGuard<'static, BTreeMap<usize, Desc>> {
    MADE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What `ur_sampler_handle_t` points at.
#[derive(Debug)]
pub struct Sampler {
    context: Owned<Context>,
    /// What it does; unknown of one that somebody else made.
    desc: Option<Desc>,
    /// The driver's, for each device on which it was used.
    on: Mutex<Vec<(Owned<Device>, NativeSampler)>>,
}
#[derive(Clone, Copy, Debug)]
struct Desc {
    normalized: bool,
    addressing: ur_sampler_addressing_mode_t,
    filter: ur_sampler_filter_mode_t,
}
impl Desc {
    fn make(self, context: &Context, device: &Device) -> Result<NativeSampler> {
        use ur_sampler_addressing_mode_t as A;
        let addressing = match self.addressing {
            A::REPEAT => ZE_SAMPLER_ADDRESS_MODE_REPEAT,
            A::CLAMP => ZE_SAMPLER_ADDRESS_MODE_CLAMP_TO_BORDER,
            A::CLAMP_TO_EDGE => ZE_SAMPLER_ADDRESS_MODE_CLAMP,
            A::MIRRORED_REPEAT => ZE_SAMPLER_ADDRESS_MODE_MIRROR,
            _ => ZE_SAMPLER_ADDRESS_MODE_NONE,
        };
        let filter = match self.filter {
            ur_sampler_filter_mode_t::LINEAR => ZE_SAMPLER_FILTER_MODE_LINEAR,
            _ => ZE_SAMPLER_FILTER_MODE_NEAREST,
        };
        let (native, raw) = (context.native(), device.raw());
        NativeSampler::create(native, raw, addressing, filter, self.normalized)
    }
}
impl Sampler {
    /// The context it was made in.
    pub fn context(&self) -> &Owned<Context> {
        &self.context
    }
    /// The driver's handle of it for a device.
    ///
    /// # Errors
    /// The driver's own; `INVALID_DEVICE` for another device than the one that C brought it for.
    pub fn raw(&self, device: &Owned<Device>) -> Result<RawSampler> {
        let lock = || self.on.lock().unwrap_or_else(PoisonError::into_inner);
        let known = |all: &[(Owned<Device>, NativeSampler)]| {
            all.iter().find(|(one, _)| one.raw() == device.raw()).map(|(_, made)| made.raw())
        };
        if let Some(raw) = known(&lock()) {
            return Ok(raw);
        }
        let Some(desc) = self.desc else {
            let why =
                "a sampler that was made of a native handle is for the context's first device";
            return Err(Error::new(ErrorCode::InvalidDevice, why));
        };
        let sampler = desc.make(&self.context, device)?;
        let mut all = lock();
        // Another thread may have been faster.
        let raw = known(&all).unwrap_or(sampler.raw());
        if raw == sampler.raw() {
            made().insert(raw.addr(), desc);
            all.push((device.clone(), sampler));
        }
        Ok(raw)
    }
}
impl Drop for Sampler {
    /// Kernels that use it may be under way.
    fn drop(&mut self) {
        let all = std::mem::take(self.on.get_mut().unwrap_or_else(PoisonError::into_inner));
        for (_, sampler) in all.iter().filter(|(_, sampler)| sampler.is_owned()) {
            made().remove(&sampler.raw().addr());
        }
        deferred_free::leave::<Memory>(self.context.as_handle().addr(), all);
    }
}

impl SamplerApi for LevelZero {
    fn sampler_create(
        context: Borrowed<'_, Context>,
        desc: &ur_sampler_desc_t,
    ) -> Result<Owned<Sampler>> {
        let desc = Desc {
            normalized: desc.normalizedCoords,
            addressing: desc.addressingMode,
            filter: desc.filterMode,
        };
        let sampler = Sampler { context: context.own()?, desc: Some(desc), on: Mutex::default() };
        sampler.raw(&context.devices()[0])?; // a driver that has no such one says so now
        Ok(Owned::new(sampler))
    }
    fn sampler_get_info(
        sampler: Borrowed<'_, Sampler>,
        name: ur_sampler_info_t,
        answer: &mut Answer<'_>,
    ) -> Result<()> {
        match (name, sampler.desc) {
            (ur_sampler_info_t::REFERENCE_COUNT, _) => answer.value(&sampler.api_refs()),
            (ur_sampler_info_t::CONTEXT, _) => answer.handle(&sampler.context),
            (ur_sampler_info_t::NORMALIZED_COORDS, Some(desc)) => answer.bool(desc.normalized),
            (ur_sampler_info_t::ADDRESSING_MODE, Some(desc)) => answer.value(&desc.addressing.0),
            (ur_sampler_info_t::FILTER_MODE, Some(desc)) => answer.value(&desc.filter.0),
            _ => Err(Error::new(
                ErrorCode::UnsupportedEnumeration,
                format!("this sampler has no answer to {name:?}"),
            )),
        }
    }
    /// The driver's on the context's first device.
    fn sampler_get_native_handle(sampler: Borrowed<'_, Sampler>) -> Result<ur_native_handle_t> {
        let raw = sampler.raw(&sampler.context.devices()[0])?;
        Ok(raw.addr() as ur_native_handle_t)
    }
    fn sampler_create_with_native_handle(
        native: ur_native_handle_t,
        context: Borrowed<'_, Context>,
        properties: Option<&ur_sampler_native_properties_t>,
    ) -> Result<Owned<Sampler>> {
        let Some(raw) = RawSampler::from_addr(native) else {
            return Err(Error::new(ErrorCode::InvalidNullHandle, "the native sampler is null"));
        };
        let owned = properties.is_some_and(|one| one.isNativeHandleOwned);
        let desc = made().get(&raw.addr()).copied();
        let sampler = NativeSampler::adopted(raw, owned, context.native());
        let on = Mutex::new(vec![(context.devices()[0].clone(), sampler)]);
        Ok(Owned::new(Sampler { context: context.own()?, desc, on }))
    }
}
