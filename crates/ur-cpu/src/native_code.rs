//! Native code that the application passed, in tables of functions or shared objects, and calls of its
//! functions. It is trusted like all other code of the process. Only this file dereferences pointers to code.
//!
//! A kernel is a function that is called once for each work-item, with the addresses of its arguments and the
//! position of the work-item. A sub-group has one work-item, and there are no work-group barriers.
#![expect(unsafe_code, reason = "calls functions that C gave")]
use super::Cpu;
use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use object::{Object as _, ObjectSegment as _, ObjectSymbol as _, SymbolKind};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use std::{
    collections::BTreeMap,
    ffi::{CStr, CString, c_char, c_void},
    fs::File,
    io::Write,
    os::fd::AsRawFd,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};
use ur_hal::{Address, Argument as Given, Error, ErrorKind, Geometry, Launch, Range, Result};

/// The position of a work-item, as kernels read it; index 0 is the fastest dimension. The layout is that of
/// UR's native CPU adapter.
#[repr(C)]
#[derive(Clone, Debug, Default)]
struct State {
    global_id: [usize; 3],
    global_range: [usize; 3],
    group_size: [usize; 3],
    group_id: [usize; 3],
    local_id: [usize; 3],
    groups: [usize; 3],
    global_offset: [usize; 3],
    sub_groups: u32,
    sub_group_id: u32,
    sub_group_local_id: u32,
    sub_group_size: u32,
}

type Call = unsafe extern "C" fn(*const *mut c_void, *mut State);
/// The function of a kernel.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry(Call);
/// A kernel; it keeps its code loaded.
#[derive(Clone, Debug)]
pub struct Function {
    entry: Entry,
    _loaded: Arc<Loaded>,
}
impl Function {
    /// The kernel at an entry of loaded code.
    pub(super) fn of(loaded: &Arc<Loaded>, entry: Entry) -> Self {
        Self { entry, _loaded: Arc::clone(loaded) }
    }
    /// Its address.
    pub(super) fn address(&self) -> Option<Address> {
        Address::new(self.entry.0 as usize)
    }
}

/// Loaded code, with its kernels and variables by name.
#[derive(Debug)]
pub struct Loaded {
    /// Kernels by name.
    pub(super) kernels: BTreeMap<CString, Entry>,
    /// Variables by name.
    pub(super) variables: BTreeMap<CString, Range>,
    /// Unloaded when no kernel of it exists any more.
    _library: Option<Library>,
}

/// An entry of a table. A null function ends the table.
#[repr(C)]
#[derive(Clone, Copy)]
struct Pair {
    name: *const c_char,
    function: Option<Call>,
}

/// A binary: a copy of a shared object, or the contents of a table.
#[derive(Debug)]
pub enum Binary {
    /// An ELF file.
    Object(Arc<[u8]>),
    /// Functions of this process.
    Table(Arc<Loaded>),
}

/// Recognises a binary that the application passed.
///
/// # Errors
/// `INVALID_BINARY` for what is neither an ELF file nor a table.
pub(super) fn look_at(bytes: &[u8]) -> Result<Binary> {
    let refused = |why: &str| Err(Error::new(ErrorKind::InvalidBinary, why.to_string()));
    if bytes.len() < size_of::<Pair>() {
        return refused("a native CPU binary is a shared object, or a table of {name, function}");
    }
    // A table cannot begin with these magic numbers: the first eight bytes of ELF files and of SPIR-V are no
    // address of this process.
    if bytes.starts_with(b"\x7fELF") {
        return match bytes.len() < ELF_HEADER {
            true => refused("the shared object is cut short: it has not even a whole header"),
            false => Ok(Binary::Object(bytes.into())),
        };
    }
    if bytes.starts_with(&SPIR_V) || bytes.starts_with(b"BC\xc0\xde") {
        return refused("this is intermediate code, and a native CPU device takes native code");
    }
    let pairs = bytes.as_ptr().cast::<Pair>();
    if !pairs.is_aligned() {
        return refused("a table of {name, function} is aligned as pointers are");
    }
    read_table(pairs, bytes.len() / size_of::<Pair>()).map(|table| Binary::Table(Arc::new(table)))
}
/// The magic number of SPIR-V.
const SPIR_V: [u8; 4] = [0x03, 0x02, 0x23, 0x07];
/// The size in bytes of the header of a 64-bit ELF file.
const ELF_HEADER: usize = 64;

fn read_table(first: *const Pair, most: usize) -> Result<Loaded> {
    let mut kernels = BTreeMap::new();
    for at in 0..most {
        // SAFETY: within the length that the application passed, and aligned; the application guarantees that
        // it is a table.
        let pair = unsafe { &*first.wrapping_add(at) };
        let Pair { name, function } = *pair;
        let Some(function) = function else { break };
        if name.is_null() {
            return Err(Error::new(
                ErrorKind::InvalidBinary,
                "a function in the table has no name: end the table with a null function",
            ));
        }
        // SAFETY: the application guarantees that the names in the table are strings.
        let name = unsafe { CStr::from_ptr(name) };
        kernels.insert(name.to_owned(), Entry(function));
    }
    Ok(Loaded { kernels, variables: BTreeMap::new(), _library: None })
}

/// Loads a shared object from its bytes. Every exported function is a kernel with the symbol's name, and
/// every exported variable a device global.
///
/// # Errors
/// Returns why it could not be loaded, for the build log.
pub(super) fn load(bytes: &[u8]) -> std::result::Result<Loaded, String> {
    let parsed = object::File::parse(bytes).map_err(|e| format!("not a whole ELF file: {e}"))?;
    let whole =
        |(at, size): (u64, u64)| at.checked_add(size).is_some_and(|end| end <= bytes.len() as u64);
    if !parsed.segments().all(|segment| whole(segment.file_range())) {
        // Otherwise the loader would map beyond the end of the file, and accesses there would fault.
        return Err("the ELF file is cut off: a part that is to be loaded ends after it".into());
    }
    let file = sealed(bytes).map_err(|e| format!("could not copy the code to a memfd: {e}"))?;
    let path = unique_path(&file);
    // SAFETY: loading runs the object's initialisers; the application passed it as code of this process.
    let library = unsafe { Library::open(Some(&path), RTLD_NOW | RTLD_LOCAL) }
        .map_err(|e| format!("could not load the shared object: {e}"))?;
    let (mut kernels, mut variables) = (BTreeMap::new(), BTreeMap::new());
    for symbol in parsed.dynamic_symbols().filter(|s| s.is_definition() && s.is_global()) {
        let Ok(name) = symbol.name_bytes().map(|n| CString::new(n).unwrap_or_default()) else {
            return Err("the name of a symbol is outside of the file".into());
        };
        match symbol.kind() {
            SymbolKind::Text => {
                // SAFETY: a function by its kind; that it is a kernel is the application's responsibility.
                let function = unsafe { library.get::<Call>(name.as_bytes_with_nul()) };
                let function = function.map_err(|e| format!("{name:?}: {e}"))?;
                kernels.insert(name, Entry(*function));
            }
            SymbolKind::Data => {
                // SAFETY: only its address is taken.
                let variable = unsafe { library.get::<*mut c_void>(name.as_bytes_with_nul()) };
                let variable = variable.map_err(|e| format!("{name:?}: {e}"))?;
                let size = usize::try_from(symbol.size()).map_err(|e| format!("{name:?}: {e}"))?;
                let at = Address::new(variable.into_raw().expose_provenance());
                if let Some(Ok(range)) = at.map(|at| Range::new(at, size)) {
                    variables.insert(name, range);
                }
            }
            _ => {}
        }
    }
    Ok(Loaded { kernels, variables, _library: Some(library) })
}
/// A path to an open file that no other call returns. Needed because the loader recognises objects by their
/// path, and numbers of descriptors are reused.
fn unique_path(file: &File) -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Relaxed);
    // Path components without effect that encode the number's bits.
    let bits = u64::BITS - number.leading_zeros();
    let steps = (0..bits).map(|bit| if number >> bit & 1 == 1 { "/." } else { "/" });
    format!("/proc/self/fd{}/{}", steps.collect::<String>(), file.as_raw_fd())
}
/// A sealed memfd with these bytes, which cannot be changed.
fn sealed(bytes: &[u8]) -> std::io::Result<File> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let made = match memfd_create("causeway-code", flags | MemfdFlags::EXEC) {
        Err(rustix::io::Errno::INVAL) => memfd_create("causeway-code", flags), // before Linux 6.3
        made => made,
    };
    let mut file = File::from(made?);
    file.write_all(bytes)?;
    fcntl_add_seals(
        &file,
        SealFlags::WRITE | SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL,
    )?;
    Ok(file)
}

/// The storage unit of arguments by value and of local memory; its alignment suffices for every type of SYCL.
#[repr(C, align(128))]
#[derive(Clone, Copy)]
struct Line([u8; 128]);
fn lines(bytes: usize) -> Box<[Line]> {
    vec![Line([0; 128]); bytes.div_ceil(size_of::<Line>())].into()
}

/// One argument of a kernel.
enum Argument {
    Value(Box<[Line]>),
    Address(usize),
    /// The offset of its local memory in that of a group.
    Local(usize),
}
/// The arguments of a launch, copied at submission.
pub struct Arguments {
    all: Box<[Argument]>,
    /// Bytes of local memory of a group.
    local: usize,
}
impl std::fmt::Debug for Arguments {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} arguments", self.all.len())
    }
}
impl Arguments {
    /// Copies the arguments of a launch; the command keeps the memory that they point at.
    ///
    /// # Errors
    /// `OUT_OF_RESOURCES` if the size of local memory overflows; launches are checked against the limit
    /// before.
    pub(super) fn new(launch: &Launch<'_, Cpu>) -> Result<Self> {
        let mut local = launch.local_memory;
        let argument = |one: &Given<'_, Cpu>| {
            Ok(match one {
                Given::Value(bytes) => Argument::Value(copied(bytes)),
                Given::Address(at) => Argument::Address(at.map_or(0, Address::get)),
                Given::Image(image, _) => Argument::Address(image.first().get()),
                Given::Sampler(word) => Argument::Value(copied(&word.to_ne_bytes())),
                // Aligned like values, because the type that the kernel has there is not known.
                Given::Local(bytes) => {
                    let start = local.next_multiple_of(size_of::<Line>());
                    local = start.checked_add(*bytes).ok_or(ErrorKind::OutOfResources)?;
                    Argument::Local(start)
                }
            })
        };
        let all = launch.arguments.iter().map(argument).collect::<Result<_>>()?;
        Ok(Self { all, local })
    }
}
/// The largest local memory of a work-group, in bytes.
pub(super) const LOCAL_MEMORY: usize = 256 << 10;
/// The largest size in bytes of an argument by value, and of all arguments.
pub(super) const ARGUMENT_BYTES: usize = 4096;

fn copied(bytes: &[u8]) -> Box<[Line]> {
    let mut copy = lines(bytes.len());
    for (line, part) in copy.iter_mut().zip(bytes.chunks(size_of::<Line>())) {
        line.0[..part.len()].copy_from_slice(part);
    }
    copy
}

/// Calls `function` for every work-item of `count` groups starting with `first`, one after the other.
pub(super) fn run(
    function: &Function,
    arguments: &Arguments,
    range: &Geometry,
    first: usize,
    count: usize,
) {
    let mut local = lines(arguments.local);
    let local = local.as_mut_ptr().cast::<u8>();
    let at = |one: &Argument| match one {
        Argument::Value(value) => value.as_ptr().cast_mut().cast(),
        Argument::Address(address) => std::ptr::with_exposed_provenance_mut(*address),
        Argument::Local(start) => local.wrapping_add(*start).cast(),
    };
    let pointers: Vec<*mut c_void> = arguments.all.iter().map(at).collect();
    let (groups, size) = (range.groups, range.local.map(|n| n as usize));
    let [width, height, depth] = size;
    let mut state = State {
        global_range: [0, 1, 2].map(|d| groups[d] * size[d]),
        group_size: size,
        groups,
        global_offset: range.offset,
        sub_groups: (width * height * depth) as u32,
        sub_group_size: 1,
        ..State::default()
    };
    for group in first..first + count {
        let rest = group / groups[0];
        state.group_id = [group % groups[0], rest % groups[1], rest / groups[1]];
        let start = [0, 1, 2].map(|d| {
            let before = state.group_id[d] * size[d];
            range.offset[d].wrapping_add(before)
        });
        state.sub_group_id = 0;
        for z in 0..depth {
            for y in 0..height {
                for x in 0..width {
                    state.local_id = [x, y, z];
                    let id = [0, 1, 2].map(|d| start[d].wrapping_add(state.local_id[d]));
                    state.global_id = id;
                    // SAFETY: the application passed the function as a kernel with these arguments; they and
                    // the state outlive the call.
                    unsafe { function.entry.0(pointers.as_ptr(), &mut state) };
                    state.sub_group_id += 1;
                }
            }
        }
    }
}
