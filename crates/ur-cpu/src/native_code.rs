//! Code of this process, given by C as code: tables of functions and shared objects, and calling
//! what is in them. It is trusted, as whatever else C links. Nothing else looks behind a pointer
//! to code.
//!
//! A kernel is a function that is called once for each work-item, with the addresses of its
//! arguments and the item's place in the range: there is no sub-group of more than one item, and
//! no barrier that the items of a group could meet at.
#![expect(unsafe_code, reason = "calls functions that C gave")]
use super::{
    Mem, Sampler,
    mem::{Placed, Storage},
};
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
use ur_adapter::{
    error::{Error, ErrorCode, Result},
    memory::UsmPtr,
};
use ur_core::kernels::arguments::{Argument as Given, read};
use ur_hal::{Address, Range};
use ur_sys::ur_exp_kernel_arg_properties_t;

/// Where in its range a work-item is, as kernels read it; index 0 is the dimension that varies
/// fastest. The layout is UR's native CPU convention.
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
/// A kernel's code.
#[derive(Clone, Copy, Debug)]
pub struct Function(Call);
impl Function {
    /// Its address.
    pub(super) fn address(self) -> Option<Address> {
        Address::new(self.0 as usize)
    }
}

/// Code, and what it offers by name.
#[derive(Debug)]
pub struct Loaded {
    /// Kernels by name.
    pub(super) kernels: BTreeMap<CString, Function>,
    /// Variables by name.
    pub(super) variables: BTreeMap<CString, Range>,
    /// Unloaded when nobody has a kernel of it any more.
    _library: Option<Library>,
}

/// One entry of a table, which ends with one whose function is null.
#[repr(C)]
#[derive(Clone, Copy)]
struct Pair {
    name: *const c_char,
    function: Option<Call>,
}

/// The bytes of a binary: copied if they are a shared object, else a table that is read at once.
#[derive(Debug)]
pub enum Binary {
    /// An ELF file.
    Object(Arc<[u8]>),
    /// Functions of this process.
    Table(Arc<Loaded>),
}

/// Looks at a binary that C gave.
///
/// # Errors
/// `INVALID_BINARY` for what is neither a shared object for this machine nor a table.
pub(super) fn look_at(bytes: &[u8]) -> Result<Binary> {
    let refused = |why: &str| Err(Error::new(ErrorCode::InvalidBinary, why.to_string()));
    if bytes.len() < size_of::<Pair>() {
        return refused("a native CPU binary is a shared object, or a table of {name, function}");
    }
    // Seldom enough a table begins like one of these: an ELF file's and SPIR-V's first eight bytes
    // are no address of this process.
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
/// Bytes of the header that every 64-bit ELF file begins with.
const ELF_HEADER: usize = 64;

fn read_table(first: *const Pair, most: usize) -> Result<Loaded> {
    let mut kernels = BTreeMap::new();
    for at in 0..most {
        // SAFETY: within the length that C gave, aligned, and C vouches for a table there.
        let pair = unsafe { &*first.wrapping_add(at) };
        let Pair { name, function } = *pair;
        let Some(function) = function else { break };
        if name.is_null() {
            return Err(Error::new(
                ErrorCode::InvalidBinary,
                "a function in the table has no name: end the table with a null function",
            ));
        }
        // SAFETY: C vouches for a table, whose names are strings.
        let name = unsafe { CStr::from_ptr(name) };
        kernels.insert(name.to_owned(), Function(function));
    }
    Ok(Loaded { kernels, variables: BTreeMap::new(), _library: None })
}

/// Loads a shared object from its bytes. Every exported function is a kernel, by its symbol's
/// name, and every exported variable a device global.
///
/// # Errors
/// Why it could not be loaded, for the build log.
pub(super) fn load(bytes: &[u8]) -> std::result::Result<Loaded, String> {
    let parsed = object::File::parse(bytes).map_err(|e| format!("not a whole ELF file: {e}"))?;
    let whole =
        |(at, size): (u64, u64)| at.checked_add(size).is_some_and(|end| end <= bytes.len() as u64);
    if !parsed.segments().all(|segment| whole(segment.file_range())) {
        // The loader maps what the file has not, and faults there.
        return Err("the ELF file is cut off: a part that is to be loaded ends after it".into());
    }
    let file = sealed(bytes).map_err(|e| format!("could not copy the code to a memfd: {e}"))?;
    let path = unique_path(&file);
    // SAFETY: loading runs the object's initialisers; C gave it as code of this process.
    let library = unsafe { Library::open(Some(&path), RTLD_NOW | RTLD_LOCAL) }
        .map_err(|e| format!("could not load the shared object: {e}"))?;
    let (mut kernels, mut variables) = (BTreeMap::new(), BTreeMap::new());
    for symbol in parsed.dynamic_symbols().filter(|s| s.is_definition() && s.is_global()) {
        let Ok(name) = symbol.name_bytes().map(|n| CString::new(n).unwrap_or_default()) else {
            return Err("the name of a symbol is outside of the file".into());
        };
        match symbol.kind() {
            SymbolKind::Text => {
                // SAFETY: a function by its kind; that it is a kernel is for C to know.
                let function = unsafe { library.get::<Call>(name.as_bytes_with_nul()) };
                let function = function.map_err(|e| format!("{name:?}: {e}"))?;
                kernels.insert(name, Function(*function));
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
/// A path to an open file that no other call gives: the loader takes a path that it has seen for
/// the same object, and the numbers of files come again.
fn unique_path(file: &File) -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Relaxed);
    // Steps that lead nowhere, written from the number's bits.
    let bits = u64::BITS - number.leading_zeros();
    let steps = (0..bits).map(|bit| if number >> bit & 1 == 1 { "/." } else { "/" });
    format!("/proc/self/fd{}/{}", steps.collect::<String>(), file.as_raw_fd())
}
/// A file that nobody can change, with these bytes.
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

/// Where arguments by value and local memory start: as aligned as any type of SYCL's.
#[repr(C, align(128))]
#[derive(Clone, Copy)]
struct Line([u8; 128]);
fn lines(bytes: usize) -> Box<[Line]> {
    vec![Line([0; 128]); bytes.div_ceil(size_of::<Line>())].into()
}

/// One argument of a kernel.
#[derive(Clone)]
enum Argument {
    Value(Arc<[Line]>),
    Address(usize),
    Mem(UsmPtr, #[expect(dead_code, reason = "keeps the memory")] Arc<Storage>),
    /// So many bytes for each work-group.
    Local(usize),
}
/// The arguments of a launch, as they were when it was asked for.
#[derive(Clone, Default)]
pub struct Arguments(Arc<[Argument]>);
impl std::fmt::Debug for Arguments {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} arguments", self.0.len())
    }
}
impl Arguments {
    /// Copies what C describes; memory objects stay alive with it.
    ///
    /// # Errors
    /// `INVALID_KERNEL_ARGS` unless there is one for each index; `INVALID_ENUMERATION`,
    /// `INVALID_MEM_OBJECT`, `INVALID_SAMPLER`; `OUT_OF_RESOURCES` for too much local memory.
    pub(super) fn new(given: &[ur_exp_kernel_arg_properties_t]) -> Result<Self> {
        // As many places as arguments: one that is given twice leaves a gap.
        Self::placed(given, vec![None; given.len()])
    }
    /// The same with some replaced, by index; where there are none, those are all. Of several for one
    /// index the last counts.
    ///
    /// # Errors
    /// As for `new`.
    pub(super) fn with(&self, given: &[ur_exp_kernel_arg_properties_t]) -> Result<Self> {
        let last = given.iter().map(|one| one.index as usize).max();
        let all = match self.0.len() {
            0 => vec![None; last.map_or(0, |last| (last + 1).min(given.len()))],
            _ => self.0.iter().cloned().map(Some).collect(),
        };
        Self::placed(given, all)
    }
    fn placed(
        given: &[ur_exp_kernel_arg_properties_t],
        mut all: Vec<Option<Argument>>,
    ) -> Result<Self> {
        for one in given {
            let Some(place) = all.get_mut(one.index as usize) else {
                let why =
                    format!("argument {} is given twice, or leaves a gap before it", one.index);
                return Err(Error::new(ErrorCode::InvalidKernelArgs, why));
            };
            *place = Some(argument(one)?);
        }
        Self::whole(all)
    }
    fn whole(all: Vec<Option<Argument>>) -> Result<Self> {
        let all: Option<Arc<[Argument]>> = all.into_iter().collect();
        let all = all.ok_or_else(|| {
            Error::new(ErrorCode::InvalidKernelArgs, "an argument is missing: give all of them")
        })?;
        let arguments = Self(all);
        match arguments.local_lines() {
            Some(lines) if lines <= LOCAL_MEMORY / size_of::<Line>() => Ok(arguments),
            _ => Err(Error::new(
                ErrorCode::OutOfResources,
                format!("a work-group has {LOCAL_MEMORY} bytes of local memory, and needs more"),
            )),
        }
    }
    /// How much local memory a group needs.
    fn local_lines(&self) -> Option<usize> {
        self.0.iter().try_fold(0_usize, |sum, one| match one {
            Argument::Local(bytes) => sum.checked_add(bytes.div_ceil(size_of::<Line>())),
            _ => Some(sum),
        })
    }
}
/// Local memory of a work-group, in bytes.
pub(super) const LOCAL_MEMORY: usize = 256 << 10;
/// Bytes of all arguments by value.
pub(super) const ARGUMENT_BYTES: usize = 4096;

fn argument(one: &ur_exp_kernel_arg_properties_t) -> Result<Argument> {
    let copied = |bytes: &[u8]| {
        let mut copy = lines(bytes.len());
        for (line, part) in copy.iter_mut().zip(bytes.chunks(size_of::<Line>())) {
            line.0[..part.len()].copy_from_slice(part);
        }
        Argument::Value(copy.into())
    };
    Ok(match read::<Mem, Sampler>(one)? {
        Given::Value(bytes) if bytes.len() > ARGUMENT_BYTES => {
            let (index, size) = (one.index, bytes.len());
            let why =
                format!("argument {index} has {size} bytes: a value has 1 to {ARGUMENT_BYTES}");
            return Err(Error::new(ErrorCode::InvalidKernelArgumentSize, why));
        }
        Given::Value(bytes) => copied(bytes),
        Given::Address(at) => Argument::Address(at),
        Given::Memory(None) => Argument::Address(0),
        Given::Memory(Some((mem, _))) => Argument::Mem(mem.address(), mem.storage().clone()),
        Given::Local(bytes) => Argument::Local(bytes),
        Given::Sampler(sampler) => copied(&Sampler::word(&sampler).to_ne_bytes()),
    })
}

/// The items of a launch. All numbers but those of `offset` are at least 1, and their products fit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Items {
    /// Where ids start.
    pub(super) offset: [usize; 3],
    /// Work-items.
    pub(super) global: [usize; 3],
    /// Work-items of a group; each divides `global`.
    pub(super) local: [usize; 3],
}
impl Items {
    /// Work-groups in each dimension.
    pub(super) fn groups(&self) -> [usize; 3] {
        [0, 1, 2].map(|d| self.global[d] / self.local[d])
    }
}

/// Calls `function` for every item of `count` groups from the `first` on, one after the other.
pub(super) fn run(
    function: Function,
    arguments: &Arguments,
    range: &Items,
    first: usize,
    count: usize,
) {
    let mut local = lines(arguments.local_lines().unwrap_or(0) * size_of::<Line>());
    let mut free = local.as_mut_ptr();
    let at = |one: &Argument| match one {
        Argument::Value(value) => value.as_ptr().cast_mut().cast(),
        Argument::Address(address) => std::ptr::with_exposed_provenance_mut(*address),
        Argument::Mem(address, _) => address.as_ptr(),
        Argument::Local(bytes) => {
            let here = free;
            free = free.wrapping_add(bytes.div_ceil(size_of::<Line>()));
            here.cast()
        }
    };
    let pointers: Vec<*mut c_void> = arguments.0.iter().map(at).collect();
    let (groups, [width, height, depth]) = (range.groups(), range.local);
    let mut state = State {
        global_range: range.global,
        group_size: range.local,
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
            let before = state.group_id[d] * range.local[d];
            range.offset[d].wrapping_add(before)
        });
        state.sub_group_id = 0;
        for z in 0..depth {
            for y in 0..height {
                for x in 0..width {
                    state.local_id = [x, y, z];
                    let id = [0, 1, 2].map(|d| start[d].wrapping_add(state.local_id[d]));
                    state.global_id = id;
                    // SAFETY: C gave the function as a kernel that takes these arguments; they
                    // and the state outlive the call.
                    unsafe { function.0(pointers.as_ptr(), &mut state) };
                    state.sub_group_id += 1;
                }
            }
        }
    }
}
