//! Converts a function's instructions into steps: blocks and branches. Instructions that compute values are
//! in `values`, those that access memory in `pointers`, those that items execute together in `collective`.
use super::{
    build::{Builder, Declared},
    constants::says_nothing,
    read::{Instruction, Read},
    step::{Callee, Edge, Function, Place, Step},
};
use std::collections::HashMap;

/// A phi instruction: its registers, its type, and pairs of a predecessor block and the value from there.
struct Phi {
    to: u32,
    kind: u32,
    from: Vec<(u32, u32)>,
}
pub(super) struct Body<'b, 'a> {
    pub b: &'b mut Builder<'a>,
    pub f: Function,
    result: u32,
    /// The first step of each block.
    labels: HashMap<u32, usize>,
    phis: HashMap<u32, Vec<Phi>>,
    /// The last step of each block, and the block's label.
    ends: Vec<(usize, u32)>,
    block: Option<u32>,
}

pub(super) fn function(
    b: &mut Builder<'_>,
    declared: &Declared,
    instructions: &[Instruction<'_>],
) -> Read<Function> {
    let mut body = Body::new(b, declared.result);
    body.f.result = body.b.types.lanes(declared.result)?;
    for (id, kind) in &declared.parameters {
        let to = body.value(*id, *kind)?;
        let lanes = body.b.types.lanes(*kind)?;
        body.f.parameters.push((to, lanes));
    }
    for i in instructions {
        body.take(i)?;
    }
    if body.block.is_some() {
        return Err(format!("function %{} ends inside a block", declared.id));
    }
    body.connect()?;
    Ok(body.f)
}
/// A function without parameters that computes the one value of instruction `i`.
pub(super) fn constant(b: &mut Builder<'_>, i: &Instruction<'_>) -> Read<Function> {
    let kind = i.word(0)?;
    let mut body = Body::new(b, kind);
    body.f.result = body.b.types.lanes(kind)?;
    if !body.values(i)? && !body.pointers(i)? {
        return i.refuse("this makes no constant");
    }
    let from = body.b.place(i.word(1)?)?;
    let lanes = body.f.result;
    body.f.steps.push(Step::Return { from, lanes });
    Ok(body.f)
}
impl<'b, 'a> Body<'b, 'a> {
    fn new(b: &'b mut Builder<'a>, result: u32) -> Body<'b, 'a> {
        let (f, block) = (Function::default(), None);
        let (labels, phis, ends) = (HashMap::new(), HashMap::new(), Vec::new());
        Body { b, f, result, labels, phis, ends, block }
    }
    /// Allocates registers for a value and defines it.
    pub fn value(&mut self, id: u32, kind: u32) -> Read<u32> {
        let lanes = self.b.types.lanes(kind)?;
        let to = self.f.registers;
        self.f.registers += lanes;
        self.b.count(lanes)?;
        self.b.define(id, kind, Place(Place::FRAME | to))?;
        Ok(to)
    }
    /// Allocates registers for an instruction's result. Returns the first register and the number of
    /// registers.
    pub fn made(&mut self, i: &Instruction<'_>) -> Read<(u32, u32)> {
        let kind = i.word(0)?;
        Ok((self.value(i.word(1)?, kind)?, self.b.types.lanes(kind)?))
    }
    pub fn push(&mut self, step: Step) -> Read<()> {
        self.f.steps.push(step);
        Ok(())
    }
    /// The place of an operand.
    pub fn operand(&self, i: &Instruction<'_>, index: usize) -> Read<Place> {
        self.b.place(i.word(index)?)
    }
    /// As [`Body::operand`], for an operand that must consist of this many numbers.
    pub fn operand_of(&self, i: &Instruction<'_>, index: usize, lanes: u32) -> Read<Place> {
        let has = self.b.types.lanes(self.b.value_type(i.word(index)?)?)?;
        if has != lanes {
            return i
                .refuse(format!("%{} has {has} numbers where {lanes} are needed", i.words[index]));
        }
        self.operand(i, index)
    }

    fn take(&mut self, i: &Instruction<'_>) -> Read<()> {
        if i.code == 248 {
            let label = i.word(0)?;
            if self.block.replace(label).is_some() {
                return i.refuse("a block begins inside another");
            }
            if self.labels.insert(label, self.f.steps.len()).is_some() {
                return i.refuse(format!("there are two blocks %{label}"));
            }
            return Ok(());
        }
        if matches!(i.code, 8 | 317 | 0) {
            return Ok(());
        }
        let Some(block) = self.block else {
            return i.refuse("in no block");
        };
        match i.code {
            246 | 247 | 256 | 257 => Ok(()),
            245 => self.phi(i, block),
            249..=255 => {
                self.ends.push((self.f.steps.len(), block));
                self.block = None;
                self.end(i)
            }
            57 => self.call(i),
            12 if self.b.notes.sets.get(&i.word(2)?) != Some(&true) => Ok(()),
            code if says_nothing(code) => Ok(()),
            _ => match self.values(i)? || self.pointers(i)? || self.together(i)? {
                true => Ok(()),
                false => i.refuse("instructions of this kind are not known here"),
            },
        }
    }
    fn phi(&mut self, i: &Instruction<'_>, block: u32) -> Read<()> {
        let (pairs, rest) = i.rest(2).as_chunks::<2>();
        if !rest.is_empty() {
            return i.refuse("a value without the block that it comes from");
        }
        let (to, _) = self.made(i)?;
        let from = pairs.iter().map(|[value, parent]| (*parent, *value)).collect();
        let phi = Phi { to, kind: i.word(0)?, from };
        self.phis.entry(block).or_default().push(phi);
        Ok(())
    }
}
/// An edge whose target is still the label of the block.
fn edge(label: u32) -> Edge {
    Edge { to: label as usize, moves: Vec::new() }
}
impl Body<'_, '_> {
    /// Converts the last instruction of a block.
    fn end(&mut self, i: &Instruction<'_>) -> Read<()> {
        let step = match i.code {
            249 => Step::Jump(edge(i.word(0)?)),
            250 => {
                let which = self.operand_of(i, 0, 1)?;
                Step::Branch { which, yes: edge(i.word(1)?), no: edge(i.word(2)?) }
            }
            251 => self.switch(i)?,
            253 => {
                if self.f.result != 0 {
                    return i.refuse("a function with a result returns none");
                }
                Step::Return { from: Place(0), lanes: 0 }
            }
            254 => {
                if self.b.value_type(i.word(0)?)? != self.result {
                    return i.refuse("the function returns a value of another type than its own");
                }
                Step::Return { from: self.operand(i, 0)?, lanes: self.f.result }
            }
            _ => Step::Unreachable,
        };
        self.push(step)
    }
    fn switch(&mut self, i: &Instruction<'_>) -> Read<Step> {
        let on = self.operand_of(i, 0, 1)?;
        let scalar = self.b.types.scalar(self.b.value_type(i.word(0)?)?)?;
        let words = if scalar.bits() == 64 { 2 } else { 1 };
        let rest = i.rest(2);
        if !rest.len().is_multiple_of(words + 1) {
            return i.refuse("a case without a block");
        }
        let case = |c: &[u32]| {
            let high = if words == 2 { u64::from(c[1]) << 32 } else { 0 };
            ((high | u64::from(c[0])) & scalar.mask(), edge(c[words]))
        };
        let cases = rest.chunks_exact(words + 1).map(case).collect();
        Ok(Step::Switch { on, cases, other: edge(i.word(1)?) })
    }
    fn call(&mut self, i: &Instruction<'_>) -> Read<()> {
        let id = i.word(2)?;
        let Some(n) = self.b.by_id.get(&id).copied() else {
            return i.refuse(format!("%{id} is called and is no function"));
        };
        let callee = self.b.declared[n].clone();
        if callee.result != i.word(0)? || callee.parameters.len() != i.rest(3).len() {
            return i.refuse(format!("%{id} is called with another result or other arguments"));
        }
        for ((_, kind), argument) in callee.parameters.iter().zip(i.rest(3)) {
            if self.b.value_type(*argument)? != *kind {
                return i.refuse(format!("%{id} is called with an argument of another type"));
            }
        }
        self.call_of(i, Callee::Known(n), 3)
    }
    /// A call; `first` is the index of the first argument among the operands.
    pub fn call_of(&mut self, i: &Instruction<'_>, callee: Callee, first: usize) -> Read<()> {
        let mut arguments = Vec::new();
        for index in first..i.words.len() {
            let kind = self.b.value_type(i.word(index)?)?;
            arguments.push((self.operand(i, index)?, self.b.types.lanes(kind)?));
        }
        let (to, _) = self.made(i)?;
        self.push(Step::Call { callee, arguments, to })
    }
    /// Replaces the labels in all edges by steps, and adds the moves for the phi instructions there.
    fn connect(&mut self) -> Read<()> {
        for (at, block) in std::mem::take(&mut self.ends) {
            let mut step = std::mem::replace(&mut self.f.steps[at], Step::Unreachable);
            match &mut step {
                Step::Jump(edge) => self.lead(edge, block)?,
                Step::Branch { yes, no, .. } => {
                    self.lead(yes, block)?;
                    self.lead(no, block)?;
                }
                Step::Switch { cases, other, .. } => {
                    self.lead(other, block)?;
                    for (_, edge) in cases {
                        self.lead(edge, block)?;
                    }
                }
                _ => {}
            }
            self.f.steps[at] = step;
        }
        Ok(())
    }
    fn lead(&mut self, edge: &mut Edge, from: u32) -> Read<()> {
        let label = edge.to as u32;
        let to = self.labels.get(&label).copied();
        edge.to =
            to.ok_or_else(|| format!("block %{from} leads to %{label}, which is no block"))?;
        for phi in self.phis.get(&label).into_iter().flatten() {
            let value = phi.from.iter().find(|(parent, _)| *parent == from).map(|(_, v)| *v);
            let value = value.ok_or_else(|| {
                format!("block %{label} has no value for one that comes from %{from}")
            })?;
            if self.b.value_type(value)? != phi.kind {
                return Err(format!("block %{label} takes %{value}, which is of another type"));
            }
            let place = self.b.place(value)?;
            let lanes = self.b.types.lanes(phi.kind)?;
            self.b.count(lanes)?;
            edge.moves.extend((0..lanes).map(|lane| (phi.to + lane, place.lane(lane))));
        }
        Ok(())
    }
}
