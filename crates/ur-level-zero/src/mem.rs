//! Memory objects of this backend: an address that all devices of a context can access, or an image.
//!
//! Native handles: of a buffer its address on the device, of an image the driver's handle.
use super::{
    Context, Device, LevelZero, image,
    native::memory::{self, Piece},
    storage::Storage,
};
use ur_adapter::{
    error::{Error, ErrorCode, Result},
    memory::UsmPtr,
    object::{Object, Owned},
};
use ur_core::over_driver::mem::BufferBackend;
use ur_sys::{ur_image_desc_t, ur_image_format_t, ur_mem_flags_t, ur_native_handle_t};
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
    fn image(
        context: Owned<Context>,
        flags: ur_mem_flags_t,
        format: ur_image_format_t,
        desc: &ur_image_desc_t,
        host: Option<UsmPtr>,
    ) -> Result<Owned<Mem>> {
        image::create(context, flags, format, desc, host)
    }
    fn adopted_image(
        context: Owned<Context>,
        native: ur_native_handle_t,
        format: ur_image_format_t,
        desc: &ur_image_desc_t,
        given: bool,
    ) -> Result<Owned<Mem>> {
        image::adopt(context, native, format, desc, given)
    }
    fn native_mem(mem: &Object<Mem>, device: Option<Owned<Device>>) -> Result<ur_native_handle_t> {
        let device = device.as_ref().unwrap_or(&mem.context().devices()[0]);
        kernel_argument(mem, device).map(|handle| handle as ur_native_handle_t)
    }
}
