//! What the core knows as a stream: a queue of the driver's. How far one has come is a number: of commands that were put into
//! it, and of those that are known to be over, since a marker behind them is. Memory that is freed waits for such numbers
//! ([`Moment`]).
use super::{
    DriverDevice, OpenCl, device,
    driver::{self, RawEvent},
    native::{
        event as native, host_task,
        own::{Counted, Own},
        queue::{Linked, NativeQueue, given},
        work::{Ability, behind, execute, place},
    },
    platform,
    point::{Awaited, Debt, End, Outcome, failure, outcome},
};
use std::{
    ffi::{c_int, c_void},
    sync::{
        Arc, Mutex, Once, OnceLock, Weak,
        atomic::{AtomicBool, AtomicU64, Ordering::*},
    },
    time::{Duration, Instant},
};
use ur_hal::{
    Command, Completion, Error, ErrorKind, HostCall, Order, Profile, Result, Submission, repeated,
    wait_for_taken,
};
use ur_ipc::arena::Counter;
use ur_lock::{get_or_try, locked};
use ur_mapping::PerProcess;

/// A stream's handle.
#[derive(Debug)]
pub struct Stream(Arc<Lane>);
impl Stream {
    pub(super) fn lane(&self) -> &Arc<Lane> {
        &self.0
    }
    /// Over a queue of the driver's.
    pub(super) fn new(
        context: usize,
        device: &Arc<DriverDevice>,
        (native, can): (NativeQueue, Ability),
    ) -> Self {
        let lane = Arc::new(Lane {
            native,
            timed: OnceLock::new(),
            can,
            context,
            device: Arc::clone(device),
            put: AtomicU64::new(0),
            sent: AtomicU64::new(0),
            over: AtomicU64::new(0),
            mark: Mutex::default(),
            is_gone: AtomicBool::new(false),
            turn: Mutex::default(),
            paid: Arc::default(),
        });
        static ONCE: Once = Once::new();
        ONCE.call_once(|| driver::at_exit(leave));
        lanes(|_| false); // those that are over go
        locked(LANES.get()).push(Arc::clone(&lane));
        Self(lane)
    }
}
impl Drop for Stream {
    fn drop(&mut self) {
        let _ = self.0.send(u64::MAX); // what fails is told by nobody any more
        self.0.is_gone.store(true, Release);
    }
}
/// What others know of it, who wait for it; it outlives its handle until all that was put into it is over.
#[derive(Debug)]
pub(super) struct Lane {
    native: NativeQueue,
    /// Beside a queue of which the driver notes no times, one of which it does: see [`time`](Self::time).
    timed: OnceLock<NativeQueue>,
    can: Ability,
    /// The number of the context.
    context: usize,
    device: Arc<DriverDevice>,
    /// How many commands were put into it, how many of those were sent off, and how many are known to be over.
    put: AtomicU64,
    sent: AtomicU64,
    over: AtomicU64,
    /// A marker, behind so many commands.
    mark: Mutex<Option<(u64, Own<RawEvent>)>>,
    is_gone: AtomicBool,
    /// Held by whoever puts a command into it: some commands are several of the driver's, between which no other may come.
    turn: Mutex<Risks>,
    /// What was signalled last by each counter.
    paid: Arc<Mutex<Paid>>,
}
/// What may fail of that for which commands in a queue wait.
#[derive(Debug, Default)]
struct Risks {
    /// For which any of them waits.
    owed: Vec<Debt>,
    /// For which the last barrier of an out-of-order queue waits.
    barred: Vec<Debt>,
    /// What failed of which nobody was told yet.
    failed: Option<Outcome>,
    /// The process exits: no command of other threads comes any more.
    is_closed: bool,
    /// Nor is the driver's queue to be used, which has been released.
    is_released: bool,
}
impl Risks {
    /// # Errors
    /// `Uninitialized` if the driver's queue has been released.
    fn check(&self) -> Result<()> {
        if self.is_released { Err(platform::exits()) } else { Ok(()) }
    }
    /// Forgets what is over, and notes what has failed.
    fn review(&mut self) -> &Self {
        let Self { owed, barred, failed, .. } = self;
        // Each is asked once: what fails between two questions would be forgotten untold.
        owed.retain(|debt| match debt.outcome() {
            None => true,
            Some(Outcome::Succeeded) => false,
            failure => {
                *failed = failure.max(*failed);
                false
            }
        });
        barred.retain(|debt| owed.iter().any(|one| one.covers(debt)));
        self
    }
}
/// How far counters have come, of which signals are still to come.
type Paid = Vec<(Weak<Counter>, u64)>;

impl Lane {
    pub(super) fn native(&self) -> &NativeQueue {
        &self.native
    }
    /// Sends off the first so many commands, unless they were.
    ///
    /// # Errors
    /// The driver's own.
    pub(super) fn send(&self, commands: u64) -> Result<()> {
        let put = self.put.load(Acquire);
        if self.sent.load(Acquire) < commands.min(put) {
            platform::check_process()?;
            repeated(|| self.native.flush())?;
            self.sent.fetch_max(put, AcqRel);
        }
        Ok(())
    }
    /// Whether all that was put into it is over before the deadline passes.
    fn ends_by(&self, deadline: Option<Instant>) -> Result<bool> {
        Ok(native::wait(&self.mark_end()?, deadline)?.is_final())
    }
    /// An event behind all that was put into it.
    fn mark_end(&self) -> Result<Own<RawEvent>> {
        let mut made = None;
        let turn = locked(&self.turn);
        turn.check()?;
        self.native.marker(Linked::noted(&mut made))?;
        let event = given(made)?;
        repeated(|| self.native.flush())?;
        drop(turn);
        Ok(event)
    }
    /// The queue of which the driver notes times, beside one of which it does not.
    fn timed(&self) -> Result<&NativeQueue> {
        get_or_try(&self.timed, || self.native.with_times(self.device.raw()))
    }
    /// A command behind another one, of which the driver notes the time: in the queue beside this one, which waits for it in its turn,
    /// so that what is behind all of this one's commands is behind it too.
    fn time(&self, timed: &NativeQueue, end: &Own<RawEvent>) -> Result<Own<RawEvent>> {
        self.native.flush()?;
        let mut made = None;
        let waits = &[end.raw()];
        behind(timed, self.can, Linked { waits, event: Some(&mut made) })?;
        let noted = given(made)?;
        timed.flush()?;
        self.native.marker(Linked::behind(&[noted.raw()]))?;
        Ok(noted)
    }
    fn asked(&self, may_mark: bool) {
        if platform::check_process().is_err() {
            return;
        }
        let mut mark = locked(&self.mark);
        if let Some((number, event)) = &*mark
            && native::status(event).is_ok_and(|now| now.is_final())
        {
            self.over.fetch_max(*number, AcqRel);
            *mark = None;
        }
        let put = self.put.load(Acquire);
        if may_mark && mark.is_none() && self.over.load(Acquire) < put {
            match self.mark_end() {
                Ok(event) => *mark = Some((put, event)),
                // Nothing runs there any more.
                Err(error) if error.kind().is_gone() => _ = self.over.fetch_max(put, AcqRel),
                Err(_) => {} // it is asked again
            }
        }
    }
    pub(super) fn is_idle(&self) -> bool {
        self.asked(true);
        self.asked(false);
        self.over.load(Acquire) >= self.put.load(Acquire)
    }
    /// Waits for all that was put into it.
    ///
    /// # Errors
    /// The driver's own.
    pub(super) fn drain(&self) -> Result<()> {
        platform::check_process()?;
        let put = self.put.load(Acquire);
        // Also where all is over: the application may have put more into it through its native handle.
        if self.native.is_in_order() {
            locked(&self.turn).check()?;
            self.native.finish()?;
        } else {
            self.ends_by(None)?;
        }
        self.over.fetch_max(put, AcqRel);
        Ok(())
    }
    /// Waits for what the driver took of a command that is refused.
    #[cold]
    fn await_taken(&self, events: &[Own<RawEvent>]) {
        if !events.is_empty() {
            let _refused = repeated(|| self.native.flush());
        }
        events.iter().for_each(|one| wait_for_taken(|| Ok(native::status(one)?.is_final())));
    }
    /// What has failed of that for which commands wait, of which this was not told yet.
    pub(super) fn take_failure(&self) -> Option<Error> {
        let mut risks = locked(&self.turn);
        risks.review();
        risks.failed.take().map(failure)
    }
    /// Puts a command into it.
    ///
    /// # Errors
    /// `DependencyFailed` if what it waits for has failed, and once if that of earlier commands has of which nobody was told;
    /// `Unsupported` for what such a queue does not do; the driver's own. Then nothing is put into it.
    pub(super) fn put(self: &Arc<Self>, what: &Submission<'_, OpenCl>) -> Result<Option<End>> {
        platform::check_process()?;
        let mut awaited = Awaited::new(what.waits, self)?;
        let mut behind = std::mem::take(&mut awaited.behind);
        let profile = if what.completion.wants_point() { what.profile } else { Profile::Off };
        let is_timed_beside = profile != Profile::Off && !self.native.has_times();
        let timed = is_timed_beside.then(|| self.timed()).transpose()?;
        let mut risks = locked(&self.turn);
        if risks.is_closed && !driver::is_leaver() {
            return Err(platform::exits());
        }
        risks.review();
        if let Some(outcome) = risks.failed.take() {
            return Err(failure(outcome));
        }
        let is_behind_all = self.native.is_in_order() || what.order != Order::Free;
        let before = if is_behind_all { &risks.owed } else { &risks.barred };
        before.iter().for_each(|debt| debt.add_to(&mut behind));
        let mut made = None;
        let event = (what.completion != Completion::None).then_some(&mut made);
        // Told before it runs: no later than that is it submitted.
        let submitted = if profile == Profile::Off { 0 } else { device::now(&self.device) };
        let linked = Linked { waits: &awaited.events, event };
        let mut rows = vec![];
        let put = match *what.command {
            Command::HostCall(call) => self.call(call.clone(), what.order, linked, &mut behind),
            _ => execute(&self.native, self.can, (what.command, what.order), (linked, &mut rows)),
        };
        if let Err(error) = put {
            drop(made.take().map(Own::given));
            // What stands in for signals of others ends, for which the rows before the one that was refused wait.
            drop((risks, awaited));
            if what.must_be_over() {
                self.await_taken(&rows);
            }
            return Err(error);
        }
        let others = behind.iter().filter(|debt| debt.is_of_others());
        others.clone().for_each(|debt| debt.add_to(&mut risks.owed));
        if what.order == Order::Both {
            risks.barred.clear();
            risks.barred.extend(others.cloned());
        }
        let number = self.put.load(Relaxed) + 1;
        self.put.store(number, Release); // whoever counts has the turn
        let Some(event) = made.map(Own::given) else { return Ok(None) };
        let noted = timed.map(|timed| self.time(timed, &event)).transpose();
        // What stands in for signals of others ends with it, which the waits below are for.
        drop((risks, awaited));
        let events = match noted {
            Ok(Some(noted)) => (noted, Some(event)),
            Ok(None) => (event, None),
            Err(error) => {
                if what.must_be_over() {
                    self.await_taken(std::slice::from_ref(&event));
                }
                return Err(error);
            }
        };
        let end = End::new(events, (Arc::clone(self), number), (profile, submitted), behind);
        if what.completion.is_awaited() {
            end.wait(None).inspect_err(|_| {
                wait_for_taken(|| Ok(end.status(None)?.is_final())); // the driver may only have refused to wait
            })?;
        }
        Ok(what.completion.wants_point().then_some(end))
    }
    /// Puts the call of a function of the host's into it, which is not called if something failed `behind` which it is.
    #[inline(never)]
    fn call(
        &self,
        call: HostCall,
        order: Order,
        Linked { waits, event }: Linked<'_>,
        behind: &mut Vec<Debt>,
    ) -> Result<()> {
        let (before, seen) = (behind.clone(), Arc::new(OnceLock::new()));
        behind.retain(Debt::is_of_others); // the others are seen with this
        behind.push(Debt::Seen(Arc::clone(&seen)));
        let call = move |is_good| {
            let outcome = outcome(&before, is_good);
            if outcome == Outcome::Succeeded {
                call.call();
            }
            let _ = seen.set(outcome); // this alone sets it
        };
        let put = |order, linked: Linked<'_>| place(&self.native, self.can, order, linked);
        let begin = |made: &mut _| put(order, Linked { waits, event: Some(made) });
        let is_barrier = order == Order::Both || self.native.is_in_order();
        let end = |waits: &[RawEvent]| match is_barrier {
            true => self.native.barrier(Linked { waits, event }),
            false => put(Order::Free, Linked { waits, event }),
        };
        host_task::enqueue(&self.native, (begin, end), call)
    }
    /// Has the value of a counter reached once all before is over, and what the submission waits for.
    ///
    /// # Errors
    /// As for [`put`](Self::put).
    pub(super) fn signal(
        self: &Arc<Self>,
        what: &Submission<'_, OpenCl>,
        (counter, value): (&Arc<Counter>, u64),
    ) -> Result<()> {
        let (command, completion) = (&Command::Barrier, Completion::Point);
        let barrier = Submission { command, completion, profile: Profile::Off, ..*what };
        let end = self.put(&barrier)?.ok_or(ErrorKind::Unknown)?;
        let (payer, paid) = (Arc::clone(counter), Arc::clone(&self.paid));
        let behind = end.behind().to_vec();
        let tell = move |is_good| match outcome(&behind, is_good) {
            Outcome::Succeeded => pay(&paid, &payer, value),
            _ => payer.fail(),
        };
        let told = end.event(None).and_then(|event| native::call_when_over(event, tell));
        told.inspect_err(|_| counter.fail())
    }
}
/// Has a counter reach a value. The driver tells of ends from several threads and in any order: what a later one has passed is
/// reached, and must not take the counter back.
fn pay(paid: &Mutex<Paid>, counter: &Arc<Counter>, value: u64) {
    let mut paid = locked(paid);
    paid.retain(|(of, _)| of.strong_count() > 0);
    let found = paid.iter_mut().find(|(of, _)| std::ptr::eq(of.as_ptr(), Arc::as_ptr(counter)));
    match found {
        Some((_, reached)) if *reached >= value => return,
        Some((_, reached)) => *reached = value,
        None => paid.push((Arc::downgrade(counter), value)),
    }
    counter.complete(value);
}

/// A place in a queue: behind so many commands.
#[derive(Clone, Debug)]
pub struct Moment {
    lane: Arc<Lane>,
    number: u64,
}
impl ur_hal::Moment for Moment {
    fn lane(&self) -> (usize, u32) {
        (Arc::as_ptr(&self.lane).addr(), 0)
    }
    fn number(&self) -> u64 {
        self.number
    }
    fn has_passed(&self) -> bool {
        self.lane.over.load(Acquire) >= self.number
    }
    fn ask(&self, may_mark: bool) {
        self.lane.asked(may_mark);
    }
}
/// The queues of this process. Those whose handle has gone stay until they are idle.
static LANES: PerProcess<Mutex<Vec<Arc<Lane>>>> = PerProcess::new();
fn lanes(which: impl Fn(&Lane) -> bool) -> Vec<Arc<Lane>> {
    let mut all = locked(LANES.get());
    all.retain(|one| !(one.is_gone.load(Acquire) && one.is_idle()));
    all.iter().filter(|one| which(one)).cloned().collect()
}
/// Called when the process exits. All that depends on nobody else ends now. Intel's runtime crashes or hangs at its end where commands
/// are left, by what they wait for and in what queues: so it does not see its end then. Where it was loaded before this library, it does;
/// queues that are released by then spare it some of that. It crashes also if other threads still use it, so that those are refused from
/// here on.
extern "C" fn leave(status: c_int, _: *mut c_void) {
    /// Longer than commands take that depend on nobody. Functions of the application's may never end.
    const PATIENCE: Duration = Duration::from_secs(1);
    if driver::is_unusable() {
        // A forked child has no queues of its own, and drivers that wait at their end for threads of its parent.
        return driver::skip_ends(status);
    }
    let until = Instant::now() + PATIENCE;
    driver::begin_to_leave();
    let all = lanes(|_| true);
    all.iter().for_each(|lane| locked(&lane.turn).is_closed = true);
    for lane in all.into_iter().filter(|one| !one.is_idle()) {
        let is_owed = !locked(&lane.turn).review().owed.is_empty();
        if !is_owed && lane.ends_by(Some(until)).is_ok_and(|is_over| is_over) {
            continue;
        }
        driver::skip_ends(status);
        let mut risks = locked(&lane.turn);
        risks.is_released = true;
        lane.sent.store(u64::MAX, Release);
        for queue in lane.timed.get().into_iter().chain([&lane.native]) {
            queue.raw().release().let_go();
        }
        drop(risks);
        std::mem::forget(lane); // its reference has been given back
    }
    driver::leave();
}
/// What was submitted so far to queues of a context; 0: of all.
pub(super) fn moments(context: usize) -> Vec<Moment> {
    let of = |lane: Arc<Lane>| Moment { number: lane.put.load(Acquire), lane };
    let asked = lanes(|one| context == 0 || one.context == context).into_iter().map(of);
    asked.filter(|moment| !ur_hal::Moment::has_passed(moment)).collect()
}
/// Waits for all queues of a context; 0: of all.
///
/// # Errors
/// The driver's own.
pub(super) fn wait_for_context(context: usize) -> Result<()> {
    lanes(|one| context == 0 || one.context == context).iter().try_for_each(|one| one.drain())
}
/// Waits for all queues of a device and of its parts.
///
/// # Errors
/// The driver's own.
pub(super) fn wait_for_device(device: &DriverDevice) -> Result<()> {
    fn is_of(one: &DriverDevice, device: &DriverDevice) -> bool {
        one.raw() == device.raw() || one.parent().is_some_and(|parent| is_of(parent, device))
    }
    lanes(|one| is_of(&one.device, device)).iter().try_for_each(|one| one.drain())
}
