//! DLPack's structures and capsules, made and read; no other file but `exchange` knows them.
#![expect(unsafe_code, reason = "capsules hold C structures")]
use crate::{dtype::DType, failure::Failure, layout::Layout, memory::Memory};
use pyo3::{exceptions::PyBufferError, ffi, intern, prelude::*, types::PyCapsule, types::PyDict};
use std::{
    ffi::{CStr, c_void},
    ptr::{NonNull, null_mut},
    sync::Arc,
};

const LEGACY: &CStr = c"dltensor";
const VERSIONED: &CStr = c"dltensor_versioned";
/// `DLPACK_FLAG_BITMASK_READ_ONLY`
const READ_ONLY: u64 = 1;
/// `DLPACK_FLAG_BITMASK_IS_COPIED`
const IS_COPIED: u64 = 2;
/// What is written; a reader of any 1.x understands it.
const VERSION: [u32; 2] = [1, 1];

/// `DLTensor`
#[repr(C)]
pub struct Tensor {
    pub data: *mut c_void,
    pub device: [i32; 2],
    pub dimensions: i32,
    pub code: u8,
    pub bits: u8,
    pub lanes: u16,
    pub shape: *mut i64,
    pub strides: *mut i64,
    pub byte_offset: u64,
}
#[repr(C)]
struct Managed {
    tensor: Tensor,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Self)>,
}
/// `DLManagedTensorVersioned`
#[repr(C)]
pub struct ManagedVersioned {
    pub version: [u32; 2],
    context: *mut c_void,
    pub deleter: Option<unsafe extern "C" fn(*mut Self)>,
    flags: u64,
    pub tensor: Tensor,
}

/// A structure for a consumer, first in what it points to and what keeps that.
#[repr(C)]
struct Held<T> {
    managed: T,
    layout: Layout,
    /// The structure's memory is the consumer's as long as this.
    memory: Arc<Memory>,
}

/// Both structures, as far as capsules are concerned.
trait InCapsule: Sized {
    const NAME: &'static CStr;
    fn new(tensor: Tensor, flags: u64) -> Self;
    fn tensor(&mut self) -> &mut Tensor;
    fn deleter(&self) -> Option<unsafe extern "C" fn(*mut Self)>;
}
impl InCapsule for Managed {
    const NAME: &'static CStr = LEGACY;
    fn new(tensor: Tensor, _: u64) -> Self {
        Self { tensor, context: null_mut(), deleter: Some(release::<Self>) }
    }
    fn tensor(&mut self) -> &mut Tensor {
        &mut self.tensor
    }
    fn deleter(&self) -> Option<unsafe extern "C" fn(*mut Self)> {
        self.deleter
    }
}
impl InCapsule for ManagedVersioned {
    const NAME: &'static CStr = VERSIONED;
    fn new(tensor: Tensor, flags: u64) -> Self {
        let (context, deleter) = (null_mut(), Some(release::<Self> as _));
        Self { version: VERSION, context, deleter, flags, tensor }
    }
    fn tensor(&mut self) -> &mut Tensor {
        &mut self.tensor
    }
    fn deleter(&self) -> Option<unsafe extern "C" fn(*mut Self)> {
        self.deleter
    }
}

/// The deleter of what is made here. It may run on any thread, with or without the interpreter: no Python is in it.
unsafe extern "C" fn release<T>(managed: *mut T) {
    // SAFETY: the structure is the first of a `Held` that `capsule` gave away as a box; its one owner calls this once.
    drop(unsafe { Box::from_raw(managed.cast::<Held<T>>()) });
}

/// The destructor of a capsule: deletes what no consumer took, which would have renamed the capsule.
unsafe extern "C" fn unclaimed<T: InCapsule>(capsule: *mut ffi::PyObject) {
    // SAFETY: the interpreter gives the capsule that it destroys.
    if unsafe { ffi::PyCapsule_IsValid(capsule, T::NAME.as_ptr()) } == 0 {
        return;
    }
    // SAFETY: a valid capsule of that name.
    let managed = unsafe { ffi::PyCapsule_GetPointer(capsule, T::NAME.as_ptr()) }.cast::<T>();
    // SAFETY: `capsule` put a live structure there, and nobody has taken it.
    if let Some(deleter) = unsafe { &*managed }.deleter() {
        // SAFETY: its own deleter, once.
        unsafe { deleter(managed) };
    }
}

/// A capsule for an array in `memory`.
pub fn produce<'py>(
    py: Python<'py>,
    memory: Arc<Memory>,
    layout: Layout,
    versioned: bool,
    is_copied: bool,
) -> PyResult<Bound<'py, PyCapsule>> {
    if versioned {
        capsule::<ManagedVersioned>(py, memory, layout, is_copied)
    } else {
        capsule::<Managed>(py, memory, layout, is_copied)
    }
}
fn capsule<T: InCapsule>(
    py: Python<'_>,
    memory: Arc<Memory>,
    layout: Layout,
    is_copied: bool,
) -> PyResult<Bound<'_, PyCapsule>> {
    let pointer = held::<T>(memory, layout, is_copied).cast::<c_void>();
    let destructor: ffi::PyCapsule_Destructor = unclaimed::<T>;
    // SAFETY: the structure lives until its deleter, which the destructor or the consumer calls.
    let made = unsafe {
        PyCapsule::new_with_pointer_and_destructor(py, pointer, T::NAME, Some(destructor))
    };
    made.inspect_err(|_| {
        // SAFETY: leaked above, and nobody has it.
        unsafe { release::<T>(pointer.as_ptr().cast()) };
    })
}
/// A structure for an array in `memory`, the receiver's until it calls the deleter.
pub fn versioned(memory: Arc<Memory>, layout: Layout) -> NonNull<ManagedVersioned> {
    held(memory, layout, false)
}
fn held<T: InCapsule>(memory: Arc<Memory>, layout: Layout, is_copied: bool) -> NonNull<T> {
    let tensor = tensor_of(&memory, &layout);
    let copied = if is_copied { IS_COPIED } else { 0 };
    let flags = copied | if memory.is_writable() { 0 } else { READ_ONLY };
    let mut held = Box::new(Held { managed: T::new(tensor, flags), layout, memory });
    // The lists stay where they are when the box is given away.
    let (shape, strides) = (held.layout.shape.as_mut_ptr(), held.layout.strides.as_mut_ptr());
    let tensor = held.managed.tensor();
    (tensor.shape, tensor.strides) = (shape, strides);
    NonNull::from(Box::leak(held)).cast()
}
/// What DLPack says of an array. Its lists are the layout's, which nobody writes through them.
pub fn tensor_of(memory: &Memory, layout: &Layout) -> Tensor {
    let (kind, ordinal) = memory.session.dlpack();
    Tensor {
        data: (memory.address() + layout.offset) as *mut c_void,
        device: [kind, ordinal],
        dimensions: i32::try_from(layout.shape.len()).unwrap_or(i32::MAX),
        code: layout.dtype.code,
        bits: layout.dtype.bits,
        lanes: 1,
        shape: layout.shape.as_ptr().cast_mut(),
        strides: layout.strides.as_ptr().cast_mut(),
        byte_offset: 0,
    }
}

/// What another library's capsule says.
pub struct Seen {
    pub address: usize,
    pub device: (i32, i32),
    pub layout: Layout,
    /// The memory stands as long as the capsule, which deletes what nobody takes from it.
    pub keep: Py<PyAny>,
}

/// Refuses tensors of PyTorch whose memory others may not have, or which has other values than the tensor shows.
///
/// # Errors
/// `InvalidUse`, which says what to share.
pub fn is_plain(object: &Bound<'_, PyAny>) -> PyResult<()> {
    let py = object.py();
    let is = |name, method: bool| -> PyResult<bool> {
        let Some(asked) = object.getattr_opt(name)? else { return Ok(false) };
        if method { asked.call0()?.is_truthy() } else { asked.is_truthy() }
    };
    let sentence = if is(intern!(py, "requires_grad"), false)? {
        "this tensor requires a gradient, which does not reach into other processes: share tensor.detach()"
    } else if is(intern!(py, "is_conj"), true)? {
        "this tensor shows the conjugates of what is in its memory, which no other library would know: share tensor.resolve_conj()"
    } else if is(intern!(py, "is_neg"), true)? {
        "this tensor shows the negatives of what is in its memory, which no other library would know: share tensor.resolve_neg()"
    } else {
        return Ok(());
    };
    Err(Failure::misuse(sentence).into())
}

/// Looks at an object through its `__dlpack__`, without taking the tensor out of the capsule.
///
/// # Errors
/// `InvalidUse` for what its library does not let others have.
pub fn consume(object: &Bound<'_, PyAny>, on_host: bool) -> PyResult<Seen> {
    is_plain(object)?;
    let py = object.py();
    let options = PyDict::new(py);
    options.set_item("max_version", (1, 0))?;
    if !on_host {
        options.set_item("stream", -1)?; // nothing is read here: whoever opens it orders its own reads
    }
    let method = object.getattr(intern!(py, "__dlpack__"))?;
    let capsule = match method.call((), Some(&options)) {
        Err(error) if error.is_instance_of::<pyo3::exceptions::PyTypeError>(py) => {
            options.del_item("max_version")?; // before DLPack 1.0
            method.call((), Some(&options))
        }
        capsule => capsule,
    };
    let capsule = capsule.map_err(|error| match error.is_instance_of::<PyBufferError>(py) {
        true => {
            let why = error.value(py);
            let sentence = format!("the library of this array does not let others have it ({why}): share a plain, dense copy");
            Failure::misuse(sentence).into()
        }
        false => error,
    })?;
    let capsule = capsule.cast_into::<PyCapsule>()?;
    let named = |name: &CStr| capsule.pointer_checked(Some(name)).ok();
    let tensor = if let Some(managed) = named(VERSIONED) {
        // SAFETY: a capsule of that name holds that structure; every version begins with the same two fields.
        let managed = unsafe { managed.cast::<ManagedVersioned>().as_ref() };
        if managed.version[0] != VERSION[0] {
            let said =
                format!("DLPack {}.{} is not known here", managed.version[0], managed.version[1]);
            return Err(PyBufferError::new_err(said));
        }
        &managed.tensor
    } else if let Some(managed) = named(LEGACY) {
        // SAFETY: a capsule of that name holds that structure.
        &unsafe { managed.cast::<Managed>().as_ref() }.tensor
    } else {
        return Err(PyBufferError::new_err("__dlpack__ gave no capsule of a tensor"));
    };
    // SAFETY: the lists of a tensor in a capsule are alive with it.
    let (address, device, layout) = unsafe { read(tensor) }?;
    Ok(Seen { address, device, layout, keep: capsule.into_any().unbind() })
}

/// Address of the first element, device and layout that a tensor states.
///
/// # Safety
/// Its lists are null, or have as many numbers as it has dimensions.
pub unsafe fn read(tensor: &Tensor) -> PyResult<(usize, (i32, i32), Layout)> {
    let Some(dtype) = DType::of_dlpack(tensor.code, tensor.bits, tensor.lanes) else {
        let said = format!(
            "elements of DLPack's code {} with {} bits and {} lanes cannot be shared",
            tensor.code, tensor.bits, tensor.lanes
        );
        return Err(PyBufferError::new_err(said));
    };
    let dimensions = usize::try_from(tensor.dimensions).unwrap_or(0);
    let list = |at: *mut i64| match at.is_null() || dimensions == 0 {
        true => None,
        // SAFETY: a list of as many numbers as the tensor has dimensions, by the caller's promise.
        false => Some(unsafe { std::slice::from_raw_parts(at, dimensions) }),
    };
    let wrong = || PyBufferError::new_err("a tensor of this shape cannot be shared");
    let shape = list(tensor.shape).unwrap_or_default();
    let mut layout = Layout::contiguous(dtype, shape).ok_or_else(wrong)?;
    if let Some(strides) = list(tensor.strides) {
        layout.strides = strides.into();
    }
    layout.reach().ok_or_else(wrong)?;
    let offset = usize::try_from(tensor.byte_offset).unwrap_or(0);
    Ok((tensor.data as usize + offset, (tensor.device[0], tensor.device[1]), layout))
}
