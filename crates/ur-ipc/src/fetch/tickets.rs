//! Fetching what a ticket names over a connection, and verifying it as far as the kernel can tell.
use super::{Held, Host, State, lease::Lease, nonsense, pending::GrantClaim};
use crate::{
    ENVELOPE_LEN, Error, ErrorKind, Kind, Result,
    arena::{Arena, EXPORTER, WeakArena},
    deadline::Deadline,
    envelope::{Envelope, Transport},
    exports::MOST_DESCRIPTORS,
    joining::Joining,
    ledger, locked,
    protocol::{BATCH, Request},
    shared_memory::{SharedMemory, is_inside},
    standing::{ArrivedPayload, Fetched, Ledger, Standing},
};
use rustix::{
    io::Errno,
    process::{PidfdFlags, getpid, pidfd_open},
};
use std::{
    os::fd::{AsFd, OwnedFd},
    sync::{Arc, Weak},
};

impl Host {
    /// Fetches what the ticket names, by the deadline.
    pub fn fetch(
        self: &Arc<Self>,
        envelope: &Envelope,
        ticket: &[u8; ENVELOPE_LEN],
        deadline: &Deadline,
    ) -> Result<Fetched> {
        match self.fetch_once(envelope, ticket, deadline, false)? {
            Some(fetched) => Ok(fetched),
            None => {
                let again = self.fetch_once(envelope, ticket, deadline, true)?;
                again.ok_or_else(nonsense)
            }
        }
    }
    /// Returns `None` if the answer refers to memory whose last open was closed here meanwhile: it has to be sent
    /// again.
    fn fetch_once(
        self: &Arc<Self>,
        envelope: &Envelope,
        ticket: &[u8; ENVELOPE_LEN],
        deadline: &Deadline,
        lacks_memory: bool,
    ) -> Result<Option<Fetched>> {
        let arena = self.arena(envelope.ledger);
        let reader = locked(&self.ledgers).get(&envelope.ledger).cloned();
        let participant = arena.as_ref().map_or(0, Arena::participant);
        let has_ledger = reader.is_some();
        let (session, part) = (self.session, 0);
        let request = Request::Fetch {
            session,
            ticket: Box::new(*ticket),
            has_ledger,
            lacks_memory,
            participant,
            part,
        };
        let mut refused = None;
        let us = match envelope.transport {
            // Needed only where the kernel does not tell the broker which process this is; the broker trusts it for
            // nothing else.
            Transport::Arena if arena.is_none() => {
                match pidfd_open(getpid(), PidfdFlags::empty()) {
                    Ok(pidfd) => Some(pidfd),
                    Err(e @ (Errno::MFILE | Errno::NFILE | Errno::NOMEM)) => {
                        return Err(Error::system("open a pidfd of this process", e));
                    }
                    // The call is missing or a filter forbids it: the kernel may identify this process to the broker
                    // all the same.
                    Err(e) => {
                        refused = Some(e);
                        None
                    }
                }
            }
            _ => None,
        };
        let rights: Vec<_> = us.iter().map(AsFd::as_fd).collect();
        let claim = GrantClaim::Open {
            kind: envelope.kind,
            is_slot: envelope.transport == Transport::Arena,
            arena: envelope.ledger,
            participant,
            slot: envelope.slot,
            generation: envelope.slot_generation,
        };
        let asked = self.ask_by(deadline, &request, &rights, Some(claim));
        let (answer, mut came) = asked.map_err(|e| match (e.kind(), refused) {
            // The broker could not find out which process this is.
            (ErrorKind::PeerNonsense, Some(errno)) => {
                Error::system("open a pidfd of this process (pidfd_open)", errno)
            }
            _ => e,
        })?;
        let lease = Lease::new(self, (envelope.kind, answer.object), envelope.size);
        let more = usize::from(answer.rights.more);
        let payload_fd = answer.rights.payload.then(|| came.remove(0));
        let behind: Vec<_> = came.drain(..more).collect(); // as many as were announced, which was checked on receipt
        let ledger_fd = answer.rights.ledger.then(|| came.remove(0));
        let arena_fd = answer.rights.arena.then(|| came.remove(0));
        let (payload, ledger) = match (envelope.transport, payload_fd) {
            (Transport::Descriptor, fd) => {
                let ledger = Ledger::Reader(self.reader(envelope.ledger, reader, ledger_fd)?);
                let Some(memory) = self.memory(fd, answer.memory, answer.exposes)? else {
                    return Ok(None);
                };
                if !memory.has(answer.base, envelope.size) {
                    return Err(nonsense());
                }
                (ArrivedPayload::Memory { memory, base: answer.base }, ledger)
            }
            (Transport::Driver, Some(fd)) => {
                let (base, exposes, bytes) = (answer.base, answer.exposes, answer.payload);
                if !is_inside(base, envelope.size, exposes) {
                    return Err(nonsense());
                }
                let ledger = Ledger::Reader(self.reader(envelope.ledger, reader, ledger_fd)?);
                let whole = usize::from(answer.descriptors);
                if whole == 0 && behind.is_empty() {
                    (ArrivedPayload::Driver { fd, base, exposes, bytes }, ledger)
                } else {
                    let mut fds = vec![fd];
                    fds.extend(behind);
                    let object = (envelope.kind, answer.object);
                    self.fetch_rest(ticket, claim, object, whole, &mut fds, deadline)?;
                    (ArrivedPayload::DriverRun { fds, base, exposes, bytes }, ledger)
                }
            }
            (Transport::Bytes, None) => {
                let ledger = Ledger::Reader(self.reader(envelope.ledger, reader, ledger_fd)?);
                (ArrivedPayload::Bytes(answer.payload), ledger)
            }
            (Transport::Arena, None) => {
                let arena = match (arena, arena_fd, ledger_fd) {
                    (Some(arena), ..) => arena,
                    (None, Some(arena), Some(ledger)) => {
                        let joined =
                            self.join(envelope.ledger, &arena, &ledger, answer.participant)?;
                        if joined.participant() != answer.participant {
                            // Another thread joined first. This open used a participant number that is now given up:
                            // repeat it under the number that stays, which is valid as long as `joined` is held.
                            drop(lease);
                            return self.fetch(envelope, ticket, deadline).map(Some);
                        }
                        joined
                    }
                    _ => return Err(nonsense()),
                };
                let slot = arena.open_slot(envelope.slot, envelope.slot_generation)?;
                (ArrivedPayload::Event(slot), Ledger::Arena(arena))
            }
            _ => return Err(nonsense()),
        };
        self.check_way()?; // the lease may have come too late to keep the connection
        let standing = Standing::Connected(self.clone(), ledger);
        Ok(Some(Fetched { payload, object: answer.object, standing, lease: Some(lease) }))
    }
    /// The memory that came with the answer or came earlier under this number; `None` if it is no longer held.
    fn memory(
        &self,
        came: Option<OwnedFd>,
        number: u32,
        exposes: u64,
    ) -> Result<Option<Arc<SharedMemory>>> {
        let Some(fd) = came else {
            return Ok(locked(&self.memory).get(&number).and_then(Weak::upgrade));
        };
        let memory = SharedMemory::verify(fd, exposes, number != 0);
        let memory = Arc::new(memory.map_err(|e| e.unless_limit(ErrorKind::PeerNonsense))?);
        if number != 0 {
            let mut all = locked(&self.memory);
            if all.len() == all.capacity() {
                all.retain(|_, memory| memory.strong_count() > 0);
            }
            all.insert(number, Arc::downgrade(&memory));
        }
        Ok(Some(memory))
    }
    /// Fetches the remaining parts of a payload of `whole` descriptors and appends them to the first part's.
    fn fetch_rest(
        self: &Arc<Self>,
        ticket: &[u8; ENVELOPE_LEN],
        claim: GrantClaim,
        (kind, object): (Kind, u64),
        whole: usize,
        fds: &mut Vec<OwnedFd>,
        deadline: &Deadline,
    ) -> Result<()> {
        if !(fds.len()..=MOST_DESCRIPTORS).contains(&whole) || fds.len() != whole.min(BATCH) {
            return Err(nonsense());
        }
        while fds.len() < whole {
            let part = (fds.len() / BATCH) as u32;
            let (session, ticket) = (self.session, Box::new(*ticket));
            let (has_ledger, lacks_memory, participant) = (true, false, 0);
            let request =
                Request::Fetch { session, ticket, has_ledger, lacks_memory, participant, part };
            let (answer, came) = self.ask_by(deadline, &request, &[], Some(claim))?;
            // Each part is a lease of its own; only the first part's is kept.
            let _lease = Lease::new(self, (kind, answer.object), 0);
            let is_next = answer.object == object
                && usize::from(answer.descriptors) == whole
                && came.len() == (whole - fds.len()).min(BATCH);
            if !is_next {
                return Err(nonsense());
            }
            fds.extend(came);
        }
        Ok(())
    }
    fn reader(
        &self,
        number: u32,
        known: Option<Arc<ledger::Reader>>,
        came: Option<OwnedFd>,
    ) -> Result<Arc<ledger::Reader>> {
        match (known, came) {
            (Some(reader), _) => Ok(reader),
            (None, Some(fd)) => {
                let reader = Arc::new(ledger::Reader::of(fd.as_fd(), self.instance.0, number)?);
                Ok(locked(&self.ledgers).entry(number).or_insert(reader).clone())
            }
            (None, None) => Err(nonsense()),
        }
    }
    /// The exporter's arena with this number, if this process has joined it and still holds it.
    pub fn arena(&self, number: u32) -> Option<Arena> {
        locked(&self.arenas).get(&number).and_then(WeakArena::upgrade)
    }
    fn join(
        self: &Arc<Self>,
        number: u32,
        arena: &OwnedFd,
        ledger: &OwnedFd,
        participant: u32,
    ) -> Result<Arena> {
        let link = Arc::new(Joining { host: Held::new(self), arena: number, participant });
        let arena = Arena::joined(arena, ledger, self.instance.0, number, participant, link)?;
        let mut arenas = locked(&self.arenas);
        if let Some(other) = arenas.get(&number).and_then(WeakArena::upgrade) {
            return Ok(other); // another thread joined first
        }
        arenas.insert(number, arena.downgrade());
        drop(arenas);
        // The connection may have ended before the arena was in the table.
        match self.state() {
            State::Gone => arena.process_died(EXPORTER),
            State::Cut => arena.orphan(),
            State::Connected | State::Suspect => {}
        }
        Ok(arena)
    }
}
