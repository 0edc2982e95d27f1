//! Events: the end of one command, or what commands signal again and again, in this process or in several.
use super::{
    Example,
    device::{Context, Device, unknown},
    queue::Queue,
};
use std::{
    sync::{Arc, Condvar, Mutex, OnceLock},
    time::Instant,
};
use ur_adapter::{
    api::{EventApi, EventExpApi},
    callback::EventCallback,
    error::{Error, ErrorCode, Reason, Result},
    info::Answer,
    object::{Borrowed, Owned},
};
use ur_core::{
    memory::objects::next_object,
    over_driver::watch::{Watch, Watched, call_when_over},
    profiling::{self, Profile},
};
use ur_hal::Status;
use ur_ipc::{
    Access, Remote,
    arena::{self, Captured, Debt, Progress, Slot},
};
use ur_lock::{locked, unpoisoned};
use ur_sys::*;

/// The time on the device's clock, in nanoseconds.
pub fn now() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_nanos() as u64 + 1
}

/// The end of a command.
#[derive(Debug)]
pub struct End {
    profile: Profile,
    submitted: u64,
    state: Mutex<(Status, u64, u64)>,
    moved: Condvar,
}
impl End {
    pub fn new(profile: Profile) -> Arc<Self> {
        let state = Mutex::new((Status::Submitted, 0, 0));
        Arc::new(Self { profile, submitted: now(), state, moved: Condvar::new() })
    }
    /// Of what was never signalled: it counts as complete.
    fn never() -> Arc<Self> {
        let end = Self::new(Profile::Off);
        end.settle(true);
        end
    }
    pub fn begin(&self) {
        let mut state = locked(&self.state);
        (state.0, state.1) = (Status::Running, now());
    }
    pub fn settle(&self, is_good: bool) {
        let mut state = locked(&self.state);
        (state.0, state.2) = (if is_good { Status::Complete } else { Status::Failed }, now());
        self.moved.notify_all();
    }
    fn status(&self) -> Status {
        locked(&self.state).0
    }
}
/// Something to wait for, as it stood when the waiter was submitted.
#[derive(Clone, Debug)]
pub enum Pending {
    Here(Arc<End>),
    /// A signal that a process owes, this one or another.
    Shared(Debt),
}
impl Pending {
    /// Sleeps until it is over; whether it went well.
    pub fn wait(&self) -> bool {
        match self {
            Self::Here(end) => {
                let mut state = locked(&end.state);
                while !state.0.is_final() {
                    state = unpoisoned(end.moved.wait(state));
                }
                state.0 == Status::Complete
            }
            Self::Shared(debt) => debt.wait(None) == Progress::Complete,
        }
    }
    /// Whether it is over, well or not.
    pub fn is_over(&self) -> bool {
        self.status().is_final()
    }
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
    /// What C hears if it has failed.
    fn failure(&self) -> Error {
        let error = failure();
        if matches!(self, Self::Shared(_)) { error.because(Reason::ExporterGone) } else { error }
    }
}
/// What C hears of a command that has failed.
pub fn failure() -> Error {
    Error::new(ErrorCode::InEventListExecStatus, "what a command waits for has failed")
}
/// What can be signalled again.
#[derive(Debug)]
pub enum Signal {
    /// The end of the command that signalled it last.
    Local(Mutex<Arc<End>>),
    /// A word that processes share.
    Shared(Slot),
}
#[derive(Debug)]
pub struct Event {
    context: Owned<Context>,
    kind: Kind,
}
#[derive(Debug)]
enum Kind {
    Command(Owned<Queue>, ur_command_t, Arc<End>),
    Again(Signal, Origin),
}
/// Where an event comes from that is signalled again and again.
#[derive(Debug)]
pub enum Origin {
    /// Made here under this number.
    Made(u64),
    /// Opened here, where it was made as well.
    OpenedHere,
    /// Another process's, which lends it as long as this lives.
    Opened(Remote<Slot>),
}
impl Drop for Event {
    fn drop(&mut self) {
        if let Kind::Again(Signal::Shared(_), Origin::Made(object)) = &self.kind {
            super::share::forget(*object);
        }
    }
}
impl Event {
    pub fn of(queue: Owned<Queue>, command: ur_command_t, end: Arc<End>) -> Owned<Self> {
        let context = queue.place().0.clone();
        Owned::new(Self { context, kind: Kind::Command(queue, command, end) })
    }
    pub fn shared(context: Owned<Context>, slot: Slot, origin: Origin) -> Owned<Self> {
        Owned::new(Self { context, kind: Kind::Again(Signal::Shared(slot), origin) })
    }
    /// The word that processes share, and where it is from.
    pub fn slot(&self) -> Option<(&Slot, &Origin)> {
        match &self.kind {
            Kind::Again(Signal::Shared(slot), origin) => Some((slot, origin)),
            _ => None,
        }
    }
    /// # Errors
    /// `INVALID_EVENT` for one that belongs to one command.
    pub fn signal(&self) -> Result<&Signal> {
        match &self.kind {
            Kind::Again(signal, _) => Ok(signal),
            Kind::Command(..) => {
                let why = "the event is one command's: make one with urEventCreateExp";
                Err(Error::new(ErrorCode::InvalidEvent, why))
            }
        }
    }
    /// What there is to wait for now; `None` if nothing is.
    pub fn capture(&self) -> Result<Option<Pending>> {
        Ok(match &self.kind {
            Kind::Command(_, _, end) => Some(Pending::Here(Arc::clone(end))),
            Kind::Again(Signal::Local(end), _) => Some(Pending::Here(Arc::clone(&locked(end)))),
            Kind::Again(Signal::Shared(slot), _) => match slot.capture() {
                Ok(Captured::Complete) => None,
                Ok(Captured::Debt(debt)) => Some(Pending::Shared(debt)),
                Err(error) => return Err(Error::from(error).with_code(ErrorCode::InvalidEvent)),
            },
        })
    }
    /// The command that signalled it last, as far as that is of this process.
    fn end(&self) -> Option<Arc<End>> {
        match &self.kind {
            Kind::Command(_, _, end) => Some(Arc::clone(end)),
            Kind::Again(Signal::Local(end), _) => Some(Arc::clone(&locked(end))),
            Kind::Again(Signal::Shared(_), _) => None,
        }
    }
    fn status(&self) -> Result<Status> {
        Ok(self.capture()?.map_or(Status::Complete, |one| one.status()))
    }
}
/// What the events of a wait list stand for now.
///
/// # Errors
/// `IN_EVENT_LIST_EXEC_STATUS` if one has failed; `INVALID_EVENT_WAIT_LIST` for one whose shared state is gone.
pub fn capture(events: &[Borrowed<'_, Event>]) -> Result<Vec<Pending>> {
    let mut all = vec![];
    for event in events {
        let pending = event.capture().map_err(|e| e.with_code(ErrorCode::InvalidEventWaitList))?;
        match pending.as_ref().map(Pending::status) {
            None | Some(Status::Complete) => {}
            Some(Status::Failed) => return Err(pending.expect("it has a status").failure()),
            Some(_) => all.extend(pending),
        }
    }
    Ok(all)
}
/// Waits for all of them, also after one has failed.
pub fn wait_for(all: &[Pending]) -> Result<()> {
    let wait = |one: &Pending| if one.wait() { Ok(()) } else { Err(one.failure()) };
    all.iter().map(wait).fold(Ok(()), Result::and)
}
impl Watched for Event {
    fn watch() -> &'static Watch<Self> {
        static WATCH: Watch<Event> = Watch::new();
        &WATCH
    }
    fn check_fork() -> Result<()> {
        Ok(())
    }
    fn is_over(&self) -> bool {
        self.status().is_ok_and(Status::is_final)
    }
}

impl EventApi for Example {
    fn event_get_info(
        event: Borrowed<'_, Event>,
        name: ur_event_info_t,
        answer: &mut Answer<'_>,
    ) -> Result<()> {
        use ur_event_info_t as I;
        match name {
            I::COMMAND_QUEUE => match &event.kind {
                Kind::Command(queue, ..) => answer.handle(queue),
                Kind::Again(..) => answer.value(&0usize), // a null handle
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
            _ => Err(unknown(name)),
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
        let (status, began, ended) = *locked(&end.state);
        // A timestamp and a signal are one moment.
        let began = if end.profile == Profile::Phases { began } else { ended };
        let span = (status == Status::Complete).then_some((began, ended));
        answer.value(&end.profile.time(name, end.submitted, || Ok(span))?)
    }
    fn event_wait(events: &[Owned<Event>]) -> Result<()> {
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
}
impl EventExpApi for Example {
    fn event_create_exp(
        context: Borrowed<'_, Context>,
        device: Borrowed<'_, Device>,
        desc: &ur_exp_event_desc_t,
    ) -> Result<Owned<Event>> {
        use ur_exp_event_flags_t as F;
        context.check(device)?;
        if desc.flags.contains(F::ENABLE_PROFILING | F::IPC_EXP) {
            let why = "an event that processes share has no times: ask for one of the two";
            return Err(Error::new(ErrorCode::InvalidValue, why));
        }
        if desc.flags.contains(F::ENABLE_PROFILING) {
            let why = "the device notes times of commands alone";
            return Err(Error::new(ErrorCode::UnsupportedFeature, why));
        }
        let context = context.own()?;
        if desc.flags.contains(F::IPC_EXP) {
            let object = next_object(super::BACKEND);
            return Ok(Event::shared(
                context,
                arena::slot(Access::SameUser)?,
                Origin::Made(object),
            ));
        }
        let kind = Kind::Again(Signal::Local(Mutex::new(End::never())), Origin::OpenedHere);
        Ok(Owned::new(Event { context, kind }))
    }
}
