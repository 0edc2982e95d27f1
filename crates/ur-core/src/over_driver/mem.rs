//! Memory objects: buffers, sub-buffers and images, their flags and ranges, and their mappings. Where their bytes are is in
//! `storage.rs`; the layout of images is in `memory/image_layout.rs`, and the commands on both
//! are in `command/buffers.rs` and `command/images.rs`.
pub(crate) use super::storage::{Copies, Copy};
pub use super::storage::{Found, HasStorage, Storage};
use super::{
    block::Block,
    own_handle,
    usm_pool::{Context, Device, HasUsm},
};
use crate::{
    memory::{allocation::Allocation, allocations::Allocated, flags::check_range, ranges},
    process_mutex::ProcessMutex,
};
use std::sync::{Arc, OnceLock};
use ur_adapter::{
    api::Objects,
    error::{Error, ErrorCode, Result},
    memory::UsmPtr,
    object::{Object, Owned},
};
use ur_hal::{
    Access, Address, Adopted, AdoptedBuffer, ImageDesc, NativeHandle, NativeKind, NativeObject,
    Placement, Range, Types,
};
use ur_lock::get_or_try;
use ur_sys::*;

/// A driver over which the core implements memory objects.
pub trait BufferBackend: HasStorage + Objects<Mem = Mem<Self>> {}
impl<D: HasStorage + Objects<Mem = Mem<D>>> BufferBackend for D {}
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
    Part(OnceLock<D::Buffer>),
    Image(ImageDesc),
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
    /// A buffer over a native handle, which is released with the buffer if the caller has `given` it away.
    ///
    /// # Errors
    /// `INVALID_MEM_OBJECT` for one that the driver does not know.
    pub(super) fn adopted(
        context: Owned<Context<D>>,
        native: ur_native_handle_t,
        given: bool,
    ) -> Result<Owned<Self>> {
        if !D::HAS_HANDLES {
            let mem = Self::of_own_handle(&context, native)?;
            mem.check_buffer()?;
            return Ok(mem);
        }
        let AdoptedBuffer { memory, is_hosts, object } =
            D::adopt_buffer(context.driver(), NativeHandle(native as u64), given)?;
        let at = UsmPtr::from(memory.start());
        // Of memory that this adapter allocated, the driver may only know the piece of which it was cut.
        let ours = Allocation::<D::Memory>::find(at).filter(|_| !D::HAS_BUFFERS);
        let bytes = ours.map_or(memory.bytes(), |ours| ours.bytes_from(at));
        let storage = Storage::adopted(context, (at, bytes), is_hosts.then_some(at), object);
        let flags = ur_mem_flags_t::READ_WRITE;
        Ok(Owned::new(Self::new(flags, Arc::new(storage), None, bytes, What::Buffer)))
    }
    /// An image over a native image of the application, which is released with the object if the caller has `given` it
    /// away; `said` is how the caller describes it.
    ///
    /// # Errors
    /// As for `urMemImageCreateWithNativeHandle`.
    pub(super) fn adopted_image(
        context: Owned<Context<D>>,
        native: ur_native_handle_t,
        said: impl FnOnce() -> Result<ImageDesc>,
        given: bool,
    ) -> Result<Owned<Self>> {
        if !D::HAS_HANDLES {
            let mem = Self::of_own_handle(&context, native)?;
            mem.image()?;
            return Ok(mem);
        }
        let image = said()?;
        let (flags, bytes) = (ur_mem_flags_t::READ_WRITE, bytes_of::<D>(&image)?);
        let handle = (NativeKind::Image(image), NativeHandle(native as u64));
        let made = D::adopt(context.driver_devices(), Some(context.driver()), handle, given)?;
        let Adopted::Image(pixels) = made else {
            return Err(ErrorCode::InvalidMemObject.into()); // the driver returned another kind of object
        };
        let storage = Storage::of_image(context, pixels, (image, bytes));
        Ok(Owned::new(Self::new(flags, Arc::new(storage), None, bytes, What::Image(image))))
    }
    fn of_own_handle(
        context: &Owned<Context<D>>,
        native: ur_native_handle_t,
    ) -> Result<Owned<Self>> {
        let mem = own_handle::find::<Self>(native)?;
        own_handle::check_context(mem.context(), context)?;
        Ok(mem)
    }
    /// The native handle of a memory object with the newest contents, which are `found` on the device for which it is.
    ///
    /// # Errors
    /// Returns the driver's error, mapped as in `error.rs`.
    pub(super) fn native(of: &Object<Self>, found: Found<'_, D>) -> Result<ur_native_handle_t> {
        let handle = match found {
            _ if !D::HAS_HANDLES => return own_handle::of(of),
            Found::Pixels(pixels) => D::native(NativeObject::Image(&**pixels))?,
            Found::At(base) if !D::HAS_BUFFERS => NativeHandle((base.addr() + of.origin) as u64),
            Found::At(base) => {
                let whole = of.storage.object(base)?;
                D::buffer_handle(match &of.what {
                    What::Part(slot) => get_or_try(slot, || D::part(whole, of.origin, of.bytes))?,
                    What::Buffer | What::Image(_) => whole,
                })?
            }
        };
        Ok(handle.0 as ur_native_handle_t)
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
    pub fn image(&self) -> Result<&ImageDesc> {
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

/// The bytes of an image in host memory: with padding if the image is there.
pub(super) fn bytes_of<D: BufferBackend>(image: &ImageDesc) -> Result<usize> {
    let bytes = if D::PLACEMENT == Placement::Host { image.span() } else { image.bytes() };
    bytes.ok_or_else(|| ErrorCode::InvalidImageSize.into())
}
/// Checks the size of a memory object.
///
/// # Errors
/// `code` for 0 bytes, and for more than there can be.
pub(super) fn check_size<D: BufferBackend>(
    context: &Context<D>,
    bytes: usize,
    code: ErrorCode,
) -> Result<()> {
    let most = D::largest_buffer(context.driver());
    Error::unless((1..=most).contains(&bytes), code, || {
        format!("{bytes} bytes are none, or more than the {most} that a memory object can have")
    })
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
