//! Signals: what marks the end of one command, and the events of the driver's that such marks are
//! made with. Those are used again and again: on the way of a command nothing is allocated.
use super::{
    Context, Device,
    driver::RawEvent,
    native::{
        counter::Counters,
        event::{EventKind, EventMaker},
    },
    options,
    queue::Work,
};
use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU8, Ordering::*},
    },
    time::Duration,
};
use ur_adapter::error::{Error, ErrorCode, Result};
use ur_sys::ur_event_status_t;

/// So many counter-based events are kept for later.
const KEPT: usize = 256;
/// How often a wait that may never end looks whether it will.
pub(super) const SLICE: u64 = Duration::from_millis(10).as_nanos() as u64;
/// For as long as it takes.
pub(super) const EVER: u64 = u64::MAX;

/// Events of one device that nobody uses, and what makes more.
#[derive(Debug)]
pub struct Cache {
    maker: EventMaker,
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
    /// The driver's own.
    pub(super) fn take(&self, timed: bool) -> Result<EventKind> {
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
    pub(super) fn give(&self, event: EventKind, timed: bool) {
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
    pub(super) fn of(&self, context: &Context, device: &Device, pooled: bool) -> Arc<Cache> {
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
        let maker = EventMaker::new(Arc::clone(context.native()), device.raw(), counters, places);
        let idle = [VecDeque::with_capacity(KEPT), VecDeque::new()].map(Mutex::new);
        let fresh = Arc::new(Cache { maker, idle });
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
pub struct Times {
    /// When it was submitted, in ticks of the device's clock.
    pub(super) submitted: u64,
    /// Marks the beginning, where the end's own event does not tell it.
    pub(super) start: Option<EventKind>,
    /// Whether there is only one moment.
    pub(super) is_moment: bool,
}

/// The end of one command.
#[derive(Debug)]
pub struct Signal {
    /// `None` only when it goes.
    end: Option<EventKind>,
    times: Option<Times>,
    status: AtomicU8,
    work: Arc<Work>,
    /// The batch that it is in; 0 for none.
    batch: u64,
}
impl Signal {
    /// Of a command of `work`; appended already.
    pub(super) fn new(work: Arc<Work>, end: EventKind, times: Option<Times>, batch: u64) -> Self {
        let status = AtomicU8::new(PENDING);
        Self { end: Some(end), times, status, work, batch }
    }
    /// The queue's part that it is of.
    pub(super) fn work(&self) -> &Arc<Work> {
        &self.work
    }
    fn end(&self) -> &EventKind {
        self.end.as_ref().expect("a signal has its event until it goes")
    }
    /// The driver's handle.
    pub(super) fn raw(&self) -> RawEvent {
        self.end().raw()
    }
    /// What a wait keeps until it is over.
    pub(super) fn kind(&self) -> &EventKind {
        self.end()
    }
    pub(super) fn times(&self) -> Option<&Times> {
        self.times.as_ref()
    }
    /// Sees to it that it is under way.
    ///
    /// # Errors
    /// The driver's own.
    pub(super) fn send(&self) -> Result<()> {
        if self.batch == 0 { Ok(()) } else { self.work.flush_up_to(self.batch) }
    }
    fn settle(&self, status: u8) {
        if status != PENDING {
            self.status.store(status, Release);
        }
    }
    /// What is known without asking anybody.
    pub(super) fn known(&self) -> Option<Result<()>> {
        match self.status.load(Acquire) {
            COMPLETE => Some(Ok(())),
            FAILED => Some(Err(failed_dependency())),
            _ => None,
        }
    }
    pub(super) fn status(&self) -> ur_event_status_t {
        if self.status.load(Acquire) == PENDING {
            let outcome = self.send().and_then(|()| self.end().is_complete());
            self.settle(match outcome {
                Ok(true) => COMPLETE,
                Ok(false) if !self.work.is_lost() => PENDING,
                Ok(false) | Err(_) => FAILED,
            });
        }
        match self.status.load(Acquire) {
            COMPLETE => ur_event_status_t::COMPLETE,
            FAILED => ur_event_status_t::ERROR,
            _ => ur_event_status_t::SUBMITTED,
        }
    }
    /// Waits for the end.
    ///
    /// # Errors
    /// `IN_EVENT_LIST_EXEC_STATUS` if it never comes; the driver's own.
    pub(super) fn wait(&self) -> Result<()> {
        match self.status.load(Acquire) {
            COMPLETE => return Ok(()),
            FAILED => return Err(super::shared_event::lost()),
            _ => {}
        }
        let outcome = self.send().and_then(|()| self.work.wait_for(self.end()));
        self.settle(if outcome.is_ok() { COMPLETE } else { FAILED });
        outcome
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
fn failed_dependency() -> Error {
    Error::new(
        ErrorCode::InEventListExecStatus,
        "an event that was to be waited for is of a command that failed: the command is not submitted",
    )
}
