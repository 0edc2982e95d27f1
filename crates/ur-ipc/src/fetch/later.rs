//! Closed opens that no request has taken along: they are said after a short while, by the watcher thread. Whoever opens
//! and closes again and again says them with his next open; what an idle process closed is not kept for it.
use crate::{fork::PerFork, hosts, liveness, locked};
use std::{
    sync::Mutex,
    time::{Duration, Instant},
};

/// How long it is at the most until a closed open is said: twice this, and what the watcher thread takes.
const SOON: Duration = Duration::from_millis(5);

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
/// Says what is still to be said, if it is time; on the watcher thread. Looks again as long as things are closed.
pub(crate) fn look() {
    let Some(due) = DUE.peek() else { return };
    let now = Instant::now();
    if locked(due).take_if(|at| *at <= now).is_none() {
        return;
    }
    let busy = hosts::all().iter().filter(|host| host.say_ends()).count();
    if busy > 0 {
        locked(due).get_or_insert(now + SOON);
    }
}
