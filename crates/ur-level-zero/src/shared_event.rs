//! Events that are signalled again and again: counter-based events of the driver's, and processes
//! share them by the driver's own handles. Each signal replaces the state; a wait is for the state
//! when it was submitted; nobody waits before signalling or letting go.
use super::{
    Context, Device, Event, LevelZero,
    native::{
        counter::{Counters, Sharing},
        event::{EventKind, ImportedEvent, IpcBytes},
    },
    reusable::{Core, Parcel, Pending},
    signal::Signal,
    signaller::{BYTES, Board},
};
use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering::*},
    },
};
use ur_adapter::{
    error::{Error, ErrorCode, Result},
    object::{Backend, Borrowed, Owned},
    per_process::PerProcess,
    share::{EventFacts, SharesEvents},
};
use ur_core::profiling::Profile;
use ur_ipc::{
    Access, Arrived, ArrivedPayload, ENVELOPE_LEN, Importer, Kind, Offer, Opened, Payload,
};
use ur_sys::ur_event_status_t;

/// A reusable event, as one handle of C's knows it.
#[derive(Debug)]
pub struct Shared {
    core: Arc<Core>,
    origin: Origin,
    device: Owned<Device>,
    /// The times of the latest signal, if a queue gave it whose events have times.
    times: Mutex<Option<Arc<Signal>>>,
    /// Whether there are any: most signals have none, and need not look.
    has_times: AtomicBool,
}
/// Where it comes from.
#[derive(Debug)]
enum Origin {
    /// Made here, and stays here.
    Private,
    /// Made here, under this number; whether it was ever offered to others.
    Made { object: u64, offered: AtomicBool },
    /// Made here, and opened here too.
    OpenedHere,
    /// Opened from another process.
    Opened,
}

/// What a process has once of shared events.
struct Desk {
    importer: Importer<Parcel>,
    /// Those that were offered, by their numbers.
    offered: PerProcess<Mutex<HashMap<u64, Arc<Core>>>>,
}
static DESK: Desk = Desk {
    importer: Importer::new(Kind::Event, Backend::LevelZero as u16),
    offered: PerProcess::new(),
};
fn offered() -> MutexGuard<'static, HashMap<u64, Arc<Core>>> {
    DESK.offered.get().lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the driver offers for events of `device`.
pub(super) fn counters(device: &Device) -> Counters {
    Counters::of(device.platform().raw(), device.raw())
}
/// Whether processes can share events of `device`.
pub(super) fn has_sharing(device: &Device) -> bool {
    counters(device).sharing.is_some()
}
fn sharing(device: &Device) -> Result<Sharing> {
    counters(device).sharing.ok_or_else(|| {
        Error::new(
            ErrorCode::UnsupportedFeature,
            "this driver cannot share events between processes: a newer one may",
        )
    })
}

impl Shared {
    /// A new one, complete; `None` where the driver has no counter-based events. `ipc`: processes can
    /// share it.
    ///
    /// # Errors
    /// `UNSUPPORTED_FEATURE` for one to be shared where the driver cannot; the driver's own.
    pub(super) fn make(
        context: &Context,
        device: Owned<Device>,
        ipc: bool,
    ) -> Result<Option<Self>> {
        if ipc {
            sharing(&device)?;
        }
        let counters = counters(&device);
        let Some(event) = counters.reusable(context.native(), device.raw(), ipc)? else {
            return Ok(None);
        };
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let origin = match ipc {
            true => {
                let object = NEXT.fetch_add(1, Relaxed);
                Origin::Made { object, offered: AtomicBool::new(false) }
            }
            false => Origin::Private,
        };
        let core = Core::new(EventKind::Counter(Arc::new(event)), OnceLock::new(), None);
        Ok(Some(Self::new(core, origin, device)))
    }
    fn new(core: Arc<Core>, origin: Origin, device: Owned<Device>) -> Self {
        Self { core, origin, device, times: Mutex::default(), has_times: AtomicBool::new(false) }
    }
    /// The device it was made for, or the first one of the context that it was opened in.
    pub(super) fn device(&self) -> &Owned<Device> {
        &self.device
    }
    /// Whether nobody else can have it.
    pub(super) fn is_private(&self) -> bool {
        matches!(self.origin, Origin::Private)
    }
    /// Which times its latest signal has.
    pub(super) fn profile(&self) -> Profile {
        if self.has_times.load(Acquire) { Profile::Instant } else { Profile::Off } // `note_times`
    }
    /// The times of its latest signal, once that has come.
    pub(super) fn times(&self) -> Option<Arc<Signal>> {
        let known = self.has_times.load(Acquire).then(|| self.lock_times().clone()); // `note_times`
        known.flatten().filter(|_| self.status() == ur_event_status_t::COMPLETE)
    }
    /// `times` are those of its latest signal.
    pub(super) fn note_times(&self, times: Option<Signal>) {
        if times.is_none() && !self.has_times.load(Acquire) {
            return;
        }
        self.has_times.store(times.is_some(), Release); // read by `times` and the next signal
        let old = std::mem::replace(&mut *self.lock_times(), times.map(Arc::new));
        drop(old); // not under the lock
    }
    fn lock_times(&self) -> MutexGuard<'_, Option<Arc<Signal>>> {
        self.times.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// What its handles have in common.
    pub(super) fn core(&self) -> &Arc<Core> {
        &self.core
    }
    /// What a wait that begins now waits for.
    pub(super) fn capture(&self) -> Option<Pending> {
        self.core.owed()
    }
    /// How far its latest signal is.
    pub(super) fn status(&self) -> ur_event_status_t {
        match self.core.owed() {
            None => ur_event_status_t::COMPLETE,
            Some(Pending::Own(signal)) => signal.status(),
            Some(Pending::Other(owed)) if owed.is_lost() => ur_event_status_t::ERROR,
            Some(Pending::Other(_)) => ur_event_status_t::SUBMITTED,
        }
    }
    fn ipc_bytes(&self) -> Result<Arc<[u8]>> {
        if let Some(bytes) = self.core.ipc.get() {
            return Ok(Arc::clone(bytes));
        }
        let EventKind::Counter(event) = &self.core.event else { return Err(no_offer()) };
        let bytes = event.ipc_bytes(&sharing(&self.device)?)?;
        Ok(Arc::clone(self.core.ipc.get_or_init(|| Arc::from(bytes))))
    }
}
impl Drop for Shared {
    fn drop(&mut self) {
        if let Origin::Made { object, offered: was_offered } = &mut self.origin
            && *was_offered.get_mut()
        {
            ur_adapter::share::freed(*object, Kind::Event);
            let core = offered().remove(object);
            drop(core); // not under the lock
        }
    }
}
fn no_offer() -> Error {
    Error::new(
        ErrorCode::InvalidEvent,
        "only an event made here with IPC_EXP can be offered to others",
    )
}

impl SharesEvents for LevelZero {
    fn shares_events(context: &Context) -> bool {
        context.devices().iter().all(|device| has_sharing(device))
    }
    fn event_facts(event: &Event) -> EventFacts {
        let origin = event.as_shared().map(|shared| &shared.origin);
        EventFacts {
            is_supported: Self::shares_events(event.context()),
            is_shareable: origin.is_some_and(|origin| !matches!(origin, Origin::Private)),
            is_opened: matches!(origin, Some(Origin::OpenedHere | Origin::Opened)),
            has_profiling: event.is_profiled_reusable(),
        }
    }
    fn offer_event(event: Borrowed<'_, Event>) -> Result<Offer> {
        super::platform::check_fork()?;
        let shared = event.as_shared().ok_or_else(no_offer)?;
        let Origin::Made { object, offered: was_offered } = &shared.origin else {
            return Err(no_offer());
        };
        let (bytes, board) = (shared.ipc_bytes()?, shared.core.board()?);
        if !was_offered.load(Acquire) {
            let old = offered().insert(*object, Arc::clone(&shared.core));
            drop(old);
            was_offered.store(true, Release); // after that: who sees it finds it there
        }
        let (fd, size) = (board.fd(), BYTES as u64);
        let payload = Payload::Driver { fd, base: 0, exposes: size, bytes };
        Ok(Offer {
            kind: Kind::Event,
            backend: Backend::LevelZero as u16,
            device: shared.device.uuid(),
            object: *object,
            offset: 0,
            length: 0,
            size,
            payload,
            access: Access::SameUser,
        })
    }
    fn open_event(
        context: Borrowed<'_, Context>,
        ticket: &[u8; ENVELOPE_LEN],
    ) -> Result<Owned<Event>> {
        super::platform::check_fork()?;
        let device = context.devices()[0].clone();
        let (opened, ()) = DESK.importer.open(ticket, |_| Ok(()), arrive)?;
        let (core, origin) = match opened {
            Opened::Local { object, .. } => {
                let core = offered().get(&object).cloned();
                let core = core.ok_or_else(|| {
                    Error::new(
                        ErrorCode::InvalidValue,
                        "the event of this ticket has been released: its tickets end with it",
                    )
                })?;
                (core, Origin::OpenedHere)
            }
            Opened::Remote(loan) => {
                let event = ImportedEvent::open(&sharing(&device)?, context.native(), &loan.bytes);
                let event = event.map_err(|e| e.with_code(ErrorCode::InvalidValue))?;
                let board = OnceLock::from(loan.board.clone());
                let core = Core::new(EventKind::Imported(Box::new(event)), board, Some(loan));
                (core, Origin::Opened)
            }
        };
        Ok(Event::shared(context.own()?, Shared::new(core, origin, device)))
    }
}
/// What another process sent for a ticket of ours.
fn arrive(arrived: Arrived, (): &()) -> Result<Parcel> {
    let nonsense = || {
        Error::new(
            ErrorCode::InvalidValue,
            "the exporter sent something that is no event of Level Zero: is it of the same version?",
        )
    };
    let ArrivedPayload::Driver { fd, bytes, .. } = arrived.payload else { return Err(nonsense()) };
    let bytes = IpcBytes::try_from(bytes.as_slice()).map_err(|_| nonsense())?;
    Ok(Parcel { bytes, board: Board::arrived(fd)? })
}
