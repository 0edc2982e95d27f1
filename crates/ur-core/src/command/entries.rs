//! The entries that enqueue or append commands. Most arrive here as a [`Request`]; those that do not are implemented
//! below.
use super::{
    buffers,
    launch::{self, Asked as AskedLaunch},
    ready::{InOrder, Ready, Recorder, Room, TakesCommands},
    usm_async::{allocate, free},
};
use crate::{c_arguments, memory::allocation::Usm, over_driver::OverDriver, program::Placed};
use smallvec::SmallVec;
use ur_adapter::{
    api::{CommandApi, EnqueueApi, EnqueueExpApi, Request},
    command::{Appended, Asked, CompletionRequest, Enqueued},
    error::{Error, ErrorCode, Result},
    memory::UsmPtr,
    object::{Borrowed, Owned},
    shim::BarrierEvent,
};
use ur_hal::Command;
use ur_sys::*;

/// The objects of a call that may run functions of the caller's on the host, on any thread, before it returns: such a
/// function may release them.
struct Kept<D: TakesCommands> {
    _queue: Owned<D::Queue>,
    _events: SmallVec<[Owned<D::Event>; 8]>,
}
impl<D: TakesCommands> Kept<D> {
    /// Retains the queue and the wait list.
    ///
    /// # Errors
    /// `INVALID_QUEUE` or `INVALID_EVENT` if another thread released one meanwhile.
    fn new(queue: Borrowed<'_, D::Queue>, events: &[Borrowed<'_, D::Event>]) -> Result<Self> {
        let events = events.iter().map(|event| event.own()).collect::<Result<_>>()?;
        Ok(Self { _queue: queue.own()?, _events: events })
    }
}

/// Enqueues a request. Each entry passes one kind of request only; inlining lets the compiler drop the code for all
/// other kinds.
///
/// # Errors
/// As the entry documents them.
#[inline(always)]
fn enqueue<D: TakesCommands>(
    queue: Borrowed<'_, D::Queue>,
    request: Request<'_, OverDriver<D>>,
    events: &[Borrowed<'_, D::Event>],
    report: CompletionRequest,
) -> Enqueued<D> {
    // Known when this is compiled: asked of the request, not of the command.
    let is_host_task = matches!(request, Request::HostTask { .. });
    let room = Room::<D>::new();
    let mut ready = Ready::default();
    ready.resolve(request, queue.place(), !events.is_empty(), &room)?;
    let _kept = is_host_task.then(|| Kept::<D>::new(queue, events)).transpose()?;
    let made = D::submit(queue, &ready, events, report);
    if is_host_task
        && made.is_err()
        && let Command::HostCall(call) = &ready.command
    {
        call.withdraw(); // the driver may have taken it before it refused what follows
    }
    made
}
/// Appends a request to a command buffer.
///
/// # Errors
/// As the entry documents them.
fn append<D: TakesCommands>(
    buffer: Borrowed<'_, D::ExpCommandBuffer>,
    request: Request<'_, OverDriver<D>>,
    asked: Asked<'_, OverDriver<D>>,
) -> Appended<D> {
    let room = Room::<D>::new();
    let mut ready = Ready::default();
    ready.resolve(request, buffer.place(), false, &room)?;
    buffer.append(&ready, asked)
}
impl<D: TakesCommands> CommandApi for OverDriver<D> {
    #[inline(always)]
    fn enqueue(
        queue: Borrowed<'_, D::Queue>,
        request: Request<'_, Self>,
        events: &[Borrowed<'_, D::Event>],
        report: CompletionRequest,
    ) -> Enqueued<D> {
        enqueue::<D>(queue, request, events, report)
    }
    fn append(
        buffer: Borrowed<'_, D::ExpCommandBuffer>,
        request: Request<'_, Self>,
        asked: Asked<'_, Self>,
    ) -> Appended<D> {
        append::<D>(buffer, request, asked)
    }
}
impl<D: TakesCommands> EnqueueApi for OverDriver<D> {
    fn enqueue_events_wait_with_barrier_ext(
        queue: Borrowed<'_, D::Queue>,
        _properties: Option<&ur_exp_enqueue_ext_properties_t>,
        events: &[Borrowed<'_, D::Event>],
        event: BarrierEvent<'_, D::Event>,
    ) -> Enqueued<D> {
        let signalled = match event {
            BarrierEvent::None => {
                return Self::enqueue(queue, Request::Barrier, events, CompletionRequest::None);
            }
            BarrierEvent::Make => {
                return Self::enqueue(queue, Request::Barrier, events, CompletionRequest::Event);
            }
            BarrierEvent::Signal(event) => event,
        };
        if events.iter().any(|one| one.same(&signalled)) {
            return Error::refuse(
                ErrorCode::InvalidEventWaitList,
                "a barrier cannot wait for the event that it signals: wait in a command of its own",
            );
        }
        D::signal(queue, events, signalled).map(|()| None)
    }
    fn enqueue_mem_buffer_map(
        queue: Borrowed<'_, D::Queue>,
        buffer: Borrowed<'_, D::Mem>,
        blocking: bool,
        flags: ur_map_flags_t,
        offset: usize,
        size: usize,
        events: &[Borrowed<'_, D::Event>],
        want_event: bool,
    ) -> Result<(Option<Owned<D::Event>>, UsmPtr)> {
        let report = CompletionRequest::of(blocking, want_event);
        buffers::map::<D>(queue, buffer, flags, (offset, size), events, report)
    }
    fn enqueue_mem_unmap(
        queue: Borrowed<'_, D::Queue>,
        mem: Borrowed<'_, D::Mem>,
        mapped: UsmPtr,
        events: &[Borrowed<'_, D::Event>],
        want_event: bool,
    ) -> Enqueued<D> {
        buffers::unmap::<D>(queue, mem, mapped, events, CompletionRequest::event(want_event))
    }
}
impl<D: TakesCommands> EnqueueExpApi for OverDriver<D> {
    #[inline(always)] // for the same reason as `enqueue`: its arguments are many
    fn enqueue_kernel_launch_with_args_exp(
        queue: Borrowed<'_, D::Queue>,
        kernel: Borrowed<'_, D::Kernel>,
        offset: Option<&[usize]>,
        global: &[usize],
        local: Option<&[usize]>,
        arguments: Option<&[ur_exp_kernel_arg_properties_t]>,
        properties: Option<&ur_kernel_launch_ext_properties_t>,
        events: &[Borrowed<'_, D::Event>],
        want_event: bool,
    ) -> Enqueued<D> {
        let arguments = arguments.unwrap_or_default();
        let asked = AskedLaunch { kernel, offset, global, local, arguments, properties };
        launch::resolve::<D, _, _>(queue.place(), &asked, |ready| {
            D::submit(queue, ready, events, CompletionRequest::event(want_event))
        })
    }
    fn enqueue_usm_device_alloc_exp(
        queue: Borrowed<'_, D::Queue>,
        pool: Option<Borrowed<'_, D::UsmPool>>,
        size: usize,
        _properties: Option<&ur_exp_async_usm_alloc_properties_t>,
        events: &[Borrowed<'_, D::Event>],
        want_event: bool,
    ) -> Result<InOrder<D::Event>> {
        allocate::<D>(Usm::Device, queue, pool, size, events, CompletionRequest::event(want_event))
    }
    fn enqueue_usm_shared_alloc_exp(
        queue: Borrowed<'_, D::Queue>,
        pool: Option<Borrowed<'_, D::UsmPool>>,
        size: usize,
        _properties: Option<&ur_exp_async_usm_alloc_properties_t>,
        events: &[Borrowed<'_, D::Event>],
        want_event: bool,
    ) -> Result<InOrder<D::Event>> {
        allocate::<D>(Usm::Shared, queue, pool, size, events, CompletionRequest::event(want_event))
    }
    fn enqueue_usm_host_alloc_exp(
        queue: Borrowed<'_, D::Queue>,
        pool: Option<Borrowed<'_, D::UsmPool>>,
        size: usize,
        _properties: Option<&ur_exp_async_usm_alloc_properties_t>,
        events: &[Borrowed<'_, D::Event>],
        want_event: bool,
    ) -> Result<InOrder<D::Event>> {
        allocate::<D>(Usm::Host, queue, pool, size, events, CompletionRequest::event(want_event))
    }
    fn enqueue_usm_free_exp(
        queue: Borrowed<'_, D::Queue>,
        pool: Option<Borrowed<'_, D::UsmPool>>,
        mem: UsmPtr,
        events: &[Borrowed<'_, D::Event>],
        want_event: bool,
    ) -> Enqueued<D> {
        free::<D>(queue, pool, mem, events, CompletionRequest::event(want_event))
    }
    /// Calls the function on the calling thread, before the entry returns. Native commands that it enqueues run after
    /// the commands that this one waits for, and before this command's event is signalled.
    fn enqueue_native_command_exp(
        queue: Borrowed<'_, D::Queue>,
        function: ur_exp_enqueue_native_command_function_t,
        data: Option<UsmPtr>,
        mem_list: &[Borrowed<'_, D::Mem>],
        _properties: Option<&ur_exp_enqueue_native_command_properties_t>,
        events: &[Borrowed<'_, D::Event>],
        want_event: bool,
    ) -> Enqueued<D> {
        let function = function.ok_or(ErrorCode::InvalidNullPointer)?;
        let _kept = Kept::<D>::new(queue, events)?;
        let call = || c_arguments::call_native(function, queue, data);
        let report = CompletionRequest::event(want_event);
        D::submit_native(queue, &call, mem_list, events, report)
    }
    fn enqueue_command_buffer_exp(
        queue: Borrowed<'_, D::Queue>,
        buffer: Borrowed<'_, D::ExpCommandBuffer>,
        events: &[Borrowed<'_, D::Event>],
        want_event: bool,
    ) -> Enqueued<D> {
        let buffer = buffer.own()?;
        let _kept = Kept::<D>::new(queue, events)?;
        buffer.execute(queue, events, CompletionRequest::event(want_event))
    }
    fn enqueue_graph_exp(
        queue: Borrowed<'_, D::Queue>,
        graph: Borrowed<'_, D::ExpExecutableGraph>,
        events: &[Borrowed<'_, D::Event>],
        want_event: bool,
    ) -> Enqueued<D> {
        let graph = graph.own()?;
        let _kept = Kept::<D>::new(queue, events)?;
        D::submit_graph(queue, graph.borrow(), events, CompletionRequest::event(want_event))
    }
}
