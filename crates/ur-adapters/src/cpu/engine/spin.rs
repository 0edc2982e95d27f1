//! Looking again for a moment before sleeping: worth it where the other thread runs on another
//! core and is nearly done. Never with one core or in real time, where who spins keeps the other
//! from running; and ever more rarely where it did not help, which is how a busy machine looks.
use std::{
    cell::Cell,
    sync::OnceLock,
    time::{Duration, Instant},
};

/// As long as a sleep and a wake-up take, so that at worst waiting costs twice what it must.
pub(super) const LIMIT: Duration = Duration::from_micros(20);
/// After so many failures in a row, two to that power of waits go without spinning.
const LEAST_HOPE: u32 = 6;

/// How many threads of this process can run at once.
pub(super) fn cores() -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from))
}

/// What a thread learned of its own spinning.
#[derive(Clone, Copy)]
struct Hope {
    /// Spins that failed since the last that did not. Starts at one, so that a thread asks for
    /// its policy before it spins for the first time.
    failures: u32,
    /// Waits to go without.
    skip: u32,
}
thread_local! {
    static HOPE: Cell<Hope> = const { Cell::new(Hope { failures: 1, skip: 0 }) };
}
impl Hope {
    fn after_failure(self) -> Self {
        let failures = (self.failures + 1).min(LEAST_HOPE);
        Self { failures, skip: 1 << failures }
    }
}

/// Looks until `ready`, for at most `limit`; whether it came true.
pub(super) fn until(limit: Duration, mut ready: impl FnMut() -> bool) -> bool {
    if ready() {
        return true;
    }
    let hope = HOPE.get();
    if hope.skip > 0 {
        HOPE.set(Hope { skip: hope.skip - 1, ..hope });
        return false;
    }
    let came_true = cores() > 1
        && !(hope.failures > 0 && ur_mapping::scheduled_real_time())
        && look(limit, ready);
    HOPE.set(if came_true { Hope { failures: 0, skip: 0 } } else { hope.after_failure() });
    came_true
}
fn look(limit: Duration, mut ready: impl FnMut() -> bool) -> bool {
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
