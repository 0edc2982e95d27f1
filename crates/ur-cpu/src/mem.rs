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
use ur_core::over_driver::{
    mem::{self, BufferBackend},
    own_handle,
    usm_pool::HasUsm,
};
use ur_sys::{ur_image_desc_t, ur_image_format_t, ur_mem_flags_t, ur_native_handle_t};

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

/// Checks the size of a memory object.
///
/// # Errors
/// `code` for zero bytes, and for more than the host's memory.
pub(super) fn check_size(context: &Context, bytes: usize, code: ErrorCode) -> Result<()> {
    Cpu::check_size(context.devices()[0].driver(), bytes).map_err(|error| error.with_code(code))
}

impl BufferBackend for Cpu {
    type Storage = Storage;
    fn buffer(
        context: Owned<Context>,
        flags: ur_mem_flags_t,
        bytes: usize,
        host: Option<UsmPtr>,
    ) -> Result<(Storage, Option<UsmPtr>)> {
        check_size(&context, bytes, ErrorCode::InvalidBufferSize)?;
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
        _format: ur_image_format_t,
        _desc: &ur_image_desc_t,
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
