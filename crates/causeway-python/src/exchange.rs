//! DLPack's exchange table (1.2 and later): functions of C by which libraries take arrays of this module without a call of
//! Python, as cuda.core and tvm-ffi do. None of them orders anything on streams.
#![expect(unsafe_code, reason = "functions that C calls")]
use crate::{
    array::Array,
    dlpack::{ManagedVersioned, Tensor, read, tensor_of, versioned},
    failure::Failure,
    layout::Layout,
    memory::Memory,
    session::Session,
    table::{Managed, NAME, Object, SetError, Table},
};
use causeway::Policy;
use pyo3::{exceptions::PyBufferError, prelude::*, types::PyCapsule};
use std::{
    ffi::{CString, c_int, c_void},
    panic::{AssertUnwindSafe, catch_unwind},
    ptr::{NonNull, null_mut},
};

static TABLE: Table = Table {
    version: [1, 3],
    older: null_mut(),
    allocate,
    managed_of,
    object_of,
    tensor_of: fill,
    stream_of,
};

/// What the type of arrays has as `__dlpack_c_exchange_api__`.
pub fn capsule(py: Python<'_>) -> PyResult<Bound<'_, PyCapsule>> {
    let table = NonNull::from(&TABLE).cast::<c_void>();
    // SAFETY: the table is static, so that no destructor is needed.
    unsafe { PyCapsule::new_with_pointer(py, table, NAME) }
}

/// Runs with the interpreter: 0, or -1 with a Python exception.
fn entered(act: impl FnOnce(Python<'_>) -> PyResult<()>) -> c_int {
    Python::attach(|py| {
        let done = catch_unwind(AssertUnwindSafe(|| act(py)));
        let done = done.unwrap_or_else(|_| Err(PyBufferError::new_err("a fault in causeway_ipc")));
        match done {
            Ok(()) => 0,
            Err(error) => {
                error.restore(py);
                -1
            }
        }
    })
}

/// A new array as the prototype says.
unsafe extern "C" fn allocate(
    prototype: *mut Tensor,
    out: Managed,
    context: *mut c_void,
    set_error: SetError,
) -> c_int {
    let made = catch_unwind(|| {
        // SAFETY: the caller's prototype, of which only these fields need be filled in.
        let wanted = unsafe { &*prototype };
        let plain = Tensor { strides: null_mut(), data: null_mut(), byte_offset: 0, ..*wanted };
        // SAFETY: the shape is as long as the prototype says.
        let (_, device, layout) = unsafe { read(&plain) }.map_err(|error| error.to_string())?;
        let allocated = || {
            let session = Session::of_dlpack(device.0, device.1)?;
            Array::allocate(&session, layout.dtype, &layout.shape, Policy::default())
        };
        let array = allocated().map_err(|failure: Failure| failure.to_string())?;
        Ok::<_, String>(versioned(array.memory, array.layout))
    });
    let why = match made {
        Ok(Ok(made)) => {
            // SAFETY: where the caller wants it.
            unsafe { *out = made.as_ptr() };
            return 0;
        }
        Ok(Err(why)) => why,
        Err(_) => "a fault in causeway_ipc".into(),
    };
    let why = CString::new(why).unwrap_or_default();
    if let Some(set_error) = set_error {
        // SAFETY: the caller's function with its own context, and two strings that live until it returns.
        unsafe { set_error(context, c"BufferError".as_ptr(), why.as_ptr()) };
    }
    -1
}

/// An array as a structure that its receiver owns.
unsafe extern "C" fn managed_of(object: Object, out: Managed) -> c_int {
    entered(|py| {
        // SAFETY: the caller lends a live object.
        let object = unsafe { Bound::from_borrowed_ptr(py, object) };
        let array = object.cast::<Array>()?.get();
        array.memory.session.usable()?;
        // SAFETY: where the caller wants it.
        unsafe { *out = versioned(array.memory.clone(), array.layout.clone()).as_ptr() };
        Ok(())
    })
}

/// An array of this module over memory of this module, as `allocate` gives; the structure is the caller's until then.
unsafe extern "C" fn object_of(managed: *mut ManagedVersioned, out: *mut Object) -> c_int {
    entered(|py| {
        // SAFETY: the caller's, whole.
        let given = unsafe { &*managed };
        // SAFETY: its lists live as long as the structure.
        let (address, _, layout) = unsafe { read(&given.tensor) }?;
        let array = over(address, layout)?;
        // SAFETY: where the caller wants it.
        unsafe { *out = Py::new(py, array)?.into_ptr() };
        if let Some(deleter) = given.deleter {
            // SAFETY: the structure is owned here from now on, and this is its own deleter, once. The array keeps the memory.
            unsafe { deleter(managed) };
        }
        Ok(())
    })
}
fn over(address: usize, layout: Layout) -> PyResult<Array> {
    let foreign = || {
        PyBufferError::new_err(
            "this memory is another library's: causeway_ipc.share(array) shares it where it is",
        )
    };
    let (low, high) = layout.reach().unwrap_or((0, 0)); // counted when it was read
    let start = address.wrapping_add_signed(low as isize);
    let memory = Memory::find(start, (high - low) as usize).ok_or_else(foreign)?;
    let offset = address.wrapping_sub(memory.address());
    Ok(Array::checked(memory, Layout { offset, ..layout })?)
}

/// Address and lists of an array, for as long as the array lives.
unsafe extern "C" fn fill(object: Object, out: *mut Tensor) -> c_int {
    entered(|py| {
        // SAFETY: the caller lends a live object.
        let object = unsafe { Bound::from_borrowed_ptr(py, object) };
        let array = object.cast::<Array>()?.get();
        array.memory.session.usable()?;
        if !array.memory.is_writable() {
            let said = "this array is for reading only, which a DLTensor cannot say: take it as a managed tensor";
            return Err(PyBufferError::new_err(said));
        }
        // SAFETY: room for a tensor, uninitialised, which nothing is dropped in.
        unsafe { out.write(tensor_of(&array.memory, &array.layout)) };
        Ok(())
    })
}

/// Nothing of this module is under way: any stream will do, and null is the default one.
unsafe extern "C" fn stream_of(_: c_int, _: i32, out: *mut *mut c_void) -> c_int {
    // SAFETY: where the caller wants it.
    unsafe { *out = null_mut() };
    0
}
