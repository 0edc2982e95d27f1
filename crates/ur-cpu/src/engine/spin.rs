//! Polling for a short time before sleeping. `ur_mapping::spin` learns for each thread whether that is
//! useful, separately for waits for commands and for waits for new commands.
use std::{cell::Cell, time::Duration};
use ur_mapping::spin::{Hope, SPIN, look_for};
pub(super) use ur_system::host::cores;

thread_local! {
    static ENDS: Cell<Hope> = const { Cell::new(Hope::FIRST) };
    static ARRIVALS: Cell<Hope> = const { Cell::new(Hope::FIRST) };
}
/// How long a thread polls for its next command before it sleeps.
const LINGER: Duration = Duration::from_micros(10);

/// Polls until `ended` is true or polling is not worth it; returns whether it is true.
pub(super) fn for_end(ended: impl Fn() -> bool) -> bool {
    look_for(&ENDS, SPIN, || ended().then_some(())).is_some()
}
/// Polls until `arrived` is true or polling is not worth it; returns whether it is true.
pub(super) fn for_arrival(arrived: impl Fn() -> bool) -> bool {
    look_for(&ARRIVALS, LINGER, || arrived().then_some(())).is_some()
}
