//! The types of a module: the number of registers of a value, and its layout in memory. A value has one
//! register for each number in it, however deeply nested that is.
use super::read::{Instruction, Read};
use std::{collections::HashMap, sync::Arc};

/// A number, which fits in one register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scalar {
    Bool,
    /// An integer with this many bits; the instructions determine whether it is signed.
    Int(u8),
    /// A floating-point number with this many bits.
    Float(u8),
    /// An address, or the handle of an image, a sampler or an event.
    Pointer,
}
impl Scalar {
    pub fn bits(self) -> u32 {
        match self {
            Scalar::Bool => 1,
            Scalar::Int(bits) | Scalar::Float(bits) => u32::from(bits),
            Scalar::Pointer => 64,
        }
    }
    pub fn bytes(self) -> u64 {
        u64::from(self.bits()).div_ceil(8)
    }
    /// The bits of a register that the number uses.
    pub fn mask(self) -> u64 {
        u64::MAX >> (64 - self.bits())
    }
    /// The value, sign-extended.
    pub fn signed(self, value: u64) -> i64 {
        let free = 64 - self.bits();
        ((value << free) as i64) >> free
    }
}
/// A number in memory: its offset in bytes and its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Leaf {
    pub at: u64,
    pub scalar: Scalar,
}
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    Void,
    Scalar(Scalar),
    /// The element type and the number of elements.
    Vector(u32, u32),
    Array(u32, u64),
    /// The members and their offsets in bytes.
    Struct(Vec<(u32, u64)>),
    /// The storage class and the pointee's type, which may be declared later.
    Pointer(u32, u32),
    /// The types of the result and of the parameters.
    Function(u32, Vec<u32>),
    Image,
    Sampler,
    SampledImage,
}
#[derive(Clone, Debug)]
pub(super) struct Type {
    pub shape: Shape,
    /// In bytes; 0 for types without a size.
    pub size: u64,
    pub align: u64,
    /// The number of registers of a value.
    pub lanes: u64,
    /// How deeply composites are nested.
    depth: u32,
}
/// The limit for the number of registers of one value.
pub(super) const MOST_LANES: u64 = 1 << 18;
/// The limit for the nesting of composites.
const DEEPEST: u32 = 64;
/// The limit for the size of a type.
const MOST_BYTES: u64 = 1 << 40;

/// All types, by identifier.
#[derive(Debug, Default)]
pub(super) struct Types {
    all: Vec<Option<Type>>,
    leaves: HashMap<u32, Arc<[Leaf]>>,
}
impl Types {
    pub fn new(bound: usize) -> Types {
        Types { all: vec![None; bound], leaves: HashMap::new() }
    }
    pub fn get(&self, id: u32) -> Read<&Type> {
        let found = self.all.get(id as usize).and_then(Option::as_ref);
        found.ok_or_else(|| format!("%{id} is used as a type and is none that came before"))
    }
    /// The type of a scalar, or of a vector's elements.
    pub fn scalar(&self, id: u32) -> Read<Scalar> {
        match &self.get(id)?.shape {
            Shape::Scalar(scalar) => Ok(*scalar),
            Shape::Vector(element, _) => self.scalar(*element),
            Shape::Pointer(..) | Shape::Image | Shape::Sampler | Shape::SampledImage => {
                Ok(Scalar::Pointer)
            }
            _ => Err(format!("type %{id} is neither a number nor a vector of numbers")),
        }
    }
    /// The number of registers of a value.
    pub fn lanes(&self, id: u32) -> Read<u32> {
        match self.get(id)?.lanes {
            lanes @ 0..=MOST_LANES => Ok(lanes as u32),
            lanes => Err(format!("a value of type %{id} has {lanes} numbers: more than are taken")),
        }
    }
    /// The storage class and the type of what a pointer points to.
    pub fn pointee(&self, id: u32) -> Read<(u32, u32)> {
        match self.get(id)?.shape {
            Shape::Pointer(class, to) => Ok((class, to)),
            _ => Err(format!("type %{id} is no pointer")),
        }
    }
    /// A part of a composite: its type, its first register and its offset in bytes.
    pub fn part(&self, id: u32, index: u64) -> Read<(u32, u64, u64)> {
        let outside = || format!("type %{id} has no part {index}");
        let repeated = |element: u32| -> Read<(u32, u64, u64)> {
            let of = self.get(element)?;
            let at = index.checked_mul(of.size).ok_or_else(outside)?;
            Ok((element, index.checked_mul(of.lanes).ok_or_else(outside)?, at))
        };
        match &self.get(id)?.shape {
            Shape::Vector(element, count) if index < u64::from(*count) => repeated(*element),
            Shape::Array(element, count) if index < *count => repeated(*element),
            Shape::Struct(members) => {
                let (member, at) = *members.get(index as usize).ok_or_else(outside)?;
                let before = members[..index as usize].iter();
                let lanes = before.map(|(m, _)| self.get(*m).map_or(0, |t| t.lanes)).sum();
                Ok((member, lanes, at))
            }
            _ => Err(outside()),
        }
    }
    /// All numbers of a value, with their offsets in memory.
    pub fn leaves(&mut self, id: u32) -> Read<Arc<[Leaf]>> {
        self.lanes(id)?;
        if let Some(known) = self.leaves.get(&id) {
            return Ok(Arc::clone(known));
        }
        let mut all = Vec::new();
        self.gather(id, 0, &mut all)?;
        let all: Arc<[Leaf]> = all.into();
        self.leaves.insert(id, Arc::clone(&all));
        Ok(all)
    }
    fn gather(&self, id: u32, at: u64, into: &mut Vec<Leaf>) -> Read<()> {
        if self.get(id)?.lanes == 0 {
            return Ok(()); // nothing to do, however many elements there are
        }
        let mut repeat = |element: u32, count: u64| -> Read<()> {
            let size = self.get(element)?.size;
            (0..count).try_for_each(|n| self.gather(element, at + n * size, into))
        };
        match &self.get(id)?.shape {
            Shape::Scalar(scalar) => into.push(Leaf { at, scalar: *scalar }),
            Shape::Vector(element, count) => repeat(*element, u64::from(*count))?,
            Shape::Array(element, count) => repeat(*element, *count)?,
            Shape::Struct(members) => {
                members.iter().try_for_each(|(member, by)| self.gather(*member, at + by, into))?;
            }
            Shape::Void | Shape::Function(..) => {}
            Shape::SampledImage => {
                into.extend([0, 8].map(|by| Leaf { at: at + by, scalar: Scalar::Pointer }));
            }
            _ => into.push(Leaf { at, scalar: Scalar::Pointer }),
        }
        Ok(())
    }
}

impl Types {
    /// Declares a type. `length` is that of an array; `packed`: the members of a structure have no padding.
    pub fn declare(&mut self, i: &Instruction<'_>, packed: bool, length: u64) -> Read<()> {
        let id = i.word(0)?;
        let plain = |shape, bytes| Type { shape, size: bytes, align: bytes, lanes: 1, depth: 0 };
        let number = |scalar: Scalar| plain(Shape::Scalar(scalar), scalar.bytes());
        let made = match i.code {
            19 => Type { shape: Shape::Void, size: 0, align: 1, lanes: 0, depth: 0 },
            20 => number(Scalar::Bool),
            21 => match i.word(1)? {
                bits @ (8 | 16 | 32 | 64) => number(Scalar::Int(bits as u8)),
                bits => return i.refuse(format!("integers of {bits} bits are not computed with")),
            },
            22 => match i.word(1)? {
                bits @ (16 | 32 | 64) => number(Scalar::Float(bits as u8)),
                bits => return i.refuse(format!("floats of {bits} bits are not computed with")),
            },
            23 => self.vector(i)?,
            28 => self.array(i, length)?,
            29 => self.array(i, 0)?,
            30 => self.structure(i, packed)?,
            31 => Type { shape: Shape::Struct(Vec::new()), size: 0, align: 1, lanes: 0, depth: 0 },
            32 => plain(Shape::Pointer(i.word(1)?, i.word(2)?), 8),
            33 => {
                let shape = Shape::Function(i.word(1)?, i.rest(2).to_vec());
                Type { shape, size: 0, align: 1, lanes: 0, depth: 0 }
            }
            25 => plain(Shape::Image, 8),
            26 | 34 => plain(Shape::Sampler, 8),
            27 => Type { shape: Shape::SampledImage, size: 16, align: 8, lanes: 2, depth: 0 },
            _ => return i.refuse("types of this kind are not known here"),
        };
        if made.depth > DEEPEST {
            return i.refuse(format!("more than {DEEPEST} composites inside each other"));
        }
        match self.all.get_mut(id as usize) {
            Some(place @ None) => *place = Some(made),
            _ => return i.refuse(format!("%{id} is declared twice, or above the bound")),
        }
        Ok(())
    }
    fn vector(&self, i: &Instruction<'_>) -> Read<Type> {
        let (element, count) = (i.word(1)?, i.word(2)?);
        if !matches!(self.get(element)?.shape, Shape::Scalar(_)) {
            return i.refuse("a vector of something that is no number");
        }
        if !matches!(count, 2..=4 | 8 | 16) {
            return i.refuse(format!("a vector of {count} numbers"));
        }
        let lies_as = if count == 3 { 4 } else { u64::from(count) };
        let size = self.get(element)?.size * lies_as;
        let shape = Shape::Vector(element, count);
        Ok(Type { shape, size, align: size, lanes: u64::from(count), depth: 0 })
    }
    fn array(&self, i: &Instruction<'_>, count: u64) -> Read<Type> {
        let element = i.word(1)?;
        let of = self.get(element)?;
        let size = of.size.checked_mul(count).filter(|s| *s <= MOST_BYTES);
        let lanes = of.lanes.saturating_mul(count);
        let Some(size) = size else { return i.refuse("the array is larger than any memory") };
        Ok(Type {
            shape: Shape::Array(element, count),
            size,
            align: of.align,
            lanes,
            depth: of.depth + 1,
        })
    }
    fn structure(&self, i: &Instruction<'_>, packed: bool) -> Read<Type> {
        let (mut at, mut align, mut lanes, mut members) = (0_u64, 1, 0_u64, Vec::new());
        let mut depth = 0;
        for member in i.rest(1) {
            let of = self.get(*member)?;
            if !packed {
                (at, align) = (at.next_multiple_of(of.align), align.max(of.align));
            }
            depth = depth.max(of.depth);
            members.push((*member, at));
            at += of.size;
            lanes = lanes.saturating_add(of.lanes);
            if at > MOST_BYTES {
                return i.refuse("the structure is larger than any memory");
            }
        }
        Ok(Type {
            shape: Shape::Struct(members),
            size: at.next_multiple_of(align),
            align,
            lanes,
            depth: depth + 1,
        })
    }
}
