//! The export table: every export of this process with its ticket, its policy and its line in the ledger. The broker
//! looks up here what a peer may have; a process's own tickets are opened here without a broker. `export` makes the
//! exports.
use crate::{
    Access, ENVELOPE_LEN, Error, ErrorKind, Kind, Object, Result,
    access::{Peer, own_trouble},
    arena,
    entrance::Entrance,
    envelope::{Envelope, SocketScope, is_sealed_by, key_of},
    fork::PerFork,
    identity::{Identity, identity},
    leases::{self, Leases},
    liveness::{self, Source},
    locked,
    protocol::Verdict,
    token::same,
};
use rustc_hash::FxBuildHasher;
use rustix::{
    event::{EventfdFlags, epoll, eventfd},
    io::Errno,
};
use std::{
    collections::{HashMap, HashSet},
    os::fd::OwnedFd,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

/// What the exporter knows of an object. The broker uses its own copy of this and not the importer's ticket.
#[derive(Clone)]
pub struct Offer {
    /// The kind of object.
    pub kind: Kind,
    /// The adapter's number for its backend; importers of other backends refuse the ticket.
    pub backend: u16,
    /// The device's UUID; importers for other devices refuse the ticket.
    pub device: [u8; 16],
    /// The adapter's id of the allocation or object, unique among those of its kind during the life of the process.
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

/// The most descriptors that one payload may have.
pub const MOST_DESCRIPTORS: usize = 4096;

/// What an importer needs in order to open an object.
#[derive(Clone)]
pub enum Payload {
    /// A descriptor.
    Fd {
        /// The descriptor; a memfd must be sealed against shrinking.
        fd: Arc<OwnedFd>,
        /// Where the object begins in what the descriptor exposes, in bytes.
        base: u64,
        /// How many bytes the descriptor exposes.
        exposes: u64,
    },
    /// A descriptor that only the driver understands: it has no seals and tells neither size nor content. It is never
    /// offered through `pidfd_getfd`, because nothing would prove that its number still names the same object.
    Driver {
        /// The descriptor.
        fd: Arc<OwnedFd>,
        /// Where the object begins in what the descriptor exposes, in bytes.
        base: u64,
        /// How many bytes the descriptor exposes.
        exposes: u64,
        /// Further data that the importer's driver needs; at most 256 bytes.
        bytes: Arc<[u8]>,
    },
    /// Descriptors as in `Driver`, each of one physical object of the driver. Their memories in this order together are
    /// what the importer opens. At most [`MOST_DESCRIPTORS`].
    DriverRun {
        /// The descriptors, in the order of the addresses.
        fds: Arc<[Arc<OwnedFd>]>,
        /// Where the object begins in their concatenated memory, in bytes.
        base: u64,
        /// How many bytes the descriptors expose together.
        exposes: u64,
        /// Further data that the importer's driver needs; at most 256 bytes.
        bytes: Arc<[u8]>,
    },
    /// At most 256 bytes that the driver understands.
    Bytes(Arc<[u8]>),
    /// A slot in an arena of this process.
    Event(arena::Slot),
}

/// A table is shrunk when less than one in this many of its places is in use.
const SPARSE: usize = 8;

/// The key of an export: the numbers of its ledger and its line.
pub(crate) type Key = (u32, u16);

/// One export in the table.
pub(crate) struct Issued {
    /// The first field, so that the ledger says "withdrawn" before the descriptor is closed.
    pub line: arena::Line,
    pub bytes: [u8; ENVELOPE_LEN],
    pub token: u64,
    pub offer: Offer,
}

/// All exports, all leases, and the entrances through which importers connect. The tables' keys are numbers that this
/// process assigns, so that no peer can choose how they hash.
#[derive(Default)]
pub(crate) struct ExportTable {
    issued: HashMap<Key, Issued, FxBuildHasher>,
    of_object: HashMap<Object, HashSet<Key, FxBuildHasher>, FxBuildHasher>,
    /// The tokens of exports whose objects were freed and whose [`Export`](crate::Export) still exists: all that is
    /// left of them.
    freed: HashSet<u64, FxBuildHasher>,
    pub leases: Leases,
    entrances: HashMap<SocketScope, Attended>,
    /// A spare descriptor, held while there is an entrance. It is given up briefly when descriptors run out, so that a
    /// connecting peer can be told the reason.
    reserve: Option<OwnedFd>,
}
/// An entrance and when it is checked: cleaners of temporary directories, and a logout, remove socket names that are in
/// use.
struct Attended {
    entrance: Entrance,
    /// When the entrance is checked next.
    look: Instant,
    /// Whether the user was already told that importers cannot find it.
    is_lost: bool,
}
pub(crate) static EXPORT_TABLE: PerFork<Mutex<ExportTable>> = PerFork::new();

/// How often an exporter checks whether its sockets still have their names.
const LOOK: Duration = Duration::from_secs(2);

/// What a peer is granted.
pub(crate) struct Granted {
    pub object: Object,
    pub size: u64,
    pub payload: Payload,
    /// The arena whose ledger has the export's line.
    pub arena: arena::Arena,
}

impl ExportTable {
    /// Opens the entrance that an export needs, if it is closed; returns the hash of its directory, and the directory's
    /// owner.
    pub fn enter(&mut self, scope: SocketScope, identity: &Identity) -> Result<(u64, u32)> {
        if let Some(Attended { entrance, .. }) = self.entrances.get(&scope) {
            return Ok((entrance.directory(), entrance.user()));
        }
        if let Some(why) = own_trouble() {
            return Err(Error::new(ErrorKind::Denied, why));
        }
        // Before the entrance: once that exists, a peer may connect for whom no descriptor is left.
        self.lay_in_reserve().map_err(|e| Error::system("keep a descriptor in reserve", e))?;
        let opened = Entrance::open(identity.instance, scope).and_then(|entrance| {
            liveness::watch(Source::Entrance(scope), &entrance, epoll::EventFlags::IN)?;
            Ok(entrance)
        });
        if opened.is_err() && self.entrances.is_empty() {
            self.reserve = None;
        }
        let entrance = opened?;
        let place = (entrance.directory(), entrance.user());
        self.attend(scope, entrance);
        Ok(place)
    }
    fn attend(&mut self, scope: SocketScope, entrance: Entrance) -> Option<Attended> {
        let look = Instant::now() + LOOK;
        let before = self.entrances.insert(scope, Attended { entrance, look, is_lost: false });
        liveness::nudge(); // so that the watcher thread takes the time of the check into account
        before
    }
    /// Makes the spare descriptor if it was given up.
    ///
    /// # Errors
    /// The system's error if there is none left.
    pub fn lay_in_reserve(&mut self) -> std::result::Result<(), Errno> {
        if self.reserve.is_none() {
            self.reserve = Some(eventfd(0, EventfdFlags::CLOEXEC)?);
        }
        Ok(())
    }
    /// Gives up the spare descriptor; returns whether there was one.
    pub fn give_up_reserve(&mut self) -> bool {
        self.reserve.take().is_some()
    }
    /// The listening socket of this kind.
    pub fn entrance(&self, scope: SocketScope) -> Option<&Entrance> {
        self.entrances.get(&scope).map(|attended| &attended.entrance)
    }
    /// When an entrance is to be checked next.
    pub fn next_look(&self) -> Option<Instant> {
        self.entrances.values().map(|attended| attended.look).min()
    }
    /// Checks whether importers still find the entrances, and binds again those that they do not find. Returns notices
    /// for the user, which the caller passes on once it has released the table's lock.
    pub fn look_after_entrances(&mut self, now: Instant) -> Vec<String> {
        let due = self.entrances.iter().filter(|(_, attended)| attended.look <= now);
        let due: Vec<SocketScope> = due.map(|(scope, _)| *scope).collect();
        due.into_iter().filter_map(|scope| self.look_after(scope, now)).collect()
    }
    fn look_after(&mut self, scope: SocketScope, now: Instant) -> Option<String> {
        let attended = self.entrances.get_mut(&scope)?;
        attended.look = now + LOOK;
        if attended.entrance.is_in_place() {
            attended.is_lost = false;
            return None;
        }
        let was = attended.entrance.path().display().to_string();
        let again = identity().and_then(|identity| {
            let fresh = Entrance::open_again(&attended.entrance, identity.instance, scope)?;
            liveness::watch(Source::Entrance(scope), &fresh, epoll::EventFlags::IN)?;
            Ok(fresh)
        });
        match again {
            Ok(fresh) => {
                let is = fresh.path().display().to_string();
                if let Some(before) = self.attend(scope, fresh) {
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
    /// Closes all entrances if nothing is exported. The caller has checked that nothing is leased.
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
    pub fn issue(&mut self, key: Key, issued: Issued) {
        let object = (issued.offer.kind, issued.offer.object);
        self.of_object.entry(object).or_default().insert(key);
        self.issued.insert(key, issued);
    }
    /// Whether the export with this token stands under this key.
    pub fn stands(&self, key: Key, token: u64) -> bool {
        self.issued.get(&key).is_some_and(|issued| issued.token == token)
    }
    /// Removes the export, or what is left of it if its object was freed.
    pub fn withdraw(&mut self, key: Key, token: u64) -> Option<Issued> {
        if !self.stands(key, token) {
            self.forget(token); // the line may have been given to another export
            return None;
        }
        let issued = self.issued.remove(&key)?;
        let object = (issued.offer.kind, issued.offer.object);
        if let Some(keys) = self.of_object.get_mut(&object) {
            keys.remove(&key);
            if keys.is_empty() {
                self.of_object.remove(&object);
            }
        }
        self.tidy();
        Some(issued)
    }
    /// Removes all exports of a freed object. Only their tokens are kept.
    pub fn free(&mut self, object: Object) -> Vec<Issued> {
        let keys = self.of_object.remove(&object).unwrap_or_default();
        let ended: Vec<_> = keys.iter().filter_map(|key| self.issued.remove(key)).collect();
        self.freed.extend(ended.iter().map(|issued| issued.token));
        self.leases.freed(object);
        if !ended.is_empty() {
            self.tidy();
        }
        ended
    }
    pub fn forget(&mut self, token: u64) {
        if self.freed.remove(&token) && self.freed.len() < self.freed.capacity() / SPARSE {
            self.freed.shrink_to_fit();
        }
    }
    /// Shrinks the tables, and closes the entrances if possible, after exports were removed.
    fn tidy(&mut self) {
        if self.issued.len() < self.issued.capacity() / SPARSE {
            self.issued.shrink_to_fit();
            self.of_object.shrink_to_fit();
        }
        if self.issued.is_empty() {
            // At once if nothing is leased: the process may be about to end, and its socket should not outlive it.
            if self.leases.is_empty() {
                self.close_if_idle();
            }
            liveness::nudge();
        }
    }
    /// Grants a peer the object of its ticket, if the policy admits the peer, and begins a lease on it.
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
    /// Looks up a ticket. Only a peer of the exporter's own user learns why there is no export for it.
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
    /// The export whose ticket has exactly these bytes.
    fn issued(&self, ticket: &[u8; ENVELOPE_LEN]) -> Option<&Issued> {
        let (_, ledger, index) = key_of(ticket);
        self.issued.get(&(ledger, index)).filter(|issued| same(&issued.bytes, ticket))
    }
}

/// Notifies adapters which of their freed objects no process has open any more.
pub(crate) fn tell_gone() {
    let gone = EXPORT_TABLE.peek().map(|table| locked(table).leases.gone());
    leases::tell(gone.unwrap_or_default());
}
/// Whether some other process has the object open. After [`crate::freed`] this changes only from true to false, and the
/// functions registered with [`crate::on_leases_gone`] are told of the change.
pub fn leased(object: u64, kind: Kind) -> bool {
    EXPORT_TABLE.peek().is_some_and(|table| locked(table).leases.is_held((kind, object)))
}

/// Object, offset and length, if these bytes are a ticket of this process exactly as it was issued, which implies that
/// they are valid. If they are not, [`open_own`] tells why.
pub(crate) fn issued_here(ticket: &[u8; ENVELOPE_LEN]) -> Option<(u64, u64, u64)> {
    let table = locked(EXPORT_TABLE.peek()?);
    let offer = &table.issued(ticket)?.offer;
    Some((offer.object, offer.offset, offer.length))
}
/// Opens a ticket of this process: object, offset and length.
pub(crate) fn open_own(ticket: &[u8; ENVELOPE_LEN]) -> Result<(u64, u64, u64)> {
    let table = locked(EXPORT_TABLE.get()?);
    let offer = &table.find(ticket, true).map_err(refusal)?.offer;
    Ok((offer.object, offer.offset, offer.length))
}

/// The error for the user that corresponds to a refusal.
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
