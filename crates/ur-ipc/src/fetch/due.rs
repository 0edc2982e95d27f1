//! Which lost connections are to be looked at, and when; what is done then is `lost`'s.
use crate::{fork::PerFork, liveness, locked};
use std::{collections::HashMap, sync::Mutex, time::Instant};

/// Which hosts are to be looked at, and when.
static DUE: PerFork<Mutex<HashMap<u64, Instant>>> = PerFork::new();

/// When one is to be looked at next.
pub(crate) fn next() -> Option<Instant> {
    DUE.peek().and_then(|due| locked(due).values().min().copied())
}
/// Those whose time has come, which are not to be looked at any more unless that is said again.
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
