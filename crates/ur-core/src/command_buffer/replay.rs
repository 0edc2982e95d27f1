//! Command buffers and graphs for backends without native recordings: each execution submits the recorded commands one
//! by one, as a queue would. The driver needs nothing but streams for that.
//!
//! - In an in-order queue the commands are submitted in the order in which they were recorded. In an out-of-order queue
//!   each waits for the points of those that it follows; commands that do not follow one another may run at the same
//!   time.
//! - If points cost little ([`ORDERS_BY_POINTS`](HasStreams::ORDERS_BY_POINTS)), commands wait for points in in-order
//!   queues too, so that a command that fails makes those after it fail. Unless each command follows the previous one,
//!   they are submitted to an out-of-order queue of the recording, between two barriers of the in-order queue, so that
//!   they may run at the same time there too.
//! - All commands wait for everything that the execution waits for, and for everything that any of them waits for. A
//!   barrier follows all of them; its point is the end of the execution. An execution with profiling begins with a
//!   barrier too.
//! - An execution follows the previous one, on whatever queue that was, unless the previous one is final already: its
//!   failure does not make the next one fail.
//! - A command that cannot be submitted ends the execution: the commands after it are not submitted, the entry fails
//!   and returns no event. Those before it run; their events are signalled. The entry returns when they are complete, because
//!   the caller may use their memory again then.
//! - The native queue may be captured by native code of the application. Then nothing runs now: such an execution does
//!   not follow earlier executions, and later ones do not follow it.
use super::{node::Node, step::FEW};
use crate::{
    command::Place,
    event::{
        Event,
        waits::{self, Waits},
    },
    profiling::Profile,
    queue::{HasStreams, Lent, Queue, Run, end_behind, lend, no_point, noted},
};
use smallvec::SmallVec;
use std::sync::Arc;
use ur_adapter::{
    command::{CompletionRequest, Enqueued},
    error::{Error, ErrorCode, Result},
    object::{Borrowed, Owned},
};
use ur_hal::{Completion, Streams, Submission, Wait, repeated, wait_for_taken};
use ur_sys::ur_command_t;

/// The state of a recording and of its latest execution.
pub(super) struct Replay<D: HasStreams> {
    /// The commands that no other command follows, by index.
    ends: Vec<usize>,
    /// Whether each command follows the previous one.
    is_chain: bool,
    /// The previous execution.
    last: Option<Arc<Run<D>>>,
    /// The queue in which a part of a refused one may still run, without a point behind it.
    stray: Option<Owned<Queue<D>>>,
    /// The points of the commands of the execution that is being submitted; empty otherwise. Kept to reuse its memory.
    points: Vec<Option<D::Point>>,
    /// The queue for commands that may run at the same time although the execution is in an in-order queue.
    aside: Option<Owned<Queue<D>>>,
}
/// An execution that is being submitted.
struct Course<'a, D: HasStreams> {
    queue: &'a Queue<D>,
    /// The queue to which the commands are submitted: the same, or that of the recording.
    taker: &'a Queue<D>,
    nodes: &'a [Node<D>],
    /// The commands that no other command follows, by index.
    ends: &'a [usize],
    /// What the whole execution waits for.
    waits: &'a [Wait<'a, D>],
    /// Which times its event reports.
    profile: Profile,
    /// Whether the caller waits for its end.
    is_awaited: bool,
}
impl<D: HasStreams> Course<'_, D> {
    /// Submits all commands, and a barrier after them. Appends the points of the commands to `points`.
    ///
    /// # Errors
    /// As for [`Streams::submit`](ur_hal::Streams::submit).
    fn submit(&self, points: &mut Vec<Option<D::Point>>) -> ur_hal::Result<Run<D>> {
        let is_in_order = self.is_in_order();
        let is_aside = self.is_aside();
        let opens = self.profile.is_on() || is_aside || !is_in_order && !self.waits.is_empty();
        let began = match opens {
            true => {
                let times = if self.profile.is_on() { Profile::Moment } else { Profile::Off };
                Some(self.barrier(self.waits, Completion::Point, times)?.ok_or_else(no_point)?)
            }
            false => None,
        };
        // What the commands that follow no others wait for. In an in-order queue only the first command needs it.
        let opening = began.as_ref().map(Wait::Point);
        let beginning = match opens {
            true if is_in_order => &[],
            true => opening.as_slice(),
            false => self.waits,
        };
        for node in self.nodes {
            let after = waits_of(if is_in_order { &[] } else { &node.after }, points);
            let is_first = if is_in_order { points.is_empty() } else { after.is_empty() };
            let how = Submission {
                waits: if is_first { beginning } else { &after },
                completion: match !is_in_order || node.signal.is_some() {
                    true => Completion::Point,
                    false => Completion::None,
                },
                profile: noted(node.signal.as_ref().map_or(Profile::Off, |one| one.made_for())),
                // In order, what there is of a later command is behind the first ones, and waited for with these.
                lends_memory: !is_in_order || points.is_empty(),
                ..Submission::new(&ur_hal::Command::Barrier)
            };
            let point = node.step.submit(node.name, self.taker, how)?;
            drop(after);
            points.push(point);
        }
        let after = waits_of(if is_in_order { &[] } else { self.ends }, points);
        let waits = if self.nodes.is_empty() { beginning } else { &after };
        let completion = match self.is_awaited {
            true => Completion::Done { point: true },
            false => Completion::Point,
        };
        let times = if self.profile.is_on() { Profile::Moment } else { Profile::Off };
        let end = || self.barrier(waits, completion, times)?.ok_or_else(no_point);
        let ended = if self.is_awaited { end()? } else { repeated(end)? };
        Ok(Run { began, ended })
    }
    /// Whether commands are ordered by their submission alone.
    fn is_in_order(&self) -> bool {
        self.taker.is_in_order() && !D::ORDERS_BY_POINTS
    }
    /// Whether the commands are submitted to the recording's queue.
    fn is_aside(&self) -> bool {
        !std::ptr::eq(self.queue, self.taker)
    }
    /// The end of the commands that have these points, all that were submitted.
    #[cold]
    fn end_of_part(&self, points: &[Option<D::Point>]) -> Part<D> {
        let submitted = points.iter().flatten().map(Wait::End);
        let waits: SmallVec<[_; FEW]> = submitted.filter(|_| !self.is_in_order()).collect();
        let barrier = Submission::new(&ur_hal::Command::Barrier);
        let barrier = Submission { waits: &waits, completion: Completion::Point, ..barrier };
        match end_behind::<D>(self.taker.stream(), &barrier) {
            Ok(ended) => Part::Ends(Arc::new(Run { began: None, ended })),
            Err(_) if self.is_aside() => {
                wait_for_taken(|| D::is_idle(self.taker.stream())); // nobody captures this queue
                Part::Nothing
            }
            Err(_) => Part::Unknown,
        }
    }
    fn barrier(
        &self,
        waits: &[Wait<'_, D>],
        completion: Completion,
        times: Profile,
    ) -> ur_hal::Result<Option<D::Point>> {
        let barrier = Submission::new(&ur_hal::Command::Barrier);
        let profile = noted(times);
        D::submit(self.queue.stream(), &Submission { waits, completion, profile, ..barrier })
    }
}
/// What was submitted of an execution that was refused. It is waited for when the recording is unlocked.
pub(crate) enum Part<D: HasStreams> {
    Nothing,
    Ends(Arc<Run<D>>),
    /// The driver makes no point behind it: its queue is waited for.
    Unknown,
}
impl<D: HasStreams> Part<D> {
    /// Waits until it is over: the caller may use the memory of its commands again then. For all of the queue if another
    /// thread has begun to capture that, since its end may have become part of a graph.
    pub(crate) fn wait(self, queue: &Queue<D>) {
        match self {
            Self::Nothing => {}
            Self::Ends(part) => {
                let _failed = <D as Streams>::wait(&part.ended, None); // `status` tells
                wait_for_taken(|| {
                    let is_final = D::status(&part.ended)?.is_final();
                    let is_captured = || D::check_runs(&part.ended).is_err();
                    Ok(is_final || is_captured() && D::is_idle(queue.stream())?)
                });
            }
            Self::Unknown => wait_for_taken(|| D::is_idle(queue.stream())),
        }
    }
    fn run(&self) -> Option<&Arc<Run<D>>> {
        match self {
            Self::Ends(run) => Some(run),
            Self::Nothing | Self::Unknown => None,
        }
    }
}
/// The points of earlier commands as waits.
fn waits_of<'a, D: HasStreams>(
    places: &[usize],
    points: &'a [Option<D::Point>],
) -> SmallVec<[Wait<'a, D>; FEW]> {
    places.iter().filter_map(|&place| points[place].as_ref()).map(Wait::Point).collect()
}
/// Whether an execution that is submitted now must wait for `last`.
fn is_under_way<D: HasStreams>(last: &Run<D>) -> bool {
    !D::is_settled(&last.ended)
        && D::status(&last.ended).map_or(true, |status| !status.is_final())
        && D::check_runs(&last.ended).is_ok() // the status may have told
}

impl<D: HasStreams> Replay<D> {
    pub(super) fn new(place: Place<'_, D>) -> Result<Self> {
        let aside = D::ORDERS_BY_POINTS.then(|| Queue::out_of_order(place)).transpose()?;
        let (ends, points) = (vec![], vec![]);
        Ok(Self { ends, is_chain: true, last: None, stray: None, points, aside })
    }
    /// Notes which commands follow which.
    pub(super) fn close(&mut self, nodes: &[Node<D>]) {
        let mut is_end = vec![true; nodes.len()];
        nodes.iter().flat_map(|node| &node.after).for_each(|&one| is_end[one] = false);
        self.ends = (0..nodes.len()).filter(|&place| is_end[place]).collect();
        let mut pairs = nodes.iter().enumerate().skip(1);
        self.is_chain = pairs.all(|(place, node)| node.after.contains(&(place - 1)));
    }
    /// Enqueues one execution: see [`Recording::submit`](super::Recording::submit).
    pub(super) fn execute(
        &mut self,
        (nodes, is_profiled): (&[Node<D>], bool),
        (queue, name): (Borrowed<'_, Queue<D>>, ur_command_t),
        events: &[Borrowed<'_, Event<D>>],
        report: CompletionRequest,
        part: &mut Part<D>,
    ) -> Enqueued<D> {
        let of_nodes = nodes.iter().flat_map(|node| &node.waits).map(Owned::borrow);
        let all: SmallVec<[_; FEW]> = events.iter().copied().chain(of_nodes).collect();
        if D::is_recording(&queue, &all)? {
            let why = "another thread has begun a capture of this queue meanwhile";
            return Error::refuse(ErrorCode::GraphCaptureInvalidated, why);
        }
        let is_over = |queue: &mut Owned<Queue<D>>| {
            D::is_idle(queue.stream()).unwrap_or_else(|error| error.kind().is_gone())
        };
        let stray = self.stray.take_if(is_over);
        drop(stray);
        if self.stray.is_some() {
            let why = "a part of an execution that was refused may still be under way: finish its queue, or end the capture \
                       of it, before the next execution";
            return Error::refuse(ErrorCode::InvalidOperation, why);
        }
        let of = report.wants_event().then(|| queue.own()).transpose()?;
        let profile = match is_profiled {
            _ if of.is_none() => Profile::Off,
            true => Profile::Phases,
            false => queue.profile(),
        };
        let (mut before, mut list) = (Waits::new(), Lent::new());
        waits::capture(&all, &mut before)?;
        lend(&before, &mut list);
        let is_captured = D::is_captured(queue.stream())?;
        let last = self.last.take_if(|last| !is_under_way(last));
        drop(last);
        if let Some(last) = self.last.as_ref().filter(|_| !is_captured) {
            list.push(Wait::End(&last.ended));
        }
        let points = &mut self.points;
        let is_aside = queue.is_in_order() && !self.is_chain;
        let aside = self.aside.as_ref().filter(|_| is_aside);
        let taker = aside.map_or(queue, Owned::borrow);
        let course = Course {
            queue: &queue,
            taker: &taker,
            nodes,
            ends: &self.ends,
            waits: &list,
            profile,
            is_awaited: matches!(report, CompletionRequest::Done { .. }),
        };
        let outcome = course.submit(points);
        // Without an earlier command nothing is under way: what was taken of the first one is over (`lends_memory`).
        if outcome.is_err() && !is_captured && !points.is_empty() {
            *part = course.end_of_part(points);
            if let Part::Unknown = part {
                self.stray = queue.own().ok();
            }
        }
        // From here on, commands that wait for these events wait for this execution.
        for (node, point) in nodes.iter().zip(points.drain(..)) {
            if let (Some(event), Some(point)) = (&node.signal, point) {
                event.signalled(point, event.made_for());
            }
        }
        let outcome = match report {
            CompletionRequest::Done { .. } => queue.note(outcome),
            _ => outcome.map_err(Error::from),
        };
        let made = outcome.map(Arc::new);
        drop(list);
        // If nothing of a refused one is under way, the next one follows the one before it.
        if let Some(run) = made.as_ref().ok().or(part.run())
            && D::check_runs(&run.ended).is_ok()
        {
            self.last = Some(Arc::clone(run));
        }
        Ok(of.zip(Some(made?)).map(|(queue, run)| Event::of_run(queue, name, run, profile)))
    }
}
