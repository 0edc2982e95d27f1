//! Recordings of backends that have none of their own: each execution submits the recorded commands one by one, as queues take
//! them otherwise. A driver needs nothing for that but streams.
//!
//! - In an in-order queue the commands stand in the order in which they were recorded. In an out-of-order queue each waits
//!   for the points of those that it follows; commands that do not follow one another may run at the same time.
//! - All commands wait for what the execution waits for, also for what single ones of them wait for. Behind all of them is
//!   a barrier: its point is that of the execution. An execution that tells its times begins with a barrier as well.
//! - An execution follows the one before, on whatever queues, unless that is over: that it failed is no reason for the
//!   next to fail.
//! - A command that cannot be submitted ends the execution: those behind it are not submitted, the entry fails, and
//!   there is no event. Those before it run; their events are signalled, and the next execution follows them.
//! - Others may be capturing the native queue. Then nothing runs now: what they replay follows no execution, and no
//!   execution follows it.
use super::{Change, Command, CommandBuffer, Node, Records, refused};
use crate::{
    command::{Place, Ready, Used},
    event::{
        Event,
        waits::{self, Waits},
    },
    graph::{self, Captured, ExecutableGraph, Graph, Stand},
    over_driver::{mem::Mem, own_handle},
    profiling::Profile,
    queue::{HasStreams, Queue, Run, lent, no_point, noted},
};
use smallvec::SmallVec;
use std::sync::Arc;
use ur_adapter::{
    api::Objects,
    command::{CompletionRequest, Enqueued},
    error::{Error, ErrorCode, Result},
    object::{Borrowed, Owned},
};
use ur_hal::{
    Address, Completion, ImageCopy, ImageEnd, KeptLaunch, Recorded, Submission, Types, Wait,
};
use ur_sys::{ur_command_t, ur_native_handle_t};

/// Lists up to this length take no memory of the heap.
const FEW: usize = 8;

/// A backend over streams whose command buffers and graphs are replayed by the core. There is nothing to implement: their objects
/// are the core's, and [`records_graphs`](crate::records_graphs) makes queues record.
pub trait Replays:
    HasStreams<Capture = Arc<Stand<Self>>, Captured = Captured<Self>>
    + Objects<
        ExpCommandBuffer = CommandBuffer<Self>,
        ExpCommandBufferCommand = Command<Self>,
        ExpGraph = Graph<Self>,
        ExpExecutableGraph = ExecutableGraph<Self>,
    >
{
}

/// One recorded command, with a copy of what it points at, and the objects that it uses.
pub struct Step<D: HasStreams> {
    what: What<D>,
    uses: Box<[Use<D>]>,
}
enum What<D: HasStreams> {
    Command(Recorded),
    Launch(KeptLaunch<D>),
    Pixels { to: End<D>, from: End<D>, region: [usize; 3] },
}
/// One end of a copy of pixels.
enum End<D: HasStreams> {
    Image(Arc<<D as Types>::Image>, [usize; 3]),
    Memory(Address, [usize; 2]),
}
impl<D: HasStreams> End<D> {
    fn of(end: &ImageEnd<'_, D>) -> Self {
        match *end {
            ImageEnd::Image(image, at) => Self::Image(Arc::clone(image), at),
            ImageEnd::Memory(at, pitches) => Self::Memory(at, pitches),
        }
    }
    fn lend(&self) -> ImageEnd<'_, D> {
        match *self {
            Self::Image(ref image, at) => ImageEnd::Image(image, at),
            Self::Memory(at, pitches) => ImageEnd::Memory(at, pitches),
        }
    }
}
/// An object, kept as long as its command can be executed; while commands use it, queues keep it.
enum Use<D: HasStreams> {
    Buffer { buffer: Owned<Mem<D>>, writes: bool },
    Program(Owned<D::Program>),
}
impl<D: HasStreams> Use<D> {
    /// # Errors
    /// `UNSUPPORTED_FEATURE` for memory that goes with the command, which can be done once.
    fn of(used: &Used<'_, D>) -> Result<Self> {
        match used {
            Used::Buffer { buffer, writes } => {
                Ok(Self::Buffer { buffer: buffer.own()?, writes: *writes })
            }
            Used::Program(program) => Ok(Self::Program(program.own()?)),
            Used::Freed(_) => Error::unsupported("recording of what frees memory"),
        }
    }
    fn lend(&self) -> Used<'_, D> {
        match self {
            Self::Buffer { buffer, writes } => {
                Used::Buffer { buffer: buffer.borrow(), writes: *writes }
            }
            Self::Program(program) => Used::Program(program.borrow()),
        }
    }
}
impl<D: HasStreams> Step<D> {
    /// # Errors
    /// `UNSUPPORTED_FEATURE` for a command that cannot be repeated.
    fn of(ready: &Ready<'_, D>) -> Result<Self> {
        let what = match ready.command {
            ur_hal::Command::Launch(launch) => What::Launch(KeptLaunch::of(launch)),
            ur_hal::Command::ImageCopy(copy) => What::Pixels {
                to: End::of(&copy.to),
                from: End::of(&copy.from),
                region: copy.region,
            },
            ref command => What::Command(Recorded::of(command)?),
        };
        Ok(Self { what, uses: ready.used().map(Use::of).collect::<Result<_>>()? })
    }
    /// Submits it; `how` is a submission of anything.
    ///
    /// # Errors
    /// As for [`Streams::submit`](ur_hal::Streams::submit).
    fn submit(
        &self,
        name: ur_command_t,
        queue: &Queue<D>,
        how: Submission<'_, D>,
    ) -> ur_hal::Result<Option<D::Point>> {
        match &self.what {
            What::Command(recorded) => self.submit_as(&recorded.command(), name, queue, how),
            What::Pixels { to, from, region } => {
                let copy = ImageCopy { to: to.lend(), from: from.lend(), region: *region };
                self.submit_as(&ur_hal::Command::ImageCopy(&copy), name, queue, how)
            }
            What::Launch(launch) => launch
                .lend(|launch| self.submit_as(&ur_hal::Command::Launch(launch), name, queue, how)),
        }
    }
    fn submit_as(
        &self,
        command: &ur_hal::Command<'_, D>,
        name: ur_command_t,
        queue: &Queue<D>,
        how: Submission<'_, D>,
    ) -> ur_hal::Result<Option<D::Point>> {
        let used: SmallVec<[_; FEW]> = self.uses.iter().map(|one| Some(one.lend())).collect();
        let ready = Ready { more: &used, ..Ready::new(name, *command) };
        D::submit_using(queue, &Submission { command, ..how }, &ready)
    }
}

/// What is known of executions.
pub struct Recording<D: HasStreams> {
    is_profiled: bool,
    /// The commands that no other follows.
    ends: Vec<usize>,
    /// The execution before.
    last: Option<Arc<Run<D>>>,
    /// Where commands of an execution that is being submitted end; empty otherwise.
    points: Vec<Option<D::Point>>,
}
/// An execution that is being submitted.
struct Course<'a, D: Replays> {
    queue: &'a Queue<D>,
    nodes: &'a [Node<D>],
    /// The commands that no other follows.
    ends: &'a [usize],
    /// What all of it waits for.
    waits: &'a [Wait<'a, D>],
    /// Which times it tells.
    profile: Profile,
    /// Whether its end is waited for.
    is_awaited: bool,
}
impl<D: Replays> Course<'_, D> {
    /// Submits all commands, and a barrier behind them; `points` gets those of commands.
    ///
    /// # Errors
    /// As for [`Streams::submit`](ur_hal::Streams::submit).
    fn submit(&self, points: &mut Vec<Option<D::Point>>) -> ur_hal::Result<Run<D>> {
        let is_in_order = self.queue.is_in_order();
        let opens = self.profile.is_on() || !is_in_order && !self.waits.is_empty();
        let began = match opens {
            true => {
                let times = if self.profile.is_on() { Profile::Moment } else { Profile::Off };
                Some(self.barrier(self.waits, Completion::Point, times)?.ok_or_else(no_point)?)
            }
            false => None,
        };
        // What a command waits for that follows no other: in an in-order queue the first one stands for all of them.
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
                ..Submission::new(&ur_hal::Command::Barrier)
            };
            let point = node.step.submit(node.name, self.queue, how)?;
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
        let ended = self.barrier(waits, completion, times)?.ok_or_else(no_point)?;
        Ok(Run { began, ended })
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
    /// The end of what was submitted before a command could not be; `None` if nothing was, and where the driver refuses that,
    /// too.
    fn part(&self, points: &[Option<D::Point>]) -> Option<Run<D>> {
        if points.is_empty() {
            return None;
        }
        let all: Vec<_> = match self.queue.is_in_order() {
            true => vec![],
            false => points.iter().flatten().map(Wait::Point).collect(),
        };
        let ended = self.barrier(&all, Completion::Point, Profile::Off).ok().flatten()?;
        Some(Run { began: None, ended })
    }
}
/// The ends of earlier commands.
fn waits_of<'a, D: HasStreams>(
    places: &[usize],
    points: &'a [Option<D::Point>],
) -> SmallVec<[Wait<'a, D>; FEW]> {
    places.iter().filter_map(|&place| points[place].as_ref()).map(Wait::Point).collect()
}
/// Whether an execution that is submitted now has to wait for that one.
fn is_under_way<D: HasStreams>(last: &Run<D>) -> bool {
    !D::is_settled(&last.ended) && D::status(&last.ended).is_ok_and(|status| !status.is_final())
}

impl<D: Replays> Records for D {
    type Step = Arc<Step<D>>;
    type Recording = Recording<D>;
    const HAS_NATIVE_RECORDINGS: bool = false;
    fn recording(_: Place<'_, D>, is_profiled: bool) -> Result<Recording<D>> {
        Ok(Recording { is_profiled, ends: vec![], last: None, points: vec![] })
    }
    fn step(_: Place<'_, D>, ready: &Ready<'_, D>) -> Result<Arc<Step<D>>> {
        Step::of(ready).map(Arc::new)
    }
    fn again(step: &Arc<Step<D>>) -> Arc<Step<D>> {
        Arc::clone(step)
    }
    fn close(
        recording: &mut Recording<D>,
        _: Place<'_, D>,
        nodes: &[Node<D>],
        _: Change,
    ) -> Result<()> {
        let mut is_end = vec![true; nodes.len()];
        nodes.iter().flat_map(|node| &node.after).for_each(|&one| is_end[one] = false);
        recording.ends = (0..nodes.len()).filter(|&place| is_end[place]).collect();
        Ok(())
    }
    fn execute(
        recording: &mut Recording<D>,
        nodes: &[Node<D>],
        (queue, name): (Borrowed<'_, Queue<D>>, ur_command_t),
        events: &[Borrowed<'_, Event<D>>],
        report: CompletionRequest,
    ) -> Enqueued<D> {
        let of_nodes = nodes.iter().flat_map(|node| &node.waits).map(Owned::borrow);
        let all: SmallVec<[_; FEW]> = events.iter().copied().chain(of_nodes).collect();
        if D::is_recording(&queue, &all)? {
            let why = "another thread has begun a capture of this queue meanwhile";
            return refused(ErrorCode::GraphCaptureInvalidated, why);
        }
        let of = report.wants_event().then(|| queue.own()).transpose()?;
        let profile = match recording.is_profiled {
            _ if of.is_none() => Profile::Off,
            true => Profile::Phases,
            false => queue.profile(),
        };
        let mut before = Waits::new();
        waits::capture(&all, &mut before)?;
        let mut list = lent(&before);
        let is_captured = D::is_captured(&queue)?;
        let last = recording.last.take_if(|last| !is_under_way(last));
        drop(last);
        if let Some(last) = recording.last.as_ref().filter(|_| !is_captured) {
            list.push(Wait::Point(&last.ended));
        }
        let points = &mut recording.points;
        let course = Course {
            queue: &queue,
            nodes,
            ends: &recording.ends,
            waits: &list,
            profile,
            is_awaited: matches!(report, CompletionRequest::Done { .. }),
        };
        let outcome = course.submit(points);
        let run = match &outcome {
            Ok(_) => None,
            Err(_) => course.part(points).map(Arc::new),
        };
        // Commands submitted from here on wait for this execution.
        for (node, point) in nodes.iter().zip(points.drain(..)) {
            if let (Some(event), Some(point)) = (&node.signal, point) {
                event.signalled(point, event.made_for());
            }
        }
        let outcome = match report {
            CompletionRequest::Done { .. } => queue.note(outcome),
            _ => outcome.map_err(Error::from),
        };
        let (made, run) = match outcome {
            Ok(done) => {
                let done = Arc::new(done);
                let event = of.map(|queue| Event::of_run(queue, name, Arc::clone(&done), profile));
                (Ok(event), Some(done))
            }
            Err(error) => (Err(error), run),
        };
        drop(list);
        if let Some(run) = run.filter(|_| !is_captured) {
            recording.last = Some(run);
        }
        made
    }
    fn record_all(
        queue: Borrowed<'_, Queue<D>>,
        name: ur_command_t,
        nodes: &[Node<D>],
        events: &[Borrowed<'_, Event<D>>],
        report: CompletionRequest,
    ) -> Enqueued<D> {
        graph::splice(queue, name, nodes, events, report)
    }
    fn native_buffer(
        buffer: Borrowed<'_, CommandBuffer<D>>,
        _: &Recording<D>,
    ) -> Result<ur_native_handle_t> {
        match D::HAS_NATIVE_HANDLES {
            false => own_handle::of(&buffer),
            true => Error::unsupported("urCommandBufferGetNativeHandleExp"),
        }
    }
}
