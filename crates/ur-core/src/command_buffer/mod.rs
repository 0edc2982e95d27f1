//! Command buffers: what may be recorded when, and what came of it. What is recorded is what queues take as well, so that
//! this is the same over every backend; how all of it is executed as one is the backend's ([`Records`]). The entries are in
//! `entries.rs`, what changes afterwards in `update.rs`.
mod entries;
mod replay;
mod update;

pub use replay::Replays;

use crate::{
    command::{Exists, Place, Ready, Recorder, launch},
    kernels::arguments::RecordedArguments,
    over_driver::OverDriver,
    program::Kernel,
    queue::{Event, HasStreams},
};
use std::{
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, Weak,
        atomic::{AtomicU32, Ordering::Relaxed},
    },
};
use ur_adapter::{
    api::Objects,
    command::{Appended, Asked, CompletionRequest, Enqueued},
    default_answers::withdraw,
    error::{Error, ErrorCode, Result},
    object::{Body, Borrowed, Kind, Owned, Slab, Tag},
};
use ur_sys::*;

/// A backend that executes recorded commands, as often as its queues are told to. One that has no recordings of its own
/// [`Replays`].
pub trait Records:
    HasStreams
    + Objects<
        Event: fmt::Debug,
        ExpCommandBuffer = CommandBuffer<Self>,
        ExpCommandBufferCommand = Command<Self>,
    >
{
    /// One command that can be repeated, with all that it uses.
    type Step: Send;
    /// What executes the commands of one command buffer.
    type Recording: Send;
    /// Whether native commands append to the recording itself, so that nobody knows what is in it.
    const HAS_NATIVE_RECORDINGS: bool;

    /// One without commands.
    ///
    /// # Errors
    /// `UNSUPPORTED_FEATURE` where the driver executes none. Returns the driver's error.
    fn recording(place: Place<'_, Self>, is_profiled: bool) -> Result<Self::Recording>;
    /// A command that is repeated. Of a launch the command buffer keeps the kernel and the arguments.
    ///
    /// # Errors
    /// `UNSUPPORTED_FEATURE` for a command that cannot be.
    fn step(place: Place<'_, Self>, ready: &Ready<'_, Self>) -> Result<Self::Step>;
    /// The same once more.
    fn again(step: &Self::Step) -> Self::Step;
    /// Appends one more command while the command buffer is open. A backend that looks at all of them in
    /// [`close`](Self::close) has nothing to do.
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
    /// Makes it executable, for the first time or once more after a change.
    ///
    /// # Errors
    /// Returns the driver's error.
    fn close(
        recording: &mut Self::Recording,
        place: Place<'_, Self>,
        nodes: &[Node<Self>],
        change: Change,
    ) -> Result<()>;
    /// Puts one execution into a queue, as a command of this name. It follows those before.
    ///
    /// # Errors
    /// `IN_EVENT_LIST_EXEC_STATUS` if what it waits for has failed; the driver's own.
    fn execute(
        recording: &mut Self::Recording,
        nodes: &[Node<Self>],
        what: (Borrowed<'_, Self::Queue>, ur_command_t),
        events: &[Borrowed<'_, Self::Event>],
        report: CompletionRequest,
    ) -> Enqueued<Self>;
    /// Has a queue that records take all of these commands as one: [`graph::splice`](crate::graph::splice) where queues record.
    ///
    /// # Errors
    /// As captures document them.
    fn record_all(
        queue: Borrowed<'_, Self::Queue>,
        name: ur_command_t,
        nodes: &[Node<Self>],
        events: &[Borrowed<'_, Self::Event>],
        report: CompletionRequest,
    ) -> Enqueued<Self> {
        let _ = (queue, name, nodes, events, report);
        Error::unsupported("urQueueBeginGraphCaptureExp")
    }
    /// Its native handle.
    ///
    /// # Errors
    /// `UNSUPPORTED_FEATURE` where it has none.
    fn native_buffer(
        buffer: Borrowed<'_, CommandBuffer<Self>>,
        recording: &Self::Recording,
    ) -> Result<ur_native_handle_t>;
}

/// What `ur_exp_command_buffer_handle_t` points at.
#[derive(Debug)]
pub struct CommandBuffer<D: Records>(Arc<Shared<D>>);
/// What `ur_exp_command_buffer_command_handle_t` points at. It cannot be released: it goes with its command buffer.
#[derive(Debug)]
pub struct Command<D: Records> {
    of: Weak<Shared<D>>,
    place: usize,
}
/// What is new in a recording since it was made executable.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Change {
    /// What commands wait for and signal.
    Events,
    /// What commands do.
    Commands,
    /// Everything: it never was.
    All,
}
/// One recorded command.
pub struct Node<D: Records> {
    /// What its event says that it is.
    pub name: ur_command_t,
    /// What is done.
    pub step: D::Step,
    /// The earlier commands that it follows.
    pub after: Vec<usize>,
    /// What each execution waits for: as signalled when it is enqueued.
    pub waits: Vec<Owned<D::Event>>,
    /// What each execution signals.
    pub signal: Option<Owned<D::Event>>,
    /// What it launches, if it does: what can be changed later.
    launch: Option<Arc<Launch<D>>>,
    /// What it follows whatever it waits for.
    fixed: Vec<usize>,
    /// How many events it was said to wait for, its own command buffer's among them.
    waited: usize,
}
/// The arguments of a recorded launch.
type Arguments<D> = RecordedArguments<<D as Objects>::Mem, <D as Objects>::Sampler>;
/// A launch, as it was asked for.
struct Launch<D: Records> {
    /// What runs.
    kernel: Owned<Kernel<D>>,
    /// With what.
    arguments: Arguments<D>,
    /// What it may be replaced by, each with the arguments that it had last; at first it has none.
    choices: Vec<(Owned<Kernel<D>>, Arguments<D>)>,
    /// The first item.
    offset: Option<Vec<usize>>,
    /// How many items.
    global: Vec<usize>,
    /// How many of them make a group.
    local: Option<Vec<usize>>,
}
impl<D: Records> Launch<D> {
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
        launch::resolve(place, &asked, |ready| D::step(place, ready))
    }
}

struct Shared<D: Records> {
    context: Owned<<D as Objects>::Context>,
    device: Owned<<D as Objects>::Device>,
    is_updatable: bool,
    is_in_order: bool,
    is_profiled: bool,
    state: Mutex<State<D>>,
}
/// Locked while something is appended: drivers want recordings to be one thread's at a time.
struct State<D: Records> {
    recording: D::Recording,
    nodes: Vec<Node<D>>,
    is_final: bool,
    /// How the commands are others than those of the recording.
    change: Option<Change>,
    /// Whether native commands are in the recording.
    has_natives: bool,
    /// In the order in which they were handed out, which is that of their numbers; and what each is behind.
    points: Vec<(ur_exp_command_buffer_sync_point_t, Vec<usize>)>,
    handles: Vec<Owned<Command<D>>>,
}
impl<D: Records> fmt::Debug for Shared<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CommandBuffer").field("context", &self.context).finish_non_exhaustive()
    }
}
impl<D: Records> Body for CommandBuffer<D> {
    const TAG: Tag = Tag::new(D::BACKEND, Kind::CommandBuffer);
    const INVALID: ErrorCode = ErrorCode::InvalidCommandBufferExp;
    fn slab() -> &'static Slab<Self> {
        D::statics().slab()
    }
}
impl<D: Records> Body for Command<D> {
    const TAG: Tag = Tag::new(D::BACKEND, Kind::CommandBufferCommand);
    const INVALID: ErrorCode = ErrorCode::InvalidCommandBufferCommandHandleExp;
    fn slab() -> &'static Slab<Self> {
        D::statics().slab()
    }
}
impl<D: Records> Drop for CommandBuffer<D> {
    fn drop(&mut self) {
        let handles = std::mem::take(&mut self.0.lock().handles);
        for handle in handles {
            let gone = withdraw(handle.borrow());
            debug_assert!(gone.is_ok(), "callers cannot release a command");
        }
    }
}

fn refused<T>(code: ErrorCode, why: &'static str) -> Result<T> {
    Err(Error::new(code, why))
}

impl<D: Records> Exists for CommandBuffer<D> {
    const EXISTS: bool = true;
}
impl<D: Records> Recorder<D> for CommandBuffer<D> {
    fn place(&self) -> Place<'_, D> {
        self.0.place()
    }
    fn append(&self, ready: &Ready<'_, D>, asked: Asked<'_, OverDriver<D>>) -> Appended<D> {
        self.0.append(ready.name, D::step(self.0.place(), ready)?, None, asked)
    }
    fn execute(
        &self,
        queue: Borrowed<'_, D::Queue>,
        events: &[Borrowed<'_, D::Event>],
        report: CompletionRequest,
    ) -> Enqueued<D> {
        let (context, device) = D::place_of(&queue);
        if !self.0.context.same(context) || !self.0.device.same(device) {
            return refused(
                ErrorCode::InvalidQueue,
                "the command buffer was made for another context or device than the queue",
            );
        }
        let state = &mut *self.0.lock();
        if !state.is_final {
            return refused(ErrorCode::InvalidOperation, "finalize the command buffer first");
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
    fn lock(&self) -> MutexGuard<'_, State<D>> {
        ur_lock::locked(&self.state)
    }
    fn place(&self) -> Place<'_, D> {
        (&self.context, &self.device)
    }
    fn event(&self, name: ur_command_t) -> Owned<D::Event> {
        Event::of_recorded(self.context.clone(), name, self.is_profiled)
    }
    /// Records one command.
    ///
    /// # Errors
    /// `INVALID_OPERATION` once finalized, and for a handle that could change nothing;
    /// `INVALID_COMMAND_BUFFER_SYNC_POINT_EXP`; `INVALID_EVENT_WAIT_LIST`; the driver's own.
    fn append(
        self: &Arc<Self>,
        name: ur_command_t,
        step: D::Step,
        launch: Option<Arc<Launch<D>>>,
        asked: Asked<'_, OverDriver<D>>,
    ) -> Appended<D> {
        if asked.command && !self.is_updatable {
            return refused(
                ErrorCode::InvalidOperation,
                "only commands of a command buffer made updatable have handles",
            );
        }
        let mut state = self.lock();
        let fixed = state.follows(asked.points, self.is_in_order)?;
        let (place, waited) = (state.nodes.len(), asked.events.len());
        let (after, waits) = state.sort(asked.events, &fixed, place)?;
        D::record_step(&mut state.recording, self.place(), &step)?;
        let signal = asked.event.then(|| self.event(name));
        let shown = signal.clone();
        state.nodes.push(Node { name, step, after, waits, signal, launch, fixed, waited });
        let handle = asked.command.then(|| Owned::new(Command { of: Arc::downgrade(self), place }));
        state.handles.extend(handle.clone());
        Ok((state.point(vec![place]), shown, handle))
    }
    /// Records a copy of all that is in `other` by now; without one, what was done to the recording itself.
    fn append_all(
        &self,
        other: Option<&Self>,
        points: Option<&[ur_exp_command_buffer_sync_point_t]>,
    ) -> Result<ur_exp_command_buffer_sync_point_t> {
        let copies = other
            .map_or_else(Vec::new, |other| other.lock().nodes.iter().map(Node::again).collect());
        let mut state = self.lock();
        let before = state.follows(points, self.is_in_order)?;
        state.has_natives |= other.is_none() && D::HAS_NATIVE_RECORDINGS;
        let first = state.nodes.len();
        for mut copy in copies {
            D::record_step(&mut state.recording, self.place(), &copy.step)?;
            copy.shift(first, &before);
            let earlier = &state.nodes[..first];
            copy.follow_signals(|event| signalled_by(earlier, event));
            state.nodes.push(copy);
        }
        let mut ends: Vec<_> = (first..state.nodes.len()).collect();
        ends.retain(|end| !state.nodes[first..].iter().any(|node| node.after.contains(end)));
        Ok(state.point(if ends.is_empty() { before } else { ends }))
    }
}
impl<D: Records> Node<D> {
    /// One that cannot be changed.
    pub(crate) fn new(
        name: ur_command_t,
        step: D::Step,
        (after, waits): Sorted<D>,
        signal: Option<Owned<D::Event>>,
    ) -> Self {
        let (launch, fixed, waited) = (None, vec![], 0);
        Self { name, step, after, waits, signal, launch, fixed, waited }
    }
    /// The same once more.
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
    /// Puts it behind `before`, and all that it follows `first` places further.
    pub(crate) fn shift(&mut self, first: usize, before: &[usize]) {
        for list in [&mut self.after, &mut self.fixed] {
            list.iter_mut().for_each(|one| *one += first);
            if list.is_empty() {
                list.extend(before);
            }
        }
    }
}
impl<D: Records> Node<D> {
    /// Has a copy of a command from elsewhere follow the commands of this recording that signal what it waits for: `find` tells
    /// where these are. Where it was recorded, their events were somebody else's.
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
/// Which of the commands signal this event: several do where a child was appended more than once.
fn signalled_by<D: Records>(nodes: &[Node<D>], event: Borrowed<'_, D::Event>) -> Vec<usize> {
    let is_its = |node: &Node<D>| node.signal.as_ref().is_some_and(|one| one.same(&event));
    (0..nodes.len()).filter(|&place| is_its(&nodes[place])).collect()
}
/// The commands that one follows, and the events that each execution waits for.
type Sorted<D> = (Vec<usize>, Vec<Owned<<D as Objects>::Event>>);
impl<D: Records> State<D> {
    /// The commands that one behind these sync points follows.
    ///
    /// # Errors
    /// `INVALID_OPERATION` once finalized; `INVALID_COMMAND_BUFFER_SYNC_POINT_EXP`.
    fn follows(
        &self,
        points: Option<&[ur_exp_command_buffer_sync_point_t]>,
        is_in_order: bool,
    ) -> Result<Vec<usize>> {
        if self.is_final {
            return refused(
                ErrorCode::InvalidOperation,
                "the command buffer is finalized: it takes no more commands",
            );
        }
        let mut after = vec![];
        for point in points.unwrap_or_default() {
            let found = self.points.binary_search_by_key(point, |(number, _)| *number);
            let found = found.map_err(|_| {
                Error::new(
                    ErrorCode::InvalidCommandBufferSyncPointExp,
                    format!("{point} is no sync point of this command buffer"),
                )
            })?;
            after.extend(&self.points[found].1);
        }
        if is_in_order {
            after.extend(self.points.iter().next_back().into_iter().flat_map(|(_, places)| places));
        }
        Ok(after)
    }
    /// Which of `events` are those of commands before `place`, which follows `fixed`, and which are others'.
    ///
    /// # Errors
    /// `INVALID_EVENT_WAIT_LIST` for an event of the command itself or of a later one.
    fn sort(
        &self,
        events: &[Borrowed<'_, D::Event>],
        fixed: &[usize],
        place: usize,
    ) -> Result<Sorted<D>> {
        let (mut after, mut waits) = (fixed.to_vec(), vec![]);
        for event in events {
            event.check_runs()?;
            let places = signalled_by(&self.nodes, *event);
            let earlier = || places.iter().copied().filter(|&one| one < place);
            match places.first() {
                Some(&first) if first < place => after.extend(earlier()),
                Some(_) => {
                    return refused(
                        ErrorCode::InvalidEventWaitList,
                        "a command cannot wait for its own event or that of one appended after it",
                    );
                }
                None => waits.push(event.own()?),
            }
        }
        after.sort_unstable();
        after.dedup();
        Ok((after, waits))
    }
    /// A sync point behind these commands. No two command buffers have the same.
    fn point(&mut self, behind: Vec<usize>) -> ur_exp_command_buffer_sync_point_t {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        let number = NEXT.fetch_add(1, Relaxed);
        self.points.push((number, behind));
        number
    }
}
