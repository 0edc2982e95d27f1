//! Physical memory: memory of a device that has no address until `virtual_mem.rs` maps it. Objects that were made here
//! and objects that were opened differ only in where their memory comes from.
use super::{
    OverDriver,
    usm_pool::{HasUsm, make_room},
};
use crate::memory::{
    deferred_free,
    objects::next_object,
    physical,
    reservations::{Reservations, whole},
};
use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, Weak,
        atomic::{AtomicBool, Ordering::*},
    },
};
use ur_adapter::{
    api::{Objects, PhysicalMemApi},
    error::{Error, ErrorCode, Result},
    info::Answer,
    object::{Borrowed, Owned},
};
use ur_hal::Types;
use ur_ipc::{Kind, Remote};
use ur_sys::{ur_physical_mem_info_t, ur_physical_mem_properties_t};

/// A driver with virtual memory.
pub trait HasPhysicalMemory: HasUsm + Objects<PhysicalMem = PhysicalMem<Self>> {}
impl<D: HasUsm + Objects<PhysicalMem = PhysicalMem<D>>> HasPhysicalMemory for D {}
/// The addresses that this process has reserved.
pub fn reserved<D: HasPhysicalMemory>() -> &'static Reserved<D> {
    D::statics().of_process()
}
type Context<D> = <D as Objects>::Context;
type Device<D> = <D as Objects>::Device;
/// Physical memory imported from another process.
#[derive(Debug)]
pub struct OpenedPhysical<D: HasPhysicalMemory>(pub D::Physical);

/// The memory itself. Mappings keep it alive after all handles are released.
#[derive(Debug)]
pub enum Backing<D: HasPhysicalMemory> {
    /// Memory of this process.
    Made(D::Physical),
    /// Memory of another process, open until the last handle and the last mapping are gone.
    Opened(Remote<OpenedPhysical<D>>),
}
impl<D: HasPhysicalMemory> Backing<D> {
    /// The driver's object.
    pub fn memory(&self) -> &D::Physical {
        match self {
            Self::Made(memory) => memory,
            Self::Opened(opened) => &opened.0,
        }
    }
}

/// What all handles of one physical memory in this process share.
#[derive(Debug)]
pub struct Named<D: HasPhysicalMemory> {
    object: u64,
    bytes: usize,
    exported: AtomicBool,
    backing: Arc<Backing<D>>,
    /// The number of forks before it was made. A forked child has neither its lease nor its memory.
    fork: u64,
}
impl<D: HasPhysicalMemory> Drop for Named<D> {
    /// The last handle is released, which ends its exports.
    fn drop(&mut self) {
        names::<D>().remove(&self.object);
        if self.exported.load(Relaxed) {
            ur_adapter::share::freed(self.object, Kind::PhysicalMemory);
            if D::REUSES_PHYSICAL {
                // Also for imported memory: while our own exports of it have importers, we keep its lease.
                let kept = Arc::clone(&self.backing);
                deferred_free::when_unleased::<D::Memory>(self.object, Kind::PhysicalMemory, kept);
            }
        }
    }
}
/// The physical memories of this process that have a handle, by object number.
type Names<D> = Mutex<HashMap<u64, Weak<Named<D>>>>;
/// Reserved addresses, and the memory that their mappings keep alive.
pub type Reserved<D> = Reservations<<D as Types>::Reservation, Arc<Backing<D>>>;
fn names<D: HasPhysicalMemory>() -> MutexGuard<'static, HashMap<u64, Weak<Named<D>>>> {
    ur_lock::locked(D::statics().of_process::<Names<D>>())
}

/// What `ur_physical_mem_handle_t` points at.
#[derive(Debug)]
pub struct PhysicalMem<D: HasPhysicalMemory> {
    context: Owned<Context<D>>,
    device: Owned<Device<D>>,
    named: Arc<Named<D>>,
    is_shareable: bool,
    is_opened: bool,
}

body!(PhysicalMem: HasPhysicalMemory, PhysicalMem, InvalidMemObject);
impl<D: HasPhysicalMemory> PhysicalMem<D> {
    /// A handle for memory imported from another process.
    ///
    /// # Errors
    /// `INVALID_CONTEXT`, `INVALID_DEVICE` for handles that have been released meanwhile; `INVALID_VALUE` for a size
    /// that does not fit `usize`.
    pub fn opened(
        context: Borrowed<'_, Context<D>>,
        device: Borrowed<'_, Device<D>>,
        opened: Remote<OpenedPhysical<D>>,
    ) -> Result<Self> {
        let too_large = |_| {
            let why = "the physical memory is larger than this process's address space";
            Error::new(ErrorCode::InvalidValue, why)
        };
        let bytes = usize::try_from(opened.size()).map_err(too_large)?;
        let named = Self::name(bytes, Backing::Opened(opened));
        Self::over(context, device, named, true, true)
    }
    /// Another handle for the memory with the number `object`.
    ///
    /// # Errors
    /// As for `opened`; `INVALID_VALUE` if all handles of the memory have been released.
    pub fn again(
        context: Borrowed<'_, Context<D>>,
        device: Borrowed<'_, Device<D>>,
        object: u64,
    ) -> Result<Self> {
        let named = names::<D>().get(&object).and_then(Weak::upgrade);
        let released = || Error::new(ErrorCode::InvalidValue, "the physical memory was released");
        Self::over(context, device, named.ok_or_else(released)?, true, true)
    }
    fn name(bytes: usize, backing: Backing<D>) -> Arc<Named<D>> {
        let (object, exported) = (next_object(D::BACKEND), AtomicBool::new(false));
        let (backing, fork) = (Arc::new(backing), ur_mapping::fork_count());
        let named = Arc::new(Named { object, bytes, exported, backing, fork });
        names().insert(object, Arc::downgrade(&named));
        named
    }
    fn over(
        context: Borrowed<'_, Context<D>>,
        device: Borrowed<'_, Device<D>>,
        named: Arc<Named<D>>,
        is_shareable: bool,
        is_opened: bool,
    ) -> Result<Self> {
        let (context, device) = (context.own()?, device.own()?);
        Ok(Self { context, device, named, is_shareable, is_opened })
    }
    /// The context in which it was made or opened.
    pub fn context(&self) -> &Owned<Context<D>> {
        &self.context
    }
    /// Its size in bytes.
    pub fn bytes(&self) -> usize {
        self.named.bytes
    }
    /// Its number among the objects of this process.
    pub fn object(&self) -> u64 {
        self.named.object
    }
    /// The memory, which mappings keep alive.
    pub fn backing(&self) -> &Arc<Backing<D>> {
        &self.named.backing
    }
    /// The device that the caller passed when it was made or opened.
    pub fn device(&self) -> &Owned<Device<D>> {
        &self.device
    }
    /// Whether it was made with `UR_PHYSICAL_MEM_FLAG_ENABLE_IPC`, or opened.
    pub fn is_shareable(&self) -> bool {
        self.is_shareable
    }
    /// Whether it was opened by `urIPCOpenPhysMemHandleExp`.
    pub fn is_opened(&self) -> bool {
        self.is_opened
    }
    /// Checks that the memory belongs to this process. The parent of a forked child may reuse its memory without the
    /// child knowing.
    ///
    /// # Errors
    /// `UNINITIALIZED` in a forked child.
    pub fn check_fork(&self) -> Result<()> {
        physical::check_fork(self.named.fork)
    }
    /// Marks it as exported, so that its release is announced to importers, and returns the driver's object.
    pub fn expose(&self) -> &D::Physical {
        self.named.exported.store(true, Relaxed);
        self.named.backing.memory()
    }
}

impl<D: HasPhysicalMemory> PhysicalMemApi for OverDriver<D> {
    fn physical_mem_create(
        context: Borrowed<'_, Context<D>>,
        device: Borrowed<'_, Device<D>>,
        size: usize,
        properties: Option<&ur_physical_mem_properties_t>,
    ) -> Result<Owned<PhysicalMem<D>>> {
        context.check(device)?;
        let owned = device.own()?;
        let native = context.driver();
        whole(size, D::granularity(native, owned.driver(), size.max(1))?.minimum)?;
        deferred_free::sweep::<D::Memory>();
        let is_shareable = physical::is_shareable(properties);
        let create = || Ok(D::physical(native, owned.driver(), size, is_shareable)?);
        let made = create().or_else(|error: Error| match error.code() {
            ErrorCode::OutOfDeviceMemory => {
                make_room::<D>(context)?;
                create()
            }
            _ => Err(error),
        })?;
        let named = PhysicalMem::name(size, Backing::Made(made));
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
