//! What queues are asked to do, as far as it is not the core's yet: signals of events; buffers, images, kernels and memory
//! in queue order have files of their own. How any command gets into a command list is `submission.rs`'s.
pub(super) use super::submission::{Made, submit};
use super::{
    CommandBuffer, Event, Kernel, LevelZero, Mem, Program, Queue, UsmPool, command_buffer,
    crossing::Far,
    enqueue_image::{self, Pixels},
    enqueue_mem,
    host_task::{self, by_thread},
    launch,
    memory::Allocation,
    native::execute::{is_one_append, recorded},
    native_command,
    signal::{Home, Signal},
    submission::{Appends, Submission},
    usm_async,
};
use crate::{
    command::{Ready, TakesCommands},
    memory::allocation::Usm,
    profiling::Profile,
    program::launch::VariablePart,
};
use std::{ffi::CStr, sync::Arc};
use ur_adapter::{
    api::{EnqueueApi, EnqueueExpApi},
    command::{Appended, Asked, Report},
    error::{Error, ErrorCode, Result},
    memory::{HostBytes, UsmPtr},
    object::{Borrowed, Owned},
    region,
    shim::BarrierEvent,
};
use ur_hal::{Address, Command, Order};
use ur_sys::{
    ur_command_t, ur_exp_async_usm_alloc_properties_t, ur_exp_enqueue_ext_properties_t,
    ur_exp_enqueue_native_command_function_t, ur_exp_enqueue_native_command_properties_t,
    ur_exp_kernel_arg_properties_t, ur_kernel_launch_ext_properties_t, ur_map_flags_t,
    ur_rect_offset_t, ur_rect_region_t,
};

/// A barrier that signals an event of C's.
fn signal(
    queue: Borrowed<'_, Queue>,
    events: &[Borrowed<'_, Event>],
    signalled: &Event,
) -> Result<()> {
    let is_timed = signalled.check_signal()? || queue.is_profiling();
    let command = ur_command_t::EVENTS_WAIT_WITH_BARRIER;
    let plain = Submission::new(queue, command, Report::None);
    let plain = Submission { order: Order::Both, profile: Profile::Off, ..plain };
    let timed = Submission { report: Report::Event, profile: Profile::Instant, ..plain };
    let Some(shared) = signalled.as_shared() else {
        let submission =
            if is_timed { timed } else { Submission { report: Report::Event, ..plain } };
        let point = submission.append(queue, events, |_, _| Ok(()))?;
        point.into_iter().for_each(|point| signalled.replace(Arc::new(point)));
        return Ok(());
    };
    // The times are another event's, which comes first: they are known as soon as this one is complete.
    let times = match is_timed && shared.is_private() {
        true => timed.append(queue, events, |_, _| Ok(()))?,
        false => None,
    };
    let waits = if times.is_some() { &[] } else { events };
    let raw = shared.core().event().raw();
    Submission { at_once: true, ..plain }.append(queue, waits, |list, _| {
        shared.core().sign(queue.work());
        list.signal(raw)
    })?;
    shared.note_times(times);
    Ok(())
}

ur_core::commands! { [] LevelZero }
impl TakesCommands for LevelZero {
    type Known = Allocation;
    fn is_managed(at: Address) -> bool {
        Allocation::find(at.into()).is_some_and(|found| found.usm() == Usm::Shared)
    }
    #[inline]
    fn submit(
        queue: Borrowed<'_, Queue>,
        ready: &Ready<'_, Self>,
        events: &[Borrowed<'_, Event>],
        report: Report,
    ) -> Made {
        let plain = Submission::new(queue, ready.name, report);
        let (order, profile) = (ready.order, ready.profile(plain.profile));
        let submission = Submission { order, profile, ..plain };
        match ready.command {
            Command::Barrier if is_superfluous(queue, events, report) => {
                superfluous(queue, &submission)
            }
            Command::HostCall(call) => host_task::run(queue, call, events, submission),
            ref command => put(queue, submission, events, command),
        }
    }
    fn record(
        buffer: Borrowed<'_, CommandBuffer>,
        ready: &Ready<'_, Self>,
        asked: Asked<'_, Self>,
    ) -> Appended<Self> {
        buffer.append(ready.name, recorded(&ready.command)?, asked)
    }
}
/// Puts a command into a queue, or, where the queue's device does not reach its memory, what a thread does there instead.
#[inline]
pub(super) fn put(
    queue: Borrowed<'_, Queue>,
    submission: Submission,
    events: &[Borrowed<'_, Event>],
    command: &Command<'_, LevelZero>,
) -> Made {
    if let Some(far) = Far::of(queue.context().borrow(), queue.device(), command)? {
        let submission = Submission { at_once: true, ..submission };
        return submission
            .put(queue, events, |list, kept| by_thread(&queue, list, kept, move || far.run()));
    }
    let appends = if is_one_append(command) { Appends::One } else { Appends::Any };
    let submission = Submission { appends, ..submission };
    submission.put(queue, events, |list, _| list.append(command))
}
/// Whether a command that does nothing but hold its place need not be there: the queue is where it would be.
fn is_superfluous(
    queue: Borrowed<'_, Queue>,
    events: &[Borrowed<'_, Event>],
    report: Report,
) -> bool {
    events.is_empty()
        && match report {
            Report::None => queue.is_in_order(),
            Report::Event => !queue.is_profiling() && queue.work().is_known_idle(),
            Report::Done { .. } => false,
        }
}
fn superfluous(queue: Borrowed<'_, Queue>, submission: &Submission) -> Made {
    queue.work().check()?;
    let over = || Ok(Event::of(submission.command, Signal::over(Home::Queue(queue.own()?))));
    submission.report.wants_event().then(over).transpose()
}

impl EnqueueApi for LevelZero {
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
        queue: Borrowed<'_, Queue>,
        buffer: Borrowed<'_, Mem>,
        blocking: bool,
        offset: usize,
        size: usize,
        to: UsmPtr,
        events: &[Borrowed<'_, Event>],
        want_event: bool,
    ) -> Made {
        let report = Report::of(blocking, want_event);
        enqueue_mem::mem_buffer_read(queue, buffer, (offset, size), to, events, report)
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
        let report = Report::of(blocking, want_event);
        enqueue_mem::mem_buffer_write(queue, buffer, (offset, size), from, events, report)
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
        let inside = (buffer, region::place(buffer_origin, buffer_row_pitch, buffer_slice_pitch));
        let host = (to, region::place(host_origin, host_row_pitch, host_slice_pitch));
        let report = Report::of(blocking, want_event);
        enqueue_mem::mem_buffer_read_rect(queue, inside, host, region, events, report)
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
        let inside = (buffer, region::place(buffer_origin, buffer_row_pitch, buffer_slice_pitch));
        let host = (from, region::place(host_origin, host_row_pitch, host_slice_pitch));
        let report = Report::of(blocking, want_event);
        enqueue_mem::mem_buffer_write_rect(queue, inside, host, region, events, report)
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
        let (mems, offsets) = ((from, to), (from_offset, to_offset));
        enqueue_mem::mem_buffer_copy(queue, mems, offsets, size, events, want_event)
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
        let source = (from, region::place(from_origin, from_row_pitch, from_slice_pitch));
        let target = (to, region::place(to_origin, to_row_pitch, to_slice_pitch));
        enqueue_mem::mem_buffer_copy_rect(queue, source, target, region, events, want_event)
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
        enqueue_mem::mem_buffer_fill(queue, buffer, pattern, (offset, size), events, want_event)
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
        let report = Report::of(blocking, want_event);
        enqueue_mem::mem_buffer_map(queue, buffer, flags, (offset, size), events, report)
    }
    fn enqueue_mem_unmap(
        queue: Borrowed<'_, Queue>,
        mem: Borrowed<'_, Mem>,
        at: UsmPtr,
        events: &[Borrowed<'_, Event>],
        want_event: bool,
    ) -> Made {
        enqueue_mem::mem_unmap(queue, mem, at, events, want_event)
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
        enqueue_image::mem_image_read(queue, blocking, &pixels, events, want_event)
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
        enqueue_image::mem_image_write(queue, blocking, &pixels, events, want_event)
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
        enqueue_image::mem_image_copy(queue, images, origins, region, events, want_event)
    }
    fn enqueue_device_global_variable_write(
        queue: Borrowed<'_, Queue>,
        program: Borrowed<'_, Program>,
        name: &CStr,
        blocking: bool,
        count: usize,
        offset: usize,
        host: UsmPtr,
        events: &[Borrowed<'_, Event>],
        want_event: bool,
    ) -> Made {
        let part = VariablePart { name, blocking, count, offset, host };
        launch::device_global_variable(queue, program, &part, true, events, want_event)
    }
    fn enqueue_device_global_variable_read(
        queue: Borrowed<'_, Queue>,
        program: Borrowed<'_, Program>,
        name: &CStr,
        blocking: bool,
        count: usize,
        offset: usize,
        host: UsmPtr,
        events: &[Borrowed<'_, Event>],
        want_event: bool,
    ) -> Made {
        let part = VariablePart { name, blocking, count, offset, host };
        launch::device_global_variable(queue, program, &part, false, events, want_event)
    }
}

impl EnqueueExpApi for LevelZero {
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
        launch::kernel_launch_with_args_exp(
            queue, kernel, offset, global, local, arguments, properties, events, want_event,
        )
    }
    fn enqueue_native_command_exp(
        queue: Borrowed<'_, Queue>,
        native_enqueue: ur_exp_enqueue_native_command_function_t,
        data: Option<UsmPtr>,
        _mem_list: &[Borrowed<'_, Mem>],
        _properties: Option<&ur_exp_enqueue_native_command_properties_t>,
        events: &[Borrowed<'_, Event>],
        want_event: bool,
    ) -> Made {
        native_command::run(queue, native_enqueue, data, events, want_event)
    }
    fn enqueue_command_buffer_exp(
        queue: Borrowed<'_, Queue>,
        buffer: Borrowed<'_, CommandBuffer>,
        events: &[Borrowed<'_, Event>],
        want_event: bool,
    ) -> Made {
        command_buffer::enqueue(queue, buffer, events, want_event)
    }
}
