//! What can be shared: arrays of any library, by the protocols that they speak; and host arrays placed into memory of
//! a device.
use crate::{
    array::Array,
    dlpack,
    dtype::{DType, unknown},
    failure::{Failure, Result},
    gate::released,
    host,
    layout::Layout,
    memory::Memory,
    session::{DL_CPU, DL_CUDA, DL_CUDA_HOST, Session},
    table,
};
use pyo3::{
    intern,
    prelude::*,
    types::{PyBytes, PyDict, PyTuple},
};
use std::sync::Arc;

/// Where an array is.
pub enum Source {
    /// In memory of this module.
    Shareable(Arc<Memory>, Layout),
    /// In the host's memory, from where it is copied.
    Host(HostArray),
    /// In memory of a device that another library allocated: `bytes` from `address` on, and the layout in them.
    Device { session: Arc<Session>, address: usize, bytes: usize, layout: Layout, keep: Keep },
}
/// What keeps an array's memory.
pub enum Keep {
    Object(#[expect(dead_code, reason = "kept alive")] Py<PyAny>),
    Tensor(#[expect(dead_code, reason = "kept alive")] table::Taken),
}

/// An array in the host's memory.
pub struct HostArray {
    pub layout: Layout,
    from: HostMemory,
}
enum HostMemory {
    /// Of the first element.
    At(usize, #[expect(dead_code, reason = "kept alive")] Keep),
    Bytes(Py<PyBytes>),
}
impl HostArray {
    /// Where the first element is, unless the array was copied when it was seen.
    pub fn address(&self) -> Option<usize> {
        match self.from {
            HostMemory::At(address, _) => Some(address),
            HostMemory::Bytes(_) => None,
        }
    }
    /// Copies the elements, in the order in which they lie, to memory from the byte `at` on, where there is room for them.
    #[expect(unsafe_code, reason = "reads memory that another library vouches for")]
    pub fn copy_to(&self, py: Python<'_>, memory: &Memory, at: usize) -> Result<()> {
        let (address, layout) = match &self.from {
            HostMemory::Bytes(bytes) => return memory.write(at, bytes.as_bytes(py)),
            HostMemory::At(address, _) => (*address, &self.layout),
        };
        let in_order = layout.in_order();
        released(py, || match memory.on_host(at, layout.bytes()) {
            Some(to) => {
                // SAFETY: the library that gave address and layout keeps the memory as long as the object is kept; the
                // other side has room, in memory that nobody else knows.
                unsafe { host::gather_to(address, &in_order, to) };
                Ok(())
            }
            None => {
                let mut next = at;
                let take = |piece: &[u8]| {
                    memory.write(next, piece)?;
                    next += piece.len();
                    Ok(())
                };
                // SAFETY: as above.
                unsafe { host::gather(address, &in_order, take) }
            }
        })
    }
    /// What [`copy_to`](Self::copy_to) makes of the array from `offset` on.
    pub fn placed(&self, offset: usize) -> Layout {
        Layout { offset, ..self.layout.dense() }
    }
}

/// Finds out where an array is.
pub fn locate(object: &Bound<'_, PyAny>) -> PyResult<Source> {
    if let Ok(array) = object.cast::<Array>() {
        let array = array.get();
        return Ok(Source::Shareable(array.memory.clone(), array.layout.clone()));
    }
    if let Some(table::Seen { address, device, layout, keep }) = table::see(object)? {
        let keep = Keep::Tensor(keep);
        return match [DL_CPU, DL_CUDA_HOST].contains(&device.0) {
            true => on_host(address, layout, keep),
            false => on_device(|| Session::of_dlpack(device.0, device.1), address, layout, keep),
        };
    }
    if let Some((bits, dtype)) = torch_bits(object)? {
        let mut source = locate(&bits)?;
        match &mut source {
            Source::Shareable(_, layout) | Source::Device { layout, .. } => layout.dtype = dtype,
            Source::Host(host) => host.layout.dtype = dtype,
        }
        return Ok(source);
    }
    let keep = Keep::Object(object.clone().unbind());
    if let Some(interface) = object.getattr_opt(intern!(object.py(), "__cuda_array_interface__"))? {
        let (address, layout) =
            interface_of(object, &interface.cast_into::<PyDict>()?, Unit::Byte)?;
        let device = match object.getattr_opt(intern!(object.py(), "__dlpack_device__"))? {
            Some(device) => device.call0()?.extract()?,
            None => (DL_CUDA, 0),
        };
        let session = || Session::of_dlpack(device.0, device.1);
        return on_device(session, address, layout, keep);
    }
    if let Some(interface) =
        object.getattr_opt(intern!(object.py(), "__sycl_usm_array_interface__"))?
    {
        let interface = interface.cast_into::<PyDict>()?;
        let (address, layout) = interface_of(object, &interface, Unit::Element)?;
        let views = object.py().import("causeway_ipc._views")?;
        let device: String = views.call_method1("sycl_device", (object, &interface))?.extract()?;
        return match device.as_str() {
            "cpu" => on_host(address, layout, keep),
            name => {
                let session = || Session::named(Some(name));
                on_device(session, address, layout, keep)
            }
        };
    }
    if let Some(interface) = object.getattr_opt(intern!(object.py(), "__array_interface__"))? {
        if object.hasattr(intern!(object.py(), "_mask"))? {
            return Err(Failure::misuse(
                "a masked array is two arrays: share its .data and numpy.ma.getmaskarray(array)",
            )
            .into());
        }
        let interface = interface.cast_into::<PyDict>()?;
        if interface.get_item("data")?.is_some_and(|data| !data.is_instance_of::<PyTuple>()) {
            // A buffer, as of Pillow's images, or None where the object is one: NumPy knows how elements lie in it.
            let array = object.py().import("numpy")?.call_method1("asarray", (object,))?;
            return locate(&array);
        }
        let (address, layout) = interface_of(object, &interface, Unit::Byte)?;
        return on_host(address, layout, keep);
    }
    if object.hasattr("__dlpack__")? {
        let (kind, _): (i32, i32) = object.call_method0("__dlpack_device__")?.extract()?;
        let is_host = [DL_CPU, DL_CUDA_HOST].contains(&kind);
        let seen = dlpack::consume(object, is_host)?;
        return match is_host {
            true => on_host(seen.address, seen.layout, Keep::Object(seen.keep)),
            false => {
                let session = || Session::of_dlpack(seen.device.0, seen.device.1);
                on_device(session, seen.address, seen.layout, Keep::Object(seen.keep))
            }
        };
    }
    let views = object.py().import("causeway_ipc._views")?;
    let (bytes, dtype, mut shape, is_reversed): (Py<PyBytes>, String, Vec<i64>, bool) =
        views.call_method1("describe", (object,))?.extract()?;
    if is_reversed {
        shape.reverse();
    }
    let layout = DType::named(&dtype).and_then(|dtype| Layout::contiguous(dtype, &shape));
    let mut layout = layout
        .ok_or_else(|| Failure::misuse(format!("elements of type {dtype} cannot be shared")))?;
    if is_reversed {
        layout.shape.reverse();
        layout.strides.reverse();
    }
    Ok(Source::Host(HostArray { layout, from: HostMemory::Bytes(bytes) }))
}

/// A tensor of PyTorch whose type its interfaces do not know, as plain bits, and the type: DLPack has no float8 yet, and
/// the interface of CUDA's arrays no bfloat16.
fn torch_bits<'py>(object: &Bound<'py, PyAny>) -> PyResult<Option<(Bound<'py, PyAny>, DType)>> {
    let py = object.py();
    // Before the type's name, which NumPy takes microseconds to write.
    let Some(is_cuda) = object.getattr_opt(intern!(py, "is_cuda"))? else { return Ok(None) };
    let Some(dtype) = object.getattr_opt(intern!(py, "dtype"))? else { return Ok(None) };
    let name = dtype.str()?.to_string();
    let Some(name) = name.strip_prefix("torch.") else { return Ok(None) };
    let bits = match name {
        "bfloat16" if is_cuda.is_truthy()? => "int16",
        _ if name.starts_with("float8") => "uint8",
        _ => return Ok(None),
    };
    let Some(dtype) = DType::named(name) else { return Ok(None) };
    let bits = py.import("torch")?.getattr(bits)?;
    Ok(Some((object.call_method1("view", (bits,))?, dtype)))
}

/// Whether an array lies in memory of this module, and is shared in place.
///
/// # Errors
/// As for [`locate`], and for an array whose elements lie where such elements may not be.
#[pyfunction]
pub fn is_shareable(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    let Source::Shareable(memory, layout) = locate(object)? else { return Ok(false) };
    memory.range_of(&layout)?;
    Ok(true)
}

/// The bytes from the lowest on that an array reaches, and the array in them.
fn lowest(address: usize, layout: &Layout) -> (usize, usize, Layout) {
    let (low, high) = layout.reach().unwrap_or((0, 0)); // counted when it was seen
    let start = address.wrapping_add_signed(low as isize);
    let offset = low.unsigned_abs() as usize;
    (start, (high - low) as usize, Layout { offset, ..layout.clone() })
}
fn on_host(address: usize, layout: Layout, keep: Keep) -> PyResult<Source> {
    let (start, bytes, within) = lowest(address, &layout);
    is_somewhere(address, bytes)?;
    Ok(match Memory::find(start, bytes) {
        Some(memory) if bytes > 0 => {
            let offset = within.offset + (start - memory.address());
            let layout = Layout { offset, ..within };
            Source::Shareable(memory, layout)
        }
        _ => Source::Host(HostArray { layout, from: HostMemory::At(address, keep) }),
    })
}
/// Refuses arrays that have elements and no memory: tensors that stand for others while a program is compiled, for one.
fn is_somewhere(address: usize, bytes: usize) -> Result<()> {
    if address != 0 || bytes == 0 {
        return Ok(());
    }
    Err(Failure::misuse(
        "this array has elements and no memory: its library says that they are at address 0",
    ))
}
fn on_device(
    session: impl FnOnce() -> Result<Arc<Session>>,
    address: usize,
    layout: Layout,
    keep: Keep,
) -> PyResult<Source> {
    let (start, bytes, layout) = lowest(address, &layout);
    is_somewhere(address, bytes)?;
    let address = start;
    if bytes == 0 {
        return Err(Failure::misuse("an array without elements has no memory to share").into());
    }
    if let Some(memory) = Memory::find(address, bytes) {
        let offset = layout.offset + (address - memory.address());
        return Ok(Source::Shareable(memory, Layout { offset, ..layout }));
    }
    Ok(Source::Device { session: session()?, address, bytes, layout, keep })
}

/// What an array interface counts strides in: SYCL's in elements, the others in bytes.
#[derive(Clone, Copy, PartialEq)]
enum Unit {
    Byte,
    Element,
}

/// Address and layout that an array interface states.
fn interface_of(
    object: &Bound<'_, PyAny>,
    interface: &Bound<'_, PyDict>,
    unit: Unit,
) -> PyResult<(usize, Layout)> {
    let stated = |key: &str| {
        let missing =
            || Failure::misuse(format!("this array's interface does not state its {key}"));
        PyResult::Ok(interface.get_item(key)?.ok_or_else(missing)?)
    };
    let mut typestr: String = stated("typestr")?.extract()?;
    if unit == Unit::Element && DType::with_typestr(&typestr).is_none() {
        typestr = typestr.replacen('|', "<", 1); // dpctl says so of this machine's byte order
    }
    let dtype = match DType::with_typestr(&typestr) {
        Some(dtype) => dtype,
        // Types of ml_dtypes are bytes to NumPy; their own names say what they are.
        None => {
            let name = object.getattr("dtype").and_then(|dtype| dtype.getattr("name"));
            let name = name.and_then(|name| name.extract::<String>()).unwrap_or_default();
            let named = DType::named(&name).filter(|_| !typestr.starts_with('>'));
            named.ok_or_else(|| Failure::misuse(unknown(&typestr, &name)))?
        }
    };
    let shape: Vec<i64> = stated("shape")?.extract()?;
    let wrong = || Failure::misuse(format!("an array of shape {shape:?} cannot be shared"));
    let mut layout = Layout::contiguous(dtype, &shape).ok_or_else(wrong)?;
    let strides: Option<Vec<i64>> = match interface.get_item("strides")? {
        Some(strides) => strides.extract()?,
        None => None,
    };
    let size = match unit {
        Unit::Byte => dtype.size() as i64,
        Unit::Element => 1,
    };
    if let Some(strides) = strides.filter(|strides| strides.len() == shape.len()) {
        if strides.iter().any(|stride| stride % size != 0) {
            return Err(Failure::misuse("strides that are no whole number of elements cannot be shared: copy the array first").into());
        }
        layout.strides = strides.iter().map(|stride| stride / size).collect();
    }
    layout.reach().ok_or_else(wrong)?;
    let (address, _): (usize, bool) = stated("data")?.extract()?;
    let offset: i64 = match interface.get_item("offset")? {
        Some(offset) if unit == Unit::Element => offset.extract()?,
        _ => 0,
    };
    let offset = offset.checked_mul(dtype.size() as i64).ok_or_else(wrong)?;
    Ok((address.wrapping_add_signed(offset as isize), layout))
}
