//! The declarations of a module, which precede its functions: types, constants, specialization constants and
//! variables.
use super::{
    atomics, body,
    build::Builder,
    item,
    program::{Builtin, Global},
    read::{Instruction, Read},
    step::Place,
    types::Scalar,
};

use std::sync::atomic::AtomicU64;

/// The limit for the total size of a module's variables, in bytes.
const MOST_MEMORY: u64 = 1 << 30;
/// The limit for the total size of a group's variables, in bytes.
const MOST_LOCAL: u64 = 1 << 24;

/// Whether an instruction has no effect on results: names, sources, capabilities and others.
pub(super) fn says_nothing(code: u16) -> bool {
    matches!(code, 0 | 2..=8 | 10 | 11 | 14..=17 | 71..=75 | 317 | 330..=332 | 5632 | 5633)
}
impl Builder<'_> {
    /// Processes a declaration.
    pub fn declare(&mut self, i: &Instruction<'_>) -> Read<()> {
        match i.code {
            19..=34 => {
                let packed = self.notes.of(i.word(0)?).packed;
                let length = match i.code {
                    28 => self.number(i.word(2)?)?,
                    _ => 0,
                };
                self.types.declare(i, packed, length)
            }
            39 => Ok(()),
            1 | 46 => {
                let lanes = self.types.lanes(i.word(0)?)?;
                self.put(i, vec![0; lanes as usize])
            }
            41 | 42 => self.put(i, vec![u64::from(i.code == 41)]),
            43 => {
                let number = self.literal(i)?;
                self.put(i, vec![number])
            }
            48..=50 => self.special(i),
            44 | 51 => self.composite(i),
            45 => self.put(i, vec![0]),
            52 => self.computed(i),
            59 => self.variable(i),
            5600 => {
                let n = self.by_id.get(&i.word(2)?).copied();
                let n = n.ok_or_else(|| format!("%{} is no function", i.words[2]))?;
                let at = self.function_address(n);
                self.put(i, vec![at])
            }
            12 if self.notes.sets.get(&i.word(2)?) == Some(&false) => Ok(()),
            code if says_nothing(code) => Ok(()),
            _ => i.refuse(
                "instructions of this kind are not known here, or not outside of functions",
            ),
        }
    }
}
impl Builder<'_> {
    /// Adds a constant of the instruction's type.
    fn put(&mut self, i: &Instruction<'_>, numbers: Vec<u64>) -> Read<()> {
        let (kind, id) = (i.word(0)?, i.word(1)?);
        if self.types.lanes(kind)? as usize != numbers.len() {
            return i.refuse(format!("a constant of {} numbers for type %{kind}", numbers.len()));
        }
        let place = self.constant(numbers)?;
        self.define(id, kind, place)
    }
    /// The literal number in the instruction.
    fn literal(&self, i: &Instruction<'_>) -> Read<u64> {
        let scalar = self.types.scalar(i.word(0)?)?;
        let high = if scalar.bits() == 64 { i.word(3)? } else { 0 };
        Ok((u64::from(high) << 32 | u64::from(i.word(2)?)) & scalar.mask())
    }
    fn special(&mut self, i: &Instruction<'_>) -> Read<()> {
        let (kind, id) = (i.word(0)?, i.word(1)?);
        let scalar = self.types.scalar(kind)?;
        let mut number = match i.code {
            48 | 49 => u64::from(i.code == 48),
            _ => self.literal(i)?,
        };
        if let Some(spec) = self.notes.of(id).spec {
            self.specials.push((spec, scalar.bytes() as usize));
            if let Some((_, value)) = self.given.iter().find(|(n, _)| *n == spec) {
                let mut bytes = [0; 8];
                let count = value.len().min(8).min(scalar.bytes() as usize);
                bytes[..count].copy_from_slice(&value[..count]);
                number = u64::from_le_bytes(bytes);
                number = if scalar == Scalar::Bool { u64::from(number != 0) } else { number };
            }
        }
        self.put(i, vec![number])
    }
    fn composite(&mut self, i: &Instruction<'_>) -> Read<()> {
        let mut numbers = Vec::new();
        for part in i.rest(2) {
            numbers.extend(self.numbers(*part)?);
        }
        self.put(i, numbers)
    }
    /// A constant that is computed from other constants.
    fn computed(&mut self, i: &Instruction<'_>) -> Read<()> {
        let (kind, id, code) = (i.word(0)?, i.word(1)?, i.word(2)?);
        let mut words = vec![kind, id];
        words.extend_from_slice(i.rest(3));
        let inner = Instruction { code: code as u16, words: &words, at: i.at };
        let function = body::constant(self, &inner)?;
        self.program.functions.push(function);
        let numbers = item::evaluate(&self.program);
        self.program.functions.pop();
        let numbers = numbers.map_err(|why| format!("the constant %{id}: {why}"))?;
        // An address that is computed from the address of a group's or an item's variable is also relative to
        // that group or item.
        let relative = i.rest(3).iter().filter_map(|o| self.place(*o).ok());
        let kind = relative.map(|p| p.0 & Place::KIND).find(|k| *k != Place::CONSTANT);
        let place = match (kind, numbers.as_slice()) {
            (Some(Place::GROUP | Place::ITEM), [at]) if *at < 1 << 30 => {
                Place(kind.unwrap_or_default() | *at as u32)
            }
            (Some(_), _) => return i.refuse("this is not the same for all items"),
            (None, _) => self.constant(numbers)?,
        };
        self.redefine(id, place);
        Ok(())
    }
    /// The address that represents a function.
    pub fn function_address(&self, n: usize) -> u64 {
        self.program.anchors.as_ptr() as u64 + n as u64 * 16
    }
    fn variable(&mut self, i: &Instruction<'_>) -> Read<()> {
        let (kind, id, class) = (i.word(0)?, i.word(1)?, i.word(2)?);
        let (_, to) = self.types.pointee(kind)?;
        let note = self.notes.of(id);
        if let Some(which) = note.builtin {
            let (scalar, lanes) = (self.types.scalar(to)?, self.types.lanes(to)?);
            let at = self.program.item_bytes.next_multiple_of(32);
            let bytes = scalar.bytes();
            self.program.builtins.push(Builtin { at, which, bytes, lanes });
            self.program.item_bytes = at + self.types.get(to)?.size;
            return self.define(id, kind, Place(Place::ITEM | at as u32));
        }
        if let Some((name, 1)) = &note.linkage {
            let place = self.constant([0])?;
            self.program.wanted.push((name.clone(), (place.0 & !Place::KIND) as usize));
            return self.define(id, kind, place);
        }
        let (size, align) = (self.types.get(to)?.size, self.types.get(to)?.align.max(16));
        if class == 4 {
            let at = self.program.group_bytes.next_multiple_of(align);
            if size > MOST_LOCAL || at > MOST_LOCAL {
                return i.refuse("the variables of a group take more memory than there is");
            }
            self.program.group_bytes = at + size;
            return self.define(id, kind, Place(Place::GROUP | at as u32));
        }
        let used: u64 = self.program.memory.iter().map(|m| m.len() as u64 * 8).sum();
        if size > MOST_MEMORY || used > MOST_MEMORY {
            return i.refuse("the variables of the module take more memory than there is");
        }
        let words = size.div_ceil(8).max(1);
        let memory: Box<[AtomicU64]> = (0..words).map(|_| AtomicU64::new(0)).collect();
        let address = memory.as_ptr() as u64;
        self.program.memory.push(memory);
        if let Ok(from) = i.word(3) {
            if self.value_type(from)? != to {
                return i.refuse("the variable begins with a value of another type");
            }
            for (leaf, number) in self.types.leaves(to)?.iter().zip(self.numbers(from)?) {
                atomics::write(address + leaf.at, leaf.scalar, number)?;
            }
        }
        let outside = note.linkage.map(|(name, _)| name).or(note.name);
        self.globals.extend(outside.map(|name| (name, Global { address, size })));
        self.hosts.extend(note.host.map(|name| (name, Global { address, size })));
        let place = self.constant([address])?;
        self.define(id, kind, place)
    }
}
