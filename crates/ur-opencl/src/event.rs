//! Events: the end of one command, or what commands signal again and again, in this process or in several. What other
//! processes owe, a queue waits for through an event of the host's, which one watcher completes.
use super::{
    Context, Device, OpenCl, Queue,
    context::DriverContext,
    driver::RawEvent,
    native::{event as native, own::Own},
    platform,
};
use std::sync::{Arc, Mutex};
use ur_adapter::{
    api::{EventApi, EventExpApi},
    callback::EventCallback,
    error::{Error, ErrorCode, Reason, Result},
    info::Answer,
    object::{Backend, Borrowed, Owned},
    per_process::PerProcess,
};
use ur_core::{
    memory::objects::next_object,
    over_driver::watch::{Watch, Watched, call_when_over},
    profiling::{self, Profile},
};
use ur_hal::Status;
use ur_ipc::{
    Access, Remote,
    arena::{self, Any, Captured, Debt, LocalWake, Progress, Slot, wait_any},
};
use ur_lock::locked;
use ur_sys::*;

/// The end of a command.
#[derive(Debug)]
pub struct End {
    pub(super) event: Own<RawEvent>,
    pub(super) context: Arc<DriverContext>,
    pub(super) profile: Profile,
    pub(super) submitted: u64,
    /// What other processes owe that it depends on. Intel's runtime completes markers whose dependency has failed as if it had not, so
    /// that failures are passed on here.
    pub(super) behind: Vec<Debt>,
}
impl End {
    /// How far the command has come.
    pub(super) fn status(&self) -> Status {
        match native::status(&self.event) {
            Status::Complete if self.is_doomed() => Status::Failed,
            other => other,
        }
    }
    /// Whether something that it depends on has failed. Asks no driver.
    pub(super) fn is_doomed(&self) -> bool {
        self.behind.iter().any(|debt| debt.progress() == Progress::Failed)
    }
}
/// Something to wait for, as it stood when the waiter was submitted.
#[derive(Clone, Debug)]
pub enum Pending {
    /// A command of this process.
    Here(Arc<End>),
    /// A signal that a process owes, this one or another.
    Shared(Debt),
}
impl Pending {
    fn status(&self) -> Status {
        match self {
            Self::Here(end) => end.status(),
            Self::Shared(debt) => match debt.progress() {
                Progress::Pending => Status::Submitted,
                Progress::Complete => Status::Complete,
                Progress::Failed => Status::Failed,
            },
        }
    }
    /// Sleeps until it is over; whether it went well.
    fn wait(&self) -> bool {
        match self {
            Self::Here(end) => native::wait(&end.event) == Status::Complete && !end.is_doomed(),
            Self::Shared(debt) => debt.wait(None) == Progress::Complete,
        }
    }
    /// What other processes owe that it depends on, as far as that is not paid.
    pub(super) fn debts(&self) -> impl Iterator<Item = &Debt> {
        let all = match self {
            Self::Here(end) => end.behind.as_slice(),
            Self::Shared(debt) => std::slice::from_ref(debt),
        };
        all.iter().filter(|debt| debt.progress() != Progress::Complete)
    }
    /// What C hears if it has failed.
    fn failure(&self) -> Error {
        let error = failure();
        if matches!(self, Self::Shared(_)) { error.because(Reason::ExporterGone) } else { error }
    }
    /// An event of the driver's that queues of a context can wait for.
    ///
    /// # Errors
    /// The driver's own; `OUT_OF_RESOURCES` without a thread.
    pub(super) fn event(&self, context: &Arc<DriverContext>) -> Result<Own<RawEvent>> {
        match self {
            Self::Here(end) if Arc::ptr_eq(&end.context, context) => Ok(end.event.clone()),
            Self::Here(end) => {
                let own = native::of_user(context.native().raw())?;
                // Contexts of OpenCL do not know each other's events.
                let (settled, of) = (own.clone(), Arc::clone(end));
                let settle = move |is_good| native::settle(&settled, is_good && !of.is_doomed());
                native::call_when_over(&end.event, settle)
                    .inspect_err(|_| native::settle(&own, false))?;
                Ok(own)
            }
            Self::Shared(debt) => {
                let own = native::of_user(context.native().raw())?;
                watch(debt.clone(), own.clone()).inspect_err(|_| native::settle(&own, false))?;
                Ok(own)
            }
        }
    }
}
/// What C hears of a command that has failed.
pub(super) fn failure() -> Error {
    Error::new(ErrorCode::InEventListExecStatus, "what a command waits for has failed")
}

/// Signals that are owed, each with its event; and whether the thread runs.
type Owed = (Vec<(Debt, Own<RawEvent>)>, bool);
/// What the watcher looks at: signals that are owed, each with the event that queues wait for in its place.
#[derive(Default)]
struct Watcher {
    state: Mutex<Owed>,
    wake: LocalWake,
}
static WATCHER: PerProcess<Watcher> = PerProcess::new();
fn watch(debt: Debt, event: Own<RawEvent>) -> Result<()> {
    let watcher = WATCHER.get();
    let mut state = locked(&watcher.state);
    if !state.1 {
        let name = "causeway-opencl";
        ur_mapping::start_thread(name, move || watcher.run())
            .map_err(|why| Error::no_thread(name, &why))?;
        state.1 = true;
    }
    state.0.push((debt, event));
    drop(state);
    watcher.wake.signal();
    Ok(())
}
impl Watcher {
    fn run(&self) {
        loop {
            let all = locked(&self.state).0.clone();
            let debts: Vec<_> = all.iter().map(|(debt, _)| debt).collect();
            let Any::Ready(_) = wait_any(&debts, &self.wake, None) else { continue };
            let mut state = locked(&self.state);
            let (over, open) = std::mem::take(&mut state.0)
                .into_iter()
                .partition(|(debt, _)| debt.progress() != Progress::Pending);
            state.0 = open;
            drop(state);
            let over: Vec<(Debt, Own<RawEvent>)> = over;
            for (debt, event) in over {
                native::settle(&event, debt.progress() == Progress::Complete);
            }
        }
    }
}

/// What can be signalled again.
#[derive(Debug)]
pub enum Signal {
    /// The end of the command that signalled it last, if one has; and whether its time is told.
    Local(Mutex<Option<Arc<End>>>, bool),
    /// A word that processes share.
    Shared(Slot),
}
/// Where an event comes from that is signalled again and again.
#[derive(Debug)]
pub enum Origin {
    /// Made here under this number.
    Made(u64),
    /// Opened here, where it was made as well.
    OpenedHere,
    /// Another process's, which lends it as long as this lives.
    Opened(#[expect(dead_code, reason = "held to be dropped")] Remote<Slot>),
}
/// What `ur_event_handle_t` points at.
#[derive(Debug)]
pub struct Event {
    context: Owned<Context>,
    kind: Kind,
}
#[derive(Debug)]
enum Kind {
    Command(Option<Owned<Queue>>, ur_command_t, Arc<End>),
    Again(Signal, Origin),
}
impl Drop for Event {
    fn drop(&mut self) {
        if let Kind::Again(Signal::Shared(_), Origin::Made(object)) = &self.kind {
            super::share::forget(*object);
        }
    }
}
impl Event {
    pub(super) fn of(queue: Owned<Queue>, command: ur_command_t, end: Arc<End>) -> Owned<Self> {
        let context = queue.place().0.clone();
        Owned::new(Self { context, kind: Kind::Command(Some(queue), command, end) })
    }
    pub(super) fn shared(context: Owned<Context>, slot: Slot, origin: Origin) -> Owned<Self> {
        Owned::new(Self { context, kind: Kind::Again(Signal::Shared(slot), origin) })
    }
    /// The word that processes share, and where it is from.
    pub(super) fn slot(&self) -> Option<(&Slot, &Origin)> {
        match &self.kind {
            Kind::Again(Signal::Shared(slot), origin) => Some((slot, origin)),
            _ => None,
        }
    }
    /// Whether times of its signals are told.
    pub(super) fn is_timed(&self) -> bool {
        matches!(self.kind, Kind::Again(Signal::Local(_, true), _))
    }
    /// # Errors
    /// `INVALID_EVENT` for one that belongs to one command.
    pub(super) fn signal(&self) -> Result<&Signal> {
        match &self.kind {
            Kind::Again(signal, _) => Ok(signal),
            Kind::Command(..) => {
                let why = "the event is one command's: make one with urEventCreateExp";
                Err(Error::new(ErrorCode::InvalidEvent, why))
            }
        }
    }
    /// The command that signalled it last, as far as that is of this process.
    fn end(&self) -> Option<Arc<End>> {
        match &self.kind {
            Kind::Command(_, _, end) => Some(Arc::clone(end)),
            Kind::Again(Signal::Local(end, _), _) => locked(end).clone(),
            Kind::Again(Signal::Shared(_), _) => None,
        }
    }
    /// What there is to wait for now; `None` if nothing is.
    fn capture(&self) -> Result<Option<Pending>> {
        let Kind::Again(Signal::Shared(slot), _) = &self.kind else {
            return Ok(self.end().map(Pending::Here));
        };
        match slot.capture() {
            Ok(Captured::Complete) => Ok(None),
            Ok(Captured::Debt(debt)) => Ok(Some(Pending::Shared(debt))),
            Err(error) => Err(Error::from(error).with_code(ErrorCode::InvalidEvent)),
        }
    }
    fn status(&self) -> Result<Status> {
        Ok(self.capture()?.map_or(Status::Complete, |one| one.status()))
    }
}
/// What the events of a wait list stand for now, as far as it is not over.
///
/// # Errors
/// `IN_EVENT_LIST_EXEC_STATUS` if one has failed; `INVALID_EVENT_WAIT_LIST` for one whose shared state is gone.
pub(super) fn capture(events: &[Borrowed<'_, Event>]) -> Result<Vec<Pending>> {
    let mut all = vec![];
    for event in events {
        let pending = event.capture().map_err(|e| match e.code() {
            ErrorCode::InvalidEvent => e.with_code(ErrorCode::InvalidEventWaitList),
            _ => e,
        })?;
        let Some(pending) = pending else { continue };
        match pending.status() {
            Status::Complete => {}
            Status::Failed => return Err(pending.failure()),
            _ => all.push(pending),
        }
    }
    Ok(all)
}
/// Waits for all of them, also after one has failed.
///
/// # Errors
/// `IN_EVENT_LIST_EXEC_STATUS` if one has.
pub(super) fn wait_for(all: &[Pending]) -> Result<()> {
    let wait = |one: &Pending| if one.wait() { Ok(()) } else { Err(one.failure()) };
    all.iter().map(wait).fold(Ok(()), Result::and)
}
impl Watched for Event {
    fn watch() -> &'static Watch<Self> {
        static WATCH: Watch<Event> = Watch::new();
        &WATCH
    }
    fn check_fork() -> Result<()> {
        platform::check_fork()
    }
    fn is_over(&self) -> bool {
        self.status().is_ok_and(Status::is_final)
    }
}

impl EventApi for OpenCl {
    fn event_get_info(
        event: Borrowed<'_, Event>,
        name: ur_event_info_t,
        answer: &mut Answer<'_>,
    ) -> Result<()> {
        use ur_event_info_t as I;
        match name {
            I::COMMAND_QUEUE => match &event.kind {
                Kind::Command(Some(queue), ..) => answer.handle(queue),
                _ => answer.value(&0_usize), // a null handle
            },
            I::CONTEXT => answer.handle(&event.context),
            I::COMMAND_TYPE => answer.value(&match &event.kind {
                Kind::Command(_, command, _) => command.0,
                Kind::Again(..) => ur_command_t::EVENTS_WAIT_WITH_BARRIER.0,
            }),
            I::COMMAND_EXECUTION_STATUS => answer.value(&match event.status()? {
                Status::Submitted => ur_event_status_t::SUBMITTED.0,
                Status::Running => ur_event_status_t::RUNNING.0,
                Status::Complete => ur_event_status_t::COMPLETE.0,
                Status::Failed => ur_event_status_t::ERROR.0,
            }),
            I::REFERENCE_COUNT => answer.value(&event.api_refs()),
            _ => {
                let why = format!("an event of OpenCL has no answer to {name:?}");
                Err(Error::new(ErrorCode::UnsupportedEnumeration, why))
            }
        }
    }
    fn check_event_get_profiling_info(event: Borrowed<'_, Event>) -> Result<()> {
        event.end().map_or(Profile::Off, |end| end.profile).check()
    }
    fn event_get_profiling_info(
        event: Borrowed<'_, Event>,
        name: ur_profiling_info_t,
        answer: &mut Answer<'_>,
    ) -> Result<()> {
        let end = event.end().ok_or_else(profiling::not_yet)?;
        let span = || match end.status() {
            Status::Complete => {
                let (began, ended) = native::span(&end.event)?;
                // A timestamp and a signal are one moment.
                Ok(Some((if end.profile == Profile::Phases { began } else { ended }, ended)))
            }
            _ => Ok(None),
        };
        answer.value(&end.profile.time(name, end.submitted, span)?)
    }
    fn event_wait(events: &[Owned<Event>]) -> Result<()> {
        platform::check_fork()?;
        let mut all = vec![];
        for event in events {
            all.extend(event.capture()?); // all before the first wait
        }
        wait_for(&all)
    }
    fn event_set_callback(
        event: Borrowed<'_, Event>,
        status: ur_execution_info_t,
        callback: EventCallback,
    ) -> Result<()> {
        call_when_over(event.own()?, status, callback)
    }
    fn event_get_native_handle(event: Borrowed<'_, Event>) -> Result<ur_native_handle_t> {
        let raw = event.end().map(|end| end.event.raw());
        raw.map(|raw| raw.addr() as ur_native_handle_t).ok_or_else(|| {
            let why =
                "an event that nothing has signalled, or that processes share, is none of OpenCL's";
            Error::new(ErrorCode::UnsupportedFeature, why)
        })
    }
    fn event_create_with_native_handle(
        native: ur_native_handle_t,
        context: Borrowed<'_, Context>,
        properties: Option<&ur_event_native_properties_t>,
    ) -> Result<Owned<Event>> {
        use super::{cl::CL_EVENT_CONTEXT, native::own::Tells};
        platform::check_fork()?;
        let of = |event| {
            let (context, profile) = (Arc::clone(context.driver()), Profile::Off);
            let behind = vec![];
            let end = Arc::new(End { event, context, profile, submitted: 0, behind });
            Kind::Command(None, ur_command_t::EVENTS_WAIT, end)
        };
        let Some(raw) = RawEvent::from_addr(native) else {
            // No event is one that is over.
            let over = native::of_user(context.raw())?;
            native::settle(&over, true);
            return Ok(Owned::new(Event { context: context.own()?, kind: of(over) }));
        };
        if raw.number(CL_EVENT_CONTEXT)? as usize != context.raw().addr() {
            let why = "the native event is of another context";
            return Err(Error::new(ErrorCode::InvalidContext, why));
        }
        let is_owned = properties.is_some_and(|one| one.isNativeHandleOwned);
        let kind = of(Own::adopted(raw, is_owned)?);
        Ok(Owned::new(Event { context: context.own()?, kind }))
    }
}
impl EventExpApi for OpenCl {
    fn event_create_exp(
        context: Borrowed<'_, Context>,
        device: Borrowed<'_, Device>,
        desc: &ur_exp_event_desc_t,
    ) -> Result<Owned<Event>> {
        use ur_exp_event_flags_t as F;
        platform::check_fork()?;
        context.check(device)?;
        if desc.flags.contains(F::ENABLE_PROFILING | F::IPC_EXP) {
            let why = "an event that processes share has no times: ask for one of the two";
            return Err(Error::new(ErrorCode::InvalidValue, why));
        }
        let context = context.own()?;
        if desc.flags.contains(F::IPC_EXP) {
            let made = Origin::Made(next_object(Backend::OpenCl));
            return Ok(Event::shared(context, arena::slot(Access::SameUser)?, made));
        }
        let is_timed = desc.flags.contains(F::ENABLE_PROFILING);
        let signal = Signal::Local(Mutex::default(), is_timed);
        let kind = Kind::Again(signal, Origin::OpenedHere);
        Ok(Owned::new(Event { context, kind }))
    }
}
