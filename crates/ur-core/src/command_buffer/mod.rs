//! Command buffers: which commands may be recorded when, what each follows, and its events. They record the same
//! commands that queues take, so this code serves every backend; how the recorded commands are executed together is up
//! to the backend ([`Records`]). The entries are in `entries.rs`; `record.rs` appends commands, `update.rs` changes them after
//! finalization.
mod entries;
mod record;
mod replay;
mod signallers;
mod step;
mod sync_points;
mod update;

pub use replay::Replays;
pub(crate) use signallers::{Signallers, address};
pub use step::Step;
use sync_points::SyncPoints;

use crate::{
    command::{Exists, Place, Ready, Recorder, launch},
    kernels::arguments::RecordedArguments,
    over_driver::OverDriver,
    process_mutex::ProcessMutex,
    program::{Kernel, Placed},
    queue::{Event, HasStreams},
};
use std::{
    fmt,
    sync::{Arc, MutexGuard, Weak},
};
use ur_adapter::{
    api::Objects,
    command::{Appended, Asked, CompletionRequest, Enqueued},
    default_answers::withdraw,
    error::{Error, ErrorCode, Result},
    object::{Borrowed, Owned},
};
use ur_sys::*;

/// A backend that executes recorded commands repeatedly. A backend without native recordings implements [`Replays`]
/// instead.
pub trait Records:
    HasStreams
    + Objects<
        Event: fmt::Debug,
        ExpCommandBuffer = CommandBuffer<Self>,
        ExpCommandBufferCommand = Command<Self>,
    >
{
    /// One repeatable command, with all objects that it uses.
    type Step: Send;
    /// The backend's executable form of one command buffer.
    type Recording: Send;
    /// Whether native commands are appended to the recording itself, so that its contents are unknown to the core.
    const HAS_NATIVE_RECORDINGS: bool;

    /// Makes an empty recording.
    ///
    /// # Errors
    /// `UNSUPPORTED_FEATURE` if the driver cannot execute recordings. Returns the driver's error, mapped as in
    /// `error.rs`.
    fn recording(place: Place<'_, Self>, is_profiled: bool) -> Result<Self::Recording>;
    /// Makes a repeatable command. For a launch, the command buffer keeps the kernel and the arguments alive.
    ///
    /// # Errors
    /// `UNSUPPORTED_FEATURE` for a command that cannot be repeated.
    fn step(place: Place<'_, Self>, ready: &Ready<'_, Self>) -> Result<Self::Step>;
    /// A copy of a repeatable command.
    fn again(step: &Self::Step) -> Self::Step;
    /// Appends one more command while the command buffer is open. A backend that handles all commands in
    /// [`close`](Self::close) need not implement this.
    ///
    /// # Errors
    /// Returns the driver's error.
    fn record_step(
        recording: &mut Self::Recording,
        place: Place<'_, Self>,
        step: &Self::Step,
    ) -> Result<()> {
        let _ = (recording, place, step);
        Ok(())
    }
    /// Makes the recording executable: for the first time, or again after a change.
    ///
    /// # Errors
    /// Returns the driver's error.
    fn close(
        recording: &mut Self::Recording,
        place: Place<'_, Self>,
        nodes: &[Node<Self>],
        change: Change,
    ) -> Result<()>;
    /// Enqueues one execution, as a command with this name. It follows all earlier executions.
    ///
    /// # Errors
    /// `IN_EVENT_LIST_EXEC_STATUS` if an event of the wait list has failed. Returns the driver's error, mapped as in
    /// `error.rs`.
    fn execute(
        recording: &mut Self::Recording,
        nodes: &[Node<Self>],
        what: (Borrowed<'_, Self::Queue>, ur_command_t),
        events: &[Borrowed<'_, Self::Event>],
        report: CompletionRequest,
    ) -> Enqueued<Self>;
    /// Records all of these commands as one on a queue that captures: by [`graph::splice`](crate::graph::splice).
    ///
    /// # Errors
    /// As documented for graph capture.
    fn record_all(
        queue: Borrowed<'_, Self::Queue>,
        name: ur_command_t,
        nodes: &[Node<Self>],
        events: &[Borrowed<'_, Self::Event>],
        report: CompletionRequest,
    ) -> Enqueued<Self>;
    /// The native handle.
    ///
    /// # Errors
    /// `UNSUPPORTED_FEATURE` if it has none.
    fn native_buffer(
        buffer: Borrowed<'_, CommandBuffer<Self>>,
        recording: &Self::Recording,
    ) -> Result<ur_native_handle_t>;
}

/// What `ur_exp_command_buffer_handle_t` points at.
#[derive(Debug)]
pub struct CommandBuffer<D: Records>(Arc<Shared<D>>);
/// What `ur_exp_command_buffer_command_handle_t` points at. Callers cannot release it; it is released with its command
/// buffer.
#[derive(Debug)]
pub struct Command<D: Records> {
    of: Weak<Shared<D>>,
    place: usize,
}
/// What has changed in a command buffer since its recording was made executable. Ordered: each includes those before.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Change {
    /// Which events commands wait for and signal.
    Events,
    /// The commands themselves.
    Commands,
    /// Everything: the recording has never been made executable.
    All,
}
/// One recorded command.
pub struct Node<D: Records> {
    /// The command type that its event reports.
    pub name: ur_command_t,
    /// The operation.
    pub step: D::Step,
    /// The earlier commands that it follows, by index.
    pub after: Vec<usize>,
    /// The events that each execution waits for: their latest signals when the execution is enqueued.
    pub waits: Vec<Owned<D::Event>>,
    /// The event that each execution signals.
    pub signal: Option<Owned<D::Event>>,
    /// For a launch, the description that updates change.
    launch: Option<Arc<Launch<D>>>,
    /// The commands that it follows independently of its wait list.
    fixed: Vec<usize>,
    /// The length of its wait list when it was appended, including events of the same command buffer.
    waited: usize,
}
/// The arguments of a recorded launch.
type Arguments<D> = RecordedArguments<<D as Objects>::Mem, <D as Objects>::Sampler>;
/// A recorded launch, as the caller described it.
struct Launch<D: Records> {
    /// The kernel to run.
    kernel: Owned<Kernel<D>>,
    /// Its arguments.
    arguments: Arguments<D>,
    /// The alternative kernels, each with the arguments that it had when it was last in use; none at first.
    choices: Vec<(Owned<Kernel<D>>, Arguments<D>)>,
    /// The global offset.
    offset: Option<Vec<usize>>,
    /// The global size, in items, for each dimension.
    global: Vec<usize>,
    /// The group size, in items.
    local: Option<Vec<usize>>,
}
impl<D: Records> Launch<D> {
    /// Resolves the launch to a repeatable command.
    ///
    /// # Errors
    /// As for every launch.
    fn step(&self, place: Place<'_, D>) -> Result<D::Step> {
        let asked = launch::Asked {
            kernel: self.kernel.borrow(),
            offset: self.offset.as_deref(),
            global: &self.global,
            local: self.local.as_deref(),
            arguments: &self.arguments,
            properties: None,
        };
        launch::resolve(place, &asked, |ready| {
            ready.check_context(place.0)?;
            D::step(place, ready)
        })
    }
}

struct Shared<D: Records> {
    context: Owned<<D as Objects>::Context>,
    device: Owned<<D as Objects>::Device>,
    is_updatable: bool,
    is_in_order: bool,
    is_profiled: bool,
    state: ProcessMutex<State<D>>,
}
/// Locked while a command is appended, because drivers do not allow concurrent changes of a recording.
struct State<D: Records> {
    recording: D::Recording,
    nodes: Vec<Node<D>>,
    signallers: Signallers,
    is_final: bool,
    /// What differs from the recording as it was last made executable.
    change: Option<Change>,
    /// Whether the recording contains native commands.
    has_natives: bool,
    points: SyncPoints,
    handles: Vec<Owned<Command<D>>>,
}
impl<D: Records> fmt::Debug for Shared<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CommandBuffer").field("context", &self.context).finish_non_exhaustive()
    }
}
body!(CommandBuffer: Records, CommandBuffer, InvalidCommandBufferExp);
body!(Command: Records, CommandBufferCommand, InvalidCommandBufferCommandHandleExp);
impl<D: Records> Drop for CommandBuffer<D> {
    fn drop(&mut self) {
        let Ok(mut state) = self.0.lock() else { return }; // the handles are the parent's
        let handles = std::mem::take(&mut state.handles);
        drop(state);
        for handle in handles {
            let gone = withdraw(handle.borrow());
            debug_assert!(gone.is_ok(), "callers cannot release a command");
        }
    }
}

impl<D: Records> Exists for CommandBuffer<D> {
    const EXISTS: bool = true;
}
impl<D: Records> Recorder<D> for CommandBuffer<D> {
    fn place(&self) -> Place<'_, D> {
        self.0.place()
    }
    fn append(&self, ready: &Ready<'_, D>, asked: Asked<'_, OverDriver<D>>) -> Appended<D> {
        let place = self.0.place();
        ready.check_context(place.0)?;
        self.0.append(ready.name, D::step(place, ready)?, None, asked)
    }
    fn execute(
        &self,
        queue: Borrowed<'_, D::Queue>,
        events: &[Borrowed<'_, D::Event>],
        report: CompletionRequest,
    ) -> Enqueued<D> {
        let (context, device) = queue.place();
        if !self.0.context.same(context) || !self.0.device.same(device) {
            return Error::refuse(
                ErrorCode::InvalidQueue,
                "the command buffer was made for another context or device than the queue",
            );
        }
        let state = &mut *self.0.lock()?;
        if !state.is_final {
            return Error::refuse(ErrorCode::InvalidOperation, "finalize the command buffer first");
        }
        if let Some(change) = state.change {
            D::close(&mut state.recording, self.0.place(), &state.nodes, change)?;
            state.change = None;
        }
        let name = ur_command_t::ENQUEUE_COMMAND_BUFFER_EXP;
        if D::is_recording(&queue, events)? {
            return D::record_all(queue, name, &state.nodes, events, report);
        }
        D::execute(&mut state.recording, &state.nodes, (queue, name), events, report)
    }
}
impl<D: Records> Shared<D> {
    /// Locks the commands.
    ///
    /// # Errors
    /// `UNINITIALIZED` in a forked child.
    fn lock(&self) -> Result<MutexGuard<'_, State<D>>> {
        self.state.lock()
    }
    fn place(&self) -> Place<'_, D> {
        (&self.context, &self.device)
    }
    fn event(&self, name: ur_command_t) -> Owned<D::Event> {
        Event::of_recorded(self.context.clone(), name, self.is_profiled)
    }
}
/// The commands that a command follows, and the events that each execution of it waits for.
type Sorted<D> = (Vec<usize>, Vec<Owned<<D as Objects>::Event>>);
impl<D: Records> Node<D> {
    /// A command that cannot be updated.
    pub(crate) fn new(
        name: ur_command_t,
        step: D::Step,
        (after, waits): Sorted<D>,
        signal: Option<Owned<D::Event>>,
    ) -> Self {
        let (launch, fixed, waited) = (None, vec![], 0);
        Self { name, step, after, waits, signal, launch, fixed, waited }
    }
    /// A copy of the command.
    pub(crate) fn again(&self) -> Self {
        Self {
            name: self.name,
            step: D::again(&self.step),
            after: self.after.clone(),
            waits: self.waits.clone(),
            signal: self.signal.clone(),
            launch: self.launch.clone(),
            fixed: self.fixed.clone(),
            waited: self.waited,
        }
    }
    /// Adjusts the indices of a copy: `first` is added to all that it refers to, and it follows `before` if it followed
    /// nothing.
    pub(crate) fn shift(&mut self, first: usize, before: &[usize]) {
        for list in [&mut self.after, &mut self.fixed] {
            list.iter_mut().for_each(|one| *one += first);
            if list.is_empty() {
                list.extend(before);
            }
        }
    }
    /// Resolves the events for which a copied command waits: where commands of this recording signal such an event, the
    /// copy follows these commands. `find` returns their indices. In the original recording, the event was one from
    /// outside.
    pub(crate) fn follow_signals(&mut self, find: impl Fn(Borrowed<'_, D::Event>) -> Vec<usize>) {
        self.waits.retain(|event| {
            let places = find(event.borrow());
            self.after.extend(&places);
            places.is_empty()
        });
        self.after.sort_unstable();
        self.after.dedup();
    }
}
/// The commands from index `first` on that no other command follows.
pub(crate) fn ends<D: Records>(nodes: &[Node<D>], first: usize) -> Vec<usize> {
    let mut is_end = vec![true; nodes.len() - first];
    let followed = nodes[first..].iter().flat_map(|node| &node.after);
    followed.filter(|&&one| one >= first).for_each(|&one| is_end[one - first] = false);
    (first..nodes.len()).filter(|&place| is_end[place - first]).collect()
}
