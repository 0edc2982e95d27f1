//! Physical memory: memory without an address until `virtual_mem.rs` maps it. Objects that were
//! made here and such as were opened differ in where their memory is from, and in nothing else.
use super::{
    Context, Cpu, Device,
    backing::{Behind, Block},
    mapping::{Side, page},
    memory::Memory,
    share::OpenedPhysical,
};
use crate::{
    memory::{deferred_free, physical},
    over_driver::next_object,
};
use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicBool, Ordering::*},
    },
};
use ur_adapter::{
    api::PhysicalMemApi,
    error::{Error, ErrorCode, Result},
    info::Answer,
    object::{Backend, Borrowed, Owned},
    per_process::PerProcess,
};
use ur_ipc::{Kind, Remote};
use ur_sys::{ur_physical_mem_info_t, ur_physical_mem_properties_t};

/// Where the bytes are. Mappings keep it, whatever becomes of the objects.
#[derive(Debug)]
pub enum Backing {
    /// Memory of this process's.
    Made(Block),
    /// Memory of another's.
    Opened(Remote<OpenedPhysical>),
}
impl Backing {
    /// The descriptor to map, and where in it the memory starts.
    pub fn behind(&self) -> Option<Behind> {
        match self {
            Self::Made(block) => block.behind(),
            Self::Opened(opened) => Some(opened.0.clone()),
        }
    }
}

/// What all handles of one memory have in common, in this process.
#[derive(Debug)]
struct Named {
    object: u64,
    bytes: usize,
    exported: AtomicBool,
    backing: Arc<Backing>,
    /// The process that has it, and with it the lease or the block: a forked child has neither.
    fork: u64,
}
impl Drop for Named {
    /// The last handle went: exports of it end.
    fn drop(&mut self) {
        names().remove(&self.object);
        if self.exported.load(Relaxed) {
            ur_adapter::share::freed(self.object, Kind::PhysicalMemory);
            // Also where the memory is another's: while ours has importers, we have its lease.
            let (object, kept) = (self.object, Arc::clone(&self.backing));
            deferred_free::when_unleased::<Memory>(object, Kind::PhysicalMemory, kept);
        }
    }
}
/// Those that have a handle, by object.
type Names = Mutex<HashMap<u64, Weak<Named>>>;
static NAMES: PerProcess<Names> = PerProcess::new();
fn names() -> MutexGuard<'static, HashMap<u64, Weak<Named>>> {
    NAMES.get().lock().unwrap_or_else(PoisonError::into_inner)
}

/// What `ur_physical_mem_handle_t` points at.
#[derive(Debug)]
pub struct PhysicalMem {
    context: Owned<Context>,
    device: Owned<Device>,
    named: Arc<Named>,
    is_shareable: bool,
    is_opened: bool,
}

impl PhysicalMem {
    /// Made from another process's memory, `bytes` of it.
    ///
    /// # Errors
    /// `INVALID_CONTEXT`, `INVALID_DEVICE` for handles that were released meanwhile.
    pub fn opened(
        context: Borrowed<'_, Context>,
        device: Borrowed<'_, Device>,
        opened: Remote<OpenedPhysical>,
        bytes: usize,
    ) -> Result<Self> {
        let named = Self::name(bytes, Backing::Opened(opened));
        Self::over(context, device, named, true, true)
    }
    /// Another handle of the memory that is called `object`, if it has one.
    ///
    /// # Errors
    /// As for `opened`; `INVALID_VALUE` for memory that was released.
    pub fn again(
        context: Borrowed<'_, Context>,
        device: Borrowed<'_, Device>,
        object: u64,
    ) -> Result<Self> {
        let named = names().get(&object).and_then(Weak::upgrade);
        let released = || Error::new(ErrorCode::InvalidValue, "the physical memory was released");
        Self::over(context, device, named.ok_or_else(released)?, true, true)
    }
    fn name(bytes: usize, backing: Backing) -> Arc<Named> {
        let (object, exported) = (next_object(Backend::Cpu), AtomicBool::new(false));
        let (backing, fork) = (Arc::new(backing), ur_mapping::fork_count());
        let named = Arc::new(Named { object, bytes, exported, backing, fork });
        names().insert(object, Arc::downgrade(&named));
        named
    }
    fn over(
        context: Borrowed<'_, Context>,
        device: Borrowed<'_, Device>,
        named: Arc<Named>,
        is_shareable: bool,
        is_opened: bool,
    ) -> Result<Self> {
        let (context, device) = (context.own()?, device.own()?);
        Ok(Self { context, device, named, is_shareable, is_opened })
    }
    /// The context it was made or opened in.
    pub fn context(&self) -> &Owned<Context> {
        &self.context
    }
    /// How large it is.
    pub fn bytes(&self) -> usize {
        self.named.bytes
    }
    /// Its name among the objects of this process.
    pub fn object(&self) -> u64 {
        self.named.object
    }
    /// What mappings of it keep.
    pub fn backing(&self) -> &Arc<Backing> {
        &self.named.backing
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
    pub fn expose(&self) -> Option<Behind> {
        self.named.exported.store(true, Relaxed);
        self.named.backing.behind()
    }
}

impl PhysicalMemApi for Cpu {
    fn physical_mem_create(
        context: Borrowed<'_, Context>,
        device: Borrowed<'_, Device>,
        size: usize,
        properties: Option<&ur_physical_mem_properties_t>,
    ) -> Result<Owned<PhysicalMem>> {
        context.check(device)?;
        if size == 0 || !size.is_multiple_of(page()) {
            let why = format!("{size} bytes are no multiple of the granularity, {}", page());
            return Err(Error::new(ErrorCode::InvalidSize, why));
        }
        deferred_free::sweep::<Memory>();
        let named =
            PhysicalMem::name(size, Backing::Made(Block::take(Side::Device, size, page())?));
        let is_shareable = physical::is_shareable(properties);
        PhysicalMem::over(context, device, named, is_shareable, false).map(Owned::new)
    }
    fn physical_mem_get_info(
        memory: Borrowed<'_, PhysicalMem>,
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
