//! What a backend does with commands, and what it is told of one.
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
    error::Result,
    memory::UsmPtr,
    object::{Borrowed, Never, Owned},
};
use ur_hal::{Address, BoxCopy, Command, Handover, ImageCopy, Modules, Order, Types};
use ur_sys::*;

type Device<D> = <D as Objects>::Device;
/// What a command allocated: the address, and its event if the caller wants one.
pub type InOrder<E> = (UsmPtr, Option<Owned<E>>);
/// Where a command is executed: the context and the device of a queue or of a command buffer.
pub type Place<'a, D> = (&'a Owned<<D as Objects>::Context>, &'a Owned<Device<D>>);

/// What commands are handed to once they are judged: queues over any driver's streams (`queue/submit.rs`).
pub trait TakesCommands:
    RunsCode
    + BufferBackend
    + HasSamplers
    + Types
    + Modules<Function = <Self as Types>::Function>
    + Objects<ExpCommandBuffer: Recorder<Self>>
{
    /// What its memory is known by.
    type Known: Allocated;
    /// Whether the memory at an address is moved, so that hints about it have an effect.
    fn is_managed(at: Address) -> bool;
    /// Where a buffer begins for commands on a device. The newest bytes are there when a command is executed that says
    /// that it uses them ([`Used`]).
    ///
    /// # Errors
    /// `INVALID_CONTEXT` for a device of another context; the driver's own.
    fn buffer_at(device: &Owned<Device<Self>>, buffer: &Mem<Self>) -> Result<Address>;
    /// What a device has for an image. Its newest pixels are there as the bytes of a buffer are.
    ///
    /// # Errors
    /// As for [`buffer_at`](Self::buffer_at).
    fn image_at<'m>(
        device: &Owned<Device<Self>>,
        image: &'m Mem<Self>,
    ) -> Result<&'m Arc<<Self as Types>::Image>>;
    /// Puts a command into a queue, behind what these events stand for now.
    ///
    /// # Errors
    /// `IN_EVENT_LIST_EXEC_STATUS` if what it waits for has failed; the driver's own.
    fn submit(
        queue: Borrowed<'_, Self::Queue>,
        ready: &Ready<'_, Self>,
        events: &[Borrowed<'_, Self::Event>],
        report: CompletionRequest,
    ) -> Enqueued<Self>;
    /// Puts a barrier into a queue that signals an event of the caller's.
    ///
    /// # Errors
    /// `INVALID_EVENT` for one that cannot be signalled; as for [`submit`](Self::submit).
    fn signal(
        queue: Borrowed<'_, Self::Queue>,
        events: &[Borrowed<'_, Self::Event>],
        signalled: Borrowed<'_, Self::Event>,
    ) -> Result<()>;
    /// Has the queue itself allocate memory that can be used behind a command of it; `None` where the core's pools do.
    ///
    /// # Errors
    /// As `urEnqueueUSMDeviceAllocExp` documents them; then nothing is allocated.
    fn allocate_in_order(
        usm: Usm,
        queue: Borrowed<'_, Self::Queue>,
        pool: Borrowed<'_, Self::UsmPool>,
        size: usize,
        events: &[Borrowed<'_, Self::Event>],
        report: CompletionRequest,
    ) -> Result<Option<InOrder<Self::Event>>>;
    /// Frees memory once a queue comes there.
    ///
    /// # Errors
    /// As for [`submit`](Self::submit); then nothing is freed.
    fn free_in_order(
        queue: Borrowed<'_, Self::Queue>,
        freeing: Freeing<Self::Memory>,
        events: &[Borrowed<'_, Self::Event>],
        report: CompletionRequest,
    ) -> Enqueued<Self>;
    /// Calls a function on this thread that may put commands into the native queue: behind what these events stand for,
    /// and before what the command signals. Where there is no native queue all before is done when it is called.
    ///
    /// # Errors
    /// As for [`submit`](Self::submit).
    fn submit_native(
        queue: Borrowed<'_, Self::Queue>,
        call: &dyn Fn(),
        events: &[Borrowed<'_, Self::Event>],
        report: CompletionRequest,
    ) -> Enqueued<Self>;
    /// Puts a graph into a queue.
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

/// A kind of object of which devices say whether there are any.
pub trait Exists {
    /// Whether there are.
    const EXISTS: bool;
}
impl<const KIND: u16> Exists for Never<KIND> {
    const EXISTS: bool = false;
}
/// What commands are recorded in.
pub trait Recorder<D: Objects> {
    /// Where what is recorded is executed.
    fn place(&self) -> Place<'_, D>;
    /// Records a command.
    ///
    /// # Errors
    /// `INVALID_OPERATION` once it is finalized; `INVALID_COMMAND_BUFFER_SYNC_POINT_EXP`; the driver's own.
    fn append(&self, ready: &Ready<'_, D>, asked: Asked<'_, OverDriver<D>>) -> Appended<D>
    where
        D: TakesCommands;
    /// Puts all that is recorded into a queue.
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
impl<D: Objects, const KIND: u16> Recorder<D> for Never<KIND> {
    fn place(&self) -> Place<'_, D> {
        match *self {}
    }
    fn append(&self, _: &Ready<'_, D>, _: Asked<'_, OverDriver<D>>) -> Appended<D>
    where
        D: TakesCommands,
    {
        match *self {}
    }
    fn execute(
        &self,
        _: Borrowed<'_, D::Queue>,
        _: &[Borrowed<'_, D::Event>],
        _: CompletionRequest,
    ) -> Enqueued<D> {
        match *self {}
    }
}

/// A command of which everything was judged.
#[derive(Debug)]
pub struct Ready<'a, D: TakesCommands> {
    /// What its event says that it is.
    pub name: ur_command_t,
    /// What is done.
    pub command: Command<'a, D>,
    /// Where it stands among the commands of an out-of-order queue.
    pub order: Order,
    /// What is there until it is done.
    pub uses: [Option<Used<'a, D>>; 2],
    /// And what more is, of a launch.
    pub more: &'a [Option<Used<'a, D>>],
}
/// An object that a command uses.
#[derive(Debug)]
pub enum Used<'a, D: TakesCommands> {
    /// A buffer or an image, which it writes or only reads.
    Buffer {
        /// Which.
        buffer: Borrowed<'a, Mem<D>>,
        /// Whether other devices' copies of it are out of date from here on.
        writes: bool,
    },
    /// A program, one of whose variables it reads or writes.
    Program(Borrowed<'a, D::Program>),
    /// Memory that goes with it; the driver takes it.
    Freed(&'a Handover<Freeing<D::Memory>>),
}
impl<D: TakesCommands> Default for Ready<'_, D> {
    /// A barrier that holds up nothing.
    #[inline(always)]
    fn default() -> Self {
        Self::barrier(ur_command_t::EVENTS_WAIT_WITH_BARRIER, Order::Free)
    }
}
impl<'a, D: TakesCommands> Ready<'a, D> {
    /// A command that stands in its place and uses no objects.
    #[inline(always)]
    pub(crate) fn new(name: ur_command_t, command: Command<'a, D>) -> Self {
        Self { name, command, order: Order::Free, uses: [None, None], more: &[] }
    }
    /// A command that does nothing but hold its place.
    #[inline(always)]
    pub fn barrier(name: ur_command_t, order: Order) -> Self {
        Self { order, ..Self::new(name, Command::Barrier) }
    }
    /// Which times its event tells; those of other commands are `of_queue`.
    pub fn profile(&self, of_queue: Profile) -> Profile {
        if matches!(self.command, Command::Timestamp) { Profile::Moment } else { of_queue }
    }
    /// All that it uses.
    pub fn used(&self) -> impl Iterator<Item = &Used<'a, D>> {
        self.uses.iter().chain(self.more).flatten()
    }
    /// The buffers and images that it uses, each with whether it writes it.
    pub fn buffers(&self) -> impl Iterator<Item = (Borrowed<'a, Mem<D>>, bool)> {
        self.used().filter_map(|one| match one {
            Used::Buffer { buffer, writes } => Some((*buffer, *writes)),
            Used::Program(_) | Used::Freed(_) => None,
        })
    }
}

/// Where is described what a command copies, if that takes more than a command has room for.
#[derive(Debug)]
pub(super) struct Room<'a, D: Types> {
    /// A box of bytes.
    pub(super) bytes: OnceCell<BoxCopy>,
    /// A box of pixels.
    pub(super) pixels: OnceCell<ImageCopy<'a, D>>,
}
impl<D: Types> Room<'_, D> {
    pub(super) const fn new() -> Self {
        Self { bytes: OnceCell::new(), pixels: OnceCell::new() }
    }
}
