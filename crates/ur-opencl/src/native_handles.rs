//! Native handles of objects, and objects made of them.
use super::{
    DriverDevice, OpenCl,
    cl::*,
    code::Module,
    context::DriverContext,
    driver::{RawContext, RawProgram},
    image,
    native::own::{Own, Tells},
    platform, sampler,
};
use std::sync::Arc;
use ur_hal::{
    Adopted, Error, ErrorKind, NativeHandle, NativeHandles, NativeKind, NativeObject, Result,
};

impl NativeHandles for OpenCl {
    const HAS_HANDLES: bool = true;
    fn native(object: NativeObject<'_, Self>) -> Result<NativeHandle> {
        Ok(NativeHandle(match object {
            NativeObject::Device(device) => device.raw().addr() as u64,
            NativeObject::Context(context) => context.raw().addr() as u64,
            NativeObject::Image(image) => image.object.raw().addr() as u64,
            NativeObject::Module(module) => module.program.raw().addr() as u64,
            NativeObject::Function(function) => function.kernel.raw().addr() as u64,
            NativeObject::Sampler(sampler) => sampler.raw().addr() as u64,
            _ => return Error::unsupported("a native handle of this object"),
        }))
    }
    /// A context for which no device is named is for those of its own that are no parts.
    fn adopt(
        devices: &[Arc<DriverDevice>],
        context: Option<&DriverContext>,
        (kind, handle): (NativeKind, NativeHandle),
        is_owned: bool,
    ) -> Result<Adopted<Self>> {
        let raw = match (kind, context, RawContext::from_addr(handle.0 as usize)) {
            (NativeKind::Context, _, Some(raw)) => raw,
            (NativeKind::Image(desc), Some(context), _) => {
                return image::adopt(context, handle, &desc, is_owned).map(Adopted::Image);
            }
            (NativeKind::Module, Some(context), _) => {
                let null = || Error::from(ErrorKind::InvalidValue);
                let raw = RawProgram::from_addr(handle.0 as usize).ok_or_else(null)?;
                return Ok(Adopted::Modules(Module::adopted(context, devices, raw, is_owned)?));
            }
            (NativeKind::Sampler, ..) => {
                let (sampler, desc) = sampler::adopt(handle, is_owned)?;
                return Ok(Adopted::Sampler(sampler, Some(desc)));
            }
            _ => return Error::unsupported("an object of this native handle"),
        };
        let its = raw.numbers(CL_CONTEXT_DEVICES)?;
        let is_its = |one: &&Arc<DriverDevice>| its.contains(&one.raw().addr());
        let all: Vec<_> = match devices {
            [] => platform::devices().filter(is_its).cloned().collect(),
            named => named.to_vec(),
        };
        if all.is_empty() || !all.iter().all(|one| is_its(&one)) {
            let why = "the native context has other devices";
            return Err(Error::new(ErrorKind::InvalidDevice, why));
        }
        let native = Own::adopted(raw, is_owned)?;
        Ok(Adopted::Context(DriverContext::new(native, all.clone()), all))
    }
}
