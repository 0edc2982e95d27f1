//! What the core knows as a stream: a queue of the driver's. How far one has come is a number: of commands that were put into
//! it, and of those that are known to be over, since a marker behind them is. Memory that is freed waits for such numbers
//! ([`Moment`]).
use super::{
    Device, DriverDevice, OpenCl, device,
    driver::RawEvent,
    native::{
        event as native,
        own::Own,
        queue::{Made, NativeQueue, Waits, given},
        work::{Ability, execute},
    },
    platform,
    point::{End, awaited},
};
use std::sync::{
    Arc, Mutex, Weak,
    atomic::{AtomicBool, AtomicU64, Ordering::*},
};
use ur_adapter::{error::Result, object::Object, per_process::PerProcess};
use ur_core::memory::deferred_free;
use ur_hal::{Command, Completion, Profile, Status, Submission, Wait};
use ur_ipc::arena::{Counter, PendingSignal};
use ur_lock::locked;

/// A stream's handle.
#[derive(Debug)]
pub struct Stream(Arc<Lane>);
impl Stream {
    pub(super) fn lane(&self) -> &Lane {
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
            can,
            context,
            device: Arc::clone(device),
            put: AtomicU64::new(0),
            over: AtomicU64::new(0),
            mark: Mutex::default(),
            risky: Mutex::default(),
            has_failed: AtomicBool::new(false),
            is_gone: AtomicBool::new(false),
            turn: Mutex::default(),
            paid: Arc::default(),
        });
        lanes(|_| false); // those that are over go
        locked(LANES.get()).push(Arc::clone(&lane));
        Self(lane)
    }
}
impl Drop for Stream {
    fn drop(&mut self) {
        let _ = self.0.native.flush(); // what fails is told by nobody any more
        self.0.is_gone.store(true, Release);
    }
}
/// What others know of it, who wait for it; it outlives its handle until all that was put into it is over.
#[derive(Debug)]
pub(super) struct Lane {
    native: NativeQueue,
    can: Ability,
    /// The number of the context.
    context: usize,
    device: Arc<DriverDevice>,
    /// How many commands were put into it, and how many of those are known to be over.
    put: AtomicU64,
    over: AtomicU64,
    /// A marker, behind so many commands.
    mark: Mutex<Option<(u64, Own<RawEvent>)>>,
    /// Commands that wait for what may fail. In an in-order queue a failure concerns all that was put behind it.
    risky: Mutex<Vec<Arc<End>>>,
    /// Whether one failed of which nobody was told yet.
    has_failed: AtomicBool,
    is_gone: AtomicBool,
    /// Held by whoever puts a command into it: some commands are several of the driver's, between which no other may come.
    turn: Mutex<()>,
    /// What was signalled last by each counter.
    paid: Arc<Mutex<Paid>>,
}
/// How far counters have come, of which signals are still to come.
type Paid = Vec<(Weak<Counter>, u64)>;

impl Lane {
    pub(super) fn native(&self) -> &NativeQueue {
        &self.native
    }
    fn asked(&self, may_mark: bool) {
        let mut mark = locked(&self.mark);
        if let Some((number, event)) = &*mark
            && native::status(event).is_final()
        {
            self.over.fetch_max(*number, AcqRel);
            *mark = None;
        }
        let put = self.put.load(Acquire);
        if may_mark && mark.is_none() && self.over.load(Acquire) < put {
            let mut made = None;
            let marked = self.native.marker(Waits(&[]), Made(Some(&mut made)));
            let event = marked.and_then(|()| self.native.flush()).and_then(|()| given(made));
            match event {
                Ok(event) => *mark = Some((put, event)),
                // Nothing runs there any more.
                Err(_) => _ = self.over.fetch_max(put, AcqRel),
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
        let put = self.put.load(Acquire);
        self.native.finish()?;
        self.over.fetch_max(put, AcqRel);
        Ok(())
    }
    /// Whether something failed that was put into it, of which this was not told yet.
    pub(super) fn take_failure(&self) -> bool {
        self.at_risk();
        self.has_failed.swap(false, AcqRel)
    }
    /// Those commands that may still fail; what has failed is noted.
    fn at_risk(&self) -> Vec<Arc<End>> {
        let mut risky = locked(&self.risky);
        risky.retain(|end| match end.status() {
            Status::Complete => false,
            Status::Failed => {
                self.has_failed.store(true, Release);
                false
            }
            _ => true,
        });
        risky.clone()
    }
    /// Puts a command into it.
    ///
    /// # Errors
    /// `IN_EVENT_LIST_EXEC_STATUS` if what it waits for has failed, `UNSUPPORTED_FEATURE` for what such a queue does not do;
    /// the driver's own. Then nothing is put into it.
    pub(super) fn put(&self, what: &Submission<'_, OpenCl>) -> ur_hal::Result<Option<Arc<End>>> {
        platform::check_fork()?;
        let (mut raws, mut kept, mut behind) = (vec![], vec![], vec![]);
        for wait in what.waits {
            if let Wait::Point(end) = wait {
                match end.status() {
                    Status::Complete => continue,
                    Status::Failed => return Err(super::point::failure()),
                    _ => depend(&mut behind, end.debts()),
                }
            }
            if let Wait::Word(debt) = wait {
                depend(&mut behind, std::iter::once(*debt));
            }
            raws.push(awaited(*wait, self.native.context(), &mut kept)?);
        }
        let turn = locked(&self.turn);
        let at_risk = self.at_risk();
        let last = at_risk.last().filter(|_| self.native.is_in_order());
        if let Some(last) = last {
            raws.push(last.event().raw());
            depend(&mut behind, last.debts());
        }
        let is_risky = !behind.is_empty();
        if raws.len() > 1 {
            // Each once: where one that is named twice fails, Intel's runtime frees the waiting command's event under us.
            raws.sort_unstable_by_key(|raw| raw.addr());
            raws.dedup();
        }
        let wants = what.completion != Completion::None;
        let mut made = None;
        let event = Made((wants || is_risky).then_some(&mut made));
        let profile = if what.completion.wants_point() { what.profile } else { Profile::Off };
        // Told before it runs: no later than that is it submitted.
        let submitted = if profile == Profile::Off { 0 } else { device::now(&self.device) };
        execute(&self.native, self.can, (what.command, what.order), Waits(&raws), event)?;
        self.put.fetch_add(1, AcqRel);
        self.native.flush()?;
        let Some(event) = made.map(Own::given) else { return Ok(None) };
        let end = End::new(event, self.native.context(), (profile, submitted), behind);
        if is_risky {
            let mut risky = locked(&self.risky);
            if self.native.is_in_order() {
                risky.clear(); // it is behind them, and fails with them
            }
            risky.push(Arc::clone(&end));
        }
        drop(turn);
        if what.completion.is_awaited() {
            end.wait()?;
        }
        Ok(what.completion.wants_point().then_some(end))
    }
    /// Has the value of a counter reached once all before is over, and what the submission waits for.
    ///
    /// # Errors
    /// As for [`put`](Self::put).
    pub(super) fn signal(
        &self,
        what: &Submission<'_, OpenCl>,
        (counter, value): (&Arc<Counter>, u64),
    ) -> ur_hal::Result<()> {
        let (command, completion) = (&Command::Barrier, Completion::Point);
        let barrier = Submission { command, completion, profile: Profile::Off, ..*what };
        let end = self.put(&barrier)?.ok_or(ur_hal::ErrorKind::Unknown)?;
        let (payer, of, paid) = (Arc::clone(counter), Arc::clone(&end), Arc::clone(&self.paid));
        let told = native::call_when_over(end.event(), move |is_good| match is_good {
            true if !of.is_doomed() => pay(&paid, &payer, value),
            _ => payer.fail(),
        });
        Ok(told.inspect_err(|_| counter.fail())?)
    }
}
/// Adds what is owed to what is known to be.
fn depend<'a>(behind: &mut Vec<PendingSignal>, owed: impl Iterator<Item = &'a PendingSignal>) {
    let name = |debt: &PendingSignal| (debt.word_address(), debt.value());
    for debt in owed {
        if !behind.iter().any(|known| name(known) == name(debt)) {
            behind.push(debt.clone());
        }
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
impl deferred_free::Moment for Moment {
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
/// What was submitted so far to queues of a context; 0: of all.
pub(super) fn moments(context: usize) -> Vec<Moment> {
    let of = |lane: Arc<Lane>| Moment { number: lane.put.load(Acquire), lane };
    let asked = lanes(|one| context == 0 || one.context == context).into_iter().map(of);
    asked.filter(|moment| !deferred_free::Moment::has_passed(moment)).collect()
}
/// Waits for all queues of a context; 0: of all.
///
/// # Errors
/// The driver's own.
pub(super) fn wait_for_context(context: usize) -> Result<()> {
    platform::check_fork()?;
    lanes(|one| context == 0 || one.context == context).iter().try_for_each(|one| one.drain())
}
/// Waits for all queues of a device and of its parts.
///
/// # Errors
/// The driver's own.
pub(super) fn wait_for_device(device: &Object<Device>) -> Result<()> {
    fn is_of(one: &DriverDevice, device: &DriverDevice) -> bool {
        one.raw() == device.raw() || one.parent().is_some_and(|parent| is_of(parent, device))
    }
    platform::check_fork()?;
    lanes(|one| is_of(&one.device, device)).iter().try_for_each(|one| one.drain())
}
