//! Waiting with a deadline, for which the ABI has no call: brief polling, then sleeping until a callback wakes the
//! thread.
use crate::{Context, Error, ErrorKind, Result, Status, ffi};
use std::{
    sync::{Arc, Condvar, Mutex},
    time::{Duration, Instant},
};
use ur_lock::locked;

/// How long to poll without a pause: about as long as a sleep costs.
const SPIN: Duration = Duration::from_micros(20);
/// How long to sleep before the next poll: the first if the adapter makes no callbacks, the second if it does. The
/// status decides in both cases.
const PAUSE: Duration = Duration::from_micros(500);
const LONG_PAUSE: Duration = Duration::from_millis(50);

/// Wakes a waiting thread from a callback.
#[derive(Debug, Default)]
pub(crate) struct Bell {
    rung: Mutex<bool>,
    sound: Condvar,
}
impl Bell {
    pub(crate) fn ring(&self) {
        *locked(&self.rung) = true;
        self.sound.notify_all();
    }
    /// Sleeps until `ring` is called, for at most `pause`.
    fn hear(&self, pause: Duration) {
        let rung = locked(&self.rung);
        // The result does not matter: the caller checks the status.
        drop(self.sound.wait_timeout_while(rung, pause, |rung| !*rung));
    }
}

/// A duration in milliseconds; the largest number if it does not fit.
pub(crate) fn millis(duration: Duration) -> u64 {
    duration.as_millis().try_into().unwrap_or(u64::MAX)
}

/// Waits until the command of `event` is done. A reusable event must be captured first, because it would follow later
/// signals.
///
/// # Errors
/// The error of the command, or [`ErrorKind::TimedOut`].
pub(crate) fn done(event: &ffi::Event, timeout: Duration) -> Result<()> {
    let start = Instant::now();
    let mut bell: Option<(Arc<Bell>, Duration)> = None;
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
            continue;
        }
        let (bell, pause) = bell.get_or_insert_with(|| {
            let bell = Arc::<Bell>::default();
            let rings = event.ring_at_end(&bell).is_ok();
            (bell, if rings { LONG_PAUSE } else { PAUSE })
        });
        bell.hear((*pause).min(timeout - waited));
    }
}

/// Waits for what any event stands for now.
pub(crate) fn settled(context: &Context, event: &ffi::Event, timeout: Duration) -> Result<()> {
    if event.status()? == Status::Complete {
        return Ok(());
    }
    let begun = Instant::now();
    let now = context.capture(event)?;
    done(&now, timeout.saturating_sub(begun.elapsed()))
}

/// The error of a failed command; waiting for it does not block any more.
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
