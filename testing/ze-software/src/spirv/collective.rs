//! Instructions that the items of a group or subgroup execute together: barriers, reductions, scans,
//! broadcasts, ballots, shuffles.
use super::{
    arithmetic::{binary, bits, float},
    body::Body,
    read::{Instruction, Read},
    step::{Place, Step},
    types::Scalar,
};

/// The items whose operands contribute to an item's result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    All,
    UpToMe,
    BeforeMe,
    /// The items of the same cluster, which has this size.
    Cluster(u32),
}
#[derive(Clone, Debug)]
pub(super) struct Collective {
    pub op: u16,
    pub subgroup: bool,
    pub reach: Reach,
    pub scalar: Scalar,
    pub to: u32,
    pub lanes: u32,
    /// The place of each operand and how many numbers it has.
    pub operands: Vec<(Place, u32)>,
}
impl Body<'_, '_> {
    /// Converts the instruction if it is one of those in this file; else returns false.
    pub fn together(&mut self, i: &Instruction<'_>) -> Read<bool> {
        match i.code {
            224 => {
                let subgroup = self.b.number(i.word(0)?)? == 3;
                match subgroup {
                    true => self.collect(i, Reach::All, 0..0, None)?,
                    false => self.push(Step::Barrier)?,
                }
            }
            260 => self.push(Step::Barrier)?,
            261 | 262 | 333..=338 | 340 | 341 | 343 | 344 | 345..=348 | 263 | 339 => {
                self.collect(i, Reach::All, 3..i.words.len(), Some(2))?;
            }
            264..=271 | 342 | 349..=364 | 6401..=6408 => {
                let reach = match (i.word(3)?, i.rest(5).first()) {
                    (0, _) => Reach::All,
                    (1, _) => Reach::UpToMe,
                    (2, _) => Reach::BeforeMe,
                    (3, Some(size)) => match self.b.number(*size)? {
                        size @ 1..=256 => Reach::Cluster(size as u32),
                        size => return i.refuse(format!("clusters of {size} items")),
                    },
                    _ => return i.refuse("a way to join that is not known here"),
                };
                self.collect(i, reach, 4..5, Some(2))?;
            }
            5571..=5574 => self.collect(i, Reach::All, 2..i.words.len(), None)?,
            98 | 99 | 88 | 95 | 103 | 104 => return self.picture(i),
            86 | 100 => return self.picture(i),
            _ => return Ok(false),
        }
        Ok(true)
    }
    fn collect(
        &mut self,
        i: &Instruction<'_>,
        reach: Reach,
        operands: std::ops::Range<usize>,
        scope: Option<usize>,
    ) -> Read<()> {
        let subgroup = match scope {
            Some(scope) => self.b.number(i.word(scope)?)? == 3,
            None => true,
        };
        let (mut rows, mut scalar) = (Vec::new(), Scalar::Bool);
        for index in operands {
            if rows.is_empty() {
                scalar = self.scalar_of(i, index)?;
            }
            rows.push((self.operand(i, index)?, self.lanes_of(i, index)?));
        }
        let (to, lanes) = if i.code == 224 { (0, 0) } else { self.made(i)? };
        let first = rows.first().map_or(lanes, |(_, lanes)| *lanes);
        let alike = match i.code {
            224 | 333 => rows.is_empty(),
            261 | 262 | 334..=336 | 340..=344 => !rows.is_empty() && lanes <= 4,
            339 => !rows.is_empty() && lanes == 4,
            _ => first == lanes && !rows.is_empty(),
        };
        let needs = match i.code {
            263 | 337 | 341 | 345..=348 | 5571 | 5574 => 2,
            5572 | 5573 => 3,
            _ => 0,
        };
        if !alike || rows.len() < needs {
            return i.refuse("operands of the wrong sizes or too few");
        }
        if matches!(i.code, 340..=344) && first != 4 {
            return i.refuse("a ballot has four numbers");
        }
        let op = i.code;
        let done = Collective { op, subgroup, reach, scalar, to, lanes, operands: rows };
        self.push(Step::Together(Box::new(done)))
    }
}
/// An item that takes part: its index in the group or subgroup, and its operands.
pub(super) struct Part {
    pub index: u32,
    /// Its three-dimensional index in the group.
    pub local: [u64; 3],
    pub operands: Vec<Vec<u64>>,
}
/// The opcode of the operation that combines two numbers, and its identity.
fn joins(op: u16, scalar: Scalar) -> (u16, u64) {
    let most = scalar.mask() >> 1;
    match op {
        264 | 349 => (128, 0),
        265 | 350 => (129, 0),
        351 | 6401 => (132, 1),
        352 | 6402 => (133, bits(scalar, 1.0)),
        266 | 355 => (28, bits(scalar, f64::INFINITY)),
        267 | 354 => (237, scalar.mask()),
        268 | 353 => (236, most),
        269 | 358 => (27, bits(scalar, f64::NEG_INFINITY)),
        270 | 357 => (239, 0),
        271 | 356 => (238, most + 1),
        359 | 6403 => (199, scalar.mask()),
        360 | 6404 => (197, 0),
        361 | 6405 => (198, 0),
        362 | 6406 => (167, 1),
        363 | 6407 => (166, 0),
        _ => (165, 0),
    }
}
fn joined(how: u16, scalar: Scalar, a: u64, b: u64) -> u64 {
    let (x, y) = (scalar.signed(a), scalar.signed(b));
    match how {
        28 => bits(scalar, float(scalar, a).min(float(scalar, b))),
        27 => bits(scalar, float(scalar, a).max(float(scalar, b))),
        236 => {
            if x <= y {
                a
            } else {
                b
            }
        }
        238 => {
            if x >= y {
                a
            } else {
                b
            }
        }
        237 => a.min(b),
        239 => a.max(b),
        _ => binary(how, scalar, a, b),
    }
}
/// A ballot: the bits of the items whose first operand is true.
fn ballot(parts: &[Part]) -> [u64; 4] {
    let mut all = [0; 4];
    for part in parts {
        if part.operands[0][0] != 0 && part.index < 128 {
            all[part.index as usize / 32] |= 1 << (part.index % 32);
        }
    }
    all
}
fn bit(words: &[u64], index: u64) -> u64 {
    words.get(index as usize / 32).map_or(0, |w| w >> (index % 32) & 1)
}
/// The indices of the bits that are set in a ballot, lowest first.
fn set(words: &[u64]) -> impl Iterator<Item = u64> {
    (0..128).filter(move |n| bit(words, *n) == 1)
}
impl Collective {
    /// The results of all items that take part.
    pub fn results(&self, parts: &[Part]) -> Vec<Vec<u64>> {
        let one = |truth: bool| vec![vec![u64::from(truth)]; parts.len()];
        let first = |p: &Part| p.operands[0].clone();
        match self.op {
            224 => vec![Vec::new(); parts.len()],
            333 => parts.iter().map(|p| vec![u64::from(p.index == parts[0].index)]).collect(),
            261 | 334 => one(parts.iter().all(|p| p.operands[0][0] != 0)),
            262 | 335 => one(parts.iter().any(|p| p.operands[0][0] != 0)),
            336 => one(parts.iter().all(|p| p.operands[0] == parts[0].operands[0])),
            338 => vec![first(&parts[0]); parts.len()],
            339 => vec![ballot(parts).to_vec(); parts.len()],
            340 => parts.iter().map(|p| vec![bit(&p.operands[0], p.index.into())]).collect(),
            341 => parts.iter().map(|p| vec![bit(&p.operands[0], p.operands[1][0])]).collect(),
            342 => parts.iter().map(|p| vec![self.counted(p)]).collect(),
            343 => parts.iter().map(|p| vec![set(&p.operands[0]).next().unwrap_or(0)]).collect(),
            344 => parts.iter().map(|p| vec![set(&p.operands[0]).last().unwrap_or(0)]).collect(),
            263 | 337 | 345..=348 | 5571..=5574 => {
                parts.iter().map(|p| self.another(p, parts)).collect()
            }
            _ => parts.iter().map(|p| self.reduced(p, parts)).collect(),
        }
    }
    fn reaches(&self, me: u32, other: u32) -> bool {
        match self.reach {
            Reach::All => true,
            Reach::UpToMe => other <= me,
            Reach::BeforeMe => other < me,
            Reach::Cluster(size) => me / size == other / size,
        }
    }
    fn counted(&self, part: &Part) -> u64 {
        let counts = |n: &u64| self.reaches(part.index, *n as u32);
        set(&part.operands[0]).filter(counts).count() as u64
    }
    fn reduced(&self, me: &Part, parts: &[Part]) -> Vec<u64> {
        let (how, start) = joins(self.op, self.scalar);
        let lane = |l: usize| {
            let reached = parts.iter().filter(|p| self.reaches(me.index, p.index));
            reached.fold(start, |sum, p| joined(how, self.scalar, sum, p.operands[0][l]))
        };
        (0..self.lanes as usize).map(lane).collect()
    }
    /// The first operand of the item that the second operand selects, by index or relative to the item `me`.
    /// If that item does not take part, the operand of `me`.
    fn another(&self, me: &Part, parts: &[Part]) -> Vec<u64> {
        let at = |index: u64| parts.iter().find(|p| u64::from(p.index) == index);
        let own = u64::from(me.index);
        let by = me.operands[1][0];
        let other = match self.op {
            263 => {
                let wanted = &me.operands[1];
                let here = |p: &&Part| p.local.iter().zip(wanted).all(|(a, b)| a == b);
                let linear = self.subgroup
                    || wanted.len() == 1 && parts.iter().all(|p| p.local[1] + p.local[2] == 0);
                if linear { at(wanted[0]) } else { parts.iter().find(here) }
            }
            346 | 5574 => at(own ^ by),
            347 => own.checked_sub(by).and_then(at),
            348 => at(own + by),
            5572 | 5573 => return self.between(me, parts),
            _ => at(by),
        };
        other.unwrap_or(me).operands[0].clone()
    }
    /// A shuffle up or down across two values: an element of their concatenation, shifted by the third
    /// operand.
    fn between(&self, me: &Part, parts: &[Part]) -> Vec<u64> {
        let size = i64::from(parts.last().map_or(0, |p| p.index)) + 1;
        let (own, by) = (i64::from(me.index), me.operands[2][0] as u32 as i64);
        let (row, index) = match self.op {
            5572 if own + by < size => (0, own + by),
            5572 => (1, own + by - size),
            _ if own >= by => (1, own - by),
            _ => (0, own - by + size),
        };
        let other = parts.iter().find(|p| i64::from(p.index) == index);
        other.unwrap_or(me).operands[row].clone()
    }
}
