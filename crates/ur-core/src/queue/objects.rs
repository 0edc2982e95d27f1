//! Queues and events as objects, and what a backend implements for them.
use super::counters::Counters;
use crate::{
    command::{Place, Ready, Recorder},
    over_driver::{
        mem::BufferBackend, sampler::HasSamplers, usm_pool::sweep_after_wait, watch::Watch,
    },
    process_mutex::ProcessMutex,
    profiling::Profile,
    program::{Placed, RunsCode},
};
use std::{
    collections::HashMap,
    fmt,
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{
            AtomicBool, AtomicU64,
            Ordering::{Acquire, Relaxed},
        },
    },
};
use ur_adapter::{
    api::Objects,
    command::{CompletionRequest, Enqueued},
    error::{Error, Result},
    object::{Borrowed, Owned},
};
use ur_hal::{Graphs, StreamRequest};
use ur_ipc::{Importer, Remote, arena::Slot};
use ur_lock::locked;
use ur_mapping::PerProcess;
use ur_sys::{ur_command_t, ur_queue_flags_t};

pub(crate) type Context<D> = <D as Objects>::Context;
pub(crate) type Device<D> = <D as Objects>::Device;

/// A driver over which the core implements queues and events. The methods beside those of [`Graphs`] are needed until
/// devices, memory objects and graphs are the core's too.
pub trait HasStreams:
    Graphs
    + BufferBackend
    + HasSamplers
    + RunsCode
    + Objects<Queue = Queue<Self>, Event = Event<Self>, ExpCommandBuffer: Recorder<Self>>
{
    /// The capture state of a queue; `()` if queues do not capture.
    type Capture: Default + fmt::Debug + Send + Sync;
    /// The captured command that an event stands for; [`Infallible`](std::convert::Infallible) if queues do not
    /// capture.
    type Captured: fmt::Debug + Send + Sync;

    /// Whether the queue captures a command that waits for these events.
    ///
    /// # Errors
    /// If these events cannot be in one wait list, or cannot be waited for by the queue now.
    #[inline(always)]
    fn is_recording(queue: &Queue<Self>, events: &[Borrowed<'_, Event<Self>>]) -> Result<bool> {
        let _ = (queue, events);
        Ok(false)
    }
    /// Captures a command. `signalled` is the event that it signals, if the caller passes one.
    ///
    /// # Errors
    /// As documented for graph capture.
    fn record(
        queue: Borrowed<'_, Queue<Self>>,
        ready: &Ready<'_, Self>,
        events: &[Borrowed<'_, Event<Self>>],
        signalled: Option<Borrowed<'_, Event<Self>>>,
        report: CompletionRequest,
    ) -> Enqueued<Self> {
        let _ = (queue, ready, events, signalled, report);
        Error::unsupported("urQueueBeginGraphCaptureExp")
    }
    /// Ends the capture that a queue began, if any, because the caller has released the queue.
    fn abandon_capture(capture: &Self::Capture) {
        let _ = capture;
    }
    /// See [`TakesCommands::submit_graph`](crate::command::TakesCommands).
    ///
    /// # Errors
    /// As `urEnqueueGraphExp` documents them.
    fn submit_graph(
        queue: Borrowed<'_, Queue<Self>>,
        graph: Borrowed<'_, Self::ExpExecutableGraph>,
        events: &[Borrowed<'_, Event<Self>>],
        report: CompletionRequest,
    ) -> Enqueued<Self> {
        let _ = (queue, graph, events, report);
        Error::unsupported("urEnqueueGraphExp")
    }
}

/// What `ur_queue_handle_t` points at.
#[derive(Debug)]
pub struct Queue<D: HasStreams> {
    /// Identifies it among all queues of the process, also those that are no more.
    pub(super) number: u64,
    pub(super) stream: D::Stream,
    pub(super) context: Owned<Context<D>>,
    pub(super) device: Owned<Device<D>>,
    pub(super) flags: ur_queue_flags_t,
    pub(super) counters: ProcessMutex<Counters>,
    capture: D::Capture,
}
body!(Queue: HasStreams, Queue, InvalidQueue, {
    /// Events of its commands may keep the queue alive, but only the caller could have ended its capture or sent what it
    /// has collected, and a native stream that belongs to the caller may be destroyed when this returns.
    fn released(&self) {
        D::abandon_capture(&self.capture);
        let _refused = D::leave(&self.stream); // those who wait for its events are told
        sweep_after_wait::<D>();
    }
});
impl<D: HasStreams> Placed<D> for Queue<D> {
    fn place(&self) -> (&Owned<Context<D>>, &Owned<Device<D>>) {
        (&self.context, &self.device)
    }
}
impl<D: HasStreams> Queue<D> {
    pub(super) fn make(
        context: Owned<Context<D>>,
        device: Owned<Device<D>>,
        flags: ur_queue_flags_t,
        stream: D::Stream,
    ) -> Owned<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Relaxed); // only uniqueness matters
        let (counters, capture) = Default::default();
        Owned::new(Self { number, stream, context, device, flags, counters, capture })
    }
    /// Creates an out-of-order queue that only the core uses.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub(crate) fn out_of_order((context, device): Place<'_, D>) -> Result<Owned<Self>> {
        let of = context.as_handle().addr();
        let request = StreamRequest {
            is_out_of_order: true,
            context: of,
            is_told_by_points: true,
            ..StreamRequest::default()
        };
        let stream = D::stream(context.driver(), device.driver(), request)?;
        let flags = ur_queue_flags_t::OUT_OF_ORDER_EXEC_MODE_ENABLE;
        Ok(Self::make(context.clone(), device.clone(), flags, stream))
    }
    /// The driver's stream.
    pub fn stream(&self) -> &D::Stream {
        &self.stream
    }
    /// The context for which it was made.
    pub fn context(&self) -> &Owned<Context<D>> {
        &self.context
    }
    /// The device that runs its commands.
    pub fn device(&self) -> &Owned<Device<D>> {
        &self.device
    }
    /// Whether commands run in the order of their submission.
    pub fn is_in_order(&self) -> bool {
        !self.flags.contains(ur_queue_flags_t::OUT_OF_ORDER_EXEC_MODE_ENABLE)
    }
    /// Which times the events of its commands report.
    pub fn profile(&self) -> Profile {
        match self.flags.contains(ur_queue_flags_t::PROFILING_ENABLE) {
            true => Profile::Phases,
            false => Profile::Off,
        }
    }
    /// Its capture state.
    pub fn capture(&self) -> &D::Capture {
        &self.capture
    }
    /// Passes a result on. If the driver itself failed, everything in the stream is lost, so all signals that it owes
    /// to other processes are marked as failed. A refused command or a failed dependency does not affect other
    /// commands.
    #[inline]
    pub(crate) fn note<T>(&self, outcome: ur_hal::Result<T>) -> Result<T> {
        outcome.map_err(|error| self.noted(error))
    }
    #[cold]
    pub(super) fn noted(&self, error: ur_hal::Error) -> Error {
        use ur_hal::ErrorKind::{DependencyFailed, InvalidOperation};
        if !matches!(error.kind(), DependencyFailed | InvalidOperation) {
            // In a forked child the signals are the parent's.
            if let Ok(mut counters) = self.counters.lock() {
                counters.fail();
            }
        }
        error.into()
    }
}

/// What `ur_event_handle_t` points at.
#[derive(Debug)]
pub struct Event<D: HasStreams> {
    /// `None` if the context is that of the queue.
    pub(crate) context: Option<Owned<Context<D>>>,
    pub(crate) queue: Option<Owned<Queue<D>>>,
    pub(crate) command: ur_command_t,
    /// Which times it was made to report. The latest signal of a reusable event may report more.
    pub(crate) profile: Profile,
    pub(crate) state: State<D>,
}
/// What an event represents.
#[derive(Debug)]
pub(crate) enum State<D: HasStreams> {
    /// One command, or a native event of the application's.
    Point(D::Point),
    /// Several commands that were submitted one by one.
    Run(Arc<Run<D>>),
    /// Nothing: complete from the start.
    Complete,
    /// The latest signal in this process. `is_recorded`: only executions of a recorded command may signal it.
    Latest { signal: LatestSignal<D>, is_recorded: bool },
    /// A reusable point of the driver, or a word shared between processes.
    Shared(SharedPart<D>),
    /// A command that a queue captured, and that never runs by itself.
    Captured(D::Captured),
}
body!(Event: HasStreams, Event, InvalidEvent, {
    #[inline]
    fn is_settled(&self) -> bool {
        match &self.state {
            State::Point(point) => D::is_settled(point),
            State::Run(run) => D::is_settled(&run.ended),
            _ => false,
        }
    }
});

/// The span of several commands that were submitted one by one.
#[derive(Debug)]
pub(crate) struct Run<D: HasStreams> {
    /// A point before all of them, if times are recorded.
    pub(crate) began: Option<D::Point>,
    /// A point after all of them.
    pub(crate) ended: D::Point,
}

/// The latest signal of an event, if there has been one.
#[derive(Debug)]
pub(crate) struct LatestSignal<D: HasStreams>(ProcessMutex<Option<Arc<Latest<D>>>>);
impl<D: HasStreams> Default for LatestSignal<D> {
    fn default() -> Self {
        Self(ProcessMutex::default())
    }
}
impl<D: HasStreams> LatestSignal<D> {
    /// The latest signal.
    ///
    /// # Errors
    /// As for [`ProcessMutex::lock`].
    pub(crate) fn get(&self) -> Result<Option<Arc<Latest<D>>>> {
        Ok(self.0.lock()?.clone())
    }
    /// Replaces it.
    ///
    /// # Errors
    /// As for [`ProcessMutex::lock`].
    pub(crate) fn note(&self, point: D::Point, profile: Profile) -> Result<()> {
        let old = self.0.lock()?.replace(Arc::new(Latest { point, profile }));
        drop(old); // after the lock is released
        Ok(())
    }
}
/// The latest signal of an event, and which times it reports.
#[derive(Debug)]
pub(crate) struct Latest<D: HasStreams> {
    pub(crate) point: D::Point,
    pub(crate) profile: Profile,
}
/// What a reusable event is made of if it can be shared between processes, or if the driver has reusable points.
#[derive(Debug)]
pub(crate) enum Shareable<D: HasStreams> {
    /// A word in shared memory that holds the counter and the value for which the event waits.
    Word(Slot),
    /// A reusable point of the driver.
    Point(Arc<D::Point>),
}
impl<D: HasStreams> Clone for Shareable<D> {
    fn clone(&self) -> Self {
        match self {
            Self::Word(slot) => Self::Word(slot.clone()),
            Self::Point(point) => Self::Point(Arc::clone(point)),
        }
    }
}
/// A [`Shareable`] as it belongs to one event handle.
#[derive(Debug)]
pub(crate) struct SharedPart<D: HasStreams> {
    pub(crate) what: Shareable<D>,
    pub(crate) origin: Origin<D>,
    /// Whether it was ever exported: only then are there tickets to withdraw.
    pub(crate) was_offered: AtomicBool,
}
impl<D: HasStreams> SharedPart<D> {
    pub(crate) fn new(what: Shareable<D>, origin: Origin<D>) -> Self {
        Self { what, origin, was_offered: AtomicBool::new(false) }
    }
}
impl<D: HasStreams> Drop for SharedPart<D> {
    fn drop(&mut self) {
        if let Origin::Made { object, .. } = &self.origin
            && self.was_offered.load(Acquire)
        {
            ur_adapter::share::freed(*object, ur_ipc::Kind::Event);
            let gone = SharedEvents::<D>::get().offered().remove(object);
            drop(gone); // after the lock is released
        }
    }
}
/// Where a reusable event comes from.
#[derive(Debug)]
pub(crate) enum Origin<D: HasStreams> {
    /// Made in this process, and not shareable.
    Private,
    /// Made in this process for this device, shareable under this object number.
    Made { object: u64, device: Owned<Device<D>> },
    /// Opened in the process that made it.
    OpenedHere,
    /// Opened from another process. For a word, this keeps the loan alive; a point keeps by itself what it was opened
    /// from.
    Opened { _lent: Option<Remote<Slot>> },
}

/// What exists once in a process for all events of a driver.
pub(crate) struct SharedEvents<D: HasStreams> {
    pub(crate) words: Importer<Slot>,
    pub(crate) points: Importer<D::ArrivedPoint>,
    /// The exported events, by object number.
    offered: PerProcess<Mutex<HashMap<u64, Shareable<D>>>>,
    pub(crate) watch: PerProcess<Watch<Event<D>>>,
}
impl<D: HasStreams> Default for SharedEvents<D> {
    /// Nothing is exported or opened.
    fn default() -> Self {
        let backend = D::BACKEND as u16;
        Self {
            // Words of other backends too: their format is the same for all backends.
            words: Importer::of_any_backend(ur_ipc::Kind::Event, backend),
            points: Importer::new(ur_ipc::Kind::Event, backend),
            offered: PerProcess::new(),
            watch: PerProcess::new(),
        }
    }
}
impl<D: HasStreams> SharedEvents<D> {
    pub(crate) fn get() -> &'static Self {
        D::statics().get()
    }
    pub(crate) fn offered(&self) -> MutexGuard<'_, HashMap<u64, Shareable<D>>> {
        locked(self.offered.get())
    }
}
impl<D: HasStreams> fmt::Debug for SharedEvents<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedEvents").finish_non_exhaustive()
    }
}
/// The error for a driver that returns no point where one was requested.
#[cold]
pub(crate) fn no_point() -> ur_hal::Error {
    ur_hal::Error::new(ur_hal::ErrorKind::Unknown, "the driver made no point of a signal")
}
