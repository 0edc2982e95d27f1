//! Memory objects: buffers and parts of them, what C may do with them, and where it has mapped them.
//! Where their bytes are is `storage.rs`'s, what images are beyond that `image.rs`'s; the commands on
//! both are `enqueue_mem.rs`'s and `enqueue_image.rs`'s.
//!
//! Native handles: of a buffer its address on the device, of an image the driver's array.
use super::{
    Context, Device, Family,
    driver::Dialect,
    image::{self, Image},
    native::{
        memory::{self, Piece},
        stream::Stream,
    },
    storage::{Block, Found, Shape, Storage},
};
use crate::memory::flags::{check_flags, check_size, of_part};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use ur_adapter::{
    api::MemApi,
    error::{Error, ErrorCode, Result},
    info::Answer,
    memory::UsmPtr,
    object::{Borrowed, Owned},
};
use ur_sys::*;

/// What `ur_mem_handle_t` points at.
#[derive(Debug)]
pub struct Mem<D: Dialect> {
    flags: ur_mem_flags_t,
    storage: Arc<Storage<D>>,
    /// C's memory that the storage stands for, where devices cannot reach that.
    home: Option<UsmPtr>,
    /// Where in the storage it starts, in bytes.
    origin: usize,
    bytes: usize,
    what: What,
    mapped: Mutex<Vec<Mapping<D>>>,
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
pub(super) struct Mapping<D: Dialect> {
    pub(super) at: UsmPtr,
    pub(super) offset: usize,
    pub(super) size: usize,
    pub(super) flags: ur_map_flags_t,
    /// Whether `at` is the buffer's own memory, so that nothing need be copied.
    pub(super) is_own: bool,
    /// What is at `at`, unless it is the buffer's own memory or C's.
    _staging: Option<Block<D>>,
}

impl<D: Dialect> Mem<D> {
    /// An image, whose pixels are all of `storage`.
    pub(super) fn of_image(
        flags: ur_mem_flags_t,
        storage: Storage<D>,
        bytes: usize,
        image: Image,
    ) -> Self {
        Self::new(flags, Arc::new(storage), None, bytes, What::Image(image))
    }
    fn new(
        flags: ur_mem_flags_t,
        storage: Arc<Storage<D>>,
        home: Option<UsmPtr>,
        bytes: usize,
        what: What,
    ) -> Self {
        Self { flags, storage, home, origin: 0, bytes, what, mapped: Mutex::default() }
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
    pub(super) fn storage(&self) -> &Arc<Storage<D>> {
        &self.storage
    }
    /// Where in its storage it begins, in bytes.
    pub(super) fn origin(&self) -> usize {
        self.origin
    }
    /// Whether kernels may only read it.
    pub fn is_read_only(&self) -> bool {
        self.flags.contains(ur_mem_flags_t::READ_ONLY)
    }
    /// What a kernel on `device` is given of it, up to date at this point of `stream`: the address of
    /// a buffer, the surface of an image. If the kernel `writes`, other devices' copies are out of
    /// date from here on.
    ///
    /// # Errors
    /// `INVALID_CONTEXT` for a device of another context; the driver's own.
    pub fn device_address(
        &self,
        device: &Owned<Device<D>>,
        stream: &Stream<D>,
        writes: bool,
    ) -> Result<u64> {
        match self.storage.at(device, stream, writes)? {
            Found::At(at) => Ok(at + self.origin as u64),
            Found::Array(array) => array.surface(),
        }
    }
    /// # Errors
    /// `INVALID_MEM_OBJECT` for a buffer.
    pub(super) fn image(&self) -> Result<&Image> {
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
    pub(super) fn check_buffer(&self) -> Result<()> {
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
    pub(super) fn check_range(&self, offset: usize, size: usize) -> Result<()> {
        self.check_buffer()?;
        if size == 0 || offset.checked_add(size).is_none_or(|end| end > self.bytes) {
            let has = self.bytes;
            return Err(Error::new(
                ErrorCode::InvalidSize,
                format!("{size} bytes from {offset} on are not in a buffer of {has} bytes"),
            ));
        }
        Ok(())
    }
    fn mapped(&self) -> MutexGuard<'_, Vec<Mapping<D>>> {
        self.mapped.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Where C is going to have a range: where the host has the buffer, or in memory made for it.
    ///
    /// # Errors
    /// As for `check_range`; `OUT_OF_HOST_MEMORY`; the driver's own.
    pub(super) fn mapping(
        &self,
        flags: ur_map_flags_t,
        offset: usize,
        size: usize,
    ) -> Result<Mapping<D>> {
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
    pub(super) fn map(&self, mapping: Mapping<D>) {
        self.mapped().push(mapping);
    }
    /// C gives it back.
    ///
    /// # Errors
    /// `INVALID_VALUE` for what is not mapped.
    pub(super) fn unmap(&self, at: UsmPtr) -> Result<Mapping<D>> {
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

/// A buffer as the flags say: over C's memory, over pinned memory of the host's, or over memory of
/// the devices'; with C's bytes in it if there are any.
fn buffer<D: Dialect>(
    context: Owned<Context<D>>,
    flags: ur_mem_flags_t,
    bytes: usize,
    host: Option<UsmPtr>,
) -> Result<Mem<D>> {
    use ur_mem_flags_t as F;
    check_flags(flags)?;
    host.map_or(Ok(()), |host| host.offset(bytes).map(drop))?; // or it would wrap around
    let uses = host.filter(|_| flags.contains(F::USE_HOST_POINTER));
    let read_only = flags.contains(F::READ_ONLY);
    if let Some(host) = uses
        && let Some(storage) = Storage::registered(&context, host, bytes, read_only)
    {
        return Ok(Mem::new(flags, Arc::new(storage), None, bytes, What::Buffer));
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
            Found::At(at) => stream.copy(*at, host.addr() as u64, bytes),
            Found::Array(_) => Ok(()), // no buffer has one
        })?;
        storage.written_first();
    }
    Ok(Mem::new(flags, Arc::new(storage), uses, bytes, What::Buffer))
}

impl<D: Dialect> MemApi for Family<D> {
    fn mem_image_create(
        context: Borrowed<'_, Context<D>>,
        flags: ur_mem_flags_t,
        format: &ur_image_format_t,
        desc: &ur_image_desc_t,
        host: Option<UsmPtr>,
    ) -> Result<Owned<Mem<D>>> {
        image::create(context.own()?, flags, *format, desc, host)
    }
    fn mem_buffer_create(
        context: Borrowed<'_, Context<D>>,
        flags: ur_mem_flags_t,
        size: usize,
        properties: Option<&ur_buffer_properties_t>,
    ) -> Result<Owned<Mem<D>>> {
        check_size(size, ErrorCode::InvalidBufferSize)?;
        let host = properties.and_then(|p| UsmPtr::from_addr(p.pHost.addr()));
        buffer(context.own()?, flags, size, host).map(Owned::new)
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
        let end = region.origin.checked_add(region.size);
        if end.is_none_or(|end| end > buffer.bytes) {
            let (size, origin, has) = (region.size, region.origin, buffer.bytes);
            return Err(Error::new(
                ErrorCode::InvalidBufferSize,
                format!("{size} bytes from {origin} on are not in a buffer of {has} bytes"),
            ));
        }
        let storage = Arc::clone(&buffer.storage);
        let mut part = Mem::new(flags, storage, buffer.home, region.size, What::Part);
        part.origin = region.origin;
        Ok(Owned::new(part))
    }
    fn mem_get_native_handle(
        mem: Borrowed<'_, Mem<D>>,
        device: Option<Borrowed<'_, Device<D>>>,
    ) -> Result<ur_native_handle_t> {
        device.map_or(Ok(()), |device| mem.context().check(device))?;
        let device = device.map(|device| device.own()).transpose()?;
        match mem.storage.now(device.as_ref())? {
            Found::At(at) => Ok((at + mem.origin as u64) as ur_native_handle_t),
            Found::Array(array) => Ok(array.raw().addr() as ur_native_handle_t),
        }
    }
    /// What the driver knows to be at the address, from there to its end.
    fn mem_buffer_create_with_native_handle(
        native_mem: ur_native_handle_t,
        context: Borrowed<'_, Context<D>>,
        properties: Option<&ur_mem_native_properties_t>,
    ) -> Result<Owned<Mem<D>>> {
        let (context, at) = (context.own()?, native_mem as u64);
        let home = &context.devices()[0];
        let known = memory::known::<D>(&home.enter()?, at)?.ok_or_else(|| {
            let why = format!("{at:#x} is no memory that {} knows", D::NAME);
            Error::new(ErrorCode::InvalidMemObject, why)
        })?;
        let bytes = (known.base + known.bytes as u64).saturating_sub(at) as usize;
        let given = properties.is_some_and(|p| p.isNativeHandleOwned);
        let piece = given.then(|| Piece::adopted(home, at)).transpose()?;
        let storage = Arc::new(Storage::foreign(context, at, bytes, piece));
        let flags = ur_mem_flags_t::READ_WRITE;
        Ok(Owned::new(Mem::new(flags, storage, None, bytes, What::Buffer)))
    }
    fn mem_image_create_with_native_handle(
        native_mem: ur_native_handle_t,
        context: Borrowed<'_, Context<D>>,
        format: &ur_image_format_t,
        desc: &ur_image_desc_t,
        properties: Option<&ur_mem_native_properties_t>,
    ) -> Result<Owned<Mem<D>>> {
        let owned = properties.is_some_and(|p| p.isNativeHandleOwned);
        image::adopt(context.own()?, native_mem, *format, desc, owned)
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
                format!("a memory object of {} has no answer to {name:?}", D::NAME),
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
