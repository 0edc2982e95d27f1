//! Looking again for a moment before sleeping. When that helps is `ur_mapping::spin`'s to know; a thread learns it
//! apart for what it waits for and for what it is given to do.
use std::{cell::Cell, sync::OnceLock, time::Duration};
use ur_mapping::spin::{Hope, SPIN, look_for};

thread_local! {
    static ENDS: Cell<Hope> = const { Cell::new(Hope::FIRST) };
    static ARRIVALS: Cell<Hope> = const { Cell::new(Hope::FIRST) };
}
/// How long a thread looks for its next command before it sleeps.
const LINGER: Duration = Duration::from_micros(10);

/// How many threads of this process can run at once.
pub(super) fn cores() -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from))
}
/// Looks whether what somebody waits for has `ended`; whether it has.
pub(super) fn for_end(ended: impl Fn() -> bool) -> bool {
    look_for(&ENDS, SPIN, || ended().then_some(())).is_some()
}
/// Looks whether a command has `arrived`; whether one has.
pub(super) fn for_arrival(arrived: impl Fn() -> bool) -> bool {
    look_for(&ARRIVALS, LINGER, || arrived().then_some(())).is_some()
}
