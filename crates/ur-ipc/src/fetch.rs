//! The importer's side of a broker: one connection an exporter, which asks, and which is the lease: when it hangs up,
//! all that was granted over it ends. Caching what was opened is `registry`'s.
use crate::{
    ENVELOPE_LEN, Error, ErrorKind, InstanceId, Kind, Result,
    access::{Peer, is_dead},
    arena::{Arena, WeakArena},
    directory::{Tried, reach},
    envelope::{Envelope, Transport},
    exports::{is_inside, refusal, verify_descriptor},
    fork::{Guarded, inherited},
    hosts,
    joining::Joining,
    killpoint, ledger,
    liveness::{self, Source},
    locked,
    protocol::{
        ANSWER_LEN, Answer, Request, Verdict, decode_answer, encode_request, receive, send,
    },
    standing::{ArrivedPayload, Fetched, Ledger, Standing},
    turn::Turn,
};
use rustix::{
    event::{PollFd, PollFlags, Timespec, epoll::EventFlags, poll},
    io::Errno,
    net::{RecvFlags, SendFlags, Shutdown, shutdown},
    process::{PidfdFlags, getpid, pidfd_open},
};
use std::{
    collections::HashMap,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering::*},
    },
    time::{Duration, Instant},
};

/// How long an exporter may take to answer. Longer than a broker lets one importer keep others waiting.
const ANSWERED: Duration = Duration::from_secs(2);
/// Interest in nothing but the end.
const END: EventFlags = EventFlags::RDHUP;

/// A connection to an exporter's broker.
pub(crate) struct Host {
    id: u64,
    instance: InstanceId,
    socket: Guarded,
    pidfd: Option<OwnedFd>,
    gone: AtomicBool,
    turn: Turn,
    next: AtomicU64,
    /// Questions that were given up; their answers may still come, descriptors and all.
    overdue: Mutex<HashMap<u64, Option<Claim>>>,
    /// The nonce of an answer that was read; said with the next request, or in time. 0 is none.
    read: AtomicU64,
    /// What could not be said at once, and needs no answer.
    unsaid: Mutex<Vec<Request>>,
    ledgers: Mutex<HashMap<u32, Arc<ledger::Reader>>>,
    arenas: Mutex<HashMap<u32, WeakArena>>,
}

/// One open, given back when it is dropped.
pub(crate) struct Lease {
    host: Arc<Host>,
    kind: Kind,
    object: u64,
}
impl Drop for Lease {
    fn drop(&mut self) {
        self.host.tell(Request::LeaseEnd { kind: self.kind, object: self.object });
    }
}

/// What a question is for: what its answer granted is given back by this if nobody takes it.
#[derive(Clone, Copy)]
pub(crate) struct Claim {
    kind: Kind,
    /// Whether it is an event in an arena; those of a driver's own are nobody's slots.
    is_slot: bool,
    /// For slots: where they are, and under which number this process has joined that arena; 0 for not yet.
    arena: u32,
    participant: u32,
    slot: u16,
    generation: u32,
}

/// Why there is no connection.
pub(crate) enum Unreached {
    /// No socket of that name answers; what was tried.
    NoBroker(Tried),
    /// Something else.
    Failed(Error),
}
impl From<Error> for Unreached {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl Host {
    pub fn connect(envelope: &Envelope) -> Result<Arc<Self>, Unreached> {
        let socket = match reach(envelope.instance, envelope.uid, envelope.door, ANSWERED)? {
            Ok(socket) => Guarded::new(socket),
            Err(tried) => return Err(Unreached::NoBroker(tried)),
        };
        killpoint::reach("fetch.after_connect");
        let peer = Peer::of(&socket).map_err(|e| Error::system("ask who the exporter is", e))?;
        if peer.uid != envelope.uid {
            let why = format!(
                "the socket that should be the exporter's belongs to user {} and not to {}, of whom the ticket tells: it is not used",
                peer.uid, envelope.uid
            );
            return Err(Error::new(ErrorKind::Denied, why).into());
        }
        let host = Arc::new(Self {
            id: hosts::fresh_id()?,
            instance: envelope.instance,
            socket,
            pidfd: peer.into_pidfd(),
            gone: AtomicBool::new(false),
            turn: Turn::default(),
            next: AtomicU64::new(1),
            overdue: Mutex::default(),
            read: AtomicU64::new(0),
            unsaid: Mutex::default(),
            ledgers: Mutex::default(),
            arenas: Mutex::default(),
        });
        hosts::enter(&host)?;
        liveness::watch(Source::Host(host.id), &host.socket, END)?;
        if let Some(pidfd) = &host.pidfd {
            liveness::watch(Source::HostProcess(host.id), pidfd, EventFlags::IN)?;
        }
        Ok(host)
    }
    /// Its number, for the watcher.
    pub fn id(&self) -> u64 {
        self.id
    }
    /// Whether its end was noticed.
    pub fn is_buried(&self) -> bool {
        self.gone.load(Acquire)
    }
    /// Whether the exporter is dead or hung up. A look at its pidfd: nobody need have told us yet.
    pub fn is_gone(&self) -> bool {
        self.gone.load(Acquire) || self.pidfd.as_ref().is_some_and(is_dead)
    }
    fn is_ours(&self) -> Result<()> {
        if self.socket.is_ours() { Ok(()) } else { Err(inherited("what was opened from a ticket")) }
    }
    /// Whoever waits for this exporter need wait no longer.
    pub fn bury(&self) {
        if self.gone.swap(true, AcqRel) {
            return;
        }
        liveness::unwatch(&self.socket);
        if let Some(pidfd) = &self.pidfd {
            liveness::unwatch(pidfd);
        }
        let arenas: Vec<_> = locked(&self.arenas).values().filter_map(WeakArena::upgrade).collect();
        for arena in arenas {
            arena.process_died(0); // the exporter's number in its own arenas
        }
        hosts::forget(self.instance, self.id);
    }

    /// Fetches what the ticket is for.
    pub fn fetch(
        self: &Arc<Self>,
        envelope: &Envelope,
        ticket: &[u8; ENVELOPE_LEN],
    ) -> Result<Fetched> {
        let arena = self.arena(envelope.ledger);
        let reader = locked(&self.ledgers).get(&envelope.ledger).cloned();
        let participant = arena.as_ref().map_or(0, Arena::participant);
        let has_ledger = reader.is_some();
        let request = Request::Fetch { ticket: Box::new(*ticket), has_ledger, participant };
        let us = match envelope.transport {
            // Needed only where the kernel does not tell the broker who we are; it says nothing of the ticket.
            Transport::Arena if arena.is_none() => {
                match pidfd_open(getpid(), PidfdFlags::empty()) {
                    Ok(pidfd) => Some(pidfd),
                    Err(Errno::NOSYS) => None, // the broker's kernel is this one, and may tell it all the same
                    Err(e) => return Err(Error::system("open a pidfd of this process", e)),
                }
            }
            _ => None,
        };
        let rights: Vec<_> = us.iter().map(AsFd::as_fd).collect();
        let claim = Claim {
            kind: envelope.kind,
            is_slot: envelope.transport == Transport::Arena,
            arena: envelope.ledger,
            participant,
            slot: envelope.slot,
            generation: envelope.slot_generation,
        };
        let (answer, mut came) = self.ask(&request, &rights, Some(claim))?;
        let lease = Lease { host: self.clone(), kind: envelope.kind, object: answer.object };
        let payload_fd = answer.rights.payload.then(|| came.remove(0));
        let ledger_fd = answer.rights.ledger.then(|| came.remove(0));
        let arena_fd = answer.rights.arena.then(|| came.remove(0));
        let (payload, ledger) = match (envelope.transport, payload_fd) {
            (Transport::Descriptor, Some(fd)) => {
                let (base, exposes) = (answer.base, answer.exposes);
                verify_descriptor(&fd, base, envelope.size, exposes)
                    .map_err(|e| e.unless_limit(ErrorKind::PeerNonsense))?;
                let ledger = Ledger::Reader(self.reader(envelope.ledger, reader, ledger_fd)?);
                (ArrivedPayload::Fd { fd, base, exposes }, ledger)
            }
            (Transport::Driver, Some(fd)) => {
                let (base, exposes, bytes) = (answer.base, answer.exposes, answer.payload);
                if !is_inside(base, envelope.size, exposes) {
                    return Err(nonsense());
                }
                let ledger = Ledger::Reader(self.reader(envelope.ledger, reader, ledger_fd)?);
                (ArrivedPayload::Driver { fd, base, exposes, bytes }, ledger)
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
                            // Another thread joined it first. What was opened here was under a number that is given
                            // up: once more, under the one that counts, which stays as long as `joined` does.
                            drop(lease);
                            return self.fetch(envelope, ticket);
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
        let standing = Standing::Connected(self.clone(), ledger);
        Ok(Fetched { payload, object: answer.object, standing, lease: Some(lease) })
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
    /// The exporter's arena of that number, if we joined it and still hold it.
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
        let link = Arc::new(Joining { host: self.clone(), arena: number, participant });
        let arena = Arena::joined(arena, ledger, self.instance.0, number, participant, link)?;
        let mut arenas = locked(&self.arenas);
        if let Some(other) = arenas.get(&number).and_then(WeakArena::upgrade) {
            return Ok(other); // another thread was faster
        }
        arenas.insert(number, arena.downgrade());
        drop(arenas);
        if self.gone.load(Acquire) {
            arena.process_died(0); // it died before the arena was in the table
        }
        Ok(arena)
    }

    /// Asks, and waits for the answer until it must have come. Refusals are errors.
    pub fn ask(
        &self,
        request: &Request,
        rights: &[BorrowedFd<'_>],
        claim: Option<Claim>,
    ) -> Result<(Answer, Vec<OwnedFd>)> {
        self.is_ours()?;
        let deadline = Instant::now() + ANSWERED;
        let turn = self.turn.take(deadline).ok_or_else(silent)?;
        let asked = self.ask_in_turn(request, rights, claim, deadline);
        drop(turn); // first: the watcher, which hears what is overdue, does so in its turn
        if matches!(&asked, Err(e) if e.kind() == ErrorKind::TimedOut) {
            liveness::rewatch(Source::Host(self.id), &self.socket, END | EventFlags::IN);
        }
        asked
    }
    fn ask_in_turn(
        &self,
        request: &Request,
        rights: &[BorrowedFd<'_>],
        claim: Option<Claim>,
        deadline: Instant,
    ) -> Result<(Answer, Vec<OwnedFd>)> {
        self.say_unsaid();
        // One question at a time, those included that were given up.
        while !locked(&self.overdue).is_empty() {
            let (number, answer, _) = self.hear_until(deadline, None)?;
            if !self.forget(number, &answer) {
                self.hang_up();
                return Err(nonsense());
            }
        }
        let number = self.next.fetch_add(1, Relaxed);
        while let Err(e) = self.say_question(number, request, rights) {
            match e {
                // A broker that turns us away may have said why before it hung up.
                Errno::PIPE | Errno::CONNRESET => break,
                Errno::AGAIN => self.await_room(deadline)?,
                e => return Err(Error::system("ask the exporter", e)),
            }
        }
        let (got, answer, came) = self.hear_until(deadline, claim).inspect_err(|e| {
            if e.kind() == ErrorKind::TimedOut {
                locked(&self.overdue).insert(number, claim);
            }
        })?;
        match (got, answer.verdict) {
            (0, refused) => {
                self.bury(); // turned away at the door: there is no connection
                Err(refusal(refused))
            }
            (got, _) if got != number => {
                self.hang_up();
                Err(nonsense())
            }
            (_, Verdict::Granted) => Ok((answer, came)),
            (_, refused) => Err(refusal(refused)),
        }
    }
    fn hear_until(
        &self,
        deadline: Instant,
        claim: Option<Claim>,
    ) -> Result<(u64, Answer, Vec<OwnedFd>)> {
        loop {
            match self.hear_answer(RecvFlags::empty(), claim) {
                Err(e) if e.kind() == ErrorKind::TimedOut && Instant::now() < deadline => {}
                heard => return heard,
            }
        }
    }
    /// One answer, acknowledged if descriptors came with it.
    fn hear_answer(
        &self,
        flags: RecvFlags,
        claim: Option<Claim>,
    ) -> Result<(u64, Answer, Vec<OwnedFd>)> {
        let mut bytes = [0; ANSWER_LEN];
        let received = loop {
            match receive(&self.socket, &mut bytes, flags) {
                Ok(received) => break received,
                // Reset, because it hung up without hearing us; but first it may have said why. Told only once.
                Err(Errno::INTR | Errno::CONNRESET) => {}
                Err(Errno::AGAIN) => return Err(silent()),
                Err(e) => return Err(Error::system("hear the exporter's answer", e)),
            }
        };
        if received.length == 0 {
            return Err(self.lost());
        }
        let whole = bytes.get(..received.length).and_then(decode_answer);
        let Some((number, answer)) = whole else {
            self.hang_up();
            return Err(nonsense());
        };
        if answer.nonce != 0 {
            // Said right now it would wake the broker while this thread is still busy with what it was given.
            self.read.store(answer.nonce, Relaxed);
            liveness::remind();
        }
        if received.rights.len() == answer.rights.count() {
            return Ok((number, answer, received.rights));
        }
        if received.rights_lost {
            // What was granted and could not be taken in is given back.
            let overdue = locked(&self.overdue).remove(&number).flatten();
            if let Some(claim) = overdue.or(claim) {
                self.give_back(claim, &answer);
            }
            return Err(Error::system("take in the exporter's descriptors", Errno::MFILE));
        }
        self.hang_up();
        Err(nonsense())
    }
    /// Gives back what a late answer brought; whether its question was one that was given up.
    fn forget(&self, number: u64, answer: &Answer) -> bool {
        let overdue = locked(&self.overdue).remove(&number);
        if let (Verdict::Granted, Some(Some(claim))) = (answer.verdict, overdue) {
            self.give_back(claim, answer);
        }
        overdue.is_some()
    }
    /// What was granted and nobody takes.
    fn give_back(&self, claim: Claim, answer: &Answer) {
        let Claim { kind, is_slot, arena: ledger, participant, slot, generation } = claim;
        self.tell(Request::LeaseEnd { kind, object: answer.object });
        if !is_slot {
            return;
        }
        if participant == 0 {
            self.tell(Request::Leave { ledger, participant: answer.participant });
        } else if let Some(_held) = self.arena(ledger).filter(|a| a.participant() == participant) {
            // If it is held no more, this process has left it, and with it all that it had open there.
            self.tell(Request::SlotClosed { ledger, participant, slot, generation });
        }
    }
    /// Under the lock under which all else is said: what was read is acknowledged by one message, and a question that
    /// came in before that message would be taken for nonsense.
    fn say_question(
        &self,
        number: u64,
        request: &Request,
        rights: &[BorrowedFd<'_>],
    ) -> rustix::io::Result<()> {
        let _saying = locked(&self.unsaid);
        let read = self.read.swap(0, Relaxed);
        let bytes = encode_request(number, read, request);
        send(&self.socket, &bytes, rights, SendFlags::DONTWAIT).inspect_err(|e| {
            if *e == Errno::AGAIN {
                self.read.store(read, Relaxed); // not said: else it would count as never read
            }
        })
    }
    /// Until the socket takes more.
    fn await_room(&self, deadline: Instant) -> Result<()> {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(silent());
        }
        let timeout = Timespec::try_from(left).map_err(|_| silent())?;
        let mut room = [PollFd::new(&self.socket, PollFlags::OUT)];
        match poll(&mut room, Some(&timeout)) {
            Ok(0) => Err(silent()),
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(e) => Err(Error::system("wait for room on the way to the exporter", e)),
        }
    }
    /// Says what needs no answer. Never waits: what there is no room for is said later.
    pub fn tell(&self, request: Request) {
        if self.socket.is_ours() && !self.gone.load(Relaxed) {
            locked(&self.unsaid).push(request);
            self.say_unsaid();
        }
    }
    fn say_unsaid(&self) {
        let mut unsaid = locked(&self.unsaid);
        let mut said = 0;
        for request in unsaid.iter() {
            let read = self.read.swap(0, Relaxed);
            match send(&self.socket, &encode_request(0, read, request), &[], SendFlags::DONTWAIT) {
                Err(Errno::AGAIN) => {
                    self.read.store(read, Relaxed);
                    break;
                }
                _ => said += 1, // or there is nobody to tell any more
            }
        }
        unsaid.drain(..said);
        if !unsaid.is_empty() {
            liveness::rewatch(Source::Host(self.id), &self.socket, END | EventFlags::OUT);
        }
    }
    /// The connection ended.
    fn lost(&self) -> Error {
        self.bury();
        gone_error()
    }
    /// A peer that speaks nonsense is not spoken to any more.
    fn hang_up(&self) {
        let _ = shutdown(&self.socket, Shutdown::Both); // fails only if there is no other end any more
        self.bury();
    }
    /// Something happened on the connection; on the watcher thread.
    pub fn hear(&self, flags: EventFlags) {
        if flags.intersects(EventFlags::HUP | EventFlags::ERR | EventFlags::RDHUP) {
            return self.bury();
        }
        liveness::rewatch(Source::Host(self.id), &self.socket, END);
        if flags.contains(EventFlags::OUT) {
            self.say_unsaid();
        }
        // Whoever has the turn now takes it in himself.
        if flags.contains(EventFlags::IN)
            && let Some(_turn) = self.turn.try_take()
        {
            while let Ok((number, answer, _)) = self.hear_answer(RecvFlags::DONTWAIT, None) {
                if !self.forget(number, &answer) {
                    return self.hang_up();
                }
            }
            if !self.gone.load(Relaxed) && !locked(&self.overdue).is_empty() {
                liveness::rewatch(Source::Host(self.id), &self.socket, END | EventFlags::IN);
            }
        }
    }
    /// Says, on the watcher thread, what was read a while ago and not acknowledged since.
    pub fn acknowledge(&self) {
        if self.read.load(Relaxed) != 0 {
            self.tell(Request::Read);
        }
    }
}
impl Drop for Host {
    fn drop(&mut self) {
        if !self.socket.is_ours() {
            return;
        }
        if !self.gone.load(Acquire) {
            liveness::unwatch(&self.socket);
            if let Some(pidfd) = &self.pidfd {
                liveness::unwatch(pidfd);
            }
        }
        hosts::leave(self.id);
    }
}

pub(crate) fn gone_error() -> Error {
    let why = "the process that made this ticket is gone, and what it shared with it: start it again and ask for a new ticket";
    Error::new(ErrorKind::ExporterGone, why)
}
fn silent() -> Error {
    let why =
        "the exporter did not answer within two seconds: it is stopped or overloaded; try again";
    Error::new(ErrorKind::TimedOut, why)
}
fn nonsense() -> Error {
    refusal(Verdict::Nonsense)
}
