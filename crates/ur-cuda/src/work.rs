//! The state of a queue: its lanes, barriers and pending signals of other processes. An in-order queue has
//! one lane, an out-of-order queue several that are used in turn. The state outlives the queue until its
//! lanes are idle. Commands are submitted in `streams.rs`.
use super::{
    DriverDevice,
    context::DriverContext,
    device::check_fork,
    driver::Dialect,
    lane::{Lane, Mark, captured},
    native::{context::Entered, event::Pooled, stream::Stream},
    shared_words::{HeldWords, PendingSignals, await_all},
};
use std::sync::{
    Arc, Mutex, MutexGuard, OnceLock,
    atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::*},
};
use ur_hal::{Error, Moment as _, Order, Result, StreamState, StreamStates, unless_gone};
use ur_ipc::arena;
use ur_lock::locked;

/// The number of lanes of an out-of-order queue.
const LANES: usize = 8;

/// A stream as the core holds it; dropping it ends the use of the queue state.
#[derive(Debug)]
pub struct Lanes<D: Dialect> {
    pub(super) work: Arc<QueueState<D>>,
    pub(super) context: DriverContext<D>,
}
impl<D: Dialect> Drop for Lanes<D> {
    fn drop(&mut self) {
        self.work.leave();
    }
}
/// The lanes of a queue and their state.
#[derive(Debug)]
pub(super) struct QueueState<D: Dialect> {
    /// Unique in the process.
    pub(super) number: u64,
    /// The device that executes its commands.
    pub(super) device: Arc<DriverDevice<D>>,
    /// The address of the context's handle, for comparison only.
    context: usize,
    priority: i32,
    /// Whether its streams synchronize with the default stream.
    in_step: bool,
    /// In the order of use; each is created at first use.
    lanes: Box<[OnceLock<Lane<D>>]>,
    next: AtomicUsize,
    /// Held by whoever sets a barrier, from gathering the lanes on: a barrier must not replace one that waits for more.
    barriers: Mutex<()>,
    /// The event of the last barrier; `fences` is the barrier's number.
    fence: Mutex<Option<Arc<Pooled<D>>>>,
    fences: AtomicU64,
    is_over: AtomicBool,
    has_debts: AtomicBool,
    debts: Mutex<PendingSignals>,
    /// The shared words that its streams write and wait for.
    pub(super) registered: HeldWords<D>,
}
impl<D: Dialect> QueueState<D> {
    /// Creates a state over `stream`, or with lanes of its own.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub(super) fn make(
        device: &Arc<DriverDevice<D>>,
        context: usize,
        (priority, in_step, is_in_order): (i32, bool, bool),
        stream: Option<Stream<D>>,
    ) -> Result<Self> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let lanes = if is_in_order { 1 } else { LANES };
        let work = Self {
            number: NUMBER.fetch_add(1, Relaxed),
            device: Arc::clone(device),
            context,
            priority,
            in_step,
            lanes: (0..lanes).map(|_| OnceLock::new()).collect(),
            next: AtomicUsize::new(0),
            barriers: Mutex::default(),
            fence: Mutex::new(None),
            fences: AtomicU64::new(0),
            is_over: AtomicBool::new(false),
            has_debts: AtomicBool::new(false),
            debts: Mutex::default(),
            registered: HeldWords::new(),
        };
        match stream {
            Some(stream) => {
                let lane = Lane::new(stream.of(Arc::clone(device)));
                lane.lend(); // also if the queue owns it: the application has its handle
                drop(work.lanes[0].set(lane));
            }
            // The first lane is created now, so that a driver that is out of streams reports it here.
            None => _ = work.lane(&device.enter()?, 0)?,
        }
        Ok(work)
    }
    /// Whether commands execute in the order of their submission.
    pub(super) fn is_in_order(&self) -> bool {
        self.lanes.len() == 1
    }
    /// A lane, whose stream is created for its first command. The driver may wait for a running host function then, as was
    /// seen on an H100 (driver 580) that other processes used as well: a host function that waits for a later call of the
    /// program may wait for ever.
    fn lane(&self, on: &Entered<D>, number: usize) -> Result<&Lane<D>> {
        let place = &self.lanes[number];
        if let Some(lane) = place.get() {
            return Ok(lane);
        }
        let stream = Stream::create_with(on, self.priority, self.in_step)?;
        let fresh = Lane::new(stream.never_waiting(Arc::clone(&self.device)));
        Ok(place.get_or_init(|| fresh))
    }
    /// The lane for the next command: while the application captures the first one, which alone it may have, that one, so that
    /// all commands are captured.
    pub(super) fn next(&self, on: &Entered<D>) -> Result<&Lane<D>> {
        if let Some(first) = self.lanes[0].get()
            && !self.is_in_order()
            && first.is_capturing()?
        {
            return Ok(first);
        }
        let number = match self.lanes.len() {
            1 => 0,
            many => self.next.fetch_add(1, Relaxed) % many, // a counter only: any lane may be chosen
        };
        self.lane(on, number)
    }
    /// The lanes created so far.
    fn used(&self) -> impl Iterator<Item = &Lane<D>> {
        self.lanes.iter().filter_map(OnceLock::get)
    }
    fn fence(&self) -> MutexGuard<'_, Option<Arc<Pooled<D>>>> {
        locked(&self.fence)
    }
    /// The right to set a barrier, which an in-order queue does not need.
    pub(super) fn barrier_turn(&self) -> Option<MutexGuard<'_, ()>> {
        (!self.is_in_order()).then(|| locked(&self.barriers))
    }
    /// Makes `lane` wait for the last barrier.
    pub(super) fn keep_behind_barrier(&self, lane: &Lane<D>) -> Result<()> {
        let number = self.fences.load(Acquire); // pairs with `set_fence`
        lane.fence(number, || self.fence().clone())
    }
    /// Makes the first lane, which the application can get as native handle, wait for the last barrier. While it is captured,
    /// nothing is waited for: [`check_alone`](Self::check_alone).
    pub(super) fn keep_first_behind_barrier(&self) -> Result<()> {
        let on = self.device.enter()?; // current until the last call of the driver
        let lane = self.lane(&on, 0)?;
        lane.lend();
        match lane.is_capturing()? {
            true => Ok(()),
            false => self.keep_behind_barrier(lane),
        }
    }
    /// The stream of the first lane, for commands of other code.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub(super) fn lend_first(&self) -> Result<&Stream<D>> {
        let lane = self.lane(&self.device.enter()?, 0)?;
        lane.lend();
        Ok(&lane.stream)
    }
    /// Ends the use: no more commands are submitted, and the lanes are kept until they are idle.
    fn leave(&self) {
        self.leave_borrowed();
        self.is_over.store(true, Release);
    }
    /// Uses the stream of the application no more.
    pub(super) fn leave_borrowed(&self) {
        if check_fork::<D>().is_err() {
            return; // in a forked child the streams are the parent's, and so are the threads that use them
        }
        self.used().for_each(|lane| lane.leave(&self.device));
    }
    /// Checks the signals that its streams wait for.
    ///
    /// # Errors
    /// `IN_EVENT_LIST_EXEC_STATUS`, once, if one of them will never come: the commands behind it ran without
    /// it.
    pub(super) fn check(&self) -> Result<()> {
        if self.has_debts.load(Acquire) {
            self.forget_lost();
            let mut debts = self.debts();
            let left = debts.check()?;
            self.has_debts.store(left, Release);
        }
        Ok(())
    }
    /// Forgets failed signals when the streams have continued; until then their words are released
    /// repeatedly.
    fn forget_lost(&self) {
        let lost = self.debts().take_lost(); // taken before the driver is queried, which happens outside the lock
        if !lost.is_empty() && !self.is_idle().unwrap_or(false) {
            self.debts().put_lost_back(lost);
        }
    }
    /// The pending signals of other processes that its streams wait for; mostly none.
    pub(super) fn open_debts(&self) -> Vec<arena::PendingSignal> {
        if self.has_debts.load(Acquire) { self.debts().open() } else { vec![] }
    }
    /// Waits for the signals of other processes that its streams wait for, which may take long: this wait sleeps, while the
    /// driver's would spin. Not while a stream is captured, which cannot be waited for.
    fn await_debts(&self) {
        let debts = self.open_debts();
        if !debts.is_empty() && self.is_captured().is_ok_and(|is| !is) {
            await_all(&debts);
        }
    }
    fn debts(&self) -> MutexGuard<'_, PendingSignals> {
        locked(&self.debts)
    }
    /// Records that one of its streams waits for a signal of another process.
    pub(super) fn owe(&self, owed: arena::PendingSignal) {
        self.debts().add(owed);
        self.has_debts.store(true, Release);
    }
    /// # Errors
    /// `INVALID_OPERATION` while one of its streams is captured: see [`Lane::check_capture`].
    pub(super) fn check_capture(&self, _on: &Entered<D>, what: &str) -> Result<()> {
        self.used().try_for_each(|lane| lane.check_capture(what))
    }
    /// Whether one of its streams is captured by other code. Streams that no other code has are not queried.
    pub(super) fn is_captured(&self) -> Result<bool> {
        let mut lent = self.used().filter(|lane| lane.is_lent()).peekable();
        let _on = match lent.peek() {
            None => return Ok(false),
            Some(_) => self.device.enter()?,
        };
        lent.try_fold(false, |is, lane| Ok(is || lane.is_capturing()?))
    }
    /// Makes `lane` wait for everything in the other lanes.
    pub(super) fn gather(&self, on: &Entered<D>, lane: &Lane<D>) -> Result<()> {
        for other in self.used().filter(|other| !std::ptr::eq(*other, lane)) {
            if !other.is_idle()? {
                let event = self.device.events().take(on, false)?;
                event.record(&other.stream)?;
                lane.stream.wait_for(&event)?;
            }
        }
        Ok(())
    }
    /// Checks that a command of this order in `lane`, which is captured, waits for nothing that runs in the others: the driver
    /// would end the capture.
    ///
    /// # Errors
    /// `INVALID_OPERATION`.
    pub(super) fn check_alone(&self, lane: &Lane<D>, order: Order) -> Result<()> {
        let is_behind = match order {
            Order::Free => false,
            _ => {
                let mut others = self.used().filter(|other| !std::ptr::eq(*other, lane));
                others.try_fold(false, |busy, other| Ok::<_, Error>(busy || !other.is_idle()?))?
            }
        };
        let fence = (!lane.is_fenced(self.fences.load(Acquire))).then(|| self.fence().clone());
        let is_fenced = fence.flatten().map_or(Ok(true), |event| event.is_complete())?;
        match is_behind || !is_fenced {
            true => Err(captured("what waits for commands that run in an out-of-order queue")),
            false => Ok(()),
        }
    }
    /// Sets a barrier: everything submitted later waits for what is in `lane` now. The caller has had the
    /// [`barrier_turn`](Self::barrier_turn) since before it gathered the other lanes.
    pub(super) fn set_fence(&self, on: &Entered<D>, lane: &Lane<D>) -> Result<()> {
        if self.lanes.len() == 1 {
            return Ok(());
        }
        let event = self.device.events().take(on, false)?;
        event.record(&lane.stream)?;
        lane.check_capture("a barrier")?; // one that has begun meanwhile may have the event
        let old = self.fence().replace(Arc::new(event));
        self.fences.fetch_add(1, AcqRel); // after the event is set
        drop(old);
        Ok(())
    }
    pub(super) fn is_idle(&self) -> Result<bool> {
        let _on = self.device.enter()?; // the default stream is that of the current context
        self.used().try_fold(true, |idle, lane| Ok(lane.is_idle()? && idle))
    }
    /// Waits until everything submitted so far is complete.
    ///
    /// # Errors
    /// As for [`check`](Self::check); `INVALID_OPERATION` while it is captured; else the driver's error.
    pub(super) fn finish(&self) -> Result<()> {
        let _on = self.device.enter()?;
        self.await_debts();
        let done = self.used().try_for_each(|lane| lane.synchronize(&self.device));
        let checked = done.and_then(|()| self.check());
        if checked.is_err() {
            self.forget_lost();
        }
        checked
    }
    /// Adds the points that its lanes must pass until everything submitted so far that may use memory as old
    /// as the object with the number `since` is complete. Queries the driver only about streams of the application's, which
    /// cannot be asked any more if the queue is released in a capture: those get a mark here.
    fn note(self: &Arc<Self>, since: u64, into: &mut Vec<Moment<D>>) {
        for (lane, there) in (0..).zip(&self.lanes) {
            let Some(there) = there.get() else { continue };
            let Some(number) = there.last_since(since) else { continue };
            if there.is_borrowed() {
                let _refused = there.mark_moment(&self.device); // asked again later
            }
            into.push(Moment { work: Arc::clone(self), lane, number });
        }
    }
}

/// Queue states: all of this process, or those of one context.
pub type QueueRegistry<D> = StreamStates<QueueState<D>>;
impl<D: Dialect> StreamState for QueueState<D> {
    fn is_released(&self) -> bool {
        self.is_over.load(Acquire)
    }
    fn is_idle(&self) -> bool {
        is_done(self.is_idle())
    }
}

/// Whether a query reports completion, or that nothing runs any more.
pub(super) fn is_done(said: Result<bool>) -> bool {
    said.unwrap_or_else(|error| error.kind().is_gone())
}

/// A point that a lane must pass.
#[derive(Clone, Debug)]
pub struct Moment<D: Dialect> {
    work: Arc<QueueState<D>>,
    lane: u32,
    number: u64,
}
impl<D: Dialect> Moment<D> {
    fn in_lane(&self) -> Option<&Lane<D>> {
        self.work.lanes[self.lane as usize].get()
    }
}
impl<D: Dialect> ur_hal::Moment for Moment<D> {
    fn lane(&self) -> (usize, u32) {
        (Arc::as_ptr(&self.work).addr(), self.lane)
    }
    fn number(&self) -> u64 {
        self.number
    }
    fn has_passed(&self) -> bool {
        self.in_lane().is_none_or(|lane| lane.has_passed(self.number))
    }
    fn ask(&self, may_mark: bool) {
        if let Some(lane) = self.in_lane() {
            lane.ask(self.number, &self.work.device, may_mark);
        }
    }
}
/// Waits until everything up to these moments is complete.
///
/// # Errors
/// `INVALID_OPERATION` if a queue's stream is being captured and cannot be waited for; else the driver's
/// error, also those of the commands.
fn finish<D: Dialect>(moments: &[Moment<D>]) -> Result<()> {
    // Does not stop at an error: on return all are complete whose device is not lost. That one is lost is told last.
    let mut done: Result<()> = Ok(());
    let mut note = |next: Result<()>| {
        done = match std::mem::replace(&mut done, Ok(())) {
            Err(error) if error.kind().is_gone() => next.and(Err(error)),
            earlier => earlier.and(next),
        };
    };
    let mut marks = vec![];
    for moment in moments.iter().filter(|moment| !moment.has_passed()) {
        let (Some(lane), device) = (moment.in_lane(), &moment.work.device) else { continue };
        match device.enter().and_then(|on| lane.mark(device, &on)) {
            Ok(Mark::Nothing) => {}
            Ok(Mark::Event(event)) => marks.push(event),
            Ok(Mark::Captured) => note(Err(captured("waiting for all queues of the context"))),
            Err(error) => note(Err(error)),
        }
    }
    marks.iter().for_each(|mark| note(mark.wait()));
    done
}
/// The points of everything submitted so far to queues of the context with this handle, or of all contexts if
/// it is 0, that may use memory as old as the object with the number `since`.
pub(super) fn submitted<D: Dialect>(context: usize, since: u64) -> Vec<Moment<D>> {
    let mut moments = vec![];
    let meant = D::statics().queues_now.of(|work| context == 0 || work.context == context);
    meant.iter().for_each(|work| work.note(since, &mut moments));
    moments
}
/// Waits until everything submitted so far to queues of a context is complete. Errors of commands are reported by
/// their queues and events, not here.
///
/// # Errors
/// `INVALID_OPERATION` if a queue's stream is being captured and cannot be waited for; the driver's error if it is not known
/// that all is complete; none if the device is lost.
pub(super) fn wait_for_all<D: Dialect>(context: usize) -> Result<()> {
    unless_gone(finish(&submitted::<D>(context, 0)))
}
/// Waits for all commands submitted so far to queues of `device`.
///
/// # Errors
/// Returns the driver's error, also those of earlier commands.
pub(super) fn wait_for_device<D: Dialect>(device: &DriverDevice<D>) -> Result<()> {
    // Does not synchronize the whole context: that would invalidate captures of other code.
    let mut moments = vec![];
    for work in D::statics().queues_now.of(|work| work.device.number() == device.number()) {
        work.await_debts();
        work.note(0, &mut moments);
    }
    finish(&moments)
}
