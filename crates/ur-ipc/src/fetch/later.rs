//! Closed opens that no request has taken along: they are said after a short while, by the watcher thread. Whoever opens
//! and closes again and again says them with his next open; what an idle process closed is not kept for it.
use crate::{fork::PerFork, liveness, locked};
use std::{
    sync::Mutex,
    time::{Duration, Instant},
};

/// How long it is at the most until a closed open is said: twice this, and what the watcher thread takes. Short, since
/// the exporter keeps memory for it that was freed; long enough for those who open and close without a pause.
const SOON: Duration = Duration::from_millis(1);

/// When to look for what is to be said; nothing while nobody closes anything.
static DUE: PerFork<Mutex<Option<Instant>>> = PerFork::new();

/// When to look next.
pub(crate) fn next() -> Option<Instant> {
    DUE.peek().and_then(|due| *locked(due))
}
/// Something was closed. The watcher thread is woken for the first of many only.
pub(super) fn soon() {
    let Ok(due) = DUE.get() else { return };
    let mut due = locked(due);
    if due.is_none() {
        *due = Some(Instant::now() + SOON);
        drop(due);
        liveness::nudge();
    }
}
/// Whether it is time to say what is still to be said.
pub(crate) fn is_due(now: Instant) -> bool {
    DUE.peek().is_some_and(|due| locked(due).take_if(|at| *at <= now).is_some())
}
/// Something was closed while that was said: soon once more.
pub(crate) fn again(now: Instant) {
    if let Some(due) = DUE.peek() {
        locked(due).get_or_insert(now + SOON);
    }
}
