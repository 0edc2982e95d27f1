//! Memory objects: buffers, sub-buffers and images, their flags and ranges, and their mappings. Where their bytes are
//! is up to the backend ([`Storage`]); the layout of images is in `memory/image_layout.rs`, and the commands on both
//! are in `command/buffers.rs` and `command/images.rs`.
use super::{
    OverDriver,
    block::Block,
    usm_pool::{Context, Device, HasUsm},
};
use crate::{
    memory::{
        allocation::Allocation,
        allocations::Allocated,
        flags::{check_flags, check_part, check_range, check_size, of_part},
        image_layout::{Image, LONGEST_SIDE},
        ranges,
    },
    process_mutex::ProcessMutex,
};
use std::{fmt, sync::Arc};
use ur_adapter::{
    api::{MemApi, Objects},
    error::{Error, ErrorCode, Result},
    info::Answer,
    memory::UsmPtr,
    object::{Borrowed, Object, Owned},
};
use ur_hal::{Access, Range};
use ur_sys::*;

/// A driver that provides memory for buffers and images.
pub trait BufferBackend: HasUsm + Objects<Mem = Mem<Self>> {
    /// The memory of a memory object, shared with its sub-buffers.
    type Storage: Storage<Self>;
    /// What the driver has of a part of a buffer beside that memory, from when it is asked for until the part is released.
    type Part: Default + Send + Sync + fmt::Debug;
    /// Provides the memory of a new buffer: the caller's memory, pinned host memory, or memory of the devices,
    /// depending on the flags. The bytes at `host`, if it is given, are its initial contents. The second value is the
    /// caller's memory that it represents, if devices cannot access that memory directly.
    ///
    /// # Errors
    /// `OUT_OF_RESOURCES`. Returns the driver's error, mapped as in `error.rs`.
    fn buffer(
        context: Owned<Context<Self>>,
        flags: ur_mem_flags_t,
        bytes: usize,
        host: Option<UsmPtr>,
    ) -> Result<(Self::Storage, Option<UsmPtr>)>;
    /// A buffer over a native handle, which is released with the buffer if the caller has `given` it away.
    ///
    /// # Errors
    /// `INVALID_MEM_OBJECT` for one that the driver does not know.
    fn adopted(
        context: Owned<Context<Self>>,
        native: ur_native_handle_t,
        given: bool,
    ) -> Result<Owned<Mem<Self>>> {
        let _ = (context, native, given);
        Error::unsupported("urMemBufferCreateWithNativeHandle")
    }
    /// Checks the size of a memory object.
    ///
    /// # Errors
    /// `code` for 0 bytes, and for more than there can be.
    fn check_object_size(context: &Context<Self>, bytes: usize, code: ErrorCode) -> Result<()> {
        let _ = context;
        check_size(bytes, code)
    }
    /// The most pixels along each side of an image.
    const LONGEST_SIDE: usize = LONGEST_SIDE;
    /// The bytes of a pixel.
    ///
    /// # Errors
    /// `UNSUPPORTED_IMAGE_FORMAT` for a format that no image has; `UNSUPPORTED_FEATURE` without images.
    fn pixel_bytes(format: ur_image_format_t) -> Result<usize> {
        let _ = format;
        Error::unsupported("urMemImageCreate")
    }
    /// The bytes of an image; `None` if they do not fit `usize`.
    fn image_bytes(image: &Image) -> Option<usize> {
        image.bytes()
    }
    /// Provides a new image, which has `bytes`; its pixels are copied from `host` if that is given.
    ///
    /// # Errors
    /// `INVALID_IMAGE_SIZE` for sizes that the driver does not support; else as for [`Self::buffer`].
    fn image(
        context: Owned<Context<Self>>,
        flags: ur_mem_flags_t,
        (image, bytes): (&Image, usize),
        host: Option<UsmPtr>,
    ) -> Result<Self::Storage> {
        let _ = (context, flags, image, bytes, host);
        Error::unsupported("urMemImageCreate")
    }
    /// An image over a native image of the application, which is released with the object if the caller has `given` it
    /// away; `said` is how the caller describes it.
    ///
    /// # Errors
    /// As for `urMemImageCreateWithNativeHandle`.
    fn adopted_image(
        context: Owned<Context<Self>>,
        native: ur_native_handle_t,
        said: impl FnOnce() -> Result<Image>,
        given: bool,
    ) -> Result<Owned<Mem<Self>>> {
        let _ = (context, native, said, given);
        Error::unsupported("urMemImageCreateWithNativeHandle")
    }
    /// The native handle of a memory object, on a device or, without one, wherever it is.
    ///
    /// # Errors
    /// Returns the driver's error, mapped as in `error.rs`.
    fn native_mem(
        mem: &Object<Mem<Self>>,
        device: Option<Owned<Device<Self>>>,
    ) -> Result<ur_native_handle_t> {
        let _ = (mem, device);
        Error::unsupported("urMemGetNativeHandle")
    }
}
/// The memory of a memory object.
pub trait Storage<D: HasUsm>: Send + Sync + fmt::Debug {
    /// The context whose devices access it.
    fn context(&self) -> &Owned<Context<D>>;
    /// Its address for the host; `None` if the host cannot access it, or if it is not allocated yet.
    fn host(&self) -> Option<UsmPtr>;
}
/// What `ur_mem_handle_t` points at.
#[derive(Debug)]
pub struct Mem<D: BufferBackend> {
    flags: ur_mem_flags_t,
    storage: Arc<D::Storage>,
    /// The caller's memory that the storage represents, if devices cannot access that memory directly.
    home: Option<UsmPtr>,
    /// Whether the storage is the caller's memory, which devices access directly.
    is_lent: bool,
    /// Its offset in the storage, in bytes.
    origin: usize,
    bytes: usize,
    what: What<D>,
    mapped: ProcessMutex<Vec<Mapping<D>>>,
}
body!(Mem: BufferBackend, Mem, InvalidMemObject);
/// The kind of a memory object.
#[derive(Debug)]
enum What<D: BufferBackend> {
    Buffer,
    /// A sub-buffer. It shares the storage, so that the buffer itself may be released first.
    Part(D::Part),
    Image(Image),
}
/// A range of a buffer that the caller has mapped.
#[derive(Debug)]
pub struct Mapping<D: BufferBackend> {
    /// The address that the caller received.
    pub at: UsmPtr,
    /// Its offset in the buffer, in bytes.
    pub offset: usize,
    /// Its size in bytes.
    pub size: usize,
    /// How the caller accesses it.
    pub flags: ur_map_flags_t,
    /// Whether `at` is the buffer's own memory, so that nothing has to be copied.
    pub is_own: bool,
    /// The memory at `at`, unless it is the buffer's own memory or the caller's.
    _staging: Option<Block<D>>,
}

impl<D: BufferBackend> Mem<D> {
    /// An image whose pixels `storage` has already.
    ///
    /// # Errors
    /// `INVALID_IMAGE_SIZE` for more bytes than there can be.
    pub fn of_image(storage: D::Storage, image: Image) -> Result<Owned<Self>> {
        let (flags, bytes) = (ur_mem_flags_t::READ_WRITE, bytes_of::<D>(&image)?);
        Ok(Owned::new(Self::new(flags, Arc::new(storage), None, bytes, What::Image(image))))
    }
    /// A buffer over all of `storage`, whose bytes exist already.
    pub fn of_bytes(storage: D::Storage, bytes: usize) -> Owned<Self> {
        let flags = ur_mem_flags_t::READ_WRITE;
        Owned::new(Self::new(flags, Arc::new(storage), None, bytes, What::Buffer))
    }
    fn new(
        flags: ur_mem_flags_t,
        storage: Arc<D::Storage>,
        home: Option<UsmPtr>,
        bytes: usize,
        what: What<D>,
    ) -> Self {
        let is_lent = flags.contains(ur_mem_flags_t::USE_HOST_POINTER) && storage.host().is_some();
        Self {
            flags,
            storage,
            home,
            is_lent,
            origin: 0,
            bytes,
            what,
            mapped: ProcessMutex::default(),
        }
    }
    /// Its size in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
    /// The context in which it was made.
    pub fn context(&self) -> &Owned<Context<D>> {
        self.storage.context()
    }
    /// Its memory, shared with its sub-buffers.
    pub fn storage(&self) -> &Arc<D::Storage> {
        &self.storage
    }
    /// Its offset in the storage, in bytes.
    pub fn origin(&self) -> usize {
        self.origin
    }
    /// Identifies its bytes: what they are in, and their offset there. Two buffers can overlap only if the first values
    /// are equal.
    pub fn identity(&self) -> (usize, usize) {
        match self.storage.host() {
            Some(base) => (0, base.addr() + self.origin),
            None => (Arc::as_ptr(&self.storage).addr(), self.origin),
        }
    }
    /// Whether kernels can only read it.
    pub fn is_read_only(&self) -> bool {
        self.flags.contains(ur_mem_flags_t::READ_ONLY)
    }
    /// Whether it is an image.
    pub fn is_image(&self) -> bool {
        matches!(self.what, What::Image(_))
    }
    /// What the driver has of it as a part of a buffer; `None` if it is none.
    pub fn part(&self) -> Option<&D::Part> {
        match &self.what {
            What::Part(part) => Some(part),
            What::Buffer | What::Image(_) => None,
        }
    }
    /// What makes it an image.
    ///
    /// # Errors
    /// `INVALID_MEM_OBJECT` for a buffer.
    pub fn image(&self) -> Result<&Image> {
        match &self.what {
            What::Image(image) => Ok(image),
            What::Buffer | What::Part(_) => Error::refuse(
                ErrorCode::InvalidMemObject,
                "this is a buffer: images are made by urMemImageCreate",
            ),
        }
    }
    /// Checks that it is a buffer or sub-buffer.
    ///
    /// # Errors
    /// `INVALID_MEM_OBJECT` for an image.
    pub fn check_buffer(&self) -> Result<()> {
        match self.what {
            What::Buffer | What::Part(_) => Ok(()),
            What::Image(_) => Error::refuse(
                ErrorCode::InvalidMemObject,
                "this is an image: use the entries for images",
            ),
        }
    }
    /// Checks a range of a buffer.
    ///
    /// # Errors
    /// `INVALID_SIZE` for 0 bytes, and for a range that is not completely inside; `INVALID_MEM_OBJECT` for an image.
    pub fn check_range(&self, offset: usize, size: usize) -> Result<()> {
        self.check_buffer()?;
        check_range(self.bytes, offset, size)
    }
    /// Checks that a command may write bytes that are the caller's memory. Pages there may be mapped read-only, and a
    /// host thread that writes to them, also one inside a driver, is killed by a signal.
    ///
    /// # Errors
    /// Those of [`Allocated::check_elsewhere`].
    pub fn check_write<A: Allocated>(&self, offset: usize, bytes: usize) -> Result<()> {
        match self.storage.host().filter(|_| self.is_lent) {
            None => Ok(()),
            Some(base) => {
                let range = Range::new(base.offset(self.origin + offset)?.into(), bytes)?;
                A::check_elsewhere(range, Access::ReadWrite)
            }
        }
    }
    /// Prepares the mapping of a range: at the buffer's address for the host, at the caller's own memory, or in memory
    /// allocated for the mapping.
    ///
    /// # Errors
    /// As for `check_range`; `OUT_OF_HOST_MEMORY`. Returns the driver's error, mapped as in `error.rs`.
    pub fn mapping(&self, flags: ur_map_flags_t, offset: usize, size: usize) -> Result<Mapping<D>> {
        self.check_range(offset, size)?;
        let at = |base: UsmPtr| base.offset(self.origin + offset);
        let mapping = |at, is_own, _staging| Mapping { at, offset, size, flags, is_own, _staging };
        if let Some(own) = self.storage.host() {
            return Ok(mapping(at(own)?, true, None));
        }
        if let Some(home) = self.home {
            return Ok(mapping(at(home)?, false, None));
        }
        let staging = Block::new(self.context(), None, size)?;
        Ok(mapping(staging.at(), false, Some(staging)))
    }
    /// Registers a mapping.
    ///
    /// # Errors
    /// `UNINITIALIZED` in a forked child that inherited the memory object.
    pub fn map(&self, mapping: Mapping<D>) -> Result<()> {
        self.mapped.lock()?.push(mapping);
        Ok(())
    }
    /// Removes a mapping.
    ///
    /// # Errors
    /// `INVALID_VALUE` if nothing is mapped at `at`; as for [`map`](Self::map).
    pub fn unmap(&self, at: UsmPtr) -> Result<Mapping<D>> {
        let mut mapped = self.mapped.lock()?;
        match mapped.iter().rposition(|one| one.at == at) {
            Some(index) => Ok(mapped.remove(index)),
            None => Error::refuse(
                ErrorCode::InvalidValue,
                format!("{at:?} is no mapping of this memory object: pass what map returned"),
            ),
        }
    }
}

fn bytes_of<D: BufferBackend>(image: &Image) -> Result<usize> {
    D::image_bytes(image).ok_or_else(|| ErrorCode::InvalidImageSize.into())
}
fn described<D: BufferBackend>(format: ur_image_format_t, desc: &ur_image_desc_t) -> Result<Image> {
    Image::new(format, D::pixel_bytes(format)?, desc, D::LONGEST_SIDE)
}
/// The error for an image that a driver with limits of its own did not make.
pub fn not_made(error: Error, image: &Image) -> Error {
    match error.code() {
        ErrorCode::InvalidValue | ErrorCode::InvalidSize => Error::new(
            ErrorCode::InvalidImageSize,
            format!("the device has no images of {:?} pixels: {error}", image.sides()),
        ),
        ErrorCode::OutOfDeviceMemory => error.with_code(ErrorCode::OutOfResources),
        _ => error,
    }
}
/// Checks the caller's memory that a memory object copies from or uses as its own.
///
/// # Errors
/// As for [`ranges::check_range`].
fn check_host<D: HasUsm>(flags: ur_mem_flags_t, host: UsmPtr, bytes: usize) -> Result<()> {
    let stays = flags.contains(ur_mem_flags_t::USE_HOST_POINTER)
        && !flags.contains(ur_mem_flags_t::READ_ONLY);
    let needs = if stays { Access::ReadWrite } else { Access::Read };
    ranges::check_range::<Allocation<D::Memory>>(host, bytes, needs).map(drop)
}

impl<D: BufferBackend> MemApi for OverDriver<D> {
    fn mem_image_create(
        context: Borrowed<'_, Context<D>>,
        flags: ur_mem_flags_t,
        format: &ur_image_format_t,
        desc: &ur_image_desc_t,
        host: Option<UsmPtr>,
    ) -> Result<Owned<Mem<D>>> {
        let image = described::<D>(*format, desc)?;
        check_flags(flags)?;
        let bytes = bytes_of::<D>(&image)?;
        D::check_object_size(&context, bytes, ErrorCode::InvalidImageSize)?;
        host.map_or(Ok(()), |host| check_host::<D>(flags, host, bytes))?;
        let storage = Arc::new(D::image(context.own()?, flags, (&image, bytes), host)?);
        Ok(Owned::new(Mem::new(flags, storage, None, bytes, What::Image(image))))
    }
    fn mem_buffer_create(
        context: Borrowed<'_, Context<D>>,
        flags: ur_mem_flags_t,
        size: usize,
        properties: Option<&ur_buffer_properties_t>,
    ) -> Result<Owned<Mem<D>>> {
        D::check_object_size(&context, size, ErrorCode::InvalidBufferSize)?;
        let host = properties.and_then(|p| UsmPtr::from_addr(p.pHost.addr()));
        let context = context.own()?;
        check_flags(flags)?;
        host.map_or(Ok(()), |host| check_host::<D>(flags, host, size))?;
        let (storage, home) = D::buffer(context, flags, size, host)?;
        Ok(Owned::new(Mem::new(flags, Arc::new(storage), home, size, What::Buffer)))
    }
    fn mem_buffer_partition(
        buffer: Borrowed<'_, Mem<D>>,
        flags: ur_mem_flags_t,
        _kind: ur_buffer_create_type_t,
        region: &ur_buffer_region_t,
    ) -> Result<Owned<Mem<D>>> {
        buffer.check_buffer()?;
        if buffer.part().is_some() {
            return Error::refuse(
                ErrorCode::InvalidMemObject,
                "a part of a buffer has no parts: partition the buffer itself",
            );
        }
        let flags = of_part(buffer.flags, flags)?;
        check_part(buffer.bytes, region)?;
        let storage = Arc::clone(&buffer.storage);
        let mut part =
            Mem::new(flags, storage, buffer.home, region.size, What::Part(D::Part::default()));
        (part.origin, part.is_lent) = (region.origin, buffer.is_lent);
        Ok(Owned::new(part))
    }
    fn mem_get_native_handle(
        mem: Borrowed<'_, Mem<D>>,
        device: Option<Borrowed<'_, Device<D>>>,
    ) -> Result<ur_native_handle_t> {
        device.map_or(Ok(()), |device| mem.context().check(device))?;
        D::native_mem(&mem, device.map(|device| device.own()).transpose()?)
    }
    fn mem_buffer_create_with_native_handle(
        native_mem: ur_native_handle_t,
        context: Borrowed<'_, Context<D>>,
        properties: Option<&ur_mem_native_properties_t>,
    ) -> Result<Owned<Mem<D>>> {
        let given = properties.is_some_and(|p| p.isNativeHandleOwned);
        D::adopted(context.own()?, native_mem, given)
    }
    fn mem_image_create_with_native_handle(
        native_mem: ur_native_handle_t,
        context: Borrowed<'_, Context<D>>,
        format: &ur_image_format_t,
        desc: &ur_image_desc_t,
        properties: Option<&ur_mem_native_properties_t>,
    ) -> Result<Owned<Mem<D>>> {
        let owned = properties.is_some_and(|p| p.isNativeHandleOwned);
        D::adopted_image(context.own()?, native_mem, || described::<D>(*format, desc), owned)
    }
    fn mem_get_info(
        mem: Borrowed<'_, Mem<D>>,
        name: ur_mem_info_t,
        answer: &mut Answer<'_>,
    ) -> Result<()> {
        match name {
            ur_mem_info_t::SIZE => answer.value(&mem.bytes),
            ur_mem_info_t::CONTEXT => answer.handle(mem.context()),
            ur_mem_info_t::REFERENCE_COUNT => answer.value(&mem.api_refs()),
            _ => Error::no_answer("a memory object", name),
        }
    }
    fn mem_image_get_info(
        mem: Borrowed<'_, Mem<D>>,
        name: ur_image_info_t,
        answer: &mut Answer<'_>,
    ) -> Result<()> {
        mem.image()?.info(name, answer)
    }
}
