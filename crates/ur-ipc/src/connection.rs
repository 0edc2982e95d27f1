//! One connection to the broker: what its peer is granted, what it holds, and how everything is taken back when the
//! connection ends. The order in which connections are served, and their timeouts, are left to `broker`.
use crate::{
    ENVELOPE_LEN, Error, ErrorKind, Object,
    access::Peer,
    arena::{Arena, Debtor},
    exports::{EXPORT_TABLE, Granted, Payload},
    fork::Guarded,
    liveness::{self, Source},
    locked,
    protocol::{Answer, BATCH, PATIENCE, Request, Rights, Verdict, encode_answer, send},
    shared_memory::is_alone,
};
use rustix::{event::epoll::EventFlags, io::Errno};
use std::{
    collections::{HashMap, VecDeque},
    os::fd::{AsFd, OwnedFd},
    sync::{Arc, Weak},
    time::Instant,
};

/// How many memories each connection records as sent, so that their descriptors need not be sent again.
const REMEMBERED: usize = 64;
/// How many arenas one peer may have joined at a time. An exporter has 16 for each policy, and a peer may join a new
/// arena before it has left the old one.
const JOINED: usize = 64;

/// A connection and what its peer holds.
pub(crate) struct Connection {
    pub socket: Guarded,
    pub peer: Peer,
    /// Whether the peer's pidfd is watched, which it is from its first lease on.
    pub watched: bool,
    /// Whether the peer was ever admitted: then its connection may stay open for its next open even if it holds
    /// nothing.
    pub admitted: bool,
    /// Since when the peer holds nothing.
    pub since: Instant,
    /// The events for which the socket is watched.
    pub interest: EventFlags,
    /// When the peer must have done what is expected of it; `None` if it holds something or was admitted, and no answer
    /// is unread.
    pub deadline: Option<Instant>,
    pub doing: Doing,
    /// The latest answer that brought descriptors. The peer can refer to it until the next such answer.
    pub last: Option<Last>,
    /// The secret by which the peer, and no other, can take over what it holds to another connection. 0 is none.
    pub session: u64,
    pub leases: HashMap<Object, usize>,
    /// The shared memories that the peer was sent and that hold other objects too, the latest last.
    pub sent: Sent,
    /// The arenas that the peer joined, keyed by the arena's number and the peer's participant number in it.
    pub joined: HashMap<(u32, u32), Arena>,
}

/// The state of a connection, which has one request in progress at a time.
pub(crate) enum Doing {
    Listening,
    /// A request waits until other peers have read the descriptors that they were sent.
    Waiting(u64, Request, Vec<OwnedFd>),
    /// The answer waits for space in the socket's buffer.
    Sending(Box<PendingReply>),
    /// The peer has not yet read the answer with this nonce (or, where the kernel does not report it, has not
    /// acknowledged it).
    Unread(u64),
    /// The peer did not read the answer in time; its process may be stopped. What that answer granted has been taken
    /// back, and nothing else. Once the peer has read the answer after all, it is served again.
    Lapsed(u64),
    /// A fault in this process ended the connection: the peer may resume over another connection, or hang up. It may
    /// have read the answer with this nonce.
    Severed(Option<u64>),
}

/// What one answer granted.
#[derive(Default)]
pub(crate) struct Grant {
    /// The object on which a lease began.
    object: Option<Object>,
    /// For an event: the arena and the peer's participant number in it, and whether this answer made the peer join.
    arena: Option<((u32, u32), bool)>,
    /// The event's slot and generation, once it counts as open.
    slot: Option<(u16, u32)>,
}
/// An answer with descriptors, identified by its nonce.
pub(crate) struct Last {
    pub nonce: u64,
    /// What it granted; `None` when that has been taken back.
    grant: Option<Grant>,
}

/// An answer that waits to be sent, with its descriptors.
pub(crate) struct PendingReply {
    pub number: u64,
    pub answer: Answer,
    pub rights: Vec<Arc<OwnedFd>>,
    /// What the answer grants; taken back if the answer cannot be sent.
    pub grant: Grant,
}

/// An error that closes the connection.
pub(crate) struct Close;
pub(crate) type ConnectionResult = Result<(), Close>;

impl Connection {
    pub fn holds(&self) -> bool {
        !self.leases.is_empty() || !self.joined.is_empty()
    }
    pub fn is_waiting(&self) -> bool {
        matches!(self.doing, Doing::Waiting(..))
    }
    pub fn is_expired(&self) -> bool {
        matches!(self.doing, Doing::Lapsed(_))
    }
    /// Waits for the peer's next request. A peer that holds nothing and was never admitted gets a deadline.
    pub fn listen(&mut self) {
        self.doing = Doing::Listening;
        let now = Instant::now();
        self.deadline = (!self.holds() && !self.admitted).then(|| now + PATIENCE);
        self.since = now;
    }
    /// Watches the peer's process, unless it is watched already, so that its death is seen even if a child of it still
    /// holds the connection's socket.
    pub fn watch_process(&mut self, id: u64) {
        if let (false, Some(pidfd)) = (self.watched, self.peer.pidfd()) {
            self.watched =
                liveness::watch(Source::ConnectionProcess(id), pidfd, EventFlags::IN).is_ok();
        }
    }
    pub fn expect(&mut self, id: u64, interest: EventFlags) {
        if std::mem::replace(&mut self.interest, interest) == interest {
            return;
        }
        liveness::rewatch(Source::Connection(id), &self.socket, interest);
    }
}

impl PendingReply {
    pub fn send(&self, socket: &Guarded) -> Result<(), Errno> {
        let rights: Vec<_> = self.rights.iter().map(|fd| fd.as_fd()).collect();
        let bytes = encode_answer(self.number, &self.answer);
        send(socket, &bytes, &rights)
    }
}

/// What a peer has already, and which part of a payload it requests.
pub(crate) struct Has {
    pub ledger: bool,
    /// Whether the peer no longer has the memory that it was sent, because nothing in it is open any more.
    pub lacks_memory: bool,
    pub participant: u32,
    pub part: u32,
}

/// The memories whose descriptors a peer was sent. The peer is told a memory's number instead of being sent its
/// descriptor again, and requests the descriptor if it has not kept it.
#[derive(Default)]
pub(crate) struct Sent {
    latest: VecDeque<(Weak<OwnedFd>, u32)>,
    numbers: u32,
}
impl Sent {
    /// Returns the number of this memory, and whether its descriptor was already sent under that number.
    fn number(&mut self, fd: &Arc<OwnedFd>) -> (u32, bool) {
        let is_it = |(sent, _): &&(Weak<OwnedFd>, u32)| sent.as_ptr() == Arc::as_ptr(fd);
        if let Some((_, number)) = self.latest.iter().find(is_it) {
            return (*number, true);
        }
        if self.latest.len() >= REMEMBERED {
            self.latest.pop_front();
        }
        self.numbers = self.numbers.wrapping_add(1).max(1);
        self.latest.push_back((Arc::downgrade(fd), self.numbers));
        (self.numbers, false)
    }
}

/// An answer with its descriptors.
pub(crate) type Packed = (Answer, Vec<Arc<OwnedFd>>);

impl Connection {
    pub fn fetch(
        &mut self,
        id: u64,
        ticket: &[u8; ENVELOPE_LEN],
        came: Vec<OwnedFd>,
        has: Has,
    ) -> Result<(Packed, Grant), Verdict> {
        let table = EXPORT_TABLE.get().map_err(|_| Verdict::Nonsense)?;
        let granted = locked(table).grant(ticket, &self.peer)?;
        *self.leases.entry(granted.object).or_default() += 1;
        self.watch_process(id);
        let mut grant = Grant { object: Some(granted.object), ..Grant::default() };
        match self.pack(&granted, came, has, &mut grant) {
            Ok(packed) => {
                self.admitted = true;
                Ok((packed, grant))
            }
            Err(verdict) => {
                self.take_back(grant);
                Err(verdict)
            }
        }
    }
    fn pack(
        &mut self,
        granted: &Granted,
        came: Vec<OwnedFd>,
        Has { ledger: has_ledger, lacks_memory, participant, part }: Has,
        grant: &mut Grant,
    ) -> Result<Packed, Verdict> {
        let mut answer = Answer { object: granted.object.1, ..Answer::of(Verdict::Granted) };
        let mut rights = Vec::new();
        let mut needs_arena = false;
        match &granted.payload {
            Payload::DriverRun { fds, base, exposes, bytes } => {
                (answer.base, answer.exposes) = (*base, *exposes);
                answer.payload = bytes.to_vec();
                answer.descriptors = u16::try_from(fds.len()).map_err(|_| Verdict::Nonsense)?;
                let part = usize::try_from(part).ok().and_then(|part| fds.chunks(BATCH).nth(part));
                rights.extend_from_slice(part.ok_or(Verdict::Nonsense)?);
                answer.rights.payload = true;
                answer.rights.more = (rights.len() - 1) as u8; // at most `BATCH`, so it fits
            }
            _ if part != 0 => return Err(Verdict::Nonsense),
            Payload::Fd { fd, base, exposes } => {
                (answer.base, answer.exposes) = (*base, *exposes);
                let mut is_there = false;
                if !is_alone(*base, granted.size, *exposes) {
                    (answer.memory, is_there) = self.sent.number(fd);
                }
                answer.rights.payload = !is_there || lacks_memory;
                rights.extend(answer.rights.payload.then(|| fd.clone()));
            }
            Payload::Driver { fd, base, exposes, bytes } => {
                (answer.base, answer.exposes) = (*base, *exposes);
                answer.rights.payload = true;
                answer.payload = bytes.to_vec();
                rights.push(fd.clone());
            }
            Payload::Bytes(bytes) => answer.payload = bytes.to_vec(),
            Payload::Event(slot) => {
                answer.participant = self.join(&granted.arena, participant, came)?;
                needs_arena = participant == 0;
                grant.arena = Some(((granted.arena.number(), answer.participant), needs_arena));
                let (index, generation) = (slot.index(), slot.generation());
                let opened = granted.arena.slot_opened(answer.participant, index, generation);
                opened.map_err(|e| verdict_of(&e))?;
                grant.slot = Some((index, generation));
            }
        }
        let is_event = matches!(granted.payload, Payload::Event(_));
        if needs_arena || (!is_event && !has_ledger) {
            let (arena, ledger) = granted.arena.descriptors().map_err(|e| verdict_of(&e))?;
            answer.rights.ledger = true;
            rights.push(ledger);
            if needs_arena {
                answer.rights.arena = true;
                rights.push(arena);
            }
        }
        Ok((answer, rights))
    }
    /// The peer's number in the arena, which it joins if `known` is 0. The peer's process is identified by the pidfd
    /// that the kernel provides for the socket, or else by one that the peer sent.
    fn join(&mut self, arena: &Arena, known: u32, came: Vec<OwnedFd>) -> Result<u32, Verdict> {
        if known != 0 {
            let joined = self.joined.contains_key(&(arena.number(), known));
            return joined.then_some(known).ok_or(Verdict::Nonsense);
        }
        if self.joined.len() >= JOINED {
            return Err(Verdict::Full);
        }
        let pidfd = match self.peer.pidfd() {
            Some(pidfd) => pidfd.clone(),
            None => came.into_iter().next().ok_or(Verdict::Nonsense)?.into(),
        };
        let participant = arena.join(pidfd).map_err(|e| verdict_of(&e))?;
        self.joined.insert((arena.number(), participant), arena.clone());
        Ok(participant)
    }
    /// The arena that the peer joined under this participant number.
    pub fn arena(&self, ledger: u32, participant: u32) -> Result<&Arena, Close> {
        self.joined.get(&(ledger, participant)).ok_or(Close)
    }
    pub fn leave(&mut self, ledger: u32, participant: u32) -> ConnectionResult {
        let arena = self.joined.remove(&(ledger, participant)).ok_or(Close)?;
        arena.participant_left(participant);
        self.rest();
        Ok(())
    }
    pub fn take_counter(&self, ledger: u32, participant: u32) -> Answer {
        let Ok(arena) = self.arena(ledger, participant) else {
            return Answer::of(Verdict::Nonsense);
        };
        match arena.grant_counter(participant) {
            Ok((counter, epoch)) => Answer { counter, epoch, ..Answer::of(Verdict::Granted) },
            Err(e) => Answer::of(verdict_of(&e)),
        }
    }
    pub fn debtor(&self, ledger: u32, participant: u32, counter: u16) -> Packed {
        let granted = Answer::of(Verdict::Granted);
        match self.arena(ledger, participant).map(|arena| arena.debtor(counter)) {
            Ok(Ok(Debtor::Participant(participant, pidfd))) => {
                let rights = Rights { process: true, ..Rights::default() };
                (Answer { participant, rights, ..granted }, vec![pidfd])
            }
            Ok(Ok(Debtor::Exporter | Debtor::Nobody)) => (granted, Vec::new()),
            Ok(Err(e)) => (Answer::of(verdict_of(&e)), Vec::new()),
            Err(Close) => (Answer::of(Verdict::Nonsense), Vec::new()),
        }
    }
    pub fn end_lease(&mut self, object: Object) -> ConnectionResult {
        let count = self.leases.get_mut(&object).ok_or(Close)?;
        *count -= 1;
        if *count == 0 {
            self.leases.remove(&object);
        }
        release(object, 1);
        self.rest();
        Ok(())
    }
    /// Called when the peer has given something back: restarts its timeout if it holds nothing any more.
    fn rest(&mut self) {
        if matches!(self.doing, Doing::Listening) {
            self.listen();
        }
    }
    /// Takes back everything that the peer holds.
    pub fn release_all(&mut self) {
        for ((_, participant), arena) in self.joined.drain() {
            arena.participant_died(participant);
        }
        for (object, count) in self.leases.drain() {
            release(object, count);
        }
        if let (true, Some(pidfd)) = (std::mem::take(&mut self.watched), self.peer.pidfd()) {
            liveness::unwatch(pidfd);
        }
    }
    /// Takes over what the same peer holds on another connection, which the caller then closes.
    pub fn take_over(&mut self, id: u64, mut from: Self) {
        if let (true, Some(pidfd)) = (from.watched, from.peer.pidfd()) {
            liveness::unwatch(pidfd);
        }
        self.leases = std::mem::take(&mut from.leases);
        self.joined = std::mem::take(&mut from.joined);
        self.sent = std::mem::take(&mut from.sent);
        (self.last, self.session, self.admitted) = (from.last.take(), from.session, true);
        if self.holds() {
            self.watch_process(id);
        }
    }
    /// Undoes what the latest answer with descriptors granted, unless that has been done already.
    pub fn take_last_back(&mut self) {
        if let Some(grant) = self.last.as_mut().and_then(|last| last.grant.take()) {
            self.take_back(grant);
        }
    }
    /// Undoes what one answer granted.
    pub fn take_back(&mut self, grant: Grant) {
        match (grant.arena, grant.slot) {
            (Some(((ledger, participant), true)), _) => {
                let _ = self.leave(ledger, participant); // joined by that answer; may have been left since
            }
            (Some((key, false)), Some((slot, generation))) => {
                if let Some(arena) = self.joined.get(&key) {
                    let _ = arena.slot_closed(key.1, slot, generation); // opened by that answer
                }
            }
            _ => {}
        }
        if let Some(object) = grant.object {
            let _ = self.end_lease(object); // begun by that answer
        }
    }
    /// Records that an answer with descriptors was sent and is to be read by the peer.
    pub fn sent(&mut self, nonce: u64, grant: Grant) {
        self.doing = Doing::Unread(nonce);
        self.deadline = Some(Instant::now() + PATIENCE);
        self.last = Some(Last { nonce, grant: Some(grant) });
    }
    /// The peer did not read the answer in time: what it granted is taken back. What the peer held before stays.
    pub fn expire_grant(&mut self, nonce: u64) {
        (self.doing, self.deadline) = (Doing::Lapsed(nonce), None);
        self.take_last_back();
    }
    /// Whether what the answer with this nonce granted still stands. Only the latest answer can be asked about.
    pub fn confirm(&self, nonce: u64) -> Result<Verdict, Close> {
        let last = self.last.as_ref().filter(|last| last.nonce == nonce).ok_or(Close)?;
        Ok(if last.grant.is_some() { Verdict::Granted } else { Verdict::Lapsed })
    }
    /// The peer gives back what the answer with this nonce granted.
    pub fn give_back(&mut self, nonce: u64) -> ConnectionResult {
        let last = self.last.as_mut().filter(|last| last.nonce == nonce).ok_or(Close)?;
        if let Some(grant) = last.grant.take() {
            self.take_back(grant);
        }
        Ok(())
    }
}

fn release(object: Object, count: usize) {
    if let Some(table) = EXPORT_TABLE.peek() {
        locked(table).leases.end(object, count);
    }
}

fn verdict_of(error: &Error) -> Verdict {
    match error.kind() {
        ErrorKind::Full => Verdict::Full,
        ErrorKind::TooManyDescriptors => Verdict::Descriptors,
        _ => Verdict::Nonsense,
    }
}
