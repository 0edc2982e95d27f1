//! PTX as far as tests need it: read to a list of instructions, and run item by item.
mod arithmetic;
mod read;
mod run;
mod token;

pub use read::read;
pub use run::{Block, run_block};
use std::collections::HashMap;

/// A type of values: what the last part of a mnemonic names.
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
    /// From its name, without the dot.
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
/// What an instruction takes.
#[derive(Clone, Debug)]
pub enum Operand {
    Register(usize),
    Number(u64),
    /// A number of the item's: its place, or a size.
    Special(Special, usize),
    /// The address of a name.
    Symbol(String),
    /// An address in brackets, and bytes behind it.
    At(Box<Operand>, i64),
    /// Several, in braces.
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
    /// The register that decides whether it is done, and whether it must be false.
    pub guard: Option<(usize, bool)>,
    /// The mnemonic's parts.
    pub parts: Vec<String>,
    pub operands: Vec<Operand>,
    /// The type it works on: the mnemonic's last.
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
    /// What a function gives back: its buffers, as parameters are.
    pub results: Vec<Parameter>,
    /// Parameters of calls, declared in the body: names and bytes.
    pub buffers: Vec<(String, usize)>,
    /// `.maxntid` or `.reqntid`, as a product; 0: none.
    pub most_items: u64,
    pub required: Option<[u32; 3]>,
    pub registers: usize,
    pub code: Vec<Instruction>,
    pub labels: HashMap<String, usize>,
    /// Names in local memory, and its bytes.
    pub local: HashMap<String, u64>,
    pub local_bytes: u64,
    /// Names in shared memory of the kernel's own, and bytes of all static shared memory.
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
    /// Declared here, defined elsewhere.
    pub is_extern: bool,
}
/// A module's text, read.
#[derive(Clone, Debug, Default)]
pub struct Text {
    pub version: u32,
    pub target: u32,
    pub variables: Vec<Variable>,
    /// Shared memory outside of kernels: names and offsets; what has no size begins behind it all.
    pub shared: HashMap<String, u64>,
    pub shared_bytes: u64,
    pub dynamic: Vec<String>,
    pub entries: Vec<Entry>,
    /// What kernels call, and the names of those that are somewhere else.
    pub functions: Vec<Entry>,
    pub declared: Vec<String>,
}
impl Text {
    /// Whether all that is called is here.
    pub fn is_whole(&self) -> bool {
        self.declared.iter().all(|name| self.functions.iter().any(|f| f.name == *name))
    }
}
