//! Opening tickets. What is open already is found in a cache and checked without a request to the exporter; anything
//! else is fetched. The adapter decides what an opened object is.
use crate::{
    ENVELOPE_LEN, Error, ErrorKind, InstanceId, Kind, Result, ahead,
    envelope::{Envelope, TicketKey, Transport, key_of, wrong_size},
    exports::{issued_here, open_own},
    fetch::lease::Lease,
    fork::{PerFork, inherited},
    identity::identity,
    killpoint, locked,
    obtain::obtain,
    standing::{ArrivedPayload, Fetched, Standing},
    watcher,
};
use std::{
    collections::HashMap,
    ops::Deref,
    sync::{Arc, Mutex, Weak},
};

/// The most tickets remembered. A ticket that was forgotten is fetched from the exporter again.
const REMEMBERED: usize = 4096;

/// The opens of one adapter and kind of object. `T` is what the adapter makes of what arrives: a mapping or an object.
pub struct Importer<T> {
    kind: Kind,
    backend: u16,
    /// Whether tickets of other backends are accepted too.
    takes_any: bool,
    cache: PerFork<Mutex<Cache<T>>>,
}

/// Holds only weak references: what is not used any more is closed at once, and its entry is removed later.
struct Cache<T> {
    tickets: HashMap<TicketKey, Weak<Opening<T>>>,
    objects: HashMap<ObjectKey, Weak<Shared<T>>>,
    /// At this many entries, those that are not open any more are removed.
    sweep_at: usize,
}
impl<T> Default for Cache<T> {
    fn default() -> Self {
        Self { tickets: HashMap::new(), objects: HashMap::new(), sweep_at: 64 }
    }
}
impl<T> Cache<T> {
    /// What is open of an object, unless the connection over which it was opened is lost: then the exporter does not keep
    /// it, whatever is opened anew.
    fn standing(&self, key: ObjectKey) -> Option<Arc<Shared<T>>> {
        let open = self.objects.get(&key).and_then(Weak::upgrade);
        open.filter(|shared| shared.lease.as_ref().is_none_or(Lease::stands))
    }
}
/// The exporter, its number for the object, and whether that number is an object number or a ledger's tag.
type ObjectKey = (InstanceId, u64, bool);

/// One object, shared by all its opens.
struct Shared<T> {
    /// The first field, so that the object is closed before the exporter is told so.
    value: T,
    key: ObjectKey,
    size: u64,
    lease: Option<Lease>,
}
/// One opened ticket: its range, and where this process sees whether the export still stands.
struct Opening<T> {
    shared: Arc<Shared<T>>,
    bytes: [u8; ENVELOPE_LEN],
    device: [u8; 16],
    offset: u64,
    length: u64,
    line: u16,
    generation: u32,
    tag: u64,
    standing: Standing,
    fork: u64,
}
impl<T> Opening<T> {
    fn new(
        shared: Arc<Shared<T>>,
        envelope: &Envelope,
        bytes: &[u8; ENVELOPE_LEN],
        standing: Standing,
    ) -> Self {
        Self {
            shared,
            bytes: *bytes,
            device: envelope.device,
            offset: envelope.offset,
            length: envelope.length,
            line: envelope.index,
            generation: envelope.generation,
            tag: envelope.tag(),
            standing,
            fork: ur_mapping::fork_count(),
        }
    }
    fn check(&self) -> Result<()> {
        self.standing.check(self.line, self.tag, self.generation)
    }
    fn is_forgotten(&self) -> bool {
        self.standing.is_forgotten(self.line, self.tag, self.generation)
    }
}

/// What arrived from the exporter, verified as far as the kernel can tell.
#[derive(Debug)]
pub struct Arrived {
    /// The data from which the adapter makes the object.
    pub payload: ArrivedPayload,
    /// Size of the whole object in bytes.
    pub size: u64,
}

/// An opened ticket.
pub enum Opened<T> {
    /// The object belongs to this process.
    Local {
        /// The adapter's id of it, as in its offer.
        object: u64,
        /// Where the shared range begins in it, in bytes.
        offset: u64,
        /// Length of the shared range in bytes.
        length: u64,
    },
    /// The object belongs to another process.
    Remote(Remote<T>),
}

/// An open of another process's object. All opens of one object share one `T`. Dropping the last open drops the `T` and
/// then tells the exporter, without waiting for it.
pub struct Remote<T>(Arc<Opening<T>>);

impl<T: Send + Sync + 'static> Importer<T> {
    /// An importer for tickets of this kind and backend.
    pub const fn new(kind: Kind, backend: u16) -> Self {
        Self { kind, backend, takes_any: false, cache: PerFork::new() }
    }
    /// An importer for tickets of this kind, of this process's own backend and of any backend of another process: what
    /// is sent is the same for all.
    pub const fn of_any_backend(kind: Kind, backend: u16) -> Self {
        Self { kind, backend, takes_any: true, cache: PerFork::new() }
    }
    /// Opens a ticket. Once the ticket is known to be intact and of the right kind and backend, `home` is called with
    /// the device that it was made for. Its result is returned, and passed to `import`, which makes the object unless
    /// it is open here already. Both are called with no lock held.
    ///
    /// # Errors
    /// Any [`ErrorKind`], depending on the ticket, the exporter and the system; and the errors of `home` and `import`.
    pub fn open<H, E: From<Error>>(
        &self,
        bytes: &[u8],
        home: impl FnOnce([u8; 16]) -> Result<H, E>,
        import: impl FnOnce(Arrived, &H) -> Result<T, E>,
    ) -> Result<(Opened<T>, H), E> {
        let bytes: &[u8; ENVELOPE_LEN] = bytes.try_into().map_err(|_| wrong_size(bytes.len()))?;
        let cache = self.cache.get()?;
        let known = locked(cache).tickets.get(&key_of(bytes)).and_then(Weak::upgrade);
        if let Some(opening) = known.filter(|opening| opening.bytes == *bytes) {
            match opening.check() {
                Err(_) if opening.is_forgotten() => {} // the exporter reports why it cannot be opened
                Err(e) => return Err(e.into()),
                Ok(()) => {
                    let home = home(opening.device)?;
                    return Ok((Opened::Remote(Remote(opening)), home));
                }
            }
        }
        let issued = issued_here(bytes);
        let envelope = match issued {
            Some(_) => Envelope::read(bytes)?,
            None => Envelope::parse(bytes)?,
        };
        let is_own = envelope.instance == identity()?.instance;
        self.check(&envelope, is_own)?;
        let home = home(envelope.device)?;
        if is_own {
            let (object, offset, length) = issued.map_or_else(|| open_own(bytes), Ok)?;
            return Ok((Opened::Local { object, offset, length }, home));
        }
        watcher::be_ready();
        let fetched = ahead::take(&envelope, bytes).unwrap_or_else(|| obtain(&envelope, bytes))?;
        let Fetched { payload, object, standing, lease } = fetched;
        killpoint::reach("import.before_map");
        let key = (envelope.instance, object, lease.is_none());
        let open = locked(cache).standing(key);
        let shared = match open {
            Some(shared) => shared, // dropping the new lease returns it at once, as the object is open already
            None => {
                let value = import(Arrived { payload, size: envelope.size }, &home)?;
                Arc::new(Shared { value, key, size: envelope.size, lease })
            }
        };
        let shared = remember_object(cache, shared);
        let opening = Arc::new(Opening::new(shared, &envelope, bytes, standing));
        remember_ticket(cache, &opening);
        Ok((Opened::Remote(Remote(opening)), home))
    }
    fn check(&self, envelope: &Envelope, is_own: bool) -> Result<()> {
        if envelope.kind != self.kind {
            let (is, asked) = (envelope.kind.named(), self.kind.named());
            let why = format!("this ticket is {is}; {asked} was asked for");
            return Err(Error::new(ErrorKind::WrongKind, why));
        }
        if envelope.transport == Transport::Arena && envelope.kind != Kind::Event {
            return Err(Error::new(
                ErrorKind::Damaged,
                "this ticket contradicts itself: only events travel through arenas",
            ));
        }
        // Within one process each adapter numbers its objects independently.
        if envelope.backend != self.backend && (is_own || !self.takes_any) {
            let why = format!(
                "this ticket was made by another backend (number {}) than the one that is to open it (number {}): use the same adapter on both sides",
                envelope.backend, self.backend
            );
            return Err(Error::new(ErrorKind::WrongBackend, why));
        }
        Ok(())
    }
}

/// Checks that a ticket was made for the one device for which it can be opened.
///
/// # Errors
/// [`ErrorKind::WrongDevice`] if the two differ.
pub fn same_device(theirs: [u8; 16], ours: [u8; 16]) -> Result<()> {
    if theirs == ours {
        return Ok(());
    }
    let why = "this ticket was made for another device: open it with a context that has the exporter's device";
    Err(Error::new(ErrorKind::WrongDevice, why))
}

/// If another thread has opened the object meanwhile, that thread's open is used.
fn remember_object<T>(cache: &Mutex<Cache<T>>, shared: Arc<Shared<T>>) -> Arc<Shared<T>> {
    let mut cache = locked(cache);
    let other = cache.standing(shared.key);
    if other.is_none() {
        cache.objects.insert(shared.key, Arc::downgrade(&shared));
    }
    drop(cache); // before anything is closed
    other.unwrap_or(shared)
}

fn remember_ticket<T>(cache: &Mutex<Cache<T>>, opening: &Arc<Opening<T>>) {
    let mut cache = locked(cache);
    if cache.tickets.len().max(cache.objects.len()) >= cache.sweep_at {
        cache.tickets.retain(|_, opening| opening.strong_count() > 0);
        cache.objects.retain(|_, shared| shared.strong_count() > 0);
        if cache.tickets.len() >= REMEMBERED {
            cache.tickets.clear();
        }
        let left = cache.tickets.len().max(cache.objects.len());
        cache.sweep_at = (2 * left).max(64);
    }
    cache.tickets.insert(key_of(&opening.bytes), Arc::downgrade(opening));
}

impl<T> Remote<T> {
    /// Where the shared range begins in the object, in bytes.
    pub fn offset(&self) -> u64 {
        self.0.offset
    }
    /// Length of the shared range in bytes.
    pub fn length(&self) -> u64 {
        self.0.length
    }
    /// Size of the whole object in bytes.
    pub fn size(&self) -> u64 {
        self.0.shared.size
    }
    /// The exporter, and a number that identifies the object among the exporter's objects of this kind.
    pub fn object(&self) -> (InstanceId, u64) {
        let (instance, object, _) = self.0.shared.key;
        (instance, object)
    }
    /// Whether both are opens of one object and so share one `T`.
    pub fn same_object(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0.shared, &other.0.shared)
    }
    /// Checks whether the ticket could be opened now. What is open stays usable even if it could not.
    ///
    /// # Errors
    /// [`ErrorKind::Withdrawn`], [`ErrorKind::Freed`], [`ErrorKind::ExporterGone`]; in a forked child
    /// [`ErrorKind::Forked`].
    pub fn current(&self) -> Result<()> {
        if self.0.fork != ur_mapping::fork_count() {
            return Err(inherited("what was opened from a ticket"));
        }
        self.0.check()
    }
    /// Whether the exporter's process is still alive. A forked child, which has no connection to it, cannot tell, and
    /// gets `false`.
    pub fn exporter_alive(&self) -> bool {
        let why_not = self.current().err().map(|error| error.kind());
        !matches!(why_not, Some(ErrorKind::ExporterGone | ErrorKind::Forked))
    }
}
impl<T> Clone for Remote<T> {
    /// Returns another reference to the same open.
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}
impl<T> Deref for Remote<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.0.shared.value
    }
}
impl<T> std::fmt::Debug for Remote<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (instance, object) = self.object();
        write!(f, "Remote({instance}, object {object}, {}+{})", self.offset(), self.length())
    }
}
