//! Memory objects of this backend: an address that all devices of a context can access, or an image.
//!
//! Native handles: of a buffer its address on the device, of an image the driver's handle.
use super::{
    Context, Device, LevelZero,
    driver::RawImage,
    image::{self, Pixels},
    native::{
        image::NativeImage,
        memory::{self, Piece},
    },
    storage::Storage,
};
use std::sync::Arc;
use ur_adapter::{
    error::{Error, ErrorCode, Result},
    memory::UsmPtr,
    object::{Object, Owned},
};
use ur_core::{memory::image_layout::Image, over_driver::mem::BufferBackend};
use ur_sys::{ur_image_format_t, ur_mem_flags_t, ur_native_handle_t};
use ze_sys::ZE_MEMORY_TYPE_DEVICE;

/// What `ur_mem_handle_t` points at.
pub type Mem = ur_core::over_driver::mem::Mem<LevelZero>;

/// What a kernel on `device` gets for a memory object: the address of a buffer, the handle of an image.
///
/// # Errors
/// `INVALID_CONTEXT` for a device of another context; else the driver's error.
pub fn kernel_argument(mem: &Mem, device: &Owned<Device>) -> Result<usize> {
    match mem.is_image() {
        true => Ok(mem.storage().pixels(device)?.raw().addr()),
        false => Ok(mem.storage().at(device)? as usize + mem.origin()),
    }
}
impl BufferBackend for LevelZero {
    type Storage = Storage;
    type Part = ();
    fn buffer(
        context: Owned<Context>,
        flags: ur_mem_flags_t,
        bytes: usize,
        host: Option<UsmPtr>,
    ) -> Result<(Storage, Option<UsmPtr>)> {
        use ur_mem_flags_t as F;
        let first = context.devices()[0].clone();
        let storage = match flags.contains(F::ALLOC_HOST_POINTER) {
            true => Storage::pinned(context.clone(), bytes)?,
            false => Storage::bytes(context.clone(), bytes),
        };
        let at = storage.at(&first).map_err(|error| match error.code() {
            ErrorCode::OutOfDeviceMemory => error.with_code(ErrorCode::OutOfResources),
            _ => error,
        })?;
        if let Some(host) = host {
            context
                .driver()
                .utility_lists()
                .with(&first, |list| list.copy(at as usize, host.addr(), bytes))?;
        }
        Ok((storage, host.filter(|_| flags.contains(F::USE_HOST_POINTER))))
    }
    /// Wraps existing memory: from `native` to the end of the driver's allocation there.
    fn adopted(
        context: Owned<Context>,
        native: ur_native_handle_t,
        given: bool,
    ) -> Result<Owned<Mem>> {
        let at = native as u64;
        let known = memory::known(context.native(), at)?.ok_or_else(|| {
            let why = format!("{at:#x} is no memory that Level Zero knows");
            Error::new(ErrorCode::InvalidMemObject, why)
        })?;
        let bytes = (known.base + known.bytes as u64).saturating_sub(at) as usize;
        let host = UsmPtr::from_addr(at as usize).filter(|_| known.kind != ZE_MEMORY_TYPE_DEVICE);
        let piece = given.then(|| Piece::adopted(context.native(), at));
        Ok(Mem::of_bytes(Storage::given(context, at, host, piece), bytes))
    }
    fn pixel_bytes(format: ur_image_format_t) -> Result<usize> {
        let (_, channels, bytes) = image::elements(format)?;
        Ok(channels * bytes)
    }
    fn image(
        context: Owned<Context>,
        flags: ur_mem_flags_t,
        (image, _): (&Image, usize),
        host: Option<UsmPtr>,
    ) -> Result<Storage> {
        image::create(context, flags, image, host)
    }
    /// The description cannot be verified, because the driver has no query for it.
    fn adopted_image(
        context: Owned<Context>,
        native: ur_native_handle_t,
        said: impl FnOnce() -> Result<Image>,
        given: bool,
    ) -> Result<Owned<Mem>> {
        let image = said()?;
        let none = || Error::new(ErrorCode::InvalidMemObject, "0 is no image");
        let raw = RawImage::from_addr(native).ok_or_else(none)?;
        let made = NativeImage::adopted(raw, given, context.native().clone());
        let made = Arc::new(Pixels::new(made, &image));
        Mem::of_image(Storage::image(context, made), image)
    }
    fn native_mem(mem: &Object<Mem>, device: Option<Owned<Device>>) -> Result<ur_native_handle_t> {
        let device = device.as_ref().unwrap_or(&mem.context().devices()[0]);
        kernel_argument(mem, device).map(|handle| handle as ur_native_handle_t)
    }
}
