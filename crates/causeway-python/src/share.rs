//! Sharing: exports with their tickets. What comes out of a ticket is `opening.rs`'s.
use crate::{
    array::Array,
    asked::{no_text, seconds},
    body::{Body, Contents},
    clock::Clock,
    event::{Event, EventOffer},
    failure::{Failure, Result},
    gate::{entered, released},
    layout::Layout,
    memory::Memory,
    session::{Session, stay_reachable},
    source::{HostArray, Keep, Source, locate},
};
use causeway::{Access, Buffer, Policy, text};
use pyo3::{exceptions::PyTypeError, intern, prelude::*, types::PyString};
use smallvec::SmallVec;
use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
    ops::Range,
    sync::{Arc, Mutex, OnceLock, PoisonError},
};
use ur_mapping::PerProcess;

/// The word for this module's tickets in their text.
pub const WORD: &str = "py";
/// Arrays that share one allocation begin at multiples of this, which every library and every cache is content with.
const ALIGNMENT: usize = 64;
/// What another library allocated.
const FOREIGN: &str = "arrays that another library allocated on a device";

/// Keeps arrays or an event open to other processes, until it is closed or dropped. What was opened by then stays open.
#[pyclass(frozen, weakref, module = "causeway_ipc")]
pub struct Export {
    session: Arc<Session>,
    is_for_same_user: bool,
    contents: Contents,
    /// The ticket, once somebody has asked for it: its text takes longer than all else.
    text: OnceLock<String>,
    /// The array that is shared: a view of what was given, or the copy in shareable memory; None where that is not one
    /// array, or memory of another library.
    #[pyo3(get)]
    array: Option<Py<Array>>,
    offers: Arc<Mutex<Offers>>,
}
/// What the runtime keeps open; mostly one.
type Offers = SmallVec<[Offered; 1]>;
#[expect(dead_code, reason = "held to be dropped")]
enum Offered {
    Memory(causeway::Export<Buffer<u8>>),
    Event(causeway::Export<causeway::Event>),
}

impl Export {
    fn new(
        session: Arc<Session>,
        is_for_same_user: bool,
        contents: Contents,
        offers: Offers,
        array: Option<Py<Array>>,
    ) -> Self {
        let (text, offers) = (OnceLock::new(), Arc::new(Mutex::new(offers)));
        Self { session, is_for_same_user, contents, text, array, offers }
    }
    /// What its ticket says.
    pub fn body(&self) -> Body<'_> {
        body_of(&self.session, self.is_for_same_user, Cow::Borrowed(&self.contents))
    }
}
/// What a ticket says of what is on a device.
fn body_of<'a>(
    session: &'a Session,
    is_for_same_user: bool,
    contents: Cow<'a, Contents>,
) -> Body<'a> {
    let (backend, uuid) = (session.backend.name(), session.uuid.as_deref());
    Body { backend, uuid, is_for_same_user, contents }
}
/// The text of that ticket.
pub fn ticket_of(session: &Session, is_for_same_user: bool, contents: Contents) -> String {
    text::encode(WORD, &body_of(session, is_for_same_user, Cow::Owned(contents)).encode())
}

#[pymethods]
impl Export {
    /// What other processes open.
    #[getter]
    fn ticket(&self) -> &str {
        self.text.get_or_init(|| text::encode(WORD, &self.body().encode()))
    }
    /// Withdraws the ticket: nobody opens it from here on. Closing again does nothing.
    pub fn close(&self, py: Python<'_>) {
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
        (py.get_type::<PyString>().into_any(), (self.ticket().to_owned(),))
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
    fn of(memory: &Arc<Memory>, range: Range<usize>) -> Result<Self> {
        let offer = memory.offer(range)?;
        let offered = offer.export.map(Offered::Memory);
        Ok(Self { ticket: offer.ticket, offered, start: offer.start })
    }
    fn foreign(session: &Session, address: usize, bytes: usize, keep: Keep) -> Result<Self> {
        stay_reachable()?;
        let export = session.context.share_foreign(address, bytes, Arc::new(keep))?;
        let ticket = export.ticket().as_bytes().to_vec();
        Ok(Self { ticket, offered: Some(Offered::Memory(export)), start: 0 })
    }
}

/// What `access=` and `read_only=` ask for; nothing where neither is given.
pub fn wanted(access: Option<&str>, read_only: bool) -> Result<Option<Policy>> {
    let policy = || -> Result<_> {
        let access = access.map_or(Ok(Access::SameUser), str::parse)?;
        Ok(Policy { access, is_read_only: read_only })
    };
    (access.is_some() || read_only).then(policy).transpose()
}
/// Memory of others is their allocator's, and an event's words are written by all who use it.
fn only_usual(wanted: Option<Policy>, what: &str) -> Result<()> {
    if wanted.is_none_or(|wanted| wanted == Policy::default()) {
        return Ok(());
    }
    let sentence = format!(
        "{what} are shared with processes of the same user, for reading and writing: access and read_only are for arrays of empty() and of the host"
    );
    Err(Failure::new("Unsupported", sentence))
}

/// Copies a host array into shareable memory of a device.
fn place(
    py: Python<'_>,
    host: &HostArray,
    session: &Arc<Session>,
    wanted: Option<Policy>,
) -> PyResult<Array> {
    let (layout, policy) = (host.placed(0), wanted.unwrap_or_default());
    let memory = released(py, || Memory::allocate(session, layout.bytes(), policy))?;
    host.copy_to(py, &memory, 0)?;
    Ok(Array { memory, layout })
}

/// A new array in shareable memory with a copy of the elements of `object`, which the host can read.
#[pyfunction]
#[pyo3(signature = (object, *, device=None, access=None, read_only=false))]
pub fn array(
    object: &Bound<'_, PyAny>,
    device: Option<&str>,
    access: Option<&str>,
    read_only: bool,
) -> PyResult<Array> {
    let (py, wanted) = (object.py(), wanted(access, read_only)?);
    let session = Session::named(device)?;
    match locate(object)? {
        Source::Host(host) => place(py, &host, &session, wanted),
        Source::Shareable(memory, layout) => {
            let policy = wanted.unwrap_or_default();
            let (memory, layout) = released(py, || memory.copy(&layout, &session, policy))?;
            Ok(Array { memory, layout })
        }
        Source::Device { .. } => {
            Err(Failure::misuse("memory of a device is shared where it is: share(object)").into())
        }
    }
}

/// Offers an array or an event to other processes: to those of the same user, or whom `access` names (`same-user`,
/// `user:UID`, `process:PID`); for reading only, if that is asked for; for `expires` seconds, if those are given.
#[pyfunction]
#[pyo3(signature = (object, *, access=None, read_only=false, expires=None))]
pub fn share<'py>(
    object: &Bound<'py, PyAny>,
    access: Option<&str>,
    read_only: bool,
    expires: Option<f64>,
) -> PyResult<Bound<'py, Export>> {
    let wanted = wanted(access, read_only)?;
    for_a_while(expires, || share_one(object, wanted), object.py())
}
/// An export that is closed after so many seconds.
fn for_a_while<'py>(
    expires: Option<f64>,
    export: impl FnOnce() -> PyResult<Export>,
    py: Python<'py>,
) -> PyResult<Bound<'py, Export>> {
    let after = expires.map(seconds).transpose()?;
    let export = export()?;
    if let Some(after) = after {
        let inside = |act: &mut dyn FnMut()| entered(act);
        CLOCK.get().give_back_after(after, &export.offers, inside).map_err(|error| {
            let why = format!(
                "nothing would withdraw this ticket when its time is over, so it is withdrawn now: no thread could be started: {error}"
            );
            Failure::new("LimitReached", why)
        })?;
    }
    Bound::new(py, export)
}
/// Withdraws exports when their time is over, those of this process.
static CLOCK: PerProcess<Clock<Offers>> = PerProcess::new();
/// Withdraws nothing more: the interpreter ends.
pub fn end() {
    CLOCK.get().end();
}
fn share_one(object: &Bound<'_, PyAny>, wanted: Option<Policy>) -> PyResult<Export> {
    let py = object.py();
    if let Ok(event) = object.cast::<Event>() {
        only_usual(wanted, "events")?;
        let EventOffer { session, ticket, export } = event.get().offer()?;
        let offers = export.map(Offered::Event).into_iter().collect();
        return Ok(Export::new(session, true, Contents::Event(ticket), offers, None));
    }
    let Array { memory, layout } = match locate(object)? {
        Source::Shareable(memory, layout) => {
            memory.is_as(wanted)?;
            Array { memory, layout }
        }
        Source::Host(host) => place(py, &host, &Session::cpu()?, wanted)?,
        Source::Device { session, address, bytes, layout, keep } => {
            only_usual(wanted, FOREIGN)?;
            let piece = released(py, || Piece::foreign(&session, address, bytes, keep))?;
            let offers = piece.offered.into_iter().collect();
            let contents = Contents::Array(piece.ticket, layout);
            return Ok(Export::new(session, true, contents, offers, None));
        }
    };
    let piece = released(py, || {
        let range = memory.range_of(&layout)?;
        Piece::of(&memory, range)
    })?;
    let contents = Contents::Array(piece.ticket, layout.clone().moved(piece.start));
    let offers = piece.offered.into_iter().collect();
    let (session, is_for_same_user) = (memory.session.clone(), memory.is_for_same_user());
    let array = Some(Py::new(py, Array { memory, layout })?);
    Ok(Export::new(session, is_for_same_user, contents, offers, array))
}

/// A ticket for one array that opens as long as this process keeps the array's memory, the array, and whether another process
/// made it. What the host has elsewhere is copied, and so is memory of another process that no longer offers it.
///
/// # Errors
/// `Withdrawn` for such memory where a copy would be open to more processes than the memory was.
#[pyfunction]
pub fn standing(object: &Bound<'_, PyAny>) -> PyResult<(String, Array, bool)> {
    let py = object.py();
    let array = match locate(object)? {
        Source::Shareable(memory, layout) => Array { memory, layout },
        Source::Host(host) => place(py, &host, &Session::cpu()?, None)?,
        Source::Device { .. } => {
            return Err(Failure::misuse("this memory of a device is its allocator's").into());
        }
    };
    let stands = released(py, || {
        let Array { memory, layout } = array;
        let (memory, layout) = match memory.opens() {
            Err(failure) if failure.is_of_a_dead_ticket() => memory.copy_to_send(&layout)?,
            offered => offered.map(|()| (memory, layout))?,
        };
        standing_array(Array { memory, layout })
    });
    Ok(stands?)
}
fn standing_array(array: Array) -> Result<(String, Array, bool)> {
    let Array { memory, layout } = &array;
    memory.range_of(layout)?;
    let (ticket, start) = memory.standing()?;
    let contents = Contents::Array(ticket, layout.clone().moved(start));
    let ticket = ticket_of(&memory.session, memory.is_for_same_user(), contents);
    let is_of_another = memory.is_of_another();
    Ok((ticket, array, is_of_another))
}
/// The same of a copy, for a receiver that found the ticket of another process's memory dead.
///
/// # Errors
/// As for [`standing`].
#[pyfunction]
pub fn standing_copy(array: &Bound<'_, Array>) -> PyResult<(String, Array)> {
    let (py, array) = (array.py(), array.get());
    let copied = released(py, || {
        let (memory, layout) = array.memory.copy_to_send(&array.layout)?;
        standing_array(Array { memory, layout })
    });
    let (ticket, array, _) = copied?;
    Ok((ticket, array))
}
/// Those of these arrays whose memory another process has open, and of those in one memory the first only.
#[pyfunction]
pub fn open_elsewhere<'py>(arrays: Vec<Bound<'py, Array>>) -> Vec<Bound<'py, Array>> {
    let mut seen = HashSet::new();
    let is_first = |array: &Bound<'_, Array>| seen.insert(array.get().memory.whole());
    let is_open = |array: &Bound<'_, Array>| array.get().memory.is_open_elsewhere();
    arrays.into_iter().filter(is_first).filter(is_open).collect()
}

/// Offers arrays by their names, under one ticket and with one export for each allocation. The rest is as for `share`.
#[pyfunction]
#[pyo3(signature = (arrays, *, access=None, read_only=false, expires=None))]
pub fn share_many<'py>(
    arrays: &Bound<'py, PyAny>,
    access: Option<&str>,
    read_only: bool,
    expires: Option<f64>,
) -> PyResult<Bound<'py, Export>> {
    let wanted = wanted(access, read_only)?;
    for_a_while(expires, || share_all(arrays, wanted), arrays.py())
}
fn share_all(arrays: &Bound<'_, PyAny>, wanted: Option<Policy>) -> PyResult<Export> {
    let py = arrays.py();
    let (mut located, mut placed) = (Vec::new(), Vec::new());
    let mut end = 0_usize;
    let Some(items) = arrays.getattr_opt(intern!(py, "items"))? else {
        let sentence = format!(
            "share_many takes arrays by their names, {{name: array}}, and not {}: share(array) is for one",
            arrays.get_type().name()?
        );
        return Err(PyTypeError::new_err(sentence));
    };
    for item in items.call0()?.try_iter()? {
        let (name, object): (Bound<'_, PyAny>, Bound<'_, PyAny>) = item?.extract()?;
        let name = name.extract().map_err(|_| no_text("names of arrays are text", &name))?;
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
        false => Some(released(py, || {
            Memory::allocate(&Session::cpu()?, end, wanted.unwrap_or_default())
        })?),
    };
    let mut many = Many::default();
    let mut places = placed.into_iter();
    for (place, (name, source)) in located.into_iter().enumerate() {
        match source {
            Source::Host(host) => {
                let (Some(store), Some(at)) = (&store, places.next()) else { continue };
                host.copy_to(py, store, at)?;
                many.add(place, name, store.clone(), host.placed(at))?;
            }
            Source::Shareable(memory, layout) => {
                memory.is_as(wanted)?;
                many.add(place, name, memory, layout)?;
            }
            Source::Device { session, address, bytes, layout, keep } => {
                only_usual(wanted, FOREIGN)?;
                many.add_foreign(&session, Foreign { place, name, address, bytes, layout, keep })?;
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
    let range = array.memory.range_of(&array.layout)?;
    let piece = Piece::of(&array.memory, range)?;
    let mut offers: Offers = piece.offered.into_iter().collect();
    let (mut session, mut ready) = (array.memory.session.clone(), None);
    if let Some(event) = event {
        let EventOffer { session: of, ticket, export } = event.get().offer()?;
        offers.extend(export.map(Offered::Event));
        (session, ready) = (of, Some(ticket));
    }
    let layout = array.layout.clone().moved(piece.start);
    let contents = Contents::Channel(piece.ticket, layout, ready);
    Ok(Export::new(session, array.memory.is_for_same_user(), contents, offers, None))
}

/// Arrays under one ticket, gathered by the allocation that they are in.
#[derive(Default)]
struct Many {
    session: Option<Arc<Session>>,
    /// Memory of this module's, and what of it the arrays touch.
    pieces: Vec<(Arc<Memory>, Range<usize>)>,
    /// Which of the pieces has the memory at this address.
    known: HashMap<usize, usize>,
    /// Each with its place among all arrays, its name, and which piece it is in.
    arrays: Vec<(usize, String, usize, Layout)>,
    foreign: Vec<Foreign>,
}
/// An array in memory of another library's, which is `keep`'s.
struct Foreign {
    place: usize,
    name: String,
    address: usize,
    bytes: usize,
    layout: Layout,
    keep: Keep,
}
impl Many {
    fn add(
        &mut self,
        place: usize,
        name: String,
        memory: Arc<Memory>,
        layout: Layout,
    ) -> Result<()> {
        self.on(&memory.session)?;
        let range = memory.range_of(&layout)?;
        let at = *self.known.entry(Arc::as_ptr(&memory).addr()).or_insert(self.pieces.len());
        match self.pieces.get_mut(at) {
            Some((_, whole)) => {
                *whole = whole.start.min(range.start)..whole.end.max(range.end);
            }
            None => self.pieces.push((memory, range)),
        }
        self.arrays.push((place, name, at, layout));
        Ok(())
    }
    fn add_foreign(&mut self, session: &Arc<Session>, array: Foreign) -> Result<()> {
        self.on(session)?;
        self.foreign.push(array);
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
        let (mut tickets, mut offers, mut starts) = (Vec::new(), Offers::new(), Vec::new());
        let is_for_same_user = self.pieces.iter().all(|(memory, _)| memory.is_for_same_user());
        for (memory, range) in self.pieces {
            let piece = Piece::of(&memory, range)?;
            starts.push(piece.start);
            tickets.push(piece.ticket);
            offers.extend(piece.offered);
        }
        let mut arrays = self.arrays;
        for (_, _, at, layout) in &mut arrays {
            *layout = layout.clone().moved(starts[*at]);
        }
        // From the lowest address on, so that each export reaches over all that follows in its allocation.
        let mut foreign = self.foreign;
        foreign.sort_by_key(|array| array.address);
        let mut foreign = foreign.into_iter().peekable();
        while let Some(first) = foreign.peek() {
            let (start, first_end) = (first.address, first.address + first.bytes);
            let (mut end, mut inside) = (first_end, Vec::new());
            let keep = Arc::new(Mutex::new(Vec::new()));
            let choose = |reach: usize| {
                let limit = start.saturating_add(reach);
                let fits = |array: &Foreign| array.address + array.bytes <= limit;
                while let Some(array) = foreign.next_if(fits) {
                    end = end.max(array.address + array.bytes);
                    inside.push(array);
                }
                end - start
            };
            stay_reachable()?;
            let export = session.context.share_foreign_as_far(start, choose, keep.clone())?;
            for Foreign { place, name, address, layout, keep: owner, .. } in inside {
                keep.lock().unwrap_or_else(PoisonError::into_inner).push(owner);
                let layout = Layout { offset: layout.offset + (address - start), ..layout };
                arrays.push((place, name, tickets.len(), layout));
            }
            tickets.push(export.ticket().as_bytes().to_vec());
            offers.push(Offered::Memory(export));
        }
        arrays.sort_unstable_by_key(|(place, ..)| *place);
        let arrays = arrays.into_iter().map(|(_, name, at, layout)| (name, at, layout)).collect();
        let contents = Contents::Arrays(tickets, arrays);
        Ok(Export::new(session, is_for_same_user, contents, offers, None))
    }
}
