//! Runs a block: each thread until the next barrier, one after the other, until all have returned.
use super::{Entry, Instruction, Operand, Special, Text, Type, arithmetic};
use crate::{
    code::{Answer, Code, ILLEGAL_ADDRESS, ILLEGAL_INSTRUCTION, MISALIGNED},
    ranges::{self, Who},
    raw,
};
use std::{collections::HashMap, sync::Mutex};

/// The beginnings of the generic address windows of shared and local memory.
const SHARED: u64 = 0x7f00 << 48;
const LOCAL: u64 = 0x7e00 << 48;
const WINDOW: u64 = 1 << 32;
/// Serializes the atomic operations of all streams.
static ATOMIC: Mutex<()> = Mutex::new(());

/// The state that the threads of a block share.
pub struct Block<'a> {
    pub text: &'a Text,
    pub entry: &'a Entry,
    pub variables: &'a HashMap<String, (u64, u64)>,
    pub parameters: &'a [u8],
    pub device: i32,
    pub group: [u32; 3],
    pub groups: [u32; 3],
    pub items: [u32; 3],
    pub shared: Vec<u8>,
}
struct Item {
    place: [u32; 3],
    number: u32,
    next: usize,
    registers: Vec<u64>,
    local: Vec<u8>,
    /// The parameters of calls, and in a function its own parameters.
    buffers: HashMap<String, Vec<u8>>,
    is_over: bool,
}
impl Item {
    /// A thread at the beginning of a kernel or function.
    fn new(entry: &Entry, place: [u32; 3], number: u32) -> Self {
        let buffers =
            entry.buffers.iter().map(|(name, bytes)| (name.clone(), vec![0; *bytes])).collect();
        let (registers, local) = (vec![0; entry.registers], vec![0; entry.local_bytes as usize]);
        Self { place, number, next: 0, registers, local, buffers, is_over: false }
    }
}
/// What follows an instruction.
enum Step {
    Next,
    To(usize),
    Barrier,
    Over,
}
/// Runs one block.
pub fn run_block(block: &mut Block<'_>) -> Answer {
    let [wide, high, deep] = block.items;
    let places =
        (0..deep).flat_map(|z| (0..high).flat_map(move |y| (0..wide).map(move |x| [x, y, z])));
    let entry = block.entry;
    let mut items: Vec<Item> =
        places.zip(0..).map(|(place, number)| Item::new(entry, place, number)).collect();
    while items.iter().any(|i| !i.is_over) {
        for item in items.iter_mut().filter(|i| !i.is_over) {
            block.run_item(item)?;
        }
    }
    Ok(())
}
impl Block<'_> {
    /// Runs a thread to its next barrier or to its end.
    fn run_item(&mut self, item: &mut Item) -> Answer {
        let entry = self.entry;
        loop {
            let Some(instruction) = entry.code.get(item.next) else {
                item.is_over = true;
                return Ok(());
            };
            item.next += 1;
            let off =
                instruction.guard.is_some_and(|(r, unless)| (item.registers[r] != 0) == unless);
            match if off { Step::Next } else { self.step(item, instruction)? } {
                Step::Next => {}
                Step::To(at) => item.next = at,
                Step::Barrier => return Ok(()),
                Step::Over => {
                    item.is_over = true;
                    return Ok(());
                }
            }
        }
    }
    fn step(&mut self, item: &mut Item, i: &Instruction) -> Answer<Step> {
        let of = i.of.ok_or(ILLEGAL_INSTRUCTION);
        match i.parts[0].as_str() {
            "ret" | "exit" => return Ok(Step::Over),
            "bar" | "barrier" => return Ok(Step::Barrier),
            "membar" | "fence" | "prefetch" => {}
            "bra" => match i.operands.first() {
                Some(Operand::Symbol(label)) => {
                    return self
                        .entry
                        .labels
                        .get(label)
                        .map(|at| Step::To(*at))
                        .ok_or(ILLEGAL_INSTRUCTION);
                }
                _ => return Err(ILLEGAL_INSTRUCTION),
            },
            "call" => self.call(item, i)?,
            "ld" => self.load(item, i, of?)?,
            "st" => self.store(item, i, of?)?,
            "atom" | "red" => self.atomic(item, i, of?)?,
            "mov" => {
                let value = self.value(item, &i.operands[1])?;
                // The address of a symbol becomes generic only by `cvta`.
                set(item, &i.operands[0], value)?;
            }
            "cvta" => {
                let value = self.value(item, &i.operands[1])?;
                let has = |part: &str| i.parts.iter().any(|p| p == part);
                let window = if has("shared") {
                    SHARED
                } else if has("local") {
                    LOCAL
                } else {
                    0
                };
                let value =
                    if has("to") { value.wrapping_sub(window) } else { value.wrapping_add(window) };
                set(item, &i.operands[0], value)?;
            }
            _ => {
                let inputs = i.operands.get(1..).ok_or(ILLEGAL_INSTRUCTION)?;
                let values: Vec<u64> =
                    inputs.iter().map(|o| self.value(item, o)).collect::<Answer<_>>()?;
                let result =
                    arithmetic::compute(&i.parts, of?, &values).ok_or(ILLEGAL_INSTRUCTION)?;
                set(item, &i.operands[0], result)?;
            }
        }
        Ok(Step::Next)
    }
    fn value(&self, item: &Item, operand: &Operand) -> Answer<u64> {
        Ok(match operand {
            Operand::Register(r) => item.registers[*r],
            Operand::Number(n) => *n,
            Operand::Special(which, axis) => u64::from(match which {
                Special::Item => item.place[*axis],
                Special::Items => self.items[*axis],
                Special::Group => self.group[*axis],
                Special::Groups => self.groups[*axis],
                Special::Lane => item.number % 32,
                Special::Warp => item.number / 32,
            }),
            Operand::Symbol(name) => self.symbol(name).ok_or(ILLEGAL_INSTRUCTION)?,
            Operand::At(base, offset) => self.value(item, base)?.wrapping_add(*offset as u64),
            Operand::Several(_) => return Err(ILLEGAL_INSTRUCTION),
        })
    }
    /// The address of a symbol in its own state space.
    fn symbol(&self, name: &str) -> Option<u64> {
        let dynamic = || (self.text.shared_bytes + self.entry.shared_bytes).next_multiple_of(16);
        let parameter =
            || self.entry.parameters.iter().find(|p| p.name == name).map(|p| p.offset as u64);
        let own =
            self.entry.shared.get(name).map(|at| at + self.text.shared_bytes.next_multiple_of(16));
        let module = || self.text.shared.get(name).copied();
        let free = || self.text.dynamic.iter().any(|d| d == name).then(dynamic);
        let variable = || self.variables.get(name).map(|(at, _)| *at);
        let local = || self.entry.local.get(name).copied();
        own.or_else(parameter).or_else(local).or_else(module).or_else(free).or_else(variable)
    }
    /// Reads or writes `bytes` in the state space that the mnemonic names.
    fn access(
        &mut self,
        item: &mut Item,
        parts: &[String],
        at: u64,
        bytes: &mut [u8],
        writes: bool,
    ) -> Answer {
        let space =
            |name: &str| parts.iter().any(|p| p == name || p.starts_with(&format!("{name}::")));
        let count = bytes.len() as u64;
        if !at.is_multiple_of(count) {
            return Err(MISALIGNED);
        }
        let generic = !["param", "global", "shared", "local", "const"].iter().any(|s| space(s));
        let window = |begin: u64| generic && (begin..begin + WINDOW).contains(&at);
        let (memory, at) = if space("param") {
            if writes {
                return Err(ILLEGAL_INSTRUCTION);
            }
            let from = self.parameters.get(at as usize..).and_then(|p| p.get(..bytes.len()));
            bytes.copy_from_slice(from.ok_or(ILLEGAL_ADDRESS)?);
            return Ok(());
        } else if space("shared") || window(SHARED) {
            (&mut self.shared, at & (WINDOW - 1))
        } else if space("local") || window(LOCAL) {
            (&mut item.local, at & (WINDOW - 1))
        } else {
            let table = ranges::table();
            let here = table.reach(at, count, self.device, Who::Kernel, writes)?;
            let there = bytes.as_mut_ptr();
            if writes {
                raw::copy(here, there, bytes.len())
            } else {
                raw::copy(there, here, bytes.len())
            }
            return Ok(());
        };
        let range = memory
            .get_mut(at as usize..)
            .and_then(|m| m.get_mut(..bytes.len()))
            .ok_or(ILLEGAL_ADDRESS)?;
        if writes {
            range.copy_from_slice(bytes)
        } else {
            bytes.copy_from_slice(range)
        }
        Ok(())
    }
    fn read(&mut self, item: &mut Item, parts: &[String], at: u64, of: Type) -> Answer<u64> {
        let mut bytes = [0; 8];
        self.access(item, parts, at, &mut bytes[..of.bytes], false)?;
        Ok(extend(u64::from_le_bytes(bytes), of))
    }
    fn write(
        &mut self,
        item: &mut Item,
        parts: &[String],
        at: u64,
        of: Type,
        value: u64,
    ) -> Answer {
        let mut bytes = value.to_le_bytes();
        self.access(item, parts, at, &mut bytes[..of.bytes], true)
    }
    /// Calls a function of the module, which must not contain barriers.
    fn call(&mut self, item: &mut Item, i: &Instruction) -> Answer {
        let (text, mut operands) = (self.text, i.operands.iter().peekable());
        let names = |operand: &Operand| -> Answer<Vec<String>> {
            let name = |o: &Operand| {
                if let Operand::Symbol(n) = o { Ok(n.clone()) } else { Err(ILLEGAL_INSTRUCTION) }
            };
            each(operand).iter().map(name).collect()
        };
        let results =
            operands.next_if(|o| matches!(o, Operand::Several(_))).map_or(Ok(Vec::new()), names)?;
        let name = names(operands.next().ok_or(ILLEGAL_INSTRUCTION)?)?.remove(0);
        let given = operands.next().map_or(Ok(Vec::new()), names)?;
        let function = text.functions.iter().find(|f| f.name == name).ok_or(ILLEGAL_INSTRUCTION)?;
        let mut callee = Item::new(function, item.place, item.number);
        for (to, from) in function.parameters.iter().zip(&given) {
            let value = item.buffers.get(from).ok_or(ILLEGAL_INSTRUCTION)?;
            callee.buffers.insert(to.name.clone(), value.clone());
        }
        callee.buffers.extend(function.results.iter().map(|r| (r.name.clone(), vec![0; r.bytes])));
        let caller = std::mem::replace(&mut self.entry, function);
        let ran = self.run_item(&mut callee);
        self.entry = caller;
        ran?;
        if !callee.is_over {
            return Err(ILLEGAL_INSTRUCTION);
        }
        for (from, to) in function.results.iter().zip(results) {
            let value = callee.buffers.remove(&from.name).ok_or(ILLEGAL_INSTRUCTION)?;
            item.buffers.insert(to, value);
        }
        Ok(())
    }
    /// Returns the accessed part of a call's parameter, if the operand names one.
    fn buffer<'i>(
        item: &'i mut Item,
        i: &Instruction,
        place: &Operand,
        bytes: usize,
    ) -> Option<&'i mut [u8]> {
        let Operand::At(base, offset) = place else { return None };
        let Operand::Symbol(name) = &**base else { return None };
        let is_parameter = i.parts.iter().any(|p| p == "param" || p.starts_with("param::"));
        let buffer = item.buffers.get_mut(name).filter(|_| is_parameter)?;
        buffer.get_mut(*offset as usize..)?.get_mut(..bytes)
    }
    fn load(&mut self, item: &mut Item, i: &Instruction, of: Type) -> Answer {
        let several = each(&i.operands[0]);
        if let Some(bytes) = Self::buffer(item, i, &i.operands[1], several.len() * of.bytes) {
            let bytes = bytes.to_vec();
            for (one, part) in several.iter().zip(bytes.chunks(of.bytes)) {
                let mut word = [0; 8];
                word[..of.bytes].copy_from_slice(part);
                set(item, one, extend(u64::from_le_bytes(word), of))?;
            }
            return Ok(());
        }
        let at = self.value(item, &i.operands[1])?;
        for (n, one) in each(&i.operands[0]).iter().enumerate() {
            let value = self.read(item, &i.parts, at + (n * of.bytes) as u64, of)?;
            set(item, one, value)?;
        }
        Ok(())
    }
    fn store(&mut self, item: &mut Item, i: &Instruction, of: Type) -> Answer {
        let several = each(&i.operands[1]);
        let values: Vec<u64> =
            several.iter().map(|o| self.value(item, o)).collect::<Answer<_>>()?;
        if let Some(bytes) = Self::buffer(item, i, &i.operands[0], several.len() * of.bytes) {
            for (part, value) in bytes.chunks_mut(of.bytes).zip(values) {
                part.copy_from_slice(&value.to_le_bytes()[..of.bytes]);
            }
            return Ok(());
        }
        let at = self.value(item, &i.operands[0])?;
        for (n, one) in each(&i.operands[1]).iter().enumerate() {
            let value = self.value(item, one)?;
            self.write(item, &i.parts, at + (n * of.bytes) as u64, of, value)?;
        }
        Ok(())
    }
    fn atomic(&mut self, item: &mut Item, i: &Instruction, of: Type) -> Answer {
        let _alone = ATOMIC.lock().map_err(|_| ILLEGAL_INSTRUCTION)?;
        let first = usize::from(i.parts[0] == "atom");
        let at = self.value(item, i.operands.get(first).ok_or(ILLEGAL_INSTRUCTION)?)?;
        let inputs: Vec<u64> =
            i.operands[first + 1..].iter().map(|o| self.value(item, o)).collect::<Answer<_>>()?;
        let old = self.read(item, &i.parts, at, of)?;
        let mut names = i.parts.iter().skip(1);
        let new = names
            .find_map(|how| arithmetic::atomic(how, of, old, &inputs))
            .ok_or(ILLEGAL_INSTRUCTION)?;
        self.write(item, &i.parts, at, of, new)?;
        if first == 1 { set(item, &i.operands[0], old) } else { Ok(()) }
    }
}
/// Extends a loaded value to a register: signed values are sign-extended.
fn extend(value: u64, of: Type) -> u64 {
    if of.kind == super::Kind::Signed && of.bytes < 8 {
        let shift = 64 - 8 * of.bytes as u32;
        return (((value << shift) as i64) >> shift) as u64;
    }
    value
}
fn each(operand: &Operand) -> &[Operand] {
    if let Operand::Several(several) = operand { several } else { std::slice::from_ref(operand) }
}
fn set(item: &mut Item, operand: &Operand, value: u64) -> Result<(), Code> {
    let Operand::Register(r) = operand else { return Err(ILLEGAL_INSTRUCTION) };
    item.registers[*r] = value;
    Ok(())
}
