//! Sharing with other processes: memory where devices reach the system's, so that a mapping is all that it takes; events
//! everywhere, as words of the arena. What is made of a descriptor that arrives is `ur_system::opened`'s.
use super::{
    Context, Device, Event, OpenCl,
    event::Origin,
    memory::{Allocation, OpenedMemory, exposed},
    native::memory::Reach,
};
use std::{collections::HashMap, sync::Mutex};
use ur_adapter::{
    error::{Error, ErrorCode, Result},
    object::{Backend, Borrowed, Owned},
    per_process::PerProcess,
    share::{EventFacts, Refusal},
};
use ur_core::event::SharesEvents;
use ur_core::over_driver::share::{Desk, Home, Imported, Shares, Travels};
use ur_ipc::{
    Access, Arrived, ArrivedPayload, ENVELOPE_LEN, Importer, Kind, Offer, Opened, Payload,
    arena::Slot, same_device,
};
use ur_lock::locked;
use ur_system::{
    backing::Behind,
    host::uuid,
    opened::{Mapped, Physical, payload},
};

static DESK: Desk<OpenCl> = Desk::new();

impl Imported<OpenCl> for OpenedMemory {
    fn allocation(&self) -> &Allocation {
        self.allocation()
    }
}
fn travels(behind: Option<Behind>) -> Result<Travels> {
    let none = || {
        let why = "this memory is the driver's or another process's: only device USM of a device that \
                   reaches the system's memory is shared";
        Error::new(ErrorCode::InvalidValue, why)
    };
    Ok((payload(&behind.ok_or_else(none)?), uuid()?))
}
fn is_system(context: &Context) -> bool {
    context.driver().reach() == Reach::System
}
impl Shares for OpenCl {
    type Imported = OpenedMemory;
    const IS_SYSTEMS: bool = true;
    fn desk() -> &'static Desk<Self> {
        &DESK
    }
    fn shares_memory(context: &Context) -> bool {
        is_system(context)
    }
    fn shares_physical_memory(context: &Context) -> bool {
        is_system(context)
    }
    fn export(found: &Allocation) -> Result<Travels> {
        travels(exposed(found))
    }
    fn export_physical(_: &Device, memory: &Physical, _: usize) -> Result<Travels> {
        travels(Some(memory.behind()?))
    }
    fn home(device: Borrowed<'_, Device>, its: [u8; 16]) -> Result<Home<Self>> {
        same_device(its, uuid()?)?;
        Ok(Home::of(device.own()?))
    }
    fn import(
        _: Borrowed<'_, Context>,
        home: &Home<Self>,
        arrived: Arrived,
    ) -> Result<OpenedMemory> {
        let (mapped, within, bytes) = Mapped::of(arrived)?;
        OpenedMemory::new(mapped, within, bytes, home.device.as_handle().addr())
    }
    fn import_physical(
        _: Borrowed<'_, Context>,
        _: &Home<Self>,
        arrived: Arrived,
    ) -> Result<Physical, Refusal> {
        Ok(Physical::of(arrived)?)
    }
}

/// The events of this process that were offered to others, by their numbers.
static OFFERED: PerProcess<Mutex<HashMap<u64, Slot>>> = PerProcess::new();
static EVENTS: Importer<Slot> = Importer::of_any_backend(Kind::Event, Backend::OpenCl as u16);
/// The last handle of an event went.
pub(super) fn forget(object: u64) {
    if locked(OFFERED.get()).remove(&object).is_some() {
        ur_adapter::share::freed(object, Kind::Event);
    }
}
impl SharesEvents for OpenCl {
    fn shares_events(_: &Context) -> bool {
        true
    }
    fn event_facts(event: &Event) -> EventFacts {
        let slot = event.slot();
        EventFacts {
            is_supported: true,
            is_shareable: slot.is_some(),
            is_opened: slot.is_some_and(|(_, origin)| !matches!(origin, Origin::Made(_))),
            has_profiling: event.is_timed(),
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
            backend: Backend::OpenCl as u16,
            device: uuid()?,
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
        let wrong = |why: &'static str| Error::new(ErrorCode::InvalidValue, why);
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
