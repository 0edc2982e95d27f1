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
    Cpu,
    device::{DriverContext, DriverDevice},
    engine::{self, Completion, Dependencies, Dependency, OwedSignal, Work, failed},
    image, launch,
};
use std::{
    any::Any,
    convert::Infallible,
    sync::{Arc, Mutex},
};
use ur_hal::{
    Command, EventSharing, Notification, Priority, Result, Signal, Status, StreamRequest, Streams,
    Submission, Times, Wait,
};
use ur_lock::locked;
use ur_mapping::PerProcess;

/// A stream as the core holds it.
#[derive(Debug)]
pub struct Stream {
    queue: engine::Queue,
    device: Arc<DriverDevice>,
}
impl Stream {
    /// Submits work with the properties of a submission.
    #[inline(always)] // if the kind of the work is known, the code for others is eliminated
    fn put(&self, work: Work, what: &Submission<'_, Cpu>) -> Result<Option<Arc<Completion>>> {
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
        let completion = self.queue.submit(dependencies, submission)?;
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

/// The work of a command on a device.
///
/// # Errors
/// As for [`Work::of`].
fn work(device: &DriverDevice, command: &Command<'_, Cpu>) -> Result<Work> {
    match command {
        Command::Launch(launch) => launch::work(device, launch),
        Command::ImageCopy(copy) => Ok(image::copy(copy)?),
        command => Work::of(command),
    }
}

impl Streams for Cpu {
    const NOTIFIES: bool = true;
    const KEEPS_OBJECTS: bool = true;
    const ORDERS_BY_POINTS: bool = true;
    /// So that no warning is logged for hints: they never have an effect here.
    const HINTS_CONCERN_ALL: bool = true;
    type ArrivedPoint = Infallible;
    fn engines(_: &Arc<DriverDevice>) -> Result<u32> {
        Ok(ENGINES)
    }
    fn finish_device(device: &Arc<DriverDevice>) -> Result<()> {
        wait_for_device(device);
        Ok(())
    }
    fn event_sharing(_: &Arc<DriverDevice>) -> EventSharing {
        EventSharing::Words
    }
    fn stream(
        _: &DriverContext,
        device: &Arc<DriverDevice>,
        request: StreamRequest,
    ) -> Result<Stream> {
        let nice = match request.priority {
            Priority::Low => STEP,
            Priority::High => -STEP,
            Priority::Normal => 0,
        };
        let engine = engine::Queue::new(request.context, request.is_out_of_order)
            .nice(nice)
            .told_by_points(request.is_told_by_points);
        note(device, engine.watch());
        Ok(Stream { queue: engine, device: Arc::clone(device) })
    }
    #[inline(always)] // if the kind of the command is known, the code for others is eliminated
    fn submit(
        stream: &Stream,
        submission: &Submission<'_, Self>,
    ) -> Result<Option<Arc<Completion>>> {
        if Work::is_plain(submission.command) {
            return stream.put(Work::plain(submission.command), submission);
        }
        stream.put(work(&stream.device, submission.command)?, submission)
    }
    fn submit_keeping(
        stream: &Stream,
        submission: &Submission<'_, Self>,
        kept: Arc<dyn Any + Send + Sync>,
    ) -> Result<Option<Arc<Completion>>> {
        let work = work(&stream.device, submission.command)?;
        stream.put(Work::Keeping(Box::new(work), kept), submission)
    }
    fn flush(stream: &Stream) -> Result<()> {
        stream.queue.flush()
    }
    fn is_idle(stream: &Stream) -> Result<bool> {
        Ok(stream.queue.is_idle())
    }
    fn finish(stream: &Stream) -> Result<()> {
        stream.queue.finish()
    }
    fn status(point: &Arc<Completion>) -> Result<Status> {
        point.check_fork()?;
        Ok(point.status())
    }
    fn wait_until_final(point: &Arc<Completion>) -> Result<()> {
        point.check_fork()?;
        point.wait().map_err(|why| failed(&why))
    }
    fn times(point: &Arc<Completion>) -> Result<Option<Times>> {
        let span = point.times().map(|times| (times.started, times.ended));
        Ok(point.submitted_at().map(|submitted| Times { submitted, span }))
    }
    fn notify(point: &Arc<Completion>, at: Status, call: Notification) -> Result<()> {
        point.check_fork()?;
        point.call_at(at, move |_| call());
        Ok(())
    }
}
#[cfg(test)]
mod tests;
