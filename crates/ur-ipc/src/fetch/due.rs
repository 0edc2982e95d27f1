//! When each lost connection is to be checked next. The check itself is left to `lost`.
use crate::{fork::PerFork, liveness, locked};
use std::{collections::HashMap, sync::Mutex, time::Instant};

/// The hosts to be checked, and when.
static DUE: PerFork<Mutex<HashMap<u64, Instant>>> = PerFork::new();

/// When the next check is due.
pub(crate) fn next() -> Option<Instant> {
    DUE.peek().and_then(|due| locked(due).values().min().copied())
}
/// Takes the hosts whose check is due. They are not checked again unless they are scheduled again.
pub(super) fn take(now: Instant) -> Vec<u64> {
    DUE.peek().map_or_else(Vec::new, |due| {
        locked(due).extract_if(|_, at| *at <= now).map(|(id, _)| id).collect()
    })
}
pub(super) fn look_at(id: u64, at: Instant) {
    if let Ok(due) = DUE.get() {
        locked(due).entry(id).and_modify(|known| *known = at.min(*known)).or_insert(at);
    }
}
pub(super) fn look_at_once(id: u64) {
    look_at(id, Instant::now());
    liveness::nudge();
}
