//! Opening what a message of a channel names. That may be the text of a ticket; or `IN_MEMORY` and the ticket of an array in
//! which the text is, where it is longer than a message.
use crate::{
    failure::{Failure, Result},
    gate::{entered, released},
    leaving::detached,
    opening::{Given, Opened},
    ring::Ring,
};
use pyo3::prelude::*;
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

/// The first byte of a message whose ticket is in memory of its own; tickets are text.
const IN_MEMORY: u8 = 1;
/// Bytes of the longest ticket that is read there.
const LONGEST: usize = 256 << 20;
/// How long a new thread is waited for: an exporter that is not stopped answers by then, mostly.
const SOON: Duration = Duration::from_millis(1);

fn open_text(bytes: &[u8]) -> Result<Opened> {
    Opened::new(&Given::Text(&String::from_utf8_lossy(bytes)), None)
}
/// Asks the exporter once, who has two seconds to answer.
fn open_once(message: &[u8]) -> Result<Opened> {
    let [IN_MEMORY, ticket @ ..] = message else { return open_text(message) };
    let Opened::Array(array) = open_text(ticket)? else {
        return Err(Failure::damaged());
    };
    let range = array.layout.within(array.memory.len()).ok_or_else(Failure::damaged)?;
    if range.len() > LONGEST {
        return Err(Failure::damaged());
    }
    let mut bytes = vec![0; range.len()];
    array.memory.read(range.start, &mut bytes)?;
    open_text(&bytes)
}

/// Opens what a message names. An exporter that does not answer within two seconds is `Busy`.
#[pyfunction]
pub fn open_message<'py>(py: Python<'py>, message: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    let message = message.to_vec();
    released(py, || open_once(&message))?.into_object(py)
}

/// The same on a thread of its own, for callers who cannot wait so long.
#[pyclass(frozen, module = "causeway_ipc._causeway")]
pub struct PendingOpen(Arc<Shared>);
#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    done: Condvar,
}
#[derive(Default)]
enum State {
    #[default]
    Pending,
    Opened(Opened),
    /// What Python was given. No exception is kept, which would keep the frames that it went through, and they this.
    Given(Py<PyAny>),
    Failed(Failure),
    Panicked,
}
impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl PendingOpen {
    /// Who waits on this side of the ring is woken when it is done.
    #[new]
    fn new(py: Python<'_>, message: &[u8], ring: &Bound<'_, Ring>, side: u64) -> Result<Self> {
        let (message, memory) = (message.to_vec(), ring.get().memory.clone());
        let shared = Arc::new(Shared::default());
        let ours = shared.clone();
        let work = move || {
            let opened = catch_unwind(AssertUnwindSafe(|| entered(|| open_once(&message))));
            *ours.state() = match opened {
                Ok(Ok(opened)) => State::Opened(opened),
                Ok(Err(failure)) => State::Failed(failure),
                Err(_) => State::Panicked, // its message was printed
            };
            ours.done.notify_all();
            memory.tell(side);
        };
        let named = thread::Builder::new().name("causeway_ipc open".into());
        named.spawn(work).map_err(|error| {
            Failure::new("LimitReached", format!("no thread could be started: {error}"))
        })?;
        detached(py, || {
            let is_pending = |state: &mut State| matches!(state, State::Pending);
            drop(shared.done.wait_timeout_while(shared.state(), SOON, is_pending));
        });
        Ok(Self(shared))
    }
    fn done(&self) -> bool {
        !matches!(*self.0.state(), State::Pending)
    }
    /// What was opened, or why that failed; the same each time.
    fn result(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let state = std::mem::take(&mut *self.0.state()); // not locked while Python runs
        let (state, given) = match state {
            State::Pending => (State::Pending, Err(another_thread().into())),
            State::Opened(opened) => {
                let object = opened.into_object(py)?.unbind();
                (State::Given(object.clone_ref(py)), Ok(object))
            }
            State::Given(object) => (State::Given(object.clone_ref(py)), Ok(object)),
            State::Failed(failure) => (State::Failed(failure.clone()), Err(failure.into())),
            State::Panicked => panic!("the thread that opened a ticket has panicked"),
        };
        *self.0.state() = state;
        given
    }
}
/// It is given to Python at this moment.
fn another_thread() -> Failure {
    let mut failure = Failure::new("Busy", "another thread is given what was opened: try again");
    failure.is_transient = true;
    failure
}
