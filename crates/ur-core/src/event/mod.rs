//! Events. An event belongs to one command, wraps a native event of the application's, or is reusable: signalled
//! repeatedly, by this process or by every process that has opened it. `waits.rs` turns wait lists into what the driver
//! waits for, `share.rs` shares events between processes, and `entries.rs` has the entries.
mod entries;
mod share;
pub(crate) mod waits;

pub use crate::queue::Event;

use crate::{
    profiling::Profile,
    queue::{Context, HasStreams, Latest, LatestSignal, Queue, Run, Shareable, SharedPart, State},
};
use std::sync::Arc;
use ur_adapter::{
    error::{Error, ErrorCode, Reason, Result},
    object::Owned,
};
use ur_hal::{Status, Streams};
use ur_ipc::arena::{Captured as Owed, PendingSignal, Progress, Slot};
use ur_sys::ur_command_t;

/// How a barrier signals an event.
pub(crate) enum Target<'a, D: HasStreams> {
    /// The barrier's point is stored here.
    Latest(&'a LatestSignal<D>),
    Word(&'a Slot),
    Point(&'a D::Point),
}
/// What a command submitted now, or a wait that begins now, has to wait for.
pub(crate) enum Pending<'a, D: HasStreams> {
    Point(&'a D::Point),
    Latest(Arc<Latest<D>>),
    Word(PendingSignal),
    /// The latest signal of a reusable point; later signals do not change what this waits for.
    Captured(D::Point),
}

impl<D: HasStreams> Event<D> {
    /// The event of one command of a queue.
    #[inline(always)]
    pub(crate) fn of(
        queue: Owned<Queue<D>>,
        command: ur_command_t,
        point: D::Point,
        profile: Profile,
    ) -> Owned<Self> {
        let queue = Some(queue);
        Owned::made(|| Self { context: None, queue, command, profile, state: State::Point(point) })
    }
    /// The event of several commands of a queue.
    pub(crate) fn of_run(
        queue: Owned<Queue<D>>,
        command: ur_command_t,
        run: Arc<Run<D>>,
        profile: Profile,
    ) -> Owned<Self> {
        let state = State::Run(run);
        Owned::new(Self { context: None, queue: Some(queue), command, profile, state })
    }
    /// The event of a command that is recorded in a command buffer; each execution signals it
    /// ([`signalled`](Self::signalled)).
    pub fn of_recorded(
        context: Owned<Context<D>>,
        command: ur_command_t,
        is_profiled: bool,
    ) -> Owned<Self> {
        let profile = if is_profiled { Profile::Phases } else { Profile::Off };
        let state = State::Latest { signal: LatestSignal::default(), is_recorded: true };
        Owned::new(Self { context: Some(context), queue: None, command, profile, state })
    }
    /// The event of a command that a queue captured into a graph.
    pub fn of_capture(
        queue: Owned<Queue<D>>,
        command: ur_command_t,
        captured: D::Captured,
    ) -> Owned<Self> {
        let (profile, state) = (Profile::Off, State::Captured(captured));
        Owned::new(Self { context: None, queue: Some(queue), command, profile, state })
    }
    pub(crate) fn without_queue(
        context: Owned<Context<D>>,
        profile: Profile,
        state: State<D>,
    ) -> Owned<Self> {
        // The only kind of command that can signal such an event.
        let command = ur_command_t::EVENTS_WAIT_WITH_BARRIER;
        Owned::new(Self { context: Some(context), queue: None, command, profile, state })
    }
    /// The captured command that it stands for, if any.
    pub fn captured(&self) -> Option<&D::Captured> {
        match &self.state {
            State::Captured(captured) => Some(captured),
            _ => None,
        }
    }
    /// Checks that its command runs by itself, so that other commands can wait for it.
    ///
    /// # Errors
    /// `GRAPH_INTERNAL_EVENT` for the event of a captured command, which never runs by itself.
    pub(crate) fn check_runs(&self) -> Result<()> {
        self.captured().map_or(Ok(()), |_| Err(captured()))
    }
    /// Whether executions of a recorded command can signal it.
    pub fn is_replayed(&self) -> bool {
        matches!(self.state, State::Latest { .. })
    }
    /// Whether it is a reusable event over a word shared between processes or over a reusable point of the driver.
    pub fn is_shared(&self) -> bool {
        matches!(self.state, State::Shared(_))
    }
    /// Which times it was made to report.
    pub fn made_for(&self) -> Profile {
        self.profile
    }
    /// Notes the point of a recorded command that was submitted and will signal it. The process is the one that recorded,
    /// since the others may not lock the recording.
    pub fn signalled(&self, point: D::Point, profile: Profile) {
        if let State::Latest { signal, .. } = &self.state {
            let noted = signal.note(point, profile);
            debug_assert!(noted.is_ok(), "a forked child executes what its parent recorded");
        }
    }
    /// The context it was made in.
    pub fn context(&self) -> &Owned<Context<D>> {
        let queue = || self.queue.as_ref().map(|queue| queue.context());
        let context = self.context.as_ref().or_else(queue);
        context.expect("an event without a queue is made with its context")
    }
    /// What a wait that begins now must wait for; `None` if the event is complete.
    ///
    /// # Errors
    /// `INVALID_EVENT` if the shared word no longer exists; `GRAPH_INTERNAL_EVENT` for the event of a captured command;
    /// `UNINITIALIZED` in a forked child that inherited a reusable event.
    #[inline]
    pub(crate) fn pending(&self) -> Result<Option<Pending<'_, D>>> {
        Ok(match &self.state {
            State::Point(point) => Some(Pending::Point(point)),
            State::Run(run) => Some(Pending::Point(&run.ended)),
            State::Complete => None,
            State::Latest { signal, .. } => signal.get()?.map(Pending::Latest),
            State::Shared(SharedPart { what: Shareable::Word(slot), .. }) => {
                match slot.capture().map_err(stale)? {
                    Owed::Complete => None,
                    Owed::PendingSignal(debt) => Some(Pending::Word(debt)),
                }
            }
            State::Shared(SharedPart { what: Shareable::Point(point), .. }) => {
                Some(Pending::Point(&**point))
            }
            State::Captured(_) => return Err(captured()),
        })
    }
    /// Like [`pending`](Self::pending), but unaffected by later signals also for a reusable point of the driver.
    ///
    /// # Errors
    /// As for [`pending`](Self::pending).
    pub(crate) fn captured_now(&self) -> Result<Option<Pending<'_, D>>> {
        match &self.state {
            State::Shared(SharedPart { what: Shareable::Point(point), .. }) => {
                Ok(D::latest(point)?.map(Pending::Captured))
            }
            _ => self.pending(),
        }
    }
    /// How a barrier signals it.
    ///
    /// # Errors
    /// `INVALID_EVENT` for an event that belongs to one command; `GRAPH_INTERNAL_EVENT` for that of a captured command.
    pub(crate) fn target(&self) -> Result<Target<'_, D>> {
        match &self.state {
            State::Latest { signal, is_recorded: false } => Ok(Target::Latest(signal)),
            State::Shared(SharedPart { what: Shareable::Word(slot), .. }) => Ok(Target::Word(slot)),
            State::Shared(SharedPart { what: Shareable::Point(point), .. }) => {
                Ok(Target::Point(&**point))
            }
            State::Captured(_) => Err(captured()),
            State::Point(_) | State::Run(_) | State::Complete | State::Latest { .. } => {
                Error::refuse(
                    ErrorCode::InvalidEvent,
                    "the event belongs to one command and cannot be signalled again: make one with \
                 urEventCreateExp",
                )
            }
        }
    }
    /// The status of its latest signal.
    pub(crate) fn status(&self) -> Result<Status> {
        Ok(match self.pending()? {
            None => Status::Complete,
            Some(pending) => pending.status()?,
        })
    }
}
impl<D: HasStreams> Pending<'_, D> {
    fn status(&self) -> Result<Status> {
        Ok(match self {
            Self::Point(point) => D::status(point)?,
            Self::Latest(latest) => D::status(&latest.point)?,
            Self::Captured(point) => D::status(point)?,
            Self::Word(debt) => match debt.progress() {
                Progress::Pending => Status::Submitted,
                Progress::Complete => Status::Complete,
                Progress::Failed => Status::Failed,
            },
        })
    }
    /// Waits until it is final.
    ///
    /// # Errors
    /// The error of the command that failed, or of the driver.
    #[inline]
    fn wait(&self) -> ur_hal::Result<()> {
        match self {
            Self::Point(point) => <D as Streams>::wait(point, None).map(drop),
            Self::Latest(latest) => <D as Streams>::wait(&latest.point, None).map(drop),
            Self::Captured(point) => <D as Streams>::wait(point, None).map(drop),
            Self::Word(debt) => match debt.wait(None) {
                Progress::Failed => Err(lost()),
                _ => Ok(()),
            },
        }
    }
}
/// The error of a wait for a word whose signal will never come.
#[cold]
pub(crate) fn lost() -> ur_hal::Error {
    let why = "an event that was to be signalled by another process failed: that process ended or its command failed; make \
               the event anew with a process that lives";
    ur_hal::Error::new(ur_hal::ErrorKind::DependencyFailed, why).because(Reason::ExporterGone)
}
fn stale(error: ur_ipc::Error) -> Error {
    let error = Error::from(error);
    match error.code() {
        ErrorCode::InvalidValue => error.with_code(ErrorCode::InvalidEvent),
        _ => error,
    }
}
pub(crate) fn captured() -> Error {
    let why = "the event stands for a command in a graph, which never runs by itself: only commands that are recorded into \
               the same graph can wait for it; for a run of the graph, ask urEnqueueGraphExp for an event";
    Error::new(ErrorCode::GraphInternalEvent, why)
}
