//! What this process shares: every export with its ticket, its policy and its line in the ledger. The broker asks here
//! what a peer may have; opening one's own ticket is answered here without a broker.
use crate::{
    Access, ENVELOPE_LEN, Error, ErrorKind, Kind, Result,
    access::{OVERFLOW_UID, Peer},
    arena,
    entrance::Entrance,
    envelope::{Door, Envelope, Transport, is_sealed_by, key_of},
    fork::{PerFork, inherited},
    identity::{Identity, identity},
    leases::{Leases, Object},
    liveness::{self, Source},
    locked,
    protocol::{PAYLOAD, Verdict},
    shared_memory::verify_descriptor,
    token::{Secret, same},
};
use rustc_hash::FxBuildHasher;
use rustix::{
    event::{EventfdFlags, epoll, eventfd},
    fs::fcntl_get_seals,
    io::Errno,
    process::geteuid,
};
use std::{
    collections::{HashMap, HashSet},
    os::fd::{AsRawFd, OwnedFd},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

/// What the exporter knows of an object; the broker's copy of it is the truth.
#[derive(Clone)]
pub struct Offer {
    /// What it is.
    pub kind: Kind,
    /// The adapter's number for its backend; importers of other backends refuse.
    pub backend: u16,
    /// The device's UUID; importers for other devices refuse.
    pub device: [u8; 16],
    /// The adapter's id of the allocation or object, unique among those of its kind for as long as the process lives.
    pub object: u64,
    /// Where the shared range begins in the object, in bytes.
    pub offset: u64,
    /// Length of the shared range in bytes.
    pub length: u64,
    /// Size of the whole object in bytes.
    pub size: u64,
    /// What an importer needs in order to open it.
    pub payload: Payload,
    /// Who may open it. For an event this is the policy under which its slot was made.
    pub access: Access,
}

/// The most descriptors of which one payload consists.
pub const MOST_DESCRIPTORS: usize = 4096;

/// What an importer needs in order to open an object.
#[derive(Clone)]
pub enum Payload {
    /// A descriptor.
    Fd {
        /// The descriptor; a memfd must be sealed against shrinking.
        fd: Arc<OwnedFd>,
        /// Where the object begins in what the descriptor opens, in bytes.
        base: u64,
        /// How many bytes the descriptor opens.
        exposes: u64,
    },
    /// A descriptor that only the driver understands: it has no seals, and tells neither size nor content. It is never
    /// taken out of this process (`pidfd_getfd`): nothing would prove that it still is what it was.
    Driver {
        /// The descriptor.
        fd: Arc<OwnedFd>,
        /// Where the object begins in what the descriptor opens, in bytes.
        base: u64,
        /// How many bytes the descriptor opens.
        exposes: u64,
        /// What an importer's driver needs beside it; at most 256 bytes.
        bytes: Arc<[u8]>,
    },
    /// Descriptors as in `Driver`, each of one physical object of the driver's: one behind the other they are what the
    /// importer opens. At most [`MOST_DESCRIPTORS`].
    DriverRun {
        /// The descriptors, in the order of the addresses.
        fds: Arc<[Arc<OwnedFd>]>,
        /// Where the object begins in what the descriptors open, in bytes.
        base: u64,
        /// How many bytes the descriptors open together.
        exposes: u64,
        /// What an importer's driver needs beside them; at most 256 bytes.
        bytes: Arc<[u8]>,
    },
    /// At most 256 bytes that the driver understands.
    Bytes(Arc<[u8]>),
    /// A slot in an arena of this process.
    Event(arena::Slot),
}

/// A live export; dropping it withdraws it, without waiting for anybody.
pub struct Export {
    bytes: [u8; ENVELOPE_LEN],
    key: Key,
    /// 0 once it was made into a [`FreedExport`].
    token: u64,
    exposes: u64,
    fork: u64,
}

/// A table is made smaller when less than one place in so many is taken.
const SPARSE: usize = 8;

/// An export's ledger and line.
type Key = (u32, u16);

/// One export as the desk keeps it.
struct Issued {
    /// First, so that the ledger says "withdrawn" before the descriptor is closed.
    line: arena::Line,
    bytes: [u8; ENVELOPE_LEN],
    token: u64,
    offer: Offer,
}

/// All exports, all leases, and the entrances through which importers come. The tables' keys are numbers of this
/// process's own, so that nobody outside chooses where they fall.
#[derive(Default)]
pub(crate) struct Desk {
    issued: HashMap<Key, Issued, FxBuildHasher>,
    of_object: HashMap<Object, Vec<Key>, FxBuildHasher>,
    /// Exports whose objects were freed and which nobody has dropped yet, by their tokens: all that is left of them.
    freed: HashSet<u64, FxBuildHasher>,
    pub leases: Leases,
    entrances: HashMap<Door, Attended>,
    /// Held as long as there is an entrance, and given up for an instant when descriptors run out, so that a visitor
    /// can be told so.
    reserve: Option<OwnedFd>,
}
/// An entrance, which is looked after: cleaners of temporary directories, and a logout, remove names that are in use.
struct Attended {
    entrance: Entrance,
    /// When it is looked at next.
    look: Instant,
    /// Whether it was said that it cannot be found.
    is_lost: bool,
}
pub(crate) static DESK: PerFork<Mutex<Desk>> = PerFork::new();

/// How often an exporter looks whether its sockets still have their names.
const LOOK: Duration = Duration::from_secs(2);

/// What a peer is to be given.
pub(crate) struct Granted {
    pub object: Object,
    pub size: u64,
    pub payload: Payload,
    /// Whose ledger has the export's line.
    pub arena: arena::Arena,
}

/// Shares an object: makes its ticket, and starts the broker at need. Every call is an export of its own.
///
/// # Errors
/// [`ErrorKind::Unsupported`] for what cannot be shared so, [`ErrorKind::Directory`] where no socket can be made,
/// [`ErrorKind::Full`] when the ledger is, and the limits.
pub fn export(offer: Offer) -> Result<Export> {
    check(&offer)?;
    if geteuid().as_raw() == OVERFLOW_UID {
        let why = "this process runs as user 65534 (nobody), which stands for every user that has no number here: no process could be admitted as the same user; run it as another user";
        return Err(Error::new(ErrorKind::Denied, why));
    }
    let identity = identity()?;
    let desk = DESK.get()?;
    let mut envelope = envelope_of(&offer, identity)?;
    let token = envelope.tag();
    let descriptor = second_way_descriptor(&offer);
    let line = match &offer.payload {
        Payload::Event(slot) => slot.arena().line(token, -1)?,
        _ => arena::line(offer.access, token, descriptor.unwrap_or(-1))?,
    };
    if descriptor.is_some() {
        envelope.ledger_descriptor = line.arena().descriptors()?.1.as_raw_fd();
    }
    (envelope.ledger, envelope.index) = (line.arena().number(), line.index());
    envelope.generation = line.generation();
    let exposes = match &offer.payload {
        Payload::Fd { exposes, .. }
        | Payload::Driver { exposes, .. }
        | Payload::DriverRun { exposes, .. } => *exposes,
        Payload::Bytes(_) => offer.size,
        Payload::Event(_) => 0,
    };
    let key = (envelope.ledger, envelope.index);
    let mut desk = locked(desk);
    (envelope.directory, envelope.uid) = desk.enter(envelope.door, identity)?;
    let bytes = envelope.seal(&identity.key);
    desk.of_object.entry((offer.kind, offer.object)).or_default().push(key);
    desk.issued.insert(key, Issued { line, bytes, token, offer });
    Ok(Export { bytes, key, token, exposes, fork: ur_mapping::fork_count() })
}

/// Says that the owner freed the object: every export of it ends here and now, whoever has it still, and with it goes all
/// that was kept for it. Its ticket answers so until the [`Export`] is dropped.
pub fn freed(object: u64, kind: Kind) {
    let Some(desk) = DESK.peek() else { return };
    let ended = locked(desk).free((kind, object));
    for Issued { line, offer, .. } in ended {
        line.end_freed(); // which the ledger says before the descriptor is closed
        drop(offer);
    }
}

impl Export {
    /// The ticket: send these bytes to whoever shall open the object.
    pub fn bytes(&self) -> &[u8; ENVELOPE_LEN] {
        &self.bytes
    }
    /// How many bytes an importer could reach by what it is handed: the whole of the memory that holds the object.
    pub fn exposes(&self) -> u64 {
        self.exposes
    }
    /// What has to stay of it once its object was freed: as long as that is held, its ticket answers so.
    pub fn into_freed(mut self) -> FreedExport {
        FreedExport(std::mem::take(&mut self.token))
    }
    /// A number for logs that tells exports apart; no secret.
    pub fn token_id(&self) -> u64 {
        self.token
    }
    /// Whether this process may still answer for it.
    ///
    /// # Errors
    /// [`ErrorKind::Forked`] in a child of the exporter, [`ErrorKind::Freed`] after [`freed`].
    pub fn current(&self) -> Result<()> {
        if self.fork != ur_mapping::fork_count() {
            return Err(inherited("this export"));
        }
        match locked(DESK.get()?).issued.get(&self.key) {
            Some(issued) if issued.token == self.token => Ok(()),
            _ => Err(refusal(Verdict::Freed)),
        }
    }
}
impl Drop for Export {
    fn drop(&mut self) {
        if self.token != 0
            && self.fork == ur_mapping::fork_count()
            && let Some(desk) = DESK.peek()
        {
            let withdrawn = locked(desk).withdraw(self.key, self.token);
            drop(withdrawn); // which the ledger says before the descriptor is closed, and with no lock held
        }
    }
}

/// What is left of an export whose object was freed: eight bytes here, and at most 21 where tickets are judged.
#[derive(Debug)]
pub struct FreedExport(u64);
impl Drop for FreedExport {
    fn drop(&mut self) {
        // In a forked child these are not its own: the tokens are random, and no other's goes for it.
        if let Some(desk) = DESK.peek() {
            locked(desk).forget(self.0);
        }
    }
}

impl Desk {
    /// Opens the door that the export needs, if it is closed; the hash of its directory, and whose it is.
    fn enter(&mut self, door: Door, identity: &Identity) -> Result<(u64, u32)> {
        if let Some(Attended { entrance, .. }) = self.entrances.get(&door) {
            return Ok((entrance.directory(), entrance.user()));
        }
        // First: once there is an entrance, somebody may come whom no descriptor is left for.
        self.lay_in_reserve().map_err(|e| Error::system("keep a descriptor in reserve", e))?;
        let opened = Entrance::open(identity.instance, door).and_then(|entrance| {
            liveness::watch(Source::Entrance(door), &entrance, epoll::EventFlags::IN)?;
            Ok(entrance)
        });
        if opened.is_err() && self.entrances.is_empty() {
            self.reserve = None;
        }
        let entrance = opened?;
        let place = (entrance.directory(), entrance.user());
        self.attend(door, entrance);
        Ok(place)
    }
    fn attend(&mut self, door: Door, entrance: Entrance) -> Option<Attended> {
        let look = Instant::now() + LOOK;
        let before = self.entrances.insert(door, Attended { entrance, look, is_lost: false });
        liveness::nudge(); // so that the watcher counts until that look
        before
    }
    /// Makes the descriptor in reserve, if it was given up.
    ///
    /// # Errors
    /// The system's, if there is none left.
    pub fn lay_in_reserve(&mut self) -> std::result::Result<(), Errno> {
        if self.reserve.is_none() {
            self.reserve = Some(eventfd(0, EventfdFlags::CLOEXEC)?);
        }
        Ok(())
    }
    /// Gives up the descriptor in reserve; whether there was one.
    pub fn give_up_reserve(&mut self) -> bool {
        self.reserve.take().is_some()
    }
    /// The socket behind a door.
    pub fn entrance(&self, door: Door) -> Option<&Entrance> {
        self.entrances.get(&door).map(|attended| &attended.entrance)
    }
    /// When an entrance is to be looked at next.
    pub fn next_look(&self) -> Option<Instant> {
        self.entrances.values().map(|attended| attended.look).min()
    }
    /// Looks whether importers still find the entrances, and binds anew those that they do not: what happened, for the
    /// user, to be said when the desk is unlocked.
    pub fn look_after_entrances(&mut self, now: Instant) -> Vec<String> {
        let due = self.entrances.iter().filter(|(_, attended)| attended.look <= now);
        let due: Vec<Door> = due.map(|(door, _)| *door).collect();
        due.into_iter().filter_map(|door| self.look_after(door, now)).collect()
    }
    fn look_after(&mut self, door: Door, now: Instant) -> Option<String> {
        let attended = self.entrances.get_mut(&door)?;
        attended.look = now + LOOK;
        if attended.entrance.is_in_place() {
            attended.is_lost = false;
            return None;
        }
        let was = attended.entrance.path().display().to_string();
        let again = identity().and_then(|identity| {
            let fresh = Entrance::open_again(&attended.entrance, identity.instance, door)?;
            liveness::watch(Source::Entrance(door), &fresh, epoll::EventFlags::IN)?;
            Ok(fresh)
        });
        match again {
            Ok(fresh) => {
                let is = fresh.path().display().to_string();
                if let Some(before) = self.attend(door, fresh) {
                    liveness::unwatch(&before.entrance);
                }
                Some(format!(
                    "the socket by which other processes reach what this one shares was removed from {was}: it is bound again in {is}, and tickets made before still work; keep cleaners of temporary files off that directory"
                ))
            }
            Err(_) if std::mem::replace(&mut attended.is_lost, true) => None,
            Err(e) => Some(format!(
                "the socket by which other processes reach what this one shares was removed from {was} and cannot be bound again, which is tried every two seconds: {e}"
            )),
        }
    }
    /// Closes all doors if nothing is exported; the caller has looked that nothing is leased.
    pub fn close_if_idle(&mut self) -> bool {
        if !self.issued.is_empty() {
            return false;
        }
        for (_, attended) in self.entrances.drain() {
            liveness::unwatch(&attended.entrance);
        }
        self.reserve = None;
        true
    }
    /// Takes back the export, or what is left of it.
    fn withdraw(&mut self, key: Key, token: u64) -> Option<Issued> {
        if self.issued.get(&key).is_none_or(|issued| issued.token != token) {
            self.forget(token); // the line may be another export's by now
            return None;
        }
        let issued = self.issued.remove(&key)?;
        let object = (issued.offer.kind, issued.offer.object);
        if let Some(keys) = self.of_object.get_mut(&object) {
            keys.retain(|k| *k != key);
            if keys.is_empty() {
                self.of_object.remove(&object);
            }
        }
        self.tidy();
        Some(issued)
    }
    /// All exports of an object that is no more. What stays of each is its token.
    fn free(&mut self, object: Object) -> Vec<Issued> {
        let keys = self.of_object.remove(&object).unwrap_or_default();
        let ended: Vec<_> = keys.iter().filter_map(|key| self.issued.remove(key)).collect();
        self.freed.extend(ended.iter().map(|issued| issued.token));
        self.leases.freed(object);
        if !ended.is_empty() {
            self.tidy();
        }
        ended
    }
    fn forget(&mut self, token: u64) {
        if self.freed.remove(&token) && self.freed.len() < self.freed.capacity() / SPARSE {
            self.freed.shrink_to_fit();
        }
    }
    /// After exports went.
    fn tidy(&mut self) {
        if self.issued.len() < self.issued.capacity() / SPARSE {
            self.issued.shrink_to_fit();
            self.of_object.shrink_to_fit();
        }
        if self.issued.is_empty() {
            // At once where nothing is leased: the process may be about to end, and its socket should not outlive it.
            if self.leases.is_empty() {
                self.close_if_idle();
            }
            liveness::nudge();
        }
    }
    /// What this peer may have of what it asks for; a lease begins with it.
    pub fn grant(
        &mut self,
        ticket: &[u8; ENVELOPE_LEN],
        peer: &Peer,
    ) -> std::result::Result<Granted, Verdict> {
        let issued = self.find(ticket, peer.is_same_user())?;
        if !issued.offer.access.admits(peer) {
            return Err(if peer.is_same_user() { Verdict::Denied } else { Verdict::Unknown });
        }
        let granted = Granted {
            object: (issued.offer.kind, issued.offer.object),
            size: issued.offer.size,
            payload: issued.offer.payload.clone(),
            arena: issued.line.arena().clone(),
        };
        self.leases.begin(granted.object);
        Ok(granted)
    }
    /// Only a peer of the exporter's own user learns why there is nothing.
    fn find(
        &self,
        ticket: &[u8; ENVELOPE_LEN],
        same_user: bool,
    ) -> std::result::Result<&Issued, Verdict> {
        if let Some(issued) = self.issued(ticket) {
            return Ok(issued);
        }
        let envelope = Envelope::parse(ticket).map_err(|_| Verdict::Nonsense)?;
        let was_ours = || identity().is_ok_and(|identity| is_sealed_by(ticket, &identity.key));
        Err(match same_user && was_ours() {
            true if self.freed.contains(&envelope.tag()) => Verdict::Freed,
            true => Verdict::Withdrawn,
            false => Verdict::Unknown,
        })
    }
    /// The export whose ticket has these very bytes.
    fn issued(&self, ticket: &[u8; ENVELOPE_LEN]) -> Option<&Issued> {
        let (_, ledger, index) = key_of(ticket);
        self.issued.get(&(ledger, index)).filter(|issued| same(&issued.bytes, ticket))
    }
}

/// Object, offset and length, if these bytes are a ticket of this very process as it was issued: then they are in
/// order. Why not is for [`open_own`] to say.
pub(crate) fn issued_here(ticket: &[u8; ENVELOPE_LEN]) -> Option<(u64, u64, u64)> {
    let desk = locked(DESK.peek()?);
    let offer = &desk.issued(ticket)?.offer;
    Some((offer.object, offer.offset, offer.length))
}
/// Opens a ticket of this very process: object, offset and length.
pub(crate) fn open_own(ticket: &[u8; ENVELOPE_LEN]) -> Result<(u64, u64, u64)> {
    let desk = locked(DESK.get()?);
    let offer = &desk.find(ticket, true).map_err(refusal)?.offer;
    Ok((offer.object, offer.offset, offer.length))
}

/// What a refusal says to the user.
pub(crate) fn refusal(verdict: Verdict) -> Error {
    let (kind, why) = match verdict {
        Verdict::Withdrawn => (
            ErrorKind::Withdrawn,
            "the exporter has withdrawn this ticket: ask it for a new one, and open tickets before they are put back",
        ),
        Verdict::Freed => (
            ErrorKind::Freed,
            "the exporter has freed the object behind this ticket: it must keep the object until all who need it have opened it",
        ),
        Verdict::Unknown => (
            ErrorKind::Unknown,
            "the exporter knows no such ticket, or not for this user: it never existed, was withdrawn, or was made for somebody else",
        ),
        Verdict::Denied => (
            ErrorKind::Denied,
            "the ticket's policy does not admit this process: it was made for another process or user",
        ),
        Verdict::Full => (
            ErrorKind::Full,
            "the exporter has no place left for this process (connections, by its limit on descriptors and CAUSEWAY_MAX_IMPORTERS, of which one process has a sixteenth; or its arena's counters): close what is not needed, or raise the limit where the exporter runs",
        ),
        Verdict::Descriptors => (
            ErrorKind::TooManyDescriptors,
            "the exporter has reached its limit of open descriptors: raise it there with `ulimit -n`, or close handles",
        ),
        Verdict::Lapsed => (
            ErrorKind::TimedOut,
            "this process was stopped again and again while the exporter answered, longer than it waits: try again",
        ),
        Verdict::Nonsense | Verdict::Granted => (
            ErrorKind::PeerNonsense,
            "the exporter and this process do not understand each other: are they of one version?",
        ),
    };
    Error::new(kind, why)
}

fn check(offer: &Offer) -> Result<()> {
    let unsupported = |why: &'static str| Err(Error::new(ErrorKind::Unsupported, why));
    if offer.offset.checked_add(offer.length).is_none_or(|end| end > offer.size) {
        return unsupported("the range to share is not inside the object");
    }
    match (&offer.payload, offer.kind) {
        (Payload::Event(slot), Kind::Event) if !slot.arena().is_own() => unsupported(
            "an event that was opened from a ticket cannot be shared again: share it where it was made",
        ),
        (Payload::Event(_), Kind::Event) => Ok(()),
        (Payload::Event(_), _) => unsupported("only events travel as slots"),
        (
            Payload::Bytes(bytes)
            | Payload::Driver { bytes, .. }
            | Payload::DriverRun { bytes, .. },
            _,
        ) if bytes.len() > PAYLOAD => unsupported("the driver's handle is longer than 256 bytes"),
        (Payload::DriverRun { fds, .. }, _) if fds.is_empty() || fds.len() > MOST_DESCRIPTORS => {
            unsupported(
                "the memory consists of more than 4,096 physical objects of the driver's, or of none: share parts of it",
            )
        }
        (Payload::Bytes(_), _) => Ok(()),
        (Payload::Driver { base, exposes, .. } | Payload::DriverRun { base, exposes, .. }, _) => {
            if !is_inside(*base, offer.size, *exposes) {
                return unsupported("the descriptor opens less than the object");
            }
            if offer.access.reaches_others() && !is_alone(*base, offer.size, *exposes) {
                return unsupported(SHARED);
            }
            Ok(())
        }
        (Payload::Fd { fd, base, exposes }, _) => {
            if !is_inside(*base, offer.size, *exposes) {
                return unsupported("the descriptor opens less than the object");
            }
            verify_descriptor(fd, *exposes)?;
            let alone = is_alone(*base, offer.size, *exposes);
            if offer.access.reaches_others() && !alone {
                return unsupported(SHARED);
            }
            Ok(())
        }
    }
}

const SHARED: &str = "the object shares its memory with others of this process, which an importer of another user or policy must not reach: ask for memory of its own when allocating";

/// Whether an object of `size` bytes from `base` on is inside of what a descriptor opens.
pub(crate) fn is_inside(base: u64, size: u64, exposes: u64) -> bool {
    base.checked_add(size).is_some_and(|end| end <= exposes)
}
/// Whether the descriptor opens the object and nothing else.
pub(crate) fn is_alone(base: u64, size: u64, exposes: u64) -> bool {
    let page = rustix::param::page_size() as u64;
    base == 0 && size.checked_next_multiple_of(page).is_some_and(|rounded| exposes <= rounded)
}

/// The descriptor that the ledger names for `pidfd_getfd`: only where the policy is the kernel's own, and only memory
/// that is never used again, since an importer on that way holds no lease.
fn second_way_descriptor(offer: &Offer) -> Option<i32> {
    match &offer.payload {
        Payload::Fd { fd, base, exposes }
            if offer.access == Access::SameUser
                && is_alone(*base, offer.size, *exposes)
                && fcntl_get_seals(fd).is_ok() =>
        {
            Some(fd.as_raw_fd())
        }
        _ => None,
    }
}

fn envelope_of(offer: &Offer, identity: &Identity) -> Result<Envelope> {
    let (transport, slot, slot_generation) = match &offer.payload {
        Payload::Fd { .. } => (Transport::Descriptor, 0, 0),
        Payload::Driver { .. } | Payload::DriverRun { .. } => (Transport::Driver, 0, 0),
        Payload::Bytes(_) => (Transport::Bytes, 0, 0),
        Payload::Event(slot) => (Transport::Arena, slot.index(), slot.generation()),
    };
    Ok(Envelope {
        kind: offer.kind,
        transport,
        backend: offer.backend,
        door: if offer.access.reaches_others() { Door::Others } else { Door::Private },
        uid: 0,
        instance: identity.instance,
        whence: identity.whence,
        directory: 0,
        device: offer.device,
        secret: Secret::fresh()?,
        index: 0,
        generation: 0,
        ledger: 0,
        slot,
        slot_generation,
        ledger_descriptor: -1,
        offset: offer.offset,
        length: offer.length,
        size: offer.size,
    })
}
