//! The state of a command, and those to be notified: waiting threads, dependent commands, callbacks. Queues
//! drive it; it executes nothing but the callbacks.
use super::{
    command::Work,
    gate::{Gate, Stored},
    out_of_order::Job,
    spin,
    sync::{Mutex, locked},
};
use std::{
    borrow::Cow,
    fmt,
    hint::black_box,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering::*, fence},
    },
};
pub(crate) use ur_hal::Status;
use ur_hal::host_clock;
use ur_hal::{Error, ErrorKind, Profile};

fn status_of(raw: u8) -> Status {
    [Status::Submitted, Status::Running, Status::Complete, Status::Failed][usize::from(raw)]
}

/// Why a command failed; passed on to dependent commands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Failure {
    why: Cow<'static, str>,
    /// Whether the reason is that the process that was to signal has ended.
    is_debtor_gone: bool,
}
impl Failure {
    pub(crate) fn new(why: impl Into<Cow<'static, str>>) -> Self {
        Self { why: why.into(), is_debtor_gone: false }
    }
    pub(crate) fn is_debtor_gone(&self) -> bool {
        self.is_debtor_gone
    }
    /// The failure of a wait for an event of another process that has ended.
    pub(super) const fn debtor_gone() -> Self {
        let why = "an event that was to be signalled by another process failed: that process ended or its \
             command failed; make the event anew with a process that lives";
        Self { why: Cow::Borrowed(why), is_debtor_gone: true }
    }
}
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why)
    }
}

/// The low half of the process's fork count: it fits where a completion has room.
fn fork() -> u32 {
    ur_mapping::fork_count() as u32
}

/// The times of a command, in nanoseconds of the device's clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Times {
    /// When it was submitted.
    pub(crate) submitted: u64,
    /// When its execution started.
    pub(crate) started: u64,
    /// When its execution ended.
    pub(crate) ended: u64,
}

/// A callback; it gets the status that was reached.
type Call = Box<dyn FnOnce(Status) + Send>;

/// Jobs and callbacks to be notified; each callback with the status from which it is due.
#[derive(Default)]
struct Followers {
    jobs: Vec<Arc<Job>>,
    calls: Vec<(Status, Call)>,
}

/// The state of a command, shared by its queue, its event and its dependents.
pub struct Completion {
    status: AtomicU8,
    profile: Profile,
    /// Whether `followers` has, or had, entries.
    followed: AtomicBool,
    gate: Gate,
    /// The process that completes it, by (the low half of) its fork count.
    fork: u32,
    times: [AtomicU64; 3],
    failure: OnceLock<Failure>,
    followers: Mutex<Followers>,
}

impl Completion {
    fn with(status: Status, profile: Profile) -> Arc<Self> {
        let completion = Self {
            status: AtomicU8::new(status as u8),
            profile,
            followed: AtomicBool::new(false),
            gate: Gate::default(),
            fork: fork(),
            times: Default::default(),
            failure: OnceLock::new(),
            followers: Mutex::default(),
        };
        if profile != Profile::Off {
            completion.times[0].store(host_clock(), Relaxed);
        }
        Arc::new(completion)
    }
    /// The completion of a command that is being submitted.
    pub(crate) fn submitted(profile: Profile) -> Arc<Self> {
        Self::with(Status::Submitted, profile)
    }
    /// Its status. A thread that reads `Complete` also sees the effects of the command.
    pub(crate) fn status(&self) -> Status {
        status_of(self.status.load(Acquire)) // pairs with `settle`
    }
    /// The result; `None` while it is pending.
    pub(crate) fn outcome(&self) -> Option<Result<(), Failure>> {
        match self.status() {
            Status::Complete => Some(Ok(())),
            Status::Failed => Some(Err(self.why())),
            _ => None,
        }
    }
    /// Checks that it is complete or will be: a command that was pending when the process was forked never ends in the
    /// child, whose copy no thread completes.
    ///
    /// # Errors
    /// `UNINITIALIZED` in such a child.
    pub(crate) fn check_fork(&self) -> Result<(), Error> {
        match self.status().is_final() || self.fork == fork() {
            true => Ok(()),
            false => Err(Error::new(
                ErrorKind::Uninitialized,
                "this command was under way when the process was forked, and ends only in the parent: ask there, or \
                 submit it anew to a queue of the child",
            )),
        }
    }
    fn why(&self) -> Failure {
        self.failure.get().expect("a failed command has a reason: `settle` sets it first").clone()
    }
    /// Waits until it is complete, and returns the result.
    ///
    /// # Errors
    /// Returns why the command failed.
    pub(crate) fn wait(&self) -> Result<(), Failure> {
        let ended = || self.status().is_final();
        if !spin::for_end(ended) {
            self.gate.wait_until(ended);
        }
        self.outcome().expect("it ended, and that is final")
    }
    /// When it was submitted, if times are recorded; known at once.
    pub(crate) fn submitted_at(&self) -> Option<u64> {
        (self.profile != Profile::Off).then(|| self.times[0].load(Relaxed))
    }
    /// Its times, if they are recorded and it is complete.
    pub(crate) fn times(&self) -> Option<Times> {
        if self.profile == Profile::Off || self.status() != Status::Complete {
            return None;
        }
        let [submitted, started, ended] = [0, 1, 2].map(|i| self.times[i].load(Relaxed));
        Some(Times { submitted, started, ended })
    }

    /// Records the start of the execution. The status of a barrier is never `Running`, because it has no
    /// duration.
    pub(super) fn begin(&self, work: &Work) {
        if self.profile == Profile::Phases {
            self.times[1].store(host_clock(), Relaxed);
        }
        if matches!(work, Work::Barrier) {
            return;
        }
        self.status.store(Status::Running as u8, Relaxed);
        fence(SeqCst); // pairs with the fence in `call_at`: a callback that is due is seen by at least one of both
        if self.followed.load(Relaxed) {
            self.make_calls();
        }
    }
    /// Loads what `settle` will access into this processor's caches.
    #[inline]
    pub(super) fn touch(&self) {
        black_box((self.status.load(Relaxed), self.profile, self.followed.load(Relaxed)));
    }
    /// Records the result. Polling threads see it at once; `announce` notifies the others.
    pub(super) fn settle(&self, outcome: Result<(), Failure>) {
        let status = match outcome {
            Ok(()) => {
                self.note_end();
                Status::Complete
            }
            Err(why) => {
                let first = self.failure.set(why).is_ok();
                debug_assert!(first, "a command ends once");
                Status::Failed
            }
        };
        self.status.store(status as u8, Release); // pairs with `status`
    }
    fn note_end(&self) {
        match self.profile {
            Profile::Off => {}
            Profile::Phases => {
                let end = host_clock();
                self.times[2].store(end, Relaxed);
                // Executed during its submission: it has no separate start.
                let _ = self.times[1].compare_exchange(0, end, Relaxed, Relaxed);
            }
            Profile::End => {
                let end = host_clock();
                self.times[1..].iter().for_each(|time| time.store(end, Relaxed));
            }
        }
    }
    /// Wakes waiting threads, releases dependents and makes the callbacks. To be called after `settle`,
    /// without locks, because callbacks are the application's.
    pub(super) fn announce(&self, stored: Stored) {
        self.gate.ring(stored);
        if !self.followed.load(Relaxed) {
            return; // later followers see the result: `stored` pairs with the fences below
        }
        let Followers { jobs, calls } = std::mem::take(&mut *locked(&self.followers));
        let (status, failure) = (self.status(), self.failure.get());
        jobs.into_iter().for_each(|job| job.released(failure));
        calls.into_iter().for_each(|(_, call)| call(status));
    }
    /// Calls `released` of `job` when this is complete; `false` if it already is, and nothing was recorded.
    pub(super) fn follow(&self, job: &Arc<Job>) -> bool {
        let mut followers = locked(&self.followers);
        self.followed.store(true, Relaxed);
        // Either `announce` sees that there are followers and waits for the lock, or this sees the result.
        fence(SeqCst);
        let pending = !self.status().is_final();
        if pending {
            followers.jobs.push(Arc::clone(job));
        }
        pending
    }
    /// Calls `call` when this has at least `status` (a failure counts as beyond every status), on the thread
    /// that sets it; on this thread if it already has.
    pub(crate) fn call_at(&self, status: Status, call: impl FnOnce(Status) + Send + 'static) {
        let now = self.status();
        if now.is_final() {
            return call(now); // without the lock: in a forked child, a thread of the parent may hold it
        }
        locked(&self.followers).calls.push((status, Box::new(call)));
        self.followed.store(true, Relaxed);
        fence(SeqCst); // pairs with the fences of `begin` and `announce`
        self.make_calls();
    }
    /// Makes the callbacks that are due; each is made by the thread that removes it.
    fn make_calls(&self) {
        let status = self.status();
        let due: Vec<_> = {
            let calls = &mut locked(&self.followers).calls;
            calls.extract_if(.., |(at, _)| *at <= status).collect()
        };
        due.into_iter().for_each(|(_, call)| call(status));
    }
}
impl fmt::Debug for Completion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Completion({:?})", self.status())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{sync::mpsc, thread, time::Duration};

    /// As a forked child inherits it, where no thread ends what the parent's thread was doing.
    #[test]
    fn a_callback_of_what_is_complete_is_made_though_another_thread_holds_the_lock() {
        let done = Completion::with(Status::Complete, Profile::Off);
        let held = locked(&done.followers);
        let (say, hear) = mpsc::channel();
        thread::scope(|scope| {
            scope.spawn(|| done.call_at(Status::Running, move |now| say.send(now).unwrap()));
            let heard = hear.recv_timeout(Duration::from_secs(20));
            drop(held);
            assert_eq!(heard, Ok(Status::Complete));
        });
    }
}
