//! Commands between the entries and an adapter: what the caller requests in addition to a command, and the trait of
//! adapters that handle all commands in one place.
use crate::{
    api::{Objects, Request},
    error::{Error, Result},
    object::{Borrowed, Owned},
};
use ur_sys::ur_exp_command_buffer_sync_point_t;

/// The completion information that the caller requests for an enqueued command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CompletionRequest {
    /// None.
    None,
    /// An event.
    Event,
    /// Completion before the call returns, and possibly an event.
    Done {
        /// Whether an event is requested too.
        event: bool,
    },
}
impl CompletionRequest {
    /// An event if `want`, else nothing.
    pub fn event(want: bool) -> Self {
        if want { Self::Event } else { Self::None }
    }
    /// For a command that may block, and that may want an event.
    pub fn of(blocking: bool, want: bool) -> Self {
        if blocking { Self::Done { event: want } } else { Self::event(want) }
    }
    /// Whether an event is requested.
    pub fn wants_event(self) -> bool {
        matches!(self, Self::Event | Self::Done { event: true })
    }
}

/// What the caller requests for a recorded command.
#[derive(Debug)]
pub struct Asked<'a, A: Objects> {
    /// The sync points of earlier commands that it follows.
    pub points: Option<&'a [ur_exp_command_buffer_sync_point_t]>,
    /// The events that each execution waits for.
    pub events: &'a [Borrowed<'a, A::Event>],
    /// Whether an event is requested that each execution signals.
    pub event: bool,
    /// Whether a handle is requested with which the command can be updated.
    pub command: bool,
}
impl<A: Objects> Clone for Asked<'_, A> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<A: Objects> Copy for Asked<'_, A> {}

/// The result of enqueuing a command.
pub type Enqueued<A> = Result<Option<Owned<<A as Objects>::Event>>>;
/// The result of recording a command.
pub type Appended<A> = Result<(
    ur_exp_command_buffer_sync_point_t,
    Option<Owned<<A as Objects>::Event>>,
    Option<Owned<<A as Objects>::ExpCommandBufferCommand>>,
)>;

/// An adapter that handles commands in one place, whichever entries they come from.
pub trait CommandApi: Objects {
    /// Enqueues a command.
    ///
    /// # Errors
    /// The errors of the entry.
    fn enqueue(
        queue: Borrowed<'_, Self::Queue>,
        request: Request<'_, Self>,
        events: &[Borrowed<'_, Self::Event>],
        report: CompletionRequest,
    ) -> Enqueued<Self> {
        let _ = (queue, events, report);
        Error::unsupported(request.entries().0)
    }
    /// Records a command.
    ///
    /// # Errors
    /// The errors of the entry.
    fn append(
        buffer: Borrowed<'_, Self::ExpCommandBuffer>,
        request: Request<'_, Self>,
        asked: Asked<'_, Self>,
    ) -> Appended<Self> {
        let _ = (buffer, asked);
        Error::unsupported(request.entries().1)
    }
}
