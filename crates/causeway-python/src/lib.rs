//! The Python module `causeway_ipc`: arrays and events that processes share, for NumPy, PyTorch, CuPy and whatever
//! else speaks DLPack or an array interface. What needs speed or owns something is here; the rest, and what users
//! import, is Python in `python/causeway_ipc/`.

mod array;
mod asked;
mod body;
mod clock;
mod dlpack;
mod dtype;
mod event;
mod exchange;
mod failure;
mod gate;
mod host;
mod layout;
mod leaving;
mod linger;
mod loan;
mod memory;
mod message;
mod opening;
mod ring;
mod ring_memory;
mod session;
mod share;
mod source;
mod table;

use pyo3::prelude::*;

#[pymodule]
mod _causeway {
    #[pymodule_export]
    use super::{
        array::Array,
        asked::limit,
        devices, empty, empty_like,
        event::{Event, Pending},
        finish,
        gate::before_fork,
        itemsize,
        message::{PendingOpen, open_message},
        opening::open,
        ring::{Laid, Ring},
        share::{
            Export, array, open_elsewhere, share, share_channel, share_many, standing,
            standing_copy,
        },
        source::is_shareable,
    };
    use super::{exchange, gate};
    use pyo3::{PyTypeInfo, prelude::*};

    #[pymodule_init]
    fn complete(module: &Bound<'_, PyModule>) -> PyResult<()> {
        let py = module.py();
        gate::shut_at_forks();
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        Array::type_object(py).setattr("__dlpack_c_exchange_api__", exchange::capsule(py)?)
    }
}

use crate::{
    array::Array,
    dtype::{DType, no_type},
    failure::{Failure, Result},
    gate::released,
    memory::Memory,
    session::Session,
    source::{Source, locate},
};
use causeway::Policy;

/// An array in shareable memory of a device, contents unspecified.
#[pyfunction]
#[pyo3(signature = (shape, dtype="float32", device=None, *, access=None, read_only=false))]
fn empty(
    py: Python<'_>,
    shape: Vec<i64>,
    dtype: &str,
    device: Option<&str>,
    access: Option<&str>,
    read_only: bool,
) -> PyResult<Array> {
    let policy = share::wanted(access, read_only)?.unwrap_or_default();
    let element = element(dtype)?;
    Ok(released(py, || Array::allocate(&Session::named(device)?, element, &shape, policy))?)
}

/// As [`empty`], with the type and the shape of another array, its dimensions in the same order in memory, on the same device.
#[pyfunction]
fn empty_like(object: &Bound<'_, PyAny>) -> PyResult<Array> {
    let (session, layout) = match locate(object)? {
        Source::Shareable(memory, layout) => (memory.session.clone(), layout),
        Source::Host(host) => (Session::cpu()?, host.layout),
        Source::Device { session, layout, .. } => (session, layout),
    };
    let layout = layout.dense();
    let allocate = || Memory::allocate(&session, layout.bytes(), Policy::default());
    let memory = released(object.py(), allocate)?;
    Ok(Array { memory, layout })
}

fn element(dtype: &str) -> Result<DType> {
    DType::named(dtype).ok_or_else(|| Failure::misuse(no_type(dtype)))
}
/// Bytes of an element.
#[pyfunction]
fn itemsize(dtype: &str) -> Result<usize> {
    Ok(element(dtype)?.size())
}

/// The names of the devices there are, as `device=` takes them, and what each is called by its maker.
#[pyfunction]
fn devices(py: Python<'_>) -> PyResult<Vec<(String, String)>> {
    let found = released(py, || {
        let of = |device: &causeway::Device| -> Result<_> {
            Ok((Session::of(device)?.name(), device.name()?))
        };
        causeway::Device::all()?.iter().map(of).collect::<Result<Vec<_>>>()
    });
    Ok(found?)
}

/// Waits until signals that other processes may wait for are given: they would be lost with this process. The last that is done
/// before the interpreter ends: what is open from now on is closed when it is closed, and other threads do not come back.
#[pyfunction]
fn finish(py: Python<'_>) {
    released(py, || {
        linger::end();
        share::end();
        session::finish_all(std::time::Duration::from_secs(5));
    });
    leaving::end(py);
}
