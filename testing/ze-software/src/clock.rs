//! The two clocks: the host's, and the devices', which have their own origin.
use crate::knob;
use rustix::time::{ClockId, clock_gettime};
use std::sync::LazyLock;

/// Where the devices' clock stands when the host's says 0: mixing them up is not to go unnoticed.
const ORIGIN: u64 = 3_600_000_000_007;
const SECOND: u64 = 1_000_000_000;

/// What the environment says of the devices' clock.
struct Clock {
    /// Ticks of a second.
    cycles: u64,
    /// Bits of the counter, and of the times of commands.
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
    // With a colon: so many milliseconds from now on it comes round.
    let (bits, wraps) = global.split_once(':').map_or((&*global, None), |(b, w)| (b, Some(w)));
    let bits = number(bits, 56).clamp(1, 63) as u32;
    let kernel_bits = number(&said("KERNEL_BITS"), u64::from(bits)).clamp(1, 63) as u32;
    let origin = wraps.map_or(ORIGIN, |wraps| {
        let then = scaled(host_now() + number(wraps, 0) * 1_000_000, cycles, SECOND);
        then.next_multiple_of(1 << bits) - then
    });
    Clock { cycles, bits, kernel_bits, origin }
});
/// Ticks of a device's clock in one second.
pub fn cycles_per_second() -> u64 {
    CLOCK.cycles
}
/// Nanoseconds of one tick of a device's clock, cut short as in Intel's driver.
pub fn resolution() -> u64 {
    SECOND / CLOCK.cycles
}
/// Valid bits of device timestamps, and of kernel timestamps; the rest of the word is zero.
pub fn valid_bits() -> (u32, u32) {
    (CLOCK.bits, CLOCK.kernel_bits)
}
/// Nanoseconds of the host's clock.
pub fn host_now() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    // The system's monotonic clock starts at zero and does not reach 584 years.
    now.tv_sec.unsigned_abs() * SECOND + now.tv_nsec.unsigned_abs()
}
/// Ticks of the devices' clock, with all bits.
pub fn device_now() -> u64 {
    device_of(host_now())
}
/// The devices' time at a time of the host, with all bits.
pub fn device_of(host: u64) -> u64 {
    scaled(host, CLOCK.cycles, SECOND) + CLOCK.origin
}
/// The host's time at a time of the devices.
pub fn host_of(device: u64) -> u64 {
    scaled(device.saturating_sub(CLOCK.origin), SECOND, CLOCK.cycles)
}
/// What the counter of a device shows.
pub fn shown(device: u64) -> u64 {
    device & ((1 << CLOCK.bits) - 1)
}
/// What the times of a command show.
pub fn shown_by_command(device: u64) -> u64 {
    device & ((1 << CLOCK.kernel_bits) - 1)
}
