//! What freed memory waits for: positions in streams, and the order in which objects were made.
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A position in a lane that the lane must have reached.
pub trait Moment: Clone {
    /// Identifies the lane within the process.
    fn lane(&self) -> (usize, u32);
    /// The position: later ones have greater numbers.
    fn number(&self) -> u64;
    /// Whether the lane is known to have reached this position, without querying the driver. Also true where the driver
    /// has failed, because nothing runs there any more.
    fn has_passed(&self) -> bool;
    /// Queries the driver how far the lane is. `may_mark`: a marker may be put into the lane whose completion will
    /// tell.
    fn ask(&self, may_mark: bool);
}

/// The host's monotonic clock in nanoseconds.
pub fn host_clock() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
/// The next number.
static NEXT: AtomicU64 = AtomicU64::new(1);
/// The sequence number of a new object, unique in this process.
pub fn new_object() -> u64 {
    NEXT.fetch_add(1, Relaxed) // only uniqueness matters, so any ordering will do
}
/// A sequence number greater than those of all objects made before, and not greater than those of objects made
/// afterwards. Tells whether an object existed at some time; the threads concerned must be synchronised by other means.
pub fn objects_so_far() -> u64 {
    NEXT.load(Relaxed) // a counter; synchronisation is the caller's
}
