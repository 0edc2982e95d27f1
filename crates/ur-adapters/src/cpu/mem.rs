//! Memory objects: buffers and parts of them. They are host memory, ours or C's, with an address
//! that never changes. What images are beyond that is `image.rs`'s, the commands on both are
//! `enqueue_mem.rs`'s and `enqueue_image.rs`'s.
use super::{
    Context, Cpu, Device, backing::Block, image, mapping::Side, native, native_handle,
    usm::check_size,
};
use crate::memory::{
    flags::{check_flags, check_part, check_range, of_part},
    pictures::Image,
};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
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
pub struct Mem {
    context: Owned<Context>,
    flags: ur_mem_flags_t,
    storage: Arc<Storage>,
    /// Where in the storage it starts, in bytes.
    origin: usize,
    bytes: usize,
    what: What,
    /// How often C has mapped what starts at an address, and has not unmapped it.
    mapped: Mutex<HashMap<UsmPtr, usize>>,
}

/// What distinguishes memory objects from bytes.
#[derive(Debug)]
enum What {
    Buffer,
    /// Of a buffer; the bytes are the storage's, so that the buffer itself may go.
    Part,
    Image(Image),
}

/// The bytes of a memory object and of its parts. Commands hold it, so that releasing an object
/// takes nothing away from what was enqueued before.
#[derive(Debug)]
pub(super) struct Storage {
    base: UsmPtr,
    /// None: it is C's own memory.
    _block: Option<Block>,
}
impl Storage {
    /// New memory, aligned for anything.
    ///
    /// # Errors
    /// `OUT_OF_HOST_MEMORY`, `OUT_OF_RESOURCES`
    pub(super) fn new(bytes: usize) -> Result<Self> {
        let block = Block::take(Side::Host, bytes, ALIGN)?;
        Ok(Self { base: block.base(), _block: Some(block) })
    }
    /// As the flags say: C's memory itself, a copy of it, or new memory.
    ///
    /// # Errors
    /// As for `new`; `INVALID_VALUE` for flags that contradict each other.
    pub(super) fn for_flags(
        flags: ur_mem_flags_t,
        host: Option<UsmPtr>,
        bytes: usize,
    ) -> Result<Self> {
        check_flags(flags)?;
        match host {
            Some(base) if flags.contains(ur_mem_flags_t::USE_HOST_POINTER) => {
                base.offset(bytes)?; // or it would wrap around the end of memory
                Ok(Self { base, _block: None })
            }
            Some(host) => {
                host.offset(bytes)?;
                let storage = Self::new(bytes)?;
                native::copy(storage.base, host, bytes);
                Ok(storage)
            }
            None => Self::new(bytes),
        }
    }
}

/// A line of cache, and more than any type of C's needs.
const ALIGN: usize = 128;

impl Mem {
    /// An image, whose bytes are all of `storage`.
    pub(super) fn of_image(
        context: Owned<Context>,
        flags: ur_mem_flags_t,
        storage: Storage,
        bytes: usize,
        image: Image,
    ) -> Self {
        Self::new(context, flags, Arc::new(storage), 0, bytes, What::Image(image))
    }
    fn new(
        context: Owned<Context>,
        flags: ur_mem_flags_t,
        storage: Arc<Storage>,
        origin: usize,
        bytes: usize,
        what: What,
    ) -> Self {
        Self { context, flags, storage, origin, bytes, what, mapped: Mutex::default() }
    }
    /// Where its bytes are, for its whole life.
    pub fn address(&self) -> UsmPtr {
        self.storage.base.offset(self.origin).expect("the storage does not wrap around")
    }
    /// How many bytes it has.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
    /// The context it was made in.
    pub fn context(&self) -> &Owned<Context> {
        &self.context
    }
    /// What keeps its bytes where they are.
    pub(super) fn storage(&self) -> &Arc<Storage> {
        &self.storage
    }
    /// Whether kernels may write it.
    pub fn is_read_only(&self) -> bool {
        self.flags.contains(ur_mem_flags_t::READ_ONLY)
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
    /// Where a range of a buffer is.
    ///
    /// # Errors
    /// `INVALID_SIZE` for 0 bytes and for such as are not all in the buffer; `INVALID_MEM_OBJECT`
    /// for an image.
    pub(super) fn range(&self, offset: usize, size: usize) -> Result<UsmPtr> {
        self.check_buffer()?;
        check_range(self.bytes, offset, size)?;
        self.address().offset(offset)
    }
    fn mapped(&self) -> MutexGuard<'_, HashMap<UsmPtr, usize>> {
        self.mapped.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// C has what starts `at` mapped once more.
    pub(super) fn map(&self, at: UsmPtr) {
        *self.mapped().entry(at).or_default() += 1;
    }
    /// C has it mapped once less.
    ///
    /// # Errors
    /// `INVALID_VALUE` for what is not mapped.
    pub(super) fn unmap(&self, at: UsmPtr) -> Result<()> {
        let mut mapped = self.mapped();
        match mapped.get_mut(&at) {
            Some(1) => drop(mapped.remove(&at)),
            Some(times) => *times -= 1,
            None => {
                return Err(Error::new(
                    ErrorCode::InvalidValue,
                    format!("{at:?} is no mapping of this memory object: pass what map returned"),
                ));
            }
        }
        Ok(())
    }
}

impl MemApi for Cpu {
    fn mem_image_create(
        context: Borrowed<'_, Context>,
        flags: ur_mem_flags_t,
        format: &ur_image_format_t,
        desc: &ur_image_desc_t,
        host: Option<UsmPtr>,
    ) -> Result<Owned<Mem>> {
        image::create(context, flags, format, desc, host)
    }
    fn mem_buffer_create(
        context: Borrowed<'_, Context>,
        flags: ur_mem_flags_t,
        size: usize,
        properties: Option<&ur_buffer_properties_t>,
    ) -> Result<Owned<Mem>> {
        check_size(size, ErrorCode::InvalidBufferSize)?;
        let host = properties.and_then(|p| UsmPtr::from_addr(p.pHost.addr()));
        let storage = Arc::new(Storage::for_flags(flags, host, size)?);
        Ok(Owned::new(Mem::new(context.own()?, flags, storage, 0, size, What::Buffer)))
    }
    fn mem_buffer_partition(
        buffer: Borrowed<'_, Mem>,
        flags: ur_mem_flags_t,
        _kind: ur_buffer_create_type_t,
        region: &ur_buffer_region_t,
    ) -> Result<Owned<Mem>> {
        buffer.check_buffer()?;
        if matches!(buffer.what, What::Part) {
            return Err(Error::new(
                ErrorCode::InvalidMemObject,
                "a part of a buffer has no parts: partition the buffer itself",
            ));
        }
        let flags = of_part(buffer.flags, flags)?;
        check_part(buffer.bytes, region)?;
        let (context, storage) = (buffer.context.clone(), Arc::clone(&buffer.storage));
        Ok(Owned::new(Mem::new(context, flags, storage, region.origin, region.size, What::Part)))
    }
    fn mem_get_native_handle(
        mem: Borrowed<'_, Mem>,
        device: Option<Borrowed<'_, Device>>,
    ) -> Result<ur_native_handle_t> {
        device.map_or(Ok(()), |device| mem.context.check(device))?;
        native_handle::of(&mem)
    }
    fn mem_buffer_create_with_native_handle(
        native_mem: ur_native_handle_t,
        context: Borrowed<'_, Context>,
        _properties: Option<&ur_mem_native_properties_t>,
    ) -> Result<Owned<Mem>> {
        let mem = native_handle::find::<Mem>(native_mem)?;
        native_handle::check_context(&mem.context, context)?;
        mem.check_buffer()?;
        Ok(mem)
    }
    fn mem_image_create_with_native_handle(
        native_mem: ur_native_handle_t,
        context: Borrowed<'_, Context>,
        _format: &ur_image_format_t,
        _desc: &ur_image_desc_t,
        _properties: Option<&ur_mem_native_properties_t>,
    ) -> Result<Owned<Mem>> {
        let mem = native_handle::find::<Mem>(native_mem)?;
        native_handle::check_context(&mem.context, context)?;
        mem.image()?;
        Ok(mem)
    }
    fn mem_get_info(
        mem: Borrowed<'_, Mem>,
        name: ur_mem_info_t,
        answer: &mut Answer<'_>,
    ) -> Result<()> {
        match name {
            ur_mem_info_t::SIZE => answer.value(&mem.bytes),
            ur_mem_info_t::CONTEXT => answer.handle(&mem.context),
            ur_mem_info_t::REFERENCE_COUNT => answer.value(&mem.api_refs()),
            _ => Err(Error::new(
                ErrorCode::UnsupportedEnumeration,
                format!("a memory object of the CPU has no answer to {name:?}"),
            )),
        }
    }
    fn mem_image_get_info(
        mem: Borrowed<'_, Mem>,
        name: ur_image_info_t,
        answer: &mut Answer<'_>,
    ) -> Result<()> {
        mem.image()?.info(name, answer)
    }
}
