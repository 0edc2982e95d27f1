//! What queues are asked to do, as far as it is not the core's yet: signals of events; buffers, images, kernels and memory
//! in queue order have files of their own, and how a command gets into a stream is `submission.rs`'s.
use super::{
    Event, Family, Kernel, Mem, Program, Queue, UsmPool,
    driver::Dialect,
    enqueue_image::{self, Pixels},
    enqueue_mem,
    event::{Point, Times},
    launch,
    memory::Allocation,
    native::stream::Stream,
    native_command,
    submission::{Made, Submission},
    usm_async,
};
use crate::{
    command::{Ready, TakesCommands},
    memory::allocation::Usm,
    profiling::Profile,
    program::launch::VariablePart,
};
use std::ffi::CStr;
use ur_adapter::{
    api::{EnqueueApi, EnqueueExpApi, Objects},
    command::Report,
    error::{Error, ErrorCode, Result},
    memory::{HostBytes, UsmPtr},
    object::{Borrowed, Owned},
    region,
    shim::BarrierEvent,
};
use ur_hal::{Address, Order};
use ur_sys::{
    ur_command_t, ur_exp_async_usm_alloc_properties_t, ur_exp_enqueue_ext_properties_t,
    ur_exp_enqueue_native_command_function_t, ur_exp_enqueue_native_command_properties_t,
    ur_exp_kernel_arg_properties_t, ur_kernel_launch_ext_properties_t, ur_map_flags_t,
    ur_rect_offset_t, ur_rect_region_t,
};

/// A barrier that signals an event of C's.
fn signal<D: Dialect>(
    queue: Borrowed<'_, Queue<D>>,
    events: &[Borrowed<'_, Event<D>>],
    signalled: &Event<D>,
) -> Result<()> {
    let profiled = signalled.check_signal()? || queue.is_profiling();
    let device = queue.device();
    let on = device.enter()?;
    let command = ur_command_t::EVENTS_WAIT_WITH_BARRIER;
    let (report, profile) = (Report::None, Profile::Off);
    let submission = Submission { command, order: Order::Both, report, profile };
    if let Some(shared) = signalled.as_shared() {
        queue.work().check_capture(
            &on,
            "the signal of an event that processes share, each replay of which would write the same old \
             value,",
        )?;
        let prepared = shared.prepare(&queue)?;
        let put = submission.put(queue, events, |_| Ok(()), |stream| prepared.write(stream));
        put?;
        return prepared.publish();
    }
    let is_captured = queue.work().is_capturing(&on)?;
    let end = device.events().take(&on, profiled)?;
    let mut times = None;
    let body = |stream: &Stream<D>| {
        if profiled {
            times = Some(Times::begin(device, &on, stream, Profile::Instant)?);
        }
        end.record(stream)
    };
    submission.put(queue, events, body, |_| Ok(()))?;
    signalled.replace(match is_captured {
        true => Point::captured(end),
        false => Point::new(end, times, queue.work().open_debts()),
    });
    Ok(())
}

ur_core::commands! { [D: Dialect] Family<D> }
impl<D: Dialect> TakesCommands for Family<D> {
    type Known = Allocation<D>;
    fn is_managed(at: Address) -> bool {
        Allocation::<D>::find(at.into()).is_some_and(|found| found.usm() == Usm::Shared)
    }
    fn submit(
        queue: Borrowed<'_, Queue<D>>,
        ready: &Ready<'_, Self>,
        events: &[Borrowed<'_, Event<D>>],
        report: Report,
    ) -> Made<D> {
        let (command, order) = (ready.name, ready.order);
        let profile = ready.profile(queue.profile());
        let device = queue.device().number();
        let body = |stream: &Stream<D>| stream.execute(&ready.command, device);
        Submission { command, order, report, profile }.put(queue, events, body, |_| Ok(()))
    }
}

impl<D: Dialect> EnqueueApi for Family<D> {
    fn enqueue_events_wait_with_barrier_ext(
        queue: Borrowed<'_, Queue<D>>,
        _properties: Option<&ur_exp_enqueue_ext_properties_t>,
        events: &[Borrowed<'_, Event<D>>],
        event: BarrierEvent<'_, Event<D>>,
    ) -> Made<D> {
        let signalled = match event {
            BarrierEvent::None => {
                return Self::enqueue_events_wait_with_barrier(queue, events, false);
            }
            BarrierEvent::Make => {
                return Self::enqueue_events_wait_with_barrier(queue, events, true);
            }
            BarrierEvent::Signal(event) => event,
        };
        signalled.check_signal()?;
        if events.iter().any(|one| one.same(&signalled)) {
            return Err(Error::new(
                ErrorCode::InvalidEventWaitList,
                "a barrier cannot wait for the event that it signals: wait in a command of its own",
            ));
        }
        signal(queue, events, &signalled)?;
        Ok(None)
    }
    fn enqueue_mem_buffer_read(
        queue: Borrowed<'_, Queue<D>>,
        buffer: Borrowed<'_, Mem<D>>,
        blocking: bool,
        offset: usize,
        size: usize,
        to: UsmPtr,
        events: &[Borrowed<'_, Event<D>>],
        want_event: bool,
    ) -> Made<D> {
        let report = Report::of(blocking, want_event);
        enqueue_mem::mem_buffer_read(queue, buffer, (offset, size), to, events, report)
    }
    fn enqueue_mem_buffer_write(
        queue: Borrowed<'_, Queue<D>>,
        buffer: Borrowed<'_, Mem<D>>,
        blocking: bool,
        offset: usize,
        size: usize,
        from: UsmPtr,
        events: &[Borrowed<'_, Event<D>>],
        want_event: bool,
    ) -> Made<D> {
        let report = Report::of(blocking, want_event);
        enqueue_mem::mem_buffer_write(queue, buffer, (offset, size), from, events, report)
    }
    fn enqueue_mem_buffer_read_rect(
        queue: Borrowed<'_, Queue<D>>,
        buffer: Borrowed<'_, Mem<D>>,
        blocking: bool,
        buffer_origin: ur_rect_offset_t,
        host_origin: ur_rect_offset_t,
        region: ur_rect_region_t,
        buffer_row_pitch: usize,
        buffer_slice_pitch: usize,
        host_row_pitch: usize,
        host_slice_pitch: usize,
        to: UsmPtr,
        events: &[Borrowed<'_, Event<D>>],
        want_event: bool,
    ) -> Made<D> {
        let inside = (buffer, region::place(buffer_origin, buffer_row_pitch, buffer_slice_pitch));
        let host = (to, region::place(host_origin, host_row_pitch, host_slice_pitch));
        let report = Report::of(blocking, want_event);
        enqueue_mem::mem_buffer_read_rect(queue, inside, host, region, events, report)
    }
    fn enqueue_mem_buffer_write_rect(
        queue: Borrowed<'_, Queue<D>>,
        buffer: Borrowed<'_, Mem<D>>,
        blocking: bool,
        buffer_origin: ur_rect_offset_t,
        host_origin: ur_rect_offset_t,
        region: ur_rect_region_t,
        buffer_row_pitch: usize,
        buffer_slice_pitch: usize,
        host_row_pitch: usize,
        host_slice_pitch: usize,
        from: UsmPtr,
        events: &[Borrowed<'_, Event<D>>],
        want_event: bool,
    ) -> Made<D> {
        let inside = (buffer, region::place(buffer_origin, buffer_row_pitch, buffer_slice_pitch));
        let host = (from, region::place(host_origin, host_row_pitch, host_slice_pitch));
        let report = Report::of(blocking, want_event);
        enqueue_mem::mem_buffer_write_rect(queue, inside, host, region, events, report)
    }
    fn enqueue_mem_buffer_copy(
        queue: Borrowed<'_, Queue<D>>,
        from: Borrowed<'_, Mem<D>>,
        to: Borrowed<'_, Mem<D>>,
        from_offset: usize,
        to_offset: usize,
        size: usize,
        events: &[Borrowed<'_, Event<D>>],
        want_event: bool,
    ) -> Made<D> {
        let (mems, offsets) = ((from, to), (from_offset, to_offset));
        enqueue_mem::mem_buffer_copy(queue, mems, offsets, size, events, want_event)
    }
    fn enqueue_mem_buffer_copy_rect(
        queue: Borrowed<'_, Queue<D>>,
        from: Borrowed<'_, Mem<D>>,
        to: Borrowed<'_, Mem<D>>,
        from_origin: ur_rect_offset_t,
        to_origin: ur_rect_offset_t,
        region: ur_rect_region_t,
        from_row_pitch: usize,
        from_slice_pitch: usize,
        to_row_pitch: usize,
        to_slice_pitch: usize,
        events: &[Borrowed<'_, Event<D>>],
        want_event: bool,
    ) -> Made<D> {
        let source = (from, region::place(from_origin, from_row_pitch, from_slice_pitch));
        let target = (to, region::place(to_origin, to_row_pitch, to_slice_pitch));
        enqueue_mem::mem_buffer_copy_rect(queue, source, target, region, events, want_event)
    }
    fn enqueue_mem_buffer_fill(
        queue: Borrowed<'_, Queue<D>>,
        buffer: Borrowed<'_, Mem<D>>,
        pattern: HostBytes<'_>,
        offset: usize,
        size: usize,
        events: &[Borrowed<'_, Event<D>>],
        want_event: bool,
    ) -> Made<D> {
        enqueue_mem::mem_buffer_fill(queue, buffer, pattern, (offset, size), events, want_event)
    }
    fn enqueue_mem_buffer_map(
        queue: Borrowed<'_, Queue<D>>,
        buffer: Borrowed<'_, Mem<D>>,
        blocking: bool,
        flags: ur_map_flags_t,
        offset: usize,
        size: usize,
        events: &[Borrowed<'_, Event<D>>],
        want_event: bool,
    ) -> Result<(Option<Owned<Event<D>>>, UsmPtr)> {
        let report = Report::of(blocking, want_event);
        enqueue_mem::mem_buffer_map(queue, buffer, flags, (offset, size), events, report)
    }
    fn enqueue_mem_unmap(
        queue: Borrowed<'_, Queue<D>>,
        mem: Borrowed<'_, Mem<D>>,
        at: UsmPtr,
        events: &[Borrowed<'_, Event<D>>],
        want_event: bool,
    ) -> Made<D> {
        enqueue_mem::mem_unmap(queue, mem, at, events, want_event)
    }
    fn enqueue_mem_image_read(
        queue: Borrowed<'_, Queue<D>>,
        image: Borrowed<'_, Mem<D>>,
        blocking: bool,
        origin: ur_rect_offset_t,
        region: ur_rect_region_t,
        row_pitch: usize,
        slice_pitch: usize,
        host: UsmPtr,
        events: &[Borrowed<'_, Event<D>>],
        want_event: bool,
    ) -> Made<D> {
        let pixels = Pixels { image, origin, region, row_pitch, slice_pitch, host };
        enqueue_image::mem_image_read(queue, blocking, &pixels, events, want_event)
    }
    fn enqueue_mem_image_write(
        queue: Borrowed<'_, Queue<D>>,
        image: Borrowed<'_, Mem<D>>,
        blocking: bool,
        origin: ur_rect_offset_t,
        region: ur_rect_region_t,
        row_pitch: usize,
        slice_pitch: usize,
        host: UsmPtr,
        events: &[Borrowed<'_, Event<D>>],
        want_event: bool,
    ) -> Made<D> {
        let pixels = Pixels { image, origin, region, row_pitch, slice_pitch, host };
        enqueue_image::mem_image_write(queue, blocking, &pixels, events, want_event)
    }
    fn enqueue_mem_image_copy(
        queue: Borrowed<'_, Queue<D>>,
        from: Borrowed<'_, Mem<D>>,
        to: Borrowed<'_, Mem<D>>,
        from_origin: ur_rect_offset_t,
        to_origin: ur_rect_offset_t,
        region: ur_rect_region_t,
        events: &[Borrowed<'_, Event<D>>],
        want_event: bool,
    ) -> Made<D> {
        let (images, origins) = ((from, to), (from_origin, to_origin));
        enqueue_image::mem_image_copy(queue, images, origins, region, events, want_event)
    }
    fn enqueue_device_global_variable_write(
        queue: Borrowed<'_, Queue<D>>,
        program: Borrowed<'_, Program<D>>,
        name: &CStr,
        blocking: bool,
        count: usize,
        offset: usize,
        host: UsmPtr,
        events: &[Borrowed<'_, Event<D>>],
        want_event: bool,
    ) -> Made<D> {
        let part = VariablePart { name, blocking, count, offset, host };
        launch::device_global_variable(queue, program, &part, true, events, want_event)
    }
    fn enqueue_device_global_variable_read(
        queue: Borrowed<'_, Queue<D>>,
        program: Borrowed<'_, Program<D>>,
        name: &CStr,
        blocking: bool,
        count: usize,
        offset: usize,
        host: UsmPtr,
        events: &[Borrowed<'_, Event<D>>],
        want_event: bool,
    ) -> Made<D> {
        let part = VariablePart { name, blocking, count, offset, host };
        launch::device_global_variable(queue, program, &part, false, events, want_event)
    }
}

impl<D: Dialect> EnqueueExpApi for Family<D> {
    fn enqueue_usm_device_alloc_exp(
        queue: Borrowed<'_, Queue<D>>,
        pool: Option<Borrowed<'_, UsmPool<D>>>,
        size: usize,
        _properties: Option<&ur_exp_async_usm_alloc_properties_t>,
        events: &[Borrowed<'_, Event<D>>],
        want_event: bool,
    ) -> Result<(UsmPtr, Option<Owned<Event<D>>>)> {
        usm_async::alloc(Usm::Device, queue, pool, size, events, want_event)
    }
    fn enqueue_usm_shared_alloc_exp(
        queue: Borrowed<'_, Queue<D>>,
        pool: Option<Borrowed<'_, UsmPool<D>>>,
        size: usize,
        _properties: Option<&ur_exp_async_usm_alloc_properties_t>,
        events: &[Borrowed<'_, Event<D>>],
        want_event: bool,
    ) -> Result<(UsmPtr, Option<Owned<Event<D>>>)> {
        usm_async::alloc(Usm::Shared, queue, pool, size, events, want_event)
    }
    fn enqueue_usm_host_alloc_exp(
        queue: Borrowed<'_, Queue<D>>,
        pool: Option<Borrowed<'_, UsmPool<D>>>,
        size: usize,
        _properties: Option<&ur_exp_async_usm_alloc_properties_t>,
        events: &[Borrowed<'_, Event<D>>],
        want_event: bool,
    ) -> Result<(UsmPtr, Option<Owned<Event<D>>>)> {
        usm_async::alloc(Usm::Host, queue, pool, size, events, want_event)
    }
    fn enqueue_usm_free_exp(
        queue: Borrowed<'_, Queue<D>>,
        pool: Option<Borrowed<'_, UsmPool<D>>>,
        mem: UsmPtr,
        events: &[Borrowed<'_, Event<D>>],
        want_event: bool,
    ) -> Made<D> {
        usm_async::free(queue, pool, mem, events, want_event)
    }
    fn enqueue_kernel_launch_with_args_exp(
        queue: Borrowed<'_, Queue<D>>,
        kernel: Borrowed<'_, Kernel<D>>,
        offset: Option<&[usize]>,
        global: &[usize],
        local: Option<&[usize]>,
        arguments: Option<&[ur_exp_kernel_arg_properties_t]>,
        properties: Option<&ur_kernel_launch_ext_properties_t>,
        events: &[Borrowed<'_, Event<D>>],
        want_event: bool,
    ) -> Made<D> {
        launch::kernel_launch_with_args_exp(
            queue, kernel, offset, global, local, arguments, properties, events, want_event,
        )
    }
    fn enqueue_native_command_exp(
        queue: Borrowed<'_, Queue<D>>,
        native_enqueue: ur_exp_enqueue_native_command_function_t,
        data: Option<UsmPtr>,
        _mem_list: &[Borrowed<'_, <Self as Objects>::Mem>],
        _properties: Option<&ur_exp_enqueue_native_command_properties_t>,
        events: &[Borrowed<'_, Event<D>>],
        want_event: bool,
    ) -> Made<D> {
        native_command::run(queue, native_enqueue, data, events, want_event)
    }
}
