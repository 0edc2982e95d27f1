//! Memory and events of other processes. Who may have them, how they travel and when they end is `ur_ipc`'s; what memory
//! offers and what is kept of opens is the core's. Here is how memory is sent, and what is made of what arrives. Bytes of
//! others are hostile: `ur_ipc` has parsed the ticket and looked at the descriptor; that it is what we can map is for us
//! to see.
use super::{
    BACKEND, Example,
    device::{Context, Device, UUID},
    event::{Event, Origin},
    file::{Mapped, page},
    memory::{Allocation, Memory},
};
use std::{
    collections::HashMap,
    convert::Infallible,
    sync::{Arc, Mutex},
};
use ur_adapter::{
    error::{Error, ErrorCode, Result},
    object::{Borrowed, Owned},
    per_process::PerProcess,
    share::{EventFacts, Refusal, SharesEvents},
};
use ur_core::{
    memory::{
        allocation::{Home as Whose, Usm},
        allocations,
    },
    over_driver::share::{Desk, Home, Imported, Shares, Travels, contradiction, too_large},
};
use ur_ipc::{
    Access, Arrived, ArrivedPayload, ENVELOPE_LEN, Importer, Kind, Offer, Opened, Payload,
    arena::Slot, same_device,
};
use ur_lock::locked;

fn wrong(why: &'static str) -> Error {
    Error::new(ErrorCode::InvalidValue, why)
}

static DESK: Desk<Example> = Desk::new();
/// Another process's memory among the allocations of this one, as long as this lives.
#[derive(Debug)]
pub struct OpenedMemory(Arc<Allocation>);
impl Drop for OpenedMemory {
    fn drop(&mut self) {
        allocations::leave(&self.0);
    }
}
impl Imported<Example> for OpenedMemory {
    fn allocation(&self) -> &Allocation {
        &self.0
    }
}
impl Shares for Example {
    type Imported = OpenedMemory;
    fn desk() -> &'static Desk<Self> {
        &DESK
    }
    fn shares_memory(_: &Context) -> bool {
        true
    }
    fn shares_physical_memory(_: &Context) -> bool {
        false // there is none
    }
    fn export(found: &Allocation) -> Result<Travels> {
        let Some(Memory::Pooled(part)) = found.expose() else {
            return Err(wrong("memory that was opened is its exporter's to share"));
        };
        let chunk = part.block().chunk();
        let (fd, from) = chunk.file();
        let payload = Payload::Fd {
            fd: Arc::clone(fd),
            base: (from + part.block().offset()) as u64,
            exposes: ur_hal::Memory::range(chunk).bytes() as u64,
        };
        Ok((payload, UUID))
    }
    fn export_physical(_: &Device, memory: &Infallible, _: usize) -> Result<Travels> {
        match *memory {}
    }
    fn home(device: Borrowed<'_, Device>, its: [u8; 16]) -> Result<Home<Self>> {
        same_device(its, UUID)?;
        Ok(Home::of(device.own()?))
    }
    /// Maps the pages in which the object lies.
    fn import(
        _: Borrowed<'_, Context>,
        home: &Home<Self>,
        arrived: Arrived,
    ) -> Result<OpenedMemory> {
        let ArrivedPayload::Memory { memory, base } = arrived.payload else {
            return Err(contradiction("what arrived is no memory"));
        };
        if !memory.is_writable() || arrived.size == 0 {
            return Err(contradiction("its memory cannot be written"));
        }
        let base = usize::try_from(base).map_err(too_large)?;
        let bytes = usize::try_from(arrived.size).map_err(too_large)?;
        let within = base % page();
        let mapped = Mapped::map(Arc::clone(memory.fd()), base - within, within + bytes)?;
        let at = ur_hal::Memory::range(&mapped).start().offset(within)?;
        let whose = Whose { device: home.device.as_handle().addr(), ..Whose::default() };
        let opened = Memory::Opened(mapped, memory);
        Ok(OpenedMemory(Allocation::enter(at.into(), bytes, Usm::Device, whose, opened)))
    }
    fn import_physical(
        _: Borrowed<'_, Context>,
        _: &Home<Self>,
        _: Arrived,
    ) -> Result<Infallible, Refusal> {
        Ok(Error::unsupported("urIPCOpenPhysMemHandleExp")?)
    }
}

/// The events of this process that were offered to others, by their numbers.
static OFFERED: PerProcess<Mutex<HashMap<u64, Slot>>> = PerProcess::new();
static EVENTS: Importer<Slot> = Importer::of_any_backend(Kind::Event, BACKEND as u16);
/// The last handle of an event went.
pub fn forget(object: u64) {
    let slot = locked(OFFERED.get()).remove(&object);
    if slot.is_some() {
        ur_adapter::share::freed(object, Kind::Event);
    }
}
impl SharesEvents for Example {
    fn shares_events(_: &Context) -> bool {
        true
    }
    fn event_facts(event: &Event) -> EventFacts {
        let slot = event.slot();
        EventFacts {
            is_supported: true,
            is_shareable: slot.is_some(),
            is_opened: slot.is_some_and(|(_, origin)| !matches!(origin, Origin::Made(_))),
            has_profiling: false,
        }
    }
    fn offer_event(event: Borrowed<'_, Event>) -> Result<Offer> {
        let Some((slot, Origin::Made(object))) = event.slot() else {
            let why = "only an event made here with IPC_EXP can be offered to others";
            return Err(Error::new(ErrorCode::InvalidEvent, why));
        };
        locked(OFFERED.get()).insert(*object, slot.clone());
        Ok(Offer {
            kind: Kind::Event,
            backend: BACKEND as u16,
            device: UUID,
            object: *object,
            offset: 0,
            length: 0,
            size: 0,
            payload: Payload::Event(slot.clone()),
            access: Access::SameUser,
        })
    }
    fn open_event(
        context: Borrowed<'_, Context>,
        ticket: &[u8; ENVELOPE_LEN],
    ) -> Result<Owned<Event>> {
        let import = |arrived: Arrived, (): &()| match arrived.payload {
            ArrivedPayload::Event(slot) => Ok(slot),
            _ => Err(wrong("the exporter sent something that is no event")),
        };
        let (opened, ()) = EVENTS.open(ticket, |_| Ok(()), import)?;
        let (slot, origin) = match opened {
            Opened::Local { object, .. } => {
                let slot = locked(OFFERED.get()).get(&object).cloned();
                (slot.ok_or_else(|| wrong("the event was released"))?, Origin::OpenedHere)
            }
            Opened::Remote(loan) => (Slot::clone(&loan), Origin::Opened(loan)),
        };
        Ok(Event::shared(context.own()?, slot, origin))
    }
}
