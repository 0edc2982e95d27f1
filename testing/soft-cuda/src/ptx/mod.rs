//! The part of PTX that tests need: parsed to a list of instructions, and interpreted for one thread after
//! the other.
mod arithmetic;
mod read;
mod run;
mod token;

pub use read::read;
pub use run::{Block, run_block};
use std::collections::HashMap;

/// The type of values, which the last part of a mnemonic names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Type {
    pub kind: Kind,
    pub bytes: usize,
}
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Unsigned,
    Signed,
    Float,
    Predicate,
}
impl Type {
    /// Parses its name, without the dot.
    pub fn of(name: &str) -> Option<Self> {
        if name == "pred" {
            return Some(Self { kind: Kind::Predicate, bytes: 1 });
        }
        let kind = match name.chars().next()? {
            'u' | 'b' => Kind::Unsigned,
            's' => Kind::Signed,
            'f' => Kind::Float,
            _ => return None,
        };
        let bytes = match &name[1..] {
            "8" => 1,
            "16" => 2,
            "32" => 4,
            "64" => 8,
            _ => return None,
        };
        let is_half = kind == Kind::Float && bytes < 4;
        (!is_half).then_some(Self { kind, bytes })
    }
}
/// An operand of an instruction.
#[derive(Clone, Debug)]
pub enum Operand {
    Register(usize),
    Number(u64),
    /// A special register of the thread: an index or a size.
    Special(Special, usize),
    /// The address of a symbol.
    Symbol(String),
    /// An address in brackets, with a byte offset.
    At(Box<Operand>, i64),
    /// A list in braces.
    Several(Vec<Operand>),
}
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Special {
    Item,
    Items,
    Group,
    Groups,
    Lane,
    Warp,
}
#[derive(Clone, Debug)]
pub struct Instruction {
    /// The predicate register, and whether it must be false for the instruction to run.
    pub guard: Option<(usize, bool)>,
    /// The mnemonic's parts.
    pub parts: Vec<String>,
    pub operands: Vec<Operand>,
    /// The type of the operation: the last one in the mnemonic.
    pub of: Option<Type>,
}
/// A parameter of a kernel.
#[derive(Clone, Debug)]
pub struct Parameter {
    pub name: String,
    pub offset: usize,
    pub bytes: usize,
}
#[derive(Clone, Debug, Default)]
pub struct Entry {
    pub name: String,
    pub parameters: Vec<Parameter>,
    /// A function's return values, described like parameters.
    pub results: Vec<Parameter>,
    /// The parameters of calls that are declared in the body: their names and sizes.
    pub buffers: Vec<(String, usize)>,
    /// `.maxntid` or `.reqntid`, as a product; 0 if there is none.
    pub most_items: u64,
    pub required: Option<[u32; 3]>,
    pub registers: usize,
    pub code: Vec<Instruction>,
    pub labels: HashMap<String, usize>,
    /// The offsets of names in local memory, and its size.
    pub local: HashMap<String, u64>,
    pub local_bytes: u64,
    /// The offsets of names in the kernel's own shared memory, and its size.
    pub shared: HashMap<String, u64>,
    pub shared_bytes: u64,
}
impl Entry {
    pub fn parameter_bytes(&self) -> usize {
        self.parameters.last().map_or(0, |p| p.offset + p.bytes)
    }
}
/// A variable of a module.
#[derive(Clone, Debug)]
pub struct Variable {
    pub name: String,
    pub bytes: u64,
    pub value: Vec<u8>,
    /// Whether it is only declared here and defined elsewhere.
    pub is_extern: bool,
}
/// A parsed module.
#[derive(Clone, Debug, Default)]
pub struct Text {
    pub version: u32,
    pub target: u32,
    pub variables: Vec<Variable>,
    /// Shared memory outside of kernels: names and offsets. Arrays without a size begin behind all static
    /// shared memory.
    pub shared: HashMap<String, u64>,
    pub shared_bytes: u64,
    pub dynamic: Vec<String>,
    pub entries: Vec<Entry>,
    /// The functions that kernels call, and the names of functions that are only declared.
    pub functions: Vec<Entry>,
    pub declared: Vec<String>,
}
impl Text {
    /// Whether all functions that are declared are defined here.
    pub fn is_whole(&self) -> bool {
        self.declared.iter().all(|name| self.functions.iter().any(|f| f.name == *name))
    }
}
