//! Ends of commands.
#![expect(unsafe_code, reason = "calls into the vendors' drivers")]
use super::own::Own;
use crate::{cl::*, driver::*};
use std::{
    ffi::c_void,
    ptr::null_mut,
    sync::{Arc, OnceLock},
    time::{Duration, Instant},
};
use ur_adapter::error::Result;
use ur_hal::Status;

/// What the driver says of a command: how far it has come, or why it failed.
///
/// # Errors
/// The driver's own.
pub fn raw_status(event: &Own<RawEvent>) -> Result<cl_int> {
    let (mut status, raw) = (0, event.raw());
    let to = (&raw mut status).cast::<c_void>();
    let name = CL_EVENT_COMMAND_EXECUTION_STATUS;
    // SAFETY: a live event, and room for one status.
    unsafe { driver().get_event_info(raw, name, size_of::<cl_int>(), to, null_mut()) }.ok()?;
    Ok(status)
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
/// Sleeps in the driver until a command of an in-order queue is over; how it is then.
pub fn wait_in_order(event: &Own<RawEvent>) -> Status {
    let raw = event.raw();
    // SAFETY: one live event. What it came to is asked next.
    unsafe { driver().wait_for_events(1, &raw const raw) }.status();
    match status(event) {
        over if over.is_final() => over,
        _ => Status::Failed, // a wait that ends too early is one that failed
    }
}
/// Sleeps until a command that was sent off is over, or the deadline has passed; how it is then. `nudge` sends off again what its queue
/// has. The driver is not waited in: where several threads each have an out-of-order queue, Intel's runtime does not come back from
/// that now and then, and forgets commands until a thread calls it.
pub fn wait(event: &Own<RawEvent>, nudge: impl Fn(), deadline: Option<Instant>) -> Status {
    /// How long a command is not forgotten.
    const NUDGE: Duration = Duration::from_millis(5);
    /// Within this time a short command is over, and its end is seen sooner than a sleeping thread would be woken.
    const LOOK: Duration = Duration::from_micros(20);
    let began = Instant::now();
    loop {
        let now = status(event);
        if now.is_final() {
            return now;
        }
        if began.elapsed() > LOOK {
            break;
        }
        std::hint::spin_loop();
    }
    let (told, me) = (Arc::new(OnceLock::new()), std::thread::current());
    let tell = Arc::clone(&told);
    let asked = call_when_over(event, move |is_good| {
        let _ = tell.set(is_good); // it is called once
        me.unpark();
    });
    if asked.is_err() {
        return Status::Failed;
    }
    loop {
        let is_good = told.get();
        let now = status(event);
        let left = deadline.map(|at| at.saturating_duration_since(Instant::now()));
        match (now, is_good, left) {
            (now, ..) if now.is_final() => return now,
            (_, Some(true), _) => return Status::Complete,
            (_, Some(false), _) => return Status::Failed,
            (now, None, Some(Duration::ZERO)) => return now,
            (_, None, left) => {
                std::thread::park_timeout(left.map_or(NUDGE, |left| left.min(NUDGE)))
            }
        }
        nudge();
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
        unsafe { driver().get_event_profiling_info(raw, name, 8, to, null_mut()) }.ok()?;
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
/// Completes an event of the host's. Never as a failure: Intel's runtime crashes where a command of an out-of-order queue
/// waits for one that fails. What failed is known to the points behind it ([`Debt`](crate::point::Debt)).
pub fn settle(event: &Own<RawEvent>) {
    // SAFETY: a live event of ours, which is completed once.
    unsafe { driver().set_user_event_status(event.raw(), CL_COMPLETE) }.let_go();
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
