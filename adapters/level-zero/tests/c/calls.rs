//! What tests of queues ask of the adapter, in a line each.
#![allow(dead_code, reason = "each test binary uses its own part")]

use crate::{c::One, call};
use std::{
    ffi::c_void,
    ptr::{null, null_mut},
    time::{Duration, Instant},
};
use ur_sys::{ur_profiling_info_t as Time, ur_queue_flags_t as Flags, ur_result_t as R, *};

pub const NO_EVENT: ur_event_handle_t = ur_event_handle_t(null_mut());
pub const NO_QUEUE: ur_queue_handle_t = ur_queue_handle_t::NULL;

pub fn queue(one: &One, flags: Flags) -> ur_queue_handle_t {
    let stype = ur_structure_type_t::QUEUE_PROPERTIES;
    let properties = ur_queue_properties_t { stype, pNext: null_mut(), flags };
    let mut made = ur_queue_handle_t::NULL;
    let code = call!(queue.create(one.context, one.device, &raw const properties, &mut made));
    assert_eq!(code, R::SUCCESS);
    made
}
pub fn release(queue: ur_queue_handle_t) {
    assert_eq!(call!(queue.finish(queue)), R::SUCCESS);
    assert_eq!(call!(queue.release(queue)), R::SUCCESS);
}
pub fn wait(event: ur_event_handle_t) {
    assert_eq!(call!(event.wait(1, &raw const event)), R::SUCCESS);
}
pub fn let_go(event: ur_event_handle_t) {
    assert_eq!(call!(event.release(event)), R::SUCCESS);
}
pub fn barrier(queue: ur_queue_handle_t, waits: &[ur_event_handle_t]) -> ur_event_handle_t {
    let mut event = NO_EVENT;
    let (count, list) =
        (waits.len() as u32, if waits.is_empty() { null() } else { waits.as_ptr() });
    let code = call!(enqueue.events_wait_with_barrier(queue, count, list, &mut event));
    assert_eq!(code, R::SUCCESS);
    event
}
pub fn status(event: ur_event_handle_t) -> ur_event_status_t {
    let (mut status, name) = (ur_event_status_t(0), ur_event_info_t::COMMAND_EXECUTION_STATUS);
    let to = (&raw mut status).cast();
    assert_eq!(call!(event.get_info(event, name, 4usize, to, null_mut())), R::SUCCESS);
    status
}
pub fn time(event: ur_event_handle_t, name: Time) -> u64 {
    let mut time = 0u64;
    let to = (&raw mut time).cast();
    assert_eq!(call!(event.get_profiling_info(event, name, 8usize, to, null_mut())), R::SUCCESS);
    time
}
/// An event that is signalled again and again.
pub fn reusable(one: &One) -> ur_event_handle_t {
    let stype = ur_structure_type_t::EXP_EVENT_DESC;
    let desc = ur_exp_event_desc_t { stype, pNext: null(), flags: Default::default() };
    let mut event = NO_EVENT;
    let code = call!(event_exp.create_exp(one.context, one.device, &raw const desc, &mut event));
    assert_eq!(code, R::SUCCESS);
    event
}
pub fn signal(queue: ur_queue_handle_t, event: ur_event_handle_t) {
    let (mut signalled, no, list) = (event, null(), null());
    let to = &raw mut signalled;
    let code = call!(enqueue.events_wait_with_barrier_ext(queue, no, 0, list, to));
    assert_eq!(code, R::SUCCESS);
}
pub fn event_at(address: usize) -> ur_event_handle_t {
    ur_event_handle_t(std::ptr::with_exposed_provenance_mut(address))
}

pub fn fill(queue: ur_queue_handle_t, at: *mut c_void, byte: u8) -> ur_event_handle_t {
    let (mut event, pattern) = (NO_EVENT, (&raw const byte).cast());
    let code =
        call!(enqueue.usm_fill(queue, at, 1usize, pattern, 4096usize, 0, null(), &mut event));
    assert_eq!(code, R::SUCCESS);
    event
}
pub fn is_complete_in_time(event: ur_event_handle_t) -> bool {
    let deadline = Instant::now() + Duration::from_secs(20);
    while status(event) != ur_event_status_t::COMPLETE {
        if Instant::now() > deadline {
            return false;
        }
        std::thread::yield_now();
    }
    true
}
/// A copy of 4096 bytes behind `waits`.
pub fn copy(
    queue: ur_queue_handle_t,
    (to, from): (*mut c_void, *mut c_void),
    waits: &[ur_event_handle_t],
) -> ur_event_handle_t {
    let mut event = NO_EVENT;
    let (count, list) =
        (waits.len() as u32, if waits.is_empty() { null() } else { waits.as_ptr() });
    let code =
        call!(enqueue.usm_memcpy(queue, false, to, from, 4096usize, count, list, &mut event));
    assert_eq!(code, R::SUCCESS);
    event
}
