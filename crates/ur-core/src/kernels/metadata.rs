//! Metadata that a SYCL compiler stores beside a program's code: group sizes that kernels specify, and the names of
//! device globals in the code. Each entry is called `PREFIX@TAG`. As in the property lists of device images, a byte
//! array begins with a 64-bit word that contains the number of bits that follow.
use std::{collections::BTreeMap, ffi::CString};
use ur_adapter::error::{Error, ErrorCode, Result};

/// The value of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// A 32-bit number.
    Word(u32),
    /// A 64-bit number.
    Long(u64),
    /// A byte array, including the word at its beginning.
    Bytes(Vec<u8>),
    /// Text.
    Text(Vec<u8>),
}
/// An entry: its name and its value.
pub type Entry = (Vec<u8>, Value);

/// What a kernel specifies for its groups; `None` leaves it to the launch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// The required group size.
    pub size: Option<[usize; 3]>,
    /// The most items in each dimension.
    pub most: Option<[usize; 3]>,
    /// The most items of a group.
    pub most_in_all: Option<usize>,
    /// The required sub-group size.
    pub sub_group: Option<u32>,
}
/// The metadata of a program.
#[derive(Clone, Debug, Default)]
pub struct Metadata {
    kernels: BTreeMap<Vec<u8>, Wanted>,
    /// The names of device globals in the code, by their names in SYCL.
    globals: BTreeMap<Vec<u8>, CString>,
}
impl Metadata {
    /// Parses metadata. Entries with unknown tags are ignored.
    ///
    /// # Errors
    /// `INVALID_VALUE` for a value that does not have the form that its tag requires.
    pub fn of(entries: Vec<Entry>) -> Result<Self> {
        let mut all = Self::default();
        for (name, value) in entries {
            let Some(at) = name.iter().rposition(|&byte| byte == b'@') else { continue };
            let (prefix, tag) = (name[..at].to_vec(), &name[at + 1..]);
            let wrong = || {
                let name = String::from_utf8_lossy(&name);
                Error::new(ErrorCode::InvalidValue, format!("the metadata {name} is malformed"))
            };
            let sizes = |rest| sizes(&value, rest).ok_or_else(wrong);
            let number = || number(&value).ok_or_else(wrong);
            match tag {
                b"reqd_work_group_size" => all.kernel(prefix).size = Some(sizes(1)?),
                b"max_work_group_size" => all.kernel(prefix).most = Some(sizes(u32::MAX)?),
                b"max_linear_work_group_size" => {
                    all.kernel(prefix).most_in_all = Some(number()? as usize);
                }
                b"reqd_sub_group_size" => {
                    let size = u32::try_from(number()?).map_err(|_| wrong())?;
                    all.kernel(prefix).sub_group = Some(size);
                }
                b"global_id_mapping" => {
                    let text = text(&value).ok_or_else(wrong)?;
                    all.globals.insert(prefix, text);
                }
                _ => {}
            }
        }
        Ok(all)
    }
    fn kernel(&mut self, name: Vec<u8>) -> &mut Wanted {
        self.kernels.entry(name).or_default()
    }
    /// What the kernel with this name specifies.
    pub fn wanted(&self, kernel: &[u8]) -> Wanted {
        self.kernels.get(kernel).copied().unwrap_or_default()
    }
    /// The name of a device global in the code.
    pub fn global(&self, name: &[u8]) -> Option<&CString> {
        self.globals.get(name)
    }
    /// The metadata of several programs that are linked into one.
    pub fn join<'a>(all: impl IntoIterator<Item = &'a Self>) -> Self {
        let mut joined = Self::default();
        for one in all {
            joined.kernels.extend(one.kernels.iter().map(|(name, wanted)| (name.clone(), *wanted)));
            joined.globals.extend(one.globals.iter().map(|(id, name)| (id.clone(), name.clone())));
        }
        joined
    }
}

/// The contents of a byte array, without the word at its beginning.
fn behind(value: &Value) -> Option<&[u8]> {
    match value {
        Value::Bytes(bytes) => bytes.get(8..),
        _ => None,
    }
}
/// One to three 32-bit numbers; missing ones are `rest`.
fn sizes(value: &Value, rest: u32) -> Option<[usize; 3]> {
    let bytes = behind(value).filter(|bytes| matches!(bytes.len(), 4 | 8 | 12))?;
    let mut all = [rest as usize; 3];
    all.iter_mut().zip(bytes.chunks_exact(4)).for_each(|(to, from)| {
        *to = u32::from_ne_bytes([from[0], from[1], from[2], from[3]]) as usize;
    });
    Some(all)
}
fn number(value: &Value) -> Option<u64> {
    match value {
        Value::Word(number) => Some(u64::from(*number)),
        Value::Long(number) => Some(*number),
        Value::Bytes(_) => match behind(value)? {
            bytes if bytes.len() == 4 => {
                Some(u64::from(u32::from_ne_bytes(bytes.try_into().ok()?)))
            }
            bytes => Some(u64::from_ne_bytes(bytes.try_into().ok()?)),
        },
        Value::Text(_) => None,
    }
}
fn text(value: &Value) -> Option<CString> {
    let bytes = match value {
        Value::Text(text) => text,
        _ => behind(value)?,
    };
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    CString::new(&bytes[..end]).ok().filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(content: &[u8]) -> Value {
        let mut all = (8 * content.len() as u64).to_ne_bytes().to_vec();
        all.extend(content);
        Value::Bytes(all)
    }
    fn words(words: &[u32]) -> Value {
        bytes(&words.iter().flat_map(|word| word.to_ne_bytes()).collect::<Vec<_>>())
    }
    fn entry(name: &str, value: Value) -> Entry {
        (name.as_bytes().to_vec(), value)
    }
    #[test]
    fn sizes_globals_and_tags_of_others_are_told_apart() {
        let all = Metadata::of(vec![
            entry("k@reqd_work_group_size", words(&[8, 4])),
            entry("k@max_work_group_size", words(&[64])),
            entry("k@max_linear_work_group_size", Value::Word(128)),
            entry("k@reqd_sub_group_size", Value::Word(32)),
            entry("a@b@global_id_mapping", bytes(b"_ZL1g\0")),
            entry("l@max_linear_work_group_size", Value::Long(1 << 40)),
            entry("k@work_group_num_dim", Value::Word(2)),
            entry("no tag", Value::Word(2)),
        ])
        .unwrap();
        let max = u32::MAX as usize;
        assert_eq!(
            all.wanted(b"k"),
            Wanted {
                size: Some([8, 4, 1]),
                most: Some([64, max, max]),
                most_in_all: Some(128),
                sub_group: Some(32)
            }
        );
        assert_eq!(all.wanted(b"l").most_in_all, Some(1 << 40));
        assert_eq!(all.wanted(b"m"), Wanted::default());
        assert_eq!(all.global(b"a@b").unwrap().as_c_str(), c"_ZL1g");
        assert_eq!(all.global(b"a"), None);
    }
    #[test]
    fn values_of_another_form_are_refused() {
        for (name, value) in [
            ("k@reqd_work_group_size", words(&[])),
            ("k@reqd_work_group_size", words(&[1, 1, 1, 1])),
            ("k@max_work_group_size", Value::Word(3)),
            ("k@max_work_group_size", Value::Bytes(vec![1, 2, 3])),
            ("k@max_linear_work_group_size", Value::Text(b"3".to_vec())),
            ("k@reqd_sub_group_size", Value::Long(1 << 32)),
            ("g@global_id_mapping", bytes(b"")),
            ("g@global_id_mapping", Value::Word(1)),
        ] {
            let error = Metadata::of(vec![entry(name, value)]).unwrap_err();
            assert_eq!(error.code(), ErrorCode::InvalidValue, "{name}");
        }
    }
    #[test]
    fn joined_metadata_answers_for_all() {
        let of = |kernel: &str, size| {
            let name = format!("{kernel}@max_linear_work_group_size");
            Metadata::of(vec![entry(&name, Value::Word(size))]).unwrap()
        };
        let joined = Metadata::join([&of("a", 1), &of("b", 2)]);
        assert_eq!(joined.wanted(b"a").most_in_all, Some(1));
        assert_eq!(joined.wanted(b"b").most_in_all, Some(2));
    }
}
