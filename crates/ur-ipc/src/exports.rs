//! What this process shares: every export with its ticket, its policy and its line in the ledger. The broker asks here
//! what a peer may have; opening one's own ticket is answered here without a broker.
use crate::{
    Access, ENVELOPE_LEN, Error, ErrorKind, Kind, Result,
    access::Peer,
    arena,
    directory::Entrance,
    envelope::{Door, Envelope, Transport, is_sealed_by, key_of},
    fork::{PerFork, inherited},
    identity::{Identity, identity},
    leases::{Leases, Object},
    ledger,
    liveness::{self, Source},
    locked,
    protocol::{PAYLOAD, Verdict},
    token::{Secret, same},
};
use rustc_hash::FxBuildHasher;
use rustix::{
    event::epoll,
    fs::{FileType, SealFlags, fcntl_get_seals, fstat},
    io::Errno,
};
use std::{
    collections::HashMap,
    os::fd::{AsFd, AsRawFd, OwnedFd},
    sync::{Arc, Mutex},
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
    /// At most 256 bytes that the driver understands.
    Bytes(Arc<[u8]>),
    /// A slot in an arena of this process.
    Event(arena::Slot),
}

/// A live export; dropping it withdraws it, without waiting for anybody.
pub struct Export {
    bytes: [u8; ENVELOPE_LEN],
    key: Key,
    token: u64,
    exposes: u64,
    fork: u64,
}

/// An export's ledger and line.
type Key = (u32, u16);

/// One export as the desk keeps it.
struct Issued {
    /// First, so that the ledger says "withdrawn" before the descriptor is closed.
    line: arena::Line,
    bytes: [u8; ENVELOPE_LEN],
    offer: Offer,
    freed: bool,
}

/// All exports, all leases, and the entrances through which importers come. The tables' keys are numbers of this
/// process's own, so that nobody outside chooses where they fall.
#[derive(Default)]
pub(crate) struct Desk {
    issued: HashMap<Key, Issued, FxBuildHasher>,
    of_object: HashMap<Object, Vec<Key>, FxBuildHasher>,
    pub leases: Leases,
    entrances: HashMap<Door, Entrance>,
}
pub(crate) static DESK: PerFork<Mutex<Desk>> = PerFork::new();

/// What a peer is to be given.
pub(crate) struct Granted {
    pub object: Object,
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
        Payload::Fd { exposes, .. } | Payload::Driver { exposes, .. } => *exposes,
        Payload::Bytes(_) => offer.size,
        Payload::Event(_) => 0,
    };
    let key = (envelope.ledger, envelope.index);
    let mut desk = locked(desk);
    (envelope.directory, envelope.uid) = desk.enter(envelope.door, identity)?;
    let bytes = envelope.seal(&identity.key);
    desk.of_object.entry((offer.kind, offer.object)).or_default().push(key);
    desk.issued.insert(key, Issued { line, bytes, offer, freed: false });
    Ok(Export { bytes, key, token, exposes, fork: ur_mapping::fork_count() })
}

/// Says that the owner freed the object: every export of it answers so from now on, and stays until it is dropped.
pub fn freed(object: u64, kind: Kind) {
    let Some(desk) = DESK.peek() else { return };
    let mut desk = locked(desk);
    let desk = &mut *desk;
    for key in desk.of_object.get(&(kind, object)).into_iter().flatten() {
        if let Some(issued) = desk.issued.get_mut(key) {
            issued.freed = true;
            issued.line.mark(ledger::State::Freed);
        }
    }
    desk.leases.freed((kind, object));
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
            Some(issued) if !issued.freed => Ok(()),
            _ => Err(refusal(Verdict::Freed)),
        }
    }
}
impl Drop for Export {
    fn drop(&mut self) {
        if self.fork == ur_mapping::fork_count()
            && let Some(desk) = DESK.peek()
        {
            let withdrawn = locked(desk).withdraw(self.key);
            drop(withdrawn); // which the ledger says before the descriptor is closed, and with no lock held
        }
    }
}

impl Desk {
    /// Opens the door that the export needs, if it is closed; the hash of its directory, and whose it is.
    fn enter(&mut self, door: Door, identity: &Identity) -> Result<(u64, u32)> {
        if let Some(entrance) = self.entrances.get(&door) {
            return Ok((entrance.directory(), entrance.user()));
        }
        let entrance = Entrance::open(identity.instance, door)?;
        liveness::watch(Source::Entrance(door), &entrance, epoll::EventFlags::IN)?;
        let place = (entrance.directory(), entrance.user());
        self.entrances.insert(door, entrance);
        Ok(place)
    }
    /// The socket behind a door.
    pub fn entrance(&self, door: Door) -> Option<&Entrance> {
        self.entrances.get(&door)
    }
    /// Closes all doors if nothing is exported; the caller has looked that nothing is leased.
    pub fn close_if_idle(&mut self) -> bool {
        if !self.issued.is_empty() {
            return false;
        }
        for (_, entrance) in self.entrances.drain() {
            liveness::unwatch(&entrance);
        }
        true
    }
    fn withdraw(&mut self, key: Key) -> Option<Issued> {
        let issued = self.issued.remove(&key)?;
        let object = (issued.offer.kind, issued.offer.object);
        if let Some(keys) = self.of_object.get_mut(&object) {
            keys.retain(|k| *k != key);
            if keys.is_empty() {
                self.of_object.remove(&object);
            }
        }
        if self.issued.is_empty() {
            // At once where nothing is leased: the process may be about to end, and its socket should not outlive it.
            if self.leases.is_empty() {
                self.close_if_idle();
            }
            liveness::nudge();
        }
        Some(issued)
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
        match self.issued(ticket) {
            Some(issued) if !issued.freed => return Ok(issued),
            Some(_) if same_user => return Err(Verdict::Freed),
            _ => {}
        }
        Envelope::parse(ticket).map_err(|_| Verdict::Nonsense)?;
        let was_ours = || identity().is_ok_and(|identity| is_sealed_by(ticket, &identity.key));
        Err(if same_user && was_ours() { Verdict::Withdrawn } else { Verdict::Unknown })
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
    let offer = &desk.issued(ticket).filter(|issued| !issued.freed)?.offer;
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
            "the exporter has no place left for this process (64 connections a user, 256 in all, and its arena's counters): close what is not needed",
        ),
        Verdict::Descriptors => (
            ErrorKind::TooManyDescriptors,
            "the exporter has reached its limit of open descriptors: raise it there with `ulimit -n`, or close handles",
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
        (Payload::Bytes(bytes) | Payload::Driver { bytes, .. }, _) if bytes.len() > PAYLOAD => {
            unsupported("the driver's handle is longer than 256 bytes")
        }
        (Payload::Bytes(_), _) => Ok(()),
        (Payload::Driver { base, exposes, .. }, _) => {
            if !is_inside(*base, offer.size, *exposes) {
                return unsupported("the descriptor opens less than the object");
            }
            if offer.access.reaches_others() && !is_alone(*base, offer.size, *exposes) {
                return unsupported(SHARED);
            }
            Ok(())
        }
        (Payload::Fd { fd, base, exposes }, _) => {
            verify_descriptor(fd, *base, offer.size, *exposes)?;
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
fn is_alone(base: u64, size: u64, exposes: u64) -> bool {
    let page = rustix::param::page_size() as u64;
    base == 0 && size.checked_next_multiple_of(page).is_some_and(|rounded| exposes <= rounded)
}

/// That a descriptor is what is said of it, and cannot lose its pages under those who map it.
pub(crate) fn verify_descriptor(fd: &impl AsFd, base: u64, size: u64, exposes: u64) -> Result<()> {
    let refuse = |why: &'static str| Err(Error::new(ErrorKind::Unsupported, why));
    if !is_inside(base, size, exposes) {
        return refuse("the descriptor opens less than the object");
    }
    let stat = fstat(fd).map_err(|e| Error::system("look at the descriptor", e))?;
    match fcntl_get_seals(fd) {
        Ok(seals) if !seals.contains(SealFlags::SHRINK) => {
            refuse("the memory behind the descriptor is not sealed against shrinking")
        }
        Ok(_) if u64::try_from(stat.st_size) != Ok(exposes) => {
            refuse("the memory behind the descriptor has another size than was said")
        }
        Ok(_) => Ok(()),
        // No memfd: a driver's descriptor is the driver's to judge, but a file can be cut at any time.
        Err(Errno::INVAL) if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile => {
            refuse("the descriptor is a file's, and files can be cut under those who map them")
        }
        Err(Errno::INVAL) => Ok(()),
        Err(e) => Err(Error::system("read the descriptor's seals", e)),
    }
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
        Payload::Driver { .. } => (Transport::Driver, 0, 0),
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
