//! Ends of commands.
#![expect(unsafe_code, reason = "calls into the vendors' drivers")]
use super::own::{Own, bytes, number};
use crate::{cl::*, driver::*, log::notice};
use std::{
    ffi::c_void,
    ptr::null_mut,
    sync::{Arc, OnceLock},
    time::{Duration, Instant},
};
use ur_hal::{Result, Severity, Status, repeated, wait_for_taken};

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
/// How far a command has come.
///
/// # Errors
/// The driver's own: it says nothing of the command.
pub fn status(event: &Own<RawEvent>) -> Result<Status> {
    Ok(match raw_status(event)? {
        CL_COMPLETE => Status::Complete,
        CL_RUNNING => Status::Running,
        n if n > 0 => Status::Submitted,
        _ => Status::Failed,
    })
}
/// Waits in the driver, which flushes the queue, until a command of an in-order queue is complete or has failed; returns its status then.
///
/// # Errors
/// As for [`status`].
pub fn wait_in_order(event: &Own<RawEvent>) -> Result<Status> {
    let raw = event.raw();
    // SAFETY: one live event.
    let waited = unsafe { driver().wait_for_events(1, &raw const raw) };
    // An error is the command's, or the driver could not wait.
    if waited.status() == Some(CL_SUCCESS) { Ok(Status::Complete) } else { look(event, None) }
}
/// Looks now and then until the command is over or the deadline passes; returns its status then.
///
/// # Errors
/// As for [`status`], if the driver does not tell for a second.
#[cold]
fn look(event: &Own<RawEvent>, deadline: Option<Instant>) -> Result<Status> {
    let mut said = Ok(Status::Submitted);
    let is_over = || {
        said = status(event);
        let is_late = || deadline.is_some_and(|at| Instant::now() >= at);
        said.clone().map(|now| now.is_final() || is_late())
    };
    wait_for_taken(is_over);
    said
}
/// Waits until a flushed command is complete or has failed, or until the deadline; returns its status then. A callback wakes the thread.
/// For a deadline OpenCL has no wait. For out-of-order queues, a thread that waits in Intel's runtime takes one of the places for threads that run
/// commands, of which there are as many as processors; where another thread then waits for a place to run what the first one waits for, neither returns.
///
/// # Errors
/// As for [`status`].
pub fn wait(event: &Own<RawEvent>, deadline: Option<Instant>) -> Result<Status> {
    /// Within this time a short command is over, and its end is seen sooner than a sleeping thread would be woken.
    const LOOK: Duration = Duration::from_micros(20);
    let began = Instant::now();
    while began.elapsed() < LOOK {
        if let Ok(now) = status(event)
            && now.is_final()
        {
            return Ok(now);
        }
        std::hint::spin_loop();
    }
    let (end, me) = (Arc::new(OnceLock::new()), std::thread::current());
    let tell = Arc::clone(&end);
    let asked = call_when_over(event, move |is_good| {
        let _ = tell.set(is_good); // it is called once
        me.unpark();
    });
    if asked.is_err() {
        return look(event, deadline);
    }
    loop {
        let left = deadline.map(|at| at.saturating_duration_since(Instant::now()));
        match (end.get(), left) {
            (Some(true), _) => return Ok(Status::Complete),
            (Some(false), _) => return Ok(Status::Failed),
            (None, Some(Duration::ZERO)) => return status(event),
            (None, Some(left)) => std::thread::park_timeout(left),
            (None, None) => std::thread::park(),
        }
    }
}
/// When it began and ended, in nanoseconds of the device's clock.
///
/// # Errors
/// The driver's own.
pub fn span(event: &Own<RawEvent>) -> Result<(u64, u64)> {
    let time = |name| {
        // SAFETY: a live event; `bytes` passes room for as much as it says.
        bytes(|size, to, length| unsafe {
            driver().get_event_profiling_info(event.raw(), name, size, to, length)
        })
    };
    let (began, ended) = (time(CL_PROFILING_COMMAND_START)?, time(CL_PROFILING_COMMAND_END)?);
    Ok((number(&began), number(&ended)))
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
    if !is_unusable() {
        // SAFETY: a live event of ours, which is completed once.
        let set = || unsafe { driver().set_user_event_status(event.raw(), CL_COMPLETE) }.ok();
        // What waits for it hangs otherwise.
        let _logged = repeated(set).inspect_err(|error| notice(Severity::Error, error));
    }
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
    let tell =
        || unsafe { driver().set_event_callback(event.raw(), CL_COMPLETE, over, word.cast()) };
    repeated(|| tell().ok()).inspect_err(|_| {
        // SAFETY: the driver did not take it.
        drop(unsafe { Box::from_raw(word) });
    })
}
