//! OpenCL's extended instructions that compute one number from several, one lane at a time. They are computed
//! with the host's 64-bit functions and rounded to the width of the result.
#![expect(unsafe_code, reason = "functions of the C library that Rust's has not")]
use super::{
    arithmetic::{bits, float},
    types::Scalar,
};

/// The operands of an extended instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// This many operands of the result's type; works on each lane separately.
    Each(usize),
    /// This many operands, and then a pointer to where the second result is stored.
    Second(usize),
    /// Works on all lanes together.
    Wide,
}
/// The class of an instruction; `None` if it is not supported.
pub(super) fn class(op: u32) -> Option<Class> {
    Some(match op {
        30 | 31 | 36 | 45 | 58 => Class::Second(1),
        52 => Class::Second(2),
        7 | 10 | 13 | 24 | 27..=29 | 32 | 34 | 43 | 44 | 47..=51 | 54 | 68 | 75 | 82 | 89 => {
            Class::Each(2)
        }
        97 | 98 | 101 | 142..=148 | 156..=165 | 169 | 170 | 202 | 203 => Class::Each(2),
        26 | 42 | 95 | 99 | 102 | 149 | 150 | 153..=155 | 167 | 168 | 186 | 187 | 204 => {
            Class::Each(3)
        }
        104..=110 | 171..=174 | 175..=183 | 185 => Class::Wide,
        0..=81 | 83..=94 | 96 | 100 | 103 | 141 | 151 | 152 | 166 | 201 => Class::Each(1),
        _ => return None,
    })
}
/// Whether the instruction works on integers.
pub(super) fn whole(op: u32) -> bool {
    matches!(op, 141..=170 | 186 | 187 | 201..=204)
}

unsafe extern "C" {
    safe fn erf(x: f64) -> f64;
    safe fn erfc(x: f64) -> f64;
    safe fn tgamma(x: f64) -> f64;
    safe fn lgamma(x: f64) -> f64;
    safe fn remainder(x: f64, y: f64) -> f64;
}
const PI: f64 = std::f64::consts::PI;

/// One lane of an instruction of class `Each`. `other` is the type of the second operand, which may differ.
pub(super) fn each(op: u32, scalar: Scalar, other: Scalar, a: u64, b: u64, c: u64) -> u64 {
    if whole(op) {
        return super::integers::each(op, scalar, a, b, c);
    }
    let (x, y, z) = (float(scalar, a), float(scalar, b), float(scalar, c));
    match op {
        13 => return (a & scalar.mask() >> 1) | (b & !(scalar.mask() >> 1)),
        23 => return a & scalar.mask() >> 1,
        33 => return whole_exponent(float(other, a)) & scalar.mask(),
        34 => return bits(scalar, scaled(x, other.signed(b))),
        46 => return bits(scalar, f64::NAN),
        47 => return next_after(scalar, a, b),
        49 => return bits(scalar, x.powf(other.signed(b) as f64)),
        54 => return bits(scalar, root(x, other.signed(b))),
        _ => {}
    }
    let value = match op {
        26 | 42 if scalar == Scalar::Float(32) => return fused_narrow(a, b, c),
        26 | 42 => x.mul_add(y, z),
        95 => x.max(y).min(z),
        99 => x + (y - x) * z,
        102 => {
            let t = ((z - x) / (y - x)).clamp(0.0, 1.0);
            t * t * (3.0 - 2.0 * t)
        }
        _ if class(op) == Some(Class::Each(2)) => of_two(op, x, y),
        _ => of_one(op, x),
    };
    bits(scalar, value)
}
fn fused_narrow(a: u64, b: u64, c: u64) -> u64 {
    let f = |v: u64| f32::from_bits(v as u32);
    u64::from(f(a).mul_add(f(b), f(c)).to_bits())
}
fn scaled(x: f64, by: i64) -> f64 {
    // In several steps, because 2 to the power of `by` may be out of range.
    let by = by.clamp(-4000, 4000) as i32;
    x * 2.0_f64.powi(by / 3) * 2.0_f64.powi(by / 3) * 2.0_f64.powi(by - 2 * (by / 3))
}
fn root(x: f64, n: i64) -> f64 {
    let size = x.abs().powf(1.0 / n as f64);
    match (x < 0.0, n % 2 != 0) {
        (false, _) => size,
        (true, true) => -size,
        (true, false) => f64::NAN,
    }
}
fn whole_exponent(x: f64) -> u64 {
    match x {
        0.0 => i64::from(i32::MIN).cast_unsigned(),
        _ if x.is_nan() || x.is_infinite() => i32::MAX as u64,
        _ => (exponent(x) as i64).cast_unsigned(),
    }
}
fn exponent(x: f64) -> f64 {
    if x == 0.0 || !x.is_finite() {
        return if x == 0.0 { f64::NEG_INFINITY } else { x.abs() };
    }
    let (scale, by) =
        if x.abs() < f64::MIN_POSITIVE { (2.0_f64.powi(60), 60.0) } else { (1.0, 0.0) };
    let field = (x * scale).to_bits() >> 52 & 0x7ff;
    field as f64 - 1023.0 - by
}
fn next_after(scalar: Scalar, a: u64, b: u64) -> u64 {
    let (x, y, sign) = (float(scalar, a), float(scalar, b), 1_u64 << (scalar.bits() - 1));
    if x.is_nan() || y.is_nan() {
        return bits(scalar, f64::NAN);
    }
    match () {
        () if x == y => b,
        () if x == 0.0 => 1 | b & sign,
        () if (x < y) == (x > 0.0) => a + 1,
        () => a - 1,
    }
}
fn of_two(op: u32, x: f64, y: f64) -> f64 {
    match op {
        7 => x.atan2(y),
        10 => x.atan2(y) / PI,
        24 => (x - y).max(0.0),
        27 | 97 => x.max(y),
        28 | 98 => x.min(y),
        29 => x % y,
        32 => x.hypot(y),
        43 if x.abs() != y.abs() => {
            if x.abs() > y.abs() {
                x
            } else {
                y
            }
        }
        43 => x.max(y),
        44 if x.abs() != y.abs() => {
            if x.abs() < y.abs() {
                x
            } else {
                y
            }
        }
        44 => x.min(y),
        51 => remainder(x, y),
        68 | 82 => x / y,
        75 | 50 | 89 if x < 0.0 || x == 0.0 && y == 0.0 => f64::NAN,
        101 => {
            if y < x {
                0.0
            } else {
                1.0
            }
        }
        _ => x.powf(y),
    }
}
fn of_one(op: u32, x: f64) -> f64 {
    match op {
        0 => x.acos(),
        1 => x.acosh(),
        2 => x.acos() / PI,
        3 => x.asin(),
        4 => x.asinh(),
        5 => x.asin() / PI,
        6 => x.atan(),
        8 => x.atanh(),
        9 => x.atan() / PI,
        11 => x.cbrt(),
        12 => x.ceil(),
        14 | 67 | 81 => x.cos(),
        15 => x.cosh(),
        16 => (x % 2.0 * PI).cos(),
        17 => erfc(x),
        18 => erf(x),
        19 | 69 | 83 => x.exp(),
        20 | 70 | 84 => x.exp2(),
        21 | 71 | 85 => 10.0_f64.powf(x),
        22 => x.exp_m1(),
        25 => x.floor(),
        35 => lgamma(x),
        37 | 72 | 86 => x.ln(),
        38 | 73 | 87 => x.log2(),
        39 | 74 | 88 => x.log10(),
        40 => x.ln_1p(),
        41 => exponent(x),
        53 => x.round_ties_even(),
        55 => x.round(),
        56 | 77 | 91 => 1.0 / x.sqrt(),
        57 | 78 | 92 => x.sin(),
        59 => x.sinh(),
        60 => (x % 2.0 * PI).sin(),
        61 | 79 | 93 => x.sqrt(),
        62 | 80 | 94 => x.tan(),
        63 => x.tanh(),
        64 => (x % 1.0 * PI).tan(),
        65 => tgamma(x),
        66 => x.trunc(),
        76 | 90 => 1.0 / x,
        96 => x.to_degrees(),
        100 => x.to_radians(),
        103 if x > 0.0 => 1.0,
        103 if x < 0.0 => -1.0,
        103 => {
            if x.is_nan() {
                0.0
            } else {
                x
            }
        }
        _ => x,
    }
}
/// One lane of an instruction of class `Second`: both results. `other` is the type of the second result.
pub(super) fn second(op: u32, scalar: Scalar, other: Scalar, a: u64, b: u64) -> (u64, u64) {
    let (x, y) = (float(scalar, a), float(scalar, b));
    let (first, second) = match op {
        30 => {
            let below = x.floor();
            let largest = float(scalar, bits(scalar, 1.0) - 1);
            ((x - below).min(largest), below)
        }
        31 if x == 0.0 || !x.is_finite() => return (a, 0),
        31 => {
            let by = exponent(x) as i64 + 1;
            return (bits(scalar, scaled(x, -by)), by.cast_unsigned() & other.mask());
        }
        36 => (lgamma(x), if x > 0.0 || x.floor() % 2.0 == 0.0 { 1.0 } else { -1.0 }),
        45 => (if x.is_infinite() { 0.0_f64.copysign(x) } else { x.fract() }, x.trunc()),
        52 => {
            let rest = remainder(x, y);
            (rest, ((x - rest) / y).round() % 128.0)
        }
        _ => (x.sin(), x.cos()),
    };
    let second = match other {
        Scalar::Float(_) => bits(other, second),
        _ => (second as i64).cast_unsigned() & other.mask(),
    };
    (bits(scalar, first), second)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NARROW: Scalar = Scalar::Float(32);
    fn one(op: u32, x: f32) -> f32 {
        let bits = each(op, NARROW, NARROW, u64::from(x.to_bits()), 0, 0);
        f32::from_bits(bits as u32)
    }
    #[test]
    fn roots_logarithms_and_exponents_are_those_of_mathematics() {
        assert_eq!(one(61, 9.0), 3.0);
        assert_eq!(one(38, 8.0), 3.0);
        assert_eq!(one(41, 10.0), 3.0);
        assert_eq!(one(23, -2.5), 2.5);
        assert_eq!(one(53, 2.5), 2.0);
        assert_eq!(one(55, 2.5), 3.0);
    }
    #[test]
    fn a_number_is_taken_apart_into_fraction_and_exponent() {
        let (fraction, by) = second(31, NARROW, Scalar::Int(32), u64::from(6.0_f32.to_bits()), 0);
        assert_eq!((f32::from_bits(fraction as u32), by), (0.75, 3));
    }
    #[test]
    fn the_next_number_is_one_bit_away() {
        let [one, two] = [1.0_f32, 2.0].map(|v| u64::from(v.to_bits()));
        assert_eq!(each(47, NARROW, NARROW, one, two, 0), one + 1);
        assert_eq!(each(47, NARROW, NARROW, one, 0, 0), one - 1);
    }
}
