//! Commands between entries and adapters: what C asks for beside what a command does, and the trait of adapters that take
//! all commands in one place.
use crate::{
    api::{Objects, Request},
    error::{Error, Result},
    object::{Borrowed, Owned},
};
use ur_sys::ur_exp_command_buffer_sync_point_t;

/// What C wants to know of a command that is enqueued.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Report {
    /// Nothing.
    None,
    /// An event.
    Event,
    /// That it is done, before the call returns; and an event if so.
    Done {
        /// Whether there is an event as well.
        event: bool,
    },
}
impl Report {
    /// An event, or nothing.
    pub fn event(want: bool) -> Self {
        if want { Self::Event } else { Self::None }
    }
    /// Of a command that blocks, or does not.
    pub fn of(blocking: bool, want: bool) -> Self {
        if blocking { Self::Done { event: want } } else { Self::event(want) }
    }
    /// Whether there is to be an event.
    pub fn wants_event(self) -> bool {
        matches!(self, Self::Event | Self::Done { event: true })
    }
}

/// What C asks of a command that it records.
#[derive(Debug)]
pub struct Asked<'a, A: Objects> {
    /// Commands recorded before that it follows.
    pub points: Option<&'a [ur_exp_command_buffer_sync_point_t]>,
    /// What each execution waits for.
    pub events: &'a [Borrowed<'a, A::Event>],
    /// Whether there is to be an event that each execution signals.
    pub event: bool,
    /// Whether there is to be a handle by which it can be changed.
    pub command: bool,
}
impl<A: Objects> Clone for Asked<'_, A> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<A: Objects> Copy for Asked<'_, A> {}

/// What C gets for a command that is enqueued.
pub type Enqueued<A> = Result<Option<Owned<<A as Objects>::Event>>>;
/// What C gets for a command that is recorded.
pub type Appended<A> = Result<(
    ur_exp_command_buffer_sync_point_t,
    Option<Owned<<A as Objects>::Event>>,
    Option<Owned<<A as Objects>::ExpCommandBufferCommand>>,
)>;

/// An adapter that takes commands in one place, whichever entries ask for them.
pub trait CommandApi: Objects {
    /// Enqueues a command.
    ///
    /// # Errors
    /// Those of the entry.
    fn enqueue(
        queue: Borrowed<'_, Self::Queue>,
        request: Request<'_, Self>,
        events: &[Borrowed<'_, Self::Event>],
        report: Report,
    ) -> Enqueued<Self> {
        let _ = (queue, events, report);
        Error::unsupported(request.entries().0)
    }
    /// Records a command.
    ///
    /// # Errors
    /// Those of the entry.
    fn append(
        buffer: Borrowed<'_, Self::ExpCommandBuffer>,
        request: Request<'_, Self>,
        asked: Asked<'_, Self>,
    ) -> Appended<Self> {
        let _ = (buffer, asked);
        Error::unsupported(request.entries().1)
    }
}
