//! OpenCL's extended instructions that work on all lanes together: geometry, shuffles, and loads and stores
//! of vectors, which become ordinary loads and stores.
use super::{
    arithmetic::{bits, float},
    body::Body,
    convert::{Conversion, Rounding},
    read::{Instruction, Read},
    step::{Place, Step, Stride},
    types::{Leaf, Scalar},
};

const HALF: Scalar = Scalar::Float(16);
/// This many consecutive numbers in memory.
fn row(scalar: Scalar, lanes: u32) -> std::sync::Arc<[Leaf]> {
    (0..u64::from(lanes)).map(|n| Leaf { at: n * scalar.bytes(), scalar }).collect()
}
impl Body<'_, '_> {
    /// Converts the instruction.
    pub fn wide(&mut self, i: &Instruction<'_>, op: u32) -> Read<()> {
        match op {
            185 => self.made(i).map(drop), // a prefetch has no effect
            104..=110 => self.geometry(i, op),
            182 | 183 => self.shuffled(i, op),
            171 | 173 | 174 | 179 => self.vector_from(i, op),
            172 | 175..=178 | 180 | 181 => self.vector_to(i, op),
            _ => i.refuse(format!("extended instruction {op} is not known here")),
        }
    }
    fn geometry(&mut self, i: &Instruction<'_>, op: u32) -> Read<()> {
        let (scalar, lanes) = (self.scalar_of(i, 4)?, self.lanes_of(i, 4)?);
        let mut arguments = vec![self.operand(i, 4)?];
        if matches!(op, 104 | 105 | 108) {
            arguments.push(self.operand_of(i, 5, lanes)?);
        }
        let (to, made) = self.made(i)?;
        let whole = matches!(op, 104 | 107 | 110);
        if made != if whole { lanes } else { 1 } || op == 104 && !matches!(lanes, 3 | 4) {
            return i.refuse("vectors of the wrong lengths");
        }
        if !matches!(scalar, Scalar::Float(_)) || self.b.types.scalar(i.word(0)?)? != scalar {
            return i.refuse("geometry of the wrong kind of numbers");
        }
        self.push(Step::Wide { op, scalar, to, arguments, lanes })
    }
    fn shuffled(&mut self, i: &Instruction<'_>, op: u32) -> Read<()> {
        let lanes = self.b.types.lanes(i.word(0)?)?;
        let each = self.lanes_of(i, 4)?;
        let both = op == 183;
        let which = self.operand_of(i, if both { 6 } else { 5 }, lanes)?;
        let mut from: Vec<Place> =
            (0..each).map(|n| Ok(self.operand(i, 4)?.lane(n))).collect::<Read<_>>()?;
        if both {
            let second = self.operand_of(i, 5, each)?;
            from.extend((0..each).map(|n| second.lane(n)));
        }
        let count = from.len() as u32;
        let row = self.scratch(count)?;
        self.push(Step::Gather { to: row, from })?;
        // Only as many low bits of an index are used as are needed to select a lane.
        let scalar = self.scalar_of(i, if both { 6 } else { 5 })?;
        let mask = self.b.constant([u64::from(count.next_power_of_two() - 1)])?;
        let low = self.scratch(lanes)?;
        self.push(Step::Binary {
            op: 199,
            scalar,
            to: low,
            a: which,
            b: mask,
            lanes,
            each: false,
        })?;
        let which = Place(Place::FRAME | low);
        let (to, lanes) = self.made(i)?;
        for lane in 0..lanes {
            let from = Place(Place::FRAME | row);
            self.push(Step::Extract {
                to: to + lane,
                from,
                lanes: count,
                index: which.lane(lane),
            })?;
        }
        Ok(())
    }
    /// Computes the address of an element; operand `first` is the index, the next one the pointer.
    fn element(&mut self, i: &Instruction<'_>, first: usize, bytes: u64) -> Read<Place> {
        let (index, scalar) = (self.operand_of(i, first, 1)?, self.scalar_of(i, first)?);
        let base = self.operand_of(i, first + 1, 1)?;
        let to = self.scratch(1)?;
        let strides = vec![Stride { index, scalar, bytes }];
        self.push(Step::Address { to, base, bytes: 0, strides })?;
        Ok(Place(Place::FRAME | to))
    }
    fn vector_from(&mut self, i: &Instruction<'_>, op: u32) -> Read<()> {
        let scalar = self.b.types.scalar(i.word(0)?)?;
        let lanes = self.b.types.lanes(i.word(0)?)?;
        let stored = if op == 171 { scalar } else { HALF };
        let apart = if op == 179 && lanes == 3 { 4 } else { lanes };
        let from = self.element(i, 4, stored.bytes() * u64::from(apart))?;
        let (to, lanes) = self.made(i)?;
        self.push(Step::Load { to, from, leaves: row(stored, lanes) })?;
        if stored == scalar {
            return Ok(());
        }
        let how = conversion(HALF, scalar, Rounding::Usual);
        self.push(Step::Convert { how, to, a: Place(Place::FRAME | to), lanes })
    }
    fn vector_to(&mut self, i: &Instruction<'_>, op: u32) -> Read<()> {
        let (scalar, lanes) = (self.scalar_of(i, 4)?, self.lanes_of(i, 4)?);
        let stored = if op == 172 { scalar } else { HALF };
        let apart = if op >= 180 && lanes == 3 { 4 } else { lanes };
        let data = self.operand(i, 4)?;
        let to = self.element(i, 5, stored.bytes() * u64::from(apart))?;
        let mut from = data;
        if stored != scalar {
            let rounding = match (matches!(op, 176 | 178 | 181), i.rest(7).first()) {
                (true, Some(1)) => Rounding::Zero,
                (true, Some(2)) => Rounding::Up,
                (true, Some(3)) => Rounding::Down,
                _ => Rounding::Usual,
            };
            let at = self.scratch(lanes)?;
            let how = conversion(scalar, HALF, rounding);
            self.push(Step::Convert { how, to: at, a: data, lanes })?;
            from = Place(Place::FRAME | at);
        }
        self.push(Step::Store { to, from, leaves: row(stored, lanes) })
    }
}
fn conversion(from: Scalar, into: Scalar, rounding: Rounding) -> Conversion {
    Conversion { op: 115, from, into, saturates: false, rounding }
}
/// The result of a geometric function of one or two vectors.
pub(super) fn geometry(op: u32, scalar: Scalar, a: &[u64], b: &[u64]) -> Vec<u64> {
    let numbers = |row: &[u64]| -> Vec<f64> { row.iter().map(|v| float(scalar, *v)).collect() };
    let (a, b) = (numbers(a), numbers(b));
    let length = |row: &[f64]| row.iter().map(|v| v * v).sum::<f64>().sqrt();
    let result = match op {
        104 => {
            let at = |n: usize, m: usize| a[n] * b[m] - a[m] * b[n];
            let mut all = vec![at(1, 2), at(2, 0), at(0, 1)];
            all.resize(a.len(), 0.0);
            all
        }
        105 | 108 => {
            let apart: Vec<f64> = a.iter().zip(&b).map(|(x, y)| x - y).collect();
            vec![length(&apart)]
        }
        106 | 109 => vec![length(&a)],
        _ => {
            let by = length(&a);
            a.iter().map(|v| if by == 0.0 { *v } else { v / by }).collect()
        }
    };
    result.into_iter().map(|v| bits(scalar, v)).collect()
}
