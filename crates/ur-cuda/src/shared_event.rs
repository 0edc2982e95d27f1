//! Events that processes share: pairs (counter, value) in memory of `ur_ipc`'s, as on the CPU, except
//! that a stream writes the counter's word, and that streams wait for words. So a signal costs no
//! host thread, and an event can order a stream of this process behind a stream, or a thread, of
//! another one.
//!
//! A stream that waits cannot be told of a death. Whoever learns of one sets a bit above all values,
//! and the stream goes on; what it ran then ran too early. So a queue remembers what its streams wait
//! for, and events behind it are in error, as finishing the queue is.
use super::DriverDevice;
use super::{
    Attribute, Context, Event, Family, Queue,
    driver::{Dialect, RawContext},
    native::{context::Entered, stream::Stream, words::Words},
    queue::Work,
};
use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicBool, AtomicU64, Ordering::*},
    },
};
use ur_adapter::{
    error::{Error, ErrorCode, Reason, Result},
    object::{Borrowed, Owned},
    per_process::PerProcess,
    share::EventFacts,
};
use ur_core::event::SharesEvents;
use ur_core::memory::objects::next_object;
use ur_ipc::{
    Access, ArrivedPayload, ENVELOPE_LEN, Importer, Kind, Offer, Opened, Payload, Remote,
    arena::{self, Arena, Captured, Counter, Debt, DeviceWait, Progress, Slot, protocol::word_of},
};
use ur_sys::ur_event_status_t;

/// A part of an arena that is registered with the driver at once.
const PIECE: usize = 64 << 10;

/// A shared event.
#[derive(Debug)]
pub struct Shared<D: Dialect> {
    slot: Slot,
    origin: Origin,
    device: Arc<DriverDevice<D>>,
}
/// Where it comes from.
#[derive(Debug)]
enum Origin {
    /// Made here, under this number; whether it was ever offered to others.
    Made { object: u64, offered: AtomicBool },
    /// Made here, and opened here too.
    OpenedHere,
    /// Opened from another process, which lends it for as long as this lives.
    Opened { _loan: Remote<Slot> },
}

/// By arena and number.
type Pieces<D> = BTreeMap<(u64, usize), Weak<Piece<D>>>;
/// What a process has once of a dialect's shared events.
pub struct Desk<D: Dialect> {
    importer: Importer<Slot>,
    /// Those that were offered, by their numbers.
    offered: PerProcess<Mutex<HashMap<u64, Slot>>>,
    /// Pieces that are registered.
    pieces: Mutex<Pieces<D>>,
}
impl<D: Dialect> Desk<D> {
    pub(super) const fn new() -> Self {
        let importer = Importer::of_any_backend(Kind::Event, D::BACKEND as u16);
        Self { importer, offered: PerProcess::new(), pieces: Mutex::new(BTreeMap::new()) }
    }
    fn offered(&self) -> MutexGuard<'_, HashMap<u64, Slot>> {
        self.offered.get().lock().unwrap_or_else(PoisonError::into_inner)
    }
}
impl<D: Dialect> fmt::Debug for Desk<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Desk").finish_non_exhaustive()
    }
}
fn desk<D: Dialect>() -> &'static Desk<D> {
    &D::statics().shared_events
}

/// A registered part of an arena, which it keeps.
#[derive(Debug)]
struct Piece<D: Dialect> {
    /// First, so that it goes before the memory does.
    words: Words<D>,
    _arena: Arena,
}
impl<D: Dialect> Piece<D> {
    /// The piece that has the word at `address`.
    fn with(
        on: &Entered<D>,
        context: RawContext,
        arena: &Arena,
        address: usize,
    ) -> Result<Arc<Self>> {
        let (base, bytes) = arena.memory();
        let number = (address - base) / PIECE;
        let key = (arena.id(), number);
        let pieces = || desk::<D>().pieces.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(piece) = pieces().get(&key).and_then(Weak::upgrade) {
            return Ok(piece);
        }
        let start = base + number * PIECE;
        let words = match Words::register(on, context, start, PIECE.min(base + bytes - start)) {
            Ok(words) => words,
            // Another thread was as quick.
            Err(error) => return pieces().get(&key).and_then(Weak::upgrade).ok_or(error),
        };
        let piece = Arc::new(Self { words, _arena: arena.clone() });
        let mut pieces = pieces();
        pieces.retain(|_, piece| piece.strong_count() > 0);
        pieces.insert(key, Arc::downgrade(&piece));
        Ok(piece)
    }
}

/// By address.
type Held<D> = BTreeMap<usize, Arc<Piece<D>>>;
/// The pieces that a queue's streams have been told to write or wait in. A word may be reached, and
/// known to be, before the stream that waits for it has looked at it: so they stay registered until
/// the queue is idle, and mostly as long as it lives.
#[derive(Debug)]
pub struct Registered<D: Dialect>(Mutex<Held<D>>);
impl<D: Dialect> Registered<D> {
    /// With more than so many, an idle queue lets go of all.
    const MANY: usize = 32;

    pub(super) fn new() -> Self {
        Self(Mutex::new(BTreeMap::new()))
    }
    fn all(&self) -> MutexGuard<'_, Held<D>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Keeps a piece that something in one of the queue's streams is about.
    fn keep(&self, work: &Work<D>, piece: Arc<Piece<D>>) -> Result<()> {
        let mut all = self.all();
        all.insert(Arc::as_ptr(&piece).addr(), piece);
        if all.len() <= Self::MANY {
            return Ok(());
        }
        // What is put into a stream from here on is kept behind this; what was before is seen.
        let before = std::mem::take(&mut *all);
        drop(all);
        match work.is_idle() {
            Ok(true) => drop(before), // the driver's calls, and no lock
            outcome => {
                self.all().extend(before);
                outcome?;
            }
        }
        Ok(())
    }
}

/// A counter that a queue's streams complete.
#[derive(Debug)]
pub struct QueueCounter<D: Dialect> {
    counter: Counter,
    piece: Arc<Piece<D>>,
}
/// The counters of a queue, by arena. Locked from the reservation of a value until its write is in
/// the stream: out of order, a word would go back.
#[derive(Debug)]
pub struct Counters<D: Dialect>(Mutex<HashMap<u64, Arc<QueueCounter<D>>>>);
impl<D: Dialect> Counters<D> {
    pub(super) fn new() -> Self {
        Self(Mutex::new(HashMap::new()))
    }
    /// What the streams owe by them will never come.
    pub(super) fn fail(&self) {
        let counters = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for counter in counters.values().filter(|one| !one.counter.is_settled()) {
            counter.counter.fail();
        }
    }
}

/// A signal that is being submitted.
pub(super) struct Prepared<'signal, D: Dialect> {
    slot: &'signal Slot,
    counter: Arc<QueueCounter<D>>,
    value: AtomicU64,
    /// Held until the write is in the stream.
    _turn: MutexGuard<'signal, HashMap<u64, Arc<QueueCounter<D>>>>,
}
impl<D: Dialect> Prepared<'_, D> {
    /// Puts the write of the value into the stream: nothing may fail between this and publishing.
    pub(super) fn write(&self, stream: &Stream<D>) -> Result<()> {
        let value = self.counter.counter.reserve();
        self.value.store(value, Relaxed); // one thread
        let at = self.counter.piece.words.on_device(self.counter.counter.word_address());
        // Without a write nobody learns of the value, and the next write passes it.
        stream.write_value(at, word_of(value))
    }
    /// From now on the event stands for that value.
    ///
    /// # Errors
    /// `INVALID_EVENT` if the process that made the event took this one for gone and let go of it: the barrier
    /// is in the stream all the same, and nobody sees the signal.
    pub(super) fn publish(self) -> Result<()> {
        let value = self.value.load(Relaxed);
        ur_core::unseen::judge(self.slot.publish(&self.counter.counter, value))
    }
}

impl<D: Dialect> Shared<D> {
    /// A new one, complete.
    ///
    /// # Errors
    /// `UNSUPPORTED_FEATURE` on a device that has none; `OUT_OF_RESOURCES` where there is no room for more
    /// of them.
    pub(super) fn make(device: Arc<DriverDevice<D>>) -> Result<Self> {
        if !is_supported(&device)? {
            return Err(Error::new(
                ErrorCode::UnsupportedFeature,
                "this device cannot share events between processes: its streams neither write nor wait \
                 for words of host memory; create the event without IPC_EXP",
            ));
        }
        let slot = arena::slot(Access::SameUser)?;
        let object = next_object(D::BACKEND);
        let origin = Origin::Made { object, offered: AtomicBool::new(false) };
        Ok(Self { slot, origin, device })
    }
    fn captured(&self) -> Result<Captured> {
        self.slot.capture().map_err(stale)
    }
    /// What a wait that begins now waits for.
    pub(super) fn capture(&self) -> Result<Awaited> {
        Ok(match self.captured()? {
            Captured::Complete => Awaited(None),
            Captured::Debt(debt) => Awaited(Some(debt)),
        })
    }
    pub(super) fn status(&self) -> Result<ur_event_status_t> {
        Ok(match self.captured()? {
            Captured::Complete => ur_event_status_t::COMPLETE,
            Captured::Debt(debt) => match debt.progress() {
                Progress::Complete => ur_event_status_t::COMPLETE,
                Progress::Pending => ur_event_status_t::SUBMITTED,
                Progress::Failed => ur_event_status_t::ERROR,
            },
        })
    }
    /// What `queue` puts into `stream` later waits for its latest signal so far.
    pub(super) fn order(&self, queue: &Queue<D>, stream: &Stream<D>) -> Result<()> {
        let Captured::Debt(debt) = self.captured()? else { return Ok(()) };
        match debt.progress() {
            Progress::Complete => return Ok(()),
            Progress::Failed => return Err(lost()),
            Progress::Pending => {}
        }
        let address = debt.word_address();
        let (on, work) = (queue.device().enter()?, queue.work());
        let piece = Piece::with(&on, queue.device().context()?, debt.arena(), address)?;
        let waits = stream.wait_value(piece.words.on_device(address), word_of(debt.value()));
        work.registered().keep(work, piece)?;
        waits?;
        work.owe(debt);
        Ok(())
    }
    /// Makes a signal by `queue` ready, whose context is current.
    pub(super) fn prepare<'signal>(
        &'signal self,
        queue: &'signal Queue<D>,
    ) -> Result<Prepared<'signal, D>> {
        let arena = self.slot.arena();
        let mut turn = queue.work().counters().0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = turn.get(&arena.id()).filter(|known| !known.counter.is_retired()).cloned();
        let counter = match known {
            Some(counter) => counter,
            None => {
                let counter = arena.take_counter()?;
                counter.hand_to_device();
                let (on, context) = (queue.device().enter()?, queue.device().context()?);
                let piece = Piece::with(&on, context, arena, counter.word_address())?;
                let counter = Arc::new(QueueCounter { counter, piece });
                if let Some(retired) = turn.insert(arena.id(), Arc::clone(&counter)) {
                    // Its last values may not be written yet.
                    let work = queue.work();
                    work.registered().keep(work, Arc::clone(&retired.piece))?;
                }
                counter
            }
        };
        Ok(Prepared { slot: &self.slot, counter, value: AtomicU64::new(0), _turn: turn })
    }
}
impl<D: Dialect> Drop for Shared<D> {
    fn drop(&mut self) {
        if let Origin::Made { object, offered: was_offered } = &mut self.origin
            && *was_offered.get_mut()
        {
            ur_adapter::share::freed(*object, Kind::Event);
            let slot = desk::<D>().offered().remove(object);
            drop(slot); // not under the lock
        }
    }
}
fn stale(error: ur_ipc::Error) -> Error {
    let error = Error::from(error);
    match error.code() {
        ErrorCode::InvalidValue => error.with_code(ErrorCode::InvalidEvent),
        _ => error,
    }
}
fn lost() -> Error {
    Error::new(
        ErrorCode::InEventListExecStatus,
        "the process that was to signal an event has died, or its command failed: the signal will \
         never come",
    )
    .because(Reason::ExporterGone)
}

/// Whether the device has such events: a shared event is a word of host memory that streams write and
/// wait for.
///
/// # Errors
/// The driver's own.
pub(super) fn is_supported<D: Dialect>(device: &DriverDevice<D>) -> Result<bool> {
    Ok(device.has(Attribute::HostRegister)? && device.has(Attribute::StreamWords)?)
}

/// What a host thread waits for.
pub(super) struct Awaited(Option<Debt>);
impl Awaited {
    pub(super) fn wait(&self) -> Result<()> {
        match self.0.as_ref().map(|debt| debt.wait(None)) {
            Some(Progress::Failed) => Err(lost()),
            _ => Ok(()),
        }
    }
}

/// What a queue's streams wait for, as far as it is not known to have come.
#[derive(Debug, Default)]
pub(super) struct Debts {
    owed: Vec<(Debt, Option<DeviceWait>)>,
    /// What will never come, until the streams have gone on: a write of the dead one's device may come late, and they
    /// have to be released again.
    lost: Vec<DeviceWait>,
}
impl Debts {
    pub(super) fn add(&mut self, owed: Debt) {
        self.owed.retain(|(one, _)| one.progress() != Progress::Complete);
        // Of one counter's values the greatest says it all: if a lesser one never comes, it does not.
        let same = |(one, _): &&mut (Debt, _)| {
            one.word_address() == owed.word_address() && one.progress() == Progress::Pending
        };
        // None in a forked child alone, where the driver does not work.
        let awaited = || owed.awaited_by_device().ok();
        match self.owed.iter_mut().find(same) {
            Some((one, _)) if one.value() >= owed.value() => {}
            Some(one) => *one = (owed.clone(), awaited()),
            None => {
                let awaited = awaited();
                self.owed.push((owed, awaited));
            }
        }
    }
    /// Those that are still owed.
    pub(super) fn open(&self) -> Vec<Debt> {
        let open = self.owed.iter().map(|(one, _)| one);
        open.filter(|one| one.progress() != Progress::Complete).cloned().collect()
    }
    /// The streams are idle: none of them waits for what will never come.
    pub(super) fn have_gone_on(&mut self) {
        self.lost.clear();
    }
    /// Forgets what has come, and what never will. Whether something is left.
    ///
    /// # Errors
    /// `IN_EVENT_LIST_EXEC_STATUS` once for what never will come.
    pub(super) fn check(&mut self) -> Result<bool> {
        let mut has_failed = false;
        for (one, awaited) in std::mem::take(&mut self.owed) {
            match one.progress() {
                Progress::Pending => self.owed.push((one, awaited)),
                Progress::Complete => {}
                Progress::Failed => {
                    has_failed = true;
                    self.lost.extend(awaited);
                }
            }
        }
        if has_failed { Err(lost()) } else { Ok(!self.owed.is_empty()) }
    }
}
/// Sleeps until each has come, or never will.
pub(super) fn await_all(debts: &[Debt]) {
    for debt in debts {
        let _how = debt.wait(None); // asked for again by whom it concerns
    }
}
/// Whether one of them will never come.
pub(super) fn have_failed(debts: &[Debt]) -> bool {
    debts.iter().any(|debt| debt.progress() == Progress::Failed)
}
/// What is said of a command that ran behind one of these.
pub(super) fn lost_dependency() -> Error {
    lost()
}

impl<D: Dialect> SharesEvents for Family<D> {
    fn shares_events(context: &Context<D>) -> bool {
        context.devices().iter().all(|device| is_supported(device).unwrap_or(false))
    }
    fn event_facts(event: &Event<D>) -> EventFacts {
        let shared = event.as_shared();
        EventFacts {
            is_supported: Self::shares_events(event.context()),
            is_shareable: shared.is_some(),
            is_opened: shared.is_some_and(|s| !matches!(s.origin, Origin::Made { .. })),
            has_profiling: event.is_profiled_reusable(),
        }
    }
    fn offer_event(event: Borrowed<'_, Event<D>>) -> Result<Offer> {
        let Some(Shared { slot, origin: Origin::Made { object, offered }, device }) =
            event.as_shared()
        else {
            return Err(Error::new(
                ErrorCode::InvalidEvent,
                "only an event made here with IPC_EXP can be offered to others",
            ));
        };
        super::device::check_fork::<D>()?;
        offered.store(true, Relaxed); // read again by the last owner alone
        desk::<D>().offered().insert(*object, slot.clone());
        Ok(Offer {
            kind: Kind::Event,
            backend: D::BACKEND as u16,
            device: device.uuid(),
            object: *object,
            offset: 0,
            length: 0,
            size: 0,
            payload: Payload::Event(slot.clone()),
            access: Access::SameUser,
        })
    }
    /// Events of any device and backend: all are words in shared memory.
    fn open_event(
        context: Borrowed<'_, Context<D>>,
        ticket: &[u8; ENVELOPE_LEN],
    ) -> Result<Owned<Event<D>>> {
        super::device::check_fork::<D>()?;
        let import = |arrived: ur_ipc::Arrived, (): &()| match arrived.payload {
            ArrivedPayload::Event(slot) => Ok(slot),
            _ => Err(Error::new(
                ErrorCode::InvalidValue,
                "the exporter sent something that is no event: is it of the same version?",
            )),
        };
        let (opened, ()) = desk::<D>().importer.open(ticket, |_| Ok(()), import)?;
        let (slot, origin) = match opened {
            Opened::Local { object, .. } => {
                let slot = desk::<D>().offered().get(&object).cloned();
                let slot = slot.ok_or_else(|| {
                    Error::new(
                        ErrorCode::InvalidValue,
                        "the event of this ticket has been released: its tickets end with it",
                    )
                })?;
                (slot, Origin::OpenedHere)
            }
            Opened::Remote(loan) => (Slot::clone(&loan), Origin::Opened { _loan: loan }),
        };
        let device = Arc::clone(context.devices()[0].driver());
        Ok(Event::shared(context.own()?, Shared { slot, origin, device }))
    }
}
