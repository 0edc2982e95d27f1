//! How far one command has come, and who wants to know: threads that wait, commands that depend
//! on it, callbacks. Runs nothing itself but the callbacks; queues drive it.
use super::{
    command::Work,
    gate::{Gate, Stored},
    out_of_order::Job,
    spin,
    sync::{Mutex, locked},
};
use crate::device::now;
use std::{
    borrow::Cow,
    fmt,
    hint::black_box,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering::*, fence},
    },
};
use ur_hal::Profile;
pub(crate) use ur_hal::Status;

fn status_of(raw: u8) -> Status {
    [Status::Submitted, Status::Running, Status::Complete, Status::Failed][usize::from(raw)]
}

/// Why a command failed: a sentence, handed on to whatever depends on it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Failure {
    why: Cow<'static, str>,
    /// Whether the process that owed a signal is gone.
    is_debtor_gone: bool,
}
impl Failure {
    pub(crate) fn new(why: impl Into<Cow<'static, str>>) -> Self {
        Self { why: why.into(), is_debtor_gone: false }
    }
    pub(crate) fn is_debtor_gone(&self) -> bool {
        self.is_debtor_gone
    }
    /// What a wait for an event of another process ends in when that process is gone.
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

/// When what happened, in nanoseconds of the device's clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Times {
    /// When the queue got it.
    pub(crate) submitted: u64,
    /// When its execution began.
    pub(crate) started: u64,
    /// When its execution ended.
    pub(crate) ended: u64,
}

/// Somebody else's code, told what status was reached.
type Call = Box<dyn FnOnce(Status) + Send>;

/// What is to be told to others, and has not been; each call from a status on.
#[derive(Default)]
struct Followers {
    jobs: Vec<Arc<Job>>,
    calls: Vec<(Status, Call)>,
}

/// One command's state. Shared by its queue, its event and whatever depends on it.
pub struct Completion {
    status: AtomicU8,
    profile: Profile,
    /// There is or was something among the followers.
    followed: AtomicBool,
    gate: Gate,
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
            times: Default::default(),
            failure: OnceLock::new(),
            followers: Mutex::default(),
        };
        if profile != Profile::Off {
            completion.times[0].store(now(), Relaxed);
        }
        Arc::new(completion)
    }
    /// Of a command just submitted.
    pub(crate) fn submitted(profile: Profile) -> Arc<Self> {
        Self::with(Status::Submitted, profile)
    }
    /// How far it has come. What the command did is seen by whoever sees it complete.
    pub(crate) fn status(&self) -> Status {
        status_of(self.status.load(Acquire)) // pairs with `settle`
    }
    /// How it ended; `None` while it has not.
    pub(crate) fn outcome(&self) -> Option<Result<(), Failure>> {
        match self.status() {
            Status::Complete => Some(Ok(())),
            Status::Failed => Some(Err(self.why())),
            _ => None,
        }
    }
    fn why(&self) -> Failure {
        self.failure.get().expect("a failed command has a reason: `settle` sets it first").clone()
    }
    /// Sleeps until it has ended; how it did.
    ///
    /// # Errors
    /// Why the command failed.
    pub(crate) fn wait(&self) -> Result<(), Failure> {
        let ended = || self.status().is_final();
        if !spin::for_end(ended) {
            self.gate.wait_until(ended);
        }
        self.outcome().expect("it ended, and that is final")
    }
    /// When its queue got it, if it notes times: known from then on.
    pub(crate) fn submitted_at(&self) -> Option<u64> {
        (self.profile != Profile::Off).then(|| self.times[0].load(Relaxed))
    }
    /// Its times, once it is complete, if they were asked for.
    pub(crate) fn times(&self) -> Option<Times> {
        if self.profile == Profile::Off || self.status() != Status::Complete {
            return None;
        }
        let [submitted, started, ended] = [0, 1, 2].map(|i| self.times[i].load(Relaxed));
        Some(Times { submitted, started, ended })
    }

    /// Its execution begins. A barrier's takes no time that anybody could see it in.
    pub(super) fn begin(&self, work: &Work) {
        if self.profile == Profile::Phases {
            self.times[1].store(now(), Relaxed);
        }
        if matches!(work, Work::Barrier) {
            return;
        }
        self.status.store(Status::Running as u8, Relaxed);
        fence(SeqCst); // pairs with the one in `call_at`: a call that is due is seen here or there
        if self.followed.load(Relaxed) {
            self.make_calls();
        }
    }
    /// Brings into the caches of this processor what `settle` will touch.
    #[inline]
    pub(super) fn touch(&self) {
        black_box((self.status.load(Relaxed), self.profile, self.followed.load(Relaxed)));
    }
    /// Its execution ended so. Waiters that are awake see it at once; `announce` is for the rest.
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
                let end = now();
                self.times[2].store(end, Relaxed);
                // Done within the call that submitted it: it never began apart from that.
                let _ = self.times[1].compare_exchange(0, end, Relaxed, Relaxed);
            }
            Profile::End => {
                let end = now();
                self.times[1..].iter().for_each(|time| time.store(end, Relaxed));
            }
        }
    }
    /// Wakes waiters, hands on to dependents, makes the callbacks. After `settle`, and with no
    /// lock held: callbacks are C's.
    pub(super) fn announce(&self, stored: Stored) {
        self.gate.ring(stored);
        if !self.followed.load(Relaxed) {
            return; // who comes now sees the end: `stored` pairs with the fences below
        }
        let Followers { jobs, calls } = std::mem::take(&mut *locked(&self.followers));
        let (status, failure) = (self.status(), self.failure.get());
        jobs.into_iter().for_each(|job| job.released(failure));
        calls.into_iter().for_each(|(_, call)| call(status));
    }
    /// `job` is `released` when this has ended; false if it has already, and nothing was noted.
    pub(super) fn follow(&self, job: &Arc<Job>) -> bool {
        let mut followers = locked(&self.followers);
        self.followed.store(true, Relaxed);
        // Either `announce` sees that there are followers, and waits for the lock, or this sees
        // the end.
        fence(SeqCst);
        let pending = !self.status().is_final();
        if pending {
            followers.jobs.push(Arc::clone(job));
        }
        pending
    }
    /// `call` is made once this is at least at `status` (a failure is past everything), on
    /// whatever thread brings it there; on this one if it is there already.
    pub(crate) fn call_at(&self, status: Status, call: impl FnOnce(Status) + Send + 'static) {
        locked(&self.followers).calls.push((status, Box::new(call)));
        self.followed.store(true, Relaxed);
        fence(SeqCst); // pairs with the one in `begin`, and with `announce`'s
        self.make_calls();
    }
    /// Makes the calls that are due; each is made by whoever takes it out first.
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
