//! Physical memory: memory of a device without an address until `virtual_mem.rs` maps it. Objects that
//! were made here and such as were opened differ in where their memory is from, and in nothing else.
use super::{Beneath, OverDriver, next_object};
use crate::memory::{deferred_free, physical};
use std::{
    collections::HashMap,
    fmt,
    os::fd::OwnedFd,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicBool, Ordering::*},
    },
};
use ur_adapter::{
    api::{Objects, PhysicalMemApi},
    error::{Error, ErrorCode, Result},
    info::Answer,
    object::{Body, Borrowed, Owned, Slab, Tag},
};
use ur_ipc::{Kind, Remote};
use ur_sys::{ur_physical_mem_info_t, ur_physical_mem_properties_t};

/// A driver with physical memory.
pub trait HasPhysicalMemory: Beneath + Objects<PhysicalMem = PhysicalMem<Self>> {
    /// What mappings of it keep.
    type Physical: fmt::Debug + Send + Sync;
    /// Where the objects live.
    fn physical_mems() -> &'static Slab<PhysicalMem<Self>>;
    /// Those of this process that have a handle.
    fn names() -> &'static Names<Self>;
    /// What `bytes` of the device's physical memory are a multiple of.
    ///
    /// # Errors
    /// `UNSUPPORTED_FEATURE` for a device without; the driver's own.
    fn granularity(
        context: Borrowed<'_, Self::Context>,
        device: &Self::Device,
        bytes: usize,
    ) -> Result<usize>;
    /// `bytes` of it, that others can open where it `is_shareable`.
    ///
    /// # Errors
    /// `UNSUPPORTED_FEATURE`; the driver's own.
    fn create(
        context: Borrowed<'_, Self::Context>,
        device: &Self::Device,
        bytes: usize,
        is_shareable: bool,
    ) -> Result<Self::Physical>;
    /// How long it is.
    fn bytes(memory: &Self::Physical) -> usize;
    /// The descriptor that other processes can open it by.
    ///
    /// # Errors
    /// The driver's own.
    fn export(memory: &Self::Physical, device: &Self::Device) -> Result<Arc<OwnedFd>>;
}
/// Another process's physical memory.
#[derive(Debug)]
pub struct OpenedPhysical<D: HasPhysicalMemory>(pub Arc<D::Physical>);

/// What all handles of one memory have in common, in this process.
#[derive(Debug)]
pub struct Named<D: HasPhysicalMemory> {
    object: u64,
    exported: AtomicBool,
    memory: Arc<D::Physical>,
    /// Where it is another process's: the open of it, which ends with the last handle and mapping.
    _remote: Option<Remote<OpenedPhysical<D>>>,
    /// The process that has it, and with it the lease or the block: a forked child has neither.
    fork: u64,
}
impl<D: HasPhysicalMemory> Drop for Named<D> {
    /// The last handle went: exports of it end. The memory is the driver's to keep for whoever has it
    /// open: it is never used for anything else.
    fn drop(&mut self) {
        names::<D>().remove(&self.object);
        if self.exported.load(Relaxed) {
            ur_adapter::share::freed(self.object, Kind::PhysicalMemory);
        }
    }
}
/// Those that have a handle, by object.
pub type Names<D> = Mutex<HashMap<u64, Weak<Named<D>>>>;
fn names<D: HasPhysicalMemory>() -> MutexGuard<'static, HashMap<u64, Weak<Named<D>>>> {
    D::names().lock().unwrap_or_else(PoisonError::into_inner)
}

/// What `ur_physical_mem_handle_t` points at.
#[derive(Debug)]
pub struct PhysicalMem<D: HasPhysicalMemory> {
    context: Owned<D::Context>,
    device: Owned<D::Device>,
    named: Arc<Named<D>>,
    is_shareable: bool,
    is_opened: bool,
}

impl<D: HasPhysicalMemory> Body for PhysicalMem<D> {
    const TAG: Tag = Tag::new(D::BACKEND, ur_adapter::object::Kind::PhysicalMem);
    const INVALID: ErrorCode = ErrorCode::InvalidMemObject;
    fn slab() -> &'static Slab<Self> {
        D::physical_mems()
    }
}
impl<D: HasPhysicalMemory> PhysicalMem<D> {
    /// Made from another process's memory.
    ///
    /// # Errors
    /// `INVALID_CONTEXT`, `INVALID_DEVICE` for handles that were released meanwhile.
    pub fn opened(
        context: Borrowed<'_, D::Context>,
        device: Borrowed<'_, D::Device>,
        opened: Remote<OpenedPhysical<D>>,
    ) -> Result<Self> {
        let named = Self::name(Arc::clone(&opened.0), Some(opened));
        Self::over(context, device, named, true, true)
    }
    /// Another handle of the memory that is called `object`, if it has one.
    ///
    /// # Errors
    /// As for `opened`; `INVALID_VALUE` for memory that was released.
    pub fn again(
        context: Borrowed<'_, D::Context>,
        device: Borrowed<'_, D::Device>,
        object: u64,
    ) -> Result<Self> {
        let named = names::<D>().get(&object).and_then(Weak::upgrade);
        let released = || Error::new(ErrorCode::InvalidValue, "the physical memory was released");
        Self::over(context, device, named.ok_or_else(released)?, true, true)
    }
    fn name(memory: Arc<D::Physical>, _remote: Option<Remote<OpenedPhysical<D>>>) -> Arc<Named<D>> {
        let (object, exported) = (next_object(D::BACKEND), AtomicBool::new(false));
        let fork = ur_mapping::fork_count();
        let named = Arc::new(Named { object, exported, memory, _remote, fork });
        names().insert(object, Arc::downgrade(&named));
        named
    }
    fn over(
        context: Borrowed<'_, D::Context>,
        device: Borrowed<'_, D::Device>,
        named: Arc<Named<D>>,
        is_shareable: bool,
        is_opened: bool,
    ) -> Result<Self> {
        let (context, device) = (context.own()?, device.own()?);
        Ok(Self { context, device, named, is_shareable, is_opened })
    }
    /// The context it was made or opened in.
    pub fn context(&self) -> &Owned<D::Context> {
        &self.context
    }
    /// How large it is.
    pub fn bytes(&self) -> usize {
        D::bytes(&self.named.memory)
    }
    /// Its name among the objects of this process.
    pub fn object(&self) -> u64 {
        self.named.object
    }
    /// What mappings of it keep.
    pub fn memory(&self) -> &Arc<D::Physical> {
        &self.named.memory
    }
    /// The device whose memory it is, as C named it.
    pub fn device(&self) -> &Owned<D::Device> {
        &self.device
    }
    /// Made with `UR_PHYSICAL_MEM_FLAG_ENABLE_IPC`, or opened.
    pub fn is_shareable(&self) -> bool {
        self.is_shareable
    }
    /// Came from `urIPCOpenPhysMemHandleExp`.
    pub fn is_opened(&self) -> bool {
        self.is_opened
    }
    /// Whether this process may use the memory itself. What a forked child has of its parent's
    /// could be reused without it being asked.
    ///
    /// # Errors
    /// `UNINITIALIZED` in a forked child.
    pub fn check_fork(&self) -> Result<()> {
        physical::check_fork(self.named.fork)
    }
    /// The descriptor that others can open it by, of which it is told here that they may.
    ///
    /// # Errors
    /// The driver's own.
    pub fn expose(&self) -> Result<Arc<OwnedFd>> {
        self.named.exported.store(true, Relaxed);
        D::export(&self.named.memory, &self.device)
    }
}

impl<D: HasPhysicalMemory> PhysicalMemApi for OverDriver<D> {
    fn physical_mem_create(
        context: Borrowed<'_, D::Context>,
        device: Borrowed<'_, D::Device>,
        size: usize,
        properties: Option<&ur_physical_mem_properties_t>,
    ) -> Result<Owned<PhysicalMem<D>>> {
        D::check(&context, device)?;
        let granule = D::granularity(context, &device, size)?;
        if size == 0 || !size.is_multiple_of(granule) {
            let why = format!("{size} bytes are no multiple of the granularity, {granule}");
            return Err(Error::new(ErrorCode::InvalidSize, why));
        }
        deferred_free::sweep::<D::Memory>();
        let is_shareable = physical::is_shareable(properties);
        let create = || D::create(context, &device, size, is_shareable);
        let made = create().or_else(|error| match error.code() {
            ErrorCode::OutOfDeviceMemory => {
                D::make_room(context)?;
                create()
            }
            _ => Err(error),
        })?;
        let named = PhysicalMem::name(Arc::new(made), None);
        PhysicalMem::over(context, device, named, is_shareable, false).map(Owned::new)
    }
    fn physical_mem_get_info(
        memory: Borrowed<'_, PhysicalMem<D>>,
        name: ur_physical_mem_info_t,
        answer: &mut Answer<'_>,
    ) -> Result<()> {
        match name {
            ur_physical_mem_info_t::CONTEXT => answer.handle(&memory.context),
            ur_physical_mem_info_t::DEVICE => answer.handle(&memory.device),
            ur_physical_mem_info_t::SIZE => answer.value(&memory.bytes()),
            ur_physical_mem_info_t::PROPERTIES => {
                answer.value(&physical::properties(memory.is_shareable))
            }
            ur_physical_mem_info_t::REFERENCE_COUNT => answer.value(&memory.api_refs()),
            _ => Err(ErrorCode::UnsupportedEnumeration.into()),
        }
    }
}
