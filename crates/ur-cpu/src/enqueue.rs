//! How a command gets into a CPU queue: captures what must come first; the engine does the rest.
use super::{
    Cpu, Device, Event, ExecutableGraph, Kernel, Mem, Queue,
    capture::taker,
    engine::{Completion, Dependencies, Order, Submission, Work, failed},
    enqueue_image, graph, launch,
    mem::Placed,
    memory::{Allocation, Freeing},
};
use std::{any::Any, sync::Arc};
use ur_adapter::{
    command::Report,
    error::{ErrorCode, Result},
    object::{Borrowed, Owned},
};
use ur_core::{
    command::{Pixels, Ready, TakesCommands, Used},
    profiling::Profile,
};
use ur_hal::Address;
use ur_sys::{ur_command_t, ur_exp_kernel_arg_properties_t, ur_kernel_launch_ext_properties_t};

/// The event of a command, if C wanted one.
pub(super) type Made = Result<Option<Owned<Event>>>;

/// What the events of a wait list stand for at this moment.
pub(super) fn capture(events: &[Borrowed<'_, Event>]) -> Result<Dependencies> {
    let mut dependencies = Dependencies::default();
    for event in events {
        let captured = event.capture().map_err(|error| match error.code() {
            ErrorCode::InvalidEvent => error.with_code(ErrorCode::InvalidEventWaitList),
            _ => error,
        })?;
        captured.map_or(Ok(()), |one| dependencies.add(one))?;
    }
    Ok(dependencies)
}

/// Submits a command that signals no event of C's but a new one.
pub(super) fn enqueue(
    queue: Borrowed<'_, Queue>,
    command: ur_command_t,
    events: &[Borrowed<'_, Event>],
    submission: Submission<'_>,
    report: Report,
) -> Made {
    if let Some(taker) = taker(queue, events)? {
        return taker.record(command, events, submission, None, report);
    }
    Ok(enqueue_with(queue, command, capture(events)?, submission, report)?.0)
}
/// The event that C wanted, and what is known of how far the command has come.
type Submitted = (Option<Owned<Event>>, Option<Arc<Completion>>);
/// Submits a command whose dependencies are known. Its completion too, if anything was to be known.
pub(super) fn enqueue_with(
    queue: Borrowed<'_, Queue>,
    command: ur_command_t,
    dependencies: Dependencies,
    submission: Submission<'_>,
    report: Report,
) -> Result<Submitted> {
    // First what can fail: once it is submitted there is no way back.
    let of = report.wants_event().then(|| queue.own()).transpose()?;
    let want = submission.want || report != Report::None;
    let completion = queue.engine().submit(dependencies, Submission { want, ..submission })?;
    if let (Report::Done { .. }, Some(completion)) = (report, &completion) {
        completion.wait().map_err(|why| failed(&why))?;
    }
    let made = of.zip(completion.clone());
    Ok((made.map(|(queue, completion)| Event::of(queue, command, completion)), completion))
}

/// A command that does nothing but hold its place.
pub(super) fn place(order: Order) -> Submission<'static> {
    Submission { order, ..Submission::new(Work::Barrier) }
}
/// What a command does, with all that has to be there until it is done.
///
/// # Errors
/// As for [`Work::of`]; the code of an object that is gone.
#[inline(always)] // where the kind of the command is known, the way of others is gone
pub(super) fn work(ready: &Ready<'_, Cpu>) -> Result<Work> {
    let [one, other] = &ready.uses; // each by itself: most commands use none, which is known here
    keeping(keeping(Work::of(&ready.command)?, one)?, other)
}
#[inline(always)] // as `work`
fn keeping(work: Work, used: &Option<Used<'_, Cpu>>) -> Result<Work> {
    let kept: Arc<dyn Any + Send + Sync> = match used {
        None => return Ok(work),
        Some(Used::Buffer { buffer, .. }) => buffer.storage().clone(),
        Some(Used::Program(program)) => Arc::new(program.own()?),
    };
    Ok(Work::Keeping(Box::new(work), kept))
}

impl TakesCommands for Cpu {
    type Known = Allocation;
    /// All memory is where it is used.
    fn is_managed(_at: Address) -> bool {
        true
    }
    fn buffer_at(_device: &Owned<Device>, buffer: &Mem) -> Result<Address> {
        Ok(buffer.address().into())
    }
    #[inline(always)] // as `work`
    fn submit(
        queue: Borrowed<'_, Queue>,
        ready: &Ready<'_, Self>,
        events: &[Borrowed<'_, Event>],
        report: Report,
    ) -> Made {
        let (work, profile) = (work(ready)?, ready.profile(Profile::Off));
        let submission = Submission { order: ready.order, profile, ..Submission::new(work) };
        enqueue(queue, ready.name, events, submission, report)
    }
    fn signal(
        queue: Borrowed<'_, Queue>,
        events: &[Borrowed<'_, Event>],
        signalled: Borrowed<'_, Event>,
    ) -> Result<()> {
        let signal = signalled.signal()?;
        if let Some(taker) = taker(queue, events)? {
            let (command, signalled) = (ur_command_t::EVENTS_WAIT_WITH_BARRIER, signalled.own()?);
            let barrier = place(Order::Both);
            taker.record(command, events, barrier, Some(signalled), Report::None)?;
            return Ok(());
        }
        let submission = Submission { signal, ..place(Order::Both) };
        queue.engine().submit(capture(events)?, submission)?;
        Ok(())
    }
    fn submit_pixels(
        queue: Borrowed<'_, Queue>,
        name: ur_command_t,
        pixels: &Pixels<'_, Self::Mem>,
        events: &[Borrowed<'_, Event>],
        report: Report,
    ) -> Made {
        enqueue(queue, name, events, Submission::new(enqueue_image::work(pixels)?), report)
    }
    fn launch(
        queue: Borrowed<'_, Queue>,
        kernel: Borrowed<'_, Kernel>,
        range: (Option<&[usize]>, &[usize], Option<&[usize]>),
        arguments: &[ur_exp_kernel_arg_properties_t],
        properties: Option<&ur_kernel_launch_ext_properties_t>,
        events: &[Borrowed<'_, Event>],
        report: Report,
    ) -> Made {
        let work = launch::enqueued(queue, &kernel, range, arguments, properties)?;
        enqueue(queue, ur_command_t::KERNEL_LAUNCH, events, Submission::new(work), report)
    }
    /// What is freed goes with the command, whatever other queues have to do.
    fn free_in_order(
        queue: Borrowed<'_, Queue>,
        freeing: Freeing,
        events: &[Borrowed<'_, Event>],
        report: Report,
    ) -> Made {
        let spent = freeing.again();
        let work = Work::Call(Box::new(move || {
            drop(spent);
            Ok(())
        }));
        let command = ur_command_t::ENQUEUE_USM_FREE_EXP;
        match enqueue(queue, command, events, Submission::new(work), report) {
            Ok(event) => {
                freeing.announce();
                Ok(event)
            }
            Err(error) => {
                freeing.undo();
                Err(error)
            }
        }
    }
    fn submit_graph(
        queue: Borrowed<'_, Queue>,
        graph: Borrowed<'_, ExecutableGraph>,
        events: &[Borrowed<'_, Event>],
        report: Report,
    ) -> Made {
        graph::enqueue(queue, graph, events, report)
    }
}
