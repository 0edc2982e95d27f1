//! Queues: a thread each, which does one command after the other. How far it has come is a number; memory that is freed
//! waits for such numbers ([`Moment`]), and nothing else has to know of threads.
use super::{
    Example,
    commands::Work,
    device::{Context, Device, unknown},
    event::{End, Pending, Signal, failure},
};
use std::{
    any::Any,
    sync::{
        Arc, Condvar, Mutex, MutexGuard,
        mpsc::{Receiver, Sender, channel},
    },
};
use ur_adapter::{
    api::QueueApi,
    error::{Error, ErrorCode, Result},
    info::Answer,
    object::{Borrowed, Owned},
    per_process::PerProcess,
};
use ur_core::{memory::deferred_free, profiling::Profile};
use ur_ipc::arena::{Arena, Counter};
use ur_lock::{locked, unpoisoned};
use ur_mapping::{fork_count, start_thread};
use ur_sys::*;

/// How many commands a queue was given, how many of them are done, and whether one failed that nobody was told of.
#[derive(Debug, Default)]
struct Counts {
    given: u64,
    done: u64,
    has_failed: bool,
}
/// What a queue, its thread and those who wait for it have in common.
#[derive(Debug, Default)]
pub struct Progress {
    counts: Mutex<Counts>,
    moved: Condvar,
}
/// A place in a queue: behind the command with this number.
#[derive(Clone, Debug)]
pub struct Moment {
    queue: Arc<Progress>,
    number: u64,
}
impl Moment {
    /// Sleeps until the queue has come so far.
    pub fn wait(&self) {
        let mut counts = locked(&self.queue.counts);
        while counts.done < self.number {
            counts = unpoisoned(self.queue.moved.wait(counts));
        }
    }
}
impl deferred_free::Moment for Moment {
    fn lane(&self) -> (usize, u32) {
        (Arc::as_ptr(&self.queue).addr(), 0)
    }
    fn number(&self) -> u64 {
        self.number
    }
    fn has_passed(&self) -> bool {
        locked(&self.queue.counts).done >= self.number
    }
    fn ask(&self, _may_mark: bool) {} // the number is there without asking
}
/// The queues of this process, each with the handle of its context. Those whose thread has ended go.
static QUEUES: PerProcess<Mutex<Queues>> = PerProcess::new();
type Queues = Vec<(usize, Arc<Progress>)>;
/// What was submitted so far to queues of a context; 0: of all.
pub fn moments(context: usize) -> Vec<Moment> {
    let of = |queue: &Arc<Progress>| Moment {
        number: locked(&queue.counts).given,
        queue: Arc::clone(queue),
    };
    let mut all = locked(QUEUES.get());
    all.retain(|(_, queue)| Arc::strong_count(queue) > 1);
    let asked = all.iter().filter(|(its, _)| context == 0 || *its == context);
    asked.map(|(_, queue)| of(queue)).filter(|m| !deferred_free::Moment::has_passed(m)).collect()
}

/// A command on its way to the thread.
struct Job {
    waits: Vec<Pending>,
    work: Work,
    end: Arc<End>,
    /// A value that is owed to other processes.
    owed: Option<(Arc<Counter>, u64)>,
    /// What must be there until it is done.
    kept: Vec<Box<dyn Any + Send>>,
}
/// What a command is, besides what it waits for.
pub struct Submission<'a> {
    pub work: Work,
    pub profile: Profile,
    pub kept: Vec<Box<dyn Any + Send>>,
    pub signal: Option<&'a Signal>,
}

type Lane = (Sender<Job>, Vec<(Arena, Arc<Counter>)>);
#[derive(Debug)]
pub struct Queue {
    context: Owned<Context>,
    device: Owned<Device>,
    flags: ur_queue_flags_t,
    progress: Arc<Progress>,
    /// The way to the thread, and the counters by which signals reach other processes, one for each arena. The lock is
    /// held from the number of a command until the thread has it: both are in the same order.
    lane: Mutex<Lane>,
    /// The process that has the thread.
    fork: u64,
}
/// What queues can be asked for. One that may run out of order runs in order all the same: the device has one engine.
pub fn flags() -> ur_queue_flags_t {
    use ur_queue_flags_t as F;
    let hints =
        F::PRIORITY_LOW | F::PRIORITY_HIGH | F::SUBMISSION_BATCHED | F::SUBMISSION_IMMEDIATE;
    F::OUT_OF_ORDER_EXEC_MODE_ENABLE | F::PROFILING_ENABLE | F::DISCARD_EVENTS | hints
}
impl Queue {
    pub fn place(&self) -> (&Owned<Context>, &Owned<Device>) {
        (&self.context, &self.device)
    }
    fn check_fork(&self) -> Result<()> {
        match self.fork == fork_count() {
            true => Ok(()),
            false => {
                Err(Error::new(ErrorCode::Uninitialized, "the queue's thread is the parent's"))
            }
        }
    }
    /// Whether times are noted of its commands.
    pub fn profile(&self) -> Profile {
        match self.flags.contains(ur_queue_flags_t::PROFILING_ENABLE) {
            true => Profile::Phases,
            false => Profile::Off,
        }
    }
    /// Gives a command to the thread. All that can fail does so before anything is seen of it.
    pub fn put(&self, waits: Vec<Pending>, what: Submission<'_>) -> Result<Arc<End>> {
        self.check_fork()?;
        let Submission { work, profile, kept, signal } = what;
        let end = End::new(profile);
        let (lane, counter) = match signal {
            Some(Signal::Shared(slot)) => self.counter_of(slot.arena())?,
            _ => (locked(&self.lane), None),
        };
        let owed = counter.map(|counter| {
            let value = counter.reserve();
            (counter, value)
        });
        locked(&self.progress.counts).given += 1;
        let job = Job { waits, work, end: Arc::clone(&end), owed: owed.clone(), kept };
        lane.0.send(job).expect("the thread lives as long as the queue");
        match (signal, owed) {
            (Some(Signal::Local(event)), _) => *locked(event) = Arc::clone(&end),
            (Some(Signal::Shared(slot)), Some((counter, value))) => {
                ur_core::unseen::judge(slot.publish(&counter, value))?;
            }
            _ => {}
        }
        Ok(end)
    }
    /// The lane with the counter for an arena in it. One that is not there is taken without the lock, since another process
    /// may have to be asked for it.
    fn counter_of(&self, arena: &Arena) -> Result<(MutexGuard<'_, Lane>, Option<Arc<Counter>>)> {
        let mut fresh = None;
        loop {
            let mut lane = locked(&self.lane);
            lane.1.retain(|(of, counter)| {
                !counter.is_retired() && (of.id() == arena.id() || !of.is_orphaned())
            });
            if let Some(counter) = fresh.take() {
                lane.1.push((arena.clone(), Arc::new(counter)));
            }
            let known = lane.1.iter().find(|(of, _)| of.id() == arena.id());
            if let Some(counter) = known.map(|(_, counter)| Arc::clone(counter)) {
                return Ok((lane, Some(counter)));
            }
            drop(lane);
            fresh = Some(arena.take_counter()?);
        }
    }
    /// Waits for all commands. A failure is told once.
    fn finish(&self) -> Result<()> {
        self.check_fork()?;
        let number = locked(&self.progress.counts).given;
        Moment { queue: Arc::clone(&self.progress), number }.wait();
        deferred_free::sweep_all::<super::memory::Memory>();
        match std::mem::take(&mut locked(&self.progress.counts).has_failed) {
            false => Ok(()),
            true => Err(failure()),
        }
    }
}
/// The thread: it ends when the queue and all that was given to it are gone.
fn work(jobs: &Receiver<Job>, progress: &Progress) {
    // The last of the commands that a failure concerns: all that were given to the queue when it was seen.
    let mut fails = 0;
    for (number, Job { waits, work, end, owed, kept }) in (1..).zip(jobs) {
        // All are waited for, also after one has failed.
        let mut is_good = waits.iter().filter(|one| !one.wait()).count() == 0;
        if !is_good {
            let mut counts = locked(&progress.counts);
            (fails, counts.has_failed) = (counts.given, true);
        }
        is_good &= number > fails;
        end.begin();
        if is_good {
            work.run();
        }
        match owed {
            Some((counter, value)) if is_good => counter.complete(value),
            Some((counter, _)) => counter.fail(),
            None => {}
        }
        end.settle(is_good);
        drop(kept);
        locked(&progress.counts).done += 1;
        progress.moved.notify_all();
    }
}

impl QueueApi for Example {
    fn queue_create(
        context: Borrowed<'_, Context>,
        device: Borrowed<'_, Device>,
        properties: Option<&ur_queue_properties_t>,
    ) -> Result<Owned<Queue>> {
        context.check(device)?;
        let asked = properties.map_or(ur_queue_flags_t::default(), |p| p.flags);
        if !flags().contains(asked) {
            let why = "the device has no queues of its own and no default stream";
            return Err(Error::new(ErrorCode::InvalidQueueProperties, why));
        }
        let (sender, jobs) = channel();
        let progress = Arc::<Progress>::default();
        let its = Arc::clone(&progress);
        start_thread("example-queue", move || work(&jobs, &its))
            .map_err(|e| Error::no_thread("example-queue", &e))?;
        locked(QUEUES.get()).push((context.as_handle().addr(), Arc::clone(&progress)));
        let (context, device) = (context.own()?, device.own()?);
        let (lane, fork) = (Mutex::new((sender, vec![])), fork_count());
        Ok(Owned::new(Queue { context, device, flags: asked, progress, lane, fork }))
    }
    fn queue_get_info(
        queue: Borrowed<'_, Queue>,
        name: ur_queue_info_t,
        answer: &mut Answer<'_>,
    ) -> Result<()> {
        use ur_queue_info_t as I;
        match name {
            I::CONTEXT => answer.handle(&queue.context),
            I::DEVICE => answer.handle(&queue.device),
            I::FLAGS => answer.value(&queue.flags.bits()),
            I::REFERENCE_COUNT => answer.value(&queue.api_refs()),
            I::EMPTY => {
                let counts = locked(&queue.progress.counts);
                answer.bool(counts.given == counts.done)
            }
            I::SIZE => {
                Err(Error::new(ErrorCode::InvalidQueue, "only queues on a device have a size"))
            }
            _ => Err(unknown(name)),
        }
    }
    fn queue_finish(queue: Owned<Queue>) -> Result<()> {
        queue.finish()
    }
    fn queue_flush(queue: Borrowed<'_, Queue>) -> Result<()> {
        queue.check_fork() // every command is on its way at once
    }
}
