//! Events that processes share: their export and import. `ur_ipc` decides who may open one; the entries are in
//! `ur_adapter::share`.
use super::{Event, SharedPart};
use crate::{
    over_driver::OverDriver,
    profiling::Profile,
    queue::{Context, HasStreams, Origin, Shareable, SharedEvents, State},
};
use std::sync::{Arc, atomic::Ordering::Release};
use ur_adapter::{
    error::{Error, ErrorCode, Result},
    object::{Borrowed, Owned},
    share::{EventFacts, SharesEvents},
};
use ur_hal::EventSharing;
use ur_ipc::{
    Access, Arrived, ArrivedPayload, ENVELOPE_LEN, Kind, Offer, Opened, Payload, arena::Slot,
};

impl<D: HasStreams> SharesEvents for OverDriver<D> {
    fn shares_events(context: &Context<D>) -> bool {
        context.driver_devices().iter().all(|one| D::event_sharing(one) != EventSharing::None)
    }
    fn event_facts(event: &Event<D>) -> EventFacts {
        let origin = match &event.state {
            State::Shared(shared) => Some(&shared.origin),
            _ => None,
        };
        EventFacts {
            is_supported: Self::shares_events(event.context()),
            is_shareable: origin.is_some_and(|origin| !matches!(origin, Origin::Private)),
            is_opened: matches!(origin, Some(Origin::OpenedHere | Origin::Opened { .. })),
            has_profiling: event.profile == Profile::Instant,
        }
    }
    fn offer_event(event: Borrowed<'_, Event<D>>) -> Result<Offer> {
        let State::Shared(shared) = &event.state else { return Err(no_offer()) };
        let Origin::Made { object, device } = &shared.origin else { return Err(no_offer()) };
        let payload = match &shared.what {
            Shareable::Word(slot) => Payload::Event(slot.clone()),
            Shareable::Point(point) => D::export_point(point)?,
        };
        let size = match &payload {
            Payload::Driver { exposes, .. } => *exposes,
            _ => 0,
        };
        let device = D::uuid(device.driver())?;
        let old = SharedEvents::<D>::get().offered().insert(*object, shared.what.clone());
        // After the insertion: `SharedPart::drop` reads the flag, and must then find the entry.
        shared.was_offered.store(true, Release);
        drop(old);
        Ok(Offer {
            kind: Kind::Event,
            backend: D::BACKEND as u16,
            device,
            object: *object,
            offset: 0,
            length: 0,
            size,
            payload,
            access: Access::SameUser,
        })
    }
    fn open_event(
        context: Borrowed<'_, Context<D>>,
        ticket: &[u8; ENVELOPE_LEN],
    ) -> Result<Owned<Event<D>>> {
        let context = context.own()?;
        let (shared_events, device) = (SharedEvents::<D>::get(), &context.driver_devices()[0]);
        let (what, origin) = if D::event_sharing(device) == EventSharing::Points {
            let import = |arrived, (): &()| Ok::<_, Error>(D::arrived_point(arrived)?);
            match shared_events.points.open(ticket, |_| Ok(()), import)?.0 {
                Opened::Local { object, .. } => (offered::<D>(object)?, Origin::OpenedHere),
                Opened::Remote(loan) => {
                    let point = D::open_point(context.driver(), device, loan)?;
                    (Shareable::Point(Arc::new(point)), Origin::Opened { _lent: None })
                }
            }
        } else {
            match shared_events.words.open(ticket, |_| Ok(()), arrived_word)?.0 {
                Opened::Local { object, .. } => (offered::<D>(object)?, Origin::OpenedHere),
                Opened::Remote(loan) => {
                    (Shareable::Word(Slot::clone(&loan)), Origin::Opened { _lent: Some(loan) })
                }
            }
        };
        let state = State::Shared(SharedPart::new(what, origin));
        Ok(Event::without_queue(context, Profile::Off, state))
    }
}
fn arrived_word(arrived: Arrived, (): &()) -> Result<Slot> {
    match arrived.payload {
        ArrivedPayload::Event(slot) => Ok(slot),
        _ => Error::refuse(
            ErrorCode::InvalidValue,
            "the exporter sent something that is no event: is it of the same version?",
        ),
    }
}
/// Looks up an event of this process by the object number in its ticket.
fn offered<D: HasStreams>(object: u64) -> Result<Shareable<D>> {
    let known = SharedEvents::<D>::get().offered().get(&object).cloned();
    known.ok_or_else(|| {
        let why = "the event of this ticket has been released: its tickets end with it";
        Error::new(ErrorCode::InvalidValue, why)
    })
}
fn no_offer() -> Error {
    let why = "only an event that this process created with IPC_EXP can be exported";
    Error::new(ErrorCode::InvalidEvent, why)
}
