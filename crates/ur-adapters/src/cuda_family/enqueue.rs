//! What queues are asked to do: waits and barriers, host tasks, timestamps. Copies and fills of USM are
//! checked and made here too; buffers, images, kernels and memory in queue order have files of their
//! own, and how a command gets into a stream is `submission.rs`'s.
use super::{
    Event, Family, Kernel, Mem, Program, Queue, UsmPool,
    driver::Dialect,
    enqueue_image::{self, Pixels},
    enqueue_mem, enqueue_usm as usm,
    event::{Point, Times},
    launch,
    native::stream::Stream,
    native_command,
    submission::{Made, Order, Report, Submission, submit, wait_order},
    usm_async,
};
use crate::memory::allocation::Usm;
use crate::profiling::Profile;
use crate::program::launch::VariablePart;
use std::ffi::CStr;
use ur_adapter::{
    api::{EnqueueApi, EnqueueExpApi, Objects},
    callback::HostFunction,
    error::{Error, ErrorCode, Result},
    memory::{HostBytes, UsmPtr},
    object::{Borrowed, Owned},
    region,
    shim::BarrierEvent,
};
use ur_sys::{
    ur_command_t, ur_exp_async_usm_alloc_properties_t, ur_exp_enqueue_ext_properties_t,
    ur_exp_enqueue_native_command_function_t, ur_exp_enqueue_native_command_properties_t,
    ur_exp_host_task_properties_t, ur_exp_kernel_arg_properties_t,
    ur_kernel_launch_ext_properties_t, ur_map_flags_t, ur_rect_offset_t, ur_rect_region_t,
    ur_usm_advice_flags_t, ur_usm_migration_flags_t,
};

/// Submits a command that does nothing but hold its place.
fn place<D: Dialect>(
    queue: Borrowed<'_, Queue<D>>,
    command: ur_command_t,
    order: Order,
    waits: &[Borrowed<'_, Event<D>>],
    report: Report,
) -> Made<D> {
    let profile = queue.profile();
    Submission { command, order, report, profile }.put(queue, waits, |_| Ok(()), |_| Ok(()))
}
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

impl<D: Dialect> EnqueueApi for Family<D> {
    fn enqueue_events_wait(
        queue: Borrowed<'_, Queue<D>>,
        events: &[Borrowed<'_, Event<D>>],
        want_event: bool,
    ) -> Made<D> {
        let report = Report::event(want_event);
        place(queue, ur_command_t::EVENTS_WAIT, wait_order(events), events, report)
    }
    fn enqueue_events_wait_with_barrier(
        queue: Borrowed<'_, Queue<D>>,
        events: &[Borrowed<'_, Event<D>>],
        want_event: bool,
    ) -> Made<D> {
        let (command, report) = (ur_command_t::EVENTS_WAIT_WITH_BARRIER, Report::event(want_event));
        place(queue, command, Order::Both, events, report)
    }
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
    fn enqueue_usm_fill(
        queue: Borrowed<'_, Queue<D>>,
        mem: UsmPtr,
        pattern: HostBytes<'_>,
        bytes: usize,
        events: &[Borrowed<'_, Event<D>>],
        want_event: bool,
    ) -> Made<D> {
        usm::fill(queue, mem, pattern, bytes, events, want_event)
    }
    fn enqueue_usm_memcpy(
        queue: Borrowed<'_, Queue<D>>,
        blocking: bool,
        to: UsmPtr,
        from: UsmPtr,
        bytes: usize,
        events: &[Borrowed<'_, Event<D>>],
        want_event: bool,
    ) -> Made<D> {
        usm::memcpy(queue, blocking, to, from, bytes, events, want_event)
    }
    fn enqueue_usm_prefetch(
        queue: Borrowed<'_, Queue<D>>,
        mem: UsmPtr,
        bytes: usize,
        flags: ur_usm_migration_flags_t,
        events: &[Borrowed<'_, Event<D>>],
        want_event: bool,
    ) -> Made<D> {
        usm::prefetch(queue, mem, bytes, flags, events, want_event)
    }
    fn enqueue_usm_advise(
        queue: Borrowed<'_, Queue<D>>,
        mem: UsmPtr,
        bytes: usize,
        advice: ur_usm_advice_flags_t,
        want_event: bool,
    ) -> Made<D> {
        usm::advise(queue, mem, bytes, advice, want_event)
    }
    fn enqueue_usm_fill_2d(
        queue: Borrowed<'_, Queue<D>>,
        mem: UsmPtr,
        pitch: usize,
        pattern: HostBytes<'_>,
        width: usize,
        height: usize,
        events: &[Borrowed<'_, Event<D>>],
        want_event: bool,
    ) -> Made<D> {
        usm::fill_2d(queue, (mem, pitch), pattern, (width, height), events, want_event)
    }
    fn enqueue_usm_memcpy_2d(
        queue: Borrowed<'_, Queue<D>>,
        blocking: bool,
        to: UsmPtr,
        to_pitch: usize,
        from: UsmPtr,
        from_pitch: usize,
        width: usize,
        height: usize,
        events: &[Borrowed<'_, Event<D>>],
        want_event: bool,
    ) -> Made<D> {
        let report = Report::of(blocking, want_event);
        usm::memcpy_2d(queue, (to, to_pitch), (from, from_pitch), (width, height), events, report)
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
    fn enqueue_timestamp_recording_exp(
        queue: Borrowed<'_, Queue<D>>,
        blocking: bool,
        events: &[Borrowed<'_, Event<D>>],
    ) -> Result<Owned<Event<D>>> {
        let command = ur_command_t::TIMESTAMP_RECORDING_EXP;
        let (order, report) = (wait_order(events), Report::of(blocking, true));
        let submission = Submission { command, order, report, profile: Profile::Moment };
        let made = submission.put(queue, events, |_| Ok(()), |_| Ok(()))?;
        Ok(made.expect("`put` makes the event that it is asked for"))
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
    fn enqueue_host_task_exp(
        queue: Borrowed<'_, Queue<D>>,
        host_task: HostFunction,
        _properties: Option<&ur_exp_host_task_properties_t>,
        events: &[Borrowed<'_, Event<D>>],
        want_event: bool,
    ) -> Made<D> {
        let report = Report::event(want_event);
        submit(queue, ur_command_t::HOST_TASK_EXP, events, report, |stream| {
            stream.host_fn(move || host_task.call())
        })
    }
}
