//! Memory objects: buffers and parts of them, what C may do with them, and where it has mapped them.
//! Where their bytes are is the room's `storage.rs`'s, what images are beyond that `memory/image_layout.rs`'s;
//! the commands on both are the room's `enqueue_mem.rs`'s and `enqueue_image.rs`'s.
use super::{
    OverDriver,
    block::Block,
    usm_pool::{Context, Device, HasUsm},
};
use crate::memory::{
    allocation::Allocation,
    allocations::Allocated,
    flags::{check_flags, check_part, check_range, check_size, of_part},
    image_layout::Image,
    ranges,
};
use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard},
};
use ur_adapter::{
    api::{MemApi, Objects},
    error::{Error, ErrorCode, Result},
    info::Answer,
    memory::UsmPtr,
    object::{Body, Borrowed, Kind, Object, Owned, Slab, Tag},
};
use ur_hal::{Access, Range};
use ur_sys::*;

/// A driver whose memory can be made into buffers and images.
pub trait BufferBackend: HasUsm + Objects<Mem = Mem<Self>> {
    /// The bytes of a memory object and of its parts.
    type Storage: Storage<Self>;
    /// How messages call a memory object.
    fn a_mem() -> String;
    /// A buffer's bytes, and what of C's memory they stand for, as the flags say: C's memory, pinned memory
    /// of the host's, or memory of the devices'; with what is at `host` in them if that is anything.
    ///
    /// # Errors
    /// `OUT_OF_RESOURCES`; the driver's own.
    fn buffer(
        context: Owned<Context<Self>>,
        flags: ur_mem_flags_t,
        bytes: usize,
        host: Option<UsmPtr>,
    ) -> Result<(Self::Storage, Option<UsmPtr>)>;
    /// A buffer of a native handle, which goes with it if it is `given` away.
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
    /// A new image, with C's pixels in it if there are any.
    ///
    /// # Errors
    /// As for `urMemImageCreate`.
    fn image(
        context: Owned<Context<Self>>,
        flags: ur_mem_flags_t,
        format: ur_image_format_t,
        desc: &ur_image_desc_t,
        host: Option<UsmPtr>,
    ) -> Result<Owned<Mem<Self>>> {
        let _ = (context, flags, format, desc, host);
        Error::unsupported("urMemImageCreate")
    }
    /// An image over one of the driver's, that C made; it goes with the object if it is `given` away.
    ///
    /// # Errors
    /// As for `urMemImageCreateWithNativeHandle`.
    fn adopted_image(
        context: Owned<Context<Self>>,
        native: ur_native_handle_t,
        format: ur_image_format_t,
        desc: &ur_image_desc_t,
        given: bool,
    ) -> Result<Owned<Mem<Self>>> {
        let _ = (context, native, format, desc, given);
        Error::unsupported("urMemImageCreateWithNativeHandle")
    }
    /// What a memory object is to the driver, on a device or wherever it is.
    ///
    /// # Errors
    /// The driver's own.
    fn native_mem(
        mem: &Object<Mem<Self>>,
        device: Option<Owned<Device<Self>>>,
    ) -> Result<ur_native_handle_t> {
        let _ = (mem, device);
        Error::unsupported("urMemGetNativeHandle")
    }
}
/// Where the bytes of a memory object are.
pub trait Storage<D: HasUsm>: Send + Sync + fmt::Debug {
    /// The context whose devices use it.
    fn context(&self) -> &Owned<Context<D>>;
    /// Where the host can reach it, if it can, and it is anywhere yet.
    fn host(&self) -> Option<UsmPtr>;
}
/// What `ur_mem_handle_t` points at.
#[derive(Debug)]
pub struct Mem<D: BufferBackend> {
    flags: ur_mem_flags_t,
    storage: Arc<D::Storage>,
    /// C's memory that the storage stands for, where devices cannot reach that.
    home: Option<UsmPtr>,
    /// Whether the storage is C's memory, which devices reach as it is.
    is_lent: bool,
    /// Where in the storage it starts, in bytes.
    origin: usize,
    bytes: usize,
    what: What,
    mapped: Mutex<Vec<Mapping<D>>>,
}
impl<D: BufferBackend> Body for Mem<D> {
    const TAG: Tag = Tag::new(D::BACKEND, Kind::Mem);
    const INVALID: ErrorCode = ErrorCode::InvalidMemObject;
    fn slab() -> &'static Slab<Self> {
        D::statics().slab()
    }
}
/// What distinguishes memory objects from bytes.
#[derive(Debug)]
enum What {
    Buffer,
    /// Of a buffer; the bytes are the storage's, so that the buffer itself may go.
    Part,
    Image(Image),
}
/// A range of a buffer that C has where the host can reach it.
#[derive(Debug)]
pub struct Mapping<D: BufferBackend> {
    /// Where C has it.
    pub at: UsmPtr,
    /// Where in the buffer it begins, in bytes.
    pub offset: usize,
    /// How many bytes it has.
    pub size: usize,
    /// What C does with it.
    pub flags: ur_map_flags_t,
    /// Whether `at` is the buffer's own memory, so that nothing need be copied.
    pub is_own: bool,
    /// What is at `at`, unless it is the buffer's own memory or C's.
    _staging: Option<Block<D>>,
}

impl<D: BufferBackend> Mem<D> {
    /// An image, whose pixels are all of `storage`.
    pub fn of_image(
        flags: ur_mem_flags_t,
        storage: D::Storage,
        bytes: usize,
        image: Image,
    ) -> Self {
        Self::new(flags, Arc::new(storage), None, bytes, What::Image(image))
    }
    /// A buffer of which others made the bytes, all of `storage`.
    pub fn of_bytes(storage: D::Storage, bytes: usize) -> Owned<Self> {
        let flags = ur_mem_flags_t::READ_WRITE;
        Owned::new(Self::new(flags, Arc::new(storage), None, bytes, What::Buffer))
    }
    fn new(
        flags: ur_mem_flags_t,
        storage: Arc<D::Storage>,
        home: Option<UsmPtr>,
        bytes: usize,
        what: What,
    ) -> Self {
        let is_lent = flags.contains(ur_mem_flags_t::USE_HOST_POINTER) && storage.host().is_some();
        Self { flags, storage, home, is_lent, origin: 0, bytes, what, mapped: Mutex::default() }
    }
    /// How many bytes it has.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
    /// The context it was made in.
    pub fn context(&self) -> &Owned<Context<D>> {
        self.storage.context()
    }
    /// What keeps its bytes where they are.
    pub fn storage(&self) -> &Arc<D::Storage> {
        &self.storage
    }
    /// Where in its storage it begins, in bytes.
    pub fn origin(&self) -> usize {
        self.origin
    }
    /// Which bytes it has: of what, and from where in it on. Buffers of which the first is the same may share bytes.
    pub fn identity(&self) -> (usize, usize) {
        match self.storage.host() {
            Some(base) => (0, base.addr() + self.origin),
            None => (Arc::as_ptr(&self.storage).addr(), self.origin),
        }
    }
    /// Whether kernels may only read it.
    pub fn is_read_only(&self) -> bool {
        self.flags.contains(ur_mem_flags_t::READ_ONLY)
    }
    /// Whether it is an image, which nothing more can be told of without it.
    pub fn is_image(&self) -> bool {
        matches!(self.what, What::Image(_))
    }
    /// # Errors
    /// `INVALID_MEM_OBJECT` for a buffer.
    pub fn image(&self) -> Result<&Image> {
        match &self.what {
            What::Image(image) => Ok(image),
            What::Buffer | What::Part => Err(Error::new(
                ErrorCode::InvalidMemObject,
                "this is a buffer: images are made by urMemImageCreate",
            )),
        }
    }
    /// # Errors
    /// `INVALID_MEM_OBJECT` for an image.
    pub fn check_buffer(&self) -> Result<()> {
        match self.what {
            What::Buffer | What::Part => Ok(()),
            What::Image(_) => Err(Error::new(
                ErrorCode::InvalidMemObject,
                "this is an image: use the entries for images",
            )),
        }
    }
    /// # Errors
    /// `INVALID_SIZE` for 0 bytes and for such as are not all in the buffer; `INVALID_MEM_OBJECT`
    /// for an image.
    pub fn check_range(&self, offset: usize, size: usize) -> Result<()> {
        self.check_buffer()?;
        check_range(self.bytes, offset, size)
    }
    /// Checks bytes that a command writes, where they are memory of C's: pages of it may be mapped for reading only, and
    /// whoever writes there as the host does, a driver too, is killed.
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
    fn mapped(&self) -> MutexGuard<'_, Vec<Mapping<D>>> {
        ur_lock::locked(&self.mapped)
    }
    /// Where C is going to have a range: where the host has the buffer, or in memory made for it.
    ///
    /// # Errors
    /// As for `check_range`; `OUT_OF_HOST_MEMORY`; the driver's own.
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
    /// C has it.
    pub fn map(&self, mapping: Mapping<D>) {
        self.mapped().push(mapping);
    }
    /// C gives it back.
    ///
    /// # Errors
    /// `INVALID_VALUE` for what is not mapped.
    pub fn unmap(&self, at: UsmPtr) -> Result<Mapping<D>> {
        let mut mapped = self.mapped();
        match mapped.iter().rposition(|one| one.at == at) {
            Some(index) => Ok(mapped.remove(index)),
            None => Err(Error::new(
                ErrorCode::InvalidValue,
                format!("{at:?} is no mapping of this memory object: pass what map returned"),
            )),
        }
    }
}

/// Checks memory of C's that a memory object is made with, or stands for.
///
/// # Errors
/// As for [`ranges::check_range`].
pub fn check_host<D: HasUsm>(flags: ur_mem_flags_t, host: UsmPtr, bytes: usize) -> Result<()> {
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
        D::image(context.own()?, flags, *format, desc, host)
    }
    fn mem_buffer_create(
        context: Borrowed<'_, Context<D>>,
        flags: ur_mem_flags_t,
        size: usize,
        properties: Option<&ur_buffer_properties_t>,
    ) -> Result<Owned<Mem<D>>> {
        check_size(size, ErrorCode::InvalidBufferSize)?;
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
        if matches!(buffer.what, What::Part) {
            return Err(Error::new(
                ErrorCode::InvalidMemObject,
                "a part of a buffer has no parts: partition the buffer itself",
            ));
        }
        let flags = of_part(buffer.flags, flags)?;
        check_part(buffer.bytes, region)?;
        let storage = Arc::clone(&buffer.storage);
        let mut part = Mem::new(flags, storage, buffer.home, region.size, What::Part);
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
        D::adopted_image(context.own()?, native_mem, *format, desc, owned)
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
            _ => Err(Error::new(
                ErrorCode::UnsupportedEnumeration,
                format!("{} has no answer to {name:?}", D::a_mem()),
            )),
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
