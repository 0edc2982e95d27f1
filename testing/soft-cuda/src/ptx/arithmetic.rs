//! The results of arithmetic instructions, by the mnemonic's parts and type.
use super::{Kind, Type};

/// Whether the interpreter supports a mnemonic's first part.
pub fn is_known(name: &str) -> bool {
    let memory =
        ["ld", "st", "atom", "red", "mov", "cvta", "membar", "fence", "prefetch", "isspacep"];
    let flow = ["bra", "ret", "exit", "call", "bar", "barrier", "trap"];
    memory.contains(&name) || flow.contains(&name) || COMPUTING.contains(&name)
}
const COMPUTING: &[&str] = &[
    "add", "sub", "mul", "mad", "div", "rem", "min", "max", "neg", "abs", "and", "or", "xor",
    "not", "shl", "shr", "setp", "selp", "cvt", "fma", "sqrt", "rcp", "popc", "clz",
];
/// Returns the low `bytes` bytes.
pub fn cut(value: u64, bytes: usize) -> u64 {
    if bytes >= 8 { value } else { value & ((1 << (8 * bytes)) - 1) }
}
fn signed(value: u64, bytes: usize) -> i64 {
    let shift = 64 - 8 * bytes as u32;
    ((value << shift) as i64) >> shift
}
/// Extends a value to 128 bits, as its type requires.
fn wide(value: u64, of: Type) -> i128 {
    if of.kind == Kind::Signed {
        i128::from(signed(value, of.bytes))
    } else {
        i128::from(cut(value, of.bytes))
    }
}
fn float(value: u64, of: Type) -> f64 {
    if of.bytes == 4 { f64::from(f32::from_bits(value as u32)) } else { f64::from_bits(value) }
}
fn of_float(value: f64, of: Type) -> u64 {
    if of.bytes == 4 { u64::from((value as f32).to_bits()) } else { value.to_bits() }
}
/// Computes a result; `None` if the combination of mnemonic and type is not supported.
pub fn compute(parts: &[String], of: Type, a: &[u64]) -> Option<u64> {
    let has = |part: &str| parts.iter().any(|p| p == part);
    match parts[0].as_str() {
        "cvt" => return convert(parts, a[0]),
        "setp" => return compare(&parts[1], of, a[0], a[1]).map(u64::from),
        "selp" => return Some(if a[2] != 0 { a[0] } else { a[1] }),
        _ if of.kind == Kind::Float => return floating(&parts[0], of, a),
        _ => {}
    }
    let x = |i: usize| wide(a[i], of);
    let bits = 8 * of.bytes as u32;
    let product = |has_hi: bool| if has_hi { (x(0) * x(1)) >> bits } else { x(0) * x(1) };
    let result = match parts[0].as_str() {
        "add" => x(0) + x(1),
        "sub" => x(0) - x(1),
        "mul" => product(has("hi")),
        // The addend of a wide multiplication is twice as wide as the factors.
        "mad" | "fma" if has("wide") => {
            product(false) + wide(a[2], Type { bytes: of.bytes * 2, ..of })
        }
        "mad" | "fma" => product(has("hi")) + x(2),
        "div" => x(0).checked_div(x(1)).unwrap_or(-1),
        "rem" => x(0).checked_rem(x(1)).unwrap_or(x(0)),
        "min" => x(0).min(x(1)),
        "max" => x(0).max(x(1)),
        "neg" => -x(0),
        "abs" => x(0).abs(),
        "and" => x(0) & x(1),
        "or" => x(0) | x(1),
        "xor" => x(0) ^ x(1),
        "not" if of.kind == Kind::Predicate => i128::from(a[0] == 0),
        "not" => !x(0),
        "shl" => {
            x(0).checked_shl(a[1] as u32 & 255).filter(|_| a[1] < u64::from(bits)).unwrap_or(0)
        }
        "shr" => x(0) >> a[1].min(u64::from(bits)).min(127),
        "popc" => i128::from(cut(a[0], of.bytes).count_ones()),
        "clz" => i128::from(cut(a[0], of.bytes).leading_zeros() + bits - 64),
        _ => return None,
    };
    let bytes = if has("wide") { of.bytes * 2 } else { of.bytes };
    Some(cut(result as u64, bytes))
}
fn floating(name: &str, of: Type, a: &[u64]) -> Option<u64> {
    let x = |i: usize| float(a[i], of);
    let result = match name {
        "add" => x(0) + x(1),
        "sub" => x(0) - x(1),
        "mul" => x(0) * x(1),
        "fma" | "mad" if of.bytes == 8 => x(0).mul_add(x(1), x(2)),
        // In 32 bits, because a sum that is rounded to 64 bits first would be rounded twice.
        "fma" | "mad" => f64::from((x(0) as f32).mul_add(x(1) as f32, x(2) as f32)),
        "div" => x(0) / x(1),
        "min" => x(0).min(x(1)),
        "max" => x(0).max(x(1)),
        "neg" => -x(0),
        "abs" => x(0).abs(),
        "sqrt" => x(0).sqrt(),
        "rcp" => 1.0 / x(0),
        _ => return None,
    };
    Some(of_float(result, of))
}
fn compare(how: &str, of: Type, a: u64, b: u64) -> Option<bool> {
    use std::cmp::Ordering::{Equal, Greater, Less};
    let order = if of.kind == Kind::Float {
        float(a, of).partial_cmp(&float(b, of))
    } else {
        Some(wide(a, of).cmp(&wide(b, of)))
    };
    Some(match how {
        "eq" => order == Some(Equal),
        "ne" => matches!(order, Some(Less | Greater)),
        "lt" | "lo" => order == Some(Less),
        "le" | "ls" => matches!(order, Some(Less | Equal)),
        "gt" | "hi" => order == Some(Greater),
        "ge" | "hs" => matches!(order, Some(Greater | Equal)),
        "equ" => order.is_none_or(|o| o == Equal),
        "neu" => order != Some(Equal),
        "ltu" => order.is_none_or(|o| o == Less),
        "leu" => order != Some(Greater),
        "gtu" => order.is_none_or(|o| o == Greater),
        "geu" => order != Some(Less),
        "num" => order.is_some(),
        "nan" => order.is_none(),
        _ => return None,
    })
}
/// `cvt.rounding.to.from`
fn convert(parts: &[String], value: u64) -> Option<u64> {
    let mut types = parts.iter().filter_map(|p| Type::of(p));
    let (to, from) = (types.next()?, types.next()?);
    let rounded = |x: f64| match parts
        .iter()
        .find(|p| p.len() == 3 && p.starts_with('r'))
        .map(String::as_str)
    {
        Some("rzi") => x.trunc(),
        Some("rmi") => x.floor(),
        Some("rpi") => x.ceil(),
        _ => x.round_ties_even(),
    };
    Some(match (to.kind, from.kind) {
        (Kind::Float, Kind::Float) => of_float(float(value, from), to),
        (Kind::Float, _) => of_float(wide(value, from) as f64, to),
        (kind, Kind::Float) => {
            let x = rounded(float(value, from)) as i128;
            let bits = 8 * to.bytes as u32;
            let (least, most) = match kind {
                Kind::Signed => (-(1 << (bits - 1)), (1 << (bits - 1)) - 1),
                _ => (0, (1_i128 << bits) - 1),
            };
            cut(x.clamp(least, most) as u64, to.bytes)
        }
        // A narrower value is sign-extended to the width of a register if the target is signed.
        _ => cut(
            wide(value, from) as u64,
            if to.kind == Kind::Signed { to.bytes.max(4) } else { to.bytes },
        ),
    })
}
/// Returns the value that an atomic operation stores.
pub fn atomic(how: &str, of: Type, old: u64, a: &[u64]) -> Option<u64> {
    let two = |name: &str| compute(&[name.to_owned()], of, &[old, a[0]]);
    match how {
        "add" | "min" | "max" | "and" | "or" | "xor" => two(how),
        "exch" => Some(cut(a[0], of.bytes)),
        "cas" => {
            Some(if cut(old, of.bytes) == cut(a[0], of.bytes) { cut(a[1], of.bytes) } else { old })
        }
        "inc" => Some(if old >= cut(a[0], of.bytes) { 0 } else { old + 1 }),
        "dec" => {
            Some(if old == 0 || old > cut(a[0], of.bytes) { cut(a[0], of.bytes) } else { old - 1 })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fused_multiplication_and_addition_rounds_once() {
        let of = Type { kind: Kind::Float, bytes: 4 };
        // The product is 1 + 2^-24, in the middle between two floats; what is added decides for the greater one.
        let [one, other, little] = [257.0, 65_281.0 / 16_777_216.0, 2_f32.powi(-60)];
        let arguments = [one, other, little].map(|x: f32| u64::from(x.to_bits()));
        for name in ["fma", "mad"] {
            let parts = [name, "rn", "f32"].map(str::to_owned);
            let result = compute(&parts, of, &arguments).unwrap();
            assert_eq!(f32::from_bits(result as u32), 1.0 + f32::EPSILON, "{name}");
        }
    }
}
