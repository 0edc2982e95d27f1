//! Looking again for a moment before sleeping: worth it where the other thread runs on another
//! core and is nearly done, never where there is only one.
use std::{
    sync::OnceLock,
    time::{Duration, Instant},
};

/// As long as a sleep and a wake-up take, so that at worst waiting costs twice what it must.
pub(super) const LIMIT: Duration = Duration::from_micros(20);

/// How many threads of this process can run at once.
pub(super) fn cores() -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from))
}

/// Looks until `ready`, for at most `limit`; whether it came true.
pub(super) fn until(limit: Duration, mut ready: impl FnMut() -> bool) -> bool {
    if ready() {
        return true;
    }
    if cores() < 2 {
        return false;
    }
    let end = Instant::now() + limit;
    loop {
        for _ in 0..64 {
            if ready() {
                return true;
            }
            std::hint::spin_loop();
        }
        if Instant::now() >= end {
            return false;
        }
    }
}
