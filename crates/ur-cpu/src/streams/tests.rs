//! Queues, events and commands through the C table.
#![expect(
    unsafe_code,
    clippy::undocumented_unsafe_blocks,
    clippy::multiple_unsafe_ops_per_block,
    reason = "plays the C caller"
)]
mod commands;
mod reusable;
mod single;

use super::super::{TABLE, the_device};
use std::{
    ffi::c_void,
    ptr::{null, null_mut},
    sync::{
        Condvar, Mutex,
        atomic::{AtomicU32, Ordering::SeqCst},
    },
    time::{Duration, Instant},
};
use ur_sys::*;

const OK: ur_result_t = ur_result_t::SUCCESS;
const DEADLINE: Duration = Duration::from_secs(20);

/// Polls `condition`; panics after the deadline.
fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let end = Instant::now() + DEADLINE;
    while !condition() {
        assert!(Instant::now() < end, "never: {what}");
        std::thread::yield_now();
    }
}

fn device() -> ur_device_handle_t {
    ur_device_handle_t(the_device().publish().cast())
}
fn context() -> ur_context_handle_t {
    let mut context = ur_context_handle_t::NULL;
    let create = TABLE.context.create.unwrap();
    assert_eq!(unsafe { create(1, &device(), null(), &mut context) }, OK);
    context
}
fn try_queue(flags: ur_queue_flags_t) -> Result<ur_queue_handle_t, ur_result_t> {
    let stype = ur_structure_type_t::QUEUE_PROPERTIES;
    let properties = ur_queue_properties_t { stype, pNext: null_mut(), flags };
    let mut queue = ur_queue_handle_t::NULL;
    let create = TABLE.queue.create.unwrap();
    match unsafe { create(context(), device(), &properties, &mut queue) } {
        OK => Ok(queue),
        code => Err(code),
    }
}
fn queue(flags: ur_queue_flags_t) -> ur_queue_handle_t {
    try_queue(flags).unwrap()
}
const IN_ORDER: ur_queue_flags_t = ur_queue_flags_t(0);
const OUT_OF_ORDER: ur_queue_flags_t = ur_queue_flags_t::OUT_OF_ORDER_EXEC_MODE_ENABLE;

fn finish(queue: ur_queue_handle_t) -> ur_result_t {
    unsafe { TABLE.queue.finish.unwrap()(queue) }
}
fn wait(events: &[ur_event_handle_t]) -> ur_result_t {
    unsafe { TABLE.event.wait.unwrap()(events.len() as u32, events.as_ptr()) }
}
fn release(event: ur_event_handle_t) {
    assert_eq!(unsafe { TABLE.event.release.unwrap()(event) }, OK);
}
fn status(event: ur_event_handle_t) -> ur_event_status_t {
    let mut status = ur_event_status_t(99);
    let (name, get) = (ur_event_info_t::COMMAND_EXECUTION_STATUS, TABLE.event.get_info.unwrap());
    let value = (&raw mut status).cast();
    assert_eq!(unsafe { get(event, name, 4, value, null_mut()) }, OK);
    status
}
fn time(event: ur_event_handle_t, name: ur_profiling_info_t) -> Result<u64, ur_result_t> {
    let mut time = 0u64;
    let get = TABLE.event.get_profiling_info.unwrap();
    match unsafe { get(event, name, 8, (&raw mut time).cast(), null_mut()) } {
        OK => Ok(time),
        code => Err(code),
    }
}
fn list(events: &[ur_event_handle_t]) -> (u32, *const ur_event_handle_t) {
    (events.len() as u32, if events.is_empty() { null() } else { events.as_ptr() })
}
/// Enqueues a barrier, and returns its event.
fn barrier(queue: ur_queue_handle_t, events: &[ur_event_handle_t]) -> ur_event_handle_t {
    let (count, events) = list(events);
    let mut event = ur_event_handle_t::NULL;
    let enqueue = TABLE.enqueue.events_wait_with_barrier.unwrap();
    assert_eq!(unsafe { enqueue(queue, count, events, &mut event) }, OK);
    event
}
/// Signals `event` by a barrier.
fn signal(
    queue: ur_queue_handle_t,
    events: &[ur_event_handle_t],
    mut event: ur_event_handle_t,
) -> ur_result_t {
    let (count, events) = list(events);
    let enqueue = TABLE.enqueue.events_wait_with_barrier_ext.unwrap();
    unsafe { enqueue(queue, null(), count, events, &mut event) }
}

/// A host task that waits until the door is opened.
#[derive(Default)]
struct Door(Mutex<bool>, Condvar);
impl Door {
    /// A closed door. It is never freed, because a queue may reach it after the end of the test; the list
    /// keeps it reachable for LeakSanitizer.
    fn shut() -> &'static Self {
        static DOORS: Mutex<Vec<&Door>> = Mutex::new(Vec::new());
        let door: &Self = Box::leak(Box::default());
        DOORS.lock().unwrap().push(door);
        door
    }
    fn open(&self) {
        *self.0.lock().unwrap() = true;
        self.1.notify_all();
    }
    unsafe extern "C" fn pass(door: *mut c_void) {
        let door = unsafe { &*door.cast::<Self>() };
        let closed = door.0.lock().unwrap();
        let (open, _) = door.1.wait_timeout_while(closed, DEADLINE, |open| !*open).unwrap();
        assert!(*open, "nobody opened the door");
    }
    /// Makes `queue` wait at the door.
    fn hold(&'static self, queue: ur_queue_handle_t) -> ur_event_handle_t {
        let mut event = ur_event_handle_t::NULL;
        let enqueue = TABLE.enqueue_exp.host_task_exp.unwrap();
        let data = std::ptr::from_ref(self).cast_mut().cast();
        let code = unsafe { enqueue(queue, Some(Self::pass), data, null(), 0, null(), &mut event) };
        assert_eq!(code, OK);
        event
    }
}
