//! Streams: a thread each, which does one command after the other, and the ends of commands, which are the points that the
//! core makes events of. How far a stream has come is a number; memory that is freed waits for such numbers ([`Moment`]).
use super::{Example, commands::Work, device::now};
use std::{
    any::Any,
    convert::Infallible,
    sync::{
        Arc, Condvar, Mutex,
        mpsc::{Receiver, Sender, channel},
    },
    time::Instant,
};
use ur_hal::{
    Command, Error, ErrorKind, EventSharing, Profile, Result, Signal, Status, StreamRequest,
    Submission, Times, Wait,
};
use ur_ipc::arena::{Counter, PendingSignal, Progress as Of};
use ur_lock::{locked, unpoisoned};
use ur_mapping::{PerProcess, fork_count, start_thread};

/// The end of a command: how far it has come, and when it began and ended.
#[derive(Debug)]
pub struct End {
    profile: Profile,
    submitted: u64,
    state: Mutex<(Status, u64, u64)>,
    moved: Condvar,
    /// The process whose thread settles it.
    fork: u64,
}
impl End {
    fn new(profile: Profile) -> Arc<Self> {
        let state = Mutex::new((Status::Submitted, 0, 0));
        let (submitted, moved, fork) = (now(), Condvar::new(), fork_count());
        Arc::new(Self { profile, submitted, state, moved, fork })
    }
    /// # Errors
    /// `Uninitialized` in a forked child: nobody settles it there, or lets go of its lock.
    fn check_fork(&self) -> Result<()> {
        check_fork(self.fork)
    }
    fn begin(&self) {
        let mut state = locked(&self.state);
        (state.0, state.1) = (Status::Running, now());
    }
    fn settle(&self, is_good: bool) {
        let mut state = locked(&self.state);
        (state.0, state.2) = (if is_good { Status::Complete } else { Status::Failed }, now());
        self.moved.notify_all();
    }
    fn status(&self) -> Status {
        locked(&self.state).0
    }
    /// Sleeps until it is over, or until the deadline; how far it is then.
    fn wait(&self, deadline: Option<Instant>) -> Status {
        let mut state = locked(&self.state);
        while !state.0.is_final() {
            let left = deadline.map(|at| at.saturating_duration_since(Instant::now()));
            state = match left {
                Some(left) if left.is_zero() => break,
                Some(left) => unpoisoned(self.moved.wait_timeout(state, left)).0,
                None => unpoisoned(self.moved.wait(state)),
            };
        }
        state.0
    }
}
/// # Errors
/// `Uninitialized` in a forked child of the process in which `fork` was counted, whose threads are not there.
fn check_fork(fork: u64) -> Result<()> {
    match fork == fork_count() {
        true => Ok(()),
        false => Err(Error::new(ErrorKind::Uninitialized, "the stream's thread is the parent's")),
    }
}
fn failure() -> Error {
    Error::new(ErrorKind::DependencyFailed, "what a command waits for has failed")
}

/// How many commands a stream was given, how many of them are done, and whether one failed that nobody was told of.
#[derive(Debug, Default)]
struct Counts {
    given: u64,
    done: u64,
    has_failed: bool,
}
/// What a stream, its thread and those who wait for it have in common.
#[derive(Debug, Default)]
pub struct Progress {
    counts: Mutex<Counts>,
    moved: Condvar,
}
/// A place in a stream: behind the command with this number.
#[derive(Clone, Debug)]
pub struct Moment {
    stream: Arc<Progress>,
    number: u64,
}
impl Moment {
    /// Sleeps until the stream has come so far.
    pub fn wait(&self) {
        let mut counts = locked(&self.stream.counts);
        while counts.done < self.number {
            counts = unpoisoned(self.stream.moved.wait(counts));
        }
    }
}
impl ur_hal::Moment for Moment {
    fn lane(&self) -> (usize, u32) {
        (Arc::as_ptr(&self.stream).addr(), 0)
    }
    fn number(&self) -> u64 {
        self.number
    }
    fn has_passed(&self) -> bool {
        locked(&self.stream.counts).done >= self.number
    }
    fn ask(&self, _may_mark: bool) {} // the number is there without asking
}
/// The streams of this process, each with the number of its context. Those whose thread has ended go.
static STREAMS: PerProcess<Mutex<Known>> = PerProcess::new();
type Known = Vec<(usize, Arc<Progress>)>;
/// What was submitted so far to streams of a context; 0: of all.
pub fn moments(context: usize) -> Vec<Moment> {
    let of = |stream: &Arc<Progress>| Moment {
        number: locked(&stream.counts).given,
        stream: Arc::clone(stream),
    };
    let mut all = locked(STREAMS.get());
    all.retain(|(_, stream)| Arc::strong_count(stream) > 1);
    let asked = all.iter().filter(|(its, _)| context == 0 || *its == context);
    asked.map(|(_, stream)| of(stream)).filter(|m| !ur_hal::Moment::has_passed(m)).collect()
}

/// A command on its way to the thread.
struct Job {
    points: Vec<Arc<End>>,
    /// What it follows, whether that fails or not.
    ends: Vec<Arc<End>>,
    words: Vec<PendingSignal>,
    work: Work,
    end: Arc<End>,
    /// A value that is owed to other processes.
    owed: Option<(Arc<Counter>, u64)>,
    /// What must be there until it is done.
    kept: Option<Arc<dyn Any + Send + Sync>>,
}
/// What the core knows as a stream.
#[derive(Debug)]
pub struct Stream {
    progress: Arc<Progress>,
    /// The way to the thread. The lock is held from the number of a command until the thread has it: both are in the same
    /// order.
    jobs: Mutex<Sender<Job>>,
    /// The process that has the thread.
    fork: u64,
    /// Whether points tell of all failures, so that no later command is refused for one.
    is_told_by_points: bool,
}
impl Stream {
    fn check_fork(&self) -> Result<()> {
        check_fork(self.fork)
    }
    /// Gives a command to the thread. All that can fail does so before anything is seen of it.
    pub fn put(
        &self,
        submission: &Submission<'_, Example>,
        kept: Option<Arc<dyn Any + Send + Sync>>,
    ) -> Result<Option<Arc<End>>> {
        self.check_fork()?;
        let (mut points, mut ends, mut words) = (vec![], vec![], vec![]);
        for wait in submission.waits {
            match wait {
                Wait::End(end) => ends.push(Arc::clone(end)),
                Wait::Point(end) if end.status() == Status::Failed => return Err(failure()),
                Wait::Point(end) => points.push(Arc::clone(end)),
                Wait::Word(debt) => words.push((*debt).clone()),
            }
        }
        let owed = match *submission.command {
            Command::Signal(Signal::Word(counter, value)) => Some((Arc::clone(counter), value)),
            _ => None,
        };
        let work = Work::of(submission.command)?;
        let end = End::new(submission.profile);
        let jobs = locked(&self.jobs);
        let mut counts = locked(&self.progress.counts);
        if !self.is_told_by_points && std::mem::take(&mut counts.has_failed) {
            return Err(failure()); // of an earlier command, of which nobody was told yet
        }
        counts.given += 1;
        drop(counts);
        let job = Job { points, ends, words, work, end: Arc::clone(&end), owed, kept };
        jobs.send(job).expect("the thread lives as long as the stream");
        drop(jobs);
        if submission.completion.is_awaited() && end.wait(None) == Status::Failed {
            return Err(failure());
        }
        Ok(submission.completion.wants_point().then_some(end))
    }
}
/// The thread: it ends when the stream and all that was given to it are gone.
fn work(jobs: &Receiver<Job>, progress: &Progress) {
    // The last of the commands that a failure concerns: all that were given to the stream when it was seen.
    let mut fails = 0;
    for (number, Job { points, ends, words, work, end, owed, kept }) in (1..).zip(jobs) {
        // All are waited for, also after one has failed.
        ends.iter().for_each(|one| _ = one.wait(None));
        let failed = points.iter().filter(|one| one.wait(None) == Status::Failed).count();
        let lost = words.iter().filter(|one| one.wait(None) == Of::Failed).count();
        end.begin();
        if failed + lost > 0 || (number > fails && work.run().is_err()) {
            let mut counts = locked(&progress.counts);
            (fails, counts.has_failed) = (counts.given, true);
        }
        let is_good = number > fails;
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

impl ur_hal::Streams for Example {
    /// What a command uses is kept until it is done.
    const KEEPS_OBJECTS: bool = true;
    /// Nothing is said of hints, whatever memory they concern.
    const HINTS_CONCERN_ALL: bool = true;
    type ArrivedPoint = Infallible;
    fn finish_device((): &()) -> Result<()> {
        moments(0).iter().for_each(Moment::wait);
        Ok(())
    }
    /// The thread writes words that processes share, and waits for them: the core does the rest.
    fn event_sharing((): &()) -> EventSharing {
        EventSharing::Words
    }
    /// One that may run out of order runs in order all the same: the device has one engine.
    fn stream((): &(), (): &(), request: StreamRequest) -> Result<Stream> {
        let (sender, jobs) = channel();
        let progress = Arc::<Progress>::default();
        let its = Arc::clone(&progress);
        start_thread("example-stream", move || work(&jobs, &its))
            .map_err(|error| Error::new(ErrorKind::OutOfResources, error.to_string()))?;
        locked(STREAMS.get()).push((request.context, Arc::clone(&progress)));
        let (fork, is_told_by_points) = (fork_count(), request.is_told_by_points);
        Ok(Stream { progress, jobs: Mutex::new(sender), fork, is_told_by_points })
    }
    fn submit(stream: &Stream, what: &Submission<'_, Self>) -> Result<Option<Arc<End>>> {
        stream.put(what, None)
    }
    fn submit_keeping(
        stream: &Stream,
        what: &Submission<'_, Self>,
        kept: Arc<dyn Any + Send + Sync>,
    ) -> Result<Option<Arc<End>>> {
        stream.put(what, Some(kept))
    }
    fn flush(stream: &Stream) -> Result<()> {
        stream.check_fork() // every command is on its way at once
    }
    fn is_idle(stream: &Stream) -> Result<bool> {
        stream.check_fork()?;
        let counts = locked(&stream.progress.counts);
        Ok(counts.given == counts.done)
    }
    fn finish(stream: &Stream) -> Result<()> {
        stream.check_fork()?;
        let number = locked(&stream.progress.counts).given;
        Moment { stream: Arc::clone(&stream.progress), number }.wait();
        match std::mem::take(&mut locked(&stream.progress.counts).has_failed) {
            false => Ok(()),
            true => Err(failure()),
        }
    }
    fn status(end: &Arc<End>) -> Result<Status> {
        end.check_fork()?;
        Ok(end.status())
    }
    fn wait(end: &Arc<End>, deadline: Option<Instant>) -> Result<bool> {
        end.check_fork()?;
        match end.wait(deadline) {
            Status::Failed => Err(failure()),
            status => Ok(status == Status::Complete),
        }
    }
    fn times(end: &Arc<End>) -> Result<Option<Times>> {
        end.check_fork()?;
        let (status, began, ended) = *locked(&end.state);
        let began = if end.profile == Profile::Phases { began } else { ended };
        let span = (status == Status::Complete).then_some((began, ended));
        let times = Times { submitted: end.submitted, span };
        Ok((end.profile != Profile::Off).then_some(times))
    }
}
