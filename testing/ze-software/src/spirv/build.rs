//! Builds a program from the words of a module: declarations and constants here, functions in `body`.
use super::{
    body,
    notes::Notes,
    program::{Global, Import, Program, Special},
    read::{self, Instruction, Read},
    step::{Function, Place},
    types::Types,
};
use std::{
    collections::HashMap,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

/// A declared function: its identifiers, its types, and the range of its instructions.
#[derive(Clone, Debug)]
pub(super) struct Declared {
    pub id: u32,
    pub result: u32,
    pub parameters: Vec<(u32, u32)>,
    pub body: std::ops::Range<usize>,
}
pub(super) struct Builder<'a> {
    pub notes: Notes,
    pub types: Types,
    /// The type of each value, by the value's identifier; 0 if it is not a value.
    value_types: Vec<u32>,
    places: Vec<Option<Place>>,
    pub program: Program,
    pub declared: Vec<Declared>,
    pub by_id: HashMap<u32, usize>,
    pub given: &'a [(u32, Vec<u8>)],
    pub specials: Vec<Special>,
    pub globals: HashMap<String, Global>,
    /// The variables that have a name for host access.
    pub hosts: HashMap<String, Global>,
    /// How many numbers the values of all functions consist of so far.
    values: u64,
}
const MOST_NUMBERS: usize = 1 << 24;
/// The limit for the values of all functions together, in numbers.
const MOST_VALUES: u64 = 1 << 24;

impl<'a> Builder<'a> {
    /// Builds the whole module, or returns why that is not possible. `given` has the values of specialization
    /// constants by their numbers.
    pub fn module(words: &[u32], given: &'a [(u32, Vec<u8>)]) -> Read<Builder<'a>> {
        let all = read::instructions(words)?;
        let notes = Notes::read(&all)?;
        if !notes.memory_model {
            return Err("the module names no memory model".to_owned());
        }
        let bound = read::bound(words);
        let mut made = Builder {
            notes,
            types: Types::new(bound),
            value_types: vec![0; bound],
            places: vec![None; bound],
            program: Program::default(),
            declared: Vec::new(),
            by_id: HashMap::new(),
            given,
            specials: Vec::new(),
            globals: HashMap::new(),
            hosts: HashMap::new(),
            values: 0,
        };
        made.find_functions(&all)?;
        let end = all.iter().position(|i| i.code == 54).unwrap_or(all.len());
        for i in &all[..end] {
            made.declare(i)?;
        }
        for n in 0..made.declared.len() {
            made.function(&all, n)?;
        }
        Ok(made)
    }
    fn find_functions(&mut self, all: &[Instruction<'_>]) -> Read<()> {
        let mut open: Option<Declared> = None;
        for (at, i) in all.iter().enumerate() {
            match (i.code, &mut open) {
                (54, None) => {
                    let (result, id) = (i.word(0)?, i.word(1)?);
                    open = Some(Declared { id, result, parameters: Vec::new(), body: at + 1..at });
                }
                (54, Some(_)) => return i.refuse("a function begins inside another"),
                (55, Some(f)) => {
                    f.parameters.push((i.word(1)?, i.word(0)?));
                    f.body.start = at + 1;
                }
                (56, Some(f)) => {
                    f.body.end = at;
                    self.by_id.insert(f.id, self.declared.len());
                    self.declared.extend(open.take());
                }
                (55 | 56, None) => return i.refuse("outside of any function"),
                _ => {}
            }
        }
        if open.is_some() {
            return Err("the module ends inside a function".to_owned());
        }
        self.program.anchors = vec![0; self.declared.len() * 16].into();
        Ok(())
    }
    fn function(&mut self, all: &[Instruction<'_>], n: usize) -> Read<()> {
        let declared = self.declared[n].clone();
        if declared.body.is_empty() {
            let name = self.notes.of(declared.id).linkage.map(|(name, _)| name);
            let Some(name) = name else {
                return Err(format!("function %{} has no body and no name outside", declared.id));
            };
            self.program.imports.insert(n, Import { name, found: Default::default() });
            self.program.functions.push(Function::default());
            return Ok(());
        }
        let made = body::function(self, &declared, &all[declared.body.clone()])?;
        self.program.functions.push(made);
        Ok(())
    }

    /// Counts the numbers of values, so that a small module cannot use up all memory.
    pub fn count(&mut self, lanes: u32) -> Read<()> {
        self.values += u64::from(lanes);
        match self.values {
            0..=MOST_VALUES => Ok(()),
            _ => Err("the module has more or larger values than are taken".to_owned()),
        }
    }
    /// The place of a value.
    pub fn place(&self, id: u32) -> Read<Place> {
        let found = self.places.get(id as usize).copied().flatten();
        found.ok_or_else(|| format!("%{id} is used as a value and is none that came before"))
    }
    /// The type of a value.
    pub fn value_type(&self, id: u32) -> Read<u32> {
        match self.value_types.get(id as usize) {
            Some(kind) if *kind != 0 => Ok(*kind),
            _ => Err(format!("%{id} is used as a value and is none that came before")),
        }
    }
    /// Defines a value.
    pub fn define(&mut self, id: u32, kind: u32, place: Place) -> Read<()> {
        let free = self.places.get_mut(id as usize).filter(|p| p.is_none());
        *free.ok_or_else(|| format!("%{id} is made twice, or above the bound"))? = Some(place);
        self.value_types[id as usize] = kind;
        Ok(())
    }
    /// Changes the place of a value.
    pub fn redefine(&mut self, id: u32, place: Place) {
        self.places[id as usize] = Some(place);
    }
    /// Adds numbers to the constants.
    pub fn constant(&mut self, numbers: impl IntoIterator<Item = u64>) -> Read<Place> {
        let at = self.program.constants.len();
        self.program.constants.extend(numbers.into_iter().map(AtomicU64::new));
        if self.program.constants.len() > MOST_NUMBERS {
            return Err("the module has more constants than are taken".to_owned());
        }
        Ok(Place(Place::CONSTANT | at as u32))
    }
    /// The numbers of a constant.
    pub fn numbers(&self, id: u32) -> Read<Vec<u64>> {
        let (place, lanes) = (self.place(id)?, self.types.lanes(self.value_type(id)?)?);
        let at = (place.0 & !Place::KIND) as usize;
        match place.0 & Place::KIND {
            Place::CONSTANT => {
                let numbers = &self.program.constants[at..at + lanes as usize];
                Ok(numbers.iter().map(|n| n.load(Relaxed)).collect())
            }
            _ => Err(format!("%{id} is not the same for all items, where a constant is needed")),
        }
    }
    /// The first number of a constant.
    pub fn number(&self, id: u32) -> Read<u64> {
        self.numbers(id)?.first().copied().ok_or_else(|| format!("%{id} has no number in it"))
    }
}
