//! Queues that record instead of running: what a command that is given to such a queue becomes, and
//! which queues record into which graph. Graphs themselves are `graph.rs`'s.
use super::{
    Cpu, Event, Graph, Queue,
    engine::Order,
    recording::{Node, Recording},
    streams::{Made, work},
};
use std::sync::{
    Arc, Mutex, PoisonError, Weak,
    atomic::{AtomicBool, Ordering::*},
};
use ur_adapter::{
    command::Report,
    error::{Error, ErrorCode, Result},
    object::{Borrowed, Owned},
};
use ur_core::{
    command::{Ready, Used},
    profiling::Profile,
};
use ur_lock::locked;
use ur_sys::ur_command_t;
fn refused<T>(code: ErrorCode, why: impl Into<std::borrow::Cow<'static, str>>) -> Result<T> {
    Err(Error::new(code, why))
}

fn recording_already() -> Result<()> {
    refused(ErrorCode::InvalidOperation, "the queue records already: end that capture first")
}

/// What is written down of a graph; the events of its commands know it.
#[derive(Debug, Default)]
pub struct Score(Mutex<Inside>);
#[derive(Debug, Default)]
struct Inside {
    recording: Recording,
    /// The queue that began the capture that goes on, if one does.
    leader: Option<Weak<Stand>>,
    /// The queues that were drawn in by waiting for the leader's events.
    drawn_in: Vec<Weak<Stand>>,
    /// Reusable events (their objects' addresses) and the nodes that signalled them last.
    signalled: Vec<(usize, usize)>,
    /// The last capture ended with a queue whose commands nothing waits for, or without an end: its
    /// queue was released.
    is_broken: bool,
}
impl Score {
    /// A copy of what is recorded; `None` of a graph that cannot be run: see `is_broken`.
    pub(super) fn copy(&self) -> Option<Recording> {
        let inside = locked(&self.0);
        (!inside.is_broken).then(|| inside.recording.copy())
    }
    /// Looks at what is recorded.
    pub(super) fn look<R>(&self, look: impl FnOnce(&Recording) -> R) -> R {
        look(&locked(&self.0).recording)
    }
    /// No queue records into it from here on; the parts of those that were drawn in.
    fn disband(&self) -> Vec<Part> {
        let drawn_in = {
            let mut inside = locked(&self.0);
            inside.leader = None;
            inside.signalled.clear();
            std::mem::take(&mut inside.drawn_in)
        };
        drawn_in.iter().filter_map(Weak::upgrade).filter_map(|stand| stand.take()).collect()
    }
    /// Whether a queue records into it.
    pub(super) fn is_open(&self) -> bool {
        locked(&self.0).leader.is_some()
    }
}

/// A queue's place in a capture.
#[derive(Debug)]
struct Part {
    graph: Owned<Graph>,
    leads: bool,
    /// What all later commands follow.
    barrier: Vec<usize>,
    /// What was recorded since.
    since: Vec<usize>,
}
/// Where a queue keeps its part, if it has one.
#[derive(Debug, Default)]
pub struct Stand {
    /// Whether there is a part: what commands of queues that never record pay for.
    active: AtomicBool,
    part: Mutex<Option<Part>>,
}
impl Drop for Stand {
    fn drop(&mut self) {
        let part = self.part.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(Part { graph, leads: true, .. }) = part {
            locked(&graph.score().0).is_broken = true;
            drop(graph.score().disband());
        }
    }
}
impl Stand {
    fn take(&self) -> Option<Part> {
        let mut part = locked(&self.part);
        self.active.store(false, Release);
        part.take()
    }
    /// Whether the queue records.
    pub(super) fn is_active(&self) -> bool {
        self.active.load(Acquire)
    }
    /// The graph it records into.
    pub(super) fn graph(&self) -> Option<Owned<Graph>> {
        locked(&self.part).as_ref().map(|part| part.graph.clone())
    }
    fn put(&self, graph: Owned<Graph>, leads: bool) -> Result<()> {
        let mut part = locked(&self.part);
        if part.is_some() {
            return recording_already();
        }
        *part = Some(Part { graph, leads, barrier: vec![], since: vec![] });
        self.active.store(true, Release);
        Ok(())
    }
}

/// `queue` records into `graph` from here on.
///
/// # Errors
/// `INVALID_OPERATION` if it records already; `GRAPH_CAPTURE_MERGE_ATTEMPT` if another queue records
/// into the graph, `INVALID_GRAPH` if the graph is of another context, `INVALID_ARGUMENT` if it holds
/// commands already or cannot be run.
pub(super) fn begin(queue: &Queue, graph: &Owned<Graph>) -> Result<()> {
    if !graph.context().same(queue.context()) {
        return refused(ErrorCode::InvalidGraph, "the graph belongs to another context");
    }
    let stand = queue.capture();
    if stand.is_active() {
        return recording_already();
    }
    {
        let mut inside = locked(&graph.score().0);
        if inside.is_broken {
            return refused(
                ErrorCode::InvalidArgument,
                "the graph's last capture went wrong: make another",
            );
        }
        if inside.leader.is_some() {
            return refused(
                ErrorCode::GraphCaptureMergeAttempt,
                "another queue records into the graph: have this one wait for an event of it instead",
            );
        }
        if !inside.recording.nodes.is_empty() {
            return refused(
                ErrorCode::InvalidArgument,
                "the graph holds the commands of a capture already: make another",
            );
        }
        inside.leader = Some(Arc::downgrade(stand));
    }
    // A queue's part is locked before what is written down, never the other way round.
    stand.put(graph.clone(), true).inspect_err(|_| drop(graph.score().disband()))
}

/// Ends the capture that `queue` began, for all queues that were drawn into it.
///
/// # Errors
/// `COMMAND_LIST_NOT_CAPTURING` if it records nothing, `INVALID_OPERATION` if it did not begin the
/// capture, `GRAPH_UNJOINED_FORKS` if commands of another queue were recorded that nothing waited
/// for: the capture ends, and its graph cannot be run.
pub(super) fn end(queue: &Queue) -> Result<Owned<Graph>> {
    let stand = queue.capture();
    match &*locked(&stand.part) {
        None => {
            return refused(
                ErrorCode::CommandListNotCapturing,
                "the queue records nothing: begin first",
            );
        }
        Some(part) if !part.leads => {
            return refused(
                ErrorCode::InvalidOperation,
                "the queue was drawn into this capture by an event: end it on the queue that began it",
            );
        }
        Some(_) => {}
    }
    let Some(part) = stand.take() else {
        return refused(ErrorCode::CommandListNotCapturing, "another thread ended the capture");
    };
    let others = part.graph.score().disband().into_iter();
    let ends: Vec<_> = others.flat_map(|other| [other.barrier, other.since]).flatten().collect();
    let mut inside = locked(&part.graph.score().0);
    let joined = inside.recording.behind(part.barrier.iter().chain(&part.since).copied());
    if ends.iter().any(|&place| !joined[place]) {
        inside.is_broken = true;
        return refused(
            ErrorCode::GraphUnjoinedForks,
            "commands of another queue were recorded that the capturing queue never waited for: have \
             it wait for their last event before the capture ends; this graph cannot be run",
        );
    }
    drop(inside);
    Ok(part.graph)
}

/// Whether `queue` records, or will since one of `events` is of a command that is being recorded.
///
/// # Errors
/// `GRAPH_INTERNAL_EVENT` if one of `events` is of a command recorded in a capture that is over.
#[inline]
pub(super) fn is_recording(queue: &Queue, events: &[Borrowed<'_, Event>]) -> Result<bool> {
    if queue.capture().is_active() {
        return Ok(true);
    }
    let captured = events.iter().find_map(|event| event.captured());
    captured.map_or(Ok(false), |(score, _)| draw_in(queue, score).map(|()| true))
}
fn draw_in(queue: &Queue, score: &Score) -> Result<()> {
    // First the leader's graph: two queues' parts are never locked at once.
    let leader = locked(&score.0).leader.as_ref().and_then(Weak::upgrade);
    let Some(graph) = leader.and_then(|leader| leader.graph()) else { return Err(internal()) };
    if !graph.context().same(queue.context()) {
        return refused(
            ErrorCode::InvalidContext,
            "the capture is that of another context's queue",
        );
    }
    queue.capture().put(graph, false)?;
    let mut inside = locked(&score.0);
    if inside.leader.is_none() {
        drop(inside);
        queue.capture().take(); // another thread ended the capture meanwhile
        return Err(internal());
    }
    inside.drawn_in.push(Arc::downgrade(queue.capture()));
    Ok(())
}
/// What C is told that uses a recorded command's event for anything but more recording.
pub(super) fn internal() -> Error {
    Error::new(
        ErrorCode::GraphInternalEvent,
        "the event stands for a command in a graph, which never runs by itself: only commands that \
         are recorded into the same graph can wait for it; for a run of the graph, ask \
         urEnqueueGraphExp for an event",
    )
}

/// Has a queue that records take a command.
///
/// # Errors
/// `GRAPH_CAPTURE_UNSUPPORTED` for what cannot be repeated or is to be done at once.
pub(super) fn record(
    queue: Borrowed<'_, Queue>,
    ready: &Ready<'_, Cpu>,
    events: &[Borrowed<'_, Event>],
    signalled: Option<Borrowed<'_, Event>>,
    report: Report,
) -> Made {
    let command = ready.name;
    let once = || {
        let why = format!("{command:?} cannot be repeated: leave it out of the capture");
        refused(ErrorCode::GraphCaptureUnsupported, why)
    };
    if ready.used().any(|used| matches!(used, Used::Freed(_)))
        || ready.profile(Profile::Off).is_on()
    {
        return once();
    }
    let work = work(queue.device(), ready)?;
    if work.again().is_none() {
        return once();
    }
    if signalled.as_ref().is_some_and(|event| !event.is_replayed()) {
        return refused(
            ErrorCode::GraphCaptureUnsupported,
            "an event that processes share is signalled outside of graphs only: leave the signal \
             out of the capture",
        );
    }
    let signal = signalled.map(|event| event.own()).transpose()?;
    add(queue, command, events, (ready.order, report), |recording, after, waits| {
        recording.push(Node { command, work, after, waits, signal })
    })
}
/// Has a queue that records take all of `other` as one command.
///
/// # Errors
/// As [`record`].
pub(super) fn splice(
    queue: Borrowed<'_, Queue>,
    command: ur_command_t,
    events: &[Borrowed<'_, Event>],
    other: &Recording,
    report: Report,
) -> Made {
    add(queue, command, events, (Order::Free, report), |recording, after, waits| {
        recording.splice(other, command, after, waits)
    })
}
fn add(
    queue: Borrowed<'_, Queue>,
    command: ur_command_t,
    events: &[Borrowed<'_, Event>],
    (order, report): (Order, Report),
    put: impl FnOnce(&mut Recording, Vec<usize>, Vec<Owned<Event>>) -> usize,
) -> Made {
    if matches!(report, Report::Done { .. }) {
        return refused(
            ErrorCode::GraphCaptureUnsupported,
            "a queue that records cannot wait for a command: ask for it without blocking",
        );
    }
    let of = queue.own()?;
    let mut part = locked(&queue.capture().part);
    let Some(part) = part.as_mut() else {
        return refused(ErrorCode::GraphCaptureInvalidated, "another thread ended the capture");
    };
    let score = Arc::clone(part.graph.score());
    let place = {
        let mut inside = locked(&score.0);
        let (mut after, waits) = inside.sort(&score, events)?;
        part.follow(order, &mut after, of.is_in_order());
        let place = put(&mut inside.recording, after, waits);
        if let Some(event) = &inside.recording.nodes[place].signal {
            let address = event.as_handle().addr();
            inside.signalled.retain(|(one, _)| *one != address);
            inside.signalled.push((address, place));
        }
        place
    };
    part.note(order, place, of.is_in_order());
    Ok((report == Report::Event).then(|| Event::of_capture(of, command, (score, place))))
}
impl Inside {
    /// Which of `events` are nodes, and which are to be waited for at each execution.
    fn sort(
        &self,
        own: &Arc<Score>,
        events: &[Borrowed<'_, Event>],
    ) -> Result<(Vec<usize>, Vec<Owned<Event>>)> {
        let (mut after, mut waits) = (vec![], vec![]);
        for event in events {
            let address = event.as_handle().addr();
            let signalled = self.signalled.iter().find(|(one, _)| *one == address);
            match (event.captured(), signalled) {
                (Some((score, place)), _) if Arc::ptr_eq(score, own) => after.push(*place),
                (Some(_), _) => {
                    return refused(
                        ErrorCode::GraphCaptureMergeAttempt,
                        "the event is of a command in another graph: a capture records into one",
                    );
                }
                (None, Some((_, place))) => after.push(*place),
                (None, None) => waits.push(event.own()?),
            }
        }
        Ok((after, waits))
    }
}
impl Part {
    /// What a command at this place in its queue follows.
    fn follow(&self, order: Order, after: &mut Vec<usize>, in_order: bool) {
        after.extend(&self.barrier);
        if in_order || order != Order::Free {
            after.extend(&self.since);
        }
    }
    fn note(&mut self, order: Order, place: usize, in_order: bool) {
        if in_order || order == Order::Both {
            self.barrier = vec![place];
            self.since.clear();
        } else {
            self.since.push(place);
        }
    }
}
