//! Streams and points of Level Zero, of which the core makes queues and events. An in-order stream is one
//! in-order command list of the driver; an out-of-order one has several lists that are used in turn
//! (`work.rs`). A point is the end of a command, or a driver event (`point.rs`).
//!
//! The effect of the flags of a queue:
//!
//! | Flags | |
//! | --- | --- |
//! | `OUT_OF_ORDER_EXEC_MODE_ENABLE`, `PROFILING_ENABLE` | as documented |
//! | `PRIORITY_LOW`, `PRIORITY_HIGH` | the driver's priorities |
//! | `SUBMISSION_BATCHED`, `SUBMISSION_IMMEDIATE` | as documented, for in-order queues; the environment takes precedence |
//! | `DISCARD_EVENTS`, `USE_DEFAULT_STREAM`, `SYNC_WITH_DEFAULT_STREAM`, `LOW_POWER_EVENTS_SUPPORT_EXP` | hints without effect |
//! | `ON_DEVICE`, `ON_DEVICE_DEFAULT` | refused: `INVALID_QUEUE_PROPERTIES` |
use super::{
    LevelZero,
    context::DriverContext,
    crossing::Far,
    device::DriverDevice,
    driver::{RawEvent, RawList},
    fate::Fate,
    host_task::{self, by_thread},
    native::{
        counter::Counters,
        event::{AdoptedEvent, EventKind, IpcBytes},
        list::{Engine, List, NativeList},
    },
    options, platform,
    point::Point,
    reusable::{Core, ImportPayload},
    signal::Signal,
    signaller::SignalRecord,
    submission::{How, Made},
    work::{Engines, QueueState},
};
use std::sync::Arc;
use ur_hal::{
    AdoptedStream, Command, Completion, Error, ErrorKind, EventSharing, NativeHandle, Priority,
    Profile, Result, Signal as Signals, Status, StreamRequest, Streams, Submission, Times,
};
use ur_ipc::{Arrived, ArrivedPayload, Payload, Remote};
use ze_sys::{
    ZE_COMMAND_QUEUE_PRIORITY_NORMAL, ZE_COMMAND_QUEUE_PRIORITY_PRIORITY_HIGH,
    ZE_COMMAND_QUEUE_PRIORITY_PRIORITY_LOW,
};

/// The default number of commands of a batch.
const BATCH: u32 = 16;

/// A stream as the core holds it. Its lists outlive it until they are idle.
#[derive(Debug)]
pub struct Stream(Arc<QueueState>);
impl Drop for Stream {
    fn drop(&mut self) {
        if platform::check_fork().is_ok() {
            self.0.leave(); // in a forked child the lists are the parent's
        }
    }
}
impl Stream {
    /// Its lists.
    ///
    /// # Errors
    /// `UNINITIALIZED` in a forked child: the lists are the parent's, and no driver thread completes anything here.
    #[inline]
    pub(super) fn work(&self) -> Result<&Arc<QueueState>> {
        platform::check_fork()?;
        Ok(&self.0)
    }
    /// Creates a stream over an existing command list, or with lists of its own.
    fn make(
        context: &DriverContext,
        device: &Arc<DriverDevice>,
        request: StreamRequest,
        list: Option<NativeList>,
    ) -> Result<Self> {
        platform::check_fork()?;
        let engines = device.compute()?;
        let priority = match request.priority {
            Priority::Low => ZE_COMMAND_QUEUE_PRIORITY_PRIORITY_LOW,
            Priority::High => ZE_COMMAND_QUEUE_PRIORITY_PRIORITY_HIGH,
            Priority::Normal => ZE_COMMAND_QUEUE_PRIORITY_NORMAL,
        };
        let is_in_order = !request.is_out_of_order || list.is_some();
        let chosen = device.engine().or(request.engine);
        let first = Engine {
            ordinal: engines.ordinal,
            index: chosen.unwrap_or(0),
            // An out-of-order queue has a lane of its own for copies instead.
            offloads: options().copiers && is_in_order,
            priority,
        };
        // Not for out-of-order queues: a command must not be held back in a batch that later ones could
        // overtake.
        let batch_size = match list {
            None if is_in_order => batch_size(request.is_batched),
            _ => None,
        };
        // If an engine was chosen, all lists use it; else they are spread over several.
        let spread = if chosen.is_some() { 1 } else { engines.engines.max(1) };
        let copier = device.copier().filter(|_| options().copiers && !is_in_order).map(|group| {
            let engine = Engine { ordinal: group.ordinal, index: 0, offloads: false, priority };
            (engine, group.longest_pattern)
        });
        let engines = Engines { first, spread, copier };
        let order = (batch_size, is_in_order);
        Ok(Self(QueueState::new((context, request.context), device, engines, order, list)?))
    }
}
/// The size of a stream's batches, given whether they are requested; `None` if it submits at once.
fn batch_size(is_asked_for: bool) -> Option<u32> {
    let batched = options().immediate.map_or(is_asked_for, |immediate| !immediate);
    let most = options().batch.unwrap_or(BATCH);
    (batched && most > 1 && List::can_execute()).then_some(most)
}

/// The driver's support of counter-based events for `device`.
fn counters(device: &DriverDevice) -> Result<Counters> {
    Counters::of(device.platform().raw(), device.raw())
}
/// Whether events of `device` can be shared between processes.
pub(super) fn has_sharing(device: &DriverDevice) -> bool {
    // If it cannot be found out now, it is when an event is made.
    counters(device).map_or(true, |counters| counters.sharing.is_some())
}

/// Enqueues a barrier, unless it would have no effect.
#[inline]
fn barrier(work: &Arc<QueueState>, what: &Submission<'_, LevelZero>) -> Made {
    let is_superfluous = what.waits.is_empty()
        && work.fates.last().is_none()
        && match what.completion {
            Completion::None => work.is_in_order,
            Completion::Point => what.profile == Profile::Off && work.is_known_idle(),
            Completion::Done { .. } => false,
        };
    if is_superfluous {
        work.check()?;
        return match what.completion.wants_point() {
            true => Ok(Some(Point::Command(Signal::over(work)))),
            false => Ok(None),
        };
    }
    let how = How { is_one_append: true, ..How::default() };
    work.put(what, how, |list, _| list.barrier())
}
/// Lets the application append commands of its own to the first list, between two barriers. The barriers are
/// never omitted, because the completion of the application's commands cannot be determined otherwise.
fn call_native(
    work: &Arc<QueueState>,
    what: &Submission<'_, LevelZero>,
    call: ur_hal::NativeCall<'_>,
) -> Made {
    let how = How { is_one_append: true, at_once: true, ..How::default() };
    let before = Submission { completion: Completion::None, profile: Profile::Off, ..*what };
    work.put(&before, how, |list, _| list.barrier())?;
    work.keep_first_behind_barrier()?;
    call.call()?;
    work.put(&Submission { waits: &[], ..*what }, how, |list, _| list.barrier())
}
/// Enqueues a signal of a reusable event. Signals that several threads enqueue at the same time have no order: their
/// numbers, the driver's event and the signal noted last may each take another of them for the latest. Each number is
/// reported as come only by the mark behind its own signal, or when a complete event could be any of them.
fn signal(work: &Arc<QueueState>, what: &Submission<'_, LevelZero>, core: &Core) -> Result<()> {
    core.check_reach(&work.device)?;
    let wanted = Submission { completion: Completion::Point, ..*what };
    // The times are taken with an event of their own, which comes first: so they are known when this event is
    // complete.
    let times = match what.profile != Profile::Off && core.is_private() {
        true => work.append(&wanted, How::default(), |_, _| Ok(()))?,
        false => None,
    };
    let waits = if times.is_some() { &[] } else { what.waits };
    let plain = Submission { waits, profile: Profile::Off, ..wanted };
    let (how, mut count) = (How { at_once: true, ..How::default() }, 0);
    let submitted = work.append(&plain, how, |list, _| {
        list.signal(core.event().raw())?;
        // Not before: whoever sees the number takes the driver's event for that signal's.
        count = core.sign();
        Ok(())
    });
    match submitted {
        Ok(signal) => core.signed(count, signal),
        Err(error) => {
            core.signed(count, None);
            return Err(error);
        }
    }
    core.note_times(times);
    Ok(())
}
/// Enqueues a command all of whose memory its device can access.
#[inline]
fn submit(work: &Arc<QueueState>, what: &Submission<'_, LevelZero>) -> Made {
    match *what.command {
        Command::Barrier => barrier(work, what),
        Command::HostCall(call) => host_task::run(work, call.clone(), what),
        Command::Native(call) => call_native(work, what, call),
        Command::Signal(Signals::Point(Point::Reusable(core))) => {
            signal(work, what, core)?;
            Ok(None)
        }
        ref command => {
            if let Command::Launch(launch) = command {
                launch.geometry.offset_words()?; // checked before anything is appended
            }
            work.put(what, How::of(command), |list, _| list.append(command))
        }
    }
}
/// Has a thread execute a command; its point fails if the thread's work fails.
fn submit_far(work: &Arc<QueueState>, what: &Submission<'_, LevelZero>, far: Box<Far>) -> Made {
    let fate = Fate::by_thread();
    let inside = Arc::clone(&fate);
    let how = How { at_once: true, fate: Some(&fate), ..How::default() };
    work.put_with_fate(what, how, |list, kept| {
        by_thread(work, list, kept, move |reached| inside.meet(|| reached.and_then(|()| far.run())))
    })
}

impl Streams for LevelZero {
    const HAS_NATIVE_HANDLES: bool = true;
    /// An immediate command list.
    const STREAM_FORM: Option<i32> = Some(1);
    type ArrivedPoint = ImportPayload;
    fn check_process() -> Result<()> {
        platform::check_fork()
    }
    fn engines(device: &Arc<DriverDevice>) -> Result<u32> {
        Ok(if device.engine().is_some() { 1 } else { device.compute()?.engines })
    }
    fn finish_device(device: &Arc<DriverDevice>) -> Result<()> {
        super::sync_point::wait_for_device(device)
    }
    fn event_sharing(device: &Arc<DriverDevice>) -> EventSharing {
        if has_sharing(device) { EventSharing::Points } else { EventSharing::None }
    }
    fn stream(
        context: &DriverContext,
        device: &Arc<DriverDevice>,
        request: StreamRequest,
    ) -> Result<Stream> {
        Stream::make(context, device, request, None)
    }
    #[inline]
    /// If the stream's device cannot access the memory of a command, a thread executes it.
    fn submit(stream: &Stream, submission: &Submission<'_, Self>) -> Made {
        let work = stream.work()?;
        if work.has_far_memory
            && let Some(far) = Far::of(&work.utility_lists, &work.device, submission.command)?
        {
            return submit_far(work, submission, far);
        }
        submit(work, submission)
    }
    fn flush(stream: &Stream) -> Result<()> {
        stream.work()?.flush()
    }
    fn leave(stream: &Stream) -> Result<()> {
        stream.work()?.give_list_back();
        Ok(())
    }
    fn is_idle(stream: &Stream) -> Result<bool> {
        stream.work()?.is_idle()
    }
    fn finish(stream: &Stream) -> Result<()> {
        stream.work()?.finish()
    }
    fn status(point: &Point) -> Result<Status> {
        Self::check_process()?;
        Ok(point.status())
    }
    #[inline]
    fn is_settled(point: &Point) -> bool {
        match point {
            Point::Command(signal) => platform::check_fork().is_ok() && signal.is_settled(),
            _ => false,
        }
    }
    fn wait_until_final(point: &Point) -> Result<()> {
        Self::check_process()?;
        point.wait()
    }
    fn times(point: &Point) -> Result<Option<Times>> {
        point.times()
    }
    /// A counter-based driver event; `None` if the driver has none.
    fn reusable(
        context: &DriverContext,
        device: &Arc<DriverDevice>,
        is_shareable: bool,
    ) -> Result<Option<Point>> {
        let counters = counters(device)?;
        let event = counters.reusable(context.native(), device.raw(), is_shareable)?;
        let sharing = counters.sharing.filter(|_| is_shareable);
        let event = event.map(|event| EventKind::Counter(Arc::new(event)));
        Ok(event.map(|event| Point::Reusable(Core::new(event, device, sharing))))
    }
    fn latest(point: &Point) -> Result<Option<Point>> {
        match point {
            Point::Reusable(core) => Ok(core.owed().map(Point::Latest)),
            _ => Error::unsupported("the latest signal of an event of one command"),
        }
    }
    fn export_point(point: &Point) -> Result<Payload> {
        match point {
            Point::Reusable(core) => Ok(core.payload()?),
            _ => Error::unsupported("sharing of an event of one command"),
        }
    }
    fn arrived_point(arrived: Arrived) -> Result<ImportPayload> {
        let nonsense = || {
            let why = "the exporter sent something that is no event of Level Zero: is it of the same version?";
            Error::new(ErrorKind::InvalidValue, why)
        };
        let ArrivedPayload::Driver { fd, bytes, .. } = arrived.payload else {
            return Err(nonsense());
        };
        let bytes = IpcBytes::try_from(bytes.as_slice()).map_err(|_| nonsense())?;
        Ok(ImportPayload { bytes, board: SignalRecord::arrived(fd)? })
    }
    fn open_point(
        context: &DriverContext,
        device: &Arc<DriverDevice>,
        arrived: Remote<ImportPayload>,
    ) -> Result<Point> {
        let sharing = counters(device)?.sharing.ok_or_else(|| {
            let why = "this driver cannot share events between processes: a newer one may";
            Error::new(ErrorKind::Unsupported, why)
        })?;
        Ok(Point::Reusable(Core::imported(context.native(), &sharing, arrived)?))
    }
    /// The immediate command list; of an out-of-order queue the first one.
    fn native_stream(stream: &Stream) -> Result<NativeHandle> {
        Ok(NativeHandle(stream.work()?.first()?.raw().addr() as u64))
    }
    /// An in-order stream over an existing immediate, in-order command list.
    fn adopt_stream(
        context: &DriverContext,
        (devices, wished): (&[Arc<DriverDevice>], Option<&Arc<DriverDevice>>),
        handle: NativeHandle,
        is_owned: bool,
        request: StreamRequest,
    ) -> Result<AdoptedStream<Self>> {
        let raw = RawList::from_addr(handle.0 as usize).ok_or_else(|| {
            Error::new(ErrorKind::InvalidValue, "0 is no command list of the driver")
        })?;
        let device = wished.unwrap_or(&devices[0]).clone();
        let list = NativeList::adopted(raw, is_owned, context.native().clone());
        let stream = Stream::make(context, &device, request, Some(list))?;
        Ok((device, stream))
    }
    fn native_point(point: &Point) -> Result<NativeHandle> {
        Ok(NativeHandle(point.raw()?.addr() as u64))
    }
    fn adopt_point(
        _: &DriverContext,
        _: &[Arc<DriverDevice>],
        handle: NativeHandle,
        is_owned: bool,
    ) -> Result<Point> {
        let raw = RawEvent::from_addr(handle.0 as usize).ok_or(ErrorKind::InvalidValue)?;
        Ok(Point::Native(EventKind::Adopted(AdoptedEvent::adopted(raw, is_owned, ()))))
    }
}
