//! The image instructions: reads, writes, samples and size queries.
use super::{
    arithmetic::{bits, float},
    atomics::Fault,
    body::Body,
    read::{Instruction, Read},
    step::Step,
    types::Scalar,
};
use crate::picture::{image_at, sampler_at};

impl Body<'_, '_> {
    /// Converts the instruction if it is one of those in this file; else returns false.
    pub fn picture(&mut self, i: &Instruction<'_>) -> Read<bool> {
        let written = i.code == 99;
        match i.code {
            86 => {
                let from = vec![self.operand_of(i, 2, 1)?, self.operand_of(i, 3, 1)?];
                let (to, lanes) = self.made(i)?;
                if lanes != 2 {
                    return i.refuse("the result has to be an image with a sampler");
                }
                self.push(Step::Gather { to, from })?;
                return Ok(true);
            }
            100 => {
                let from = self.operand_of(i, 2, 2)?;
                let (to, _) = self.one(i)?;
                self.push(Step::Move { to, from, lanes: 1 })?;
                return Ok(true);
            }
            88 | 95 | 98 | 99 | 103 | 104 => {}
            _ => return Ok(false),
        }
        let operands = match i.code {
            99 => 0..3,
            103 | 104 => 2..3,
            _ => 2..4,
        };
        let mut arguments = Vec::new();
        for index in operands {
            let lanes = self.lanes_of(i, index)?;
            arguments.push((self.operand(i, index)?, lanes, self.scalar_of(i, index)?));
        }
        let wide = if i.code == 88 { 2 } else { 1 };
        let coordinates = arguments.get(1).is_none_or(|(_, lanes, _)| matches!(lanes, 1..=4));
        if arguments[0].1 != wide || arguments[0].2 != Scalar::Pointer || !coordinates {
            return i.refuse("an image or a place in one of the wrong type");
        }
        let (to, lanes, scalar) = match written {
            true => (0, 0, arguments[2].2),
            false => {
                let (to, lanes) = self.made(i)?;
                (to, lanes, self.b.types.scalar(i.word(0)?)?)
            }
        };
        if lanes > 4 {
            return i.refuse("a texel of more than four numbers");
        }
        self.push(Step::Image { op: i.code, to, lanes, scalar, arguments })?;
        Ok(true)
    }
}
fn number(scalar: Scalar, value: f64) -> u64 {
    match scalar {
        Scalar::Float(_) => bits(scalar, value),
        _ => (value as i64).cast_unsigned() & scalar.mask(),
    }
}
fn real(scalar: Scalar, signed: bool, value: u64) -> f64 {
    match scalar {
        Scalar::Float(_) => float(scalar, value),
        _ if signed => scalar.signed(value) as f64,
        _ => value as f64,
    }
}
/// Executes an image instruction and returns its result.
pub(super) fn access(
    op: u16,
    scalar: Scalar,
    lanes: u32,
    operands: &[(Vec<u64>, Scalar)],
) -> Result<Vec<u64>, Fault> {
    let image = image_at(operands[0].0[0])?;
    if matches!(op, 103 | 104) {
        let (size, _) = image.extent();
        return Ok((0..lanes as usize)
            .map(|n| u64::from(size.get(n).copied().unwrap_or(0)))
            .collect());
    }
    let (row, kind) = &operands[1];
    let place: [f64; 3] =
        std::array::from_fn(|n| row.get(n).map_or(0.0, |v| real(*kind, true, *v)));
    let whole = place.map(|c| c.floor() as i64);
    let texel = match op {
        99 => {
            let (row, kind) = &operands[2];
            let signed = image.is_signed();
            let texel =
                std::array::from_fn(|n| row.get(n).map_or(0.0, |v| real(*kind, signed, *v)));
            image.store(whole, texel);
            return Ok(Vec::new());
        }
        88 => sampler_at(operands[0].0[1])?.sample(image, place),
        _ => image.fetch(whole).unwrap_or([0.0; 4]),
    };
    Ok((0..lanes as usize).map(|n| number(scalar, texel[n])).collect())
}
