//! A parser for what an adapter needs of SPIR-V before the driver reads it: whether the module is complete, its
//! specialization constants, the host names of its variables, and the largest group sizes of its kernels.
use std::{collections::BTreeMap, ffi::CString};

/// The first word of every module.
const MAGIC: u32 = 0x0723_0203;
/// The number of words before the first instruction.
const HEADER: usize = 5;
const OP_ENTRY_POINT: u32 = 15;
const OP_EXECUTION_MODE: u32 = 16;
const OP_FUNCTION: u32 = 54;
const OP_FUNCTION_END: u32 = 56;
const OP_DECORATE: u32 = 71;
const OP_DECORATE_STRING: u32 = 5632;
/// `MaxWorkgroupSizeINTEL`.
const MAX_WORK_GROUP_SIZE: u32 = 5893;
const SPEC_ID: u32 = 1;
const LINKAGE_ATTRIBUTES: u32 = 41;
/// `HostAccessINTEL`: its number today, and the one that it had before it became an extension of its own.
const HOST_ACCESS: [u32; 2] = [6188, 6147];

/// The specialization constants of a module: the size of each in bytes, by its id.
pub type Constants = BTreeMap<u32, usize>;

/// What is known of a module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// Its specialization constants.
    pub constants: Constants,
    /// The names of variables in the code, by the names that host programs use.
    pub globals: BTreeMap<CString, CString>,
    /// The most items of a group in each dimension, by the name of the kernel, for kernels that specify it.
    pub largest_groups: BTreeMap<CString, [usize; 3]>,
}
impl Facts {
    /// Parses a module.
    ///
    /// # Errors
    /// A sentence that says why it is not a valid module.
    pub fn of(code: &[u8]) -> Result<Self, String> {
        let words = words(code)?;
        let mut notes = Notes::default();
        let (mut at, mut inside) = (HEADER, false);
        while at < words.len() {
            let (length, code) = ((words[at] >> 16) as usize, words[at] & 0xffff);
            let Some(operands) = words.get(at + 1..at + length).filter(|_| length != 0) else {
                return Err(format!("the SPIR-V ends inside an instruction, at word {at}"));
            };
            match code {
                OP_FUNCTION if inside => return Err("a function of the SPIR-V has no end".into()),
                OP_FUNCTION => inside = true,
                OP_FUNCTION_END => inside = false,
                _ => notes.take(code, operands),
            }
            at += length;
        }
        match inside {
            true => Err("the last function of the SPIR-V has no end".into()),
            false => Ok(notes.facts()),
        }
    }
    /// Adds what is known of another module that will be linked with this one.
    pub fn join(&mut self, other: Self) {
        self.constants.extend(other.constants);
        self.globals.extend(other.globals);
        self.largest_groups.extend(other.largest_groups);
    }
}

/// What the instructions so far say about ids; they come in any order.
#[derive(Default)]
struct Notes {
    /// Specialization constants: their result ids, and the ids by which hosts set them.
    specials: Vec<(u32, u32)>,
    /// The sizes in bytes of numeric types and of constants, by result id.
    bytes: BTreeMap<u32, usize>,
    /// The kernels: the ids of their functions, and their names.
    kernels: Vec<(u32, CString)>,
    groups: Vec<(u32, [usize; 3])>,
    /// Names of variables in the code, by id; `hosts` has those that host programs use.
    linkage: BTreeMap<u32, CString>,
    hosts: Vec<(u32, CString)>,
}
impl Notes {
    fn take(&mut self, code: u32, operands: &[u32]) {
        match (code, operands) {
            (OP_ENTRY_POINT, [_, function, name @ ..]) => {
                self.kernels.extend(text(name).map(|name| (*function, name)));
            }
            (OP_EXECUTION_MODE, [function, MAX_WORK_GROUP_SIZE, x, y, z]) => {
                self.groups.push((*function, [*x, *y, *z].map(|n| n as usize)));
            }
            (OP_DECORATE, [id, SPEC_ID, number]) => self.specials.push((*id, *number)),
            (OP_DECORATE | OP_DECORATE_STRING, [id, LINKAGE_ATTRIBUTES, name @ ..]) => {
                self.linkage.extend(text(name).map(|name| (*id, name)));
            }
            (OP_DECORATE | OP_DECORATE_STRING, [id, decoration, _access, name @ ..])
                if HOST_ACCESS.contains(decoration) =>
            {
                self.hosts.extend(text(name).map(|name| (*id, name)));
            }
            // Numeric types, with their sizes in bits; then constants, with their types.
            (21 | 22, [id, bits, ..]) => drop(self.bytes.insert(*id, *bits as usize / 8)),
            (48 | 49, [_, id]) => drop(self.bytes.insert(*id, 1)),
            (50, [kind, id, ..]) => {
                let size = self.bytes.get(kind).copied().unwrap_or(0);
                self.bytes.insert(*id, size);
            }
            _ => {}
        }
    }
    fn facts(self) -> Facts {
        let Self { specials, bytes, kernels, groups, linkage, hosts } = self;
        let constant = |(id, number)| (number, bytes.get(&id).copied().unwrap_or(0));
        let global = |(id, name)| Some((name, linkage.get(&id)?.clone()));
        let largest = |(function, name): &(u32, CString)| {
            let of = groups.iter().find(|(one, _)| one == function)?;
            Some((name.clone(), of.1))
        };
        Facts {
            constants: specials.into_iter().map(constant).collect(),
            globals: hosts.into_iter().filter_map(global).collect(),
            largest_groups: kernels.iter().filter_map(largest).collect(),
        }
    }
}
/// A string, which ends with a zero byte.
fn text(words: &[u32]) -> Option<CString> {
    let bytes: Vec<u8> =
        words.iter().flat_map(|word| word.to_le_bytes()).take_while(|&byte| byte != 0).collect();
    CString::new(bytes).ok().filter(|text| !text.is_empty())
}
/// The words of a module, which may have been written in either byte order.
fn words(code: &[u8]) -> Result<Vec<u32>, String> {
    if !code.len().is_multiple_of(4) || code.len() < 4 * HEADER {
        return Err(format!("{} bytes are no SPIR-V", code.len()));
    }
    let one = |bytes: &[u8]| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    let swap = match one(code) {
        MAGIC => false,
        first if first.swap_bytes() == MAGIC => true,
        first => return Err(format!("SPIR-V begins with {MAGIC:#x}, and this with {first:#x}")),
    };
    let each = code.chunks_exact(4).map(one);
    Ok(each.map(|word| if swap { word.swap_bytes() } else { word }).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn op(code: u32, operands: &[u32]) -> Vec<u32> {
        [vec![(operands.len() as u32 + 1) << 16 | code], operands.to_vec()].concat()
    }
    fn module(parts: &[Vec<u32>]) -> Vec<u32> {
        [vec![MAGIC, 0x10000, 0, 99, 0], parts.concat()].concat()
    }
    fn bytes(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }
    #[test]
    fn constants_have_the_bytes_of_their_types() {
        let words = module(&[
            op(71, &[5, 1, 7]),
            op(71, &[6, 1, 8]),
            op(71, &[7, 1, 9]),
            op(71, &[8, 22]), // another decoration
            op(21, &[1, 64, 0]),
            op(22, &[2, 16]),
            op(20, &[3]),
            op(50, &[1, 5, 1, 0]),
            op(50, &[2, 6, 1]),
            op(48, &[3, 7]),
        ]);
        let expected = Constants::from([(7, 8), (8, 2), (9, 1)]);
        assert_eq!(Facts::of(&bytes(&words)).unwrap().constants, expected);
        let swapped: Vec<_> = words.iter().map(|word| word.swap_bytes()).collect();
        assert_eq!(Facts::of(&bytes(&swapped)).unwrap().constants, expected);
    }
    fn named(code: u32, before: &[u32], name: &str) -> Vec<u32> {
        let mut text = name.as_bytes().to_vec();
        text.resize((name.len() / 4 + 1) * 4, 0);
        let name = text.chunks(4).map(|b| u32::from_le_bytes(b.try_into().unwrap()));
        op(code, &before.iter().copied().chain(name).collect::<Vec<_>>())
    }
    #[test]
    fn hosts_names_and_largest_groups_are_those_of_what_they_are_said_of() {
        let words = module(&[
            named(15, &[6, 10], "first"),
            named(15, &[6, 11], "second"),
            op(16, &[11, 5893, 8, 4, 1]),
            op(16, &[10, 17, 2, 2, 2]), // another execution mode
            named(71, &[20, 6188, 3], "a name of SYCL's"),
            named(71, &[20, 41], "_Zone"),
            named(71, &[21, 41], "_Ztwo"),
            named(5632, &[21, 6147, 0], "two"),
            named(71, &[22, 6188, 3], "nowhere"), // no linkage: not visible from outside
        ]);
        let words: Vec<_> = words.iter().map(|word| word.swap_bytes()).collect();
        let facts = Facts::of(&bytes(&words)).unwrap();
        let name = |name: &str| CString::new(name).unwrap();
        assert_eq!(facts.largest_groups, BTreeMap::from([(name("second"), [8, 4, 1])]));
        let expected = [("a name of SYCL's", "_Zone"), ("two", "_Ztwo")];
        assert_eq!(facts.globals, expected.map(|(host, code)| (name(host), name(code))).into());
        let mut joined = Facts::default();
        joined.join(facts.clone());
        assert_eq!(joined, facts);
    }
    #[test]
    fn what_is_no_module_or_not_all_of_one_is_told() {
        let whole = module(&[op(54, &[1, 2, 0, 3]), op(248, &[4]), op(253, &[]), op(56, &[])]);
        Facts::of(&bytes(&whole)).unwrap();
        for length in HEADER + 1..whole.len() {
            Facts::of(&bytes(&whole[..length])).unwrap_err();
        }
        Facts::of(&bytes(&whole)[..18]).unwrap_err();
        Facts::of(&[0xa5; 64]).unwrap_err();
        Facts::of(&bytes(&module(&[vec![21]]))).unwrap_err(); // an instruction of length 0
        Facts::of(&bytes(&module(&[op(54, &[]), op(54, &[]), op(56, &[])]))).unwrap_err();
    }
}
