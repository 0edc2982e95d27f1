//! Waiting with a deadline for what can only be asked about: often at first, then rarely.
use crate::{Context, Error, ErrorKind, Result, Status, ffi};
use std::{
    thread,
    time::{Duration, Instant},
};

/// How long to ask without a pause: about as long as a sleep costs.
const SPIN: Duration = Duration::from_micros(20);
/// The longest pause between two questions.
const PAUSE: Duration = Duration::from_micros(500);

/// A duration as milliseconds that fit.
pub(crate) fn millis(duration: Duration) -> u64 {
    duration.as_millis().try_into().unwrap_or(u64::MAX)
}

/// Waits until the command behind `event` is done. `event` is a command's: a reusable one would follow later signals.
///
/// # Errors
/// What the command failed with, or [`ErrorKind::TimedOut`].
pub(crate) fn done(event: &ffi::Event, timeout: Duration) -> Result<()> {
    let start = Instant::now();
    let mut pause = Duration::from_micros(10);
    loop {
        match event.status()? {
            Status::Complete => return Ok(()),
            Status::Failed => return failure(event),
            Status::Submitted | Status::Running => {}
        }
        let waited = start.elapsed();
        if waited >= timeout {
            return Err(timed_out(timeout));
        }
        if waited < SPIN {
            std::hint::spin_loop();
        } else {
            thread::sleep(pause.min(timeout - waited));
            pause = (pause * 2).min(PAUSE);
        }
    }
}

/// The same for any event: what it stands for now.
pub(crate) fn settled(context: &Context, event: &ffi::Event, timeout: Duration) -> Result<()> {
    if event.status()? == Status::Complete {
        return Ok(());
    }
    let begun = Instant::now();
    let now = context.capture(event)?;
    done(&now, timeout.saturating_sub(begun.elapsed()))
}

/// Why a failed command failed; waiting for it does not block any more.
fn failure(event: &ffi::Event) -> Result<()> {
    event.settle()?;
    Err(Error::runtime("urEventGetInfo", crate::Code::ERROR_IN_EVENT_LIST_EXEC_STATUS, "", 0))
}

fn timed_out(timeout: Duration) -> Error {
    let sentence = format!(
        "the wait was given up after {timeout:?}: what it waited for has not happened yet, and whoever owes it may be busy or stuck; wait again, or longer (Context::set_patience)"
    );
    Error::new(ErrorKind::TimedOut, sentence)
}
