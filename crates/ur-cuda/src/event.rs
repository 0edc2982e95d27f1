//! Events as C knows them: a command's, one of the driver's own that C brought, a reusable one of
//! this process, or one that processes share. Points in streams are `native/event.rs`'s, shared
//! events `shared_event.rs`'s, callbacks `watch.rs`'s.
use super::{
    Context, Device, Family, Queue,
    clock::Base,
    driver::{Dialect, RawEvent, is_of_capture},
    lane::captured,
    native::{
        context::Entered,
        event::{NativeEvent, Pooled},
        stream::Stream,
    },
    patience,
    shared_event::{Shared, await_all, have_failed, lost_dependency},
    watch,
};
use std::{
    ptr,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU8, Ordering::*},
    },
};
use ur_adapter::{
    api::{EventApi, EventExpApi},
    callback::EventCallback,
    error::{Error, ErrorCode, Result},
    info::Answer,
    object::{Borrowed, Owned},
};
use ur_core::profiling::{self, Profile};
use ur_ipc::arena::{Debt, Progress};
use ur_sys::{
    ur_command_t, ur_event_info_t, ur_event_native_properties_t, ur_event_status_t,
    ur_execution_info_t, ur_exp_event_desc_t, ur_exp_event_flags_t, ur_native_handle_t,
    ur_profiling_info_t,
};

/// What `ur_event_handle_t` points at.
#[derive(Debug)]
pub struct Event<D: Dialect> {
    context: Owned<Context<D>>,
    queue: Option<Owned<Queue<D>>>,
    command: ur_command_t,
    state: State<D>,
}

#[derive(Debug)]
enum State<D: Dialect> {
    /// Of one command.
    Command(Arc<Point<D>>),
    /// The driver's, made by somebody else.
    Native(NativeEvent<D>),
    /// Complete from the beginning, without an event of the driver's.
    Complete,
    /// Signalled again and again, in this process; `profiled`: each signal notes its time.
    Reusable { latest: Mutex<Option<Arc<Point<D>>>>, profiled: bool },
    /// Signalled again and again, in any process that has it.
    Shared(Shared<D>),
}

/// When a command began and ended, or will.
#[derive(Debug)]
pub struct Point<D: Dialect> {
    end: Pooled<D>,
    times: Option<Times<D>>,
    status: AtomicU8,
    /// What the streams of its queue waited for when it was submitted; mostly nothing.
    debts: Vec<Debt>,
}
/// What a profiled command is measured by.
#[derive(Debug)]
pub(super) struct Times<D: Dialect> {
    pub(super) base: Arc<Base<D>>,
    /// Nanoseconds of the device's clock, as near as the host knows.
    pub(super) submitted: u64,
    /// `None`: there is only one moment.
    pub(super) start: Option<Pooled<D>>,
    pub(super) profile: Profile,
}
impl<D: Dialect> Times<D> {
    /// Of a command that comes next in `stream`.
    ///
    /// # Errors
    /// The driver's own.
    pub(super) fn begin(
        device: &Device<D>,
        on: &Entered<D>,
        stream: &Stream<D>,
        profile: Profile,
    ) -> Result<Self> {
        let (base, submitted) = (device.base()?, super::clock::now());
        let start = match profile {
            Profile::Phases => Some(device.events().take(on, true)?),
            _ => None,
        };
        start.as_ref().map_or(Ok(()), |start| start.record(stream))?;
        Ok(Self { base, submitted, start, profile })
    }
}
const PENDING: u8 = 0;
const COMPLETE: u8 = 1;
const FAILED: u8 = 2;
/// Its command was captured into a graph of somebody's and does not run here. The driver is not asked: a
/// question about such an event breaks the capture.
const CAPTURED: u8 = 3;

impl<D: Dialect> Point<D> {
    /// One that `end` marks; recorded already.
    pub(super) fn new(end: Pooled<D>, times: Option<Times<D>>, debts: Vec<Debt>) -> Arc<Self> {
        Arc::new(Self { end, times, status: AtomicU8::new(PENDING), debts })
    }
    /// One that `end` marks in a stream that is being captured.
    pub(super) fn captured(end: Pooled<D>) -> Arc<Self> {
        Arc::new(Self { end, times: None, status: AtomicU8::new(CAPTURED), debts: vec![] })
    }
    fn settle(&self, outcome: &Result<bool>) {
        match outcome {
            Ok(true) if have_failed(&self.debts) => self.status.store(FAILED, Release),
            Ok(true) => self.status.store(COMPLETE, Release),
            Ok(false) => {}
            // Its record is part of a graph: nothing is known, and nothing failed.
            Err(error) if error.native_status().is_some_and(is_of_capture) => {}
            Err(_) => self.status.store(FAILED, Release),
        }
    }
    fn status(&self) -> ur_event_status_t {
        if self.status.load(Acquire) == PENDING {
            self.settle(&self.end.is_complete());
        }
        match self.status.load(Acquire) {
            COMPLETE => ur_event_status_t::COMPLETE,
            FAILED => ur_event_status_t::ERROR,
            _ => ur_event_status_t::SUBMITTED,
        }
    }
    pub(super) fn wait(&self) -> Result<()> {
        if self.status.load(Acquire) == COMPLETE {
            return Ok(());
        }
        if self.status.load(Acquire) == CAPTURED {
            return Err(captured("waiting for a command of it"));
        }
        await_all(&self.debts); // a thread sleeps for what others owe
        let outcome = self.end.wait().map(|()| true);
        self.settle(&outcome);
        match self.status.load(Acquire) == FAILED && outcome.is_ok() {
            true => Err(lost_dependency()),
            false => outcome.map(drop),
        }
    }
    /// What `queue` puts into `stream` later waits for it; `is_before`: it is in that very stream.
    fn order(&self, queue: &Queue<D>, stream: &Stream<D>, is_before: bool) -> Result<()> {
        match self.status.load(Acquire) {
            COMPLETE => return Ok(()),
            FAILED => return Err(failed_dependency()),
            _ if is_before => return Ok(()), // and its debts are the queue's
            // The driver would take the stream into the capture.
            CAPTURED if !stream.is_capturing()? => {
                return Err(captured("what a command elsewhere waits for"));
            }
            _ => stream.wait_for(&self.end)?,
        }
        for debt in self.debts.iter().filter(|debt| debt.progress() != Progress::Complete) {
            queue.work().owe(debt.clone());
        }
        Ok(())
    }
}
fn failed_dependency() -> Error {
    Error::new(
        ErrorCode::InEventListExecStatus,
        "an event that was to be waited for is of a command that failed: the command is not submitted",
    )
}

impl<D: Dialect> Event<D> {
    /// Of a command of `queue`.
    pub(super) fn of(
        queue: Owned<Queue<D>>,
        command: ur_command_t,
        point: Arc<Point<D>>,
    ) -> Owned<Self> {
        let context = queue.context().clone();
        Owned::new(Self { context, queue: Some(queue), command, state: State::Command(point) })
    }
    fn without_queue(context: Owned<Context<D>>, state: State<D>) -> Owned<Self> {
        let command = ur_command_t::EVENTS_WAIT_WITH_BARRIER;
        Owned::new(Self { context, queue: None, command, state })
    }
    /// One that processes share.
    pub(super) fn shared(context: Owned<Context<D>>, shared: Shared<D>) -> Owned<Self> {
        Self::without_queue(context, State::Shared(shared))
    }
    /// The shared part, if it is shared.
    pub(super) fn as_shared(&self) -> Option<&Shared<D>> {
        match &self.state {
            State::Shared(shared) => Some(shared),
            _ => None,
        }
    }
    /// Whether it notes the times of its signals, being reusable.
    pub(super) fn is_profiled_reusable(&self) -> bool {
        matches!(self.state, State::Reusable { profiled: true, .. })
    }
    /// Makes the context current in which the driver is asked about it, if it is: no device is started for an
    /// event that has nothing to do with it.
    ///
    /// # Errors
    /// The driver's own.
    pub(super) fn enter(&self) -> Result<Option<Entered<D>>> {
        let on = match (&self.state, &self.queue) {
            (State::Complete | State::Shared(_), _) => return Ok(None),
            (_, Some(queue)) => queue.device().enter()?,
            (State::Native(_), None) => self.context.devices()[0].enter()?,
            _ => match self.point() {
                Some(point) => point.end.device()?.enter()?,
                None => return Ok(None),
            },
        };
        Ok(Some(on))
    }
    /// The context it was made in.
    pub(super) fn context(&self) -> &Owned<Context<D>> {
        &self.context
    }
    fn point(&self) -> Option<Arc<Point<D>>> {
        match &self.state {
            State::Command(point) => Some(Arc::clone(point)),
            State::Reusable { latest, .. } => {
                latest.lock().unwrap_or_else(PoisonError::into_inner).clone()
            }
            State::Native(_) | State::Complete | State::Shared(_) => None,
        }
    }
    /// Which times it was made for, or has now.
    fn profile(&self) -> Profile {
        let made_for = match self.is_profiled_reusable() {
            true => Profile::Instant,
            false => Profile::Off,
        };
        let point = self.point();
        let times = point.as_ref().and_then(|point| point.times.as_ref());
        times.map_or(made_for, |times| times.profile)
    }
    /// What `queue` puts into `stream` later waits for its latest signal so far.
    ///
    /// # Errors
    /// `IN_EVENT_LIST_EXEC_STATUS` if that has failed; the driver's own.
    pub(super) fn order(&self, queue: &Queue<D>, stream: &Stream<D>) -> Result<()> {
        match &self.state {
            State::Native(event) => stream.wait_for(event),
            State::Complete => Ok(()),
            State::Shared(shared) => shared.order(queue, stream),
            State::Command(point) => {
                let is_same = |own: &Owned<Queue<D>>| ptr::eq(own.work(), queue.work());
                let is_before = queue.is_in_order() && self.queue.as_ref().is_some_and(is_same);
                point.order(queue, stream, is_before)
            }
            State::Reusable { .. } => {
                self.point().map_or(Ok(()), |point| point.order(queue, stream, false))
            }
        }
    }
    /// Whether a barrier of C's may signal it, and whether it wants its times.
    ///
    /// # Errors
    /// `INVALID_EVENT` for an event that belongs to one command.
    pub(super) fn check_signal(&self) -> Result<bool> {
        match &self.state {
            State::Command(_) | State::Native(_) | State::Complete => Err(Error::new(
                ErrorCode::InvalidEvent,
                "the event belongs to one command and cannot be signalled again: make one with \
                 urEventCreateExp",
            )),
            State::Reusable { profiled, .. } => Ok(*profiled),
            State::Shared(_) => Ok(false),
        }
    }
    /// The latest signal is `point` from now on.
    pub(super) fn replace(&self, point: Arc<Point<D>>) {
        if let State::Reusable { latest, .. } = &self.state {
            let old = latest.lock().unwrap_or_else(PoisonError::into_inner).replace(point);
            drop(old);
        }
    }
    /// How far its latest signal is.
    pub(super) fn status(&self) -> Result<ur_event_status_t> {
        match &self.state {
            State::Native(event) => Ok(match event.is_complete() {
                Ok(true) => ur_event_status_t::COMPLETE,
                Ok(false) => ur_event_status_t::SUBMITTED,
                Err(_) => ur_event_status_t::ERROR,
            }),
            State::Shared(shared) => shared.status(),
            _ => Ok(self.point().map_or(ur_event_status_t::COMPLETE, |point| point.status())),
        }
    }
    /// Waits for its latest signal when that was asked.
    fn wait(&self, what: &Wait<'_, D>) -> Result<()> {
        let outcome = what.wait();
        if let Some(queue) = &self.queue
            && matches!(&outcome, Err(error) if error.code() != ErrorCode::InEventListExecStatus)
        {
            queue.work().tell_failure(&outcome);
        }
        outcome
    }
    /// What has to be waited for: captured now, waited for later.
    fn capture(&self) -> Result<Wait<'_, D>> {
        Ok(match &self.state {
            State::Native(event) => Wait::Native(event, &self.context.devices()[0]),
            State::Shared(shared) => Wait::Shared(shared.capture()?),
            _ => self.point().map_or(Wait::Nothing, Wait::Point),
        })
    }
}
enum Wait<'event, D: Dialect> {
    Nothing,
    Point(Arc<Point<D>>),
    Native(&'event NativeEvent<D>, &'event Device<D>),
    Shared(super::shared_event::Awaited),
}
impl<D: Dialect> Wait<'_, D> {
    fn wait(&self) -> Result<()> {
        match self {
            Self::Nothing => Ok(()),
            Self::Point(point) => point.wait(),
            Self::Native(event, device) => patience::wait_for(event, device),
            Self::Shared(awaited) => awaited.wait(),
        }
    }
}

impl<D: Dialect> EventApi for Family<D> {
    fn event_get_info(
        event: Borrowed<'_, Event<D>>,
        name: ur_event_info_t,
        answer: &mut Answer<'_>,
    ) -> Result<()> {
        match name {
            ur_event_info_t::COMMAND_QUEUE => match &event.queue {
                Some(queue) => answer.handle(queue),
                None => answer.value(&0usize), // no queue's: a null handle
            },
            ur_event_info_t::CONTEXT => answer.handle(&event.context),
            ur_event_info_t::COMMAND_TYPE => answer.value(&event.command.0),
            ur_event_info_t::COMMAND_EXECUTION_STATUS => {
                let _on = event.enter()?;
                answer.value(&event.status()?.0)
            }
            ur_event_info_t::REFERENCE_COUNT => answer.value(&event.api_refs()),
            _ => Err(Error::new(
                ErrorCode::UnsupportedEnumeration,
                format!("an event of {} has no answer to {name:?}", D::NAME),
            )),
        }
    }
    /// The driver's event that marks the end of the command.
    fn event_get_native_handle(event: Borrowed<'_, Event<D>>) -> Result<ur_native_handle_t> {
        let raw = match &event.state {
            State::Command(point) => point.end.raw(),
            State::Native(event) => event.raw(),
            State::Complete => return Ok(0), // as it was made
            State::Reusable { .. } | State::Shared(_) => {
                return Error::unsupported("urEventGetNativeHandle of a reusable event");
            }
        };
        Ok(raw.addr() as ur_native_handle_t)
    }
    fn event_create_with_native_handle(
        native: ur_native_handle_t,
        context: Borrowed<'_, Context<D>>,
        properties: Option<&ur_event_native_properties_t>,
    ) -> Result<Owned<Event<D>>> {
        let owned = properties.is_some_and(|p| p.isNativeHandleOwned);
        let state = match RawEvent::from_addr(native) {
            Some(raw) => State::Native(NativeEvent::adopted(raw, owned)),
            None => State::Complete,
        };
        Ok(Event::without_queue(context.own()?, state))
    }
    fn check_event_get_profiling_info(event: Borrowed<'_, Event<D>>) -> Result<()> {
        event.profile().check()
    }
    fn event_get_profiling_info(
        event: Borrowed<'_, Event<D>>,
        name: ur_profiling_info_t,
        answer: &mut Answer<'_>,
    ) -> Result<()> {
        let _on = event.enter()?;
        let point = event.point().ok_or_else(profiling::not_yet)?;
        let times = point.times.as_ref().ok_or_else(profiling::not_yet)?;
        answer.value(&times.profile.time(name, times.submitted, || {
            if point.status() != ur_event_status_t::COMPLETE {
                return Ok(None);
            }
            let end = times.base.time_of(&point.end)?;
            let start = times.start.as_ref().map(|start| times.base.time_of(start));
            Ok(Some((start.unwrap_or(Ok(end))?, end)))
        })?)
    }
    fn event_wait(events: &[Owned<Event<D>>]) -> Result<()> {
        super::device::check_fork::<D>()?;
        // All are captured before the first wait: the wait is for what was signalled when it began.
        let waits = events.iter().map(|event| event.capture()).collect::<Result<Vec<_>>>()?;
        // All have ended when this returns, failures or not.
        let waited = events.iter().zip(&waits).map(|(event, what)| event.wait(what));
        waited.fold(Ok(()), Result::and)
    }
    fn event_set_callback(
        event: Borrowed<'_, Event<D>>,
        status: ur_execution_info_t,
        callback: EventCallback,
    ) -> Result<()> {
        let kept = event.own()?; // C may release it before it is called, or in the call
        match status {
            ur_execution_info_t::SUBMITTED => callback.call(&kept, status),
            ur_execution_info_t::RUNNING | ur_execution_info_t::COMPLETE => {
                watch::call_when_over(kept, status, callback)?;
            }
            _ => return Err(ErrorCode::UnsupportedEnumeration.into()),
        }
        Ok(())
    }
}

impl<D: Dialect> EventExpApi for Family<D> {
    fn event_create_exp(
        context: Borrowed<'_, Context<D>>,
        device: Borrowed<'_, Device<D>>,
        desc: &ur_exp_event_desc_t,
    ) -> Result<Owned<Event<D>>> {
        use ur_exp_event_flags_t as F;
        context.check(device)?;
        super::device::check_fork::<D>()?;
        if desc.flags.contains(F::IPC_EXP | F::ENABLE_PROFILING) {
            return Err(Error::new(
                ErrorCode::InvalidValue,
                "an event that processes share has no times: ask for IPC_EXP or ENABLE_PROFILING, \
                 not both",
            ));
        }
        if desc.flags.contains(F::IPC_EXP) {
            let shared = Shared::make(Arc::clone(device.driver()))?;
            return Ok(Event::shared(context.own()?, shared));
        }
        let profiled = desc.flags.contains(F::ENABLE_PROFILING);
        let state = State::Reusable { latest: Mutex::default(), profiled };
        Ok(Event::without_queue(context.own()?, state))
    }
}
