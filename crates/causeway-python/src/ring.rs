//! One side of a channel's ring, for Python: messages, and what goes with them in this process, so that each of the two steps
//! that must not be parted, putting a message and taking one, is one call. Python runs the handlers of signals between
//! calls, and they may raise; other threads run there, too. How long is waited is left to `causeway_ipc/_channel.py`.
//!
//! A message is the text of a ticket; or `IN_BLOCK` and where an array lies in the channel's memory; or `IN_MEMORY`, of
//! which `message.rs` tells.
#![expect(unsafe_code, reason = "copies the elements of arrays for which other libraries vouch")]
use crate::{
    array::Array,
    asked::seconds,
    body,
    failure::{Failure, Result},
    host,
    leaving::detached,
    loan::Loan,
    ring_memory::{LONGEST, RingMemory, WRITER, in_block},
    share::{self, Export},
    source::{Source, locate},
};
use pyo3::{
    prelude::*,
    types::{PyBytes, PyDict},
};
use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

/// The first byte of a message that names a block; tickets are text.
const IN_BLOCK: u8 = 0;

/// One side of a ring.
#[pyclass(frozen, module = "causeway_ipc._causeway")]
pub struct Ring {
    array: Py<Array>,
    pub memory: Arc<RingMemory>,
    /// The sides that were closed here, which the other process cannot undo.
    closed: AtomicU64,
    /// The exports that messages name, by the numbers of those. Locked for a moment only, and never while Python runs.
    sent: Mutex<VecDeque<(u64, Vec<Py<Export>>)>>,
    /// What was taken and is not returned by `receive` yet, by numbers of messages, in order.
    arrived: Py<PyDict>,
}

/// A small array in a block of a channel's memory: the block is free again when this is dropped, unless it was put.
#[pyclass(frozen, module = "causeway_ipc._causeway")]
pub struct Laid {
    message: Vec<u8>,
    block: Loan,
}

impl Ring {
    fn sent(&self) -> MutexGuard<'_, VecDeque<(u64, Vec<Py<Export>>)>> {
        self.sent.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Takes a message and adds what it named to what has arrived, unless another thread has taken it.
    fn arrive(&self, py: Python<'_>, number: u64, object: Bound<'_, PyAny>) -> PyResult<bool> {
        let arrived = self.arrived.bind(py);
        if self.memory.taken() != number {
            return Ok(false);
        }
        arrived.set_item(number, object)?; // first: where there is no memory for it, the message stays
        let is_taken = self.memory.advance(number);
        if !is_taken {
            arrived.del_item(number)?; // the other process has written what is the reader's
        }
        Ok(is_taken)
    }
}

#[pymethods]
impl Ring {
    /// Bytes of the longest message.
    #[classattr]
    const LONGEST: usize = LONGEST;
    /// Bytes that a ring of so many messages needs.
    #[staticmethod]
    fn size(capacity: usize) -> usize {
        RingMemory::size(capacity)
    }
    /// The ring that fills an array of bytes on the CPU: an empty one for so many messages, or what the writer made there.
    #[new]
    #[pyo3(signature = (array, capacity=None))]
    fn new(array: &Bound<'_, Array>, capacity: Option<usize>) -> Result<Self> {
        let memory = Arc::new(RingMemory::new(array.get(), capacity)?);
        let (array, arrived) = (array.clone().unbind(), PyDict::new(array.py()).unbind());
        Ok(Self { array, memory, closed: AtomicU64::new(0), sent: Mutex::default(), arrived })
    }
    #[getter]
    fn array(&self, py: Python<'_>) -> Py<Array> {
        self.array.clone_ref(py)
    }
    #[getter]
    fn arrived(&self, py: Python<'_>) -> Py<PyDict> {
        self.arrived.clone_ref(py)
    }
    /// Copies a small array of the host into a block; if no block is free, into memory of its own. Other objects are returned
    /// as they are.
    fn lay<'py>(&self, object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.memory.usable()?;
        let py = object.py();
        let (address, layout, _kept) = match locate(object)? {
            Source::Shareable(memory, layout) if memory.session.is_cpu() => {
                memory.session.usable()?;
                (memory.address() + layout.offset, layout, None)
            }
            Source::Host(host) => match host.address() {
                Some(address) => (address, host.layout.clone(), Some(host)),
                None => return Ok(object.clone()),
            },
            _ => return Ok(object.clone()),
        };
        let Some(placed) = in_block(&layout) else { return Ok(object.clone()) };
        let Some((number, to, block)) = self.memory.free_block() else {
            let copy = share::array(object, None, None, false)?;
            return Ok(Bound::new(py, copy)?.into_any());
        };
        // SAFETY: the array's library keeps its elements as long as `object`, or `locate` keeps them; the block is
        // longer than they are, and in nobody's use.
        unsafe { host::gather_to(address, &layout.in_order(), to) };
        let mut message = vec![IN_BLOCK];
        message.extend_from_slice(&number.to_le_bytes());
        body::put_layout(&mut message, &placed);
        Ok(Bound::new(py, Laid { message, block })?.into_any())
    }
    /// Puts a message, or what was laid, if there is room. The exports that it names stay until it is taken.
    #[pyo3(signature = (message, exports=Vec::new()))]
    fn put(
        &self,
        py: Python<'_>,
        message: &Bound<'_, PyAny>,
        exports: Vec<Py<Export>>,
    ) -> PyResult<bool> {
        self.forget(py)?;
        if self.closed.load(Relaxed) & WRITER != 0 {
            return Err(Failure::new("Closed", "this channel was closed: create another").into());
        }
        // From here on nothing of Python runs, so that all of it is done or nothing.
        let laid = message.cast::<Laid>().ok().map(Bound::get);
        let bytes = match laid {
            Some(laid) => &laid.message,
            None => message.extract::<&[u8]>()?,
        };
        let Some(number) = self.memory.put(bytes)? else { return Ok(false) };
        if let Some(laid) = laid {
            laid.block.keep(); // the reader gives it back
        }
        if !exports.is_empty() {
            self.sent().push_back((number, exports));
        }
        Ok(true)
    }
    /// Closes the exports of what was taken.
    fn forget(&self, py: Python<'_>) -> PyResult<()> {
        self.memory.usable()?;
        let taken = self.memory.taken();
        loop {
            // The lock is released before the export is closed.
            let over = self.sent().pop_front_if(|(number, _)| *number < taken);
            let Some((_, exports)) = over else { return Ok(()) };
            exports.iter().for_each(|export| export.get().close(py));
        }
    }
    /// Closes the exports of all messages, also of those that were not taken.
    fn forget_all(&self, py: Python<'_>) {
        let sent = std::mem::take(&mut *self.sent());
        sent.iter().flat_map(|(_, exports)| exports).for_each(|export| export.get().close(py));
    }
    /// The number of the first message that is not returned yet, and its ticket if it is still to be opened. An array in a
    /// block is taken at once.
    fn fetch<'py>(&self, py: Python<'py>) -> PyResult<Option<(u64, Option<Bound<'py, PyBytes>>)>> {
        self.memory.usable()?;
        if let Some((number, _)) = self.arrived.bind(py).iter().next() {
            return Ok(Some((number.extract()?, None)));
        }
        let Some((number, message)) = self.memory.next()? else { return Ok(None) };
        let [IN_BLOCK, message @ ..] = message.as_slice() else {
            return Ok(Some((number, Some(PyBytes::new(py, &message)))));
        };
        let array = match self.memory.lend(message) {
            Ok(array) => Bound::new(py, array)?.into_any(),
            Err(failure) => {
                self.memory.advance(number);
                return Err(failure.into());
            }
        };
        Ok(self.arrive(py, number, array)?.then_some((number, None)))
    }
    /// Takes the message of this number, of which `object` came out; returns whether no other thread was first.
    fn accept(&self, number: u64, object: Bound<'_, PyAny>) -> PyResult<bool> {
        self.memory.usable()?;
        self.arrive(object.py(), number, object)
    }
    /// Takes a message that can never be opened; returns whether no other thread was first.
    fn advance(&self, number: u64) -> Result<bool> {
        self.memory.usable()?;
        Ok(self.memory.advance(number))
    }
    /// Whether every message was taken.
    fn is_empty(&self) -> Result<bool> {
        self.memory.usable()?;
        self.memory.is_empty()
    }
    /// Closes a side.
    fn close(&self, side: u64) -> Result<()> {
        self.memory.usable()?;
        self.closed.fetch_or(side, Relaxed); // of this process alone, and only with the interpreter's lock
        self.memory.close(side);
        Ok(())
    }
    fn is_closed(&self, side: u64) -> Result<bool> {
        self.memory.usable()?;
        Ok(self.closed.load(Relaxed) & side != 0 || self.memory.is_closed(side))
    }
    /// What the other side has done so far, for `wait`.
    fn seen(&self, side: u64) -> Result<u32> {
        self.memory.usable()?;
        Ok(self.memory.seen(side))
    }
    /// Waits until the other side does something more than `seen`, or so many seconds are over, or a signal comes.
    fn wait(&self, py: Python<'_>, side: u64, seen: u32, timeout: f64) -> Result<()> {
        let timeout = seconds(timeout)?;
        self.memory.usable()?;
        detached(py, || self.memory.wait(side, seen, timeout));
        Ok(())
    }
    /// Whether the caller is the first to open the reader's side, who leaves a note for the writer.
    fn claim(&self, note: &[u8]) -> Result<bool> {
        self.memory.claim(note)
    }
    /// The reader's note, if it has left one.
    fn note<'py>(&self, py: Python<'py>) -> Result<Option<Bound<'py, PyBytes>>> {
        self.memory.usable()?;
        Ok(self.memory.note()?.map(|note| PyBytes::new(py, &note)))
    }
}
