//! Memory objects of this backend: each device has its own array or allocation.
//!
//! Native handles: of a buffer its address on the device, of an image the driver's array.
use super::{
    Context, Device, Family,
    driver::Dialect,
    image,
    native::memory::{self, Piece},
    storage::{Found, Shape, Storage},
};
use ur_adapter::{
    error::{Error, ErrorCode, Result},
    memory::UsmPtr,
    object::{Object, Owned},
};
use ur_core::{
    memory::image_layout::Image,
    over_driver::mem::{self, BufferBackend},
};
use ur_sys::{ur_image_format_t, ur_mem_flags_t, ur_native_handle_t};

/// What `ur_mem_handle_t` points at.
pub type Mem<D> = mem::Mem<Family<D>>;

impl<D: Dialect> BufferBackend for Family<D> {
    type Storage = Storage<D>;
    type Part = ();
    fn buffer(
        context: Owned<Context<D>>,
        flags: ur_mem_flags_t,
        bytes: usize,
        host: Option<UsmPtr>,
    ) -> Result<(Storage<D>, Option<UsmPtr>)> {
        use ur_mem_flags_t as F;
        let uses = host.filter(|_| flags.contains(F::USE_HOST_POINTER));
        let read_only = flags.contains(F::READ_ONLY);
        if let Some(host) = uses
            && let Some(storage) = Storage::registered(&context, host, bytes, read_only)
        {
            return Ok((storage, None));
        }
        let storage = match flags.contains(F::ALLOC_HOST_POINTER) {
            true => Storage::pinned(context, bytes)?,
            false => Storage::each(context, Shape::Bytes(bytes)),
        };
        storage.ready().map_err(|error| match error.code() {
            ErrorCode::OutOfDeviceMemory => error.with_code(ErrorCode::OutOfResources),
            _ => error,
        })?;
        if let Some(host) = host {
            storage.aside(None, |stream, found| match found {
                Found::At(at) => Ok(stream.copy(*at, host.addr() as u64, bytes)?),
                Found::Pixels(_) => Ok(()), // not for buffers
            })?;
            storage.written_first();
        }
        Ok((storage, uses))
    }
    /// Wraps existing memory: from `native` to the end of the driver's allocation there.
    fn adopted(
        context: Owned<Context<D>>,
        native: ur_native_handle_t,
        given: bool,
    ) -> Result<Owned<Mem<D>>> {
        let at = native as u64;
        let home = &context.devices()[0];
        let known = memory::known::<D>(&home.enter()?, at)?.ok_or_else(|| {
            let why = format!("{at:#x} is no memory that {} knows", D::NAME);
            Error::new(ErrorCode::InvalidMemObject, why)
        })?;
        let bytes = (known.base + known.bytes as u64).saturating_sub(at) as usize;
        let piece = given.then(|| Piece::adopted(home, at)).transpose()?;
        Ok(Mem::of_bytes(Storage::foreign(context, at, bytes, piece), bytes))
    }
    fn pixel_bytes(format: ur_image_format_t) -> Result<usize> {
        image::check_support::<D>()?;
        let (_, channels, bytes) = image::elements(format)?;
        Ok(channels as usize * bytes)
    }
    fn image(
        context: Owned<Context<D>>,
        _: ur_mem_flags_t,
        (image, _): (&Image, usize),
        host: Option<UsmPtr>,
    ) -> Result<Storage<D>> {
        image::create(context, image, host)
    }
    fn adopted_image(
        context: Owned<Context<D>>,
        native: ur_native_handle_t,
        said: impl FnOnce() -> Result<Image>,
        given: bool,
    ) -> Result<Owned<Mem<D>>> {
        let image = said()?;
        Mem::of_image(image::adopt(context, native, &image, given)?, image)
    }
    fn native_mem(
        mem: &Object<Mem<D>>,
        device: Option<Owned<Device<D>>>,
    ) -> Result<ur_native_handle_t> {
        match mem.storage().now(device.as_ref())? {
            Found::At(at) => Ok((at + mem.origin() as u64) as ur_native_handle_t),
            Found::Pixels(pixels) => Ok(pixels.array().raw().addr() as ur_native_handle_t),
        }
    }
}
