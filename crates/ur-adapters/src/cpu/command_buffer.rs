//! Command buffers as C knows them: what may be recorded when, and what came of it. How a recording
//! runs is `recording.rs`'s; the entries are in `entries.rs`, what changes afterwards in `update.rs`.
mod entries;
mod update;

use super::{
    Context, Cpu, Device, Event, Queue,
    capture::{self, taker},
    engine::Work,
    enqueue::Made,
    recording::{Node, Recording, Replay},
};
use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicU32, Ordering::Relaxed},
    },
};
use update::Launch;
use ur_adapter::blank::withdraw;
use ur_adapter::{
    command::{Asked, Report},
    error::{Error, ErrorCode, Result},
    object::{Borrowed, Owned},
};
use ur_sys::{ur_command_t, ur_exp_command_buffer_sync_point_t};

/// What `ur_exp_command_buffer_handle_t` points at.
#[derive(Debug)]
pub struct CommandBuffer(Arc<Shared>);
/// What `ur_exp_command_buffer_command_handle_t` points at. C has no way to release it: it goes with
/// its command buffer.
#[derive(Debug)]
pub struct Command {
    of: Weak<Shared>,
    place: usize,
}

#[derive(Debug)]
struct Shared {
    context: Owned<Context>,
    device: Owned<Device>,
    is_updatable: bool,
    is_in_order: bool,
    is_profiled: bool,
    replay: Replay,
    state: Mutex<State>,
}
#[derive(Debug, Default)]
struct State {
    is_final: bool,
    /// In the order in which they were handed out, which is that of their numbers.
    points: Vec<(ur_exp_command_buffer_sync_point_t, usize)>,
    handles: Vec<Owned<Command>>,
    /// What can be changed later, by the node's place.
    changeable: HashMap<usize, Changeable>,
}
#[derive(Debug)]
struct Changeable {
    launch: Option<Launch>,
    /// What it follows whatever it waits for.
    fixed: Vec<usize>,
    /// How many events it waits for.
    waits: usize,
}
impl Drop for CommandBuffer {
    fn drop(&mut self) {
        let handles = std::mem::take(&mut self.0.lock().handles);
        for handle in handles {
            let gone = withdraw(handle.borrow());
            debug_assert!(gone.is_ok(), "C cannot release a command");
        }
    }
}

/// What C asks of every command that it appends.
type Ask<'call> = Asked<'call, Cpu>;
/// What C gets for it.
type Appended = ur_adapter::command::Appended<Cpu>;

fn refused<T>(code: ErrorCode, why: &'static str) -> Result<T> {
    Err(Error::new(code, why))
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Records one command.
    ///
    /// # Errors
    /// `INVALID_OPERATION` once finalized, and for a handle that could change nothing;
    /// `INVALID_COMMAND_BUFFER_SYNC_POINT_EXP`.
    fn append(
        self: &Arc<Self>,
        command: ur_command_t,
        work: Work,
        launch: Option<Launch>,
        ask: Ask<'_>,
    ) -> Appended {
        if ask.command && !self.is_updatable {
            return refused(
                ErrorCode::InvalidOperation,
                "only commands of a command buffer made updatable have handles",
            );
        }
        let mut state = self.lock();
        let fixed = self.follows(&state, ask.points)?;
        let signal =
            ask.event.then(|| Event::of_recorded(self.context.clone(), command, self.is_profiled));
        let place = self.replay.edit(|recording| {
            let (after, waits) = sort(recording, ask.events, &fixed, recording.nodes.len())?;
            Ok::<_, Error>(recording.push(Node {
                command,
                work,
                after,
                waits,
                signal: signal.clone(),
            }))
        })?;
        state.changeable.insert(place, Changeable { launch, fixed, waits: ask.events.len() });
        let handle = ask.command.then(|| Owned::new(Command { of: Arc::downgrade(self), place }));
        state.handles.extend(handle.clone());
        Ok((state.point(place), signal, handle))
    }
    /// Records a copy of all that is in `other` by now.
    fn append_all(
        &self,
        other: Option<&Recording>,
        points: Option<&[ur_exp_command_buffer_sync_point_t]>,
    ) -> Result<ur_exp_command_buffer_sync_point_t> {
        let mut state = self.lock();
        let after = self.follows(&state, points)?;
        let (command, empty) = (ur_command_t::ENQUEUE_NATIVE_EXP, Recording::default());
        let place = self
            .replay
            .edit(|recording| recording.splice(other.unwrap_or(&empty), command, after, vec![]));
        Ok(state.point(place))
    }
    /// The nodes that a command behind these sync points follows.
    fn follows(
        &self,
        state: &State,
        points: Option<&[ur_exp_command_buffer_sync_point_t]>,
    ) -> Result<Vec<usize>> {
        if state.is_final {
            return refused(
                ErrorCode::InvalidOperation,
                "the command buffer is finalized: it takes no more commands",
            );
        }
        let mut after = points
            .unwrap_or_default()
            .iter()
            .map(|point| {
                let found = state.points.binary_search_by_key(point, |(number, _)| *number);
                found.map(|at| state.points[at].1).map_err(|_| {
                    Error::new(
                        ErrorCode::InvalidCommandBufferSyncPointExp,
                        format!("{point} is no sync point of this command buffer"),
                    )
                })
            })
            .collect::<Result<Vec<_>>>()?;
        if self.is_in_order {
            after.extend(state.points.last().map(|(_, place)| *place));
        }
        Ok(after)
    }
}
impl State {
    /// A sync point after the node at `place`. No two command buffers have the same.
    fn point(&mut self, place: usize) -> ur_exp_command_buffer_sync_point_t {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        let number = NEXT.fetch_add(1, Relaxed);
        self.points.push((number, place));
        number
    }
}
/// Which of `events` are those of nodes before `place`, which follow `fixed`, and which are others'.
fn sort(
    recording: &Recording,
    events: &[Borrowed<'_, Event>],
    fixed: &[usize],
    place: usize,
) -> Result<(Vec<usize>, Vec<Owned<Event>>)> {
    let (mut after, mut waits) = (fixed.to_vec(), vec![]);
    for event in events {
        if event.captured().is_some() {
            return Err(capture::internal());
        }
        let is_its = |node: &Node| node.signal.as_ref().is_some_and(|one| one.same(event));
        match recording.nodes.iter().position(is_its) {
            Some(earlier) if earlier < place => after.push(earlier),
            Some(_) => {
                return refused(
                    ErrorCode::InvalidEventWaitList,
                    "a command cannot wait for its own event or that of one appended after it",
                );
            }
            None => waits.push(event.own()?),
        }
    }
    Ok((after, waits))
}

/// `urEnqueueCommandBufferExp`.
///
/// # Errors
/// `INVALID_OPERATION` unless it is finalized; `INVALID_QUEUE` for a queue of another context or
/// device.
pub(super) fn enqueue(
    queue: Borrowed<'_, Queue>,
    buffer: Borrowed<'_, CommandBuffer>,
    events: &[Borrowed<'_, Event>],
    want_event: bool,
) -> Made {
    let shared = &buffer.0;
    if !shared.lock().is_final {
        return refused(ErrorCode::InvalidOperation, "finalize the command buffer first");
    }
    if !shared.context.same(queue.context()) || !shared.device.same(queue.device()) {
        return refused(
            ErrorCode::InvalidQueue,
            "the command buffer was made for another context or device than the queue",
        );
    }
    let command = ur_command_t::ENQUEUE_COMMAND_BUFFER_EXP;
    match taker(queue, events)? {
        Some(taker) => {
            taker.splice(command, events, &shared.replay.copy(), Report::event(want_event))
        }
        None => shared.replay.enqueue(queue, command, events, want_event),
    }
}
