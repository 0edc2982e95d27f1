//! Looking again before falling asleep on a debt. When that helps is `ur_mapping::spin`'s to know.
use std::{cell::Cell, time::Instant};
use ur_mapping::spin::{self, Hope, SPIN};

thread_local! {
    static DEBTS: Cell<Hope> = const { Cell::new(Hope::FIRST) };
}

/// Looks for something for 20 µs at most, and not beyond the deadline.
pub(super) fn look_for<T>(deadline: Option<Instant>, look: impl FnMut() -> Option<T>) -> Option<T> {
    let limit = deadline.map_or(SPIN, |at| at.saturating_duration_since(Instant::now()).min(SPIN));
    spin::look_for(&DEBTS, limit, look)
}
