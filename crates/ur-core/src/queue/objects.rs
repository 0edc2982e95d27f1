//! What queues and events are made of, and what a backend implements for them.
use super::counters::Counters;
use crate::{
    command::{InOrder, Ready, Recorder},
    memory::allocation::{Allocation, Freeing, Usm},
    over_driver::{
        mem::{BufferBackend, Mem},
        sampler::HasSamplers,
        watch::Watch,
    },
    profiling::Profile,
    program::RunsCode,
};
use std::{
    collections::HashMap,
    fmt,
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicBool, Ordering::Acquire},
    },
};
use ur_adapter::{
    api::Objects,
    command::{CompletionRequest, Enqueued},
    error::{Error, ErrorCode, Result},
    object::{Body, Borrowed, Kind, Owned, Slab, Tag},
    per_process::PerProcess,
};
use ur_hal::{Address, Modules, Streams, Submission, Types};
use ur_ipc::{Importer, Remote, arena::Slot};
use ur_lock::locked;
use ur_sys::{ur_command_t, ur_queue_flags_t, ur_queue_native_desc_t};

pub(crate) type Context<D> = <D as Objects>::Context;
pub(crate) type Device<D> = <D as Objects>::Device;

/// A driver whose queues and events are the core's. What is asked here beside [`Streams`] goes when devices, memory objects
/// and graphs are the core's too.
pub trait HasStreams:
    Streams
    + BufferBackend
    + HasSamplers
    + RunsCode
    + Modules<Function = <Self as Types>::Function>
    + Objects<Queue = Queue<Self>, Event = Event<Self>, ExpCommandBuffer: Recorder<Self>>
{
    /// A queue's part in captures of commands; `()` where queues record nothing.
    type Capture: Default + fmt::Debug + Send + Sync;
    /// What an event stands for whose command was recorded by a queue; [`Infallible`](std::convert::Infallible) where none
    /// records.
    type Captured: fmt::Debug + Send + Sync;

    /// What tells the device from all others, for tickets of events that were made for it.
    ///
    /// # Errors
    /// Returns the driver's error.
    fn uuid(device: &Device<Self>) -> Result<[u8; 16]>;
    /// Whether the memory at an address is moved, so that hints about it have an effect.
    fn is_managed(at: Address) -> bool {
        Allocation::<Self::Memory>::find(at.into()).is_some_and(|found| found.usm() == Usm::Shared)
    }
    /// Where a buffer begins for commands on a device, as [`TakesCommands::buffer_at`](crate::command::TakesCommands).
    ///
    /// # Errors
    /// `INVALID_CONTEXT` for a device of another context; the driver's own.
    fn buffer_at(device: &Owned<Device<Self>>, buffer: &Mem<Self>) -> Result<Address>;
    /// What a device has for an image, as [`TakesCommands::image_at`](crate::command::TakesCommands).
    ///
    /// # Errors
    /// As for [`buffer_at`](Self::buffer_at).
    fn image_at<'m>(
        device: &Owned<Device<Self>>,
        image: &'m Mem<Self>,
    ) -> Result<&'m Arc<<Self as Types>::Image>> {
        let _ = (device, image);
        Error::unsupported("images")
    }
    /// Submits a command that may use objects ([`Ready::used`]), which are there until it is done, with their newest bytes where it runs.
    ///
    /// # Errors
    /// As for [`Streams::submit`].
    #[inline(always)]
    fn submit_using(
        queue: &Queue<Self>,
        submission: &Submission<'_, Self>,
        ready: &Ready<'_, Self>,
    ) -> ur_hal::Result<Option<Self::Point>> {
        let _ = ready;
        Self::submit(queue.stream(), submission)
    }
    /// Whether what is freed in a queue's order goes with the command ([`Used::Freed`](crate::command::Used::Freed)). Otherwise it is a deferred free.
    const FREES_WITH_COMMANDS: bool = false;

    /// As [`TakesCommands::allocate_in_order`](crate::command::TakesCommands).
    ///
    /// # Errors
    /// As `urEnqueueUSMDeviceAllocExp` documents them; then nothing is allocated.
    fn allocate_in_order(
        usm: Usm,
        queue: Borrowed<'_, Queue<Self>>,
        pool: Borrowed<'_, Self::UsmPool>,
        size: usize,
        events: &[Borrowed<'_, Event<Self>>],
        report: CompletionRequest,
    ) -> Result<Option<InOrder<Event<Self>>>> {
        let _ = (usm, queue, pool, size, events, report);
        Ok(None)
    }
    /// Frees memory in a queue's order where the queue itself does; gives it back where it does not.
    ///
    /// # Errors
    /// As for every command; then nothing is freed.
    fn free_in_order(
        queue: Borrowed<'_, Queue<Self>>,
        freeing: Freeing<Self::Memory>,
        events: &[Borrowed<'_, Event<Self>>],
        report: CompletionRequest,
    ) -> Result<FreedInOrder<Self>> {
        let _ = (queue, events, report);
        Ok(FreedInOrder::No(freeing))
    }

    /// Whether what is put into the queue now is captured by others, so that it does not run. See [`Replays`](crate::command_buffer::Replays).
    ///
    /// # Errors
    /// Returns the driver's error.
    fn is_captured(queue: &Queue<Self>) -> Result<bool> {
        let _ = queue;
        Ok(false)
    }
    /// Whether the queue records a command that waits for these events.
    ///
    /// # Errors
    /// For events that cannot be waited for together, or in no command of the queue now.
    #[inline(always)]
    fn is_recording(queue: &Queue<Self>, events: &[Borrowed<'_, Event<Self>>]) -> Result<bool> {
        let _ = (queue, events);
        Ok(false)
    }
    /// Records a command, which is to signal an event of the caller's if there is one.
    ///
    /// # Errors
    /// As captures document them.
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
    /// As [`TakesCommands::submit_graph`](crate::command::TakesCommands).
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
    /// Says of which form the native handle of a queue is, where there are several.
    fn tell_native_form(desc: Option<&ur_queue_native_desc_t>) {
        let _ = desc;
    }
    /// # Errors
    /// `UNSUPPORTED_FEATURE` for a native handle of another form than queues are made of.
    fn check_native_form(desc: &ur_queue_native_desc_t) -> Result<()> {
        let _ = desc;
        Ok(())
    }
}

/// Whether a queue itself frees memory.
#[derive(Debug)]
pub enum FreedInOrder<D: HasStreams> {
    /// It does, and this is the event of the command.
    Yes(Option<Owned<Event<D>>>),
    /// It is for the core to free.
    No(Freeing<D::Memory>),
}

/// What `ur_queue_handle_t` points at.
#[derive(Debug)]
pub struct Queue<D: HasStreams> {
    pub(super) stream: D::Stream,
    pub(super) context: Owned<Context<D>>,
    pub(super) device: Owned<Device<D>>,
    pub(super) flags: ur_queue_flags_t,
    pub(super) counters: Mutex<Counters>,
    capture: D::Capture,
}
impl<D: HasStreams> Body for Queue<D> {
    const TAG: Tag = Tag::new(D::BACKEND, Kind::Queue);
    const INVALID: ErrorCode = ErrorCode::InvalidQueue;
    fn slab() -> &'static Slab<Self> {
        D::statics().slab()
    }
}
impl<D: HasStreams> Queue<D> {
    pub(super) fn make(
        context: Owned<Context<D>>,
        device: Owned<Device<D>>,
        flags: ur_queue_flags_t,
        stream: D::Stream,
    ) -> Owned<Self> {
        let (counters, capture) = Default::default();
        Owned::new(Self { stream, context, device, flags, counters, capture })
    }
    /// The driver's stream.
    pub fn stream(&self) -> &D::Stream {
        &self.stream
    }
    /// The context it was made for, and the device that runs its commands.
    pub fn place(&self) -> (&Owned<Context<D>>, &Owned<Device<D>>) {
        (&self.context, &self.device)
    }
    /// The context it was made for.
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
    /// Which times the events of its commands tell.
    pub fn profile(&self) -> Profile {
        match self.flags.contains(ur_queue_flags_t::PROFILING_ENABLE) {
            true => Profile::Phases,
            false => Profile::Off,
        }
    }
    /// Its part in captures.
    pub fn capture(&self) -> &D::Capture {
        &self.capture
    }
    /// A failure of the driver itself is one of all that it does: what the stream owes to other processes never comes. What was
    /// refused changed nothing.
    pub(crate) fn note<T>(&self, outcome: ur_hal::Result<T>) -> Result<T> {
        use ur_hal::ErrorKind::{DependencyFailed, InvalidOperation};
        if let Err(error) = &outcome
            && !matches!(error.kind(), DependencyFailed | InvalidOperation)
        {
            locked(&self.counters).fail();
        }
        Ok(outcome?)
    }
}

/// What `ur_event_handle_t` points at.
#[derive(Debug)]
pub struct Event<D: HasStreams> {
    /// `None`: the queue's.
    pub(crate) context: Option<Owned<Context<D>>>,
    pub(crate) queue: Option<Owned<Queue<D>>>,
    pub(crate) command: ur_command_t,
    /// Which times it was made to tell. Of a reusable event the latest signal may tell some, too.
    pub(crate) profile: Profile,
    pub(crate) state: State<D>,
}
/// What an event stands for.
#[derive(Debug)]
pub(crate) enum State<D: HasStreams> {
    /// One command, or an event of the driver's that the application made.
    Point(D::Point),
    /// Several commands, which were submitted one by one.
    Run(Arc<Run<D>>),
    /// Nothing: complete from the beginning.
    Complete,
    /// What signalled it last in this process; `is_recorded`: executions of a recorded command signal it, and nothing else
    /// may.
    Latest { signal: Mutex<Option<Arc<Latest<D>>>>, is_recorded: bool },
    /// The driver's own, or a word that processes share.
    Shared(SharedPart<D>),
    /// A command that was recorded, and runs nowhere.
    Captured(D::Captured),
}
impl<D: HasStreams> Body for Event<D> {
    const TAG: Tag = Tag::new(D::BACKEND, Kind::Event);
    const INVALID: ErrorCode = ErrorCode::InvalidEvent;
    fn slab() -> &'static Slab<Self> {
        D::statics().slab()
    }
    #[inline]
    fn is_settled(&self) -> bool {
        match &self.state {
            State::Point(point) => D::is_settled(point),
            State::Run(run) => D::is_settled(&run.ended),
            _ => false,
        }
    }
}

/// What several commands have in common that were submitted one by one.
#[derive(Debug)]
pub(crate) struct Run<D: HasStreams> {
    /// Before all of them, if times are told.
    pub(crate) began: Option<D::Point>,
    /// Behind all of them.
    pub(crate) ended: D::Point,
}

/// The latest signal of an event, and which times it tells.
#[derive(Debug)]
pub(crate) struct Latest<D: HasStreams> {
    pub(crate) point: D::Point,
    pub(crate) profile: Profile,
}
/// What processes share of an event, or the driver signals again and again.
#[derive(Debug)]
pub(crate) enum Shareable<D: HasStreams> {
    /// A word: which counter, and which of its values, the event stands for.
    Word(Slot),
    /// The driver's own.
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
/// The same, as one handle of it knows it.
#[derive(Debug)]
pub(crate) struct SharedPart<D: HasStreams> {
    pub(crate) what: Shareable<D>,
    pub(crate) origin: Origin<D>,
    /// Whether it was ever offered to others: only then is there a ticket to withdraw.
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
            drop(gone); // not under the lock
        }
    }
}
/// Where an event comes from that processes share or the driver signals again and again.
#[derive(Debug)]
pub(crate) enum Origin<D: HasStreams> {
    /// Made here, and stays here.
    Private,
    /// Made here for this device, under this number.
    Made { object: u64, device: Owned<Device<D>> },
    /// Made here, and opened here too.
    OpenedHere,
    /// Opened from another process, which lends it for as long as its word lives; a point keeps what it was opened from.
    Opened { _lent: Option<Remote<Slot>> },
}

/// What a process has once of a driver's events.
pub(crate) struct SharedEvents<D: HasStreams> {
    pub(crate) words: Importer<Slot>,
    pub(crate) points: Importer<D::ArrivedPoint>,
    /// Those that were offered to others, by their numbers.
    offered: PerProcess<Mutex<HashMap<u64, Shareable<D>>>>,
    pub(crate) watch: Watch<Event<D>>,
}
impl<D: HasStreams> Default for SharedEvents<D> {
    /// Nothing is offered, nothing is open.
    fn default() -> Self {
        let backend = D::BACKEND as u16;
        Self {
            // Words of other backends too: they are the same for all.
            words: Importer::of_any_backend(ur_ipc::Kind::Event, backend),
            points: Importer::new(ur_ipc::Kind::Event, backend),
            offered: PerProcess::new(),
            watch: Watch::new(),
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
