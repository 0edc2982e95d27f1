//! Command buffers and graphs as a C program makes and runs them.
use super::{
    code::{Argument, Codes, Items},
    ur::*,
};
use crate::call;
use std::{
    ffi::c_void,
    ptr::{null, null_mut},
};

pub type Buffer = ur_exp_command_buffer_handle_t;
pub type Point = ur_exp_command_buffer_sync_point_t;
pub type Command = ur_exp_command_buffer_command_handle_t;
pub type Event = ur_event_handle_t;

/// What a command comes after, and what C wants of it.
#[derive(Clone, Copy, Default)]
pub struct Ask<'a> {
    pub points: &'a [Point],
    pub events: &'a [Event],
    pub event: bool,
    pub command: bool,
}
pub fn after(points: &[Point]) -> Ask<'_> {
    Ask { points, ..Ask::default() }
}
/// What appending gave.
#[derive(Clone, Copy, Debug)]
pub struct Appended {
    pub point: Point,
    pub event: Event,
    pub command: Command,
}
pub fn list<T>(of: &[T]) -> *const T {
    if of.is_empty() { null() } else { of.as_ptr() }
}

#[derive(Clone, Copy)]
pub struct Commands {
    pub codes: Codes,
    pub ur: Ur,
    pub queue: ur_queue_handle_t,
}
impl Commands {
    pub fn new() -> Self {
        let codes = Codes::new();
        Self { codes, ur: codes.ur, queue: codes.queue }
    }
    pub fn out_of_order(&self) -> ur_queue_handle_t {
        self.ur.new_queue(ur_queue_flags_t::OUT_OF_ORDER_EXEC_MODE_ENABLE)
    }
    /// `flags`: updatable, in order, profiled.
    pub fn create(&self, flags: [bool; 3]) -> Outcome<Buffer> {
        let [updatable, in_order, profiled] = flags.map(u8::from);
        let desc = ur_exp_command_buffer_desc_t {
            stype: ur_structure_type_t::EXP_COMMAND_BUFFER_DESC,
            pNext: null(),
            isUpdatable: updatable,
            isInOrder: in_order,
            enableProfiling: profiled,
        };
        let mut buffer = Buffer::NULL;
        let (context, device) = (self.ur.context, self.ur.device);
        self.ur.check(call!(command_buffer_exp.create_exp(context, device, &desc, &mut buffer)))?;
        Ok(buffer)
    }
    pub fn loose(&self) -> Buffer {
        self.create([false; 3]).unwrap()
    }
    pub fn finalize(&self, buffer: Buffer) -> Outcome<()> {
        self.ur.check(call!(command_buffer_exp.finalize_exp(buffer)))
    }
    pub fn release(&self, buffer: Buffer) {
        assert_eq!(call!(command_buffer_exp.release_exp(buffer)), ur_result_t::SUCCESS);
    }
    pub fn enqueue_on(
        &self,
        queue: ur_queue_handle_t,
        buffer: Buffer,
        events: &[Event],
    ) -> Outcome<Event> {
        let mut event = Event::NULL;
        let (count, events) = (events.len() as u32, list(events));
        let code = call!(enqueue_exp.command_buffer_exp(queue, buffer, count, events, &mut event));
        self.ur.check(code).map(|()| event)
    }
    /// Runs it once, and waits.
    pub fn run(&self, buffer: Buffer) -> Outcome<()> {
        let event = self.enqueue_on(self.queue, buffer, &[])?;
        self.codes.wait(event);
        Ok(())
    }
    /// Calls `entry` with the arguments that all appending entries end in.
    pub fn append(
        &self,
        ask: Ask<'_>,
        entry: impl FnOnce(
            (u32, *const Point),
            (u32, *const Event),
            (*mut Point, *mut Event, *mut Command),
        ) -> ur_result_t,
    ) -> Outcome<Appended> {
        let (mut point, mut event, mut command) = (0, Event::NULL, Command::NULL);
        let points = (ask.points.len() as u32, list(ask.points));
        let events = (ask.events.len() as u32, list(ask.events));
        let to_event = if ask.event { &raw mut event } else { null_mut() };
        let to_command = if ask.command { &raw mut command } else { null_mut() };
        let code = entry(points, events, (&mut point, to_event, to_command));
        self.ur.check(code)?;
        Ok(Appended { point, event, command })
    }
    pub fn copy<T>(
        &self,
        buffer: Buffer,
        (to, from, bytes): (*mut T, *const T, usize),
        ask: Ask<'_>,
    ) -> Outcome<Appended> {
        let (to, from) = (to.cast::<c_void>(), from.cast::<c_void>());
        self.append(ask, |(n, points), (m, events), (point, event, command)| {
            call!(command_buffer_exp.append_usm_memcpy_exp(
                buffer, to, from, bytes, n, points, m, events, point, event, command
            ))
        })
    }
    pub fn fill<T, P>(
        &self,
        buffer: Buffer,
        (to, pattern, bytes): (*mut T, &P, usize),
        ask: Ask<'_>,
    ) -> Outcome<Appended> {
        let (to, pattern) = (to.cast::<c_void>(), (&raw const *pattern).cast::<c_void>());
        let size = size_of::<P>();
        self.append(ask, |(n, points), (m, events), (point, event, command)| {
            call!(command_buffer_exp.append_usm_fill_exp(
                buffer, to, pattern, size, bytes, n, points, m, events, point, event, command
            ))
        })
    }
    pub fn launch(
        &self,
        buffer: Buffer,
        (kernel, others): (ur_kernel_handle_t, &[ur_kernel_handle_t]),
        items: Items<'_>,
        arguments: &[Argument],
        ask: Ask<'_>,
    ) -> Outcome<Appended> {
        let first = |of: Option<&[usize]>| of.map_or(null(), <[usize]>::as_ptr);
        let (offset, global, local) =
            (first(items.offset), items.global.as_ptr(), first(items.local));
        let (dimensions, count) = (items.global.len() as u32, arguments.len() as u32);
        let (arguments, more) = (list(arguments), others.len() as u32);
        let others = list(others).cast_mut();
        self.append(ask, |(n, points), (m, events), (point, event, command)| {
            call!(command_buffer_exp.append_kernel_launch_with_args_exp(
                buffer, kernel, dimensions, offset, global, local, count, arguments, more, others,
                n, points, m, events, point, event, command
            ))
        })
    }
    pub fn status(&self, event: Event) -> Outcome<u32> {
        let name = ur_event_info_t::COMMAND_EXECUTION_STATUS;
        self.ur.value(|size, to, ret| call!(event.get_info(event, name, size, to, ret)))
    }
    pub fn host_task(
        &self,
        queue: ur_queue_handle_t,
        function: unsafe extern "C" fn(*mut c_void),
        data: *mut c_void,
        events: &[Event],
    ) -> Outcome<Event> {
        let mut event = Event::NULL;
        let (count, events) = (events.len() as u32, list(events));
        let code = call!(enqueue_exp.host_task_exp(
            queue,
            Some(function),
            data,
            null(),
            count,
            events,
            &mut event
        ));
        self.ur.check(code).map(|()| event)
    }
    pub fn memcpy<T>(
        &self,
        queue: ur_queue_handle_t,
        (to, from, bytes): (*mut T, *const T, usize),
        events: &[Event],
    ) -> Outcome<Event> {
        let mut event = Event::NULL;
        let (count, events) = (events.len() as u32, list(events));
        let code = call!(enqueue.usm_memcpy(
            queue,
            false,
            to.cast(),
            from.cast(),
            bytes,
            count,
            events,
            &mut event
        ));
        self.ur.check(code).map(|()| event)
    }
    pub fn finish(&self, queue: ur_queue_handle_t) -> Outcome<()> {
        self.ur.check(call!(queue.finish(queue)))
    }
}
