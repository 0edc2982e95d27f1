//! Ended opens that no request has carried: the watcher thread reports them after a short time. A thread that keeps
//! opening and closing reports them with its next open; the exporter does not have to keep what an idle process has
//! closed.
use crate::{fork::PerFork, liveness, locked};
use std::{
    sync::Mutex,
    time::{Duration, Instant},
};

/// A closed open is reported after at most twice this time and what the watcher thread takes. It is short, because the
/// exporter keeps freed memory until the report; it is long enough for threads that open and close without a pause.
const SOON: Duration = Duration::from_millis(1);

/// When to check for ended opens; `None` while nothing has been closed.
static DUE: PerFork<Mutex<Option<Instant>>> = PerFork::new();

/// When to check next.
pub(crate) fn next() -> Option<Instant> {
    DUE.peek().and_then(|due| *locked(due))
}
/// Schedules a check because an open has ended. Only the first of many wakes the watcher thread.
pub(super) fn soon() {
    let Ok(due) = DUE.get() else { return };
    let mut due = locked(due);
    if due.is_none() {
        *due = Some(Instant::now() + SOON);
        drop(due);
        liveness::nudge();
    }
}
/// Whether a check is due.
pub(crate) fn is_due(now: Instant) -> bool {
    DUE.peek().is_some_and(|due| locked(due).take_if(|at| *at <= now).is_some())
}
/// Schedules another check, because opens had ended since the last one.
pub(crate) fn again(now: Instant) {
    if let Some(due) = DUE.peek() {
        locked(due).get_or_insert(now + SOON);
    }
}
