//! How a command gets into a CPU queue, or into a command buffer: captures what must come first; the engine does the rest.
//! And the entries whose commands are not the core's yet.
use super::{
    CommandBuffer, Cpu, Event, ExecutableGraph, Kernel, Mem, Program, Queue, UsmPool,
    capture::taker,
    command_buffer,
    engine::{Completion, Dependencies, Order, Pattern, Submission, Work, failed},
    enqueue_image::{self, Pixels},
    enqueue_mem, graph, launch,
    memory::Allocation,
    native_command, usm_async,
};
use crate::{
    command::{Ready, TakesCommands},
    memory::{allocation::Usm, ranges},
    profiling::Profile,
    program::launch::VariablePart,
};
use std::ffi::CStr;
use std::sync::Arc;
use ur_adapter::{
    api::{EnqueueApi, EnqueueExpApi, Objects},
    command::{Appended, Asked, Report},
    error::{Error, ErrorCode, Result},
    memory::{HostBytes, UsmPtr},
    object::{Borrowed, Owned},
    region,
    shim::BarrierEvent,
};
use ur_hal::{Address, Range};
use ur_sys::{
    ur_command_t, ur_exp_async_usm_alloc_properties_t, ur_exp_enqueue_ext_properties_t,
    ur_exp_enqueue_native_command_function_t, ur_exp_enqueue_native_command_properties_t,
    ur_exp_kernel_arg_properties_t, ur_kernel_launch_ext_properties_t, ur_map_flags_t,
    ur_rect_offset_t, ur_rect_region_t,
};

/// The event of a command, if C wanted one.
pub(super) type Made = Result<Option<Owned<Event>>>;

/// What the events of a wait list stand for at this moment.
pub(super) fn capture(events: &[Borrowed<'_, Event>]) -> Result<Dependencies> {
    let mut dependencies = Dependencies::default();
    for event in events {
        let captured = event.capture().map_err(|error| match error.code() {
            ErrorCode::InvalidEvent => error.with_code(ErrorCode::InvalidEventWaitList),
            _ => error,
        })?;
        captured.map_or(Ok(()), |one| dependencies.add(one))?;
    }
    Ok(dependencies)
}

/// Submits a command that signals no event of C's but a new one.
pub(super) fn enqueue(
    queue: Borrowed<'_, Queue>,
    command: ur_command_t,
    events: &[Borrowed<'_, Event>],
    submission: Submission<'_>,
    report: Report,
) -> Made {
    if let Some(taker) = taker(queue, events)? {
        return taker.record(command, events, submission, None, report);
    }
    Ok(enqueue_with(queue, command, capture(events)?, submission, report)?.0)
}
/// The event that C wanted, and what is known of how far the command has come.
type Submitted = (Option<Owned<Event>>, Option<Arc<Completion>>);
/// Submits a command whose dependencies are known. Its completion too, if anything was to be known.
pub(super) fn enqueue_with(
    queue: Borrowed<'_, Queue>,
    command: ur_command_t,
    dependencies: Dependencies,
    submission: Submission<'_>,
    report: Report,
) -> Result<Submitted> {
    // First what can fail: once it is submitted there is no way back.
    let of = report.wants_event().then(|| queue.own()).transpose()?;
    let want = submission.want || report != Report::None;
    let completion = queue.engine().submit(dependencies, Submission { want, ..submission })?;
    if let (Report::Done { .. }, Some(completion)) = (report, &completion) {
        completion.wait().map_err(|why| failed(&why))?;
    }
    let made = of.zip(completion.clone());
    Ok((made.map(|(queue, completion)| Event::of(queue, command, completion)), completion))
}

/// A command that does nothing but hold its place.
pub(super) fn place(order: Order) -> Submission<'static> {
    Submission { order, ..Submission::new(Work::Barrier) }
}
/// # Errors
/// As for [`ranges::check_range`].
pub(super) fn check_range(at: UsmPtr, bytes: usize) -> Result<Range> {
    ranges::check_range::<Allocation>(at, bytes)
}
/// # Errors
/// As for [`ranges::pattern_of`].
pub(super) fn pattern_of(bytes: HostBytes<'_>, most: usize) -> Result<Pattern> {
    ranges::pattern_of(bytes, most).map(|pattern| Pattern::new(pattern.bytes()))
}

ur_core::commands! { [] Cpu }
impl TakesCommands for Cpu {
    type Known = Allocation;
    /// All memory is where it is used.
    fn is_managed(_at: Address) -> bool {
        true
    }
    #[inline(always)] // where the kind of the command is known, the way of others is gone
    fn submit(
        queue: Borrowed<'_, Queue>,
        ready: &Ready<'_, Self>,
        events: &[Borrowed<'_, Event>],
        report: Report,
    ) -> Made {
        let (work, profile) = (Work::of(&ready.command)?, ready.profile(Profile::Off));
        let submission = Submission { order: ready.order, profile, ..Submission::new(work) };
        enqueue(queue, ready.name, events, submission, report)
    }
    fn record(
        buffer: Borrowed<'_, CommandBuffer>,
        ready: &Ready<'_, Self>,
        asked: Asked<'_, Self>,
    ) -> Appended<Self> {
        buffer.append(ready.name, Work::of(&ready.command)?, asked)
    }
}

impl EnqueueApi for Cpu {
    fn enqueue_events_wait_with_barrier_ext(
        queue: Borrowed<'_, Queue>,
        _properties: Option<&ur_exp_enqueue_ext_properties_t>,
        events: &[Borrowed<'_, Event>],
        event: BarrierEvent<'_, Event>,
    ) -> Made {
        let signalled = match event {
            BarrierEvent::None => {
                return Self::enqueue_events_wait_with_barrier(queue, events, false);
            }
            BarrierEvent::Make => {
                return Self::enqueue_events_wait_with_barrier(queue, events, true);
            }
            BarrierEvent::Signal(event) => event,
        };
        let signal = signalled.signal()?;
        if events.iter().any(|one| one.same(&signalled)) {
            return Err(Error::new(
                ErrorCode::InvalidEventWaitList,
                "a barrier cannot wait for the event that it signals: wait in a command of its own",
            ));
        }
        if let Some(taker) = taker(queue, events)? {
            let command = ur_command_t::EVENTS_WAIT_WITH_BARRIER;
            let signalled = signalled.own()?;
            return taker.record(
                command,
                events,
                place(Order::Both),
                Some(signalled),
                Report::None,
            );
        }
        let submission = Submission { signal, ..place(Order::Both) };
        queue.engine().submit(capture(events)?, submission)?;
        Ok(None)
    }
    fn enqueue_mem_image_read(
        queue: Borrowed<'_, Queue>,
        image: Borrowed<'_, Mem>,
        blocking: bool,
        origin: ur_rect_offset_t,
        region: ur_rect_region_t,
        row_pitch: usize,
        slice_pitch: usize,
        host: UsmPtr,
        events: &[Borrowed<'_, Event>],
        want_event: bool,
    ) -> Made {
        let pixels = Pixels { image, origin, region, row_pitch, slice_pitch, host };
        enqueue_image::read(queue, blocking, &pixels, events, want_event)
    }
    fn enqueue_mem_image_write(
        queue: Borrowed<'_, Queue>,
        image: Borrowed<'_, Mem>,
        blocking: bool,
        origin: ur_rect_offset_t,
        region: ur_rect_region_t,
        row_pitch: usize,
        slice_pitch: usize,
        host: UsmPtr,
        events: &[Borrowed<'_, Event>],
        want_event: bool,
    ) -> Made {
        let pixels = Pixels { image, origin, region, row_pitch, slice_pitch, host };
        enqueue_image::write(queue, blocking, &pixels, events, want_event)
    }
    fn enqueue_mem_image_copy(
        queue: Borrowed<'_, Queue>,
        from: Borrowed<'_, Mem>,
        to: Borrowed<'_, Mem>,
        from_origin: ur_rect_offset_t,
        to_origin: ur_rect_offset_t,
        region: ur_rect_region_t,
        events: &[Borrowed<'_, Event>],
        want_event: bool,
    ) -> Made {
        let (images, origins) = ((from, to), (from_origin, to_origin));
        enqueue_image::copy(queue, images, origins, region, events, want_event)
    }
    fn enqueue_device_global_variable_write(
        queue: Borrowed<'_, Queue>,
        program: Borrowed<'_, Program>,
        name: &CStr,
        blocking: bool,
        count: usize,
        offset: usize,
        from: UsmPtr,
        events: &[Borrowed<'_, Event>],
        want_event: bool,
    ) -> Made {
        let part = VariablePart { name, blocking, count, offset, host: from };
        launch::enqueue_variable(queue, program, &part, true, events, want_event)
    }
    fn enqueue_device_global_variable_read(
        queue: Borrowed<'_, Queue>,
        program: Borrowed<'_, Program>,
        name: &CStr,
        blocking: bool,
        count: usize,
        offset: usize,
        to: UsmPtr,
        events: &[Borrowed<'_, Event>],
        want_event: bool,
    ) -> Made {
        let part = VariablePart { name, blocking, count, offset, host: to };
        launch::enqueue_variable(queue, program, &part, false, events, want_event)
    }
    fn enqueue_mem_buffer_read(
        queue: Borrowed<'_, Queue>,
        buffer: Borrowed<'_, Mem>,
        blocking: bool,
        offset: usize,
        size: usize,
        to: UsmPtr,
        events: &[Borrowed<'_, Event>],
        want_event: bool,
    ) -> Made {
        let work = enqueue_mem::buffer_read_work(buffer, offset, size, to)?;
        let report = Report::of(blocking, want_event);
        enqueue(queue, ur_command_t::MEM_BUFFER_READ, events, Submission::new(work), report)
    }
    fn enqueue_mem_buffer_write(
        queue: Borrowed<'_, Queue>,
        buffer: Borrowed<'_, Mem>,
        blocking: bool,
        offset: usize,
        size: usize,
        from: UsmPtr,
        events: &[Borrowed<'_, Event>],
        want_event: bool,
    ) -> Made {
        let work = enqueue_mem::buffer_write_work(buffer, offset, size, from)?;
        let report = Report::of(blocking, want_event);
        enqueue(queue, ur_command_t::MEM_BUFFER_WRITE, events, Submission::new(work), report)
    }
    fn enqueue_mem_buffer_read_rect(
        queue: Borrowed<'_, Queue>,
        buffer: Borrowed<'_, Mem>,
        blocking: bool,
        buffer_origin: ur_rect_offset_t,
        host_origin: ur_rect_offset_t,
        region: ur_rect_region_t,
        buffer_row_pitch: usize,
        buffer_slice_pitch: usize,
        host_row_pitch: usize,
        host_slice_pitch: usize,
        to: UsmPtr,
        events: &[Borrowed<'_, Event>],
        want_event: bool,
    ) -> Made {
        let inside = region::place(buffer_origin, buffer_row_pitch, buffer_slice_pitch);
        let host = region::place(host_origin, host_row_pitch, host_slice_pitch);
        let work = enqueue_mem::buffer_read_rect_work(buffer, inside, host, region, to)?;
        let report = Report::of(blocking, want_event);
        enqueue(queue, ur_command_t::MEM_BUFFER_READ_RECT, events, Submission::new(work), report)
    }
    fn enqueue_mem_buffer_write_rect(
        queue: Borrowed<'_, Queue>,
        buffer: Borrowed<'_, Mem>,
        blocking: bool,
        buffer_origin: ur_rect_offset_t,
        host_origin: ur_rect_offset_t,
        region: ur_rect_region_t,
        buffer_row_pitch: usize,
        buffer_slice_pitch: usize,
        host_row_pitch: usize,
        host_slice_pitch: usize,
        from: UsmPtr,
        events: &[Borrowed<'_, Event>],
        want_event: bool,
    ) -> Made {
        let inside = region::place(buffer_origin, buffer_row_pitch, buffer_slice_pitch);
        let host = region::place(host_origin, host_row_pitch, host_slice_pitch);
        let work = enqueue_mem::buffer_write_rect_work(buffer, inside, host, region, from)?;
        let report = Report::of(blocking, want_event);
        enqueue(queue, ur_command_t::MEM_BUFFER_WRITE_RECT, events, Submission::new(work), report)
    }
    fn enqueue_mem_buffer_copy(
        queue: Borrowed<'_, Queue>,
        from: Borrowed<'_, Mem>,
        to: Borrowed<'_, Mem>,
        from_offset: usize,
        to_offset: usize,
        size: usize,
        events: &[Borrowed<'_, Event>],
        want_event: bool,
    ) -> Made {
        let work = enqueue_mem::buffer_copy_work(from, to, from_offset, to_offset, size)?;
        let report = Report::event(want_event);
        enqueue(queue, ur_command_t::MEM_BUFFER_COPY, events, Submission::new(work), report)
    }
    fn enqueue_mem_buffer_copy_rect(
        queue: Borrowed<'_, Queue>,
        from: Borrowed<'_, Mem>,
        to: Borrowed<'_, Mem>,
        from_origin: ur_rect_offset_t,
        to_origin: ur_rect_offset_t,
        region: ur_rect_region_t,
        from_row_pitch: usize,
        from_slice_pitch: usize,
        to_row_pitch: usize,
        to_slice_pitch: usize,
        events: &[Borrowed<'_, Event>],
        want_event: bool,
    ) -> Made {
        let source = region::place(from_origin, from_row_pitch, from_slice_pitch);
        let target = region::place(to_origin, to_row_pitch, to_slice_pitch);
        let work = enqueue_mem::buffer_copy_rect_work(from, to, source, target, region)?;
        let report = Report::event(want_event);
        enqueue(queue, ur_command_t::MEM_BUFFER_COPY_RECT, events, Submission::new(work), report)
    }
    fn enqueue_mem_buffer_fill(
        queue: Borrowed<'_, Queue>,
        buffer: Borrowed<'_, Mem>,
        pattern: HostBytes<'_>,
        offset: usize,
        size: usize,
        events: &[Borrowed<'_, Event>],
        want_event: bool,
    ) -> Made {
        let work = enqueue_mem::buffer_fill_work(buffer, pattern, offset, size)?;
        let report = Report::event(want_event);
        enqueue(queue, ur_command_t::MEM_BUFFER_FILL, events, Submission::new(work), report)
    }
    fn enqueue_mem_buffer_map(
        queue: Borrowed<'_, Queue>,
        buffer: Borrowed<'_, Mem>,
        blocking: bool,
        flags: ur_map_flags_t,
        offset: usize,
        size: usize,
        events: &[Borrowed<'_, Event>],
        want_event: bool,
    ) -> Result<(Option<Owned<Event>>, UsmPtr)> {
        let mapping = enqueue_mem::mapping(buffer, flags, offset, size)?;
        let at = mapping.at;
        let report = Report::of(blocking, want_event);
        let made =
            enqueue(queue, ur_command_t::MEM_BUFFER_MAP, events, place(Order::Free), report)?;
        buffer.map(mapping);
        Ok((made, at))
    }
    fn enqueue_mem_unmap(
        queue: Borrowed<'_, Queue>,
        mem: Borrowed<'_, Mem>,
        mapped: UsmPtr,
        events: &[Borrowed<'_, Event>],
        want_event: bool,
    ) -> Made {
        let mapping = mem.unmap(mapped)?;
        let report = Report::event(want_event);
        let made = enqueue(queue, ur_command_t::MEM_UNMAP, events, place(Order::Free), report);
        if made.is_err() {
            mem.map(mapping); // it was refused, so it is mapped still
        }
        made
    }
}

impl EnqueueExpApi for Cpu {
    fn enqueue_command_buffer_exp(
        queue: Borrowed<'_, Queue>,
        buffer: Borrowed<'_, CommandBuffer>,
        events: &[Borrowed<'_, Event>],
        want_event: bool,
    ) -> Made {
        command_buffer::enqueue(queue, buffer, events, want_event)
    }
    fn enqueue_graph_exp(
        queue: Borrowed<'_, Queue>,
        graph: Borrowed<'_, ExecutableGraph>,
        events: &[Borrowed<'_, Event>],
        want_event: bool,
    ) -> Made {
        graph::enqueue(queue, graph, events, want_event)
    }
    fn enqueue_kernel_launch_with_args_exp(
        queue: Borrowed<'_, Queue>,
        kernel: Borrowed<'_, Kernel>,
        offset: Option<&[usize]>,
        global: &[usize],
        local: Option<&[usize]>,
        arguments: Option<&[ur_exp_kernel_arg_properties_t]>,
        properties: Option<&ur_kernel_launch_ext_properties_t>,
        events: &[Borrowed<'_, Event>],
        want_event: bool,
    ) -> Made {
        launch::enqueue_with_arguments(
            queue, kernel, offset, global, local, arguments, properties, events, want_event,
        )
    }
    fn enqueue_usm_device_alloc_exp(
        queue: Borrowed<'_, Queue>,
        pool: Option<Borrowed<'_, UsmPool>>,
        size: usize,
        _properties: Option<&ur_exp_async_usm_alloc_properties_t>,
        events: &[Borrowed<'_, Event>],
        want_event: bool,
    ) -> Result<(UsmPtr, Option<Owned<Event>>)> {
        usm_async::alloc(Usm::Device, queue, pool, size, events, want_event)
    }
    fn enqueue_usm_shared_alloc_exp(
        queue: Borrowed<'_, Queue>,
        pool: Option<Borrowed<'_, UsmPool>>,
        size: usize,
        _properties: Option<&ur_exp_async_usm_alloc_properties_t>,
        events: &[Borrowed<'_, Event>],
        want_event: bool,
    ) -> Result<(UsmPtr, Option<Owned<Event>>)> {
        usm_async::alloc(Usm::Shared, queue, pool, size, events, want_event)
    }
    fn enqueue_usm_host_alloc_exp(
        queue: Borrowed<'_, Queue>,
        pool: Option<Borrowed<'_, UsmPool>>,
        size: usize,
        _properties: Option<&ur_exp_async_usm_alloc_properties_t>,
        events: &[Borrowed<'_, Event>],
        want_event: bool,
    ) -> Result<(UsmPtr, Option<Owned<Event>>)> {
        usm_async::alloc(Usm::Host, queue, pool, size, events, want_event)
    }
    fn enqueue_usm_free_exp(
        queue: Borrowed<'_, Queue>,
        pool: Option<Borrowed<'_, UsmPool>>,
        mem: UsmPtr,
        events: &[Borrowed<'_, Event>],
        want_event: bool,
    ) -> Made {
        usm_async::free(queue, pool, mem, events, want_event)
    }
    fn enqueue_native_command_exp(
        queue: Borrowed<'_, Queue>,
        native_enqueue: ur_exp_enqueue_native_command_function_t,
        data: Option<UsmPtr>,
        _mem_list: &[Borrowed<'_, <Self as Objects>::Mem>],
        _properties: Option<&ur_exp_enqueue_native_command_properties_t>,
        events: &[Borrowed<'_, Event>],
        want_event: bool,
    ) -> Made {
        native_command::run(queue, native_enqueue, data, events, want_event)
    }
}
