//! Events as C knows them: of one command, C's own of the driver's, or signalled again and again.
//! What marks the end of a command is `signal.rs`'s; what processes share is `shared_event.rs`'s.
pub(super) use super::signal::ContextEvents;
use super::{
    Context, Device, LevelZero, Queue,
    driver::RawEvent,
    fate::Fate,
    native::event::{AdoptedEvent, EventKind},
    p2p,
    reusable::Pending,
    shared_event::Shared,
    signal::{EVER, Signal},
    submission::{Waits, wait_for_owed},
    watch,
};
use std::{
    ptr,
    sync::{Arc, Mutex, PoisonError},
};
use ur_adapter::{
    api::{EventApi, EventExpApi},
    callback::EventCallback,
    error::{Error, ErrorCode, Result},
    info::Answer,
    object::{Borrowed, Owned},
};
use ur_core::profiling::{self, Profile};
use ur_sys::{
    ur_command_t, ur_event_info_t, ur_event_native_properties_t, ur_event_status_t,
    ur_execution_info_t, ur_exp_event_desc_t, ur_exp_event_flags_t, ur_native_handle_t,
    ur_profiling_info_t,
};

/// What `ur_event_handle_t` points at.
#[derive(Debug)]
pub struct Event {
    /// `None`: the queue's.
    context: Option<Owned<Context>>,
    command: ur_command_t,
    state: State,
}
#[derive(Debug)]
enum State {
    /// Of one command.
    Command(Signal),
    /// The driver's, made by somebody else.
    Native(EventKind),
    /// Complete from the beginning, without an event of the driver's.
    Complete,
    /// Signalled again and again, with the times of each signal, or where the driver has no
    /// counter-based events: the latest signal.
    Latest {
        signal: Mutex<Option<Arc<Signal>>>,
        device: Owned<Device>,
        profiled: bool,
        /// Whether a recorded command signals it, and nobody else may.
        is_recorded: bool,
    },
    /// Signalled again and again, perhaps in any process that has it.
    Shared(Shared),
}

impl Event {
    /// Of a command, whose signal keeps its queue.
    #[inline]
    pub(super) fn of(command: ur_command_t, signal: Signal) -> Owned<Self> {
        Owned::new(Self { context: None, command, state: State::Command(signal) })
    }
    /// A thread of ours carries its command out: nobody else has it yet.
    pub(super) fn depend_on(&self, fate: &Arc<Fate>) {
        if let State::Command(signal) = &self.state {
            signal.depend_on(fate);
        }
    }
    /// Of a command that is recorded; each execution signals it.
    pub(super) fn of_recorded(
        context: Owned<Context>,
        device: Owned<Device>,
        command: ur_command_t,
        profiled: bool,
    ) -> Owned<Self> {
        let state = State::Latest { signal: Mutex::default(), device, profiled, is_recorded: true };
        Owned::new(Self { context: Some(context), command, state })
    }
    fn without_queue(context: Owned<Context>, state: State) -> Owned<Self> {
        let command = ur_command_t::EVENTS_WAIT_WITH_BARRIER;
        Owned::new(Self { context: Some(context), command, state })
    }
    /// One that is signalled again and again.
    pub(super) fn shared(context: Owned<Context>, shared: Shared) -> Owned<Self> {
        Self::without_queue(context, State::Shared(shared))
    }
    /// The counter-based part, if it is one that is signalled again and again.
    pub(super) fn as_shared(&self) -> Option<&Shared> {
        match &self.state {
            State::Shared(shared) => Some(shared),
            _ => None,
        }
    }
    /// Whether it notes the times of its signals, being reusable.
    pub(super) fn is_profiled_reusable(&self) -> bool {
        matches!(self.state, State::Latest { profiled: true, is_recorded: false, .. })
    }
    /// The context it was made in.
    pub(super) fn context(&self) -> &Owned<Context> {
        let queue = || self.queue().map(|queue| queue.context());
        let context = self.context.as_ref().or_else(queue);
        context.expect("an event without a queue is made with its context")
    }
    /// The queue of its command.
    fn queue(&self) -> Option<&Owned<Queue>> {
        match &self.state {
            State::Command(signal) => signal.queue(),
            _ => None,
        }
    }
    fn latest(&self) -> Option<Arc<Signal>> {
        match &self.state {
            State::Latest { signal, .. } => {
                signal.lock().unwrap_or_else(PoisonError::into_inner).clone()
            }
            _ => None,
        }
    }
    /// Which times it was made for, or has now.
    fn profile(&self) -> Profile {
        let of = |signal: &Signal| signal.times().map_or(Profile::Off, |times| times.profile);
        match &self.state {
            State::Command(signal) => of(signal),
            State::Latest { profiled: true, .. } => Profile::Instant,
            State::Latest { .. } => self.latest().map_or(Profile::Off, |signal| of(&signal)),
            State::Shared(shared) => shared.profile(),
            State::Native(_) | State::Complete => Profile::Off,
        }
    }
    /// Looks at its latest signal, if there is one of ours.
    fn with_signal<R>(&self, look: impl FnOnce(&Signal) -> R) -> Option<R> {
        match &self.state {
            State::Command(signal) => Some(look(signal)),
            _ => self.latest().map(|signal| look(&signal)),
        }
    }
    /// Sees to it that a command of `queue` may wait for it: it must be under way, or done where no list can wait for it.
    ///
    /// # Errors
    /// The driver's own.
    pub(super) fn send_for(&self, queue: &Queue) -> Result<()> {
        let is_own = |signal: &Signal| ptr::eq(signal.work().as_ref(), queue.work().as_ref());
        let send = |signal: &Signal| match is_own(signal) {
            true if queue.is_in_order() => Ok(()), // it is behind it by being there
            true => signal.mark(),
            // A list cannot wait for what lies in memory that its device does not reach.
            false if !p2p::can_access(queue.device(), &signal.work().device)? => signal.wait(),
            false => signal.mark(),
        };
        if let State::Shared(shared) = &self.state {
            return match shared.core().owed() {
                Some(Pending::Own(signal)) => send(&signal),
                _ => Ok(()),
            };
        }
        self.with_signal(send).unwrap_or(Ok(()))
    }
    /// Adds its latest signal so far to what a command of `queue` waits for; `keep`: what must live
    /// until then.
    ///
    /// # Errors
    /// `IN_EVENT_LIST_EXEC_STATUS` if that has failed; the driver's own.
    pub(super) fn order(
        &self,
        queue: &Queue,
        waits: &mut Waits,
        keep: impl FnOnce(&EventKind),
    ) -> Result<()> {
        match &self.state {
            State::Native(event) => {
                waits.extend([event.raw()]);
                Ok(())
            }
            State::Complete => Ok(()),
            State::Shared(shared) => match shared.core().owed() {
                None => Ok(()),
                Some(Pending::Own(signal)) => order_behind(&signal, queue, waits, keep),
                Some(Pending::Other(owed)) => wait_for_owed(owed, waits),
            },
            _ => self
                .with_signal(|signal| order_behind(signal, queue, waits, keep))
                .unwrap_or(Ok(())),
        }
    }
    /// Whether a barrier of C's may signal it, and whether it wants its times.
    ///
    /// # Errors
    /// `INVALID_EVENT` for an event that belongs to one command.
    pub(super) fn check_signal(&self) -> Result<bool> {
        match &self.state {
            State::Command(_)
            | State::Native(_)
            | State::Complete
            | State::Latest { is_recorded: true, .. } => Err(Error::new(
                ErrorCode::InvalidEvent,
                "the event belongs to one command and cannot be signalled again: make one with \
                 urEventCreateExp",
            )),
            State::Latest { profiled, .. } => Ok(*profiled),
            State::Shared(_) => Ok(false),
        }
    }
    /// The latest signal is `fresh` from now on.
    pub(super) fn replace(&self, fresh: Arc<Signal>) {
        if let State::Latest { signal, .. } = &self.state {
            let old = signal.lock().unwrap_or_else(PoisonError::into_inner).replace(fresh);
            drop(old);
        }
    }
    /// Waits for its command.
    ///
    /// # Errors
    /// As for [`Signal::wait`].
    pub(super) fn wait_for_command(&self) -> Result<()> {
        match &self.state {
            State::Command(signal) => signal.wait(),
            _ => Ok(()),
        }
    }
    /// Whether it is the end of a command that is seen to be done, without waiting for anything.
    #[inline]
    pub(super) fn is_settled(&self) -> bool {
        match &self.state {
            State::Command(signal) => super::platform::check_fork().is_ok() && signal.is_settled(),
            _ => false,
        }
    }
    /// How far its latest signal is.
    ///
    /// # Errors
    /// The driver's own.
    pub(super) fn status(&self) -> Result<ur_event_status_t> {
        match &self.state {
            State::Native(event) => Ok(match event.is_complete() {
                Ok(true) => ur_event_status_t::COMPLETE,
                Ok(false) => ur_event_status_t::SUBMITTED,
                Err(_) => ur_event_status_t::ERROR,
            }),
            State::Shared(shared) => Ok(shared.status()),
            _ => Ok(self.with_signal(Signal::status).unwrap_or(ur_event_status_t::COMPLETE)),
        }
    }
    /// What has to be waited for: captured now, waited for later.
    fn capture(&self) -> Result<Wait<'_>> {
        Ok(match &self.state {
            State::Command(signal) => Wait::Command(signal),
            State::Native(event) => Wait::Native(event),
            State::Complete => Wait::Nothing,
            State::Shared(shared) => shared.capture().map_or(Wait::Nothing, Wait::Shared),
            State::Latest { .. } => self.latest().map_or(Wait::Nothing, Wait::Latest),
        })
    }
}
fn order_behind(
    signal: &Signal,
    queue: &Queue,
    waits: &mut Waits,
    keep: impl FnOnce(&EventKind),
) -> Result<()> {
    if let Some(known) = signal.known() {
        return known;
    }
    let is_own = ptr::eq(signal.work().as_ref(), queue.work().as_ref());
    if is_own && queue.work().is_in_order() {
        return Ok(());
    }
    let Some(end) = signal.kind() else { return Ok(()) }; // done, by what `send_for` saw
    waits.extend([end.raw()]);
    keep(end);
    if !is_own {
        signal.work().debts().into_iter().for_each(|debt| queue.work().owe(debt));
    }
    Ok(())
}
enum Wait<'event> {
    Nothing,
    Command(&'event Signal),
    Latest(Arc<Signal>),
    Native(&'event EventKind),
    Shared(Pending),
}
impl Wait<'_> {
    fn wait(self) -> Result<()> {
        match self {
            Self::Nothing => Ok(()),
            Self::Command(signal) => signal.wait(),
            Self::Latest(signal) => signal.wait(),
            Self::Native(event) => event.wait(EVER).map(drop),
            Self::Shared(pending) => pending.wait(),
        }
    }
}

impl EventApi for LevelZero {
    fn event_get_info(
        event: Borrowed<'_, Event>,
        name: ur_event_info_t,
        answer: &mut Answer<'_>,
    ) -> Result<()> {
        match name {
            ur_event_info_t::COMMAND_QUEUE => match event.queue() {
                Some(queue) => answer.handle(queue),
                None => answer.value(&0usize), // no queue's: a null handle
            },
            ur_event_info_t::CONTEXT => answer.handle(event.context()),
            ur_event_info_t::COMMAND_TYPE => answer.value(&event.command.0),
            ur_event_info_t::COMMAND_EXECUTION_STATUS => answer.value(&event.status()?.0),
            ur_event_info_t::REFERENCE_COUNT => answer.value(&event.api_refs()),
            _ => Err(Error::new(
                ErrorCode::UnsupportedEnumeration,
                format!("an event of Level Zero has no answer to {name:?}"),
            )),
        }
    }
    /// The driver's event: of a command, the one that marks its end.
    fn event_get_native_handle(event: Borrowed<'_, Event>) -> Result<ur_native_handle_t> {
        let raw = match &event.state {
            State::Command(signal) => signal.raw()?, // under way: C's own list may wait for it
            State::Native(event) => event.raw(),
            State::Complete => return Ok(0), // as it was made
            State::Shared(shared) => shared.core().event().raw(),
            State::Latest { .. } => {
                return Error::unsupported("urEventGetNativeHandle of such a reusable event");
            }
        };
        Ok(raw.addr() as ur_native_handle_t)
    }
    fn event_create_with_native_handle(
        native: ur_native_handle_t,
        context: Borrowed<'_, Context>,
        properties: Option<&ur_event_native_properties_t>,
    ) -> Result<Owned<Event>> {
        let owned = properties.is_some_and(|p| p.isNativeHandleOwned);
        let state = match RawEvent::from_addr(native) {
            Some(raw) => State::Native(EventKind::Adopted(AdoptedEvent::new(raw, owned))),
            None => State::Complete,
        };
        Ok(Event::without_queue(context.own()?, state))
    }
    fn check_event_get_profiling_info(event: Borrowed<'_, Event>) -> Result<()> {
        event.profile().check()
    }
    fn event_get_profiling_info(
        event: Borrowed<'_, Event>,
        name: ur_profiling_info_t,
        answer: &mut Answer<'_>,
    ) -> Result<()> {
        let (device, times) = match (&event.state, event.queue()) {
            (State::Latest { device, .. }, _) => (device, event.latest()),
            (State::Shared(shared), _) => (shared.device(), shared.times()),
            (State::Command(signal), Some(queue)) => {
                return answer.value(&time_of(queue.device(), signal, name)?);
            }
            _ => return Err(profiling::not_yet()),
        };
        let signal = times.ok_or_else(profiling::not_yet)?;
        answer.value(&time_of(device, &signal, name)?)
    }
    fn event_wait(events: &[Owned<Event>]) -> Result<()> {
        super::platform::check_fork()?;
        if let [event] = events {
            if let State::Command(_) = &event.state {
                return event.wait_for_command();
            }
            return event.capture()?.wait(); // nothing to collect
        }
        // All are captured before the first wait: the wait is for what was signalled when it began.
        let waits = events.iter().map(|event| event.capture()).collect::<Result<Vec<_>>>()?;
        // All have ended when this returns, failures or not. The latest of a queue come first: what is
        // behind others of its list tells of them.
        waits.into_iter().rev().map(Wait::wait).fold(Ok(()), Result::and)
    }
    fn event_set_callback(
        event: Borrowed<'_, Event>,
        status: ur_execution_info_t,
        callback: EventCallback,
    ) -> Result<()> {
        let kept = event.own()?; // C may release it before it is called, or in the call
        match status {
            ur_execution_info_t::SUBMITTED => callback.call(&kept, status),
            ur_execution_info_t::RUNNING | ur_execution_info_t::COMPLETE => {
                event.with_signal(Signal::send).unwrap_or(Ok(()))?;
                watch::call_when_over(kept, status, callback)?;
            }
            _ => return Err(ErrorCode::UnsupportedEnumeration.into()),
        }
        Ok(())
    }
}
/// Nanoseconds of the device's clock.
fn time_of(device: &Device, signal: &Signal, name: ur_profiling_info_t) -> Result<u64> {
    let times = signal.times().ok_or_else(profiling::not_yet)?;
    let clock = device.clock();
    times.profile.time(name, clock.nanoseconds(times.submitted), || {
        let is_over = signal.status() == ur_event_status_t::COMPLETE;
        let Some(end) = signal.kind().filter(|_| is_over) else { return Ok(None) };
        let (began, ended) = end.ticks()?;
        let began = match (&times.start, times.profile) {
            (Some(start), _) => start.ticks()?.1,
            (None, Profile::Phases) => began,
            (None, _) => ended,
        };
        let (begin, end) = clock.span(times.submitted, began, ended);
        Ok(Some((clock.nanoseconds(begin), clock.nanoseconds(end))))
    })
}

impl EventExpApi for LevelZero {
    fn event_create_exp(
        context: Borrowed<'_, Context>,
        device: Borrowed<'_, Device>,
        desc: &ur_exp_event_desc_t,
    ) -> Result<Owned<Event>> {
        use ur_exp_event_flags_t as F;
        context.check(device)?;
        super::platform::check_fork()?;
        if desc.flags.contains(F::IPC_EXP | F::ENABLE_PROFILING) {
            return Err(Error::new(
                ErrorCode::InvalidValue,
                "an event that processes share has no times: ask for IPC_EXP or ENABLE_PROFILING, \
                 not both",
            ));
        }
        let (ipc, profiled) =
            (desc.flags.contains(F::IPC_EXP), desc.flags.contains(F::ENABLE_PROFILING));
        if !profiled && let Some(shared) = Shared::make(&context, device.own()?, ipc)? {
            return Ok(Event::shared(context.own()?, shared));
        }
        let (signal, device, is_recorded) = (Mutex::default(), device.own()?, false);
        let state = State::Latest { signal, device, profiled, is_recorded };
        Ok(Event::without_queue(context.own()?, state))
    }
}
