//! The two clocks: the host's, and the devices', which have their own origin.
use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds of one tick of a device's clock.
pub const TIMER_RESOLUTION_NS: u64 = 1;
/// Ticks of a device's clock in one second.
pub const CYCLES_PER_SECOND: u64 = 1_000_000_000;
/// Valid bits of device and kernel timestamps; the rest of the word is zero.
pub const VALID_BITS: u32 = 56;
/// Where the devices' clock stands when the host's says 0: mixing them up is not to go unnoticed.
const ORIGIN: u64 = 3_600_000_000_007;

/// Nanoseconds of the host's clock.
pub fn host_now() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    // The system's monotonic clock starts at zero and does not reach 584 years.
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}
/// Ticks of the devices' clock.
pub fn device_now() -> u64 {
    device_of(host_now())
}
/// The devices' time at a time of the host.
pub const fn device_of(host: u64) -> u64 {
    (host + ORIGIN) & ((1 << VALID_BITS) - 1)
}
/// The host's time at a time of the devices.
pub const fn host_of(device: u64) -> u64 {
    device.saturating_sub(ORIGIN)
}
