//! What a SYCL compiler says of a program beside its code: sizes of groups that kernels want, and what device
//! globals are called in it. Names are `PREFIX@TAG`; byte arrays begin with a word of 64 bits that says how
//! many bits follow, as property lists of device images have them.
use std::{collections::BTreeMap, ffi::CString};
use ur_adapter::error::{Error, ErrorCode, Result};

/// One value, as C gives it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// A number of 32 bits.
    Word(u32),
    /// A number of 64 bits.
    Long(u64),
    /// Bytes with the word in front.
    Bytes(Vec<u8>),
    /// Text.
    Text(Vec<u8>),
}
/// A name and its value.
pub type Entry = (Vec<u8>, Value);

/// What a kernel wants of its groups; an absent size is up to the launch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Groups of exactly this size.
    pub size: Option<[usize; 3]>,
    /// At most so many items in each dimension.
    pub most: Option<[usize; 3]>,
    /// At most so many items in all.
    pub most_in_all: Option<usize>,
    /// Items of a sub-group.
    pub sub_group: Option<u32>,
}
/// What is said of a program.
#[derive(Clone, Debug, Default)]
pub struct Metadata {
    kernels: BTreeMap<Vec<u8>, Wanted>,
    /// What device globals are called in the code, by the name that SYCL gives them.
    globals: BTreeMap<Vec<u8>, CString>,
}
impl Metadata {
    /// # Errors
    /// `INVALID_VALUE` for a value of another form than its tag has. Tags that mean nothing to us are left out.
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
    /// What the kernel of that name wants.
    pub fn wanted(&self, kernel: &[u8]) -> Wanted {
        self.kernels.get(kernel).copied().unwrap_or_default()
    }
    /// What a device global is called in the code.
    pub fn global(&self, name: &[u8]) -> Option<&CString> {
        self.globals.get(name)
    }
    /// That of several programs that become one.
    pub fn join<'a>(all: impl IntoIterator<Item = &'a Self>) -> Self {
        let mut joined = Self::default();
        for one in all {
            joined.kernels.extend(one.kernels.iter().map(|(name, wanted)| (name.clone(), *wanted)));
            joined.globals.extend(one.globals.iter().map(|(id, name)| (id.clone(), name.clone())));
        }
        joined
    }
}

/// The bytes behind the word in front.
fn behind(value: &Value) -> Option<&[u8]> {
    match value {
        Value::Bytes(bytes) => bytes.get(8..),
        _ => None,
    }
}
/// One to three numbers of 32 bits; `rest` for those that are absent.
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
