//! Kernels that are C functions of a shared object. Such a file exports `ze_software_kernels`: rows of a
//! name, a function and the number of its arguments, ended by a row of nulls. A function gets the addresses
//! of its arguments and the position of the work-item. The dynamic linker loads the file, which is trusted.
#![expect(unsafe_code, reason = "loads code and calls it")]
use std::{
    ffi::{CStr, CString, c_char, c_int, c_void},
    io::Write,
    os::fd::AsRawFd,
    sync::Arc,
};

/// The position of the work-item that a native kernel is called for.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Place {
    /// The global id, with the offset.
    pub global_id: [usize; 3],
    /// The id in the group.
    pub local_id: [usize; 3],
    /// The id of the group.
    pub group_id: [usize; 3],
    /// The global size.
    pub global_size: [usize; 3],
    /// The group size.
    pub local_size: [usize; 3],
    /// The global offset.
    pub offset: [usize; 3],
}
/// A native kernel.
pub type Function = unsafe extern "C" fn(arguments: *const *const c_void, place: *const Place);
#[repr(C)]
#[derive(Clone, Copy)]
struct Row {
    name: *const c_char,
    function: Option<Function>,
    parameters: u32,
}
/// A loaded shared object.
pub struct Library {
    bytes: Vec<u8>,
    names: Vec<String>,
    functions: Vec<(Function, u32)>,
    loaded: libloading::Library,
}
/// A symbol of an ELF file, of which only the size is used.
#[repr(C)]
struct Symbol {
    name: u32,
    info: u8,
    other: u8,
    section: u16,
    value: u64,
    size: u64,
}
unsafe extern "C" {
    fn dladdr1(
        at: *const c_void,
        info: *mut libc::Dl_info,
        extra: *mut *mut c_void,
        what: c_int,
    ) -> c_int;
}
const SYMBOL: c_int = 1;

impl Library {
    /// Loads the bytes of a shared object.
    ///
    /// # Errors
    /// Returns a sentence for the build log: the linker's, or that there are no kernels.
    pub fn load(bytes: Vec<u8>) -> Result<Library, String> {
        let flags = rustix::fs::MemfdFlags::CLOEXEC;
        let file =
            rustix::fs::memfd_create("ze-software-module", flags).map_err(|e| e.to_string())?;
        let mut file = std::fs::File::from(file);
        file.write_all(&bytes).map_err(|e| e.to_string())?;
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        // SAFETY: the user trusts the initialisers of a native module.
        let loaded = unsafe { libloading::Library::new(path) }.map_err(|e| e.to_string())?;
        // SAFETY: the symbol has the type that this module documents.
        let table = unsafe { loaded.get::<*const Row>(b"ze_software_kernels\0") };
        let table = table.map_err(|_| "the file exports no ze_software_kernels".to_owned())?;
        // SAFETY: the address is used only while the library is loaded.
        let at = unsafe { table.try_as_raw_ptr() }.ok_or("ze_software_kernels is nowhere")?;
        let mut at = at.cast::<Row>().cast_const();
        let (mut names, mut functions) = (Vec::new(), Vec::new());
        loop {
            // SAFETY: the table ends with a row of nulls.
            let row = unsafe { at.read_unaligned() };
            let (false, Some(function)) = (row.name.is_null(), row.function) else { break };
            // SAFETY: the names are C strings.
            let name = unsafe { CStr::from_ptr(row.name) };
            names.push(name.to_string_lossy().into_owned());
            functions.push((function, row.parameters));
            at = at.wrapping_add(1);
        }
        Ok(Library { bytes, names, functions, loaded })
    }
    /// The bytes of the file.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
    /// The names of its kernels.
    pub fn names(&self) -> &[String] {
        &self.names
    }
    /// A kernel and the number of its arguments.
    pub fn kernel(&self, name: &str) -> Option<(Function, u32)> {
        let n = self.names.iter().position(|n| n == name)?;
        Some(self.functions[n])
    }
    /// The address of a function, one of the kernels or one that the file exports.
    pub fn function(&self, name: &str) -> Option<u64> {
        match self.kernel(name) {
            Some((function, _)) => Some(function as usize as u64),
            None => self.symbol(name).map(|at| at.addr() as u64),
        }
    }
    /// The address and the size of a variable.
    pub fn global(&self, name: &str) -> Option<(u64, u64)> {
        let at = self.symbol(name)?;
        // SAFETY: all zeros are a valid value.
        let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
        let mut extra = std::ptr::null_mut();
        // SAFETY: the address is in the library; both places are writable.
        let found = unsafe { dladdr1(at, &raw mut info, &raw mut extra, SYMBOL) };
        if found == 0 || extra.is_null() {
            return Some((at.addr() as u64, 0));
        }
        // SAFETY: this query returns a symbol of the file.
        let symbol = unsafe { extra.cast::<Symbol>().read_unaligned() };
        Some((at.addr() as u64, symbol.size))
    }
    fn symbol(&self, name: &str) -> Option<*mut c_void> {
        let name = CString::new(name).ok()?;
        // SAFETY: only the address is taken.
        let symbol = unsafe { self.loaded.get::<*mut c_void>(name.as_bytes_with_nul()) }.ok()?;
        // SAFETY: the library stays loaded while this object lives.
        unsafe { symbol.try_as_raw_ptr() }
    }
}
/// Calls a kernel for every work-item of a launch, one after the other.
pub fn run(function: Function, arguments: &[Arc<[u8]>], [groups, size, offset]: [[u32; 3]; 3]) {
    let addresses: Vec<*const c_void> = arguments.iter().map(|a| a.as_ptr().cast()).collect();
    let [count, local_size, offset] = [groups, size, offset].map(|s| s.map(|n| n as usize));
    let global_size = std::array::from_fn(|n| count[n] * local_size[n]);
    for group_id in boxed(count) {
        for local_id in boxed(local_size) {
            let global_id =
                std::array::from_fn(|n| group_id[n] * local_size[n] + local_id[n] + offset[n]);
            let place = Place { global_id, local_id, group_id, global_size, local_size, offset };
            // SAFETY: the module declares the function as a kernel with this number of arguments.
            unsafe { function(addresses.as_ptr(), &raw const place) };
        }
    }
}
/// All positions in a box, the first dimension fastest.
fn boxed([x, y, z]: [usize; 3]) -> impl Iterator<Item = [usize; 3]> {
    (0..z).flat_map(move |z| (0..y).flat_map(move |y| (0..x).map(move |x| [x, y, z])))
}
