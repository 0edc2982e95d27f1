//! Sharing and opening: exports with their tickets, and what comes out of a ticket.
use crate::{
    array::Array,
    body::{Body, Contents},
    event::{Event, EventOffer},
    failure::{Failure, Result},
    gate::released,
    layout::Layout,
    memory::Memory,
    session::{Session, stay_reachable},
    source::{HostArray, Source, locate},
};
use causeway::{Buffer, Ticket, text};
use pyo3::{
    intern,
    prelude::*,
    types::{PyDict, PyString},
};
use std::{
    any::Any,
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};

/// The word for this module's tickets in their text.
const WORD: &str = "py";
/// Arrays that share one allocation begin at multiples of this, which every library and every cache is content with.
const ALIGNMENT: usize = 64;
/// How long to pause before an exporter that was busy is asked again.
const PAUSE: Duration = Duration::from_millis(5);

/// Keeps arrays or an event open to other processes, until it is closed or dropped. What was opened by then stays open.
#[pyclass(frozen, weakref, module = "causeway_ipc")]
pub struct Export {
    /// What other processes open.
    #[pyo3(get)]
    ticket: String,
    /// The array that is shared: a view of what was given, or the copy in shareable memory; None where that is not one
    /// array, or memory of another library.
    #[pyo3(get)]
    array: Option<Py<Array>>,
    offers: Mutex<Vec<Offered>>,
}
type Offered = Box<dyn Any + Send>;

impl Export {
    fn new(
        session: &Session,
        contents: Contents,
        offers: Vec<Offered>,
        array: Option<Py<Array>>,
    ) -> Self {
        Self { ticket: ticket_of(session, contents), array, offers: Mutex::new(offers) }
    }
}
/// The text of a ticket for what is on a device.
fn ticket_of(session: &Session, contents: Contents) -> String {
    let (backend, uuid) = (session.backend.to_string(), session.uuid.clone());
    text::encode(WORD, &Body { backend, uuid, contents }.encode())
}

#[pymethods]
impl Export {
    /// Withdraws the ticket: nobody opens it from here on. Closing again does nothing.
    fn close(&self, py: Python<'_>) {
        let offers =
            std::mem::take(&mut *self.offers.lock().unwrap_or_else(PoisonError::into_inner));
        released(py, || drop(offers));
    }
    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }
    fn __exit__(
        &self,
        py: Python<'_>,
        _class: Py<PyAny>,
        _error: Py<PyAny>,
        _traceback: Py<PyAny>,
    ) {
        self.close(py);
    }
    /// An export travels as its ticket.
    fn __reduce__<'py>(&self, py: Python<'py>) -> (Bound<'py, PyAny>, (String,)) {
        (py.get_type::<PyString>().into_any(), (self.ticket.clone(),))
    }
    fn __repr__(&self) -> &'static str {
        "<causeway_ipc.Export>" // not the ticket: whoever reads it in a log could use it
    }
}

/// A piece of memory that is offered as a whole, and what is known of it.
struct Piece {
    ticket: Vec<u8>,
    offered: Option<Offered>,
    start: isize,
}
impl Piece {
    fn of(memory: &Arc<Memory>, range: std::ops::Range<usize>) -> Result<Self> {
        let offer = memory.offer(range)?;
        let offered = offer.export.map(|export| Box::new(export) as Offered);
        Ok(Self { ticket: offer.ticket, offered, start: offer.start })
    }
    fn foreign(session: &Session, address: usize, bytes: usize, keep: Py<PyAny>) -> Result<Self> {
        stay_reachable()?;
        let export = session.context.share_foreign(address, bytes, Arc::new(keep))?;
        let ticket = export.ticket().as_bytes().to_vec();
        Ok(Self { ticket, offered: Some(Box::new(export)), start: 0 })
    }
}

/// Copies a host array into shareable memory of a device.
fn place(py: Python<'_>, host: &HostArray, session: &Arc<Session>) -> PyResult<Array> {
    let layout = &host.layout;
    let array = released(py, || Array::allocate(session, layout.dtype, &layout.shape))?;
    host.copy_to(py, &array.memory, 0)?;
    Ok(array)
}

/// A new array in shareable memory with a copy of the elements of `object`, which the host can read.
#[pyfunction]
#[pyo3(signature = (object, *, device=None))]
pub fn array(object: &Bound<'_, PyAny>, device: Option<&str>) -> PyResult<Array> {
    let py = object.py();
    let session = Session::named(device)?;
    match locate(object)? {
        Source::Host(host) => place(py, &host, &session),
        Source::Shareable(memory, layout) => {
            let (memory, layout) = released(py, || memory.copy(&layout, &session))?;
            Ok(Array { memory, layout })
        }
        Source::Device { .. } => {
            Err(Failure::misuse("memory of a device is shared where it is: share(object)").into())
        }
    }
}

/// Offers an array or an event to other processes, for `expires` seconds if that is given.
#[pyfunction]
#[pyo3(signature = (object, *, expires=None))]
pub fn share<'py>(
    object: &Bound<'py, PyAny>,
    expires: Option<f64>,
) -> PyResult<Bound<'py, Export>> {
    for_a_while(expires, || share_one(object), object.py())
}
/// An export that is closed after so many seconds.
fn for_a_while<'py>(
    expires: Option<f64>,
    export: impl FnOnce() -> PyResult<Export>,
    py: Python<'py>,
) -> PyResult<Bound<'py, Export>> {
    let Some(after) = expires else { return Bound::new(py, export()?) };
    seconds(after)?;
    let export = Bound::new(py, export()?)?;
    py.import("causeway_ipc._expiry")?.call_method1("close_after", (after, &export))?;
    Ok(export)
}
fn share_one(object: &Bound<'_, PyAny>) -> PyResult<Export> {
    let py = object.py();
    if let Ok(event) = object.cast::<Event>() {
        let EventOffer { session, ticket, export } = event.get().offer()?;
        let offers = export.map(|export| Box::new(export) as Offered).into_iter().collect();
        return Ok(Export::new(&session, Contents::Event(ticket), offers, None));
    }
    let shareable = match locate(object)? {
        Source::Shareable(memory, layout) => Array { memory, layout },
        Source::Host(host) => place(py, &host, &Session::cpu()?)?,
        Source::Device { session, address, bytes, layout, keep } => {
            let piece = released(py, || Piece::foreign(&session, address, bytes, keep))?;
            let offers = piece.offered.into_iter().collect();
            return Ok(Export::new(&session, Contents::Array(piece.ticket, layout), offers, None));
        }
    };
    let (memory, layout) = (shareable.memory.clone(), shareable.layout.clone());
    let piece = released(py, || {
        let range = layout.within(memory.len()).ok_or_else(Failure::damaged)?;
        Piece::of(&memory, range)
    })?;
    let contents = Contents::Array(piece.ticket, layout.moved(piece.start));
    let offers = piece.offered.into_iter().collect();
    Ok(Export::new(&memory.session, contents, offers, Some(Py::new(py, shareable)?)))
}

/// A ticket for one array that opens as long as this process keeps the array's memory, and the array. What the host has
/// elsewhere is copied, and so is memory of another process that no longer offers it.
#[pyfunction]
pub fn standing(object: &Bound<'_, PyAny>) -> PyResult<(String, Array)> {
    let py = object.py();
    let array = match locate(object)? {
        Source::Shareable(memory, layout) => Array { memory, layout },
        Source::Host(host) => place(py, &host, &Session::cpu()?)?,
        Source::Device { .. } => {
            return Err(Failure::misuse("this memory of a device is its allocator's").into());
        }
    };
    let stands = released(py, || {
        let Array { memory, layout } = array;
        let (memory, layout) = match memory.is_offered() {
            true => (memory, layout),
            false => memory.copy(&layout, &memory.session)?,
        };
        let (ticket, start) = memory.standing()?;
        let contents = Contents::Array(ticket, layout.clone().moved(start));
        Ok::<_, Failure>((ticket_of(&memory.session, contents), Array { memory, layout }))
    });
    Ok(stands?)
}

/// Offers arrays by their names, under one ticket and with one export for each allocation.
#[pyfunction]
#[pyo3(signature = (arrays, *, expires=None))]
pub fn share_many<'py>(
    arrays: &Bound<'py, PyAny>,
    expires: Option<f64>,
) -> PyResult<Bound<'py, Export>> {
    for_a_while(expires, || share_all(arrays), arrays.py())
}
fn share_all(arrays: &Bound<'_, PyAny>) -> PyResult<Export> {
    let py = arrays.py();
    let (mut located, mut placed) = (Vec::new(), Vec::new());
    let mut end = 0_usize;
    for item in arrays.call_method0(intern!(py, "items"))?.try_iter()? {
        let (name, object): (String, Bound<'_, PyAny>) = item?.extract()?;
        let source = locate(&object)?;
        if let Source::Host(host) = &source {
            placed.push(end);
            end = (end + host.layout.bytes()).next_multiple_of(ALIGNMENT);
        }
        located.push((name, source));
    }
    // What the host has goes into one new allocation.
    let store = match placed.is_empty() {
        true => None,
        false => Some(released(py, || Memory::allocate(&Session::cpu()?, end))?),
    };
    let mut many = Many::default();
    let mut places = placed.into_iter();
    for (name, source) in located {
        match source {
            Source::Host(host) => {
                let (Some(store), Some(at)) = (&store, places.next()) else { continue };
                host.copy_to(py, store, at)?;
                many.add(name, store.clone(), host.placed(at))?;
            }
            Source::Shareable(memory, layout) => many.add(name, memory, layout)?,
            Source::Device { session, address, bytes, layout, keep } => {
                many.add_foreign(name, session, (address, bytes), layout, keep)?;
            }
        }
    }
    Ok(released(py, || many.export())?)
}

/// Offers a channel in `memory`, and the event by which what it carries is ready.
#[pyfunction]
pub fn share_channel(
    memory: &Bound<'_, Array>,
    event: Option<&Bound<'_, Event>>,
) -> PyResult<Export> {
    let array = memory.get();
    let range = array.layout.within(array.memory.len()).ok_or_else(Failure::damaged)?;
    let piece = Piece::of(&array.memory, range)?;
    let mut offers: Vec<Offered> = piece.offered.into_iter().collect();
    let (mut session, mut ready) = (array.memory.session.clone(), None);
    if let Some(event) = event {
        let EventOffer { session: of, ticket, export } = event.get().offer()?;
        offers.extend(export.map(|export| Box::new(export) as Offered));
        (session, ready) = (of, Some(ticket));
    }
    let layout = array.layout.clone().moved(piece.start);
    Ok(Export::new(&session, Contents::Channel(piece.ticket, layout, ready), offers, None))
}

/// Arrays under one ticket, gathered by the memory that they are in.
#[derive(Default)]
struct Many {
    session: Option<Arc<Session>>,
    pieces: Vec<Allocation>,
    arrays: Vec<(String, usize, Layout)>,
}
enum Allocation {
    Ours(Arc<Memory>, std::ops::Range<usize>),
    Foreign((usize, usize), Py<PyAny>),
}
impl Many {
    fn add(&mut self, name: String, memory: Arc<Memory>, layout: Layout) -> Result<()> {
        self.on(&memory.session)?;
        let range = layout.within(memory.len()).ok_or_else(Failure::damaged)?;
        let known = self.pieces.iter_mut().enumerate().find_map(|(at, piece)| match piece {
            Allocation::Ours(known, range) if Arc::ptr_eq(known, &memory) => Some((at, range)),
            _ => None,
        });
        let at = match known {
            Some((at, whole)) => {
                *whole = whole.start.min(range.start)..whole.end.max(range.end);
                at
            }
            None => {
                self.pieces.push(Allocation::Ours(memory, range));
                self.pieces.len() - 1
            }
        };
        self.arrays.push((name, at, layout));
        Ok(())
    }
    fn add_foreign(
        &mut self,
        name: String,
        session: Arc<Session>,
        place: (usize, usize),
        layout: Layout,
        keep: Py<PyAny>,
    ) -> Result<()> {
        self.on(&session)?;
        let same =
            |piece: &Allocation| matches!(piece, Allocation::Foreign(known, _) if *known == place);
        let at = self.pieces.iter().position(same).unwrap_or(self.pieces.len());
        if at == self.pieces.len() {
            self.pieces.push(Allocation::Foreign(place, keep));
        }
        self.arrays.push((name, at, layout));
        Ok(())
    }
    /// A ticket is for one device.
    fn on(&mut self, session: &Arc<Session>) -> Result<()> {
        let one = self.session.get_or_insert_with(|| session.clone());
        if Arc::ptr_eq(one, session) {
            return Ok(());
        }
        let sentence = format!(
            "these arrays are on {} and on {}: share those of each device by themselves",
            one.name(),
            session.name()
        );
        Err(Failure::misuse(sentence))
    }
    fn export(self) -> Result<Export> {
        let session =
            self.session.ok_or_else(|| Failure::misuse("there are no arrays to share"))?;
        let (mut tickets, mut offers, mut starts) = (Vec::new(), Vec::new(), Vec::new());
        for piece in self.pieces {
            let piece = match piece {
                Allocation::Ours(memory, range) => Piece::of(&memory, range)?,
                Allocation::Foreign((address, bytes), keep) => {
                    Piece::foreign(&session, address, bytes, keep)?
                }
            };
            starts.push(piece.start);
            tickets.push(piece.ticket);
            offers.extend(piece.offered);
        }
        let moved =
            |(name, at, layout): (String, usize, Layout)| (name, at, layout.moved(starts[at]));
        let arrays = self.arrays.into_iter().map(moved).collect();
        Ok(Export::new(&session, Contents::Arrays(tickets, arrays), offers, None))
    }
}

/// Opens what a ticket names: an array, a dictionary of arrays, an event, or the reading side of a channel.
#[pyfunction]
#[pyo3(signature = (ticket, *, device=None, timeout=10.0))]
pub fn open<'py>(
    py: Python<'py>,
    ticket: &Bound<'py, PyAny>,
    device: Option<&str>,
    timeout: f64,
) -> PyResult<Bound<'py, PyAny>> {
    let timeout = seconds(timeout)?;
    let text: String = match ticket.cast::<Export>() {
        Ok(export) => export.get().ticket.clone(),
        Err(_) => ticket.extract()?,
    };
    let begun = Instant::now();
    let opened = loop {
        match released(py, || Opened::new(&text, device)) {
            Err(failure) if failure.is_transient && begun.elapsed() < timeout => {
                py.check_signals()?;
                py.detach(|| thread::sleep(PAUSE));
            }
            opened => break opened?,
        }
    };
    match opened {
        Opened::Array(array) => Ok(Bound::new(py, array)?.into_any()),
        Opened::Event(event) => Ok(Bound::new(py, event)?.into_any()),
        Opened::Arrays(arrays) => {
            let opened = PyDict::new(py);
            for (name, array) in arrays {
                opened.set_item(name, array)?;
            }
            Ok(opened.into_any())
        }
        Opened::Channel(memory, event, life) => {
            let opened = py.import("causeway_ipc._channel")?.getattr("Receiver")?;
            opened.call1((memory, event, life))
        }
    }
}

/// What came out of a ticket.
enum Opened {
    Array(Array),
    Arrays(Vec<(String, Array)>),
    Event(Event),
    /// With a ticket of the memory alone, which opens as long as the writer lives.
    Channel(Array, Option<Event>, String),
}
impl Opened {
    fn new(text: &str, device: Option<&str>) -> Result<Self> {
        let kind = text.trim().split('-').nth(1).unwrap_or_default().to_ascii_lowercase();
        if kind == "mem" {
            return Self::bytes(text, device);
        }
        let body = Body::decode(&text::decode(WORD, text)?).ok_or_else(Failure::damaged)?;
        let session = match device {
            Some(_) => Session::named(device)?,
            None => Session::for_ticket(&body.backend, body.uuid.as_deref())?,
        };
        match body.contents {
            Contents::Array(ticket, layout) => {
                Ok(Self::Array(Array::checked(Memory::open(&session, &ticket)?, layout)?))
            }
            Contents::Arrays(tickets, arrays) => {
                let open = |ticket: &Vec<u8>| Memory::open(&session, ticket);
                let memories = tickets.iter().map(open).collect::<Result<Vec<_>>>()?;
                let array = |(name, at, layout): (String, usize, Layout)| {
                    Ok((name, Array::checked(memories[at].clone(), layout)?))
                };
                Ok(Self::Arrays(arrays.into_iter().map(array).collect::<Result<_>>()?))
            }
            Contents::Event(ticket) => Ok(Self::Event(Event::open(session, ticket)?)),
            Contents::Channel(ticket, layout, event) => {
                let cpu = Session::cpu()?;
                let memory = Array::checked(Memory::open(&cpu, &ticket)?, layout.clone())?;
                let life = ticket_of(&cpu, Contents::Array(ticket, layout));
                let event = event.map(|ticket| Event::open(session, ticket)).transpose()?;
                Ok(Self::Channel(memory, event, life))
            }
        }
    }
    /// Memory that a program in Rust, or the `causeway` command, has shared: bytes.
    fn bytes(text: &str, device: Option<&str>) -> Result<Self> {
        let ticket: Ticket<Buffer<u8>> = text.parse()?;
        let memory = Memory::open(&Session::named(device)?, ticket.as_bytes())?;
        let length = i64::try_from(memory.len()).unwrap_or(i64::MAX);
        let dtype = crate::dtype::DType { code: 1, bits: 8 };
        let layout = Layout::contiguous(dtype, &[length]).ok_or_else(Failure::damaged)?;
        Ok(Self::Array(Array::checked(memory, layout)?))
    }
}

/// A deadline in seconds.
pub fn seconds(seconds: f64) -> Result<Duration> {
    Duration::try_from_secs_f64(seconds).map_err(|_| {
        Failure::misuse(format!(
            "a timeout of {seconds} seconds cannot be: every wait has a deadline"
        ))
    })
}
