//! Events: points in the work of streams, of this process or another.
#![expect(
    unsafe_code,
    reason = "streams are handles of the driver's, which the caller vouches for"
)]
use crate::{
    asked::patience,
    failure::{Failure, Result},
    gate::released,
    session::{OverStream, Session, stay_reachable},
};
use causeway::{Backend, Export, Queue, Status, Ticket};
use pyo3::{exceptions::PyTypeError, prelude::*, types::PyInt};
use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

/// `cudaStreamLegacy`, which libraries mean when no stream is named.
const DEFAULT_STREAM: usize = 1;
/// What is said of an event whose ticket opens no more.
const DEAD: &str = "the process that made this event has ended, or offers it no more: an event lives as long as that process keeps it, so share one that this process makes";
/// How long a wait goes on before it looks for Ctrl-C.
const SLICE: Duration = Duration::from_millis(50);

/// A point in the work of a stream, which other processes can wait for. A wait is for the latest record submitted by
/// then; a fresh event counts as complete.
#[pyclass(frozen, weakref, module = "causeway_ipc")]
pub struct Event {
    session: Arc<Session>,
    event: causeway::Event,
    /// The ticket that it was opened with: it is sent on by that.
    opened: Option<Vec<u8>>,
    /// Held by `record_after_all`.
    in_turn: Mutex<()>,
}

/// What an event stood for at some moment.
#[pyclass(frozen, module = "causeway_ipc._causeway")]
pub struct Pending {
    event: causeway::Event,
}

/// A ticket for an event, and what keeps it open: nothing where another process does.
pub struct EventOffer {
    pub session: Arc<Session>,
    pub ticket: Vec<u8>,
    pub export: Option<Export<causeway::Event>>,
}

impl Event {
    /// Opens an event of another process.
    pub fn open(session: Arc<Session>, ticket: Vec<u8>) -> Result<Self> {
        let event = session.context.open(&Ticket::from_bytes(ticket.as_slice()))?;
        Ok(Self { session, event, opened: Some(ticket), in_turn: Mutex::default() })
    }
    /// Offers it to other processes.
    pub fn offer(&self) -> Result<EventOffer> {
        self.session.usable()?;
        if let Some(ticket) = &self.opened {
            self.session
                .context
                .open(&Ticket::<causeway::Event>::from_bytes(ticket.as_slice()))
                .map_err(|error| {
                    let failure = Failure::from(error);
                    match failure.is_of_a_dead_ticket() {
                        true => failure.said(DEAD),
                        false => failure,
                    }
                })?;
            let session = self.session.clone();
            return Ok(EventOffer { session, ticket: ticket.clone(), export: None });
        }
        stay_reachable()?;
        let export = self.event.share()?;
        let ticket = export.ticket().as_bytes().to_vec();
        Ok(EventOffer { session: self.session.clone(), ticket, export: Some(export) })
    }
    /// The queue over a stream; on the CPU, where libraries have none, the host's own.
    fn queue(&self, stream: Option<&Bound<'_, PyAny>>) -> PyResult<Queue> {
        self.session.usable()?;
        let handle = stream.map(stream_handle).transpose()?;
        match self.session.backend {
            Backend::NativeCpu if handle.is_some() => {
                Err(Failure::misuse("this event is on the CPU, which has no streams").into())
            }
            Backend::Cuda | Backend::Hip => {
                let handle = handle.filter(|&handle| handle != 0).unwrap_or(DEFAULT_STREAM);
                let mut streams =
                    self.session.streams.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(known) = streams.get(&handle) {
                    return Ok(known.queue.clone());
                }
                // SAFETY: the caller names a live stream, as every function that takes a stream demands, and its object is kept;
                // docs/python.md demands more of a stream that is an integer.
                let queue = unsafe { Queue::over_native(&self.session.context, handle) };
                let queue = queue.map_err(Failure::from)?;
                let object = stream.filter(|stream| !stream.is_instance_of::<PyInt>());
                let kept = OverStream {
                    queue: queue.clone(),
                    _stream: object.map(|o| o.clone().unbind()),
                };
                streams.insert(handle, kept);
                Ok(queue)
            }
            _ if handle.is_some() => {
                let sentence =
                    format!("streams of {} cannot be given here yet", self.session.name());
                Err(Failure::new("Unsupported", sentence).into())
            }
            _ => Ok(self.session.queue.clone()),
        }
    }
}

/// The driver's handle of a stream: an integer, or a stream of cuda.core (or anything with `__cuda_stream__`), PyTorch
/// or CuPy.
fn stream_handle(stream: &Bound<'_, PyAny>) -> PyResult<usize> {
    if let Ok(handle) = stream.extract() {
        return Ok(handle);
    }
    if let Some(protocol) = stream.getattr_opt("__cuda_stream__")? {
        let (_, handle): (i32, usize) = protocol.call0()?.extract()?;
        return Ok(handle);
    }
    for name in ["cuda_stream", "ptr"] {
        if let Some(handle) = stream.getattr_opt(name)? {
            return handle.extract();
        }
    }
    Err(PyTypeError::new_err(
        "a stream is an integer, a queue of dpctl, or has __cuda_stream__, cuda_stream or ptr",
    ))
}

/// Whether a stream is a queue of SYCL's (dpctl's). Such has no handle that could be given to a driver here: the host waits.
fn is_of_sycl(stream: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(stream.hasattr("sycl_device")? && stream.hasattr("wait")?)
}
/// Waits until a queue of SYCL's has done everything so far; what is left to order after that: any other stream.
fn after_sycl<'a, 'py>(
    stream: Option<&'a Bound<'py, PyAny>>,
) -> PyResult<Option<&'a Bound<'py, PyAny>>> {
    match stream {
        Some(queue) if is_of_sycl(queue)? => queue.call_method0("wait").map(|_| None),
        stream => Ok(stream),
    }
}

#[pymethods]
impl Event {
    /// An event of a device, which `causeway_ipc.share` offers to other processes.
    #[new]
    #[pyo3(signature = (device=None))]
    fn new(py: Python<'_>, device: Option<&str>) -> PyResult<Self> {
        let made = released(py, || {
            let session = Session::named(device)?;
            let event = session.context.create_shared_event()?;
            Ok::<_, Failure>(Self { session, event, opened: None, in_turn: Mutex::default() })
        });
        Ok(made?)
    }
    /// The name of the device.
    #[getter]
    fn device(&self) -> String {
        self.session.name()
    }
    /// From now on the event stands for everything submitted to `stream` so far; on the CPU, for what the program has
    /// done so far. A queue of SYCL is waited for.
    #[pyo3(signature = (stream=None))]
    fn record(&self, py: Python<'_>, stream: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        let queue = self.queue(after_sycl(stream)?)?;
        let recorded = released(py, || queue.signal(&self.event).and_then(|()| queue.flush()));
        Ok(recorded.map_err(Failure::from)?)
    }
    /// As `record`, and whatever was recorded so before, on other streams, comes first: who waits for the latest record
    /// waits for all of them.
    #[pyo3(name = "_record_after_all", signature = (stream=None))]
    fn record_after_all(&self, py: Python<'_>, stream: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        let queue = self.queue(after_sycl(stream)?)?;
        let recorded = released(py, || {
            // Held over the driver's calls: no other record may come between these two. Also where the last one was on
            // this stream, as far as its number tells: that may be of another by now.
            let _turn = self.in_turn.lock().unwrap_or_else(PoisonError::into_inner);
            queue.wait_for(&[&self.event])?;
            queue.signal(&self.event).and_then(|()| queue.flush())
        });
        Ok(recorded.map_err(Failure::from)?)
    }
    /// What is submitted to `stream` from now on runs after the latest record. On the CPU, and for a queue of SYCL, the call
    /// itself waits. What became of other events that the stream waits for is theirs to tell.
    #[pyo3(signature = (stream=None))]
    fn wait(&self, py: Python<'_>, stream: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        if stream.map(is_of_sycl).transpose()? == Some(true) {
            return self.synchronize(py, Some(60.0));
        }
        let queue = self.queue(stream)?;
        if self.session.is_cpu() {
            return self.synchronize(py, Some(60.0));
        }
        let waited = released(py, || match queue.wait_for(&[&self.event]) {
            // A queue tells once that something it waited for will never come, which may have been another event.
            Err(error) if error.kind() == causeway::ErrorKind::PeerGone => {
                queue.wait_for(&[&self.event])
            }
            waited => waited,
        });
        Ok(waited.map_err(Failure::from)?)
    }
    /// Waits until the latest record is done.
    #[pyo3(signature = (timeout=Some(60.0)))]
    fn synchronize(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<()> {
        let timeout = patience(timeout)?;
        let begun = Instant::now();
        let pending = self.pending(py)?;
        loop {
            let rest = timeout.saturating_sub(begun.elapsed());
            let waited = released(py, || pending.event.wait_timeout(rest.min(SLICE)));
            match waited {
                Err(error) if error.kind() == causeway::ErrorKind::TimedOut => {
                    if rest <= SLICE {
                        return Err(Failure::late(timeout).into());
                    }
                    py.check_signals()?;
                }
                waited => return Ok(waited.map_err(Failure::from)?),
            }
        }
    }
    /// Whether the latest record is done. Never waits.
    fn query(&self) -> PyResult<bool> {
        Ok(self.event.status().map_err(Failure::from)? == Status::Complete)
    }
    /// Waits, in an event loop, until the latest record is done.
    fn __await__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let settled = py.import("causeway_ipc._waiting")?.getattr("settled")?;
        settled.call1((self.pending(py)?,))?.call_method0("__await__")
    }
    fn __reduce_ex__(&self, _protocol: i32) -> PyResult<()> {
        Err(PyTypeError::new_err(
            "an event is not pickled: share it and send the ticket, or call causeway_ipc.multiprocessing.install() first",
        ))
    }
    fn __repr__(&self) -> String {
        format!("Event(device='{}')", self.device())
    }
    /// What the event stands for now: later records leave it alone.
    #[pyo3(name = "_pending")]
    fn pending(&self, py: Python<'_>) -> PyResult<Pending> {
        self.session.usable()?;
        let event = released(py, || self.event.latest()).map_err(Failure::from)?;
        Ok(Pending { event })
    }
}

#[pymethods]
impl Pending {
    /// Whether it is done; raises what it failed with.
    fn done(&self) -> PyResult<bool> {
        match self.event.status().map_err(Failure::from)? {
            Status::Complete => Ok(true),
            Status::Failed => {
                self.event.wait_timeout(Duration::ZERO).map_err(Failure::from)?;
                Ok(true)
            }
            _ => Ok(false),
        }
    }
}
