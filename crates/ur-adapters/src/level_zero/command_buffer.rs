//! Command buffers as C knows them: regular, in-order command lists of the driver's, and beside each
//! what it was made of, so that it can be made again when something in it changes. The entries are in
//! `entries.rs`, the commands on buffers in `buffers.rs`, what changes afterwards in `update.rs`.
//!
//! All commands run one after another: a sync point says nothing more. What one of them waits for, the
//! whole execution waits for; and the events of its commands are signalled when it is done.
mod buffers;
mod entries;
mod update;

use super::{
    Context, Device, Event, LevelZero, Queue, clock,
    memory::Memory,
    native::{
        event::EventKind,
        list::{List, NativeList, Step},
    },
    signal::{Home, Signal, Times},
    submission::{Made, Submission},
    work::Work,
};
use crate::memory::deferred_free;
use crate::profiling::Profile;
use std::{
    collections::HashMap,
    fmt,
    ptr::null,
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
pub struct CommandBufferCommand {
    of: Weak<Shared>,
    place: usize,
}
use CommandBufferCommand as Command;

/// One command.
struct Node {
    step: Step,
    command: ur_command_t,
    /// What each execution waits for: as signalled when it is enqueued.
    waits: Vec<Owned<Event>>,
    /// How many events C said that it waits for, its own buffer's among them.
    waited: usize,
    /// What each execution signals.
    signal: Option<Owned<Event>>,
}

#[derive(Debug)]
struct Shared {
    context: Owned<Context>,
    device: Owned<Device>,
    is_updatable: bool,
    is_in_order: bool,
    is_profiled: bool,
    state: Mutex<State>,
}
/// Locked while something is appended: the driver wants lists to be one thread's at a time.
struct State {
    list: Arc<NativeList>,
    nodes: Vec<Node>,
    is_final: bool,
    /// Whether the list is not what the commands say any more.
    is_stale: bool,
    /// Whether C appended to the list itself: nobody knows what.
    has_natives: bool,
    /// In the order in which they were handed out, which is that of their numbers.
    points: Vec<ur_exp_command_buffer_sync_point_t>,
    handles: Vec<Owned<Command>>,
    /// What can be changed later, by the command's place.
    launches: HashMap<usize, Arc<Launch>>,
    /// The mark behind the last execution.
    last: Option<(Arc<Work>, EventKind)>,
}
impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("State").field("nodes", &self.nodes.len()).finish_non_exhaustive()
    }
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
impl Drop for Shared {
    /// The list may be under way.
    fn drop(&mut self) {
        let context = self.context.as_handle().addr();
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some((work, mark)) = state.last.take() {
            work.cache().give(mark, false);
            deferred_free::leave::<Memory>(context, Arc::clone(&state.list));
        }
    }
}

/// What C asks of every command that it appends.
type Ask<'call> = Asked<'call, LevelZero>;
/// What C gets for it.
type Appended = ur_adapter::command::Appended<LevelZero>;

fn refused<T>(code: ErrorCode, why: &'static str) -> Result<T> {
    Err(Error::new(code, why))
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
    fn fresh_list(&self) -> Result<Arc<NativeList>> {
        let ordinal = self.device.compute()?.ordinal;
        let list = NativeList::regular(self.context.native(), self.device.raw(), ordinal, null())?;
        Ok(Arc::new(list))
    }
    fn turn(&self, list: &NativeList) -> Result<List<'static>> {
        let engines = (self.device.raw(), self.device.compute()?.longest_pattern);
        Ok(List::new(list.raw(), engines, &[], None))
    }
    /// Records one command.
    ///
    /// # Errors
    /// `INVALID_OPERATION` once finalized, and for a handle that could change nothing;
    /// `INVALID_COMMAND_BUFFER_SYNC_POINT_EXP`; `INVALID_EVENT_WAIT_LIST`; the driver's own.
    fn append(
        self: &Arc<Self>,
        command: ur_command_t,
        step: Step,
        launch: Option<Arc<Launch>>,
        ask: Ask<'_>,
    ) -> Appended {
        if ask.command && !self.is_updatable {
            return refused(
                ErrorCode::InvalidOperation,
                "only commands of a command buffer made updatable have handles",
            );
        }
        let mut state = self.lock();
        state.check_points(ask.points)?;
        let place = state.nodes.len();
        let (waits, waited) = (state.others(ask.events, place)?, ask.events.len());
        step(&self.turn(&state.list)?)?;
        let signal = ask.event.then(|| self.event(command));
        state.nodes.push(Node { step, command, waits, waited, signal: signal.clone() });
        if let Some(launch) = launch {
            state.launches.insert(place, launch);
        }
        let handle = ask.command.then(|| Owned::new(Command { of: Arc::downgrade(self), place }));
        state.handles.extend(handle.clone());
        Ok((state.point(), signal, handle))
    }
    fn event(&self, command: ur_command_t) -> Owned<Event> {
        let (context, device) = (self.context.clone(), self.device.clone());
        Event::of_recorded(context, device, command, self.is_profiled)
    }
    /// The list as the commands say it, closed.
    fn current(&self, state: &mut State) -> Result<()> {
        if !state.is_stale {
            return Ok(());
        }
        let fresh = self.fresh_list()?;
        let turn = self.turn(&fresh)?;
        state.nodes.iter().try_for_each(|node| (node.step)(&turn))?;
        fresh.close()?;
        let old = std::mem::replace(&mut state.list, fresh);
        state.is_stale = false;
        deferred_free::leave::<Memory>(self.context.as_handle().addr(), old);
        Ok(())
    }
}
impl State {
    fn new(list: NativeList) -> Self {
        Self {
            list: Arc::new(list),
            nodes: vec![],
            is_final: false,
            is_stale: false,
            has_natives: false,
            points: vec![],
            handles: vec![],
            launches: HashMap::new(),
            last: None,
        }
    }
    /// # Errors
    /// `INVALID_OPERATION` once finalized; `INVALID_COMMAND_BUFFER_SYNC_POINT_EXP`.
    fn check_points(&self, points: Option<&[ur_exp_command_buffer_sync_point_t]>) -> Result<()> {
        if self.is_final {
            return refused(
                ErrorCode::InvalidOperation,
                "the command buffer is finalized: it takes no more commands",
            );
        }
        let is_strange = |point: &&u32| self.points.binary_search(point).is_err();
        match points.unwrap_or_default().iter().find(is_strange) {
            None => Ok(()),
            Some(point) => Err(Error::new(
                ErrorCode::InvalidCommandBufferSyncPointExp,
                format!("{point} is no sync point of this command buffer"),
            )),
        }
    }
    /// Those of the events that are not of commands before `place`: those are waited for anyway.
    ///
    /// # Errors
    /// `INVALID_EVENT_WAIT_LIST` for an event of the command itself or of a later one.
    fn others(&self, events: &[Borrowed<'_, Event>], place: usize) -> Result<Vec<Owned<Event>>> {
        let mut others = vec![];
        for event in events {
            let is_its = |node: &Node| node.signal.as_ref().is_some_and(|one| one.same(event));
            match self.nodes.iter().position(is_its) {
                Some(earlier) if earlier < place => {}
                Some(_) => {
                    return refused(
                        ErrorCode::InvalidEventWaitList,
                        "a command cannot wait for its own event or that of one appended after it",
                    );
                }
                None => others.push(event.own()?),
            }
        }
        Ok(others)
    }
    /// A sync point after all so far. No two command buffers have the same.
    fn point(&mut self) -> ur_exp_command_buffer_sync_point_t {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        let number = NEXT.fetch_add(1, Relaxed);
        self.points.push(number);
        number
    }
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
    if !shared.context.same(queue.context()) || !shared.device.same(queue.device()) {
        return refused(
            ErrorCode::InvalidQueue,
            "the command buffer was made for another context or device than the queue",
        );
    }
    let mut state = shared.lock();
    if !state.is_final {
        return refused(ErrorCode::InvalidOperation, "finalize the command buffer first");
    }
    shared.current(&mut state)?;
    let waits: Vec<_> = state.nodes.iter().flat_map(|node| &node.waits).cloned().collect();
    let waits: Vec<_> = events.iter().copied().chain(waits.iter().map(Owned::borrow)).collect();
    let (work, mark) = (queue.work(), queue.work().cache().take(false)?);
    let signals = state.signals(&queue, shared.is_profiled)?;
    let report = Report::event(want_event);
    let plain = Submission::new(queue, ur_command_t::ENQUEUE_COMMAND_BUFFER_EXP, report);
    let profile = if shared.is_profiled { Profile::Phases } else { plain.profile };
    let submission = Submission { profile, at_once: true, ..plain };
    let made = submission.put(queue, &waits, |list, kept| {
        // Executions follow one another, on whatever queues.
        if let Some((before, mark)) = &state.last {
            list.wait_for(&[mark.raw()])?;
            if !Arc::ptr_eq(before, work) {
                before.debts().into_iter().for_each(|debt| work.owe(debt));
            }
            if let EventKind::Pooled(event) = mark {
                kept.push(Arc::clone(event));
            }
        }
        list.execute(state.list.raw())?;
        signals.iter().try_for_each(|(_, signal)| list.mark(signal.raw()?))?;
        list.signal(mark.raw())
    });
    if made.is_ok() {
        // Commands submitted from here on wait for this execution.
        signals.into_iter().for_each(|(event, signal)| event.replace(Arc::new(signal)));
        if let Some((before, mark)) = state.last.replace((Arc::clone(work), mark)) {
            before.cache().give(mark, false);
        }
    }
    made
}
impl State {
    /// What one execution signals.
    fn signals(&self, queue: &Queue, profiled: bool) -> Result<Vec<(Owned<Event>, Signal)>> {
        let events = self.nodes.iter().filter_map(|node| node.signal.clone());
        let work = queue.work();
        let signal = |event| {
            let times = match profiled {
                true => {
                    let (submitted, profile) = (clock::now(queue.device())?, Profile::Moment);
                    Some(Times { submitted, start: None, profile })
                }
                false => None,
            };
            let end = work.cache().take(profiled)?;
            Ok((event, Signal::new(Home::Work(Arc::clone(work)), Some(end), times, (None, 0))))
        };
        events.map(signal).collect()
    }
}
