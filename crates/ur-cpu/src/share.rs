//! Sharing the CPU's memory with other processes: what an address or an object offers, and what
//! is made of a descriptor that arrives. Who may have it, and the entries themselves, are
//! `ur_ipc`'s and `ur_adapter::share`'s; events share themselves in `event.rs`.
use super::{
    Context, Cpu, Device,
    backing::Behind,
    engine::all_queues_ticket,
    host::uuid,
    mapping::{Mapping, Memfd, POPULATE_FROM, page},
    memory::{Allocation, Hold, Mapped, Memory, OpenedMemory, exposed},
    virtual_mem::{Physical, PhysicalMem},
};
use std::{
    collections::HashMap,
    ptr,
    sync::{Arc, Mutex, Weak},
};
use ur_adapter::{
    error::{Error, ErrorCode, Result},
    memory::UsmPtr,
    object::{Backend, Borrowed, Owned},
    per_process::PerProcess,
    share::{Located, Opens, Refusal, SharesMemory, SharesPhysicalMemory},
};
use ur_core::{
    memory::{allocation::Usm, deferred_free},
    over_driver::physical_mem::OpenedPhysical,
};
use ur_ipc::{
    Access, Arrived, ArrivedPayload, ENVELOPE_LEN, Importer, Kind, Offer, Opened, Payload, Remote,
    SharedMemory, locked, same_device,
};

/// One open of device memory.
#[derive(Debug)]
#[expect(dead_code, reason = "held to be dropped")]
pub enum Open {
    /// Of this process's own.
    Local(Hold),
    /// Of another's.
    Remote(Remote<OpenedMemory>),
}

static MEMORY: Importer<OpenedMemory> = Importer::new(Kind::Memory, Backend::Cpu as u16);
static PHYSICAL_MEMORY: Importer<OpenedPhysical<Cpu>> =
    Importer::new(Kind::PhysicalMemory, Backend::Cpu as u16);
static OPENS: Opens<Open> = Opens::new();

fn contradiction(what: &str) -> Error {
    Error::new(ErrorCode::InvalidValue, format!("the ticket contradicts its exporter: {what}"))
}
/// What arrived, where in it the object is, and how large that is.
fn received(arrived: Arrived) -> Result<(Arc<SharedMemory>, Behind, usize)> {
    let ArrivedPayload::Memory { memory, base } = arrived.payload else {
        return Err(contradiction("what arrived is no memory"));
    };
    let memfd = Memfd::adopt(&memory)?;
    let too_large = |_| contradiction("it is larger than this process's addresses");
    let base = usize::try_from(base).map_err(too_large)?;
    let bytes = usize::try_from(arrived.size).map_err(too_large)?;
    if bytes == 0 {
        return Err(contradiction("it has no bytes"));
    }
    Ok((memory, Behind { memfd, base }, bytes))
}

fn offer(
    kind: Kind,
    object: u64,
    range: (usize, usize),
    size: usize,
    behind: &Behind,
) -> Result<Offer> {
    let (fd, base, exposes) = behind.payload();
    Ok(Offer {
        kind,
        backend: Backend::Cpu as u16,
        device: uuid()?,
        object,
        offset: range.0 as u64,
        length: range.1 as u64,
        size: size as u64,
        payload: Payload::Fd { fd, base, exposes },
        access: Access::SameUser,
    })
}

impl SharesMemory for Cpu {
    fn shares_memory(_context: &Context) -> bool {
        true
    }
    fn locate(context: Borrowed<'_, Context>, at: UsmPtr) -> Result<Located<Offer>> {
        let Some(found) = Allocation::find(at) else { return Ok(Located::Nobodys) };
        match found.usm() {
            _ if found.is_opened() => return Ok(Located::Opened),
            _ if found.is_freed() => return Ok(Located::Freed),
            _ if !found.is_of(context.as_handle().addr()) => return Ok(Located::OtherContext),
            Usm::Host => return Ok(Located::Host),
            Usm::Shared => return Ok(Located::Shared),
            Usm::Device => {}
        }
        let no_descriptor = "this device memory has no descriptor to share it by";
        let behind =
            exposed(&found).ok_or_else(|| Error::new(ErrorCode::InvalidValue, no_descriptor))?;
        let length = found.bytes_from(at);
        let range = (found.bytes() - length, length);
        Ok(Located::Device(offer(Kind::Memory, found.object(), range, found.bytes(), &behind)?))
    }
    fn is_allocated(object: u64) -> bool {
        Allocation::is_live(object)
    }
    fn open_memory(
        context: Borrowed<'_, Context>,
        device: Borrowed<'_, Device>,
        ticket: &[u8; ENVELOPE_LEN],
    ) -> Result<UsmPtr> {
        context.check(device)?;
        let import = |arrived, (): &()| map(arrived, ptr::from_ref(&*device).addr());
        let (opened, ()) = MEMORY.open(ticket, is_this_device, import)?;
        let (open, base, bytes, offset) = match opened {
            Opened::Local { object, offset, .. } => {
                let freed = || Error::new(ErrorCode::InvalidValue, "the memory was freed");
                let hold = Hold::of(object).ok_or_else(freed)?;
                let (base, bytes) = (hold.allocation().base(), hold.allocation().bytes());
                (Open::Local(hold), base, bytes, offset)
            }
            Opened::Remote(remote) => {
                let (base, bytes) = (remote.allocation().base(), remote.allocation().bytes());
                let offset = remote.offset();
                (Open::Remote(remote), base, bytes, offset)
            }
        };
        let inside = usize::try_from(offset).ok().filter(|&offset| offset < bytes);
        let at =
            base.offset(inside.ok_or_else(|| contradiction("the range leaves its object"))?)?;
        OPENS.add(at, open);
        Ok(at)
    }
    fn close_memory(context: Borrowed<'_, Context>, at: UsmPtr) -> Result<()> {
        let before = all_queues_ticket(context.as_handle().addr()).into_moments();
        deferred_free::after::<Memory>(before, OPENS.take(at)?);
        Ok(())
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

/// Maps the object. All that is said to be accessible is the object itself. Large ones have a mapping of their own, of
/// their pages alone.
fn map(arrived: Arrived, device: usize) -> Result<OpenedMemory> {
    deferred_free::sweep::<Memory>();
    let (memory, behind, bytes) = received(arrived)?;
    let Behind { memfd, base } = behind;
    if memory.is_pooled() && bytes < POPULATE_FROM && memfd.bytes() <= WHOLE {
        return OpenedMemory::new(Mapped::Whole(Whole::of(memory, &memfd)?), base, bytes, device);
    }
    let within = base % page();
    let mapping = Mapping::opened(&memfd, base - within, within + bytes, true)?;
    OpenedMemory::new(Mapped::Alone(mapping), within, bytes, device)
}
fn is_this_device<E: From<Error> + From<ur_ipc::Error>>(device: [u8; 16]) -> Result<(), E> {
    Ok(same_device(device, uuid()?)?)
}

impl SharesPhysicalMemory for Cpu {
    fn shares_physical_memory(_context: &Context) -> bool {
        true
    }
    fn is_shareable(memory: &PhysicalMem) -> bool {
        memory.is_shareable()
    }
    fn is_opened(memory: &PhysicalMem) -> bool {
        memory.is_opened()
    }
    fn offer_physical_memory(memory: Borrowed<'_, PhysicalMem>) -> Result<Offer> {
        memory.check_fork()?;
        let (behind, bytes) = (memory.expose().behind()?, memory.bytes());
        offer(Kind::PhysicalMemory, memory.object(), (0, bytes), bytes, &behind)
    }
    fn open_physical_memory(
        context: Borrowed<'_, Context>,
        device: Borrowed<'_, Device>,
        ticket: &[u8; ENVELOPE_LEN],
    ) -> Result<Owned<PhysicalMem>, Refusal> {
        context.check(device)?;
        let import = |arrived, (): &()| -> Result<OpenedPhysical<Cpu>, Refusal> {
            let (_, behind, bytes) = received(arrived)?;
            match behind.base.is_multiple_of(page()) && bytes.is_multiple_of(page()) {
                true => Ok(OpenedPhysical(Physical::Opened(behind))),
                false => Err(contradiction("physical memory consists of whole pages").into()),
            }
        };
        let (opened, ()) = PHYSICAL_MEMORY.open(ticket, is_this_device, import)?;
        let opened = match opened {
            Opened::Local { object, .. } => PhysicalMem::again(context, device, object)?,
            Opened::Remote(remote) => PhysicalMem::opened(context, device, remote)?,
        };
        Ok(Owned::new(opened))
    }
}
