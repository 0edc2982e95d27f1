//! What a backend does with commands, and how a command is described to it.
use crate::{
    memory::{
        allocation::{Freeing, Usm},
        allocations::Allocated,
    },
    over_driver::{
        OverDriver,
        mem::{BufferBackend, Mem},
        sampler::HasSamplers,
    },
    profiling::Profile,
    program::RunsCode,
};
use std::{cell::OnceCell, sync::Arc};
use ur_adapter::{
    api::Objects,
    command::{Appended, Asked, CompletionRequest, Enqueued},
    error::{Error, ErrorCode, Result},
    memory::UsmPtr,
    object::{Borrowed, Owned},
};
use ur_hal::{Address, BoxCopy, Command, Handover, HostCall, ImageCopy, Order, Types};
use ur_sys::*;

type Device<D> = <D as Objects>::Device;
/// The address that a command allocated, and the command's event if the caller requested one.
pub type InOrder<E> = (UsmPtr, Option<Owned<E>>);
/// Where a command is executed: the context and the device of a queue or of a command buffer.
pub type Place<'a, D> = (&'a Owned<<D as Objects>::Context>, &'a Owned<Device<D>>);

/// What accepts checked commands: queues over any driver's streams (`queue/submit.rs`).
pub trait TakesCommands:
    RunsCode + BufferBackend + HasSamplers + Types + Objects<ExpCommandBuffer: Recorder<Self>>
{
    /// Identifies this backend's allocations, so that host ranges can be checked against them.
    type Known: Allocated;
    /// Whether the memory at an address is migrated, so that hints about it have an effect.
    fn is_managed(at: Address) -> bool;
    /// Enqueues a command that waits for what these events represent now.
    ///
    /// # Errors
    /// `IN_EVENT_LIST_EXEC_STATUS` if an event of the wait list has failed. Returns the driver's error, mapped as in
    /// `error.rs`.
    fn submit(
        queue: Borrowed<'_, Self::Queue>,
        ready: &Ready<'_, Self>,
        events: &[Borrowed<'_, Self::Event>],
        report: CompletionRequest,
    ) -> Enqueued<Self>;
    /// Enqueues a barrier that signals an event which the caller passes.
    ///
    /// # Errors
    /// `INVALID_EVENT` for an event that cannot be signalled; otherwise as for [`submit`](Self::submit).
    fn signal(
        queue: Borrowed<'_, Self::Queue>,
        events: &[Borrowed<'_, Self::Event>],
        signalled: Borrowed<'_, Self::Event>,
    ) -> Result<()>;
    /// Whether what is enqueued now, behind these events, becomes part of a graph: one that the queue records, or one that
    /// other code captures.
    ///
    /// # Errors
    /// Those of the driver.
    fn is_for_graph(
        queue: Borrowed<'_, Self::Queue>,
        events: &[Borrowed<'_, Self::Event>],
    ) -> Result<bool>;
    /// Allocates memory through the queue itself, in stream order. Returns `None` if this driver's queues do not
    /// allocate; the core then allocates from its pools.
    ///
    /// # Errors
    /// As `urEnqueueUSMDeviceAllocExp` documents them; nothing is allocated then.
    fn allocate_in_order(
        usm: Usm,
        queue: Borrowed<'_, Self::Queue>,
        pool: Borrowed<'_, Self::UsmPool>,
        size: usize,
        events: &[Borrowed<'_, Self::Event>],
        report: CompletionRequest,
    ) -> Result<Option<InOrder<Self::Event>>>;
    /// Frees memory when the queue reaches this command.
    ///
    /// # Errors
    /// As for [`submit`](Self::submit); nothing is freed then.
    fn free_in_order(
        queue: Borrowed<'_, Self::Queue>,
        freeing: Freeing<Self::Memory>,
        events: &[Borrowed<'_, Self::Event>],
        report: CompletionRequest,
    ) -> Enqueued<Self>;
    /// Calls a function on this thread that may enqueue commands into the native queue. They run after what these
    /// events represent, and before this command's event is signalled. If there is no native queue, everything enqueued
    /// before is complete when the function is called.
    /// What they read and write of memory objects is in `used`.
    ///
    /// # Errors
    /// As for [`submit`](Self::submit).
    fn submit_native(
        queue: Borrowed<'_, Self::Queue>,
        call: &dyn Fn(),
        used: &[Borrowed<'_, Mem<Self>>],
        events: &[Borrowed<'_, Self::Event>],
        report: CompletionRequest,
    ) -> Enqueued<Self>;
    /// Enqueues a graph.
    ///
    /// # Errors
    /// As `urEnqueueGraphExp` documents them.
    fn submit_graph(
        queue: Borrowed<'_, Self::Queue>,
        graph: Borrowed<'_, Self::ExpExecutableGraph>,
        events: &[Borrowed<'_, Self::Event>],
        report: CompletionRequest,
    ) -> Enqueued<Self>;
}

/// A command buffer that records commands.
pub trait Recorder<D: Objects> {
    /// The context and device for which commands are recorded.
    fn place(&self) -> Place<'_, D>;
    /// Records a command.
    ///
    /// # Errors
    /// `INVALID_OPERATION` if it is finalized already; `INVALID_COMMAND_BUFFER_SYNC_POINT_EXP`. Returns the driver's
    /// error, mapped as in `error.rs`.
    fn append(&self, ready: &Ready<'_, D>, asked: Asked<'_, OverDriver<D>>) -> Appended<D>
    where
        D: TakesCommands;
    /// Enqueues everything that is recorded.
    ///
    /// # Errors
    /// As `urEnqueueCommandBufferExp` documents them.
    fn execute(
        &self,
        queue: Borrowed<'_, D::Queue>,
        events: &[Borrowed<'_, D::Event>],
        report: CompletionRequest,
    ) -> Enqueued<D>;
}

/// A command that has been checked completely, with the objects that it uses.
#[derive(Debug)]
pub struct Ready<'a, D: TakesCommands> {
    /// The command type that its event reports.
    pub name: ur_command_t,
    /// The operation.
    pub command: Command<'a, D>,
    /// Its place among the commands of an out-of-order queue.
    pub order: Order,
    /// The objects that stay alive until it is complete.
    pub uses: [Option<Used<'a, D>>; 2],
    /// More of them, for launches.
    pub more: &'a [Option<Used<'a, D>>],
}
/// How a command uses bytes of a buffer, or an image.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Usage {
    /// It reads them.
    Reads,
    /// It writes all of them, and reads none.
    Overwrites,
    /// It writes some of them, or reads and writes them.
    Changes,
}
/// An object that a command uses.
#[derive(Debug)]
pub enum Used<'a, D: TakesCommands> {
    /// A buffer or an image.
    Buffer {
        /// The buffer or image.
        buffer: Borrowed<'a, Mem<D>>,
        /// The bytes of the buffer that it uses; of an image, all.
        bytes: std::ops::Range<usize>,
        /// How it uses them. What it writes makes other devices' copies of these bytes outdated.
        usage: Usage,
    },
    /// A program, because the command accesses one of its variables.
    Program(Borrowed<'a, D::Program>),
    /// Memory to be freed when the command runs; the driver takes it out of the handover.
    Freed(&'a Handover<Freeing<D::Memory>>),
}
impl<D: TakesCommands> Default for Ready<'_, D> {
    /// A barrier that waits for nothing.
    #[inline(always)]
    fn default() -> Self {
        Self::barrier(ur_command_t::EVENTS_WAIT_WITH_BARRIER, Order::Free)
    }
}
impl<'a, D: TakesCommands> Ready<'a, D> {
    /// A command with the default order that uses no objects.
    #[inline(always)]
    pub(crate) fn new(name: ur_command_t, command: Command<'a, D>) -> Self {
        Self { name, command, order: Order::Free, uses: [None, None], more: &[] }
    }
    /// A command that does nothing; only its place in the order matters.
    #[inline(always)]
    pub fn barrier(name: ur_command_t, order: Order) -> Self {
        Self { order, ..Self::new(name, Command::Barrier) }
    }
    /// Which times its event reports. `of_queue` applies to all commands but timestamps.
    pub fn profile(&self, of_queue: Profile) -> Profile {
        if matches!(self.command, Command::Timestamp) { Profile::Moment } else { of_queue }
    }
    /// Whether it may use memory of the caller's that is not this adapter's to free.
    #[inline(always)]
    pub(crate) fn lends_memory(&self) -> bool {
        use Command::{Copy, Copy2d, Copy3d, Fill, Fill2d, ImageCopy, Launch};
        matches!(self.command, Copy { .. } | Copy2d { .. } | Copy3d(_) | ImageCopy(_))
            || matches!(self.command, Fill { .. } | Fill2d { .. } | Launch(_))
    }
    /// Whether it uses any objects.
    #[inline(always)]
    pub(crate) fn uses_any(&self) -> bool {
        !matches!((&self.uses, self.more), ([None, None], []))
    }
    /// All objects that it uses.
    pub fn used(&self) -> impl Iterator<Item = &Used<'a, D>> {
        self.uses.iter().chain(self.more).flatten()
    }
    /// The buffers and images that it uses, each with the bytes and how it uses them.
    pub fn buffers(
        &self,
    ) -> impl Iterator<Item = (Borrowed<'a, Mem<D>>, std::ops::Range<usize>, Usage)> {
        self.used().filter_map(|one| match one {
            Used::Buffer { buffer, bytes, usage } => Some((*buffer, bytes.clone(), *usage)),
            Used::Program(_) | Used::Freed(_) => None,
        })
    }
    /// Checks that its memory objects belong to the context of the queue or command buffer. Freeing them waits for the
    /// commands of their own context.
    ///
    /// # Errors
    /// `INVALID_CONTEXT`
    #[inline(always)]
    pub(crate) fn check_context(&self, context: &Owned<<D as Objects>::Context>) -> Result<()> {
        self.buffers().try_for_each(|(mem, ..)| check_same_context(mem, context))
    }
}
/// Checks that a memory object belongs to the context of the queue or command buffer whose command uses it.
///
/// # Errors
/// `INVALID_CONTEXT`
#[inline(always)]
pub(crate) fn check_same_context<D: TakesCommands>(
    mem: Borrowed<'_, Mem<D>>,
    context: &Owned<<D as Objects>::Context>,
) -> Result<()> {
    match mem.context().same(context) {
        true => Ok(()),
        false => Error::refuse(
            ErrorCode::InvalidContext,
            "a memory object belongs to another context than the queue or command buffer: create it with the same one",
        ),
    }
}

/// Storage for what a [`Command`] only holds a reference to.
#[derive(Debug)]
pub(super) struct Room<'a, D: Types> {
    /// The description of a box copy.
    pub(super) bytes: OnceCell<BoxCopy>,
    /// A call of a function of the application's.
    pub(super) call: OnceCell<HostCall>,
    /// The description of an image copy.
    pub(super) pixels: OnceCell<ImageCopy<&'a Arc<<D as Types>::Image>>>,
}
impl<D: Types> Room<'_, D> {
    pub(super) const fn new() -> Self {
        Self { bytes: OnceCell::new(), call: OnceCell::new(), pixels: OnceCell::new() }
    }
}
