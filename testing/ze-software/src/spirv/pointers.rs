//! The instructions that compute addresses and access memory.
use super::{
    atomics::Atomic,
    body::Body,
    read::{Instruction, Read},
    step::{Place, Step, Stride},
    types::{Scalar, Shape},
};

impl Body<'_, '_> {
    /// Allocates registers for an intermediate result.
    pub fn scratch(&mut self, lanes: u32) -> Read<u32> {
        let to = self.f.registers;
        self.f.registers += lanes;
        self.b.count(lanes)?;
        Ok(to)
    }
    /// The type that an operand points to.
    fn pointee(&self, i: &Instruction<'_>, index: usize) -> Read<u32> {
        Ok(self.b.types.pointee(self.b.value_type(i.word(index)?)?)?.1)
    }
    /// Converts the instruction if it is one of those in this file; else returns false.
    pub fn pointers(&mut self, i: &Instruction<'_>) -> Read<bool> {
        match i.code {
            59 => self.local(i)?,
            61 => {
                let to_load = self.pointee(i, 2)?;
                if to_load != i.word(0)? {
                    return i.refuse("the load is of another type than what is pointed to");
                }
                let leaves = self.b.types.leaves(to_load)?;
                let from = self.operand(i, 2)?;
                let (to, _) = self.made(i)?;
                self.push(Step::Load { to, from, leaves })?;
            }
            62 => {
                let to_store = self.pointee(i, 0)?;
                if to_store != self.b.value_type(i.word(1)?)? {
                    return i.refuse("the value is of another type than what is pointed to");
                }
                let leaves = self.b.types.leaves(to_store)?;
                let (to, from) = (self.operand(i, 0)?, self.operand(i, 1)?);
                self.push(Step::Store { to, from, leaves })?;
            }
            63 => {
                let size = self.b.types.get(self.pointee(i, 0)?)?.size;
                let bytes = self.b.constant([size])?;
                let (to, from) = (self.operand_of(i, 0, 1)?, self.operand_of(i, 1, 1)?);
                self.push(Step::Copy { to, from, bytes })?;
            }
            64 => {
                let bytes = self.operand_of(i, 2, 1)?;
                let (to, from) = (self.operand_of(i, 0, 1)?, self.operand_of(i, 1, 1)?);
                self.push(Step::Copy { to, from, bytes })?;
            }
            65 | 66 => self.address(i, 3, None)?,
            67 | 70 => self.address(i, 4, Some(3))?,
            259 => self.spread(i)?,
            225 => {} // all accesses are sequentially consistent already
            227..=242 | 318 | 319 | 5614 | 5615 | 6035 => self.atomic(i)?,
            _ => return Ok(false),
        }
        Ok(true)
    }
    /// A copy by a whole group (OpGroupAsyncCopy). Each item copies everything. The result is the same,
    /// because no item may use the destination before it has waited for the copy.
    fn spread(&mut self, i: &Instruction<'_>) -> Read<()> {
        let (class, element) = self.b.types.pointee(self.b.value_type(i.word(3)?)?)?;
        let bytes = self.b.types.get(element)?.size;
        let (to, from) = (self.operand_of(i, 3, 1)?, self.operand_of(i, 4, 1)?);
        let (count, stride) = (self.operand_of(i, 5, 1)?, self.operand_of(i, 6, 1)?);
        self.push(Step::Spread { to, from, count, stride, bytes, strided_to: class != 4 })?;
        let event = self.b.constant([0])?;
        self.b.define(i.word(1)?, i.word(0)?, event)
    }
    fn local(&mut self, i: &Instruction<'_>) -> Read<()> {
        let kind = i.word(0)?;
        let (_, to_hold) = self.b.types.pointee(kind)?;
        let (size, align) = (self.b.types.get(to_hold)?.size, self.b.types.get(to_hold)?.align);
        let at = self.f.bytes.next_multiple_of(align.max(8));
        self.f.bytes = at + size;
        if self.f.bytes > 1 << 24 {
            return i.refuse("the variables of the function take more memory than there is");
        }
        let (to, _) = self.made(i)?;
        self.push(Step::Variable { to, at })?;
        if i.words.len() > 3 {
            if self.b.value_type(i.words[3])? != to_hold {
                return i.refuse("the variable begins with a value of another type");
            }
            let (from, leaves) = (self.operand(i, 3)?, self.b.types.leaves(to_hold)?);
            self.push(Step::Store { to: Place(Place::FRAME | to), from, leaves })?;
        }
        Ok(())
    }
    /// Computes an address from a pointer operand. `first` is the operand with the first index into the
    /// pointee, `over` the operand that counts whole pointees.
    fn address(&mut self, i: &Instruction<'_>, first: usize, over: Option<usize>) -> Read<()> {
        let base = self.operand_of(i, 2, 1)?;
        let mut kind = self.pointee(i, 2)?;
        let (mut bytes, mut strides) = (0_u64, Vec::new());
        if let Some(over) = over {
            let size = self.b.types.get(kind)?.size;
            self.stride(i, over, size, &mut bytes, &mut strides)?;
        }
        for index in first..i.words.len() {
            kind = match self.b.types.get(kind)?.shape.clone() {
                Shape::Struct(_) => {
                    let number = self.b.number(i.words[index])?;
                    let (member, _, at) = self.b.types.part(kind, number)?;
                    bytes = bytes.wrapping_add(at);
                    member
                }
                Shape::Array(element, _) | Shape::Vector(element, _) => {
                    let size = self.b.types.get(element)?.size;
                    self.stride(i, index, size, &mut bytes, &mut strides)?;
                    element
                }
                _ => return i.refuse("an index into something that has no parts"),
            };
        }
        let made = self.b.types.pointee(i.word(0)?)?.1;
        if made != kind {
            return i.refuse("the indices lead to another type than that of the result");
        }
        let (to, _) = self.made(i)?;
        self.push(Step::Address { to, base, bytes, strides })
    }
    fn stride(
        &mut self,
        i: &Instruction<'_>,
        index: usize,
        size: u64,
        bytes: &mut u64,
        strides: &mut Vec<Stride>,
    ) -> Read<()> {
        let (place, scalar) = (self.operand_of(i, index, 1)?, self.scalar_of(i, index)?);
        match self.b.number(i.words[index]) {
            Ok(number) => {
                let by = scalar.signed(number).cast_unsigned();
                *bytes = bytes.wrapping_add(by.wrapping_mul(size));
            }
            Err(_) => strides.push(Stride { index: place, scalar, bytes: size }),
        }
        Ok(())
    }
    fn atomic(&mut self, i: &Instruction<'_>) -> Read<()> {
        let made = !matches!(i.code, 228 | 319);
        let at_operand = if made { 2 } else { 0 };
        let at = self.operand_of(i, at_operand, 1)?;
        let scalar = self.b.types.scalar(self.pointee(i, at_operand)?)?;
        if scalar == Scalar::Bool || scalar.bits() > 64 {
            return i.refuse("an atomic operation on something that is no number");
        }
        let zero = self.b.constant([0])?;
        let (op, value, expected) = match i.code {
            227 => (Atomic::Load, zero, zero),
            228 => (Atomic::Store, self.operand_of(i, 3, 1)?, zero),
            319 => (Atomic::Store, zero, zero),
            229 => (Atomic::Exchange, self.operand_of(i, 5, 1)?, zero),
            230 | 231 => (Atomic::Compare, self.operand_of(i, 6, 1)?, self.operand_of(i, 7, 1)?),
            232 | 233 | 318 => (Atomic::Update(i.code), zero, zero),
            code => (Atomic::Update(code), self.operand_of(i, 5, 1)?, zero),
        };
        let to = if made { self.one(i)?.0 } else { self.scratch(1)? };
        self.push(Step::Atomic { op, scalar, to, at, value, expected })
    }
}
