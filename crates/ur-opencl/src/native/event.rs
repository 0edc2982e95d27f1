//! Ends of commands.
#![expect(unsafe_code, reason = "calls into the vendors' drivers")]
use super::own::{Own, Tells};
use crate::{cl::*, driver::*};
use std::ffi::c_void;
use ur_adapter::error::Result;
use ur_hal::Status;

/// What the driver says of a command: how far it has come, or why it failed.
///
/// # Errors
/// The driver's own.
pub fn raw_status(event: &Own<RawEvent>) -> Result<cl_int> {
    Ok(event.raw().number(CL_EVENT_COMMAND_EXECUTION_STATUS)? as u32 as i32)
}
/// How far a command has come. One that cannot be asked has failed.
pub fn status(event: &Own<RawEvent>) -> Status {
    match raw_status(event) {
        Ok(CL_COMPLETE) => Status::Complete,
        Ok(CL_RUNNING) => Status::Running,
        Ok(n) if n > 0 => Status::Submitted,
        _ => Status::Failed,
    }
}
/// Sleeps until it is over; how it is then.
pub fn wait(event: &Own<RawEvent>) -> Status {
    let now = status(event);
    if now.is_final() {
        return now;
    }
    let raw = event.raw();
    // SAFETY: one live event. What it came to is asked next.
    unsafe { driver().wait_for_events(1, &raw const raw) }.status();
    match status(event) {
        over if over.is_final() => over,
        _ => Status::Failed, // a wait that ends too early is one that failed
    }
}
/// When it began and ended, in nanoseconds of the device's clock.
///
/// # Errors
/// The driver's own.
pub fn span(event: &Own<RawEvent>) -> Result<(u64, u64)> {
    let time = |name| {
        let (mut time, raw) = (0_u64, event.raw());
        let to = (&raw mut time).cast::<c_void>();
        // SAFETY: a live event, and room for one time.
        unsafe { driver().get_event_profiling_info(raw, name, 8, to, std::ptr::null_mut()) }
            .ok()?;
        Ok::<_, ur_adapter::error::Error>(time)
    };
    Ok((time(CL_PROFILING_COMMAND_START)?, time(CL_PROFILING_COMMAND_END)?))
}
/// An event of the host's, which a queue can wait for.
///
/// # Errors
/// The driver's own.
pub fn of_user(context: RawContext) -> Result<Own<RawEvent>> {
    // SAFETY: a live context.
    unsafe { driver().create_user_event(context) }.map(Own::given)
}
/// Completes an event of the host's; whether what it stands for went well.
pub fn settle(event: &Own<RawEvent>, is_good: bool) {
    let status = if is_good { CL_COMPLETE } else { CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST };
    // SAFETY: a live event of ours, which is completed once.
    unsafe { driver().set_user_event_status(event.raw(), status) }.let_go();
}
/// Calls a function once the event is over, on a thread of the driver's: it must not call the driver.
///
/// # Errors
/// The driver's own; then the function is not called.
pub fn call_when_over(
    event: &Own<RawEvent>,
    call: impl FnOnce(bool) + Send + 'static,
) -> Result<()> {
    type Call = Box<dyn FnOnce(bool) + Send>;
    unsafe extern "C" fn over(_: *mut c_void, status: cl_int, word: *mut c_void) {
        // SAFETY: the word is what was passed below, once.
        let call = unsafe { Box::from_raw(word.cast::<Call>()) };
        // A panic must not reach the driver.
        let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| call(status >= 0)));
    }
    let word = Box::into_raw(Box::<Call>::new(Box::new(call)));
    // SAFETY: a live event; the driver calls once, with this word.
    let told = unsafe { driver().set_event_callback(event.raw(), CL_COMPLETE, over, word.cast()) };
    told.ok().inspect_err(|_| {
        // SAFETY: the driver did not take it.
        drop(unsafe { Box::from_raw(word) });
    })
}
