//! Recognises the formats of program code (PTX text, cubin, fatbin), and finds the kernels in them. The
//! driver is given no lengths and reads as far as the headers say, so truncated code is refused here.
//! Building is in `code.rs`.
use super::driver::{Api, Dialect};
use object::{
    Object as _, ObjectSection as _, ObjectSegment as _, ObjectSymbol as _, SymbolFlags,
    SymbolKind, elf,
};
use std::{collections::BTreeMap, ffi::CString, sync::Arc};
use ur_hal::{Error, ErrorKind, Result};

/// The formats that a driver accepts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Form {
    /// Assembly text that the driver compiles.
    Ptx,
    /// Machine code in an ELF file.
    Cubin,
    /// A bundle of several pieces of code, of which the driver chooses one.
    Fatbin,
}
/// The code of a program for one device.
#[derive(Clone, Debug)]
pub struct Image {
    form: Form,
    /// The code as the caller passed it, followed by a NUL.
    bytes: Box<[u8]>,
    /// The kernels in it; `None` if only the driver knows them.
    entries: Option<Entries>,
}
/// The kernels of a piece of code, by name: the size in bytes of each parameter in order, if known.
pub(super) type Entries = BTreeMap<CString, Option<Vec<u32>>>;

const FATBIN: [u8; 4] = 0xba55_ed50_u32.to_le_bytes();
/// The magic number of a Clang offload bundle of AMD code.
const BUNDLE: &[u8] = b"__CLANG_OFFLOAD_BUNDLE__";
/// The bit in a cubin's `st_other` that marks a kernel.
const CUDA_ENTRY: u8 = 0x10;

impl Image {
    /// # Errors
    /// `INVALID_BINARY` for code in no format that the driver of `D` accepts, and for truncated code.
    pub(super) fn of<D: Dialect>(given: &[u8]) -> Result<Self> {
        let form = match given {
            _ if given.starts_with(b"\x7fELF") => cubin::<D>(given)?,
            _ if given.starts_with(&FATBIN) => fatbin(given)?,
            _ if given.starts_with(BUNDLE) && D::API == Api::Hip => Form::Fatbin,
            _ if is_ptx(given) && D::API == Api::Cuda => Form::Ptx,
            _ => {
                return refused(format!(
                    "{} bytes that are no code for {}: it takes PTX text, an ELF file for its devices, \
                     or a bundle of such",
                    given.len(),
                    D::NAME
                ));
            }
        };
        let mut bytes = given.to_vec();
        bytes.push(0);
        let entries = match form {
            Form::Ptx => Some(ptx_entries(&String::from_utf8_lossy(given))),
            Form::Cubin => cubin_entries(given),
            Form::Fatbin => None,
        };
        Ok(Self { form, bytes: bytes.into(), entries })
    }
    pub(super) fn form(&self) -> Form {
        self.form
    }
    /// The code as the caller passed it.
    pub(super) fn given(&self) -> &[u8] {
        &self.bytes[..self.bytes.len() - 1]
    }
    /// The code followed by a NUL, as the driver expects text.
    pub(super) fn terminated(&self) -> &[u8] {
        &self.bytes
    }
    /// The kernels in it; `None` if only the driver knows them.
    pub(super) fn entries(&self) -> Option<&Entries> {
        self.entries.as_ref()
    }
    /// Takes the kernels from `parts`, of which this image was linked: PTX text tells more about them than
    /// the machine code.
    pub(super) fn linked_of(mut self, parts: &[&Arc<Self>]) -> Self {
        let all: Option<Vec<&Entries>> = parts.iter().map(|part| part.entries()).collect();
        if let Some(all) = all {
            let each = all.into_iter().flatten();
            self.entries = Some(each.map(|(name, sizes)| (name.clone(), sizes.clone())).collect());
        }
        self
    }
}
fn refused<T>(why: String) -> Result<T> {
    Err(Error::new(ErrorKind::InvalidBinary, why))
}

fn cubin<D: Dialect>(bytes: &[u8]) -> Result<Form> {
    let machine = bytes.get(18..20).map(|m| u16::from_le_bytes([m[0], m[1]]));
    let wanted = if D::API == Api::Cuda { elf::EM_CUDA } else { elf::EM_AMDGPU };
    if machine != Some(wanted) {
        return refused(format!("an ELF file, but not for devices of {}", D::NAME));
    }
    let whole =
        |(at, size): (u64, u64)| at.checked_add(size).is_some_and(|end| end <= bytes.len() as u64);
    let parsed = object::File::parse(bytes);
    let is_whole = parsed.is_ok_and(|file| {
        file.sections().all(|one| one.file_range().is_none_or(whole))
            && file.segments().all(|one| whole(one.file_range()))
    });
    match is_whole {
        true => Ok(Form::Cubin),
        false => refused("an ELF file that is cut off, or damaged".into()),
    }
}
fn cubin_entries(bytes: &[u8]) -> Option<Entries> {
    let file = object::File::parse(bytes).ok()?;
    let entries = file.symbols().filter(|symbol| {
        let launchable = match symbol.flags() {
            SymbolFlags::Elf { st_other, .. } => st_other & CUDA_ENTRY != 0,
            _ => false,
        };
        symbol.kind() == SymbolKind::Text && symbol.is_definition() && launchable
    });
    let all: Option<Entries> =
        entries.map(|symbol| Some((CString::new(symbol.name_bytes().ok()?).ok()?, None))).collect();
    all.filter(|all| !all.is_empty()) // empty if stripped: the driver may still know them
}
/// A header with its own length and that of all pieces, then the pieces, each with a header of its own.
fn fatbin(bytes: &[u8]) -> Result<Form> {
    let word = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let long = |at: usize| Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
    let span = || -> Option<bool> {
        let header = u64::from(word(4)? >> 16);
        let end = header.checked_add(long(8)?)?;
        let mut at = header;
        while at < end {
            let (piece, size) = (word(usize::try_from(at).ok()? + 4)?, long(at as usize + 8)?);
            if piece < 16 {
                return Some(false);
            }
            at = at.checked_add(u64::from(piece))?.checked_add(size)?;
        }
        Some(header >= 16 && at == end && end <= bytes.len() as u64)
    };
    match span() {
        Some(true) => Ok(Form::Fatbin),
        _ => refused("a fatbin that is cut off, or damaged".into()),
    }
}

/// Whether it is text that starts with PTX's `.version` directive. It may be padded with zeros.
fn is_ptx(bytes: &[u8]) -> bool {
    let end = bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
    let Ok(text) = std::str::from_utf8(&bytes[..end]) else { return false };
    !text.contains('\0') && Tokens(text).next() == Some(".version")
}
/// The tokens of PTX text without comments.
struct Tokens<'t>(&'t str);
impl<'t> Iterator for Tokens<'t> {
    type Item = &'t str;
    fn next(&mut self) -> Option<&'t str> {
        loop {
            self.0 = self.0.trim_start();
            let comment = match self.0 {
                text if text.starts_with("//") => text.find('\n'),
                text if text.starts_with("/*") => text.find("*/").map(|at| at + 1),
                _ => break,
            };
            self.0 = comment.map_or("", |at| &self.0[at + 1..]);
        }
        let first = self.0.chars().next()?;
        let is_word = |c: char| c.is_ascii_alphanumeric() || "_$%".contains(c);
        let rest = &self.0[first.len_utf8()..];
        let end = match first {
            '"' => rest.find('"').map_or(rest.len(), |at| at + 1),
            '.' => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
            _ if is_word(first) => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
            _ => 0,
        };
        let (token, rest) = self.0.split_at(first.len_utf8() + end);
        self.0 = rest;
        Some(token)
    }
}
fn ptx_entries(text: &str) -> Entries {
    let mut entries = Entries::new();
    let mut tokens = Tokens(text).peekable();
    while let Some(token) = tokens.next() {
        let Some(name) = (token == ".entry").then(|| tokens.next()).flatten() else { continue };
        let parameters = match tokens.next_if_eq(&"(") {
            Some(_) => parameters(tokens.by_ref().take_while(|&token| token != ")")),
            None => Some(vec![]),
        };
        if let Ok(name) = CString::new(name) {
            entries.insert(name, parameters);
        }
    }
    entries
}
/// The sizes in bytes of a parameter list such as `.param .u64 a, .param .align 8 .b8 b[24]`; `None` if it
/// cannot be parsed.
fn parameters<'t>(tokens: impl Iterator<Item = &'t str>) -> Option<Vec<u32>> {
    let (mut sizes, mut element, mut count) = (vec![], None, 1_u32);
    let mut previous = "";
    for token in tokens.chain([","]) {
        match token {
            "," => {
                if let Some(bytes) = element.take() {
                    sizes.push(u32::checked_mul(bytes, count)?);
                } else if !previous.is_empty() {
                    return None;
                }
                count = 1;
            }
            _ if previous == "[" => count = count.checked_mul(token.parse().ok()?)?,
            _ => element = element.or_else(|| width(token)),
        }
        previous = token;
    }
    Some(sizes)
}
/// The size in bytes of a PTX type.
fn width(token: &str) -> Option<u32> {
    let (kind, bits) = token.strip_prefix('.')?.split_at_checked(1)?;
    let bits: u32 = bits.parse().ok()?;
    ("busf".contains(kind) && [8, 16, 32, 64, 128].contains(&bits)).then_some(bits / 8)
}

#[cfg(test)]
mod tests {
    use super::{super::driver::Cuda, *};
    const PTX: &str = include_str!("../../../adapters/cuda/tests/kernels.ptx");

    fn code(bytes: &[u8]) -> ErrorKind {
        Image::of::<Cuda>(bytes).unwrap_err().kind()
    }
    #[test]
    fn the_kernels_of_ptx_are_those_that_can_be_launched_with_the_sizes_of_their_parameters() {
        let image = Image::of::<Cuda>(PTX.as_bytes()).unwrap();
        assert_eq!((image.form(), image.given()), (Form::Ptx, PTX.as_bytes()));
        assert_eq!(image.terminated().last(), Some(&0));
        let entries = image.entries().unwrap();
        let sizes = |name: &str| entries[&CString::new(name).unwrap()].clone().unwrap();
        assert_eq!(entries.len(), 11);
        assert_eq!(sizes("x"), [0_u32; 0]);
        assert_eq!(sizes("vector_add"), [8, 8, 8, 4]);
        assert_eq!(sizes("record"), [24]);
        assert_eq!(sizes("add_with_offset"), [8, 4, 12]);
        assert_eq!(sizes("limited"), [8]);
    }
    #[test]
    fn comments_functions_and_strings_hold_no_kernels() {
        let text = ".version 8.3 // .entry a()\n/* .entry b() */ .target sm_70\n.visible .func c(.param .b32 \
                    d) { ret; }\n.file 1 \".entry e\"\n.visible .entry $f_1\n(.param .align 4 .b8 g[3],\n\
                    .param .u8 h, .param .u64 .ptr .global .align 1 i)\n{ }\n.entry j { }";
        let entries = ptx_entries(text);
        let names: Vec<_> = entries.keys().map(|name| name.to_str().unwrap()).collect();
        assert_eq!(names, ["$f_1", "j"]);
        assert_eq!(entries[c"$f_1"], Some(vec![3, 1, 8]));
        assert_eq!(entries[c"j"], Some(vec![]));
        assert_eq!(parameters([".param", ".texref", "t"].into_iter()), None);
    }
    #[test]
    fn what_is_no_code_for_the_device_is_refused() {
        let spir_v = [0x03, 0x02, 0x23, 0x07, 0, 0, 1, 0];
        for bytes in [&b""[..], b"\x7fELF", b"hello", &spir_v, b"// nothing but a comment", &FATBIN]
        {
            assert_eq!(code(bytes), ErrorKind::InvalidBinary, "{bytes:?}");
        }
        assert_eq!(code(b".version 7.0\0.target"), ErrorKind::InvalidBinary);
        let padded = b".version 7.0\n.target sm_70\n.entry k() {}\0\0\0\0";
        let image = Image::of::<Cuda>(padded).unwrap();
        assert_eq!((image.given(), image.entries().unwrap().len()), (&padded[..], 1));
    }
    #[test]
    fn a_fatbin_that_is_cut_off_is_refused() {
        let mut whole = FATBIN.to_vec();
        whole.extend([1, 0, 16, 0]); // version; bytes of this header
        whole.extend(32_u64.to_le_bytes());
        whole.extend([2, 0, 1, 1, 16, 0, 0, 0]); // machine code; bytes of the piece's header
        whole.extend(16_u64.to_le_bytes());
        whole.extend([0; 16]);
        assert_eq!(Image::of::<Cuda>(&whole).unwrap().form(), Form::Fatbin);
        for end in 4..whole.len() {
            assert_eq!(code(&whole[..end]), ErrorKind::InvalidBinary, "{end} bytes");
        }
        whole[8..16].copy_from_slice(&u64::MAX.to_le_bytes());
        assert_eq!(code(&whole), ErrorKind::InvalidBinary);
    }
}
