//! Opening: what comes out of a ticket.
use crate::{
    array::Array,
    asked::{no_text, patience},
    body::{Body, Contents},
    event::Event,
    failure::{Failure, Result},
    gate::released,
    layout::Layout,
    leaving::detached,
    memory::Memory,
    session::Session,
    share::{Export, WORD, ticket_of},
};
use causeway::{Buffer, Ticket, text};
use pyo3::{
    prelude::*,
    types::{PyDict, PyString},
};
use std::{
    thread,
    time::{Duration, Instant},
};

/// How long to pause before an exporter that was busy is asked again.
const PAUSE: Duration = Duration::from_millis(5);

/// Opens what a ticket names: an array, a dictionary of arrays, an event, or the reading side of a channel.
#[pyfunction]
#[pyo3(signature = (ticket, *, device=None, timeout=Some(10.0)))]
pub fn open<'py>(
    py: Python<'py>,
    ticket: &Bound<'py, PyAny>,
    device: Option<&str>,
    timeout: Option<f64>,
) -> PyResult<Bound<'py, PyAny>> {
    let timeout = patience(timeout)?;
    let ticket = match ticket.cast::<Export>() {
        Ok(export) => Given::Body(export.get().body()),
        Err(_) if ticket.is_instance_of::<PyString>() => {
            Given::Text(ticket.extract().map_err(|_| Failure::damaged())?) // half of a surrogate pair is no character
        }
        Err(_) => return Err(no_text("a ticket is text", ticket)),
    };
    let begun = Instant::now();
    let opened = loop {
        match released(py, || Opened::new(&ticket, device)) {
            Err(failure) if failure.is_transient && begun.elapsed() < timeout => {
                py.check_signals()?;
                detached(py, || thread::sleep(PAUSE));
            }
            opened => break opened?,
        }
    };
    opened.into_object(py)
}

/// A ticket as it was given.
pub enum Given<'a> {
    Text(&'a str),
    Body(Body<'a>),
}
/// What came out of a ticket.
pub enum Opened {
    Array(Array),
    Arrays(Vec<(String, Array)>),
    Event(Event),
    /// With a ticket of the memory alone, which opens as long as the writer lives.
    Channel(Array, Option<Event>, String),
}
impl Opened {
    pub fn new(ticket: &Given<'_>, device: Option<&str>) -> Result<Self> {
        let text = match ticket {
            Given::Text(text) => text,
            Given::Body(body) => return Self::of(body.clone(), device),
        };
        let kind = text.trim().split('-').nth(1).unwrap_or_default();
        if kind.eq_ignore_ascii_case("mem") {
            return Self::bytes(text, device);
        }
        let bytes = text::decode(WORD, text)?;
        Self::of(Body::decode(&bytes).ok_or_else(Failure::damaged)?, device)
    }
    fn of(body: Body<'_>, device: Option<&str>) -> Result<Self> {
        let session = match device {
            Some(_) => Session::named(device)?,
            None => Session::for_ticket(body.backend, body.uuid)?,
        };
        let is_for_same_user = body.is_for_same_user;
        match body.contents.into_owned() {
            Contents::Array(ticket, layout) => {
                let memory = Memory::open(&session, Ticket::from_bytes(ticket), is_for_same_user)?;
                Ok(Self::Array(Array::checked(memory, layout)?))
            }
            Contents::Arrays(tickets, arrays) => {
                let tickets = tickets.into_iter().map(Ticket::from_bytes).collect();
                let memories = Memory::open_all(&session, tickets, is_for_same_user)?;
                let array = |(name, at, layout): (String, usize, Layout)| {
                    Ok((name, Array::checked(memories[at].clone(), layout)?))
                };
                Ok(Self::Arrays(arrays.into_iter().map(array).collect::<Result<_>>()?))
            }
            Contents::Event(ticket) => Ok(Self::Event(Event::open(session, ticket)?)),
            Contents::Channel(ticket, layout, event) => {
                let cpu = Session::cpu()?;
                let whole = Ticket::from_bytes(ticket.as_slice());
                let memory = Memory::open(&cpu, whole, is_for_same_user)?;
                let memory = Array::checked(memory, layout.clone())?;
                let life = ticket_of(&cpu, is_for_same_user, Contents::Array(ticket, layout));
                let event = event.map(|ticket| Event::open(session, ticket)).transpose()?;
                Ok(Self::Channel(memory, event, life))
            }
        }
    }
    /// What Python sees of it.
    pub fn into_object(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        match self {
            Self::Array(array) => Ok(Bound::new(py, array)?.into_any()),
            Self::Event(event) => Ok(Bound::new(py, event)?.into_any()),
            Self::Arrays(arrays) => {
                let opened = PyDict::new(py);
                for (name, array) in arrays {
                    opened.set_item(name, array)?;
                }
                Ok(opened.into_any())
            }
            Self::Channel(memory, event, life) => {
                let opened = py.import("causeway_ipc._channel")?.getattr("Receiver")?;
                opened.call1((memory, event, life))
            }
        }
    }
    /// Memory that a program in Rust, or the `causeway` command, has shared: bytes.
    fn bytes(text: &str, device: Option<&str>) -> Result<Self> {
        let ticket: Ticket<Buffer<u8>> = text.parse()?;
        // Such a ticket does not say who may open it.
        let memory = Memory::open(&Session::named(device)?, ticket, false)?;
        let length = i64::try_from(memory.len()).unwrap_or(i64::MAX);
        let dtype = crate::dtype::DType { code: 1, bits: 8 };
        let layout = Layout::contiguous(dtype, &[length]).ok_or_else(Failure::damaged)?;
        Ok(Self::Array(Array::checked(memory, layout)?))
    }
}
