//! Arithmetic, logical, bitwise and comparison instructions with one or two operands, on the bits in
//! registers. 16- and 32-bit floating point is computed with 64 bits and then rounded, which gives the
//! correctly rounded result.
use super::{half, types::Scalar};

/// The opcode of an instruction with one operand.
pub(super) type Unary = u16;
/// The opcode of an instruction with two operands.
pub(super) type Binary = u16;

/// The floating-point value with these bits.
pub(super) fn float(scalar: Scalar, bits: u64) -> f64 {
    match scalar {
        Scalar::Float(16) => f64::from(half::widen(bits as u16)),
        Scalar::Float(32) => f64::from(f32::from_bits(bits as u32)),
        _ => f64::from_bits(bits),
    }
}
/// The bits of a floating-point value.
pub(super) fn bits(scalar: Scalar, value: f64) -> u64 {
    match scalar {
        Scalar::Float(16) => u64::from(half::narrow(value as f32)),
        Scalar::Float(32) => u64::from((value as f32).to_bits()),
        _ => value.to_bits(),
    }
}

/// The operands of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// One operand: an integer or boolean, or a floating-point number.
    Unary { float: bool },
    /// Two operands: integers, booleans or addresses, or floating-point numbers.
    Binary { float: bool },
}
/// The form of an instruction; `None` if it is not one of those in this file.
pub(super) fn form(code: u16) -> Option<Form> {
    Some(match code {
        127 | 156..=160 => Form::Unary { float: true },
        126 | 168 | 200 | 204 | 205 => Form::Unary { float: false },
        129 | 131 | 133 | 136 | 140 | 141 | 161..=163 | 180..=191 => Form::Binary { float: true },
        128 | 130 | 132 | 134 | 135 | 137..=139 | 164..=167 | 170..=179 | 194..=199 | 401 | 402 => {
            Form::Binary { float: false }
        }
        _ => return None,
    })
}
/// Whether the result of an instruction is a boolean.
pub(super) fn compares(code: u16) -> bool {
    matches!(code, 156..=168 | 170..=191 | 401 | 402)
}

pub(super) fn unary(op: Unary, scalar: Scalar, a: u64) -> u64 {
    let number = || float(scalar, a);
    match op {
        126 => a.wrapping_neg() & scalar.mask(),
        127 => a ^ 1 << (scalar.bits() - 1),
        156 => u64::from(number().is_nan()),
        157 => u64::from(number().is_infinite()),
        158 => u64::from(number().is_finite()),
        159 => u64::from(normal(scalar, number())),
        160 => a >> (scalar.bits() - 1) & 1,
        168 => u64::from(a == 0),
        200 => !a & scalar.mask(),
        204 => a.reverse_bits() >> (64 - scalar.bits()),
        _ => u64::from(a.count_ones()),
    }
}
fn normal(scalar: Scalar, value: f64) -> bool {
    let smallest = match scalar {
        Scalar::Float(16) => 1.0 / 16384.0,
        Scalar::Float(32) => f64::from(f32::MIN_POSITIVE),
        _ => f64::MIN_POSITIVE,
    };
    value.is_finite() && value.abs() >= smallest
}
pub(super) fn binary(op: Binary, scalar: Scalar, a: u64, b: u64) -> u64 {
    match form(op) {
        Some(Form::Binary { float: true }) => with_point(op, scalar, a, b),
        _ => whole(op, scalar, a, b),
    }
}
fn with_point(op: Binary, scalar: Scalar, a: u64, b: u64) -> u64 {
    let (x, y) = (float(scalar, a), float(scalar, b));
    let apart = x.is_nan() || y.is_nan();
    let number = match op {
        129 => x + y,
        131 => x - y,
        133 => x * y,
        136 => x / y,
        140 => x % y,
        141 => x - y * (x / y).floor(),
        _ => {
            return u64::from(match op {
                161 | 182 => !apart && x != y,
                162 => !apart,
                163 => apart,
                180 => x == y,
                181 => apart || x == y,
                183 => x != y,
                184 => x < y,
                185 => apart || x < y,
                186 => x > y,
                187 => apart || x > y,
                188 => x <= y,
                189 => apart || x <= y,
                190 => x >= y,
                _ => apart || x >= y,
            });
        }
    };
    bits(scalar, number)
}
fn whole(op: Binary, scalar: Scalar, a: u64, b: u64) -> u64 {
    let (x, y) = (scalar.signed(a), scalar.signed(b));
    let width = u64::from(scalar.bits());
    let result = match op {
        128 => a.wrapping_add(b),
        130 => a.wrapping_sub(b),
        132 => a.wrapping_mul(b),
        // The result of a division by zero is undefined, but the division must not panic.
        134 => a.checked_div(b).unwrap_or(u64::MAX),
        135 => if y == 0 { -1 } else { x.wrapping_div(y) }.cast_unsigned(),
        137 => a.checked_rem(b).unwrap_or(a),
        138 => if y == 0 { x } else { x.wrapping_rem(y) }.cast_unsigned(),
        139 => modulo(x, y).cast_unsigned(),
        164 | 170 | 401 => u64::from(a == b),
        165 | 171 | 402 => u64::from(a != b),
        166 | 197 => a | b,
        167 | 199 => a & b,
        172 => u64::from(a > b),
        173 => u64::from(x > y),
        174 => u64::from(a >= b),
        175 => u64::from(x >= y),
        176 => u64::from(a < b),
        177 => u64::from(x < y),
        178 => u64::from(a <= b),
        179 => u64::from(x <= y),
        194 => {
            if b < width {
                a >> b
            } else {
                0
            }
        }
        195 => (x >> b.min(width - 1)).cast_unsigned(),
        196 => {
            if b < width {
                a << b
            } else {
                0
            }
        }
        _ => a ^ b,
    };
    if compares(op) { result } else { result & scalar.mask() }
}
fn modulo(x: i64, y: i64) -> i64 {
    if y == 0 {
        return x;
    }
    let rest = x.wrapping_rem(y);
    if rest != 0 && (rest < 0) != (y < 0) { rest.wrapping_add(y) } else { rest }
}
/// The low and the high part of a sum (149), of a difference (150) or of an unsigned (151) or signed (152)
/// product.
pub(super) fn extended(op: u16, scalar: Scalar, a: u64, b: u64) -> (u64, u64) {
    let mask = scalar.mask();
    match op {
        149 => {
            let sum = u128::from(a) + u128::from(b);
            (sum as u64 & mask, (sum >> scalar.bits()) as u64)
        }
        150 => (a.wrapping_sub(b) & mask, u64::from(a < b)),
        151 => {
            let product = u128::from(a) * u128::from(b);
            (product as u64 & mask, (product >> scalar.bits()) as u64 & mask)
        }
        _ => {
            let product = i128::from(scalar.signed(a)) * i128::from(scalar.signed(b));
            (product as u64 & mask, (product >> scalar.bits()) as u64 & mask)
        }
    }
}
