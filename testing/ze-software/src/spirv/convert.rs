//! Conversions between integers and floating point of different widths, with saturation and rounding modes.
use super::{
    arithmetic::{bits, float},
    types::Scalar,
};

/// How a floating-point number is rounded to an integer or to a narrower type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Rounding {
    /// The instruction's default: toward zero for integers, to nearest for floating point.
    #[default]
    Usual,
    Even,
    Zero,
    Up,
    Down,
}
#[derive(Clone, Copy, Debug)]
pub(super) struct Conversion {
    pub op: u16,
    pub from: Scalar,
    pub into: Scalar,
    pub saturates: bool,
    pub rounding: Rounding,
}
/// Whether an instruction is a conversion.
pub(super) fn converts(code: u16) -> bool {
    matches!(code, 109..=120)
}
fn round(how: Rounding, value: f64) -> f64 {
    match how {
        Rounding::Usual | Rounding::Zero => value.trunc(),
        Rounding::Even => value.round_ties_even(),
        Rounding::Up => value.ceil(),
        Rounding::Down => value.floor(),
    }
}
impl Conversion {
    pub fn of(self, value: u64) -> u64 {
        let (from, into) = (self.from, self.into);
        match self.op {
            109 => self.unsigned(round(self.rounding, float(from, value))),
            110 => self.signed(round(self.rounding, float(from, value))),
            111 => rounded_whole(into, i128::from(from.signed(value))),
            112 => rounded_whole(into, i128::from(value)),
            113 if self.saturates => value.min(into.mask()),
            114 if self.saturates => {
                let most = (into.mask() >> 1).cast_signed();
                from.signed(value).clamp(-most - 1, most).cast_unsigned() & into.mask()
            }
            114 => from.signed(value).cast_unsigned() & into.mask(),
            115 => self.narrowed(float(from, value)),
            116 => {
                bits(into, float(Scalar::Float(16), bits(Scalar::Float(16), float(from, value))))
            }
            118 => (from.signed(value).max(0).cast_unsigned()).min(into.mask()),
            119 => value.min(into.mask() >> 1),
            _ => value & into.mask(), // to another width without a sign, and addresses
        }
    }
    fn unsigned(self, value: f64) -> u64 {
        // Rust's conversion saturates. Without saturation the result for values out of range is undefined.
        (value as u64).min(self.into.mask())
    }
    fn signed(self, value: f64) -> u64 {
        let most = (self.into.mask() >> 1).cast_signed();
        let whole = value as i64;
        let whole = if self.saturates || self.into.bits() == 64 {
            whole.clamp(-most - 1, most)
        } else {
            whole
        };
        whole.cast_unsigned() & self.into.mask()
    }
    fn narrowed(self, value: f64) -> u64 {
        let nearest = bits(self.into, value);
        let came = float(self.into, nearest);
        let (above, below) = (came > value, came < value);
        match self.rounding {
            Rounding::Up if below => bits(self.into, towards(self.into, nearest, true)),
            Rounding::Down if above => bits(self.into, towards(self.into, nearest, false)),
            Rounding::Zero if value > 0.0 && above => {
                bits(self.into, towards(self.into, nearest, false))
            }
            Rounding::Zero if value < 0.0 && below => {
                bits(self.into, towards(self.into, nearest, true))
            }
            _ => nearest,
        }
    }
}
/// The next larger or smaller number of this type.
fn towards(scalar: Scalar, from: u64, up: bool) -> f64 {
    let sign = 1_u64 << (scalar.bits() - 1);
    let negative = from & sign != 0;
    let next = match from & !sign {
        0 => 1 | if up { 0 } else { sign },
        _ if negative == up => from - 1,
        _ => from + 1,
    };
    float(scalar, next)
}
/// An integer as floating point, rounded once.
fn rounded_whole(into: Scalar, value: i128) -> u64 {
    match into {
        Scalar::Float(32) => u64::from((value as f32).to_bits()),
        _ => bits(into, value as f64),
    }
}
