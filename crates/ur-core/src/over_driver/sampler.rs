//! Samplers, which say how a kernel reads between the pixels of an image. The sampler object of a device is the
//! driver's.
use super::{OverDriver, own_handle};
use crate::program::{self, RunsCode};
use std::sync::{Arc, OnceLock};
use ur_adapter::{
    api::{Objects, SamplerApi},
    error::{Error, ErrorCode, Result},
    info::Answer,
    object::{Borrowed, Owned},
};
use ur_hal::{
    Adopted, Filter, MakesSamplers, NativeHandle, NativeKind, NativeObject, Repeat, SamplerDesc,
    Types,
};
use ur_sys::{
    ur_native_handle_t, ur_sampler_addressing_mode_t, ur_sampler_desc_t, ur_sampler_filter_mode_t,
    ur_sampler_info_t, ur_sampler_native_properties_t,
};

type Context<D> = <D as Objects>::Context;
type Device<D> = <D as Objects>::Device;

/// A driver over which the core implements samplers.
pub trait HasSamplers: RunsCode + MakesSamplers + Objects<Sampler = Sampler<Self>> {}
impl<D: RunsCode + MakesSamplers + Objects<Sampler = Sampler<D>>> HasSamplers for D {}
/// What `ur_sampler_handle_t` points at.
#[derive(Debug)]
pub struct Sampler<D: HasSamplers> {
    context: Owned<Context<D>>,
    /// `None` for a sampler that was made from a native handle, if the driver cannot describe it.
    desc: Option<SamplerDesc>,
    on: OnceLock<Box<OnDevice<D>>>,
}
/// The sampler object of one device, in a linked list over devices.
#[derive(Debug)]
struct OnDevice<D: HasSamplers> {
    device: Owned<Device<D>>,
    made: Arc<<D as Types>::Sampler>,
    next: OnceLock<Box<OnDevice<D>>>,
}
impl<D: HasSamplers> OnDevice<D> {
    fn new(device: &Owned<Device<D>>, made: <D as Types>::Sampler) -> Box<Self> {
        let (device, made) = (device.clone(), Arc::new(made));
        Box::new(Self { device, made, next: OnceLock::new() })
    }
}
impl<D: HasSamplers> Sampler<D> {
    /// The sampler object of a device, which is made on first use there.
    ///
    /// # Errors
    /// `INVALID_DEVICE` for a sampler without a description, for another device than the one that it was made on.
    /// Returns the driver's error, mapped as in `error.rs`.
    pub fn on(&self, device: &Owned<Device<D>>) -> Result<&Arc<<D as Types>::Sampler>> {
        let mut place = &self.on;
        loop {
            while let Some(one) = place.get() {
                if one.device.same(device) {
                    return Ok(&one.made);
                }
                place = &one.next;
            }
            let Some(desc) = &self.desc else {
                let why =
                    "a sampler that was made of a native handle is for the context's first device";
                return Error::refuse(ErrorCode::InvalidDevice, why);
            };
            let made = D::sampler(self.context.driver(), device.driver(), desc)?;
            let _ = place.set(OnDevice::new(device, made)); // another thread may have been faster: look again
        }
    }
}
impl<D: HasSamplers> Drop for Sampler<D> {
    /// Deferred free, because kernels that use it may be running.
    fn drop(&mut self) {
        let mut next = self.on.take();
        while let Some(mut one) = next {
            next = one.next.take();
            program::leave::<D>(self.context.as_handle().addr(), one.made);
        }
    }
}
fn desc_of(desc: &ur_sampler_desc_t) -> Result<SamplerDesc> {
    use ur_sampler_addressing_mode_t as A;
    let repeat = match desc.addressingMode {
        A::NONE => Repeat::Undefined,
        A::CLAMP_TO_EDGE => Repeat::Edge,
        A::CLAMP => Repeat::Border,
        A::REPEAT => Repeat::Repeat,
        A::MIRRORED_REPEAT => Repeat::Mirror,
        _ => return Err(ErrorCode::InvalidEnumeration.into()),
    };
    let filter = match desc.filterMode {
        ur_sampler_filter_mode_t::NEAREST => Filter::Nearest,
        ur_sampler_filter_mode_t::LINEAR => Filter::Linear,
        _ => return Err(ErrorCode::InvalidEnumeration.into()),
    };
    Ok(SamplerDesc { is_normalized: desc.normalizedCoords, repeat, filter })
}
fn modes(desc: SamplerDesc) -> (ur_sampler_addressing_mode_t, ur_sampler_filter_mode_t) {
    use ur_sampler_addressing_mode_t as A;
    let addressing = match desc.repeat {
        Repeat::Undefined => A::NONE,
        Repeat::Edge => A::CLAMP_TO_EDGE,
        Repeat::Border => A::CLAMP,
        Repeat::Repeat => A::REPEAT,
        Repeat::Mirror => A::MIRRORED_REPEAT,
    };
    let filter = match desc.filter {
        Filter::Nearest => ur_sampler_filter_mode_t::NEAREST,
        Filter::Linear => ur_sampler_filter_mode_t::LINEAR,
    };
    (addressing, filter)
}
body!(Sampler: HasSamplers, Sampler, InvalidSampler);

impl<D: HasSamplers> SamplerApi for OverDriver<D> {
    fn sampler_create(
        context: Borrowed<'_, Context<D>>,
        desc: &ur_sampler_desc_t,
    ) -> Result<Owned<Sampler<D>>> {
        let desc = Some(desc_of(desc)?);
        let sampler = Sampler { context: context.own()?, desc, on: OnceLock::new() };
        sampler.on(&context.devices()[0])?; // an error for an unsupported sampler is returned now
        Ok(Owned::new(sampler))
    }
    fn sampler_get_info(
        sampler: Borrowed<'_, Sampler<D>>,
        name: ur_sampler_info_t,
        answer: &mut Answer<'_>,
    ) -> Result<()> {
        match (name, sampler.desc) {
            (ur_sampler_info_t::REFERENCE_COUNT, _) => answer.value(&sampler.api_refs()),
            (ur_sampler_info_t::CONTEXT, _) => answer.handle(&sampler.context),
            (ur_sampler_info_t::NORMALIZED_COORDS, Some(one)) => answer.bool(one.is_normalized),
            (ur_sampler_info_t::ADDRESSING_MODE, Some(one)) => answer.value(&modes(one).0.0),
            (ur_sampler_info_t::FILTER_MODE, Some(one)) => answer.value(&modes(one).1.0),
            _ => Error::no_answer("this sampler", name),
        }
    }
    fn sampler_get_native_handle(sampler: Borrowed<'_, Sampler<D>>) -> Result<ur_native_handle_t> {
        if !D::HAS_SAMPLERS {
            return own_handle::of(&sampler);
        }
        let made = sampler.on(&sampler.context.devices()[0])?;
        Ok(D::native(NativeObject::Sampler(&**made))?.0 as ur_native_handle_t)
    }
    /// The sampler is one of the context's first device.
    fn sampler_create_with_native_handle(
        native: ur_native_handle_t,
        context: Borrowed<'_, Context<D>>,
        properties: Option<&ur_sampler_native_properties_t>,
    ) -> Result<Owned<Sampler<D>>> {
        if !D::HAS_SAMPLERS {
            let sampler: Owned<Sampler<D>> = own_handle::find(native)?;
            own_handle::check_context(&sampler.context, &context)?;
            return Ok(sampler);
        }
        if native == 0 {
            return Error::refuse(ErrorCode::InvalidNullHandle, "the native sampler is null");
        }
        let handle = (NativeKind::Sampler, NativeHandle(native as u64));
        let is_owned = properties.is_some_and(|one| one.isNativeHandleOwned);
        let made = D::adopt(context.driver_devices(), Some(context.driver()), handle, is_owned)?;
        let Adopted::Sampler(made, desc) = made else {
            return Err(ErrorCode::InvalidSampler.into()); // the driver returned another kind of object
        };
        let on = OnceLock::from(OnDevice::new(&context.devices()[0], made));
        Ok(Owned::new(Sampler { context: context.own()?, desc, on }))
    }
}
