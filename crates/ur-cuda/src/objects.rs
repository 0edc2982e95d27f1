//! What objects are to this driver, and its handles of them.
use super::{
    DriverDevice, Family, backing,
    code::{Code, Kernel},
    context::{ContextState, DriverContext},
    device::all,
    driver::{Dialect, RawContext, RawModule},
    image,
    native::virtual_memory::Physical,
    point, virtual_mem, work,
};
use std::{convert::Infallible, sync::Arc};
use ur_hal::{
    Adopted, Error, ErrorKind, NativeHandle, NativeHandles, NativeKind, NativeObject, Result, Types,
};

/// `Graph` is `Infallible`: graphs of the driver are not used; the core replays recorded commands.
impl<D: Dialect> Types for Family<D> {
    type Device = Arc<DriverDevice<D>>;
    type Context = DriverContext<D>;
    type Allocation = backing::Chunk<D>;
    type Reservation = virtual_mem::Reservation<D>;
    type Physical = Physical<D>;
    type Stream = work::Lanes<D>;
    type Point = point::Point<D>;
    type Module = Arc<Code<D>>;
    type Function = Kernel<D>;
    type Image = image::Pixels<D>;
    type Sampler = u32;
    type Graph = Infallible;
}
impl<D: Dialect> NativeHandles for Family<D> {
    const HAS_HANDLES: bool = true;
    /// Of a device its number (`CUdevice`); of a context the primary context of its first device; of a function the variant
    /// without a global offset.
    fn native(object: NativeObject<'_, Self>) -> Result<NativeHandle> {
        Ok(NativeHandle(match object {
            NativeObject::Device(device) => device.number() as u64,
            NativeObject::Context(context) => context.devices()[0].context()?.addr() as u64,
            NativeObject::Module(code) => code.module().raw().addr() as u64,
            NativeObject::Image(image) => return Ok(image.handle()),
            NativeObject::Function(kernel) => kernel.function().raw().addr() as u64,
            _ => return Error::unsupported("a native handle of this object"),
        }))
    }
    /// Accepts of contexts only primary ones, since objects of any other could not be used together with ours, and modules
    /// and images of the first device.
    fn adopt(
        devices: &[Arc<DriverDevice<D>>],
        _: Option<&DriverContext<D>>,
        (kind, handle): (NativeKind, NativeHandle),
        is_owned: bool,
    ) -> Result<Adopted<Self>> {
        if let (NativeKind::Module, Some(raw)) = (kind, RawModule::from_addr(handle.0 as usize)) {
            let code = Code::adopted(raw, is_owned, &devices[0])?;
            return Ok(Adopted::Modules(vec![(Arc::clone(&devices[0]), code)]));
        }
        match (kind, devices) {
            (NativeKind::Context, _) => {}
            (NativeKind::Image(desc), [device, ..]) => {
                return image::adopt(device, handle, &desc, is_owned).map(Adopted::Image);
            }
            _ => return Error::unsupported("an object of this native handle"),
        }
        let candidates = if devices.is_empty() { all::<D>() } else { devices };
        let raw = RawContext::from_addr(handle.0 as usize);
        for one in candidates {
            if raw.map_or(Ok(false), |raw| one.is_primary(raw))? {
                let own = if devices.is_empty() { vec![Arc::clone(one)] } else { devices.to_vec() };
                return Ok(Adopted::Context(ContextState::new(own.clone()), own));
            }
        }
        Err(Error::new(
            ErrorKind::InvalidValue,
            "the native context is not the primary context of a device given: retain that one \
             (cuDevicePrimaryCtxRetain) and pass it",
        ))
    }
}
