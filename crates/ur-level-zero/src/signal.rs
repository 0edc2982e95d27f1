//! Signals: the ends of commands, and the driver events with which they are marked. Events are reused, so
//! that submitting a command creates none in the normal case.
use super::{
    announcer::NAPS,
    context::DriverContext,
    device::DriverDevice,
    driver::{RawDevice, RawEvent},
    fate::Dependencies,
    native::{
        counter::Counters,
        event::{EventKind, EventMaker, Spare},
        fork,
    },
    options,
    reusable::lost,
    work::{CommandId, QueueState},
};
use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock,
        atomic::{AtomicU8, Ordering::*},
    },
    time::Duration,
};
use ur_hal::{Error, ErrorKind, Profile, Result, Status, Times};
use ur_lock::{PerKey, locked};

/// The largest number of unused counter-based events that are kept.
const KEPT: usize = 256;
/// How many pooled events are looked at before another is made, once there are [`KEPT`]: were it one, there would be more and
/// more of them, because some are waited for much longer than others.
const LOOKS: usize = 8;
/// The interval in nanoseconds at which a wait that may never end is checked.
pub(super) const SLICE: u64 = Duration::from_millis(10).as_nanos() as u64;
/// The timeout in nanoseconds of a wait for a list while other threads wait for access to it.
pub(super) const BRIEF: u64 = Duration::from_micros(10).as_nanos() as u64;
/// No timeout.
pub(super) const EVER: u64 = u64::MAX;

/// Unused events of one device, and the factory for more.
#[derive(Debug)]
pub struct Cache {
    maker: EventMaker,
    /// The counter-based event without times that was returned last. An application that waits for each
    /// command needs no other.
    spare: Spare,
    /// Without times (index 0) and with times (1).
    idle: [Mutex<VecDeque<EventKind>>; 2],
}
impl Cache {
    fn idle(&self, timed: bool) -> MutexGuard<'_, VecDeque<EventKind>> {
        locked(&self.idle[usize::from(timed)])
    }
    /// The factory for more events.
    pub(super) fn maker(&self) -> &EventMaker {
        &self.maker
    }
    /// An event that is not signalled, or whose next signal replaces the last.
    ///
    /// # Errors
    /// Returns the driver's error.
    #[inline]
    pub(super) fn take(&self, timed: bool) -> Result<EventKind> {
        let spare = if timed { None } else { self.spare.take() };
        spare.map_or_else(|| self.take_idle(timed), |event| Ok(EventKind::Counter(event)))
    }
    fn take_idle(&self, timed: bool) -> Result<EventKind> {
        let looks = if self.idle(timed).len() < KEPT { 1 } else { LOOKS };
        for _ in 0..looks {
            let oldest = self.idle(timed).pop_front();
            match oldest {
                // It cannot be reused while it is not signalled, or while commands wait for it.
                Some(EventKind::Pooled(event)) => {
                    let is_free = Arc::strong_count(&event) == 1;
                    let kind = EventKind::Pooled(Arc::clone(&event));
                    if is_free && kind.is_complete()? {
                        event.reset()?;
                        return Ok(kind);
                    }
                    self.give(kind, timed);
                }
                Some(event) => return Ok(event),
                None => break,
            }
        }
        self.maker.make(timed)
    }
    /// Returns an event. A pooled one may still be signalled or waited for.
    #[inline]
    pub(super) fn give(&self, event: EventKind, timed: bool) {
        match event {
            // A thread is waiting for its current signal, which the next one would replace.
            EventKind::Counter(event) if Arc::strong_count(&event) > 1 => {}
            EventKind::Counter(event) if !timed => {
                if let Some(event) = self.spare.put(event) {
                    self.give_idle(EventKind::Counter(event), timed);
                }
            }
            event => self.give_idle(event, timed),
        }
    }
    fn give_idle(&self, event: EventKind, timed: bool) {
        let mut idle = self.idle(timed);
        if matches!(event, EventKind::Pooled(_)) || idle.len() < KEPT {
            idle.push_back(event);
        }
    }
}

/// The event caches of a context's devices.
#[derive(Debug, Default)]
pub struct ContextEvents(PerKey<(RawDevice, bool), Arc<Cache>>);
impl ContextEvents {
    /// The cache of `device`; with `pooled` its events come from pools, even if the driver has counter-based
    /// ones.
    pub(super) fn of(
        &self,
        context: &DriverContext,
        device: &DriverDevice,
        pooled: bool,
    ) -> Arc<Cache> {
        let raw = device.raw();
        let make = || {
            let counters = match pooled || !options().counters {
                true => Counters::default(),
                false => Counters::of(device.platform().raw(), raw).unwrap_or_default(),
            };
            let mut devices = vec![raw];
            let others = context.devices().iter().map(|one| one.raw());
            devices.extend(others.filter(|other| *other != raw));
            let (native, places) = (Arc::clone(context.native()), options().places);
            let maker = EventMaker::new(native, (raw, devices), counters, places);
            let idle = [VecDeque::with_capacity(KEPT), VecDeque::new()].map(Mutex::new);
            Arc::new(Cache { maker, spare: Spare::default(), idle })
        };
        self.0.of((raw, pooled), make)
    }
}

const PENDING: u8 = 0;
const COMPLETE: u8 = 1;
const FAILED: u8 = 2;

/// What the times of a command are computed from.
#[derive(Debug)]
pub struct Marks {
    /// When it was submitted, in ticks of the device's clock.
    pub(super) submitted: u64,
    /// Marks the start, if the event of the end does not record it.
    pub(super) start: Option<EventKind>,
    /// Which times are wanted.
    pub(super) profile: Profile,
}

/// What few commands have.
#[derive(Debug, Default)]
struct Extra {
    times: Option<Marks>,
    /// The commands that threads of the adapter execute and that it depends on, or is one of.
    dependencies: Option<Dependencies>,
    /// The number of its batch; 0 for none.
    batch: u64,
}

/// The end of a command. Small, because it is moved into the event of each command.
#[derive(Debug)]
pub struct Signal {
    /// The event that marks it; unset while the command has a lazy event: see `lazy_event.rs`.
    end: OnceLock<EventKind>,
    extra: Option<Box<Extra>>,
    status: AtomicU8,
    work: Arc<QueueState>,
    /// Its position in its queue; `None` if unknown.
    spot: Option<CommandId>,
}
impl Signal {
    /// The end of a command of `work` that has been appended. `end` is the event that it signals.
    #[inline(always)] // made where it is returned, and not moved there
    pub(super) fn new(
        work: &Arc<QueueState>,
        end: Option<EventKind>,
        (spot, batch): (Option<CommandId>, u64),
        times: Option<Marks>,
        dependencies: Option<Dependencies>,
    ) -> Self {
        let is_plain = times.is_none() && batch == 0 && dependencies.is_none();
        let extra = (!is_plain).then(|| Box::new(Extra { times, batch, dependencies }));
        let end = end.map_or_else(OnceLock::new, OnceLock::from);
        Self { end, extra, status: AtomicU8::new(PENDING), work: Arc::clone(work), spot }
    }
    /// Makes it depend on commands that threads of the adapter execute. To be called before the signal is
    /// published.
    pub(super) fn depend_on(&mut self, dependencies: Dependencies) {
        self.extra.get_or_insert_default().dependencies = Some(dependencies);
    }
    /// What it depends on besides the driver, unless all of that is known to have succeeded.
    pub(super) fn dependencies(&self) -> Option<&Dependencies> {
        self.all_dependencies().filter(|dependencies| !dependencies.is_well())
    }
    fn all_dependencies(&self) -> Option<&Dependencies> {
        self.extra.as_ref()?.dependencies.as_ref()
    }
    fn has_failed(&self) -> bool {
        self.all_dependencies().is_some_and(Dependencies::has_failed)
    }
    fn marks(&self) -> Option<&Marks> {
        self.extra.as_ref()?.times.as_ref()
    }
    /// The number of its batch; 0 for none.
    fn batch(&self) -> u64 {
        self.extra.as_ref().map_or(0, |extra| extra.batch)
    }
    /// The end of a command that had nothing to do: complete at once.
    #[inline(always)]
    pub(super) fn over(work: &Arc<QueueState>) -> Self {
        let (end, status) = (OnceLock::new(), AtomicU8::new(COMPLETE));
        Self { end, extra: None, status, work: Arc::clone(work), spot: None }
    }
    /// The queue state that it belongs to.
    #[inline]
    pub(super) fn work(&self) -> &Arc<QueueState> {
        &self.work
    }
    /// The event that marks it; set after [`Signal::mark`], unless it is known to be complete.
    pub(super) fn kind(&self) -> Option<&EventKind> {
        self.end.get()
    }
    /// Submits its batch if necessary, and makes sure that there is an event to wait for, unless it is
    /// complete.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub(super) fn mark(&self) -> Result<()> {
        self.send()?;
        if self.end.get().is_some() || self.known().is_some() {
            return Ok(());
        }
        self.look_for_mark()?;
        if self.end.get().is_none() {
            self.settle(COMPLETE);
        }
        Ok(())
    }
    #[cold]
    fn look_for_mark(&self) -> Result<()> {
        self.spot.map_or(Ok(()), |spot| self.work().mark_into(&self.end, spot))
    }
    /// A driver event that is signalled with it.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub(super) fn raw(&self) -> Result<RawEvent> {
        self.mark()?;
        if let Some(end) = self.end.get() {
            return Ok(end.raw());
        }
        let fresh = self.work().cache.maker().make(false)?;
        if let EventKind::Pooled(event) = &fresh {
            event.signal()?; // new events of the other kinds are signalled
        }
        Ok(self.end.get_or_init(|| fresh).raw())
    }
    /// When it was submitted, started and ended; `None` without profiling.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub(super) fn times(&self) -> Result<Option<Times>> {
        let Some(marks) = self.marks() else { return Ok(None) };
        let clock = self.work.device.clock();
        let submitted = clock.nanoseconds(marks.submitted);
        let is_over = self.status() == Status::Complete;
        let Some(end) = self.end.get().filter(|_| is_over) else {
            return Ok(Some(Times { submitted, span: None }));
        };
        let (began, ended) = end.ticks()?;
        let began = match (&marks.start, marks.profile) {
            (Some(start), _) => start.ticks()?.1,
            (None, Profile::Phases) => began,
            (None, _) => ended,
        };
        let (begin, end) = clock.span(marks.submitted, began, ended);
        Ok(Some(Times {
            submitted,
            span: Some((clock.nanoseconds(begin), clock.nanoseconds(end))),
        }))
    }
    /// Submits its batch if necessary.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub(super) fn send(&self) -> Result<()> {
        match self.batch() {
            0 => Ok(()),
            batch => self.work().flush_up_to(batch),
        }
    }
    #[inline]
    fn settle(&self, status: u8) {
        if status != PENDING {
            let is_failed = status == COMPLETE && self.has_failed();
            self.status.store(if is_failed { FAILED } else { status }, Release);
        }
        if let (COMPLETE, Some(spot)) = (status, self.spot) {
            self.work().note_passed(spot);
        }
    }
    /// Whether it has no event, and its lane is idle.
    #[inline]
    fn is_idle(&self) -> Result<bool> {
        match (self.end.get(), self.spot) {
            (None, Some(spot)) => self.work().is_lane_idle(spot.lane),
            (end, _) => Ok(end.is_none()),
        }
    }
    /// Whether it is known to be complete. Queries the driver only for a lazy event, where a query is cheap.
    #[inline]
    pub(super) fn is_settled(&self) -> bool {
        let is_done = match self.status.load(Acquire) {
            PENDING => {
                self.batch() == 0 && (self.is_passed() || matches!(self.is_idle(), Ok(true)))
            }
            status => return status == COMPLETE,
        };
        if is_done {
            self.settle(COMPLETE);
        }
        is_done && !self.has_failed()
    }
    /// Sees to it that there is an event to ask, unless the command is complete; `false` if the driver has no memory for it
    /// now. Then the list can still be queried.
    #[inline]
    fn is_marked(&self) -> Result<bool> {
        if self.end.get().is_some() {
            return Ok(true);
        }
        match self.look_for_mark() {
            Err(error) if error.kind().has_run_out() => Ok(false),
            marked => marked.map(|()| true),
        }
    }
    fn is_over(&self) -> Result<bool> {
        if self.is_idle()? {
            return Ok(true);
        }
        Ok(self.is_marked()? && self.end.get().map_or(Ok(true), EventKind::is_complete)?)
    }
    #[inline]
    fn wait_for_end(&self) -> Result<()> {
        if self.is_idle()? {
            return Ok(());
        }
        if !self.is_marked()? {
            return self.wait_unmarked();
        }
        self.end.get().map_or(Ok(()), |end| self.work().wait_for(end))
    }
    /// Waits when the driver has no memory for a mark. The command runs all the same, and may write to memory
    /// of the waiting caller. So the list is polled until it is idle, or until a mark can be created.
    #[cold]
    fn wait_unmarked(&self) -> Result<()> {
        let mut nap = NAPS[0];
        while !self.is_idle()? {
            if self.work().is_lost() {
                return Err(lost());
            }
            std::thread::sleep(nap);
            nap = (nap * 2).min(NAPS[1]);
            if self.is_marked()? {
                return self.end.get().map_or(Ok(()), |end| self.work().wait_for(end));
            }
        }
        Ok(())
    }
    /// Whether a later command of its lane is known to be complete. Not used with profiling, where the driver
    /// is queried.
    fn is_passed(&self) -> bool {
        self.marks().is_none() && self.spot.is_some_and(|spot| self.work().has_passed(spot))
    }
    /// The outcome, if it is known without a query.
    pub(super) fn known(&self) -> Option<Result<()>> {
        match self.status.load(Acquire) {
            COMPLETE => Some(Ok(())),
            FAILED => Some(Err(Error::failed_dependency())),
            _ if self.has_failed() => Some(Err(Error::failed_dependency())),
            _ => None,
        }
    }
    /// What is known after the driver failed to say how far the command is: no more than before, unless nothing runs any more.
    fn unless_gone(&self, error: &Error) -> u8 {
        if error.kind().is_gone() || self.work().is_lost() { FAILED } else { PENDING }
    }
    pub(super) fn status(&self) -> Status {
        if self.status.load(Acquire) == PENDING {
            let outcome = match self.is_passed() {
                true => Ok(true),
                false => self.send().and_then(|()| self.is_over()),
            };
            self.settle(match outcome {
                Ok(true) => COMPLETE,
                Ok(false) if self.work().is_lost() => FAILED,
                Ok(false) => PENDING,
                Err(error) => self.unless_gone(&error),
            });
        }
        match self.status.load(Acquire) {
            COMPLETE => Status::Complete,
            FAILED => Status::Failed,
            _ => Status::Submitted,
        }
    }
    /// Waits for the end.
    ///
    /// # Errors
    /// `IN_EVENT_LIST_EXEC_STATUS` if it never comes; else the driver's error.
    #[inline]
    pub(super) fn wait(&self) -> Result<()> {
        match self.status.load(Acquire) {
            COMPLETE => return Ok(()),
            FAILED => return Err(self.failure()),
            _ => {}
        }
        self.wait_for_it()
    }
    #[cold]
    fn failure(&self) -> Error {
        match self.all_dependencies().and_then(Dependencies::failure) {
            Some(error) => Error::new(
                ErrorKind::DependencyFailed,
                format!("the command of an event that was waited for has failed: {error}"),
            ),
            None => lost(),
        }
    }
    fn wait_for_it(&self) -> Result<()> {
        let outcome = match self.is_passed() {
            true => Ok(()),
            false => self.send().and_then(|()| self.wait_for_end()),
        };
        self.settle(match &outcome {
            Ok(()) => COMPLETE,
            Err(error) => self.unless_gone(error),
        });
        if self.has_failed() { outcome.and(Err(self.failure())) } else { outcome }
    }
}
impl Drop for Signal {
    fn drop(&mut self) {
        if fork::check().is_err() {
            return; // another thread may have held a lock of the cache at the fork
        }
        let cache = &self.work.cache;
        let times = self.extra.as_mut().and_then(|extra| extra.times.as_mut());
        let timed = times.is_some();
        if let Some(start) = times.and_then(|times| times.start.take()) {
            cache.give(start, true);
        }
        if let Some(end) = self.end.take() {
            cache.give(end, timed);
        }
    }
}
