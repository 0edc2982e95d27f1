//! The code of a module: SPIR-V that is interpreted, or functions of an ELF file.
use crate::{elf::Library, knob, spirv::Program};
use std::{
    collections::BTreeMap,
    sync::{Arc, LazyLock},
};

/// The code of a module.
pub enum Code {
    /// SPIR-V modules that were linked, each with its own bytes and constants.
    Portable(Vec<Source>),
    /// A shared object whose functions are the kernels.
    Native(Library),
}
/// A SPIR-V module with its specialization constants.
pub struct Source {
    /// The module's bytes.
    pub bytes: Vec<u8>,
    /// The values of specialization constants, with their numbers.
    pub constants: Vec<(u32, Vec<u8>)>,
    /// The module, ready to be interpreted.
    pub program: Arc<Program>,
}
impl Source {
    /// Builds a module.
    ///
    /// # Errors
    /// Returns a sentence for the build log.
    pub fn build(bytes: Vec<u8>, constants: Vec<(u32, Vec<u8>)>) -> Result<Source, String> {
        let program = Arc::new(Program::build(&bytes, &constants)?);
        for (number, _) in &constants {
            if !program.specials().iter().any(|(n, _)| n == number) {
                return Err(format!("the module has no specialization constant {number}"));
            }
        }
        Ok(Source { bytes, constants, program })
    }
}
/// Links functions between the parts.
///
/// # Errors
/// Returns a sentence for the build log if two parts define a function of the same name.
pub fn join(parts: &[Source]) -> Result<(), String> {
    join_all(&parts.iter().collect::<Vec<_>>())
}
/// As [`join`], for parts of several modules.
///
/// # Errors
/// As for [`join`].
pub fn join_all(parts: &[&Source]) -> Result<(), String> {
    let mut names = BTreeMap::new();
    for (n, part) in parts.iter().enumerate() {
        for (name, shared) in part.program.exports() {
            if !shared && names.insert(name, n).is_some_and(|other| other != n) {
                return Err(format!("two modules have a function of the name {name}"));
            }
        }
    }
    for part in parts {
        let others = parts.iter().filter(|o| !Arc::ptr_eq(&o.program, &part.program));
        others.for_each(|other| part.program.link(&other.program));
    }
    Ok(())
}

/// The first bytes of a native binary.
const MAGIC: &[u8; 8] = b"ZESOFT\x00\x01";
/// The bytes of a native binary: the constants and the SPIR-V of each part, with their lengths.
pub fn write(parts: &[Source]) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    let put = |bytes: &mut Vec<u8>, number: usize| bytes.extend((number as u32).to_le_bytes());
    put(&mut bytes, parts.len());
    for part in parts {
        put(&mut bytes, part.constants.len());
        for (number, value) in &part.constants {
            put(&mut bytes, *number as usize);
            put(&mut bytes, value.len());
            bytes.extend(value);
        }
        put(&mut bytes, part.bytes.len());
        bytes.extend(&part.bytes);
    }
    bytes
}
/// Whether the bytes are such a native binary.
pub fn is_ours(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC)
}
/// Parses a native binary.
///
/// # Errors
/// Returns a sentence for the build log.
pub fn read(bytes: &[u8]) -> Result<Vec<Source>, String> {
    let mut rest = bytes.strip_prefix(MAGIC).ok_or("the binary is of another kind")?;
    let mut take = |count: usize| -> Result<&[u8], String> {
        let (now, later) = rest.split_at_checked(count).ok_or("the binary ends too early")?;
        rest = later;
        Ok(now)
    };
    let mut parts = Vec::new();
    let count = word(take(4)?);
    for _ in 0..count {
        let mut constants = Vec::new();
        for _ in 0..word(take(4)?) {
            let (id, length) = (word(take(4)?), word(take(4)?));
            constants.push((id, take(length as usize)?.to_vec()));
        }
        let length = word(take(4)?);
        parts.push(Source::build(take(length as usize)?.to_vec(), constants)?);
    }
    match parts.is_empty() {
        true => Err("the binary has no module in it".to_owned()),
        false => Ok(parts),
    }
}
fn word(bytes: &[u8]) -> u32 {
    bytes.iter().rev().fold(0, |word, byte| word << 8 | u32::from(*byte))
}
/// Whether variables are found by their host names; not with `ZE_SOFTWARE_HOST_NAMES=0`.
fn knows_hosts() -> bool {
    static KNOWS: LazyLock<bool> = LazyLock::new(|| knob::number("HOST_NAMES", 1) != 0);
    *KNOWS
}
impl Code {
    /// The names of the kernels.
    pub fn kernels(&self) -> Vec<String> {
        match self {
            Code::Portable(parts) => {
                let all = parts.iter().flat_map(|p| p.program.kernels());
                all.map(|k| k.name.clone()).collect()
            }
            Code::Native(library) => library.names().to_vec(),
        }
    }
    /// The names of exported functions.
    pub fn exports(&self) -> Vec<String> {
        match self {
            Code::Portable(parts) => {
                let all = parts.iter().flat_map(|p| p.program.exports());
                all.map(|(name, _)| name.to_owned()).collect()
            }
            Code::Native(library) => library.names().to_vec(),
        }
    }
    /// The names of functions that are called but not defined.
    pub fn missing(&self) -> Vec<String> {
        match self {
            Code::Portable(parts) => {
                let all = parts.iter().flat_map(|p| p.program.missing());
                all.map(str::to_owned).collect()
            }
            Code::Native(_) => Vec::new(),
        }
    }
    /// The address and the size of a global variable, by its host name (unless the environment disables
    /// these), or by its name in the code.
    pub fn global(&self, name: &str) -> Option<(u64, u64)> {
        match self {
            Code::Portable(parts) => {
                let by_host = || parts.iter().find_map(|p| p.program.hosts().get(name));
                let hosts = knows_hosts().then(by_host).flatten();
                let found =
                    hosts.or_else(|| parts.iter().find_map(|p| p.program.globals().get(name)))?;
                Some((found.address, found.size))
            }
            Code::Native(library) => library.global(name),
        }
    }
    /// The address of a function.
    pub fn function(&self, name: &str) -> Option<u64> {
        match self {
            Code::Portable(parts) => parts.iter().find_map(|p| p.program.function(name)),
            Code::Native(library) => library.function(name),
        }
    }
}
