//! Memory objects: host memory of the adapter or of the application, at a fixed address. Images are in
//! `image.rs`; the core implements the commands.
use super::{
    Context, Cpu, Device,
    backing::Block,
    bytes,
    image::{self, Pixels},
    mapping::Side,
};
use std::sync::Arc;
use ur_adapter::{
    error::{ErrorCode, Result},
    memory::UsmPtr,
    object::{Object, Owned},
};
use ur_core::memory::image_layout::Image;
use ur_core::over_driver::{
    mem::{self, BufferBackend},
    own_handle,
    usm_pool::HasUsm,
};
use ur_sys::{ur_image_format_t, ur_mem_flags_t, ur_native_handle_t};

/// What `ur_mem_handle_t` points at.
pub type Mem = mem::Mem<Cpu>;

/// The memory of a memory object and of its sub-buffers. Commands keep a reference, so that a released
/// object's memory stays valid for them.
#[derive(Debug)]
pub struct Storage {
    context: Owned<Context>,
    base: UsmPtr,
    /// `None` for memory of the application.
    _block: Option<Block>,
    /// Of an image: where its pixels are.
    pixels: Option<Arc<Pixels>>,
}
impl Storage {
    /// Memory as the flags say: the application's own, a copy of that, or new memory.
    ///
    /// # Errors
    /// `OUT_OF_HOST_MEMORY`, `OUT_OF_RESOURCES`; `INVALID_SIZE` on address overflow.
    pub(super) fn for_flags(
        context: Owned<Context>,
        flags: ur_mem_flags_t,
        host: Option<UsmPtr>,
        size: usize,
    ) -> Result<Self> {
        if let Some(base) = host.filter(|_| flags.contains(ur_mem_flags_t::USE_HOST_POINTER)) {
            return Ok(Self { context, base, _block: None, pixels: None });
        }
        let block = Block::take(Side::Host, size, ALIGN)?;
        let base = block.base();
        host.into_iter().for_each(|host| bytes::copy(base, host, size));
        Ok(Self { context, base, _block: Some(block), pixels: None })
    }
    /// Adds the description of an image's pixels.
    pub(super) fn with_pixels(self, pixels: impl FnOnce(UsmPtr) -> Pixels) -> Self {
        let pixels = Some(Arc::new(pixels(self.base)));
        Self { pixels, ..self }
    }
    /// Where the pixels of an image are.
    ///
    /// # Errors
    /// `INVALID_MEM_OBJECT` for a buffer.
    pub(super) fn pixels(&self) -> Result<&Arc<Pixels>> {
        self.pixels.as_ref().ok_or_else(|| ErrorCode::InvalidMemObject.into())
    }
}
impl mem::Storage<Cpu> for Storage {
    fn context(&self) -> &Owned<Context> {
        &self.context
    }
    fn host(&self) -> Option<UsmPtr> {
        Some(self.base)
    }
}

/// The alignment of new memory in bytes: enough for a cache line and for every type of SYCL.
const ALIGN: usize = 128;

/// The memory object of a native handle, which is the object's own handle.
fn of_native(context: &Owned<Context>, native: ur_native_handle_t) -> Result<Owned<Mem>> {
    let mem = own_handle::find::<Mem>(native)?;
    own_handle::check_context(mem.context(), context)?;
    Ok(mem)
}

impl BufferBackend for Cpu {
    type Storage = Storage;
    type Part = ();
    fn buffer(
        context: Owned<Context>,
        flags: ur_mem_flags_t,
        bytes: usize,
        host: Option<UsmPtr>,
    ) -> Result<(Storage, Option<UsmPtr>)> {
        Ok((Storage::for_flags(context, flags, host, bytes)?, None))
    }
    fn adopted(
        context: Owned<Context>,
        native: ur_native_handle_t,
        _given: bool,
    ) -> Result<Owned<Mem>> {
        let mem = of_native(&context, native)?;
        mem.check_buffer()?;
        Ok(mem)
    }
    fn check_object_size(context: &Context, bytes: usize, code: ErrorCode) -> Result<()> {
        let device = context.devices()[0].driver();
        Cpu::check_size(device, bytes).map_err(|error| error.with_code(code))
    }
    const LONGEST_SIDE: usize = image::LONGEST_SIDE;
    fn pixel_bytes(format: ur_image_format_t) -> Result<usize> {
        image::pixel_bytes(format)
    }
    fn image_bytes(image: &Image) -> Option<usize> {
        image::bytes(image)
    }
    /// In new memory, in the application's memory, or in a copy of that, as the flags say.
    fn image(
        context: Owned<Context>,
        flags: ur_mem_flags_t,
        (image, bytes): (&Image, usize),
        host: Option<UsmPtr>,
    ) -> Result<Storage> {
        let storage = Storage::for_flags(context, flags, host, bytes)?;
        Ok(storage.with_pixels(|base| Pixels::new(base, image)))
    }
    fn adopted_image(
        context: Owned<Context>,
        native: ur_native_handle_t,
        _said: impl FnOnce() -> Result<Image>,
        _given: bool,
    ) -> Result<Owned<Mem>> {
        let mem = of_native(&context, native)?;
        mem.image()?;
        Ok(mem)
    }
    fn native_mem(mem: &Object<Mem>, _device: Option<Owned<Device>>) -> Result<ur_native_handle_t> {
        own_handle::of(mem)
    }
}
