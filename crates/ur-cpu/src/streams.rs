//! Streams and points of the CPU: the engine's queues and completions, of which the core makes queues and
//! events.
//!
//! The effect of the flags of a queue:
//!
//! | Flags | |
//! | --- | --- |
//! | `OUT_OF_ORDER_EXEC_MODE_ENABLE`, `PROFILING_ENABLE` | as documented |
//! | `PRIORITY_LOW`, `PRIORITY_HIGH` | the nice value of an in-order queue's thread is 5 greater or smaller, as far as the system permits (a smaller value needs a privilege); no effect on out-of-order queues, which share their threads |
//! | `DISCARD_EVENTS` | no effect: events that are requested are created |
//! | `SUBMISSION_BATCHED`, `SUBMISSION_IMMEDIATE` | no effect: every command is submitted at once, which both permit |
//! | `USE_DEFAULT_STREAM`, `SYNC_WITH_DEFAULT_STREAM` | no effect: there is no default stream |
//! | `LOW_POWER_EVENTS_SUPPORT_EXP` | no effect: a long wait always sleeps |
//! | `ON_DEVICE`, `ON_DEVICE_DEFAULT` | refused: `INVALID_QUEUE_PROPERTIES` |
use super::{
    Cpu, Device, Queue,
    device::{DriverContext, DriverDevice},
    engine::{self, Completion, Dependencies, Dependency, OwedSignal, Work, failed},
    host::uuid,
    image, launch,
};
use std::{
    any::Any,
    convert::Infallible,
    sync::{Arc, Mutex},
    time::Instant,
};
use ur_adapter::error::Result;
use ur_core::{
    command::{Ready, Used},
    queue::HasStreams,
};
use ur_hal::{
    Address, Command, EventSharing, Notification, Priority, Signal, Status, StreamRequest, Streams,
    Submission, Times, Wait,
};
use ur_lock::locked;
use ur_mapping::PerProcess;

/// A stream as the core holds it.
#[derive(Debug)]
pub struct Stream(engine::Queue);
impl Stream {
    /// Submits work with the properties of a submission.
    #[inline(always)] // if the kind of the work is known, the code for others is eliminated
    fn put(
        &self,
        work: Work,
        what: &Submission<'_, Cpu>,
    ) -> ur_hal::Result<Option<Arc<Completion>>> {
        let dependencies = match what.waits {
            [] => Dependencies::default(),
            waits => pending(waits)?,
        };
        let owed = match *what.command {
            Command::Signal(Signal::Word(counter, value)) => {
                Some(OwedSignal { counter: Arc::clone(counter), value })
            }
            _ => None,
        };
        let is_awaited = what.completion.is_awaited();
        let want = is_awaited || what.completion.wants_point();
        let (order, profile) = (what.order, what.profile);
        let submission = engine::Submission { work, owed, order, profile, want };
        let completion = self.0.submit(dependencies, submission)?;
        if let Some(completion) = completion.as_ref().filter(|_| is_awaited) {
            completion.wait().map_err(|why| failed(&why))?;
        }
        Ok(completion)
    }
}

/// The dependencies that are not complete.
fn pending(waits: &[Wait<'_, Cpu>]) -> Result<Dependencies> {
    let mut waits = waits.iter().map(|wait| match wait {
        Wait::Point(completion) => Dependency::Local(Arc::clone(completion)),
        Wait::End(completion) => Dependency::End(Arc::clone(completion)),
        Wait::Word(debt) => Dependency::Shared((*debt).clone()),
    });
    let mut pending = Dependencies::default();
    waits.try_for_each(|one| pending.add(one))?;
    Ok(pending)
}

/// The difference in nice values between priorities.
const STEP: i32 = 5;
/// The number of engines to choose from: see `MAX_COMPUTE_QUEUE_INDICES`.
pub(super) const ENGINES: u32 = 1;

/// The queues of this process, each with the addresses of its device and of that device's ancestors.
type QueueRegistry = Mutex<Vec<(Vec<usize>, engine::Watch)>>;
static QUEUES: PerProcess<QueueRegistry> = PerProcess::new();

fn note(device: &Arc<DriverDevice>, watch: engine::Watch) {
    let line =
        std::iter::successors(Some(device), |one| one.part.as_ref().map(|part| &part.parent));
    let line = line.map(|device| Arc::as_ptr(device).addr()).collect();
    let mut all = locked(QUEUES.get());
    all.retain(|(_, queue)| !queue.is_over());
    all.push((line, watch));
}
/// Waits for all commands submitted so far to queues of `device` and of its sub-devices, also of released
/// queues. Errors of commands are reported by their queues and events, not here.
pub(super) fn wait_for_device(device: &Arc<DriverDevice>) {
    let address = Arc::as_ptr(device).addr();
    let ticket = {
        let all = locked(QUEUES.get());
        let of_device = all.iter().filter(|(line, _)| line.contains(&address));
        engine::ticket(of_device.map(|(_, queue)| queue))
    };
    ticket.wait();
}

/// The work of a command, with everything that must be kept until it is done.
///
/// # Errors
/// As for [`Work::of`]; an error for an object that was released.
fn work(device: &Device, ready: &Ready<'_, Cpu>) -> Result<Work> {
    let work = match ready.command {
        Command::Launch(launch) => launch::work(device, launch)?,
        Command::ImageCopy(copy) => image::copy(copy)?,
        ref command => Work::of(command)?,
    };
    ready.used().try_fold(work, keeping)
}
fn keeping(work: Work, used: &Used<'_, Cpu>) -> Result<Work> {
    let kept: Arc<dyn Any + Send + Sync> = match used {
        Used::Buffer { .. } => return Ok(work), // freed deferred, behind its commands
        Used::Program(program) => Arc::new(program.own()?),
        Used::Freed(freed) => Arc::new(freed.take()),
    };
    Ok(Work::Keeping(Box::new(work), kept))
}

impl Streams for Cpu {
    const NOTIFIES: bool = true;
    type ArrivedPoint = Infallible;
    fn engines(_: &Arc<DriverDevice>) -> ur_hal::Result<u32> {
        Ok(ENGINES)
    }
    fn event_sharing(_: &Arc<DriverDevice>) -> EventSharing {
        EventSharing::Words
    }
    fn stream(
        _: &DriverContext,
        device: &Arc<DriverDevice>,
        request: StreamRequest,
    ) -> ur_hal::Result<Stream> {
        let nice = match request.priority {
            Priority::Low => STEP,
            Priority::High => -STEP,
            Priority::Normal => 0,
        };
        let engine = engine::Queue::new(request.context, request.is_out_of_order)
            .nice(nice)
            .told_by_points(request.is_told_by_points);
        note(device, engine.watch());
        Ok(Stream(engine))
    }
    #[inline(always)] // if the kind of the command is known, the code for others is eliminated
    fn submit(
        stream: &Stream,
        submission: &Submission<'_, Self>,
    ) -> ur_hal::Result<Option<Arc<Completion>>> {
        if Work::is_plain(submission.command) {
            return stream.put(Work::plain(submission.command), submission);
        }
        stream.put(Work::of(submission.command)?, submission)
    }
    fn flush(stream: &Stream) -> ur_hal::Result<()> {
        stream.0.flush()
    }
    fn is_idle(stream: &Stream) -> ur_hal::Result<bool> {
        Ok(stream.0.is_idle())
    }
    fn finish(stream: &Stream) -> ur_hal::Result<()> {
        stream.0.finish()
    }
    fn status(point: &Arc<Completion>) -> ur_hal::Result<Status> {
        point.check_fork()?;
        Ok(point.status())
    }
    fn wait(point: &Arc<Completion>, deadline: Option<Instant>) -> ur_hal::Result<bool> {
        point.check_fork()?;
        if let Some(deadline) = deadline
            && !Self::is_final_by(point, deadline)?
        {
            return Ok(false);
        }
        point.wait().map(|()| true).map_err(|why| failed(&why))
    }
    fn times(point: &Arc<Completion>) -> ur_hal::Result<Option<Times>> {
        let span = point.times().map(|times| (times.started, times.ended));
        Ok(point.submitted_at().map(|submitted| Times { submitted, span }))
    }
    fn notify(point: &Arc<Completion>, at: Status, call: Notification) -> ur_hal::Result<()> {
        point.check_fork()?;
        point.call_at(at, move |_| call());
        Ok(())
    }
}
impl HasStreams for Cpu {
    ur_core::records_graphs!();
    const FREES_WITH_COMMANDS: bool = true;
    const ORDERS_BY_POINTS: bool = true;
    fn uuid(_: &Device) -> Result<[u8; 16]> {
        uuid()
    }
    /// True for all memory, so that no warning is logged for hints: they never have an effect here.
    fn is_managed(_at: Address) -> bool {
        true
    }
    #[inline(always)] // if the kind of the command is known, the code for others is eliminated
    fn submit_using(
        queue: &Queue,
        submission: &Submission<'_, Self>,
        ready: &Ready<'_, Self>,
    ) -> ur_hal::Result<Option<Arc<Completion>>> {
        match (&ready.uses, ready.more) {
            ([None, None], []) if Work::is_plain(submission.command) => {
                Self::submit(queue.stream(), submission)
            }
            _ => queue.stream().put(work(queue.device(), ready)?, submission),
        }
    }
}

#[cfg(test)]
mod tests;
