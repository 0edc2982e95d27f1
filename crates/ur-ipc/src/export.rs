//! Making an export: the offer is checked and gets a line in the ledger and a ticket; from then on the broker hands it
//! out.
use crate::{
    Access, ENVELOPE_LEN, Error, ErrorKind, Kind, Result, arena,
    envelope::{Envelope, SocketScope, Transport},
    exports::{EXPORT_TABLE, Issued, Key, MOST_DESCRIPTORS, Offer, Payload, refusal},
    fork::inherited,
    identity::{Identity, identity},
    locked,
    protocol::{PAYLOAD, Verdict},
    shared_memory::{is_alone, is_inside, verify_descriptor},
    token::Secret,
    watcher,
};
use rustix::fs::fcntl_get_seals;
use std::os::fd::AsRawFd;

/// A live export. Dropping it withdraws it without waiting for a peer.
pub struct Export {
    bytes: [u8; ENVELOPE_LEN],
    key: Key,
    /// 0 once it was turned into a [`FreedExport`].
    token: u64,
    exposes: u64,
    fork: u64,
}

/// Shares an object: makes its ticket, and starts the broker if necessary. Each call makes an export of its own.
///
/// # Errors
/// [`ErrorKind::Unsupported`] for an object that cannot be shared in this way, [`ErrorKind::Directory`] where no socket
/// can be made, [`ErrorKind::Full`] when the ledger is full, and the errors of system limits.
pub fn export(offer: Offer) -> Result<Export> {
    check(&offer)?;
    watcher::be_ready();
    let identity = identity()?;
    let table = EXPORT_TABLE.get()?;
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
    let mut table = locked(table);
    (envelope.directory, envelope.uid) = table.enter(envelope.scope, identity)?;
    let bytes = envelope.seal(&identity.key);
    table.issue(key, Issued { line, bytes, token, offer });
    Ok(Export { bytes, key, token, exposes, fork: ur_mapping::fork_count() })
}

/// Records that the owner freed the object: every export of it ends at once, although its [`Export`] may still exist,
/// and everything that was kept for it is released. Until the [`Export`] is dropped, its ticket is answered with
/// "freed".
pub fn freed(object: u64, kind: Kind) {
    let Some(table) = EXPORT_TABLE.peek() else { return };
    let ended = locked(table).free((kind, object));
    for Issued { line, offer, .. } in ended {
        line.end_freed(); // the ledger says so before the descriptor is closed
        drop(offer);
    }
}

impl Export {
    /// The ticket: send these bytes to the process that is to open the object.
    pub fn bytes(&self) -> &[u8; ENVELOPE_LEN] {
        &self.bytes
    }
    /// How many bytes an importer could reach through what it is given: all of the memory that contains the object.
    pub fn exposes(&self) -> u64 {
        self.exposes
    }
    /// What remains of the export once its object was freed. While it exists, the ticket is answered with "freed".
    pub fn into_freed(mut self) -> FreedExport {
        FreedExport(std::mem::take(&mut self.token))
    }
    /// A number that identifies the export in logs; not a secret.
    pub fn token_id(&self) -> u64 {
        self.token
    }
    /// Checks that the export still stands and is this process's own.
    ///
    /// # Errors
    /// [`ErrorKind::Forked`] in a child of the exporter, [`ErrorKind::Freed`] after [`freed`].
    pub fn current(&self) -> Result<()> {
        if self.fork != ur_mapping::fork_count() {
            return Err(inherited("this export"));
        }
        match locked(EXPORT_TABLE.get()?).stands(self.key, self.token) {
            true => Ok(()),
            false => Err(refusal(Verdict::Freed)),
        }
    }
}
impl Drop for Export {
    fn drop(&mut self) {
        if self.token != 0
            && self.fork == ur_mapping::fork_count()
            && let Some(table) = EXPORT_TABLE.peek()
        {
            let withdrawn = locked(table).withdraw(self.key, self.token);
            drop(withdrawn); // the ledger says so before the descriptor is closed; no lock is held here
        }
    }
}

/// What is left of an export whose object was freed: eight bytes here, and at most 21 in the export table.
#[derive(Debug)]
pub struct FreedExport(u64);
impl Drop for FreedExport {
    fn drop(&mut self) {
        // In a forked child this has no effect: the table is the child's own, and tokens are random, so none matches.
        if let Some(table) = EXPORT_TABLE.peek() {
            locked(table).forget(self.0);
        }
    }
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

/// The descriptor that the ledger names for `pidfd_getfd`. There is one only if the policy equals the kernel's own
/// check, and only for memory that is never reused, because an importer that takes it holds no lease.
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
        scope: if offer.access.reaches_others() {
            SocketScope::Others
        } else {
            SocketScope::Private
        },
        uid: 0,
        instance: identity.instance,
        origin: identity.origin,
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
