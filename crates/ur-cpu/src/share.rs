//! Sharing the CPU's memory with other processes: what an address or an object offers, and what
//! is made of a descriptor that arrives. Who may have it, and the entries themselves, are
//! `ur_ipc`'s and `ur_adapter::share`'s; events share themselves in `event.rs`.
use super::{
    Context, Cpu, Device,
    backing::Behind,
    host::uuid,
    mapping::{Mapping, Memfd, POPULATE_FROM, page},
    memory::{Allocation, Mapped, OpenedMemory, exposed},
    virtual_mem::Physical,
};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, Weak},
};
use ur_adapter::{
    error::{Error, ErrorCode, Result},
    object::Borrowed,
    per_process::PerProcess,
    share::Refusal,
};
use ur_core::over_driver::share::{
    Desk, Home, Imported, Shares, Travels, contradiction, too_large,
};
use ur_ipc::{Arrived, ArrivedPayload, Payload, SharedMemory, same_device};
use ur_lock::locked;

static DESK: Desk<Cpu> = Desk::new();

/// What arrived, where in it the object is, and how large that is.
fn received(arrived: Arrived) -> Result<(Arc<SharedMemory>, Behind, usize)> {
    let ArrivedPayload::Memory { memory, base } = arrived.payload else {
        return Err(contradiction("what arrived is no memory"));
    };
    let memfd = Memfd::adopt(&memory)?;
    let base = usize::try_from(base).map_err(too_large)?;
    let bytes = usize::try_from(arrived.size).map_err(too_large)?;
    if bytes == 0 {
        return Err(contradiction("it has no bytes"));
    }
    Ok((memory, Behind { memfd, base }, bytes))
}

impl Imported<Cpu> for OpenedMemory {
    fn allocation(&self) -> &Allocation {
        self.allocation()
    }
}
/// How others open what is behind a descriptor.
fn travels(behind: &Behind) -> Result<Travels> {
    let (fd, base, exposes) = behind.payload();
    Ok((Payload::Fd { fd, base, exposes }, uuid()?))
}
impl Shares for Cpu {
    type Imported = OpenedMemory;
    fn desk() -> &'static Desk<Self> {
        &DESK
    }
    fn shares_memory(_: &Context) -> bool {
        true
    }
    fn shares_physical_memory(_: &Context) -> bool {
        true
    }
    fn export(found: &Allocation) -> Result<Travels> {
        let no_descriptor = "this device memory has no descriptor to share it by";
        let behind =
            exposed(found).ok_or_else(|| Error::new(ErrorCode::InvalidValue, no_descriptor))?;
        travels(&behind)
    }
    fn export_physical(_: &Device, memory: &Physical, _: usize) -> Result<Travels> {
        travels(&memory.behind()?)
    }
    fn home(device: Borrowed<'_, Device>, its: [u8; 16]) -> Result<Home<Self>> {
        same_device(its, uuid()?)?;
        Ok(Home::of(device.own()?))
    }
    /// All that is said to be accessible is the object itself. Large ones have a mapping of their own, of their pages
    /// alone.
    fn import(
        _: Borrowed<'_, Context>,
        home: &Home<Self>,
        arrived: Arrived,
    ) -> Result<OpenedMemory> {
        let device = home.device.as_handle().addr();
        let (memory, behind, bytes) = received(arrived)?;
        let Behind { memfd, base } = behind;
        if memory.is_pooled() && bytes < POPULATE_FROM && memfd.bytes() <= WHOLE {
            let whole = Mapped::Whole(Whole::of(memory, &memfd)?);
            return OpenedMemory::new(whole, base, bytes, device);
        }
        let within = base % page();
        let mapping = Mapping::opened(&memfd, base - within, within + bytes, true)?;
        OpenedMemory::new(Mapped::Alone(mapping), within, bytes, device)
    }
    fn import_physical(
        _: Borrowed<'_, Context>,
        _: &Home<Self>,
        arrived: Arrived,
    ) -> Result<Physical, Refusal> {
        let (_, behind, bytes) = received(arrived)?;
        match behind.base.is_multiple_of(page()) && bytes.is_multiple_of(page()) {
            true => Ok(Physical::Opened(behind)),
            false => Err(contradiction("physical memory consists of whole pages").into()),
        }
    }
}

/// Memory that has many objects, mapped once for all of them that are open. Its descriptor is kept as long, so that the
/// exporter need not send it for each.
#[derive(Debug)]
pub struct Whole {
    mapping: Mapping,
    _memory: Arc<SharedMemory>,
}
impl Whole {
    /// The mapping that there is, or a new one.
    fn of(memory: Arc<SharedMemory>, memfd: &Memfd) -> Result<Arc<Self>> {
        static ALL: PerProcess<Mutex<HashMap<u64, Weak<Whole>>>> = PerProcess::new();
        let mut all = locked(ALL.get());
        if let Some(whole) = all.get(&memory.id()).and_then(Weak::upgrade) {
            return Ok(whole);
        }
        let mapping = Mapping::opened(memfd, 0, memfd.bytes(), false)?;
        let id = memory.id();
        let whole = Arc::new(Self { mapping, _memory: memory });
        all.retain(|_, whole| whole.strong_count() > 0);
        all.insert(id, Arc::downgrade(&whole));
        Ok(whole)
    }
    pub fn mapping(&self) -> &Mapping {
        &self.mapping
    }
}
/// The most memory that is mapped for objects of which it has many: as much as an exporter of this adapter has in one.
const WHOLE: usize = 64 << 20;
