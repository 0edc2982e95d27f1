//! The device's clock: when commands were submitted, and when they began and ended. The driver tells
//! the latter in fewer bits, which come round within minutes: they are told from the former.
use super::{Device, native::device as native};
use ur_adapter::error::Result;
use ze_sys::ze_device_properties_t;

/// The device's clock now, in ticks.
///
/// # Errors
/// The driver's own.
pub(super) fn now(device: &Device) -> Result<u64> {
    let (_host, ticks) = native::timestamps(device.raw())?;
    Ok(ticks & mask(device.properties().timestampValidBits))
}
fn mask(bits: u32) -> u64 {
    1u64.checked_shl(bits).map_or(u64::MAX, |end| end - 1)
}
/// The moment that `ticks` of a command says, near `submitted`, in ticks of the whole clock.
fn near(properties: &ze_device_properties_t, submitted: u64, ticks: u64) -> u64 {
    let round = mask(properties.kernelTimestampValidBits);
    let later = ticks.wrapping_sub(submitted) & round;
    let is_before =
        round != u64::MAX && later > round / 2 || round == u64::MAX && ticks < submitted;
    match is_before {
        true => submitted.saturating_sub(submitted.wrapping_sub(ticks) & round),
        false => submitted.saturating_add(later),
    }
}
/// The same, in nanoseconds of the device's clock.
pub(super) fn moment(device: &Device, submitted: u64, ticks: u64) -> u64 {
    device.nanoseconds(near(device.properties(), submitted, ticks))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(bits: u32) -> ze_device_properties_t {
        ze_device_properties_t { kernelTimestampValidBits: bits, ..Default::default() }
    }
    #[test]
    fn a_short_clock_that_came_round_is_told_from_the_long_one() {
        let submitted = 0x5_ffff_fff0;
        assert_eq!(near(&device(32), submitted, 0xffff_fff8), 0x5_ffff_fff8);
        assert_eq!(near(&device(32), submitted, 0x10), 0x6_0000_0010);
    }
    #[test]
    fn what_began_a_little_before_is_not_a_round_later() {
        assert_eq!(near(&device(32), 0x7_0000_0004, 0xffff_ffff), 0x6_ffff_ffff);
        assert_eq!(near(&device(64), 100, 90), 90);
        assert_eq!(near(&device(64), 100, 110), 110);
    }
}
