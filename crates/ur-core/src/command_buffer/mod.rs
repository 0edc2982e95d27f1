//! Command buffers: which commands may be recorded when, what each follows, and its events. They record the same
//! commands that queues take, so this code serves every backend. `recording.rs` executes them: as graphs of the driver, or
//! as `replay.rs` does for drivers without graphs. The entries are in `entries.rs`; `record.rs` appends commands,
//! `update.rs` changes them after finalization.
mod entries;
mod node;
mod record;
mod recording;
mod replay;
mod signallers;
mod step;
mod sync_points;
mod update;

pub use node::Node;
pub(crate) use node::{Change, ends};
use node::{Launch, Sorted};
pub(crate) use recording::Recording;
pub(crate) use replay::Part;
pub(crate) use signallers::{Signallers, address};
pub(crate) use step::Step;
use sync_points::SyncPoints;

use crate::{
    command::{Place, Ready, Recorder},
    over_driver::OverDriver,
    process_mutex::ProcessMutex,
    program::Placed,
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

/// A backend whose command buffers are the core's. [`HasGraphs`](crate::graph::HasGraphs) is sufficient for that.
pub trait Records:
    HasStreams
    + Objects<
        Event: fmt::Debug,
        ExpCommandBuffer = CommandBuffer<Self>,
        ExpCommandBufferCommand = Command<Self>,
    >
{
    /// Records all of these commands as one on a queue that captures.
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
    recording: Recording<D>,
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

impl<D: Records> Recorder<D> for CommandBuffer<D> {
    fn place(&self) -> Place<'_, D> {
        self.0.place()
    }
    fn append(&self, ready: &Ready<'_, D>, asked: Asked<'_, OverDriver<D>>) -> Appended<D> {
        let place = self.0.place();
        ready.check_context(place.0)?;
        self.0.append(ready.name, Step::of(place, ready)?, None, asked)
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
        let mut locked = self.0.lock()?;
        let state = &mut *locked;
        if !state.is_final {
            return Error::refuse(ErrorCode::InvalidOperation, "finalize the command buffer first");
        }
        if let Some(change) = state.change {
            state.recording.close(&state.nodes, change)?;
            state.change = None;
        }
        let name = ur_command_t::ENQUEUE_COMMAND_BUFFER_EXP;
        if D::is_recording(&queue, events)? {
            return D::record_all(queue, name, &state.nodes, events, report);
        }
        let (of, mut part) = ((queue, name), Part::Nothing);
        let made = state.recording.submit(&state.nodes, of, events, report, &mut part);
        drop(locked);
        part.wait(&queue);
        made
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
