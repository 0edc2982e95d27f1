//! Graph capture: what becomes of a command that is enqueued on a capturing queue, and which queues capture into which
//! graph. The entries for graphs are in `entries.rs`.
use super::objects::{Captured, Graph, HasGraphs, Inside, Part, Score, recording_already};
use crate::{
    command::{Ready, Used},
    command_buffer::{Node, Records, Step, address, ends},
    event::{Event, captured},
    profiling::Profile,
    program::Placed,
    queue::{Device, Queue},
};
use std::sync::{Arc, Weak};
use ur_adapter::{
    command::{CompletionRequest, Enqueued},
    error::{Error, ErrorCode, Result},
    object::{Borrowed, Owned},
};
use ur_hal::Order;
use ur_sys::ur_command_t;

/// Begins a capture of `queue` into `graph`.
///
/// # Errors
/// `INVALID_OPERATION` if the queue captures already; `GRAPH_CAPTURE_MERGE_ATTEMPT` if another queue captures into the
/// graph; `INVALID_GRAPH` if the graph is of another context; `INVALID_ARGUMENT` if the graph contains commands already
/// or cannot be executed.
pub(super) fn begin<D: HasGraphs>(queue: &Queue<D>, graph: &Owned<Graph<D>>) -> Result<()> {
    if !graph.context().same(queue.context()) {
        return Error::refuse(ErrorCode::InvalidGraph, "the graph belongs to another context");
    }
    let stand = queue.capture();
    if stand.is_active() {
        return Err(recording_already());
    }
    {
        let mut inside = graph.score().0.lock()?;
        if inside.is_broken {
            return Error::refuse(
                ErrorCode::InvalidArgument,
                "the graph's last capture went wrong: make another",
            );
        }
        if inside.leader.is_some() {
            return Error::refuse(
                ErrorCode::GraphCaptureMergeAttempt,
                "another queue records into the graph: have this one wait for an event of it instead",
            );
        }
        if !inside.nodes.is_empty() {
            return Error::refuse(
                ErrorCode::InvalidArgument,
                "the graph holds the commands of a capture already: make another",
            );
        }
        inside.leader = Some(Arc::downgrade(stand));
        inside.device = Some(queue.device().clone());
    }
    // Lock order: a queue's part in a capture before the contents of the graph, never the reverse.
    stand.put(graph.clone(), true).inspect_err(|_| drop(graph.score().disband()))
}

/// Ends the capture that `queue` began, for all queues that joined it.
///
/// # Errors
/// `COMMAND_LIST_NOT_CAPTURING` if the queue does not capture; `INVALID_OPERATION` if it did not begin the capture;
/// `GRAPH_UNJOINED_FORKS` if another queue's commands were captured that the first queue never waited for: the capture
/// ends, and its graph cannot be executed.
pub(super) fn end<D: HasGraphs>(queue: &Queue<D>) -> Result<Owned<Graph<D>>> {
    let stand = queue.capture();
    match &*stand.part.lock()? {
        None => {
            return Error::refuse(
                ErrorCode::CommandListNotCapturing,
                "the queue records nothing: begin first",
            );
        }
        Some(part) if !part.leads => {
            return Error::refuse(
                ErrorCode::InvalidOperation,
                "the queue was drawn into this capture by an event: end it on the queue that began it",
            );
        }
        Some(_) => {}
    }
    let Some(part) = stand.take()? else {
        return Error::refuse(
            ErrorCode::CommandListNotCapturing,
            "another thread ended the capture",
        );
    };
    let ends: Vec<_> = part.graph.score().disband()?.iter().flat_map(Part::ends).collect();
    let mut inside = part.graph.score().0.lock()?;
    let joined = inside.behind(part.ends());
    if ends.iter().any(|&place| !joined[place]) {
        inside.is_broken = true;
        return Error::refuse(
            ErrorCode::GraphUnjoinedForks,
            "commands of another queue were recorded that the capturing queue never waited for: have it wait for their last \
             event before the capture ends; this graph cannot be run",
        );
    }
    drop(inside);
    Ok(part.graph)
}

/// Whether `queue` captures. A queue that does not capture yet joins a capture when a command of it waits for an event
/// of a captured command.
///
/// # Errors
/// `GRAPH_INTERNAL_EVENT` if one of `events` belongs to a capture that has ended.
#[inline(always)] // most commands wait for no event: one load then
pub fn is_recording<D: HasGraphs>(
    queue: &Queue<D>,
    events: &[Borrowed<'_, Event<D>>],
) -> Result<bool> {
    match events {
        [] => Ok(queue.capture().is_active()),
        _ => is_drawn_in(queue, events),
    }
}
/// The same of a command that waits for events.
fn is_drawn_in<D: HasGraphs>(queue: &Queue<D>, events: &[Borrowed<'_, Event<D>>]) -> Result<bool> {
    if D::CAN_BE_CAPTURED && events.iter().any(|event| event.is_shared()) {
        D::check_word_wait(queue.stream())?;
    }
    if queue.capture().is_active() {
        return Ok(true);
    }
    let captured = events.iter().find_map(|event| event.captured());
    captured.map_or(Ok(false), |(score, _)| draw_in(queue, score).map(|()| true))
}
fn draw_in<D: HasGraphs>(queue: &Queue<D>, score: &Score<D>) -> Result<()> {
    // Read the leader's graph first: the parts of two queues are never locked at the same time.
    let leader = score.0.lock()?.leader.as_ref().and_then(Weak::upgrade);
    let graph = leader.map(|leader| leader.graph()).transpose()?.flatten();
    let Some(graph) = graph else { return Err(captured()) };
    if !graph.context().same(queue.context()) {
        return Error::refuse(
            ErrorCode::InvalidContext,
            "the capture is that of another context's queue",
        );
    }
    if !is_of(queue, score.0.lock()?.device.as_ref()) {
        return Error::refuse(
            ErrorCode::InvalidDevice,
            "the capture is that of another device's queue, and a graph is executed on one device",
        );
    }
    queue.capture().put(graph, false)?;
    let mut inside = score.0.lock()?;
    if inside.leader.is_none() {
        drop(inside);
        queue.capture().take()?; // another thread has ended the capture meanwhile
        return Err(captured());
    }
    inside.drawn_in.push(Arc::clone(queue.capture()));
    Ok(())
}
/// Whether a queue can execute what was captured for a device.
pub(super) fn is_of<D: HasGraphs>(queue: &Queue<D>, device: Option<&Owned<Device<D>>>) -> bool {
    D::SHARES_MODULES || device.is_none_or(|device| device.same(queue.device()))
}

/// Captures a command. `signalled` is the event that it signals, if the caller passes one.
///
/// # Errors
/// `GRAPH_CAPTURE_UNSUPPORTED` for a command that cannot be repeated or that blocks.
pub fn record<D: HasGraphs>(
    queue: Borrowed<'_, Queue<D>>,
    ready: &Ready<'_, D>,
    events: &[Borrowed<'_, Event<D>>],
    signalled: Option<Borrowed<'_, Event<D>>>,
    report: CompletionRequest,
) -> Enqueued<D> {
    let name = ready.name;
    let is_freed = ready.used().any(|used| matches!(used, Used::Freed(_)));
    if is_freed || ready.profile(Profile::Off).is_on() || !ready.command.is_recordable() {
        let why = format!("{name:?} cannot be repeated: leave it out of the capture");
        return Error::refuse(ErrorCode::GraphCaptureUnsupported, why);
    }
    if signalled.as_ref().is_some_and(|event| !event.is_replayed()) {
        return Error::refuse(
            ErrorCode::GraphCaptureUnsupported,
            "a graph cannot signal an event that processes share or that the driver itself signals repeatedly: leave \
             the signal out of the capture",
        );
    }
    let step = Step::of(queue.place(), ready)?;
    let signal = signalled.map(|event| event.own()).transpose()?;
    add(queue, name, events, (ready.order, report), |inside, after, waits| {
        inside.push(Node::new(name, step, (after, waits), signal))
    })
}
impl<D: HasGraphs> Records for D {
    fn record_all(
        queue: Borrowed<'_, Queue<D>>,
        name: ur_command_t,
        nodes: &[Node<D>],
        events: &[Borrowed<'_, Event<D>>],
        report: CompletionRequest,
    ) -> Enqueued<D> {
        let [entry, exit] = [(); 2].map(|()| {
            let barrier = Ready::barrier(name, Order::Free);
            Step::of(queue.place(), &barrier)
        });
        let ([entry, exit], order) = ([entry?, exit?], (Order::Free, report));
        add(queue, name, events, order, |inside, after, waits| {
            let entry = inside.push(Node::new(name, entry, (after, waits), None));
            let first = entry + 1;
            for node in nodes {
                let mut copy = node.again();
                copy.shift(first, &[entry]);
                copy.follow_signals(|event| inside.signaller(event).into_iter().collect());
                inside.push(copy);
            }
            let mut last = ends(&inside.nodes, first);
            if last.is_empty() {
                last.push(entry);
            }
            inside.push(Node::new(name, exit, (last, vec![]), None))
        })
    }
}
fn add<D: HasGraphs>(
    queue: Borrowed<'_, Queue<D>>,
    name: ur_command_t,
    events: &[Borrowed<'_, Event<D>>],
    (order, report): (Order, CompletionRequest),
    put: impl FnOnce(&mut Inside<D>, Vec<usize>, Vec<Owned<Event<D>>>) -> usize,
) -> Enqueued<D> {
    if matches!(report, CompletionRequest::Done { .. }) {
        return Error::refuse(
            ErrorCode::GraphCaptureUnsupported,
            "a queue that records cannot wait for a command: ask for it without blocking",
        );
    }
    let of = queue.own()?;
    let mut part = queue.capture().part.lock()?;
    let Some(part) = part.as_mut() else {
        return Error::refuse(
            ErrorCode::GraphCaptureInvalidated,
            "another thread ended the capture",
        );
    };
    let score = Arc::clone(part.graph.score());
    let place = {
        let mut inside = score.0.lock()?;
        let (mut after, waits) = inside.sort(&score, events)?;
        part.follow(order, &mut after, of.is_in_order());
        put(&mut inside, after, waits)
    };
    part.note(order, place, of.is_in_order());
    Ok((report == CompletionRequest::Event).then(|| Event::of_capture(of, name, (score, place))))
}
impl<D: Records> Inside<D> {
    /// Appends a command and returns its index. From here on it is the latest to signal its event.
    fn push(&mut self, mut node: Node<D>) -> usize {
        node.after.sort_unstable();
        node.after.dedup();
        let place = self.nodes.len();
        node.signal.iter().for_each(|event| self.signallers.add(address(event), place));
        self.nodes.push(node);
        place
    }
    /// The latest command to signal this event, by index.
    fn signaller(&self, event: Borrowed<'_, D::Event>) -> Option<usize> {
        self.signallers.of(address(&event)).last().copied()
    }
    /// For each command, whether it is one of `ends` or precedes one of them.
    fn behind(&self, ends: impl Iterator<Item = usize>) -> Vec<bool> {
        let mut behind = vec![false; self.nodes.len()];
        ends.for_each(|place| behind[place] = true);
        for place in (0..self.nodes.len()).rev() {
            if behind[place] {
                self.nodes[place].after.iter().for_each(|&one| behind[one] = true);
            }
        }
        behind
    }
}
/// The commands that a command follows, and the events that each execution of it waits for.
type Sorted<D> = (Vec<usize>, Vec<Owned<Event<D>>>);
impl<D: HasGraphs> Inside<D> {
    /// Separates `events` into those of captured commands and those that each execution must wait for.
    ///
    /// # Errors
    /// `GRAPH_CAPTURE_MERGE_ATTEMPT` for an event of a command in another graph.
    fn sort(&self, own: &Arc<Score<D>>, events: &[Borrowed<'_, Event<D>>]) -> Result<Sorted<D>> {
        let (mut after, mut waits) = (vec![], vec![]);
        for event in events {
            let signalled = self.signaller(*event);
            let captured: Option<&Captured<D>> = event.captured();
            match (captured, signalled) {
                (Some((score, place)), _) if Arc::ptr_eq(score, own) => after.push(*place),
                (Some(_), _) => {
                    return Error::refuse(
                        ErrorCode::GraphCaptureMergeAttempt,
                        "the event is of a command in another graph: a capture records into one",
                    );
                }
                (None, Some(place)) => after.push(place),
                (None, None) => waits.push(event.own()?),
            }
        }
        Ok((after, waits))
    }
}
impl<D: Records> Part<D> {
    /// Adds what the next command of this queue follows.
    fn follow(&self, order: Order, after: &mut Vec<usize>, in_order: bool) {
        after.extend(&self.barrier);
        if in_order || order != Order::Free {
            after.extend(&self.since);
        }
    }
    fn note(&mut self, order: Order, place: usize, in_order: bool) {
        match order {
            Order::Both => (self.barrier, self.since) = (vec![place], vec![]),
            _ if in_order => (self.barrier, self.since) = (vec![place], vec![]),
            // It follows all of these, so that what follows it need not name them again.
            Order::AfterAll => self.since = vec![place],
            Order::Free => self.since.push(place),
        }
    }
    /// The commands that no other command of the queue follows.
    fn ends(&self) -> impl Iterator<Item = usize> {
        self.barrier.iter().chain(&self.since).copied()
    }
}
