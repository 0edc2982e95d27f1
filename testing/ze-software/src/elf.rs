//! Kernels that are C functions of a shared object. Such a file exports `ze_software_kernels`, rows of a name, a function
//! and the number of its arguments, and a row of nulls at the end. A function gets the addresses of its arguments' bytes
//! and the item that it is called for. The file is loaded by the dynamic linker, which trusts it.
#![expect(unsafe_code, reason = "loads code and calls it")]
use std::{
    ffi::{CStr, CString, c_char, c_int, c_void},
    io::Write,
    os::fd::AsRawFd,
    sync::Arc,
};

/// Which item of a launch a native kernel is called for.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Place {
    /// The item's number in the range, with the offset.
    pub global_id: [usize; 3],
    /// Its number in its group.
    pub local_id: [usize; 3],
    /// Its group's number.
    pub group_id: [usize; 3],
    /// Items of the range.
    pub global_size: [usize; 3],
    /// Items of a group.
    pub local_size: [usize; 3],
    /// What is added to the numbers of all items.
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
/// The size of what a symbol names, as the file says it.
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
    /// A sentence for the build log: the linker's, or that there are no kernels.
    pub fn load(bytes: Vec<u8>) -> Result<Library, String> {
        let flags = rustix::fs::MemfdFlags::CLOEXEC;
        let file =
            rustix::fs::memfd_create("ze-software-module", flags).map_err(|e| e.to_string())?;
        let mut file = std::fs::File::from(file);
        file.write_all(&bytes).map_err(|e| e.to_string())?;
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        // SAFETY: whoever gives a native module trusts its initializers.
        let loaded = unsafe { libloading::Library::new(path) }.map_err(|e| e.to_string())?;
        // SAFETY: the symbol is what this module's convention says.
        let table = unsafe { loaded.get::<*const Row>(b"ze_software_kernels\0") };
        let table = table.map_err(|_| "the file exports no ze_software_kernels".to_owned())?;
        // SAFETY: the address is used while the library is loaded.
        let at = unsafe { table.try_as_raw_ptr() }.ok_or("ze_software_kernels is nowhere")?;
        let mut at = at.cast::<Row>().cast_const();
        let (mut names, mut functions) = (Vec::new(), Vec::new());
        loop {
            // SAFETY: the table has a row of nulls at its end.
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
    /// The file.
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
        // SAFETY: all zeros are such a structure.
        let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
        let mut extra = std::ptr::null_mut();
        // SAFETY: the address is one of the library's; both places are this function's.
        let found = unsafe { dladdr1(at, &raw mut info, &raw mut extra, SYMBOL) };
        if found == 0 || extra.is_null() {
            return Some((at.addr() as u64, 0));
        }
        // SAFETY: for this question the answer is the symbol of the file.
        let symbol = unsafe { extra.cast::<Symbol>().read_unaligned() };
        Some((at.addr() as u64, symbol.size))
    }
    fn symbol(&self, name: &str) -> Option<*mut c_void> {
        let name = CString::new(name).ok()?;
        // SAFETY: only the address is taken.
        let symbol = unsafe { self.loaded.get::<*mut c_void>(name.as_bytes_with_nul()) }.ok()?;
        // SAFETY: the library stays loaded while this object is there.
        unsafe { symbol.try_as_raw_ptr() }
    }
}
/// Calls a kernel for every item of a launch, one after another.
pub fn run(function: Function, arguments: &[Arc<[u8]>], [groups, size, offset]: [[u32; 3]; 3]) {
    let addresses: Vec<*const c_void> = arguments.iter().map(|a| a.as_ptr().cast()).collect();
    let [count, local_size, offset] = [groups, size, offset].map(|s| s.map(|n| n as usize));
    let global_size = std::array::from_fn(|n| count[n] * local_size[n]);
    for group_id in boxed(count) {
        for local_id in boxed(local_size) {
            let global_id =
                std::array::from_fn(|n| group_id[n] * local_size[n] + local_id[n] + offset[n]);
            let place = Place { global_id, local_id, group_id, global_size, local_size, offset };
            // SAFETY: the module's author says that the function is a kernel of so many arguments.
            unsafe { function(addresses.as_ptr(), &raw const place) };
        }
    }
}
/// All places in a box, the first direction fastest.
fn boxed([x, y, z]: [usize; 3]) -> impl Iterator<Item = [usize; 3]> {
    (0..z).flat_map(move |z| (0..y).flat_map(move |y| (0..x).map(move |x| [x, y, z])))
}
