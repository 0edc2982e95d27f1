//! OpenCL's extended instructions for integers, one lane at a time.
use super::types::Scalar;

/// Computes one lane. The calculation uses 128 bits, so that nothing overflows before the result is saturated
/// or truncated.
pub(super) fn each(op: u32, scalar: Scalar, a: u64, b: u64, c: u64) -> u64 {
    let (x, y, z) = (wide(scalar, a), wide(scalar, b), wide(scalar, c));
    let (u, v, w) = (i128::from(a), i128::from(b), i128::from(c));
    let most = i128::from(scalar.mask() >> 1);
    let width = scalar.bits();
    let signed = |value: i128| value.clamp(-most - 1, most);
    let unsigned = |value: i128| value.clamp(0, i128::from(scalar.mask()));
    let value = match op {
        141 => x.abs(),
        142 => (x - y).abs(),
        143 => signed(x + y),
        144 => unsigned(u + v),
        145 => (x + y) >> 1,
        146 => (u + v) >> 1,
        147 => (x + y + 1) >> 1,
        148 => (u + v + 1) >> 1,
        149 => x.max(y).min(z),
        150 => u.max(v).min(w),
        151 => i128::from(a.leading_zeros() - (64 - width)),
        152 => i128::from(a.trailing_zeros().min(width)),
        153 => ((x * y) >> width) + z,
        154 => {
            let sum = u128::from(a) * u128::from(b) + u128::from(c);
            return sum.min(u128::from(scalar.mask())) as u64;
        }
        155 => signed((x * y).saturating_add(z)),
        156 => x.max(y),
        157 => u.max(v),
        158 => x.min(y),
        159 => u.min(v),
        160 => (x * y) >> width,
        161 => return rotated(scalar, a, b),
        162 => signed(x - y),
        163 => unsigned(u - v),
        164 | 165 => return (a << width) | b, // the two operands are the halves of a number of twice the width
        166 => i128::from(a.count_ones()),
        167 => low(x) * low(y) + z,
        168 => (u & 0xff_ffff) * (v & 0xff_ffff) + w,
        169 => low(x) * low(y),
        170 => (u & 0xff_ffff) * (v & 0xff_ffff),
        186 => return (a & !c) | (b & c),
        187 => return if scalar.signed(c) < 0 { b } else { a },
        201 => u,
        202 => (u - v).abs(),
        203 => high(a, b, width),
        _ => high(a, b, width) + w,
    };
    value as u64 & scalar.mask()
}
fn wide(scalar: Scalar, value: u64) -> i128 {
    i128::from(scalar.signed(value))
}
/// The low 24 bits, sign-extended.
fn low(value: i128) -> i128 {
    (value << 104) >> 104
}
fn high(a: u64, b: u64, width: u32) -> i128 {
    ((u128::from(a) * u128::from(b)) >> width).cast_signed()
}
fn rotated(scalar: Scalar, value: u64, by: u64) -> u64 {
    let width = scalar.bits();
    let by = (by % u64::from(width)) as u32;
    if by == 0 {
        return value;
    }
    ((value << by) | (value >> (width - by))) & scalar.mask()
}
