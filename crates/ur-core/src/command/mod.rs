//! Commands, once for all drivers. An entry's request becomes a [`Command`] here, of which everything was judged, and
//! goes to a queue or into a command buffer: what can be enqueued can be recorded.
mod resolve;

use crate::{memory::allocations::Allocated, profiling::Profile};
use ur_adapter::{
    api::{Objects, Request},
    command::{Appended, Asked, Enqueued, Report},
    error::Error,
    object::Borrowed,
};
use ur_hal::{Address, Command, Order, Types};
use ur_sys::ur_command_t;

/// A backend whose queues take commands, and whose command buffers do. Until streams are the driver's own, what stands
/// between its queues and the driver's is its own too.
pub trait TakesCommands: Objects + Types {
    /// What its memory is known by.
    type Known: Allocated;
    /// Whether the memory at an address is moved, so that hints about it have an effect.
    fn is_managed(at: Address) -> bool;
    /// Puts a command into a queue, behind what these events stand for now.
    ///
    /// # Errors
    /// `IN_EVENT_LIST_EXEC_STATUS` if what it waits for has failed; the driver's own.
    fn submit(
        queue: Borrowed<'_, Self::Queue>,
        ready: &Ready<'_, Self>,
        events: &[Borrowed<'_, Self::Event>],
        report: Report,
    ) -> Enqueued<Self>;
    /// Puts a command into a command buffer.
    ///
    /// # Errors
    /// `INVALID_OPERATION` once it is finalized; `INVALID_COMMAND_BUFFER_SYNC_POINT_EXP`; the driver's own.
    fn record(
        buffer: Borrowed<'_, Self::ExpCommandBuffer>,
        ready: &Ready<'_, Self>,
        asked: Asked<'_, Self>,
    ) -> Appended<Self> {
        let _ = (buffer, ready, asked);
        Error::unsupported("recording of commands")
    }
}

/// A command of which everything was judged.
#[derive(Debug)]
pub struct Ready<'a, D: Types> {
    /// What its event says that it is.
    pub name: ur_command_t,
    /// What is done.
    pub command: Command<'a, D>,
    /// Where it stands among the commands of an out-of-order queue.
    pub order: Order,
}
impl<D: Types> Ready<'_, D> {
    /// Which times its event tells; those of other commands are `of_queue`.
    pub fn profile(&self, of_queue: Profile) -> Profile {
        if matches!(self.command, Command::Timestamp) { Profile::Moment } else { of_queue }
    }
}

/// Enqueues what an entry asks for. An entry always asks for the same kind of command: inlined, the way from its request
/// to the command is nothing but that kind's.
///
/// # Errors
/// Those of the entry.
#[inline(always)]
pub fn enqueue<D: TakesCommands>(
    queue: Borrowed<'_, D::Queue>,
    request: Request<'_>,
    events: &[Borrowed<'_, D::Event>],
    report: Report,
) -> Enqueued<D> {
    let ready = Ready::resolve(request, !events.is_empty())?;
    D::submit(queue, &ready, events, report)
}
/// Records what an entry asks for.
///
/// # Errors
/// Those of the entry.
pub fn append<D: TakesCommands>(
    buffer: Borrowed<'_, D::ExpCommandBuffer>,
    request: Request<'_>,
    asked: Asked<'_, D>,
) -> Appended<D> {
    D::record(buffer, &Ready::resolve(request, false)?, asked)
}

/// Lets a backend's entries that ask for commands be the core's.
#[macro_export]
macro_rules! commands { ([$($generics:tt)*] $backend:ty) => {
    impl<$($generics)*> ur_adapter::api::CommandApi for $backend {
        #[inline(always)]
        fn enqueue(
            queue: ur_adapter::object::Borrowed<'_, Self::Queue>,
            request: ur_adapter::api::Request<'_>,
            events: &[ur_adapter::object::Borrowed<'_, Self::Event>],
            report: ur_adapter::command::Report,
        ) -> ur_adapter::command::Enqueued<Self> {
            $crate::command::enqueue::<Self>(queue, request, events, report)
        }
        fn append(
            buffer: ur_adapter::object::Borrowed<'_, Self::ExpCommandBuffer>,
            request: ur_adapter::api::Request<'_>,
            asked: ur_adapter::command::Asked<'_, Self>,
        ) -> ur_adapter::command::Appended<Self> {
            $crate::command::append::<Self>(buffer, request, asked)
        }
    }
} }
