//! DLPack's exchange table, and those of other libraries, PyTorch's for one: by them their arrays are seen and made here in one
//! call of C. Nothing is ordered on streams. This module's own table is `exchange`'s.
#![expect(unsafe_code, reason = "functions of C, and what they give")]
use crate::{
    dlpack::{self, ManagedVersioned, Tensor, read, versioned},
    failure::Failure,
    gate,
    layout::Layout,
    memory::Memory,
};
use pyo3::{
    ffi, intern,
    prelude::*,
    sync::PyOnceLock,
    types::{PyCapsule, PyType},
};
use std::{
    ffi::{CStr, c_char, c_int, c_void},
    ptr::{NonNull, null_mut},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

/// What a table is called in its capsule.
pub const NAME: &CStr = c"dlpack_exchange_api";
/// The version whose tables are known here.
const MAJOR: u32 = 1;

/// `DLPackExchangeAPI`, as of DLPack 1.3
#[repr(C)]
pub struct Table {
    pub version: [u32; 2],
    pub older: *mut c_void,
    pub allocate: unsafe extern "C" fn(*mut Tensor, Managed, *mut c_void, SetError) -> c_int,
    pub managed_of: unsafe extern "C" fn(Object, Managed) -> c_int,
    pub object_of: unsafe extern "C" fn(*mut ManagedVersioned, *mut Object) -> c_int,
    pub tensor_of: unsafe extern "C" fn(Object, *mut Tensor) -> c_int,
    pub stream_of: unsafe extern "C" fn(c_int, i32, *mut *mut c_void) -> c_int,
}
pub type Object = *mut ffi::PyObject;
pub type Managed = *mut *mut ManagedVersioned;
pub type SetError = Option<unsafe extern "C" fn(*mut c_void, *const c_char, *const c_char)>;

// SAFETY: nothing writes a table.
unsafe impl Sync for Table {}

/// A tensor that the table of another library gave, which keeps its memory.
pub struct Taken(Option<Owned>);
impl Drop for Taken {
    fn drop(&mut self) {
        gate::drop_outside(self.0.take()); // its library may ask for the interpreter
    }
}
struct Owned(NonNull<ManagedVersioned>);
// SAFETY: it is looked at only where it is made; afterwards only its deleter is called, once, which DLPack allows on any thread.
unsafe impl Send for Owned {}
// SAFETY: nothing is done with a shared one.
unsafe impl Sync for Owned {}
impl Drop for Owned {
    fn drop(&mut self) {
        // SAFETY: its owner's structure, alive until the next line.
        if let Some(deleter) = unsafe { self.0.as_ref() }.deleter {
            // SAFETY: its own deleter, once.
            unsafe { deleter(self.0.as_ptr()) };
        }
    }
}

/// What the table of an array's type says of the array: address, device and layout.
pub struct Seen {
    pub address: usize,
    pub device: (i32, i32),
    pub layout: Layout,
    pub keep: Taken,
}

/// The table of a type of arrays, if it has one that is known here.
fn table_of(kind: &Bound<'_, PyType>) -> Option<&'static Table> {
    let capsule = kind.getattr_opt(intern!(kind.py(), "__dlpack_c_exchange_api__")).ok()??;
    let table = capsule.cast::<PyCapsule>().ok()?.pointer_checked(Some(NAME)).ok()?;
    // SAFETY: a capsule of that name holds a table, which lives as long as the process; all versions begin alike.
    let table = unsafe { table.cast::<Table>().as_ref() };
    (table.version[0] == MAJOR).then_some(table)
}

/// An array of a library that has a table, seen in one call of C; `None` where it is to be looked at in another way, which also
/// says what is wrong with an array that cannot be shared.
///
/// # Errors
/// As for [`dlpack::is_plain`].
pub fn see(object: &Bound<'_, PyAny>) -> PyResult<Option<Seen>> {
    let py = object.py();
    let Some(table) = table_of(&object.get_type()) else { return Ok(None) };
    dlpack::is_plain(object)?; // which PyTorch's table does not ask
    Ok(seen_by(py, table, object))
}
fn seen_by(py: Python<'_>, table: &Table, object: &Bound<'_, PyAny>) -> Option<Seen> {
    let mut managed = null_mut();
    // SAFETY: a live object of the type whose table it is, and a place for the structure.
    let failed = unsafe { (table.managed_of)(object.as_ptr(), &raw mut managed) } != 0;
    let owned = NonNull::new(managed).filter(|_| !failed).map(Owned);
    let Some(owned) = owned else {
        drop(PyErr::take(py)); // the other way says why
        return None;
    };
    // SAFETY: the structure that the library gave, which `owned` owns.
    let given = unsafe { owned.0.as_ref() };
    // SAFETY: its lists are as long as it says.
    let (address, device, layout) = unsafe { read(&given.tensor) }.ok()?;
    let keep = Taken(Some(owned));
    (address != 0 || layout.is_empty()).then_some(Seen { address, device, layout, keep })
}

/// The table of PyTorch's tensors.
static TORCH: PyOnceLock<&'static Table> = PyOnceLock::new();
/// Whether PyTorch has made a tensor on a device other than the CPU, for which it starts the device.
static IS_TORCH_STARTED: AtomicBool = AtomicBool::new(false);

/// PyTorch has made a tensor of an array in the usual way.
pub fn torch_made(memory: &Memory) {
    if !memory.session.is_cpu() {
        IS_TORCH_STARTED.store(true, Relaxed); // orders nothing: who does not see it yet goes the usual way
    }
}
/// A tensor of PyTorch over an array, in one call of C; `None` where PyTorch has no table, or its own function has more to do than
/// that.
///
/// # Errors
/// `InvalidUse` for negative strides, for which PyTorch would end the process.
pub fn to_torch<'py>(
    py: Python<'py>,
    memory: &Arc<Memory>,
    layout: &Layout,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    if layout.shape.iter().zip(&layout.strides).any(|(&length, &stride)| length > 1 && stride < 0) {
        let sentence = "PyTorch has no tensors with negative strides: make the tensor of the array as it lies, and flip() that";
        return Err(Failure::misuse(sentence).into());
    }
    let is_plain = memory.is_writable()
        && layout.strides.iter().all(|&stride| stride >= 0)
        && !layout.dtype.name().starts_with("float8")
        && (memory.session.is_cpu() || IS_TORCH_STARTED.load(Relaxed));
    if !is_plain {
        return Ok(None);
    }
    memory.session.usable()?;
    let table = match TORCH.get(py) {
        Some(table) => *table,
        None => {
            let Some(tensor) = py.import("torch")?.getattr_opt("Tensor")? else { return Ok(None) };
            let Some(table) = tensor.cast::<PyType>().ok().and_then(table_of) else {
                return Ok(None);
            };
            *TORCH.get_or_init(py, || table)
        }
    };
    let (given, mut made) = (versioned(Arc::clone(memory), layout.clone()), null_mut());
    // SAFETY: a structure that is PyTorch's from here on, and a place for the object.
    if unsafe { (table.object_of)(given.as_ptr(), &raw mut made) } != 0 {
        return Err(PyErr::fetch(py));
    }
    // SAFETY: a new object, which is owned here.
    unsafe { Bound::from_owned_ptr_or_err(py, made) }.map(Some)
}
