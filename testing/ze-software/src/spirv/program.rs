//! A module that is ready to run: its functions, constants, global variables and kernels.
use super::{
    build::Builder,
    notes::Entry,
    read::{self, Read},
    step::Function,
    types::{Leaf, Shape},
};
use std::{
    collections::HashMap,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

/// The type of a kernel's parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parameter {
    /// A value of this size in bytes.
    Value(u64),
    /// A value of this size in bytes, of which the kernel gets the address.
    ByValue(u64),
    /// An address in memory that all groups share.
    Pointer,
    /// Group memory, whose size the launch determines.
    Local,
    /// An image's handle.
    Image,
    /// A sampler's handle.
    Sampler,
}
impl Parameter {
    /// The size of an argument in bytes.
    pub fn bytes(self) -> u64 {
        match self {
            Parameter::Value(bytes) | Parameter::ByValue(bytes) => bytes,
            _ => 8,
        }
    }
}
/// A kernel of a module.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// The name of its entry point.
    pub name: String,
    pub(super) function: usize,
    /// One for each argument.
    pub parameters: Vec<Parameter>,
    /// The numbers that each argument consists of.
    pub(super) leaves: Vec<Arc<[Leaf]>>,
    /// The required group size, if there is one.
    pub required: Option<[u32; 3]>,
    /// The required subgroup size, if there is one.
    pub subgroup: Option<u32>,
}
/// A variable of a module that all groups share.
#[derive(Clone, Debug)]
pub struct Global {
    /// Its address.
    pub address: u64,
    /// Its size in bytes.
    pub size: u64,
}
/// A specialization constant: its number and its size in bytes.
pub type Special = (u32, usize);

/// A builtin variable: its offset among the item's variables in bytes, its number, the size of a component in
/// bytes, and the number of components.
#[derive(Clone, Copy, Debug)]
pub(super) struct Builtin {
    pub at: u64,
    pub which: u32,
    pub bytes: u64,
    pub lanes: u32,
}
/// A function of another module.
pub(super) struct Import {
    pub name: String,
    pub found: OnceLock<(Arc<Program>, usize)>,
}
/// A module that is ready to run.
#[derive(Default)]
pub struct Program {
    pub(super) functions: Vec<Function>,
    /// Functions of other modules, by the index of the function that represents each in this module.
    pub(super) imports: HashMap<usize, Import>,
    pub(super) constants: Vec<AtomicU64>,
    /// The names of variables of other modules, and the constants that get their addresses.
    pub(super) wanted: Vec<(String, usize)>,
    /// The memory of the global variables.
    pub(super) memory: Vec<Box<[AtomicU64]>>,
    /// Memory that only serves to give each function a unique address.
    pub(super) anchors: Box<[u8]>,
    pub(super) builtins: Vec<Builtin>,
    /// The total size of an item's builtin variables in bytes.
    pub(super) item_bytes: u64,
    /// The total size of a group's variables in bytes.
    pub(super) group_bytes: u64,
    kernels: Vec<Arc<Kernel>>,
    globals: HashMap<String, Global>,
    hosts: HashMap<String, Global>,
    /// The functions that other modules can call: their indices, and whether other modules may export the
    /// same function too (link-once).
    exports: HashMap<String, (usize, bool)>,
    specials: Vec<Special>,
}
impl Kernel {
    /// Whether the kernel gets the address of this argument's value.
    pub fn by_value(&self, parameter: usize) -> bool {
        matches!(self.parameters.get(parameter), Some(Parameter::ByValue(_)))
    }
    /// The numbers in the bytes of an argument.
    pub(super) fn numbers(&self, parameter: usize, bytes: &[u8]) -> impl Iterator<Item = u64> {
        let number = move |leaf: &Leaf| {
            let mut word = [0; 8];
            let from = bytes.get(leaf.at as usize..).unwrap_or(&[]);
            let count = from.len().min(leaf.scalar.bytes() as usize);
            word[..count].copy_from_slice(&from[..count]);
            u64::from_le_bytes(word)
        };
        self.leaves[parameter].iter().map(number)
    }
}
impl Program {
    /// Builds a module. `given` has the values of specialization constants by their numbers.
    ///
    /// # Errors
    /// A sentence for the build log that says what is wrong with the module, and where.
    pub fn build(bytes: &[u8], given: &[(u32, Vec<u8>)]) -> Result<Program, String> {
        // If a check is missing and reading the module panics, the build fails, but the process does not end.
        let caught = std::panic::catch_unwind(|| Program::read(bytes, given));
        caught.unwrap_or_else(|_| Err("the module is not one that can be built".to_owned()))
    }
    fn read(bytes: &[u8], given: &[(u32, Vec<u8>)]) -> Read<Program> {
        let words = read::words(bytes)?;
        let mut b = Builder::module(&words, given)?;
        let kernels = b.notes.entries.clone();
        let kernels =
            kernels.iter().map(|e| kernel(&mut b, e).map(Arc::new)).collect::<Read<_>>()?;
        for (n, declared) in b.declared.iter().enumerate() {
            if let Some((name, kind @ (0 | 2))) = b.notes.of(declared.id).linkage {
                b.program.exports.insert(name, (n, kind == 2));
            }
        }
        for entry in &b.notes.entries {
            b.program.exports.insert(entry.name.clone(), (b.by_id[&entry.function], false));
        }
        b.program.kernels = kernels;
        b.program.specials = b.specials;
        b.program.globals = b.globals;
        b.program.hosts = b.hosts;
        Ok(b.program)
    }
    /// The kernels, in the order of their declarations.
    pub fn kernels(&self) -> &[Arc<Kernel>] {
        &self.kernels
    }
    /// The global variables by their names for linking.
    pub fn globals(&self) -> &HashMap<String, Global> {
        &self.globals
    }
    /// The global variables by their names for host access.
    pub fn hosts(&self) -> &HashMap<String, Global> {
        &self.hosts
    }
    /// The specialization constants.
    pub fn specials(&self) -> &[Special] {
        &self.specials
    }
    /// The total size of a group's variables in bytes.
    pub fn group_bytes(&self) -> u64 {
        self.group_bytes
    }
    /// The address that represents a function, for kernels that call it by address.
    pub fn function(&self, name: &str) -> Option<u64> {
        let (n, _) = self.exports.get(name)?;
        Some(self.anchors.as_ptr() as u64 + *n as u64 * 16)
    }
    pub(super) fn function_at(&self, address: u64) -> Result<usize, String> {
        let first = self.anchors.as_ptr() as u64;
        let n = address.wrapping_sub(first) / 16;
        match (n as usize) < self.anchors.len() / 16 {
            true => Ok(n as usize),
            false => Err(format!("a call to {address:#x}, where no function of the module is")),
        }
    }
    /// The names of functions and variables that are used and not yet linked.
    pub fn missing(&self) -> Vec<&str> {
        let open = self.imports.values().filter(|i| i.found.get().is_none());
        let absent = |(_, at): &&(String, usize)| self.constants[*at].load(Relaxed) == 0;
        let variables = self.wanted.iter().filter(absent).map(|(name, _)| name.as_str());
        open.map(|i| i.name.as_str()).chain(variables).collect()
    }
    /// The names of the functions that other modules can call, and whether other modules may export the same
    /// function too.
    pub fn exports(&self) -> impl Iterator<Item = (&str, bool)> {
        self.exports.iter().map(|(name, (_, shared))| (name.as_str(), *shared))
    }
    /// Links the functions and variables that this module imports and `other` exports.
    pub fn link(&self, other: &Arc<Program>) {
        for (name, at) in &self.wanted {
            if let Some(found) = other.globals.get(name) {
                self.constants[*at].store(found.address, Relaxed);
            }
        }
        for import in self.imports.values() {
            if let Some((n, _)) = other.exports.get(&import.name)
                && !other.imports.contains_key(n)
            {
                // A function that is already linked stays as it is.
                let _first = import.found.set((Arc::clone(other), *n));
            }
        }
    }
}
/// Builds a kernel from its entry point.
fn kernel(b: &mut Builder<'_>, entry: &Entry) -> Read<Kernel> {
    let n = b.by_id.get(&entry.function).copied();
    let n = n.ok_or_else(|| format!("the kernel {} has no function", entry.name))?;
    let (mut parameters, mut leaves) = (Vec::new(), Vec::new());
    for (id, kind) in &b.declared[n].parameters {
        let by_value = b.notes.of(*id).by_value;
        parameters.push(match b.types.get(*kind)?.shape {
            Shape::Pointer(_, to) if by_value => Parameter::ByValue(b.types.get(to)?.size),
            Shape::Pointer(4, _) => Parameter::Local,
            Shape::Pointer(..) => Parameter::Pointer,
            Shape::Image | Shape::SampledImage => Parameter::Image,
            Shape::Sampler => Parameter::Sampler,
            _ => Parameter::Value(b.types.get(*kind)?.size),
        });
        leaves.push(b.types.leaves(*kind)?);
    }
    let required = match entry.required_ids {
        Some([x, y, z]) => Some([b.number(x)? as u32, b.number(y)? as u32, b.number(z)? as u32]),
        None => entry.required,
    };
    let (name, subgroup) = (entry.name.clone(), entry.subgroup);
    Ok(Kernel { name, function: n, parameters, leaves, required, subgroup })
}
