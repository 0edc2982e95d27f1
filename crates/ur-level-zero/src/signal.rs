//! Signals: what marks the end of one command, and the events of the driver's that such marks are
//! made with. Those are used again and again: on the way of a command nothing is allocated.
use super::{
    announcer::NAPS,
    context::DriverContext,
    device::DriverDevice,
    driver::RawEvent,
    fate::Fate,
    native::{
        counter::Counters,
        event::{EventKind, EventMaker, Spare},
    },
    options,
    reusable::lost,
    work::{CommandId, QueueState},
};
use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicU8, Ordering::*},
    },
    time::Duration,
};
use ur_adapter::error::{Error, ErrorCode, Result};
use ur_hal::{Profile, Status, Times};

/// So many counter-based events are kept for later.
const KEPT: usize = 256;
/// How often a wait that may never end looks whether it will.
pub(super) const SLICE: u64 = Duration::from_millis(10).as_nanos() as u64;
/// For so long a list is waited for while other threads wait for their turn at it.
pub(super) const BRIEF: u64 = Duration::from_micros(10).as_nanos() as u64;
/// For as long as it takes.
pub(super) const EVER: u64 = u64::MAX;

/// Events of one device that nobody uses, and what makes more.
#[derive(Debug)]
pub struct Cache {
    maker: EventMaker,
    /// The counter-based one without times that was given back last: whoever waits for each command
    /// needs no other.
    spare: Spare,
    /// Without times, and with.
    idle: [Mutex<VecDeque<EventKind>>; 2],
}
impl Cache {
    fn idle(&self, timed: bool) -> MutexGuard<'_, VecDeque<EventKind>> {
        self.idle[usize::from(timed)].lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// What makes more.
    pub(super) fn maker(&self) -> &EventMaker {
        &self.maker
    }
    /// An event that nothing has signalled yet, or whose next signal replaces the last.
    ///
    /// # Errors
    /// Returns the driver's error.
    #[inline]
    pub(super) fn take(&self, timed: bool) -> Result<EventKind> {
        let spare = if timed { None } else { self.spare.take() };
        spare.map_or_else(|| self.take_idle(timed), |event| Ok(EventKind::Counter(event)))
    }
    fn take_idle(&self, timed: bool) -> Result<EventKind> {
        let oldest = self.idle(timed).pop_front();
        match oldest {
            // One that still waits for its signal, or that commands still wait for, has to rest.
            Some(EventKind::Pooled(event)) => {
                let is_free = Arc::strong_count(&event) == 1;
                let kind = EventKind::Pooled(Arc::clone(&event));
                if is_free && kind.is_complete()? {
                    event.reset()?;
                    return Ok(kind);
                }
                self.give(kind, timed);
                self.maker.make(timed)
            }
            Some(event) => Ok(event),
            None => self.maker.make(timed),
        }
    }
    /// Takes one back. A pooled one may still be signalled or waited for.
    #[inline]
    pub(super) fn give(&self, event: EventKind, timed: bool) {
        match event {
            // A thread waits for the signal that it has: another one would replace that.
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

/// The caches of a context's devices.
#[derive(Debug, Default)]
pub struct ContextEvents(Mutex<Caches>);
/// By the device's handle, and whether events are to be from pools.
type Caches = Vec<((usize, bool), Arc<Cache>)>;
impl ContextEvents {
    /// That of `device`; `pooled`: with events from pools, whatever the driver offers.
    pub(super) fn of(
        &self,
        context: &DriverContext,
        device: &DriverDevice,
        pooled: bool,
    ) -> Arc<Cache> {
        let key = (device.raw().addr(), pooled);
        let lock = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known =
            |all: &Caches| all.iter().find(|one| one.0 == key).map(|one| Arc::clone(&one.1));
        if let Some(cache) = known(&lock()) {
            return cache;
        }
        let counters = match pooled || !options().counters {
            true => Counters::default(),
            false => Counters::of(device.platform().raw(), device.raw()),
        };
        let places = options().places;
        let mut devices = vec![device.raw()];
        for other in context.devices().iter().filter(|one| one.raw() != device.raw()) {
            devices.push(other.raw());
        }
        let devices = (device.raw(), devices);
        let maker = EventMaker::new(Arc::clone(context.native()), devices, counters, places);
        let idle = [VecDeque::with_capacity(KEPT), VecDeque::new()].map(Mutex::new);
        let fresh = Arc::new(Cache { maker, spare: Spare::default(), idle });
        let mut all = lock();
        let known = known(&all);
        known.unwrap_or_else(|| {
            all.push((key, Arc::clone(&fresh)));
            fresh
        })
    }
}

const PENDING: u8 = 0;
const COMPLETE: u8 = 1;
const FAILED: u8 = 2;

/// What a profiled command is measured by.
#[derive(Debug)]
pub struct Marks {
    /// When it was submitted, in ticks of the device's clock.
    pub(super) submitted: u64,
    /// Marks the beginning, where the end's own event does not tell it.
    pub(super) start: Option<EventKind>,
    /// Which of them are told.
    pub(super) profile: Profile,
}

/// The end of one command.
#[derive(Debug)]
pub struct Signal {
    /// What marks it. Not there yet where the command signals nothing: see `tail.rs`.
    end: OnceLock<EventKind>,
    times: Option<Box<Marks>>,
    status: AtomicU8,
    work: Arc<QueueState>,
    /// Of a command that a thread of ours carries out.
    fate: OnceLock<Arc<Fate>>,
    /// Where it is in its queue; `None` if that is not known, or nowhere.
    spot: Option<CommandId>,
    /// The batch that it is in; 0 for none.
    batch: u64,
}
impl Signal {
    /// Of a command of `work`; appended already. `end` is what it signals.
    #[inline]
    pub(super) fn new(
        work: &Arc<QueueState>,
        end: Option<EventKind>,
        times: Option<Marks>,
        (spot, batch): (Option<CommandId>, u64),
    ) -> Self {
        let (status, times) = (AtomicU8::new(PENDING), times.map(Box::new));
        let end = end.map_or_else(OnceLock::new, OnceLock::from);
        Self { end, times, status, work: Arc::clone(work), fate: OnceLock::new(), spot, batch }
    }
    /// A thread of ours carries it out, or something that it is behind: nobody knows of this signal yet.
    pub(super) fn depend_on(&self, fate: &Arc<Fate>) {
        let _first = self.fate.set(Arc::clone(fate));
    }
    /// What it depends on beside the driver, if that may fail yet, or has.
    pub(super) fn fate(&self) -> Option<&Arc<Fate>> {
        self.fate.get().filter(|fate| !fate.is_well())
    }
    fn has_failed(&self) -> bool {
        self.fate.get().is_some_and(|fate| fate.has_failed())
    }
    /// Of a command that was done before it came.
    pub(super) fn over(work: &Arc<QueueState>) -> Self {
        let this = Self::new(work, None, None, (None, 0));
        this.settle(COMPLETE);
        this
    }
    /// The stream that it is of.
    #[inline]
    pub(super) fn work(&self) -> &Arc<QueueState> {
        &self.work
    }
    /// What marks it: there behind [`Signal::mark`], unless it is known to be done.
    pub(super) fn kind(&self) -> Option<&EventKind> {
        self.end.get()
    }
    /// Sees to it that it is under way and that there is something to wait for, unless it is done.
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
    /// An event of the driver's that is signalled with it.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub(super) fn raw(&self) -> Result<RawEvent> {
        self.mark()?;
        if let Some(end) = self.end.get() {
            return Ok(end.raw());
        }
        let fresh = self.work().cache().maker().make(false)?;
        if let EventKind::Pooled(event) = &fresh {
            event.signal()?; // the other kinds begin so
        }
        Ok(self.end.get_or_init(|| fresh).raw())
    }
    /// When it was submitted, began and ended; `None` if that was not to be noted.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub(super) fn times(&self) -> Result<Option<Times>> {
        let Some(marks) = &self.times else { return Ok(None) };
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
    /// Sees to it that it is under way.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub(super) fn send(&self) -> Result<()> {
        if self.batch == 0 { Ok(()) } else { self.work().flush_up_to(self.batch) }
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
    /// Whether it is without a mark, and its list has nothing to do.
    #[inline]
    fn is_idle(&self) -> Result<bool> {
        match (self.end.get(), self.spot) {
            (None, Some(spot)) => self.work().is_lane_idle(spot.lane),
            (end, _) => Ok(end.is_none()),
        }
    }
    /// Whether it is seen to be done. Where an event marks it, that is for who waits to ask.
    #[inline]
    pub(super) fn is_settled(&self) -> bool {
        let is_done = match self.status.load(Acquire) {
            PENDING => self.batch == 0 && (self.is_passed() || matches!(self.is_idle(), Ok(true))),
            status => return status == COMPLETE,
        };
        if is_done {
            self.settle(COMPLETE);
        }
        is_done && !self.has_failed()
    }
    fn is_over(&self) -> Result<bool> {
        if self.is_idle()? {
            return Ok(true);
        }
        if self.end.get().is_none() {
            match self.look_for_mark() {
                // Without a mark its list will tell.
                Err(error) if is_passing(&error) => return Ok(false),
                marked => marked?,
            }
        }
        self.end.get().map_or(Ok(true), EventKind::is_complete)
    }
    #[inline]
    fn wait_for_end(&self) -> Result<()> {
        if self.is_idle()? {
            return Ok(());
        }
        if self.end.get().is_none() {
            match self.look_for_mark() {
                Err(error) if is_passing(&error) => return self.wait_unmarked(),
                marked => marked?,
            }
        }
        self.end.get().map_or(Ok(()), |end| self.work().wait_for(end))
    }
    /// The driver has no memory for a mark. The command is under way all the same, and may write where the caller waits for it:
    /// its list is asked until all in it is done, or there is memory again.
    #[cold]
    fn wait_unmarked(&self) -> Result<()> {
        let mut nap = NAPS[0];
        while !self.is_idle()? {
            if self.work().is_lost() {
                return Err(lost());
            }
            std::thread::sleep(nap);
            nap = (nap * 2).min(NAPS[1]);
            match self.look_for_mark() {
                Err(error) if is_passing(&error) => {}
                marked => {
                    marked?;
                    return self.end.get().map_or(Ok(()), |end| self.work().wait_for(end));
                }
            }
        }
        Ok(())
    }
    /// Whether it is known to be done by one behind it. Whose times are wanted the driver is asked.
    fn is_passed(&self) -> bool {
        self.times.is_none() && self.spot.is_some_and(|spot| self.work().has_passed(spot))
    }
    /// What is known without asking anybody.
    pub(super) fn known(&self) -> Option<Result<()>> {
        match self.status.load(Acquire) {
            COMPLETE => Some(Ok(())),
            FAILED => Some(Err(failed_dependency())),
            _ if self.has_failed() => Some(Err(failed_dependency())),
            _ => None,
        }
    }
    pub(super) fn status(&self) -> Status {
        if self.status.load(Acquire) == PENDING {
            let outcome = match self.is_passed() {
                true => Ok(true),
                false => self.send().and_then(|()| self.is_over()),
            };
            self.settle(match outcome {
                Ok(true) => COMPLETE,
                Ok(false) if !self.work().is_lost() => PENDING,
                Ok(false) | Err(_) => FAILED,
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
        match self.fate.get().and_then(|fate| fate.check().err()) {
            Some(error) => Error::new(
                ErrorCode::InEventListExecStatus,
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
        self.settle(if outcome.is_ok() { COMPLETE } else { FAILED });
        if self.has_failed() { outcome.and(Err(self.failure())) } else { outcome }
    }
}
impl Drop for Signal {
    fn drop(&mut self) {
        let cache = self.work.cache();
        let timed = self.times.is_some();
        if let Some(start) = self.times.as_mut().and_then(|times| times.start.take()) {
            cache.give(start, true);
        }
        if let Some(end) = self.end.take() {
            cache.give(end, timed);
        }
    }
}
/// Whether what the driver says may be otherwise the next time.
pub(super) fn is_passing(error: &Error) -> bool {
    let codes =
        [ErrorCode::OutOfDeviceMemory, ErrorCode::OutOfHostMemory, ErrorCode::OutOfResources];
    codes.contains(&error.code())
}
fn failed_dependency() -> Error {
    Error::new(
        ErrorCode::InEventListExecStatus,
        "an event that was to be waited for is of a command that failed: the command is not submitted",
    )
}
