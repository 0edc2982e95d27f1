//! 16-bit floating point, converted from and to 32 bits.

/// Converts to 32 bits, which is exact.
pub(crate) fn widen(half: u16) -> f32 {
    let sign = u32::from(half >> 15) << 31;
    let (exponent, fraction) = (u32::from(half >> 10 & 31), u32::from(half & 0x3ff));
    match (exponent, fraction) {
        (0, _) => {
            let small = fraction as f32 / 16_777_216.0; // 2^24: subnormal numbers are multiples of its inverse
            if sign == 0 { small } else { -small }
        }
        (31, _) => f32::from_bits(sign | 0x7f80_0000 | fraction << 13),
        _ => f32::from_bits(sign | (exponent + 112) << 23 | fraction << 13),
    }
}
/// Rounds to the nearest 16-bit number, ties to even.
pub(crate) fn narrow(wide: f32) -> u16 {
    let bits = wide.to_bits();
    let sign = (bits >> 16 & 0x8000) as u16;
    let size = bits & 0x7fff_ffff;
    if size > 0x7f80_0000 {
        return sign | 0x7e00; // NaN
    }
    if size >= 0x477f_f000 {
        return sign | 0x7c00; // from here on, numbers round to infinity
    }
    if size < 0x3880_0000 {
        // Below the smallest normal number: a multiple of 2^-24.
        let units = f64::from(f32::from_bits(size)) * 16_777_216.0;
        return sign | units.round_ties_even() as u16;
    }
    let kept = size - 0x3800_0000;
    let rounded = kept + 0xfff + (kept >> 13 & 1);
    sign | (rounded >> 13) as u16
}

#[cfg(test)]
mod tests {
    use super::{narrow, widen};

    #[test]
    fn every_half_that_is_a_number_comes_back() {
        for half in 0..=u16::MAX {
            let wide = widen(half);
            if !wide.is_nan() {
                assert_eq!(narrow(wide), half, "{half:#x}");
            }
        }
    }
    #[test]
    fn what_lies_between_goes_to_the_even_one() {
        assert_eq!(narrow(1.0 + 1.0 / 2048.0), 0x3c00);
        assert_eq!(narrow(1.0 + 3.0 / 2048.0), 0x3c02);
        assert_eq!(narrow(65520.0), 0x7c00);
        assert_eq!(narrow(65519.0), 0x7bff);
        assert!(widen(0x7e00).is_nan());
    }
}
