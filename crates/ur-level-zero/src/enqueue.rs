//! How commands get into the queues of this driver; what goes into a command list is `submission.rs`'s.
pub(super) use super::submission::{Made, submit};
use super::{
    Device, Event, Kernel, LevelZero, Mem, Queue,
    crossing::Far,
    enqueue_image,
    fate::Fate,
    host_task::{self, by_thread},
    launch::{Asked, Launch},
    memory::Allocation,
    native::execute::is_one_append,
    signal::{Home, Signal},
    submission::{Appends, Submission, submit_one},
};
use std::sync::Arc;
use ur_adapter::{
    command::Report,
    error::{ErrorCode, Result},
    object::{Borrowed, Owned},
};
use ur_core::{
    command::{Pixels, Ready, TakesCommands},
    memory::allocation::Usm,
    profiling::Profile,
    program::launch::on_queue,
};
use ur_hal::{Address, Command, Order};
use ur_sys::{ur_command_t, ur_exp_kernel_arg_properties_t, ur_kernel_launch_ext_properties_t};

/// A barrier that signals an event of C's.
fn signal(
    queue: Borrowed<'_, Queue>,
    events: &[Borrowed<'_, Event>],
    signalled: &Event,
) -> Result<()> {
    let is_timed = signalled.check_signal()? || queue.is_profiling();
    let command = ur_command_t::EVENTS_WAIT_WITH_BARRIER;
    let plain = Submission::new(queue, command, Report::None);
    let plain = Submission { order: Order::Both, profile: Profile::Off, ..plain };
    let timed = Submission { report: Report::Event, profile: Profile::Instant, ..plain };
    let Some(shared) = signalled.as_shared() else {
        let submission =
            if is_timed { timed } else { Submission { report: Report::Event, ..plain } };
        let point = submission.append(queue, events, |_, _| Ok(()))?;
        point.into_iter().for_each(|point| signalled.replace(Arc::new(point)));
        return Ok(());
    };
    // The times are another event's, which comes first: they are known as soon as this one is complete.
    let times = match is_timed && shared.is_private() {
        true => timed.append(queue, events, |_, _| Ok(()))?,
        false => None,
    };
    let waits = if times.is_some() { &[] } else { events };
    let (core, mut count) = (shared.core(), 0);
    let raw = core.event().raw();
    let submission = Submission { at_once: true, report: Report::Event, ..plain };
    let submitted = submission.append(queue, waits, |list, _| {
        count = core.sign();
        list.signal(raw)
    });
    match submitted {
        Ok(signal) => core.signed(count, signal),
        Err(error) => {
            core.signed(count, None);
            return Err(error);
        }
    }
    shared.note_times(times);
    Ok(())
}

impl TakesCommands for LevelZero {
    type Known = Allocation;
    fn is_managed(at: Address) -> bool {
        Allocation::find(at.into()).is_some_and(|found| found.usm() == Usm::Shared)
    }
    fn buffer_at(device: &Owned<Device>, buffer: &Mem) -> Result<Address> {
        let at = buffer.storage().at(device)? as usize + buffer.origin();
        Address::new(at).ok_or_else(|| ErrorCode::InvalidMemObject.into())
    }
    #[inline]
    fn submit(
        queue: Borrowed<'_, Queue>,
        ready: &Ready<'_, Self>,
        events: &[Borrowed<'_, Event>],
        report: Report,
    ) -> Made {
        let plain = Submission::new(queue, ready.name, report);
        let (order, profile) = (ready.order, ready.profile(plain.profile));
        let submission = Submission { order, profile, ..plain };
        match ready.command {
            Command::Barrier if is_superfluous(queue, events, report) => {
                superfluous(queue, &submission)
            }
            Command::HostCall(call) => host_task::run(queue, call, events, submission),
            ref command => put(queue, submission, events, command),
        }
    }
    fn signal(
        queue: Borrowed<'_, Queue>,
        events: &[Borrowed<'_, Event>],
        signalled: Borrowed<'_, Event>,
    ) -> Result<()> {
        signal(queue, events, &signalled)
    }
    fn submit_pixels(
        queue: Borrowed<'_, Queue>,
        name: ur_command_t,
        pixels: &Pixels<'_, Self::Mem>,
        events: &[Borrowed<'_, Event>],
        report: Report,
    ) -> Made {
        submit(queue, name, events, report, |list| enqueue_image::append(&queue, list, pixels))
    }
    fn launch(
        queue: Borrowed<'_, Queue>,
        kernel: Borrowed<'_, Kernel>,
        (offset, global, local): (Option<&[usize]>, &[usize], Option<&[usize]>),
        arguments: &[ur_exp_kernel_arg_properties_t],
        properties: Option<&ur_kernel_launch_ext_properties_t>,
        events: &[Borrowed<'_, Event>],
        report: Report,
    ) -> Made {
        let asked = Asked { offset, global, local, arguments, properties };
        let launch = Launch::new(on_queue(queue, &kernel)?, asked)?;
        submit_one(queue, ur_command_t::KERNEL_LAUNCH, events, report, |list| match &launch {
            Some(launch) => launch.append(list),
            None => list.barrier(),
        })
    }
    fn begin_native(
        queue: Borrowed<'_, Queue>,
        barrier: &Ready<'_, Self>,
        events: &[Borrowed<'_, Event>],
    ) -> Result<()> {
        beside_native(queue, barrier, events, Report::None)?;
        queue.work().keep_first_behind_barrier()
    }
    fn end_native(queue: Borrowed<'_, Queue>, barrier: &Ready<'_, Self>, report: Report) -> Made {
        beside_native(queue, barrier, &[], report)
    }
}
/// A barrier that is never left out: of what the caller puts into the list nothing is known, so that there is no telling
/// when it is done.
fn beside_native(
    queue: Borrowed<'_, Queue>,
    barrier: &Ready<'_, LevelZero>,
    events: &[Borrowed<'_, Event>],
    report: Report,
) -> Made {
    let (plain, appends) = (Submission::new(queue, barrier.name, report), Appends::One);
    let submission = Submission { order: barrier.order, at_once: true, appends, ..plain };
    submission.put(queue, events, |list, _| list.barrier())
}
/// Puts a command into a queue, or, where the queue's device does not reach its memory, what a thread does there instead.
#[inline]
fn put(
    queue: Borrowed<'_, Queue>,
    submission: Submission,
    events: &[Borrowed<'_, Event>],
    command: &Command<'_, LevelZero>,
) -> Made {
    if let Some(far) = Far::of(queue.context().borrow(), queue.device(), command)? {
        return put_far(queue, submission, events, far);
    }
    let appends = if is_one_append(command) { Appends::One } else { Appends::Any };
    let submission = Submission { appends, ..submission };
    submission.put(queue, events, |list, _| list.append(command))
}
/// Has a thread carry out a command, whose event fails with it.
fn put_far(
    queue: Borrowed<'_, Queue>,
    submission: Submission,
    events: &[Borrowed<'_, Event>],
    far: Far,
) -> Made {
    let fate = Arc::<Fate>::default();
    let inside = Arc::clone(&fate);
    let submission = Submission { at_once: true, ..submission };
    let made = submission.put(queue, events, |list, kept| {
        by_thread(&queue, list, kept, move || inside.note(far.run()))
    })?;
    if let Report::Done { .. } = submission.report {
        fate.check()?;
        return Ok(made);
    }
    if let Some(event) = &made {
        event.depend_on(&fate);
    }
    queue.work().fates.add(&fate);
    Ok(made)
}
/// Whether a command that does nothing but hold its place need not be there: the queue is where it would be.
fn is_superfluous(
    queue: Borrowed<'_, Queue>,
    events: &[Borrowed<'_, Event>],
    report: Report,
) -> bool {
    events.is_empty()
        && match report {
            Report::None => queue.is_in_order(),
            Report::Event => !queue.is_profiling() && queue.work().is_known_idle(),
            Report::Done { .. } => false,
        }
}
fn superfluous(queue: Borrowed<'_, Queue>, submission: &Submission) -> Made {
    queue.work().check()?;
    let over = || Ok(Event::of(submission.command, Signal::over(Home::Queue(queue.own()?))));
    submission.report.wants_event().then(over).transpose()
}
