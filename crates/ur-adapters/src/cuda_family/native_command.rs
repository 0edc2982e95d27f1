//! `urEnqueueNativeCommandExp`: work that C submits to the driver itself, through a function that it
//! hands over and that asks the queue for its stream. The function runs before the entry returns, on
//! the calling thread, with the device's context current; what it puts into the queue's stream is
//! behind what the command waits for, and before the event that the command signals.
use super::{
    Event, Queue,
    driver::Dialect,
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
pub(super) fn run<D: Dialect>(
    queue: Borrowed<'_, Queue<D>>,
    function: ur_exp_enqueue_native_command_function_t,
    data: Option<UsmPtr>,
    events: &[Borrowed<'_, Event<D>>],
    want_event: bool,
) -> Made<D> {
    if function.is_none() {
        return Err(ErrorCode::InvalidNullPointer.into());
    }
    let queue = queue.own()?; // the function may do with C's references what it likes
    let (command, profile) = (ur_command_t::ENQUEUE_NATIVE_EXP, queue.profile());
    let submission = |report| Submission { command, order: Order::Both, report, profile };
    // A barrier, so that the stream which C is told of is behind everything in an out-of-order queue.
    submission(Report::None).put(queue.borrow(), events, |_| Ok(()), |_| Ok(()))?;
    let on = queue.device().enter()?;
    queue.work().keep_first_behind_barrier(&on)?;
    command::call(function, ur_queue_handle_t(queue.as_handle().cast()), data)?;
    submission(Report::event(want_event)).put(queue.borrow(), &[], |_| Ok(()), |_| Ok(()))
}
