//! Memory objects: buffers, sub-buffers and images, their flags and ranges, and their mappings. Where their bytes are is in
//! `storage.rs`; the layout of images is in `memory/image_layout.rs`, and the commands on both
//! are in `command/buffers.rs` and `command/images.rs`.
pub(crate) use super::storage::{Copies, Copy};
pub use super::storage::{Found, HasStorage, ImagePlace, Lent, Placement, Storage};
use super::{
    block::Block,
    storage,
    usm_pool::{Context, Device, HasUsm},
};
use crate::{
    memory::{
        allocation::Allocation,
        allocations::Allocated,
        flags::{check_range, check_size},
        image_layout::{Image, LONGEST_SIDE},
        ranges,
    },
    process_mutex::ProcessMutex,
};
use std::sync::{Arc, OnceLock};
use ur_adapter::{
    api::Objects,
    error::{Error, ErrorCode, Result},
    memory::UsmPtr,
    object::{Object, Owned},
};
use ur_hal::{Access, Address, Range, Types};
use ur_sys::*;

/// A driver with memory objects: formats of images and native handles. Where they are, [`HasStorage`] says.
pub trait BufferBackend: HasStorage + Objects<Mem = Mem<Self>> {
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
    /// The native handle of a memory object with the newest contents, which are `found` on the device for which it is: by
    /// default the address of a buffer's first byte, and [`native_image`](Self::native_image) of an image.
    ///
    /// # Errors
    /// Returns the driver's error, mapped as in `error.rs`.
    fn native_mem(mem: &Object<Mem<Self>>, found: Found<'_, Self>) -> Result<ur_native_handle_t> {
        match found {
            Found::At(base) => Ok(base.addr() + mem.origin()),
            Found::Pixels(pixels) => Self::native_image(pixels),
        }
    }
    /// The native handle of an image.
    ///
    /// # Errors
    /// `UNSUPPORTED_FEATURE` without images.
    fn native_image(image: &<Self as Types>::Image) -> Result<ur_native_handle_t> {
        let _ = image;
        Error::unsupported("urMemGetNativeHandle")
    }
}
/// What `ur_mem_handle_t` points at.
#[derive(Debug)]
pub struct Mem<D: BufferBackend> {
    pub(super) flags: ur_mem_flags_t,
    storage: Arc<Storage<D>>,
    /// The caller's memory that the storage represents, if devices cannot access that memory directly.
    pub(super) home: Option<UsmPtr>,
    /// Whether the storage is the caller's memory, which devices access directly.
    pub(super) is_lent: bool,
    /// Its offset in the storage, in bytes.
    pub(super) origin: usize,
    pub(super) bytes: usize,
    pub(super) what: What<D>,
    mapped: ProcessMutex<Vec<Mapping<D>>>,
}
body!(Mem: BufferBackend, Mem, InvalidMemObject);
/// The kind of a memory object.
#[derive(Debug)]
pub(super) enum What<D: BufferBackend> {
    Buffer,
    /// A sub-buffer. It shares the storage, so that the buffer itself may be released first.
    Part(OnceLock<D::Object>),
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
    /// An image of the driver's on the context's first device.
    ///
    /// # Errors
    /// `INVALID_IMAGE_SIZE` for more bytes than there can be.
    pub fn of_image(
        context: Owned<Context<D>>,
        pixels: <D as Types>::Image,
        image: Image,
    ) -> Result<Owned<Self>> {
        let (flags, bytes) = (ur_mem_flags_t::READ_WRITE, bytes_of::<D>(&image)?);
        let storage = Storage::of_image(context, pixels, (&image, bytes), flags);
        Ok(Owned::new(Self::new(flags, Arc::new(storage), None, bytes, What::Image(image))))
    }
    /// A buffer over all of `storage`, whose bytes exist already.
    pub fn of_bytes(storage: Storage<D>) -> Owned<Self> {
        let (flags, bytes) = (ur_mem_flags_t::READ_WRITE, storage.bytes());
        Owned::new(Self::new(flags, Arc::new(storage), None, bytes, What::Buffer))
    }
    pub(super) fn new(
        flags: ur_mem_flags_t,
        storage: Arc<Storage<D>>,
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
    pub fn storage(&self) -> &Arc<Storage<D>> {
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
    /// The driver's object over its bytes; `make` makes that of the whole buffer, and `part` that of a part of the whole.
    ///
    /// # Errors
    /// Those of `make` and `part`.
    pub fn object(
        &self,
        make: impl FnOnce() -> Result<D::Object>,
        part: impl FnOnce(&D::Object) -> Result<D::Object>,
    ) -> Result<&D::Object> {
        let whole = self.storage.object(make)?;
        match &self.what {
            What::Part(slot) => storage::object(slot, || part(whole)),
            What::Buffer | What::Image(_) => Ok(whole),
        }
    }
    /// The address of its first byte for commands on a device. Its newest bytes are there when a command runs that lists
    /// it in [`Ready::used`](crate::command::Ready).
    ///
    /// # Errors
    /// `INVALID_MEM_OBJECT` for an image; as for [`Storage::found`].
    pub fn at(&self, device: &Owned<Device<D>>) -> Result<Address> {
        match self.storage.found(device)? {
            Found::At(base) => Ok(base.offset(self.origin)?.into()),
            Found::Pixels(_) => Err(ErrorCode::InvalidMemObject.into()),
        }
    }
    /// The device's object for an image. Its newest pixels are there under the same condition as a buffer's bytes.
    ///
    /// # Errors
    /// `INVALID_MEM_OBJECT` for a buffer; as for [`Storage::found`].
    pub fn pixels(&self, device: &Owned<Device<D>>) -> Result<&Arc<<D as Types>::Image>> {
        match self.storage.found(device)? {
            Found::Pixels(pixels) => Ok(pixels),
            Found::At(_) => Err(ErrorCode::InvalidMemObject.into()),
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

pub(super) fn bytes_of<D: BufferBackend>(image: &Image) -> Result<usize> {
    D::image_bytes(image).ok_or_else(|| ErrorCode::InvalidImageSize.into())
}
pub(super) fn described<D: BufferBackend>(
    format: ur_image_format_t,
    desc: &ur_image_desc_t,
) -> Result<Image> {
    Image::new(format, D::pixel_bytes(format)?, desc, D::LONGEST_SIDE)
}
/// The bytes from an address to the end of the allocation there, of which the driver says where it begins and how long it is.
/// Of one that this adapter made, the driver may only know the piece of which it was cut.
pub fn bytes_from<D: HasUsm>(at: UsmPtr, (base, bytes): (u64, usize)) -> usize {
    match Allocation::<D::Memory>::find(at) {
        Some(ours) => ours.bytes_from(at),
        None => (base as usize + bytes).saturating_sub(at.addr()),
    }
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
pub(super) fn check_host<D: HasUsm>(
    flags: ur_mem_flags_t,
    host: UsmPtr,
    bytes: usize,
) -> Result<()> {
    let stays = flags.contains(ur_mem_flags_t::USE_HOST_POINTER)
        && !flags.contains(ur_mem_flags_t::READ_ONLY);
    let needs = if stays { Access::ReadWrite } else { Access::Read };
    ranges::check_range::<Allocation<D::Memory>>(host, bytes, needs).map(drop)
}
