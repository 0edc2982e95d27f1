//! `urEnqueueNativeCommandExp`: work that C does itself, through a function that it hands over.
//! The function is there to enqueue through whatever lies below, and what it is given need not
//! outlive the call. So it runs before the entry returns, on the calling thread, once everything
//! that must come first has ended: it may itself enqueue to the queue, and wait for it. What it
//! enqueued is before the event that the command signals.
#![expect(unsafe_code, reason = "calls a function that C gave")]
use super::{
    Event, Queue,
    engine::Order,
    enqueue::{Made, enqueue, place},
};
use std::ptr::null_mut;
use ur_adapter::{command::Report, error::ErrorCode, memory::UsmPtr, object::Borrowed};
use ur_sys::{ur_command_t, ur_exp_enqueue_native_command_function_t, ur_queue_handle_t};

/// Runs `function` with the queue and `data` in the queue's order.
///
/// # Errors
/// What enqueueing fails with; `IN_EVENT_LIST_EXEC_STATUS` where something that must come first
/// failed. Then the function was not called, unless it was the last step that failed.
pub(super) fn run(
    queue: Borrowed<'_, Queue>,
    function: ur_exp_enqueue_native_command_function_t,
    data: Option<UsmPtr>,
    events: &[Borrowed<'_, Event>],
    want_event: bool,
) -> Made {
    let function = function.ok_or(ErrorCode::InvalidNullPointer)?;
    let queue = queue.own()?; // the function may do with C's references what it likes
    let command = ur_command_t::ENQUEUE_NATIVE_EXP;
    let before = Report::Done { event: false };
    enqueue(queue.borrow(), command, events, place(Order::AfterAll), before)?;
    let handle = ur_queue_handle_t(queue.as_handle().cast());
    // SAFETY: C gave the function for exactly this: this queue and this data, during this call.
    unsafe { function(handle, data.map_or(null_mut(), UsmPtr::as_ptr)) };
    enqueue(queue.borrow(), command, &[], place(Order::Both), Report::event(want_event))
}
