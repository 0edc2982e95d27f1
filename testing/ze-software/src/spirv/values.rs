//! The instructions that compute values: arithmetic, conversions, selections, composites.
use super::{
    arithmetic::{self, Form},
    body::Body,
    convert::{Conversion, Rounding, converts},
    math::{self, Class},
    read::{Instruction, Read},
    step::{Callee, Place, Step},
    types::Scalar,
};

impl Body<'_, '_> {
    /// The type of an operand's numbers.
    pub(super) fn scalar_of(&self, i: &Instruction<'_>, index: usize) -> Read<Scalar> {
        self.b.types.scalar(self.b.value_type(i.word(index)?)?)
    }
    pub(super) fn lanes_of(&self, i: &Instruction<'_>, index: usize) -> Read<u32> {
        self.b.types.lanes(self.b.value_type(i.word(index)?)?)
    }
    /// Converts the instruction if it is one of those in this file; else returns false.
    pub fn values(&mut self, i: &Instruction<'_>) -> Read<bool> {
        match i.code {
            1 => {
                let kind = i.word(0)?;
                let lanes = self.b.types.lanes(kind)?;
                let place = self.b.constant(vec![0; lanes as usize])?;
                self.b.define(i.word(1)?, kind, place)?;
            }
            12 => self.extended(i)?,
            77..=82 => self.composites(i)?,
            83 | 400 | 5631 => self.same(i)?,
            5630 => {}
            117 | 120 => self.convert(i)?,
            121..=123 => self.same(i)?,
            124 => self.reinterpret(i)?,
            code if converts(code) => self.convert(i)?,
            142 => self.arithmetic(i, 133, false)?,
            148 => self.dot(i)?,
            149..=152 => self.with_rest(i)?,
            154 | 155 => {
                let (a, lanes) = (self.operand(i, 2)?, self.lanes_of(i, 2)?);
                let (to, _) = self.one(i)?;
                self.push(Step::Fold { all: i.code == 155, to, a, lanes })?;
            }
            169 => self.select(i)?,
            403 => self.distance(i)?,
            5601 => {
                let callee = Callee::Address(self.operand_of(i, 2, 1)?);
                self.call_of(i, callee, 3)?;
            }
            code if arithmetic::form(code).is_some() => self.arithmetic(i, code, true)?,
            _ => return Ok(false),
        }
        Ok(true)
    }
    /// Allocates the register for a result that must be a single number.
    pub(super) fn one(&mut self, i: &Instruction<'_>) -> Read<(u32, Scalar)> {
        let (to, lanes) = self.made(i)?;
        if lanes != 1 {
            return i.refuse("the result has to be one number");
        }
        Ok((to, self.b.types.scalar(i.word(0)?)?))
    }
    fn arithmetic(&mut self, i: &Instruction<'_>, op: u16, each: bool) -> Read<()> {
        let lanes = self.b.types.lanes(i.word(0)?)?;
        let (scalar, made) = (self.scalar_of(i, 2)?, self.b.types.scalar(i.word(0)?)?);
        let form = arithmetic::form(op);
        let float = matches!(scalar, Scalar::Float(_));
        let asks = matches!(form, Some(Form::Unary { float: true } | Form::Binary { float: true }));
        let truth = arithmetic::compares(op);
        if float != asks || truth != (made == Scalar::Bool) && op != 205 && !logical(op) {
            return i.refuse("operands or a result of the wrong kind");
        }
        if !truth && op != 205 && made.bits() != scalar.bits() {
            return i.refuse("the result is of another width than the operands");
        }
        let a = self.operand_of(i, 2, lanes)?;
        if let Some(Form::Unary { .. }) = form {
            let (to, _) = self.made(i)?;
            return self.push(Step::Unary { op, scalar, to, a, lanes });
        }
        let b = self.operand_of(i, 3, if each { lanes } else { 1 })?;
        let other = self.scalar_of(i, 3)?;
        let shift = matches!(op, 194..=196);
        if !shift && other.bits() != scalar.bits() {
            return i.refuse("operands of different widths");
        }
        let (to, _) = self.made(i)?;
        self.push(Step::Binary { op, scalar, to, a, b, lanes, each })
    }
}
/// Whether it is a bitwise instruction, which some modules use on booleans.
fn logical(op: u16) -> bool {
    matches!(op, 197..=200)
}
impl Body<'_, '_> {
    /// The operand under another type with the same number of numbers.
    fn same(&mut self, i: &Instruction<'_>) -> Read<()> {
        let lanes = self.b.types.lanes(i.word(0)?)?;
        let from = self.operand_of(i, 2, lanes)?;
        let (to, lanes) = self.made(i)?;
        self.push(Step::Move { to, from, lanes })
    }
    fn convert(&mut self, i: &Instruction<'_>) -> Read<()> {
        let (from, into) = (self.scalar_of(i, 2)?, self.b.types.scalar(i.word(0)?)?);
        let is_float = |s: Scalar| matches!(s, Scalar::Float(_));
        let asks = match i.code {
            109 | 110 => (true, false),
            111 | 112 => (false, true),
            115 | 116 => (true, true),
            _ => (false, false),
        };
        if (is_float(from), is_float(into)) != asks {
            return i.refuse("a conversion between the wrong kinds of numbers");
        }
        let note = self.b.notes.of(i.word(1)?);
        let rounding = match note.rounding {
            Some(0) => Rounding::Even,
            Some(1) => Rounding::Zero,
            Some(2) => Rounding::Up,
            Some(3) => Rounding::Down,
            _ => Rounding::Usual,
        };
        let how = Conversion { op: i.code, from, into, saturates: note.saturates, rounding };
        let lanes = self.b.types.lanes(i.word(0)?)?;
        let a = self.operand_of(i, 2, lanes)?;
        let (to, lanes) = self.made(i)?;
        self.push(Step::Convert { how, to, a, lanes })
    }
    fn reinterpret(&mut self, i: &Instruction<'_>) -> Read<()> {
        let from = (self.scalar_of(i, 2)?, self.lanes_of(i, 2)?);
        let into = (self.b.types.scalar(i.word(0)?)?, self.b.types.lanes(i.word(0)?)?);
        let bits = |(scalar, lanes): (Scalar, u32)| u64::from(scalar.bits()) * u64::from(lanes);
        if bits(from) != bits(into) || from.0 == Scalar::Bool && into.0 != Scalar::Bool {
            return i.refuse("a value is taken for one of another size");
        }
        let a = self.operand(i, 2)?;
        let (to, lanes) = self.made(i)?;
        self.push(match from.0.bits() == into.0.bits() {
            true => Step::Move { to, from: a, lanes },
            false => Step::Reinterpret { from, into, to, a },
        })
    }
    fn dot(&mut self, i: &Instruction<'_>) -> Read<()> {
        let (scalar, lanes) = (self.scalar_of(i, 2)?, self.lanes_of(i, 2)?);
        let (a, b) = (self.operand(i, 2)?, self.operand_of(i, 3, lanes)?);
        let (to, made) = self.one(i)?;
        if made != scalar || self.scalar_of(i, 3)? != scalar {
            return i.refuse("a product of different numbers");
        }
        self.push(Step::Dot { scalar, to, a, b, lanes })
    }
    /// Sums, differences and products in two parts. The result is a structure with both.
    fn with_rest(&mut self, i: &Instruction<'_>) -> Read<()> {
        let lanes = self.lanes_of(i, 2)?;
        let (a, b, scalar) =
            (self.operand(i, 2)?, self.operand_of(i, 3, lanes)?, self.scalar_of(i, 2)?);
        let (to, made) = self.made(i)?;
        if made != 2 * lanes || matches!(scalar, Scalar::Float(_) | Scalar::Bool) {
            return i.refuse("the result has to be a pair of what the operands are");
        }
        self.push(Step::Extended { op: i.code, scalar, to, a, b, lanes })
    }
    fn select(&mut self, i: &Instruction<'_>) -> Read<()> {
        let lanes = self.b.types.lanes(i.word(0)?)?;
        let each = self.lanes_of(i, 2)? != 1;
        let which = self.operand_of(i, 2, if each { lanes } else { 1 })?;
        let (a, b) = (self.operand_of(i, 3, lanes)?, self.operand_of(i, 4, lanes)?);
        let (to, lanes) = self.made(i)?;
        self.push(Step::Select { to, which, each, a, b, lanes })
    }
    fn distance(&mut self, i: &Instruction<'_>) -> Read<()> {
        let (_, pointee) = self.b.types.pointee(self.b.value_type(i.word(2)?)?)?;
        let bytes = self.b.types.get(pointee)?.size.max(1);
        let (a, b) = (self.operand_of(i, 2, 1)?, self.operand_of(i, 3, 1)?);
        let (to, scalar) = self.one(i)?;
        self.push(Step::Distance { to, a, b, bytes, scalar })
    }
    /// The type and the first number of the part that a path of literal indices selects.
    fn part(&self, i: &Instruction<'_>, mut kind: u32, path: &[u32]) -> Read<(u32, u32)> {
        let mut lane = 0;
        for index in path {
            let (next, lanes, _) = self.b.types.part(kind, u64::from(*index))?;
            (kind, lane) = (next, lane + lanes);
        }
        if lane > u64::from(u32::MAX >> 2) {
            return i.refuse("a part that is too far away");
        }
        Ok((kind, lane as u32))
    }
    fn composites(&mut self, i: &Instruction<'_>) -> Read<()> {
        let kind = i.word(0)?;
        let whole = self.b.types.lanes(kind)?;
        match i.code {
            77 => {
                let (from, lanes) = (self.operand(i, 2)?, self.lanes_of(i, 2)?);
                let index = self.operand_of(i, 3, 1)?;
                let (to, _) = self.one(i)?;
                self.push(Step::Extract { to, from, lanes, index })
            }
            78 => {
                let (from, value) = (self.operand_of(i, 2, whole)?, self.operand_of(i, 3, 1)?);
                let index = self.operand_of(i, 4, 1)?;
                let (to, lanes) = self.made(i)?;
                self.push(Step::Insert { to, from, lanes, index, value })
            }
            79 => self.shuffle(i, whole),
            80 => {
                let mut from = Vec::new();
                for index in 2..i.words.len() {
                    let place = self.operand(i, index)?;
                    from.extend((0..self.lanes_of(i, index)?).map(|lane| place.lane(lane)));
                }
                self.gather(i, from, whole)
            }
            81 => {
                let of = self.b.value_type(i.word(2)?)?;
                let (part, lane) = self.part(i, of, i.rest(3))?;
                if part != kind {
                    return i.refuse("the part is of another type than the result");
                }
                let from = self.operand(i, 2)?.lane(lane);
                let (to, lanes) = self.made(i)?;
                self.push(Step::Move { to, from, lanes })
            }
            _ => {
                let (part, lane) = self.part(i, kind, i.rest(4))?;
                let lanes = self.b.types.lanes(part)?;
                let (new, old) = (self.operand_of(i, 2, lanes)?, self.operand_of(i, 3, whole)?);
                let inside = lane..lane + lanes;
                let from = (0..whole).map(|n| match inside.contains(&n) {
                    true => new.lane(n - lane),
                    false => old.lane(n),
                });
                self.gather(i, from.collect(), whole)
            }
        }
    }
    fn gather(&mut self, i: &Instruction<'_>, from: Vec<Place>, whole: u32) -> Read<()> {
        if from.len() as u32 != whole {
            return i.refuse(format!("{} numbers for a value of {whole}", from.len()));
        }
        let (to, _) = self.made(i)?;
        self.push(Step::Gather { to, from })
    }
    fn shuffle(&mut self, i: &Instruction<'_>, whole: u32) -> Read<()> {
        let (a, b) = (self.operand(i, 2)?, self.operand(i, 3)?);
        let (first, second) = (self.lanes_of(i, 2)?, self.lanes_of(i, 3)?);
        let mut from = Vec::new();
        for lane in i.rest(4) {
            from.push(match *lane {
                lane if lane < first => a.lane(lane),
                lane if lane - first < second => b.lane(lane - first),
                u32::MAX => a,
                _ => return i.refuse("a number that neither vector has"),
            });
        }
        self.gather(i, from, whole)
    }
    /// An OpenCL extended instruction.
    fn extended(&mut self, i: &Instruction<'_>) -> Read<()> {
        let (op, kind) = (i.word(3)?, i.word(0)?);
        let Some(class) = math::class(op) else {
            return i.refuse(format!("extended instruction {op} is not known here"));
        };
        let lanes = self.b.types.lanes(kind)?;
        let count = match class {
            Class::Each(count) => count,
            Class::Second(count) => count,
            Class::Wide => return self.wide(i, op),
        };
        let mut arguments = Vec::new();
        for index in 4..4 + count {
            arguments.push(self.operand_of(i, index, lanes)?);
        }
        let own = self.b.types.scalar(kind)?;
        let is_whole = |s: Scalar| !matches!(s, Scalar::Float(_));
        if math::whole(op) != is_whole(own) && !matches!(op, 33 | 186 | 187) {
            return i.refuse("an extended instruction on the wrong kind of numbers");
        }
        let mut leaf = match op {
            33 => self.scalar_of(i, 4)?,
            _ if count > 1 => self.scalar_of(i, 5)?,
            _ => own,
        };
        if let Class::Second(_) = class {
            arguments.push(self.operand_of(i, 4 + count, 1)?);
            let (_, pointee) = self.b.types.pointee(self.b.value_type(i.word(4 + count)?)?)?;
            if self.b.types.lanes(pointee)? != lanes {
                return i.refuse("the second result goes to a value of another size");
            }
            leaf = self.b.types.scalar(pointee)?;
        }
        let scalar = match op {
            164 | 165 => self.scalar_of(i, 4)?, // the result is twice as wide
            _ => own,
        };
        let (to, lanes) = self.made(i)?;
        self.push(match (op, lanes) {
            (187, 1) => {
                let [b, a, which] = arguments[..] else { return i.refuse("no three operands") };
                Step::Select { to, which, each: false, a, b, lanes }
            }
            _ => Step::Math { op, scalar, to, arguments, lanes, leaf },
        })
    }
}
