//! Arrays: memory and a layout in it, spoken of in the protocols by which libraries take each other's arrays.
use crate::{
    dlpack,
    dtype::DType,
    failure::{Failure, Result},
    gate::released,
    layout::Layout,
    memory::Memory,
    session::{DL_CPU, DL_CUDA, Session},
    table,
};
use causeway::{Backend, Policy};
use pyo3::{
    exceptions::{PyAttributeError, PyBufferError, PyIndexError, PyTypeError, PyValueError},
    prelude::*,
    types::{PyBool, PyCapsule, PyDict, PyEllipsis, PySlice, PyTuple},
};
use std::sync::Arc;

/// An array in memory that processes can share. Indexing and slicing give views; the memory is given back with the
/// last array, view or array of another library over it.
#[pyclass(frozen, weakref, module = "causeway_ipc")]
pub struct Array {
    pub memory: Arc<Memory>,
    pub layout: Layout,
}

/// What a helper in Python does with an array.
fn helped<'py>(
    py: Python<'py>,
    name: &str,
    array: &Bound<'py, Array>,
) -> PyResult<Bound<'py, PyAny>> {
    py.import("causeway_ipc._views")?.getattr(name)?.call1((array,))
}

impl Array {
    /// An array of a device, contents unspecified; `policy` says who may open and write it.
    pub fn allocate(
        session: &Arc<Session>,
        dtype: DType,
        shape: &[i64],
        policy: Policy,
    ) -> Result<Self> {
        let layout = Layout::contiguous(dtype, shape).ok_or_else(|| {
            Failure::misuse(format!("an array of shape {shape:?} cannot be: lengths are at least 0, and their bytes can be counted"))
        })?;
        let memory = Memory::allocate(session, layout.bytes(), policy)?;
        Ok(Self { memory, layout })
    }
    /// The array that a ticket says, if it lies in the memory that the ticket opened.
    pub fn checked(memory: Arc<Memory>, layout: Layout) -> Result<Self> {
        match layout.within(memory.len()) {
            Some(_) => Ok(Self { memory, layout }),
            None => Err(Failure::new(
                "InvalidTicket",
                "this ticket describes an array that is not in its memory: it was altered on its way, or made by another version",
            )),
        }
    }
    fn view(&self, layout: Layout) -> Self {
        Self { memory: self.memory.clone(), layout }
    }
    fn address(&self) -> usize {
        self.memory.address() + self.layout.offset
    }
    /// The layout of what a key of `[]` selects.
    fn select(&self, key: &Bound<'_, PyAny>) -> PyResult<Layout> {
        let keys: Vec<Bound<'_, PyAny>> = match key.cast::<PyTuple>() {
            Ok(keys) => keys.iter().collect(),
            Err(_) => vec![key.clone()],
        };
        let is_ellipsis = |key: &Bound<'_, PyAny>| key.is_instance_of::<PyEllipsis>();
        let taken = keys.iter().filter(|key| !key.is_none() && !is_ellipsis(key)).count();
        let Some(rest) = self.layout.shape.len().checked_sub(taken) else {
            let said = format!("{taken} indices for {} dimensions", self.layout.shape.len());
            return Err(PyIndexError::new_err(said));
        };
        if keys.iter().filter(|key| is_ellipsis(key)).count() > 1 {
            return Err(PyIndexError::new_err("an index has one '...' at most"));
        }
        let (mut layout, mut axis) = (self.layout.clone(), 0);
        for key in keys {
            if key.is_none() {
                layout = layout.with_axis(axis);
                axis += 1;
            } else if is_ellipsis(&key) {
                axis += rest;
            } else if let Ok(slice) = key.cast::<PySlice>() {
                let part = slice.indices(layout.shape[axis] as isize)?;
                let (start, step, length) = (part.start, part.step, part.slicelength);
                layout = layout.part(axis, start as i64, step as i64, length as i64);
                axis += 1;
            } else if !key.is_instance_of::<PyBool>()
                && let Ok(index) = key.extract::<i64>()
            {
                layout = layout.at(axis, index).ok_or_else(|| {
                    let length = layout.shape[axis];
                    PyIndexError::new_err(format!("index {index} for {length} elements"))
                })?;
            } else {
                return Err(PyTypeError::new_err(
                    "integers, slices, '...' and None are indices here; numpy.asarray(array), torch or CuPy know the others",
                ));
            }
        }
        Ok(layout)
    }
    /// The dictionary of both array interfaces.
    fn interface<'py>(&self, py: Python<'py>, typestr: &str) -> PyResult<Bound<'py, PyDict>> {
        self.memory.session.usable()?;
        let interface = PyDict::new(py);
        interface.set_item("shape", PyTuple::new(py, &self.layout.shape)?)?;
        interface.set_item("typestr", typestr)?;
        // NumPy takes no null for an address, and the interface of CUDA wants it where there are no elements.
        let is_null = self.layout.is_empty() && !self.memory.session.is_cpu();
        let address = if is_null { 0 } else { self.address() };
        interface.set_item("data", (address, self.is_read_only()))?;
        if self.layout.is_contiguous() {
            interface.set_item("strides", py.None())?;
        } else {
            interface.set_item("strides", PyTuple::new(py, self.layout.byte_strides())?)?;
        }
        interface.set_item("version", 3)?;
        Ok(interface)
    }
    fn typestr(&self) -> PyResult<&'static str> {
        self.layout.dtype.typestr().ok_or_else(|| {
            let name = self.layout.dtype.name();
            PyAttributeError::new_err(format!(
                "the array interfaces have no name for {name}: use DLPack"
            ))
        })
    }
}

#[pymethods]
impl Array {
    /// The length of each dimension.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.layout.shape)
    }
    /// Bytes from one index to the next, of each dimension.
    #[getter]
    fn strides<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.layout.byte_strides())
    }
    /// The name of the elements' type.
    #[getter]
    fn dtype(&self) -> &'static str {
        self.layout.dtype.name()
    }
    #[getter]
    fn ndim(&self) -> usize {
        self.layout.shape.len()
    }
    /// The number of elements.
    #[getter]
    fn size(&self) -> usize {
        self.layout.count()
    }
    /// Bytes of an element.
    #[getter]
    fn itemsize(&self) -> usize {
        self.layout.dtype.size()
    }
    /// Bytes of all elements.
    #[getter]
    fn nbytes(&self) -> usize {
        self.layout.bytes()
    }
    /// The name of the device: `cpu`, `cuda:0`, ….
    #[getter]
    fn device(&self) -> String {
        self.memory.session.name()
    }
    /// The address of the first element, on its device.
    #[getter]
    fn ptr(&self) -> Result<usize> {
        self.memory.session.usable()?;
        Ok(self.address())
    }
    /// Whether this process may only read it, as its maker has said; the kernel ends a process that writes such memory.
    #[getter]
    fn is_read_only(&self) -> bool {
        !self.memory.is_writable()
    }
    #[getter]
    fn is_contiguous(&self) -> bool {
        self.layout.is_contiguous()
    }
    fn __len__(&self) -> PyResult<usize> {
        let first = self.layout.shape.first();
        let first = first
            .ok_or_else(|| PyTypeError::new_err("an array without dimensions has no length"))?;
        Ok(usize::try_from(*first)?)
    }
    fn __iter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        helped(slf.py(), "iterate", slf)
    }
    fn __getitem__(&self, key: &Bound<'_, PyAny>) -> PyResult<Self> {
        Ok(self.view(self.select(key)?))
    }
    fn __setitem__(
        slf: &Bound<'_, Self>,
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        Self::numpy(slf)?.set_item(key, value)
    }
    /// Another view.
    fn __copy__(&self) -> Self {
        self.view(self.layout.clone())
    }
    /// A copy in memory of its own, on the same device.
    fn __deepcopy__(&self, py: Python<'_>, _memo: &Bound<'_, PyAny>) -> PyResult<Self> {
        let (memory, layout) = released(py, || {
            self.memory.copy(&self.layout, &self.memory.session, Policy::default())
        })?;
        Ok(Self { memory, layout })
    }
    fn __reduce_ex__(&self, _protocol: i32) -> PyResult<()> {
        Err(PyTypeError::new_err(
            "an array is not pickled: share it and send the ticket, or call causeway_ipc.multiprocessing.install() first, after which queues, pipes and pools send arrays",
        ))
    }
    fn __repr__(&self) -> String {
        let shape: Vec<String> = self.layout.shape.iter().map(i64::to_string).collect();
        let comma = if shape.len() == 1 { "," } else { "" };
        format!(
            "Array(shape=({}{comma}), dtype='{}', device='{}')",
            shape.join(", "),
            self.dtype(),
            self.device()
        )
    }

    /// The same elements for NumPy, on the CPU.
    fn numpy<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        helped(slf.py(), "numpy", slf)
    }
    /// The same elements for PyTorch.
    fn torch<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        if let Some(tensor) = table::to_torch(slf.py(), &slf.get().memory, &slf.get().layout)? {
            return Ok(tensor);
        }
        let tensor = helped(slf.py(), "torch", slf)?;
        table::torch_made(&slf.get().memory);
        Ok(tensor)
    }
    /// The same elements for CuPy.
    fn cupy<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("cupy")?.call_method1("from_dlpack", (slf,))
    }
    /// The elements as numbers of Python, in lists of lists.
    fn tolist<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Self::numpy(slf)?.call_method0("tolist")
    }
    /// The one element of an array that has no other.
    fn item<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Self::numpy(slf)?.call_method0("item")
    }
    /// The one element of an array that has no other, and so on; of several NumPy says that they are none.
    fn __bool__(slf: &Bound<'_, Self>) -> PyResult<bool> {
        Self::numpy(slf)?.is_truthy()
    }
    fn __int__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Self::numpy(slf)?.call_method0("__int__")
    }
    fn __float__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Self::numpy(slf)?.call_method0("__float__")
    }
    fn __complex__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Self::numpy(slf)?.call_method0("__complex__")
    }
    fn __index__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Self::numpy(slf)?.call_method0("__index__")
    }
    /// The same bytes as a memoryview, of a contiguous array on the CPU.
    fn memoryview<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        helped(slf.py(), "memoryview_of", slf)
    }
    /// For NumPy, where it has no type string of its own for the elements.
    #[pyo3(signature = (dtype=None, copy=None))]
    fn __array__<'py>(
        slf: &Bound<'py, Self>,
        dtype: Option<&Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        // NumPy 2 leaves the copy to this method and trusts it.
        let (py, array) = (slf.py(), Self::numpy(slf)?);
        let dtype = match dtype {
            Some(dtype) => dtype.clone(),
            None => array.getattr("dtype")?,
        };
        if array.getattr("dtype")?.ne(&dtype)? && copy == Some(false) {
            let said = format!(
                "an array of {} is one of {dtype} only as a copy, which copy=False forbids",
                slf.get().dtype()
            );
            return Err(PyValueError::new_err(said));
        }
        let options = PyDict::new(py);
        options.set_item("copy", copy == Some(true))?;
        array.call_method("astype", (dtype,), Some(&options))
    }
    /// The same bits as elements of another type of the same width.
    #[pyo3(name = "_bits")]
    fn bits(&self, dtype: &str) -> Result<Self> {
        let same = DType::named(dtype).filter(|dtype| dtype.bits == self.layout.dtype.bits);
        let dtype = same.ok_or_else(|| Failure::misuse(format!("{dtype} has another width")))?;
        Ok(self.view(Layout { dtype, ..self.layout.clone() }))
    }
    /// The array that lies row after row from a byte of this one's memory on.
    #[pyo3(name = "_at")]
    fn at(&self, offset: usize, dtype: &str, shape: Vec<i64>) -> Result<Self> {
        let wrong =
            || Failure::misuse(format!("an array of {dtype} and shape {shape:?} cannot be"));
        let element = DType::named(dtype).ok_or_else(wrong)?;
        let layout = Layout::contiguous(element, &shape).ok_or_else(wrong)?;
        let layout = Layout { offset: self.layout.offset.saturating_add(offset), ..layout };
        layout.within(self.memory.len()).ok_or_else(wrong)?;
        Ok(self.view(layout))
    }
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.host_interface(py, self.typestr()?)
    }
    /// The array interface under another type string of the same width.
    #[pyo3(name = "_interface")]
    fn host_interface<'py>(&self, py: Python<'py>, typestr: &str) -> PyResult<Bound<'py, PyDict>> {
        if !self.memory.session.is_cpu() {
            let device = self.device();
            return Err(PyAttributeError::new_err(format!(
                "this array is on {device}, where the host cannot read it"
            )));
        }
        self.interface(py, typestr)
    }
    #[getter]
    fn __cuda_array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        if self.memory.session.dlpack().0 != DL_CUDA {
            let device = self.device();
            return Err(PyAttributeError::new_err(format!(
                "this array is on {device}, not on CUDA"
            )));
        }
        self.interface(py, self.typestr()?)
    }
    /// For dpctl and dpnp: in the context that SYCL has for the device.
    #[getter]
    fn __sycl_usm_array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let session = &self.memory.session;
        if session.backend != Backend::LevelZero {
            let said = format!("this array is on {}, not on a device of SYCL", self.device());
            return Err(PyAttributeError::new_err(said));
        }
        let interface = self.interface(py, self.typestr()?)?;
        interface.set_item("strides", PyTuple::new(py, &self.layout.strides)?)?; // in elements
        interface.set_item("version", 1)?;
        interface.set_item("syclobj", format!("level_zero:gpu:{}", session.ordinal))?;
        Ok(interface)
    }
    fn __dlpack_device__(&self) -> (i32, i32) {
        self.memory.session.dlpack()
    }
    /// A capsule for `from_dlpack` of other libraries. Nothing of this module is under way in the memory, so no
    /// stream needs to wait for anything.
    #[pyo3(signature = (*, stream=None, max_version=None, dl_device=None, copy=None))]
    fn __dlpack__<'py>(
        &self,
        py: Python<'py>,
        stream: Option<&Bound<'py, PyAny>>,
        max_version: Option<(u32, u32)>,
        dl_device: Option<(i32, i32)>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        self.memory.session.usable()?;
        let here = self.memory.session.dlpack();
        let to = dl_device.unwrap_or(here);
        if let Some(stream) = stream.and_then(|stream| stream.extract::<i64>().ok()) {
            let allowed = if here.0 == DL_CPU { stream == -1 } else { stream != 0 && stream >= -1 };
            if !allowed {
                let said =
                    format!("stream={stream} is ambiguous, or not for memory of {}", self.device());
                return Err(PyBufferError::new_err(said));
            }
        }
        if to != here && (to.0 != DL_CPU || copy == Some(false)) {
            let said = format!(
                "this array is on {}: without a copy it goes nowhere else, with one to the CPU",
                self.device()
            );
            return Err(PyBufferError::new_err(said));
        }
        let is_copied = to != here || copy == Some(true);
        let (memory, layout) = if is_copied {
            released(py, || {
                let session =
                    if to == here { self.memory.session.clone() } else { Session::cpu()? };
                self.memory.copy(&self.layout, &session, Policy::default())
            })?
        } else {
            (self.memory.clone(), self.layout.clone())
        };
        let versioned = max_version.is_some_and(|(major, _)| major >= 1);
        if !versioned && !memory.is_writable() {
            let said = "this array is for reading only, which DLPack can say from version 1.0 on: ask with max_version=(1, 0), or for a copy";
            return Err(PyBufferError::new_err(said));
        }
        dlpack::produce(py, memory, layout, versioned, is_copied)
    }
}
