//! The device's clock: times of submission, start and end of commands. Its counters have few bits. The one
//! that is read directly overflows within an hour on some devices; overflows are counted by the host's clock.
//! The one that commands record overflows within minutes; its upper bits are taken from the time of
//! submission.
use super::{DriverDevice, driver::RawDevice, native::device as native};
use std::sync::Mutex;
use ur_hal::Result;
use ur_lock::locked;
use ze_sys::ze_device_properties_t;

/// Converts the counters of a device.
#[derive(Debug)]
pub struct Clock {
    /// This many nanoseconds correspond to this many ticks.
    scale: (u64, u64),
    /// The valid bits of the device's counter, and of the timestamps of commands.
    bits: [u32; 2],
    /// The last reading: the host's clock in nanoseconds, and the counter in ticks, continued past its
    /// overflows.
    last: Mutex<Option<(u64, u64)>>,
}
fn mask(bits: u32) -> u64 {
    1u64.checked_shl(bits).map_or(u64::MAX, |end| end - 1)
}
fn scaled(value: u64, (to, from): (u64, u64)) -> u64 {
    (u128::from(value) * u128::from(to) / u128::from(from.max(1))) as u64
}
impl Clock {
    /// The clock of a device. `cycles` is the ticks of a second, if the driver reports it; the alternative,
    /// nanoseconds of a tick, is rounded.
    pub(super) fn new(properties: &ze_device_properties_t, cycles: Option<u64>) -> Self {
        let scale = match cycles {
            Some(cycles) if cycles != 0 => (1_000_000_000, cycles),
            _ => (properties.timerResolution.max(1), 1),
        };
        let known = |bits| if bits == 0 { 64 } else { bits };
        let whole = known(properties.timestampValidBits);
        let bits = [whole, known(properties.kernelTimestampValidBits).min(whole)];
        Self { scale, bits, last: Mutex::new(None) }
    }
    /// Nanoseconds of a tick, rounded up.
    pub(super) fn resolution(&self) -> u64 {
        self.scale.0.div_ceil(self.scale.1)
    }
    /// Converts ticks to nanoseconds.
    pub(super) fn nanoseconds(&self, ticks: u64) -> u64 {
        scaled(ticks, self.scale)
    }
    /// The host's clock in nanoseconds, and the device's in ticks.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub(super) fn read(&self, device: RawDevice) -> Result<(u64, u64)> {
        let (host, ticks) = native::timestamps(device)?;
        Ok((host, self.continued(host, ticks)))
    }
    /// Continues a counter that may have overflowed since the last reading, as often as the host's clock
    /// says.
    fn continued(&self, host: u64, ticks: u64) -> u64 {
        let (round, mut last) = (mask(self.bits[0]), locked(&self.last));
        let whole = last.map_or(ticks & round, |(then, before)| {
            let (nanoseconds, tick) = self.scale;
            let since = scaled(host.saturating_sub(then), (tick, nanoseconds));
            let expected = before.wrapping_add(since);
            let later = ticks.wrapping_sub(expected) & round;
            match later > round / 2 {
                true => expected.saturating_sub(expected.wrapping_sub(ticks) & round),
                false => expected.wrapping_add(later),
            }
        });
        *last = Some((host, whole));
        whole
    }
    /// The start and the end of a command that was submitted at `submitted`, in ticks of the continued clock.
    /// The start may be slightly before `submitted`, because the two counters are not read at the same time.
    pub(super) fn span(&self, submitted: u64, began: u64, ended: u64) -> (u64, u64) {
        let round = mask(self.bits[1]);
        let later = began.wrapping_sub(submitted) & round;
        let begin = match later > round - round / 16 {
            true => submitted.saturating_sub(submitted.wrapping_sub(began) & round),
            false => submitted.saturating_add(later),
        };
        (begin, begin.saturating_add(ended.wrapping_sub(began) & round))
    }
}
/// The device's clock now, in ticks.
///
/// # Errors
/// Returns the driver's error.
pub(super) fn now(device: &DriverDevice) -> Result<u64> {
    Ok(device.clock().read(device.raw())?.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A clock with 19.2 million ticks a second.
    fn clock(bits: u32, kernel: u32) -> Clock {
        let told = ze_device_properties_t {
            timerResolution: 52,
            timestampValidBits: bits,
            kernelTimestampValidBits: kernel,
            ..Default::default()
        };
        Clock::new(&told, Some(19_200_000))
    }
    #[test]
    fn ticks_become_nanoseconds_by_the_cycles_of_a_second() {
        assert_eq!(clock(36, 32).nanoseconds(19_200_000 * 100), 100_000_000_000);
        assert_eq!(clock(36, 32).resolution(), 53);
        let told = ze_device_properties_t { timerResolution: 80, ..Default::default() };
        assert_eq!(Clock::new(&told, None).nanoseconds(10), 800);
    }
    #[test]
    fn a_counter_that_came_round_goes_on_as_the_hosts_clock_says() {
        let (clock, round) = (clock(36, 32), 1 << 36);
        let second = 19_200_000;
        assert_eq!(clock.continued(0, round - second), round - second);
        assert_eq!(clock.continued(2_000_000_000, second), round + second);
        // Three overflows without a reading: one every 3,579 seconds.
        let later = 2_000_000_000 + scaled(3 * round, clock.scale);
        assert_eq!(clock.continued(later, second), 4 * round + second);
        assert_eq!(clock.continued(later, second - 5), 4 * round + second - 5, "a reading before");
    }
    #[test]
    fn a_short_counter_that_came_round_is_told_from_the_long_one() {
        let (clock, submitted) = (clock(36, 32), 0x5_ffff_fff0);
        assert_eq!(clock.span(submitted, 0xffff_fff8, 0x10), (0x5_ffff_fff8, 0x6_0000_0010));
        assert_eq!(clock.span(submitted, 0x10, 0x20), (0x6_0000_0010, 0x6_0000_0020));
    }
    #[test]
    fn a_command_of_more_than_half_a_round_ends_after_it_begins() {
        let (clock, submitted) = (clock(36, 32), 0x5_0000_0000);
        let minutes = 180 * 19_200_000; // of the 223 seconds until an overflow
        let told = (submitted + 5 + minutes) & 0xffff_ffff;
        assert_eq!(clock.span(submitted, 5, told), (submitted + 5, submitted + 5 + minutes));
        // A command that waited for as long before it started.
        assert_eq!(clock.span(submitted, minutes, minutes + 1).0, submitted + minutes);
    }
    #[test]
    fn what_began_a_little_before_is_not_a_round_later() {
        assert_eq!(clock(36, 32).span(0x7_0000_0004, 0xffff_ffff, 2).0, 0x6_ffff_ffff);
        assert_eq!(clock(64, 64).span(100, 90, 95), (90, 95));
        assert_eq!(clock(64, 64).span(100, 110, 120), (110, 120));
    }
}
