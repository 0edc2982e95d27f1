//! The two clocks: the host's, and the devices', which has another origin.
use crate::knob;
use rustix::time::{ClockId, clock_gettime};
use std::sync::LazyLock;

/// The devices' clock when the host's is 0; different, so that confusing the two is noticed.
const ORIGIN: u64 = 3_600_000_000_007;
const SECOND: u64 = 1_000_000_000;

/// The settings of the devices' clock from the environment.
struct Clock {
    /// Ticks of a second.
    cycles: u64,
    /// Valid bits of the counter, and of the timestamps of commands.
    bits: u32,
    kernel_bits: u32,
    origin: u64,
}
fn scaled(value: u64, to: u64, from: u64) -> u64 {
    (u128::from(value) * u128::from(to) / u128::from(from)) as u64
}
static CLOCK: LazyLock<Clock> = LazyLock::new(|| {
    let said = |name: &str| knob::text(name).unwrap_or_default();
    let number = |text: &str, otherwise| text.trim().parse().unwrap_or(otherwise);
    let cycles = number(&said("TIMER"), SECOND).max(1);
    let global = said("GLOBAL_BITS");
    // With a colon: the counter overflows after so many milliseconds.
    let (bits, wraps) = global.split_once(':').map_or((&*global, None), |(b, w)| (b, Some(w)));
    let bits = number(bits, 56).clamp(1, 63) as u32;
    let kernel_bits = number(&said("KERNEL_BITS"), u64::from(bits)).clamp(1, 63) as u32;
    let origin = wraps.map_or(ORIGIN, |wraps| {
        let then = scaled(host_now() + number(wraps, 0) * 1_000_000, cycles, SECOND);
        then.next_multiple_of(1 << bits) - then
    });
    Clock { cycles, bits, kernel_bits, origin }
});
/// Ticks of a device's clock in a second.
pub fn cycles_per_second() -> u64 {
    CLOCK.cycles
}
/// Nanoseconds of a tick of a device's clock, rounded down as in Intel's driver.
pub fn resolution() -> u64 {
    SECOND / CLOCK.cycles
}
/// Valid bits of device timestamps, and of kernel timestamps; the rest of the word is zero.
pub fn valid_bits() -> (u32, u32) {
    (CLOCK.bits, CLOCK.kernel_bits)
}
/// The host's clock in nanoseconds.
pub fn host_now() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    // The system's monotonic clock starts at zero, so this does not overflow for 584 years.
    now.tv_sec.unsigned_abs() * SECOND + now.tv_nsec.unsigned_abs()
}
/// The devices' clock in ticks, with all bits.
pub fn device_now() -> u64 {
    device_of(host_now())
}
/// The devices' clock at a time of the host's clock, with all bits.
pub fn device_of(host: u64) -> u64 {
    scaled(host, CLOCK.cycles, SECOND) + CLOCK.origin
}
/// The host's clock at a time of the devices' clock.
pub fn host_of(device: u64) -> u64 {
    scaled(device.saturating_sub(CLOCK.origin), SECOND, CLOCK.cycles)
}
/// The valid bits of a device's counter.
pub fn shown(device: u64) -> u64 {
    device & ((1 << CLOCK.bits) - 1)
}
/// The valid bits of a command's timestamp.
pub fn shown_by_command(device: u64) -> u64 {
    device & ((1 << CLOCK.kernel_bits) - 1)
}
