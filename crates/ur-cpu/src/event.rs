//! Events as C knows them: a command's, a reusable one of this process, or one that processes
//! share. What they stand on is the engine's and `ur_ipc::arena`'s.
use super::{
    Context, Cpu, Device, Queue,
    capture::{self, Score},
    engine::{
        self, Completion, Dependencies, Dependency, Reusable, Signal, Status, Submission, Work,
        failed,
    },
    host::uuid,
};
use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering::*},
    },
};
use ur_adapter::{
    api::{EventApi, EventExpApi},
    callback::EventCallback,
    error::{Error, ErrorCode, Result},
    info::Answer,
    object::{Backend, Borrowed, Owned},
    per_process::PerProcess,
    share::{EventFacts, SharesEvents},
};
use ur_core::over_driver::own_handle;
use ur_core::{
    memory::objects::next_object,
    profiling::{self, Profile},
};
use ur_ipc::{
    Access, ArrivedPayload, ENVELOPE_LEN, Importer, Kind, Offer, Opened, Payload, Remote,
    arena::{self, Captured, Slot},
};
use ur_sys::{
    ur_command_t, ur_event_info_t, ur_event_native_properties_t, ur_event_status_t,
    ur_execution_info_t, ur_exp_event_desc_t, ur_exp_event_flags_t, ur_native_handle_t,
    ur_profiling_info_t,
};

/// What `ur_event_handle_t` points at.
#[derive(Debug)]
pub struct Event {
    context: Owned<Context>,
    queue: Option<Owned<Queue>>,
    command: ur_command_t,
    state: State,
}

#[derive(Debug)]
enum State {
    /// Of one command.
    Command(Arc<Completion>),
    /// Of a command in a command buffer: signalled by each execution.
    Recorded(Reusable),
    /// Of a command that a queue recorded into a graph, under this number.
    Captured(Arc<Score>, usize),
    /// Signalled again and again, in this process.
    Reusable(Reusable),
    /// Signalled again and again, in any process that has it.
    Shared(Shared),
}
#[derive(Debug)]
struct Shared {
    slot: Slot,
    origin: Origin,
}
/// Where a shared event comes from.
#[derive(Debug)]
enum Origin {
    /// Made here, under this number; whether it was ever offered to others.
    Made { object: u64, offered: AtomicBool },
    /// Made here, and opened here too.
    OpenedHere,
    /// Opened from another process, which lends it for as long as this lives.
    Opened { _loan: Remote<Slot> },
}

/// The shared events of this process that were offered, by their numbers.
type Offered = Mutex<HashMap<u64, Slot>>;
static OFFERED: PerProcess<Offered> = PerProcess::new();
fn offered() -> MutexGuard<'static, HashMap<u64, Slot>> {
    OFFERED.get().lock().unwrap_or_else(PoisonError::into_inner)
}
/// Events of other backends too: they are all words in shared memory.
static IMPORTER: Importer<Slot> = Importer::of_any_backend(Kind::Event, Backend::Cpu as u16);

impl Drop for Shared {
    fn drop(&mut self) {
        if let Origin::Made { object, offered: was_offered } = &mut self.origin
            && *was_offered.get_mut()
        {
            ur_adapter::share::freed(*object, Kind::Event);
            let slot = offered().remove(object);
            drop(slot); // not under the lock
        }
    }
}

impl Event {
    /// Of a command of `queue`.
    pub(super) fn of(
        queue: Owned<Queue>,
        command: ur_command_t,
        completion: Arc<Completion>,
    ) -> Owned<Self> {
        let context = queue.context().clone();
        Owned::new(Self { context, queue: Some(queue), command, state: State::Command(completion) })
    }
    /// Of a command in a command buffer; `profiled`: its executions note times.
    pub(super) fn of_recorded(
        context: Owned<Context>,
        command: ur_command_t,
        profiled: bool,
    ) -> Owned<Self> {
        let profile = if profiled { Profile::Phases } else { Profile::Off };
        let state = State::Recorded(Reusable::new(profile));
        Owned::new(Self { context, queue: None, command, state })
    }
    /// Of a command that `queue` recorded, at `place` in `score`.
    pub(super) fn of_capture(
        queue: Owned<Queue>,
        command: ur_command_t,
        score: Arc<Score>,
        place: usize,
    ) -> Owned<Self> {
        let context = queue.context().clone();
        let state = State::Captured(score, place);
        Owned::new(Self { context, queue: Some(queue), command, state })
    }
    /// The recorded command that it stands for, if it does.
    pub(super) fn captured(&self) -> Option<(&Arc<Score>, usize)> {
        match &self.state {
            State::Captured(score, place) => Some((score, *place)),
            _ => None,
        }
    }
    fn replayed(&self) -> Option<&Reusable> {
        match &self.state {
            State::Recorded(event) | State::Reusable(event) => Some(event),
            _ => None,
        }
    }
    /// Whether executions of recorded commands can signal it.
    pub(super) fn is_replayed(&self) -> bool {
        self.replayed().is_some()
    }
    /// What the next execution of the command that signals it will tell how far it has come.
    pub(super) fn next_replay(&self) -> Arc<Completion> {
        Completion::submitted(self.replayed().map_or(Profile::Off, Reusable::profile))
    }
    /// That execution is submitted.
    pub(super) fn replay(&self, completion: &Arc<Completion>) {
        if let Some(event) = self.replayed() {
            event.replace(completion);
        }
    }
    fn without_queue(context: Owned<Context>, state: State) -> Owned<Self> {
        // The one kind of command that ever signals it, if any does.
        let command = ur_command_t::EVENTS_WAIT_WITH_BARRIER;
        Owned::new(Self { context, queue: None, command, state })
    }
    /// What a command submitted now, or a wait that begins now, has to wait for: the latest
    /// signal so far. `None` if that is complete.
    ///
    /// # Errors
    /// `INVALID_EVENT` if the shared state is gone.
    pub(super) fn capture(&self) -> Result<Option<Dependency>> {
        Ok(match &self.state {
            State::Command(completion) => Some(Dependency::Local(Arc::clone(completion))),
            State::Recorded(event) | State::Reusable(event) => {
                Some(Dependency::Local(event.current()))
            }
            State::Captured(..) => return Err(capture::internal()),
            State::Shared(shared) => match shared.slot.capture().map_err(stale)? {
                Captured::Complete => None,
                Captured::Debt(debt) => Some(Dependency::Shared(debt)),
            },
        })
    }
    /// How it is signalled by a barrier.
    ///
    /// # Errors
    /// `INVALID_EVENT` for an event that belongs to one command.
    pub(super) fn signal(&self) -> Result<Signal<'_>> {
        match &self.state {
            State::Captured(..) => Err(capture::internal()),
            State::Command(_) | State::Recorded(_) => Err(Error::new(
                ErrorCode::InvalidEvent,
                "the event belongs to one command and cannot be signalled again: make one with \
                 urEventCreateExp",
            )),
            State::Reusable(event) => Ok(Signal::Local(event)),
            State::Shared(shared) => Ok(Signal::Shared(&shared.slot)),
        }
    }
    fn status(&self) -> Result<Status> {
        Ok(self.capture()?.map_or(Status::Complete, |latest| latest.status()))
    }
    /// The command of its latest signal, as far as that is of this process and has run or will.
    fn completion(&self) -> Option<Arc<Completion>> {
        match &self.state {
            State::Command(completion) => Some(Arc::clone(completion)),
            State::Recorded(event) | State::Reusable(event) => Some(event.current()),
            State::Shared(_) | State::Captured(..) => None,
        }
    }
    /// Which times it was made for, or has now.
    fn profile(&self) -> Profile {
        let own = self.replayed().map_or(Profile::Off, Reusable::profile);
        match own {
            Profile::Off => self.completion().map_or(own, |completion| completion.profile()),
            own => own,
        }
    }
}
fn stale(error: ur_ipc::Error) -> Error {
    let error = Error::from(error);
    match error.code() {
        ErrorCode::InvalidValue => error.with_code(ErrorCode::InvalidEvent),
        _ => error,
    }
}

/// What C calls it.
fn for_c(status: Status) -> ur_event_status_t {
    match status {
        Status::Submitted => ur_event_status_t::SUBMITTED,
        Status::Running => ur_event_status_t::RUNNING,
        Status::Complete => ur_event_status_t::COMPLETE,
        Status::Failed => ur_event_status_t::ERROR,
    }
}

impl EventApi for Cpu {
    fn event_get_info(
        event: Borrowed<'_, Event>,
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
            ur_event_info_t::COMMAND_EXECUTION_STATUS => answer.value(&for_c(event.status()?).0),
            ur_event_info_t::REFERENCE_COUNT => answer.value(&event.api_refs()),
            _ => Err(Error::new(
                ErrorCode::UnsupportedEnumeration,
                format!("an event of the CPU has no answer to {name:?}"),
            )),
        }
    }
    fn event_get_native_handle(event: Borrowed<'_, Event>) -> Result<ur_native_handle_t> {
        own_handle::of(&event)
    }
    fn event_create_with_native_handle(
        native: ur_native_handle_t,
        context: Borrowed<'_, Context>,
        _properties: Option<&ur_event_native_properties_t>,
    ) -> Result<Owned<Event>> {
        if native == 0 {
            // One that is complete already.
            let state = State::Command(Completion::fresh());
            return Ok(Event::without_queue(context.own()?, state));
        }
        let event: Owned<Event> = own_handle::find(native)?;
        own_handle::check_context(&event.context, &context)?;
        Ok(event)
    }
    fn check_event_get_profiling_info(event: Borrowed<'_, Event>) -> Result<()> {
        event.profile().check()
    }
    fn event_get_profiling_info(
        event: Borrowed<'_, Event>,
        name: ur_profiling_info_t,
        answer: &mut Answer<'_>,
    ) -> Result<()> {
        let timed = event.completion().filter(|completion| completion.profile().is_on());
        let completion = timed.ok_or_else(profiling::not_yet)?;
        let span = || completion.times().map(|times| (times.started, times.ended));
        let (profile, submitted) = (completion.profile(), completion.submitted_at());
        answer.value(&profile.time(name, submitted, || Ok(span()))?)
    }
    fn event_wait(events: &[Owned<Event>]) -> Result<()> {
        if let [event] = events {
            return event.capture()?.map_or(Ok(()), |one| one.wait()).map_err(|why| failed(&why));
        }
        // All are captured before the first wait: the wait is for what was signalled when it began.
        let mut pending = vec![];
        for event in events {
            pending.extend(event.capture()?);
        }
        let outcomes = pending.iter().map(Dependency::wait);
        // All have ended when this returns, failures or not.
        outcomes.fold(Ok(()), Result::and).map_err(|why| failed(&why))
    }
    fn event_set_callback(
        event: Borrowed<'_, Event>,
        status: ur_execution_info_t,
        callback: EventCallback,
    ) -> Result<()> {
        let wanted = match status {
            ur_execution_info_t::SUBMITTED => Status::Submitted,
            ur_execution_info_t::RUNNING => Status::Running,
            ur_execution_info_t::COMPLETE => Status::Complete,
            _ => return Err(ErrorCode::UnsupportedEnumeration.into()),
        };
        let kept = event.own()?; // C may release it before it is called, or in the call
        let call = move |_: Status| callback.call(&kept, status);
        match event.capture()? {
            None => call(Status::Complete),
            Some(Dependency::Local(completion)) => completion.call_at(wanted, call),
            Some(_) if wanted == Status::Submitted => call(Status::Submitted),
            Some(shared) => follow(&event, shared)?.call_at(Status::Complete, call),
        }
        Ok(())
    }
}
/// A command of no queue of C's that ends when `shared` does, well or not.
fn follow(event: &Event, shared: Dependency) -> Result<Arc<Completion>> {
    let mut dependencies = Dependencies::default();
    dependencies.add(shared)?;
    let queue = engine::Queue::new(event.context.as_handle().addr(), true, false);
    let follower = Submission { want: true, ..Submission::new(Work::Barrier) };
    Ok(queue.submit(dependencies, follower)?.expect("a completion was wanted"))
}

impl EventExpApi for Cpu {
    fn event_create_exp(
        context: Borrowed<'_, Context>,
        device: Borrowed<'_, Device>,
        desc: &ur_exp_event_desc_t,
    ) -> Result<Owned<Event>> {
        use ur_exp_event_flags_t as F;
        context.check(device)?;
        if desc.flags.contains(F::IPC_EXP | F::ENABLE_PROFILING) {
            return Err(Error::new(
                ErrorCode::InvalidValue,
                "an event that processes share has no times: ask for IPC_EXP or ENABLE_PROFILING, \
                 not both",
            ));
        }
        let state = if desc.flags.contains(F::IPC_EXP) {
            let slot = arena::slot(Access::SameUser)?;
            let origin =
                Origin::Made { object: next_object(Backend::Cpu), offered: AtomicBool::new(false) };
            State::Shared(Shared { slot, origin })
        } else if desc.flags.contains(F::ENABLE_PROFILING) {
            State::Reusable(Reusable::new(Profile::Instant))
        } else {
            State::Reusable(Reusable::new(Profile::Off))
        };
        Ok(Event::without_queue(context.own()?, state))
    }
}

impl SharesEvents for Cpu {
    fn shares_events(_context: &Context) -> bool {
        true
    }
    fn event_facts(event: &Event) -> EventFacts {
        let (is_shareable, is_opened) = match &event.state {
            State::Shared(shared) => (true, !matches!(shared.origin, Origin::Made { .. })),
            _ => (false, false),
        };
        let has_profiling = match &event.state {
            State::Reusable(event) => event.profile().is_on(),
            _ => false,
        };
        EventFacts { is_supported: true, is_shareable, is_opened, has_profiling }
    }
    fn offer_event(event: Borrowed<'_, Event>) -> Result<Offer> {
        let State::Shared(Shared { slot, origin: Origin::Made { object, offered: was_offered } }) =
            &event.state
        else {
            return Err(Error::new(
                ErrorCode::InvalidEvent,
                "only an event made here with IPC_EXP can be offered to others",
            ));
        };
        was_offered.store(true, Relaxed); // read again by the last owner alone
        offered().insert(*object, slot.clone());
        Ok(Offer {
            kind: Kind::Event,
            backend: Backend::Cpu as u16,
            device: uuid()?,
            object: *object,
            offset: 0,
            length: 0,
            size: 0,
            payload: Payload::Event(slot.clone()),
            access: Access::SameUser,
        })
    }
    fn open_event(
        context: Borrowed<'_, Context>,
        ticket: &[u8; ENVELOPE_LEN],
    ) -> Result<Owned<Event>> {
        let import = |arrived: ur_ipc::Arrived, (): &()| match arrived.payload {
            ArrivedPayload::Event(slot) => Ok(slot),
            _ => Err(Error::new(
                ErrorCode::InvalidValue,
                "the exporter sent something that is no event: is it of the same version?",
            )),
        };
        let (opened, ()) = IMPORTER.open(ticket, |_| Ok(()), import)?;
        let shared = match opened {
            Opened::Local { object, .. } => {
                let slot = offered().get(&object).cloned();
                let slot = slot.ok_or_else(|| {
                    Error::new(
                        ErrorCode::InvalidValue,
                        "the event of this ticket has been released: its tickets end with it",
                    )
                })?;
                Shared { slot, origin: Origin::OpenedHere }
            }
            Opened::Remote(loan) => {
                Shared { slot: Slot::clone(&loan), origin: Origin::Opened { _loan: loan } }
            }
        };
        Ok(Event::without_queue(context.own()?, State::Shared(shared)))
    }
}

#[cfg(test)]
mod tests;
