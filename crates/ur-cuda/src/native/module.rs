//! Modules: code loaded and linked for one device, and the kernels and variables in it. `code.rs` chooses the
//! code and the options, and interprets errors.
#![expect(unsafe_code, reason = "calls into the vendor's driver")]
use super::{
    super::driver::{Dialect, Outcome, RawContext, RawFunction, RawLink, RawModule},
    context::{Entered, Owned},
};
use std::{
    ffi::{CStr, CString, c_char, c_void},
    marker::PhantomData,
    ptr::{null_mut, without_provenance_mut},
};
use ur_hal::{Error, ErrorKind, Result, made, told};

/// The size in bytes of each of the driver's two log buffers.
const LOG: usize = 16 << 10;
/// The status "not found", the same in both drivers.
const NOT_FOUND: i32 = 500;
/// The status "invalid value", returned for an index past the last parameter.
const INVALID: i32 = 1;

/// Options for compilation and linking.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The largest number of registers of a thread.
    pub registers: Option<u32>,
    /// The optimization level, 0 to 4.
    pub optimization: Option<u32>,
    /// Whether to generate debug information.
    pub debug: bool,
    /// Whether to generate line numbers, for profilers.
    pub lines: bool,
}
/// The driver's numbers of the options (`CUjit_option`).
mod option {
    pub const REGISTERS: i32 = 0;
    pub const INFO: i32 = 3;
    pub const INFO_BYTES: i32 = 4;
    pub const ERROR: i32 = 5;
    pub const ERROR_BYTES: i32 = 6;
    pub const OPTIMIZATION: i32 = 7;
    pub const DEBUG: i32 = 11;
    pub const LINES: i32 = 13;
}
/// Options and log buffers for the driver, which reads and writes them while this lives.
struct Jit {
    names: Vec<i32>,
    values: Vec<*mut c_void>,
    _error: Box<[u8]>,
    _info: Box<[u8]>,
    error_at: *mut u8,
    info_at: *mut u8,
}
impl Jit {
    fn new(options: Options) -> Self {
        let (mut error, mut info) =
            (vec![0_u8; LOG].into_boxed_slice(), vec![0; LOG].into_boxed_slice());
        let (error_at, info_at) = (error.as_mut_ptr(), info.as_mut_ptr());
        let number = |n: usize| without_provenance_mut::<c_void>(n);
        // One byte less than the buffer has, so that the text always ends with a NUL.
        let mut all = vec![
            (option::INFO_BYTES, number(LOG - 1)),
            (option::INFO, info_at.cast()),
            (option::ERROR_BYTES, number(LOG - 1)),
            (option::ERROR, error_at.cast()),
        ];
        all.extend(options.registers.map(|n| (option::REGISTERS, number(n as usize))));
        all.extend(options.optimization.map(|n| (option::OPTIMIZATION, number(n as usize))));
        all.extend(options.debug.then(|| (option::DEBUG, number(1))));
        all.extend(options.lines.then(|| (option::LINES, number(1))));
        let (names, values) = all.into_iter().unzip();
        Self { names, values, _error: error, _info: info, error_at, info_at }
    }
    fn count(&self) -> u32 {
        self.names.len() as u32
    }
    /// The text of both logs, errors first.
    fn log(&self) -> String {
        let text = |at: *mut u8| {
            // SAFETY: the buffer lives as long as `self`, and its last byte is a NUL.
            let text = unsafe { CStr::from_ptr(at.cast_const().cast()) };
            text.to_string_lossy().trim().to_owned()
        };
        let both = [text(self.error_at), text(self.info_at)];
        both.into_iter().filter(|one| !one.is_empty()).collect::<Vec<_>>().join("\n")
    }
}

/// Code loaded into one device's context.
pub type Module<D> = Owned<RawModule, D>;
impl<D: Dialect> Module<D> {
    /// Loads `image` into `context`, which is current. The image must end with a NUL and be as long as its
    /// headers say. Always returns the driver's log too.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn load(
        _on: &Entered<D>,
        context: RawContext,
        image: &[u8],
        options: Options,
    ) -> (Result<Self>, String) {
        let mut jit = Jit::new(options);
        let (names, values) = (jit.names.as_mut_ptr(), jit.values.as_mut_ptr());
        let (image, count) = (image.as_ptr().cast(), jit.count());
        // SAFETY: the image was checked to be complete; the lists have `count` entries and live during the
        // call.
        let raw = made(|to| unsafe { D::driver().module_load(to, image, count, names, values) });
        (raw.map(|raw| Self::of(raw, true, context)), jit.log())
    }
    /// The kernel with that name, if there is one.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn function(&self, name: &CStr) -> Result<Option<Function<D>>> {
        let _on = self.enter()?;
        let mut raw = None;
        // SAFETY: the module is loaded, the name ends with a NUL.
        let outcome =
            unsafe { D::driver().module_function(&raw mut raw, self.raw(), name.as_ptr()) };
        Ok(found::<D>(outcome)?.and(raw).map(Function::of))
    }
    /// The address and the size in bytes of the variable with that name, if there is one.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn variable(&self, name: &CStr) -> Result<Option<(u64, usize)>> {
        let _on = self.enter()?;
        let (mut at, mut bytes) = (0, 0);
        // SAFETY: the module is loaded, the name ends with a NUL.
        let outcome = unsafe {
            D::driver().module_global(&raw mut at, &raw mut bytes, self.raw(), name.as_ptr())
        };
        Ok(found::<D>(outcome)?.map(|()| (at, bytes)))
    }
    /// The names of all kernels.
    ///
    /// # Errors
    /// `UNSUPPORTED_FEATURE` if the driver cannot list them; else the driver's error.
    pub fn names(&self) -> Result<Vec<CString>> {
        let _on = self.enter()?;
        // SAFETY: the module is loaded.
        let count: u32 = told(|to| unsafe { D::driver().module_count(to, self.raw()) })?;
        let mut all: Vec<Option<RawFunction>> = vec![None; count as usize];
        // SAFETY: the module is loaded, and the list has `count` entries.
        unsafe { D::driver().module_functions(all.as_mut_ptr(), count, self.raw()) }.ok()?;
        all.into_iter().flatten().map(name_of::<D>).collect()
    }
}
fn name_of<D: Dialect>(function: RawFunction) -> Result<CString> {
    let mut name: *const c_char = std::ptr::null();
    // SAFETY: a function of a loaded module.
    unsafe { D::driver().function_name(&raw mut name, function) }.ok()?;
    if name.is_null() {
        return Err(Error::new(ErrorKind::Unknown, "the driver gave no name for a kernel"));
    }
    // SAFETY: a string that lives as long as the module, which is loaded.
    Ok(unsafe { CStr::from_ptr(name) }.to_owned())
}
/// `None` for the status "not found".
fn found<D: Dialect>(outcome: Outcome<D>) -> Result<Option<()>> {
    match outcome.status() {
        Some(NOT_FOUND) => Ok(None),
        _ => outcome.ok().map(Some),
    }
}
/// A kernel of a module; valid while the module is loaded.
#[derive(Clone, Copy, Debug)]
pub struct Function<D: Dialect>(RawFunction, PhantomData<fn() -> D>);
/// Properties of a kernel, numbered alike by both drivers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Fact {
    /// The largest number of work-items in a group.
    MaxItems = 0,
    /// Bytes of local memory that it declares statically.
    Shared = 1,
    /// Bytes of private memory of a work-item.
    Private = 3,
    /// Registers of a work-item.
    Registers = 4,
}
/// The attribute for the largest number of bytes of dynamic local memory.
const MAX_DYNAMIC: i32 = 8;
impl<D: Dialect> Function<D> {
    fn of(raw: RawFunction) -> Self {
        Self(raw, PhantomData)
    }
    /// The driver's handle.
    pub fn raw(self) -> RawFunction {
        self.0
    }
    /// The value of a property.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn fact(self, fact: Fact) -> Result<i32> {
        // SAFETY: a kernel of a loaded module.
        told(|to| unsafe { D::driver().function_attribute(to, fact as i32, self.0) })
    }
    /// Allows up to `bytes` of dynamic local memory.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn allow_dynamic(self, bytes: i32) -> Result<()> {
        // SAFETY: a kernel of a loaded module.
        unsafe { D::driver().function_set(self.0, MAX_DYNAMIC, bytes) }.ok()
    }
    /// Sets the cache preference: 0 none, 1 more local memory, 2 more cache.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn prefer(self, what: i32) -> Result<()> {
        // SAFETY: a kernel of a loaded module.
        unsafe { D::driver().function_cache(self.0, what) }.ok()
    }
    /// The size in bytes of each parameter, in order; `None` if the driver cannot tell.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn parameters(self) -> Result<Option<Vec<u32>>> {
        let mut all = vec![];
        loop {
            let (mut offset, mut bytes) = (0, 0);
            // SAFETY: a kernel of a loaded module; both are writable.
            let outcome = unsafe {
                D::driver().function_parameter(self.0, all.len(), &raw mut offset, &raw mut bytes)
            };
            match outcome.status() {
                None => return Ok(None),
                Some(INVALID) => return Ok(Some(all)),
                _ => outcome.ok()?,
            }
            all.push(bytes as u32);
        }
    }
    /// The number of groups of `items` work-items, with `dynamic` bytes of dynamic local memory each, that
    /// can be resident on a multiprocessor.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn groups(self, items: i32, dynamic: usize) -> Result<i32> {
        // SAFETY: a kernel of a loaded module.
        told(|to| unsafe { D::driver().occupancy_groups(to, self.0, items, dynamic) })
    }
    /// The group size with the best occupancy; `None` if the driver cannot tell.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn best_items(self, dynamic: usize) -> Result<Option<i32>> {
        let (mut groups, mut items) = (0, 0);
        let (to, of) = (&raw mut groups, &raw mut items);
        // SAFETY: a kernel of a loaded module; both are writable.
        let outcome = unsafe { D::driver().occupancy_size(to, of, self.0, None, dynamic, 0) };
        match outcome.status() {
            None => Ok(None),
            _ => outcome.ok().map(|()| Some(items)),
        }
    }
}

/// The kinds of linker input (`CUjitInputType`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Input {
    /// Machine code.
    Cubin = 0,
    /// Assembly text.
    Ptx = 1,
    /// A bundle of several pieces of code.
    Fatbin = 2,
}
/// A linker invocation.
struct Link<D: Dialect>(RawLink, PhantomData<fn() -> D>);
impl<D: Dialect> Drop for Link<D> {
    fn drop(&mut self) {
        // SAFETY: created once and destroyed once, in the context that is still current.
        unsafe { D::driver().link_destroy(self.0) }.let_go();
    }
}
/// Compiles `inputs`, each with its name for the log. If `complete`, links them and returns the machine code;
/// else returns nothing. Always returns the driver's log too. Images end with a NUL; it counts to the length
/// of text only.
///
/// # Errors
/// `UNSUPPORTED_FEATURE` if the driver has no linker; else the driver's error.
pub fn link<D: Dialect>(
    _on: &Entered<D>,
    inputs: &[(Input, Vec<u8>, CString)],
    complete: bool,
    options: Options,
) -> (Result<Vec<u8>>, String) {
    let mut jit = Jit::new(options);
    let joined = join::<D>(&mut jit, inputs, complete);
    (joined, jit.log())
}
fn join<D: Dialect>(
    jit: &mut Jit,
    inputs: &[(Input, Vec<u8>, CString)],
    complete: bool,
) -> Result<Vec<u8>> {
    let (names, values, count) = (jit.names.as_mut_ptr(), jit.values.as_mut_ptr(), jit.count());
    // SAFETY: the lists have `count` entries, and live until the link is destroyed.
    let state = made(|to| unsafe { D::driver().link_create(count, names, values, to) })?;
    let link = Link::<D>(state, PhantomData);
    for (kind, bytes, name) in inputs {
        let (data, n) = (bytes.as_ptr().cast_mut().cast(), bytes.len());
        let (kind, none) = (*kind as i32, null_mut());
        // SAFETY: the image was checked to be complete; the driver reads it and copies what it needs.
        let outcome = unsafe {
            D::driver().link_add(link.0, kind, data, n, name.as_ptr(), 0, null_mut(), none)
        };
        outcome.ok()?;
    }
    if !complete {
        return Ok(vec![]);
    }
    let (mut image, mut bytes) = (null_mut::<c_void>(), 0);
    // SAFETY: both are writable.
    unsafe { D::driver().link_complete(link.0, &raw mut image, &raw mut bytes) }.ok()?;
    if image.is_null() {
        return Err(Error::new(ErrorKind::Unknown, "the driver linked to nothing"));
    }
    // SAFETY: the driver returned the length; the memory is valid until the link is destroyed.
    Ok(unsafe { std::slice::from_raw_parts(image.cast::<u8>(), bytes) }.to_vec())
}
