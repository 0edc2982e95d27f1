//! `urEnqueueNativeCommandExp`: work that C submits to the driver itself, through a function that it
//! hands over and that asks the queue for its command list. The function runs before the entry returns, on
//! the calling thread; what it puts into the queue's list is
//! behind what the command waits for, and before the event that the command signals.
use super::{
    Event, Queue,
    native::command,
    submission::{Made, Submission},
};
use ur_adapter::{command::Report, error::ErrorCode, memory::UsmPtr, object::Borrowed};
use ur_hal::Order;
use ur_sys::{ur_command_t, ur_exp_enqueue_native_command_function_t, ur_queue_handle_t};

/// Runs `function` with the queue and `data` in the queue's order.
///
/// # Errors
/// What enqueueing fails with; then the function was not called, unless it was the last step.
pub(super) fn run(
    queue: Borrowed<'_, Queue>,
    function: ur_exp_enqueue_native_command_function_t,
    data: Option<UsmPtr>,
    events: &[Borrowed<'_, Event>],
    want_event: bool,
) -> Made {
    if function.is_none() {
        return Err(ErrorCode::InvalidNullPointer.into());
    }
    let queue = queue.own()?; // the function may do with C's references what it likes
    let command = ur_command_t::ENQUEUE_NATIVE_EXP;
    let submission = |report| {
        let plain = Submission::new(queue.borrow(), command, report);
        Submission { order: Order::Both, at_once: true, ..plain }
    };
    // A barrier, so that the list which C is told of is behind everything in an out-of-order queue.
    submission(Report::None).put(queue.borrow(), events, |list, _| list.barrier())?;
    queue.work().keep_first_behind_barrier()?;
    command::call(function, ur_queue_handle_t(queue.as_handle().cast()), data)?;
    submission(Report::event(want_event)).put(queue.borrow(), &[], |list, _| list.barrier())
}
