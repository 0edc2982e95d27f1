//! Polling a pending signal before sleeping on it. `ur_mapping::spin` decides when that is worthwhile.
use std::{cell::Cell, time::Instant};
use ur_mapping::spin::{self, Hope, SPIN};

thread_local! {
    static DEBTS: Cell<Hope> = const { Cell::new(Hope::FIRST) };
}

/// Polls with `look` for at most 20 µs, and not beyond the deadline.
pub(super) fn look_for<T>(deadline: Option<Instant>, look: impl FnMut() -> Option<T>) -> Option<T> {
    let limit = deadline.map_or(SPIN, |at| at.saturating_duration_since(Instant::now()).min(SPIN));
    spin::look_for(&DEBTS, limit, look)
}
