//! Submission of commands to queues: captures the wait list, submits, and makes an event if the caller requests one.
use super::{
    HasStreams, Queue, counters::Counters, newest::submit_with_newest, objects::no_point, ordered,
};
use crate::{
    command::{InOrder, Ready, TakesCommands, Usage, Used, check_same_context},
    event::{
        Event, Pending, Target,
        waits::{self, Waits},
    },
    memory::allocation::{Allocation, Freeing, Usm},
    over_driver::mem::Mem,
    profiling::Profile,
    unseen::judge,
};
use smallvec::SmallVec;
use ur_adapter::{
    command::{CompletionRequest, Enqueued},
    error::{Error, ErrorCode, Result},
    object::{Borrowed, Owned},
};
use ur_hal::{Address, Command, Completion, Handover, NativeCall, Order, Signal, Submission, Wait};
use ur_sys::ur_command_t;

/// The times that the driver is to record for a profile.
pub(crate) fn noted(profile: Profile) -> ur_hal::Profile {
    match profile {
        Profile::Off => ur_hal::Profile::Off,
        Profile::Phases => ur_hal::Profile::Phases,
        Profile::Moment | Profile::Instant => ur_hal::Profile::End,
    }
}

/// What the caller requests of a command that is being submitted.
struct Wanted<D: HasStreams> {
    /// The queue, if an event is requested. Retained before submission, because that can fail and a submitted command
    /// cannot be taken back.
    of: Option<Owned<Queue<D>>>,
    name: ur_command_t,
    profile: Profile,
    completion: Completion,
}
impl<D: HasStreams> Wanted<D> {
    #[inline(always)] // for the same reason as `submit`
    fn new(
        queue: Borrowed<'_, Queue<D>>,
        name: ur_command_t,
        profile: Profile,
        report: CompletionRequest,
    ) -> Result<Self> {
        let of = report.wants_event().then(|| queue.own()).transpose()?;
        let profile = if of.is_some() { profile } else { Profile::Off };
        let completion = match report {
            CompletionRequest::None => Completion::None,
            CompletionRequest::Event => Completion::Point,
            CompletionRequest::Done { event } => Completion::Done { point: event },
        };
        Ok(Self { of, name, profile, completion })
    }
    /// Makes the event from the result of the submission.
    #[inline(always)] // for the same reason as `submit`
    fn made(
        self,
        queue: Borrowed<'_, Queue<D>>,
        outcome: ur_hal::Result<Option<D::Point>>,
    ) -> Enqueued<D> {
        // The point is moved once, into the event's slot: it can be read only when it has left the processor's store buffer.
        match outcome {
            Ok(Some(point)) => Ok(match self.of {
                Some(queue) => Some(Event::of(queue, self.name, point, self.profile)),
                None => None,
            }),
            Ok(None) => Ok(None),
            Err(error) if self.completion.is_awaited() => Err(queue.noted(error)),
            Err(error) => Err(error.into()),
        }
    }
}
/// A wait list in the driver's terms. Like [`Waits`], it is filled in place.
pub(crate) type Lent<'a, D> = SmallVec<[Wait<'a, D>; 8]>;
/// Appends the captured wait list in the driver's terms.
#[inline(always)]
pub(crate) fn lend<'a, D: HasStreams>(waits: &'a Waits<'_, D>, list: &mut Lent<'a, D>) {
    if !waits.is_empty() {
        list.extend(waits.iter().map(Pending::lent));
    }
}
/// Submits something that only the backend knows, such as a recorded command buffer. The function `by` receives a
/// barrier with the wait list and the requested completion, and submits its own work in place of it. `profile` is for
/// the event.
///
/// # Errors
/// `IN_EVENT_LIST_EXEC_STATUS` if an event of the wait list has failed; errors of `by`.
pub(crate) fn submit_by<D: HasStreams>(
    queue: Borrowed<'_, Queue<D>>,
    (name, profile): (ur_command_t, Profile),
    events: &[Borrowed<'_, Event<D>>],
    report: CompletionRequest,
    by: impl FnOnce(&Submission<'_, D>) -> ur_hal::Result<Option<D::Point>>,
) -> Enqueued<D> {
    let wanted = Wanted::new(queue, name, profile, report)?;
    let (mut waits, mut list) = (Waits::new(), Lent::new());
    waits::capture(events, &mut waits)?;
    lend(&waits, &mut list);
    let outcome = by(&Submission {
        waits: &list,
        completion: wanted.completion,
        profile: noted(wanted.profile),
        lends_memory: true,
        ..Submission::new(&Command::Barrier)
    });
    wanted.made(queue, outcome)
}

impl<D: HasStreams> TakesCommands for D {
    type Known = Allocation<D::Memory>;
    fn is_managed(at: Address) -> bool {
        let is_migrated = |found: &Allocation<D::Memory>| found.usm() == Usm::Shared;
        D::HINTS_CONCERN_ALL || Allocation::find(at.into()).is_some_and(|found| is_migrated(&found))
    }
    #[inline(always)] // where the kind of the command is known, the compiler drops the code for all others
    fn submit(
        queue: Borrowed<'_, Queue<D>>,
        ready: &Ready<'_, Self>,
        events: &[Borrowed<'_, Event<D>>],
        report: CompletionRequest,
    ) -> Enqueued<Self> {
        ready.check_context(queue.context())?;
        if D::is_recording(&queue, events)? {
            return D::record(queue, ready, events, None, report);
        }
        // No closure around the submission: it would be compiled once for all kinds of commands.
        let profile = ready.profile(queue.profile());
        let wanted = Wanted::new(queue, ready.name, profile, report)?;
        let (mut waits, mut list) = (Waits::new(), Lent::new());
        waits::capture(events, &mut waits)?;
        lend(&waits, &mut list);
        let submission = Submission {
            command: &ready.command,
            waits: &list,
            order: ready.order,
            completion: wanted.completion,
            profile: noted(wanted.profile),
            lends_memory: ready.lends_memory(),
        };
        let outcome = submit_with_newest(&queue, &submission, ready);
        wanted.made(queue, outcome)
    }
    fn signal(
        queue: Borrowed<'_, Queue<D>>,
        events: &[Borrowed<'_, Event<D>>],
        signalled: Borrowed<'_, Event<D>>,
    ) -> Result<()> {
        let target = signalled.target()?;
        let name = ur_command_t::EVENTS_WAIT_WITH_BARRIER;
        if D::is_recording(&queue, events)? {
            let barrier = Ready::barrier(name, Order::Both);
            return D::record(queue, &barrier, events, Some(signalled), CompletionRequest::None)
                .map(drop);
        }
        let (mut waits, mut list) = (Waits::new(), Lent::new());
        waits::capture(events, &mut waits)?;
        lend(&waits, &mut list);
        let times = signalled.profile.is_on() || queue.profile().is_on();
        let profile = if times { Profile::Instant } else { Profile::Off };
        let barrier = Submission {
            waits: &list,
            order: Order::Both,
            profile: noted(profile),
            ..Submission::new(&Command::Barrier)
        };
        match target {
            Target::Latest(latest) => {
                let submission = Submission { completion: Completion::Point, ..barrier };
                let point = D::submit(queue.stream(), &submission)?;
                let point = point.ok_or_else(no_point)?;
                latest.note(point, profile)
            }
            Target::Word(slot) => {
                let (_turn, counter) = Counters::get(&queue.counters, slot.arena())?;
                let value = counter.reserve();
                let command = Command::Signal(Signal::Word(&counter, value));
                let profile = ur_hal::Profile::Off;
                D::submit(queue.stream(), &Submission { command: &command, profile, ..barrier })?;
                judge(slot.publish(&counter, value))
            }
            Target::Point(point) => {
                let command = Command::Signal(Signal::Point(point));
                D::submit(queue.stream(), &Submission { command: &command, ..barrier })?;
                Ok(())
            }
        }
    }
    fn is_for_graph(
        queue: Borrowed<'_, Queue<D>>,
        events: &[Borrowed<'_, Event<D>>],
    ) -> Result<bool> {
        Ok(D::is_recording(&queue, events)? || D::is_captured(queue.stream())?)
    }
    fn allocate_in_order(
        usm: Usm,
        queue: Borrowed<'_, Queue<D>>,
        pool: Borrowed<'_, D::UsmPool>,
        size: usize,
        events: &[Borrowed<'_, Event<D>>],
        report: CompletionRequest,
    ) -> Result<Option<InOrder<Event<D>>>> {
        if D::is_for_graph(queue, events)? {
            return Ok(None); // the driver would allocate now instead of at each execution: use the core's pools
        }
        match ordered::is_for_queue(usm, queue, pool)? {
            true => ordered::allocate(queue, pool, size, events, report).map(Some),
            false => Ok(None),
        }
    }
    fn free_in_order(
        queue: Borrowed<'_, Queue<D>>,
        freeing: Freeing<D::Memory>,
        events: &[Borrowed<'_, Event<D>>],
        report: CompletionRequest,
    ) -> Enqueued<Self> {
        let refusal = match D::is_for_graph(queue, events) {
            Ok(false) => None,
            Ok(true) => Some(once()),
            Err(error) => Some(error),
        };
        if let Some(error) = refusal {
            freeing.undo();
            return Err(error);
        }
        let freeing = match ordered::free(queue, freeing, events, report) {
            Ok(enqueued) => return enqueued,
            Err(other) => other,
        };
        let mut barrier = Ready::barrier(ur_command_t::ENQUEUE_USM_FREE_EXP, Order::Free);
        let spent = Handover::default();
        if D::KEEPS_OBJECTS {
            spent.put(freeing.again());
            barrier.uses[0] = Some(Used::Freed(&spent));
        }
        match <D as TakesCommands>::submit(queue, &barrier, events, report) {
            Ok(event) => {
                match D::KEEPS_OBJECTS {
                    true => freeing.announce(),
                    false => freeing.finish(queue.context().as_handle().addr()),
                }
                Ok(event)
            }
            Err(error) => {
                freeing.undo();
                Err(error)
            }
        }
    }
    fn submit_native(
        queue: Borrowed<'_, Queue<D>>,
        call: &dyn Fn(),
        used: &[Borrowed<'_, Mem<D>>],
        events: &[Borrowed<'_, Event<D>>],
        report: CompletionRequest,
    ) -> Enqueued<Self> {
        let name = ur_command_t::ENQUEUE_NATIVE_EXP;
        let barrier = Ready::barrier(name, Order::Both);
        used.iter().try_for_each(|mem| check_same_context(*mem, queue.context()))?;
        if !D::HAS_NATIVE_HANDLES {
            <D as TakesCommands>::submit(
                queue,
                &barrier,
                events,
                CompletionRequest::Done { event: false },
            )?;
            call();
            return <D as TakesCommands>::submit(queue, &barrier, &[], report);
        }
        let call = || {
            call();
            Ok(())
        };
        let more: SmallVec<[_; 4]> = used
            .iter()
            .map(|&buffer| {
                let bytes = 0..buffer.bytes();
                Some(Used::Buffer { buffer, bytes, usage: Usage::Changes })
            })
            .collect();
        let command = Command::Native(NativeCall::new(&call));
        let native = Ready { command, more: &more, ..barrier };
        <D as TakesCommands>::submit(queue, &native, events, report)
    }
    fn submit_graph(
        queue: Borrowed<'_, Queue<D>>,
        graph: Borrowed<'_, D::ExpExecutableGraph>,
        events: &[Borrowed<'_, Event<D>>],
        report: CompletionRequest,
    ) -> Enqueued<Self> {
        <D as HasStreams>::submit_graph(queue, graph, events, report)
    }
}
/// The error for freeing memory on a queue that captures.
#[cold]
fn once() -> Error {
    let why =
        "memory is freed once and cannot be freed by each execution: leave it out of the capture";
    Error::new(ErrorCode::GraphCaptureUnsupported, why)
}
