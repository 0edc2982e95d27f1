//! The broker: answers requests for exported objects from the peers that the access policy admits. It runs on the
//! watcher thread and serves all peers at once; no peer can make it wait. Which objects there are to hand out is kept
//! in `exports`.
use crate::{
    access::Peer,
    arena::WeakArena,
    connection::{Close, Connection, ConnectionResult, Doing, Grant, Has, PendingReply, Sent},
    entrance::Entrance,
    envelope::SocketScope,
    exports::EXPORT_TABLE,
    fork::Guarded,
    identity::{hash, identity},
    killpoint,
    limits::Limits,
    liveness::{self, Source},
    locked,
    protocol::{
        Answer, MESSAGE_LEN, Message, PATIENCE, Request, Verdict, decode_message, encode_answer,
        receive, send,
    },
    receipt::{self, is_received},
    waiting::{look, uninterrupted},
};
use rustix::{
    event::{PollFd, PollFlags, epoll::EventFlags},
    io::Errno,
    net::{SocketFlags, accept_with},
};
use std::{
    collections::{HashMap, VecDeque},
    os::fd::{AsFd, OwnedFd},
    sync::Arc,
    time::{Duration, Instant},
};

/// How many connections one call of `admit` accepts before other events are handled.
const AT_ONCE: usize = 16;
/// How long no connection is accepted at an entrance after the process has run out of descriptors.
const PAUSE: Duration = Duration::from_millis(10);
/// How long until the broker checks again whether the peers have received their descriptors, while requests wait for
/// it.
const LOOK_AGAIN: Duration = Duration::from_millis(2);
/// How soon after a connection has ended the broker first checks whether its process has ended too, and the longest
/// interval between later checks.
const ASKED_AFTER: (Duration, Duration) = (Duration::from_millis(1), Duration::from_secs(1));

/// The broker's side of all connections.
pub(crate) struct Broker {
    connections: HashMap<u64, Connection>,
    /// The limits as they were when a peer last connected.
    limits: Limits,
    next: u64,
    unread: usize,
    /// How many answers with descriptors were ever sent.
    granted: u64,
    /// The connections whose requests for descriptors wait because too many descriptors are unread, and when the broker
    /// next checks whether some were read.
    waiting: VecDeque<u64>,
    look_again: Option<Instant>,
    /// The connection that is being served. After a panic it still names the connection whose request was not
    /// completed.
    serving: Option<u64>,
    /// Whether the kernel tells which messages a peer has received; if so, no peer has to acknowledge them.
    sees_receipt: bool,
    /// The entrance at which no connection is accepted before the given time, because there were no descriptors left.
    paused: Option<(SocketScope, Instant)>,
    /// Arenas in which something waits for the end of processes whose connections have ended, and when to check next.
    departed: HashMap<u64, WeakArena>,
    ask_after: (Instant, Duration),
}

impl Broker {
    pub fn new() -> Self {
        Self {
            connections: HashMap::new(),
            limits: Limits::now(),
            next: 1,
            unread: 0,
            granted: 0,
            waiting: VecDeque::new(),
            look_again: None,
            serving: None,
            sees_receipt: receipt::is_told(),
            paused: None,
            departed: HashMap::new(),
            ask_after: (Instant::now(), ASKED_AFTER.0),
        }
    }
    /// When the next timeout of any connection, or the next periodic check, is due.
    pub fn deadline(&self) -> Option<Instant> {
        let deadlines = self.connections.values().filter_map(|connection| connection.deadline);
        let look = EXPORT_TABLE.peek().and_then(|table| locked(table).next_look());
        let ask_after = (!self.departed.is_empty()).then_some(self.ask_after.0);
        let others = [self.paused.map(|(_, until)| until), look, ask_after, self.look_again];
        deadlines.chain(others.into_iter().flatten()).min()
    }

    /// Accepts the connections that wait at an entrance.
    pub fn admit(&mut self, scope: SocketScope) {
        let Ok(table) = EXPORT_TABLE.get() else { return };
        let _none_left = locked(table).lay_in_reserve(); // then the next peer cannot be told why it is refused
        for _ in 0..AT_ONCE {
            let accepted = match locked(table).entrance(scope) {
                Some(entrance) => accept(entrance), // does not block, so the lock is held only briefly
                None => return,
            };
            match accepted {
                Ok(socket) => self.welcome(socket),
                Err(Errno::MFILE | Errno::NFILE) => {
                    if self.evict(|_| true) {
                        continue; // evicting an idle connection has freed descriptors
                    }
                    if !locked(table).give_up_reserve() {
                        return self.pause(scope);
                    }
                    if let Some(Ok(socket)) = locked(table).entrance(scope).map(accept) {
                        turn_away(&socket, Verdict::Descriptors);
                    }
                    let _none_left = locked(table).lay_in_reserve();
                }
                // The connection stays at the entrance.
                Err(Errno::NOMEM | Errno::NOBUFS | Errno::PERM) => return self.pause(scope),
                Err(_) => return, // no connection is waiting, or its peer has gone
            }
        }
    }
    pub fn welcome(&mut self, socket: OwnedFd) {
        let peer = match Peer::of(&socket) {
            Err(_) if self.evict(|_| true) => Peer::of(&socket),
            peer => peer,
        };
        let Ok(peer) = peer else { return turn_away(&socket, Verdict::Descriptors) };
        if !self.makes_room(&peer) {
            return turn_away(&socket, Verdict::Full);
        }
        let (id, socket) = (self.next, Guarded::new(socket));
        self.next += 1;
        if liveness::watch(Source::Connection(id), &socket, EventFlags::IN).is_err() {
            return turn_away(&socket, Verdict::Descriptors);
        }
        let now = Instant::now();
        let connection = Connection {
            socket,
            peer,
            watched: false,
            admitted: false,
            since: now,
            interest: EventFlags::IN,
            deadline: Some(now + PATIENCE),
            doing: Doing::Listening,
            last: None,
            session: 0,
            leases: HashMap::new(),
            sent: Sent::default(),
            joined: HashMap::new(),
        };
        self.connections.insert(id, connection);
    }
    /// Whether one more connection is within the limits, after closing an idle one if necessary.
    fn makes_room(&mut self, peer: &Peer) -> bool {
        self.limits = Limits::now();
        let (limits, who) = (self.limits, peer.who());
        let of_process = if who.is_known() { limits.of_process } else { limits.of_others };
        let is_other = !peer.is_same_user();
        self.has_room(of_process, |v| v.peer.who() == who)
            && (!is_other || self.has_room(limits.of_others, |v| !v.peer.is_same_user()))
            && self.has_room(limits.all, |_| true)
    }
    fn has_room(&mut self, limit: usize, among: impl Fn(&Connection) -> bool) -> bool {
        self.connections.values().filter(|v| among(v)).count() < limit || self.evict(among)
    }
    /// Closes the longest connected among the connections that hold nothing and have no request waiting to be read;
    /// returns whether there was one. Connections that were never admitted go first, and those that left an answer
    /// unread go last. An unread answer's connection is never closed if its peer is another user's: its descriptors are
    /// in flight, and the kernel limits how many of those this user may have.
    fn evict(&mut self, among: impl Fn(&Connection) -> bool) -> bool {
        let may_go = |v: &Connection| !v.holds() && (!v.is_expired() || v.peer.is_same_user());
        let idle = self.connections.iter().filter(|(_, v)| may_go(v) && among(v));
        let mut idle: Vec<_> = idle.collect();
        idle.sort_by_key(|(_, v)| (v.is_expired(), v.admitted, v.since));
        let mut polled: Vec<_> =
            idle.iter().map(|(_, v)| PollFd::new(&v.socket, PollFlags::IN)).collect();
        if look(&mut polled).is_err() {
            return false; // out of memory: no connection is admitted either
        }
        let mute = |polled: &PollFd<'_>| !matches!(polled.revents(), PollFlags::IN);
        let Some((id, connection)) =
            idle.iter().zip(&polled).find_map(|(v, p)| mute(p).then_some(*v))
        else {
            return false;
        };
        let id = *id;
        turn_away(&connection.socket, Verdict::Full);
        self.part(id);
        true
    }

    /// Handles an event on a connection.
    pub fn hear(&mut self, id: u64, flags: EventFlags) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        let kept = match &connection.doing {
            Doing::Sending(_) if flags.contains(EventFlags::OUT) => self.post(id),
            Doing::Listening | Doing::Unread(_) | Doing::Lapsed(_)
                if flags.contains(EventFlags::IN) =>
            {
                self.read(id).map(drop)
            }
            _ if flags.intersects(EventFlags::HUP | EventFlags::ERR) => Err(Close),
            _ => Ok(()),
        };
        if kept.is_err() {
            self.part(id);
        }
    }
    /// Reads one datagram and serves its request; returns whether there may be more.
    fn read(&mut self, id: u64) -> Result<bool, Close> {
        let connection = self.connections.get_mut(&id).ok_or(Close)?;
        let mut bytes = [0; MESSAGE_LEN];
        let received = match receive(&connection.socket, &mut bytes) {
            Ok(received) => received,
            Err(Errno::AGAIN) => return Ok(false),
            Err(Errno::INTR) => return Ok(true),
            Err(Errno::NOMEM | Errno::NOBUFS) => {
                without_memory();
                return Ok(true); // there may be one
            }
            Err(_) => return Err(Close),
        };
        // Descriptors that came with the message and are not needed are closed when `received` is dropped. A peer whose
        // message does not decode is disconnected.
        let whole = bytes.get(..received.length).and_then(decode_message);
        let Message { number, read, ends, request } = whole.ok_or(Close)?;
        let owes = match connection.doing {
            Doing::Unread(nonce) => Some((nonce, true)),
            Doing::Lapsed(nonce) => Some((nonce, false)),
            _ => None,
        };
        match owes {
            Some((nonce, counts)) if read == nonce => {
                connection.listen();
                self.unread -= usize::from(counts); // a lapsed answer is no longer counted
            }
            Some(_) if read == 0 && !request.wants_answer() => {}
            // An acknowledgement of an answer that the kernel already reported as received changes nothing.
            None if read == 0
                || connection.last.as_ref().is_some_and(|last| last.nonce == read) => {}
            _ => return Err(Close),
        }
        let connection = self.connections.get_mut(&id).ok_or(Close)?;
        ends.into_iter().try_for_each(|object| connection.end_lease(object))?;
        let kept = self.serve(id, number, request, received.rights);
        if read != 0 {
            self.serve_waiting();
        }
        kept.map(|()| true)
    }
    fn serve(
        &mut self,
        id: u64,
        number: u64,
        request: Request,
        came: Vec<OwnedFd>,
    ) -> ConnectionResult {
        let brings = matches!(request, Request::Fetch { .. } | Request::Debtor { .. });
        let waits = brings && !self.may_send_to(id) && {
            self.note_receipts();
            !self.may_send_to(id)
        };
        let connection = self.connections.get_mut(&id).ok_or(Close)?;
        if waits {
            connection.doing = Doing::Waiting(number, request, came);
            connection.deadline = Some(Instant::now() + PATIENCE);
            connection.expect(id, EventFlags::empty());
            self.waiting.push_back(id);
            self.look_again.get_or_insert_with(|| Instant::now() + LOOK_AGAIN);
            return Ok(());
        }
        match request {
            Request::Fetch { session, ticket, has_ledger, lacks_memory, participant, part } => {
                connection.session = session;
                let has = Has { ledger: has_ledger, lacks_memory, participant, part };
                let ((answer, rights), grant) = match connection.fetch(id, &ticket, came, has) {
                    Ok(granted) => granted,
                    Err(verdict) => ((Answer::of(verdict), Vec::new()), Grant::default()),
                };
                self.answer(id, number, answer, rights, grant)
            }
            Request::TakeCounter { ledger, participant } => {
                let answer = connection.take_counter(ledger, participant);
                self.reply(id, number, answer)
            }
            Request::Debtor { ledger, participant, counter } => {
                let (answer, rights) = connection.debtor(ledger, participant, counter);
                self.answer(id, number, answer, rights, Grant::default())
            }
            Request::Ping => self.reply(id, number, Answer::of(Verdict::Granted)),
            Request::Confirm { nonce } => {
                let verdict = connection.confirm(nonce)?;
                self.reply(id, number, Answer::of(verdict))
            }
            Request::GiveBack { nonce } => connection.give_back(nonce),
            Request::Resume { session, nonce } => {
                let verdict = self.resume(id, session, nonce);
                self.reply(id, number, Answer::of(verdict))
            }
            Request::ReleaseCounter { ledger, participant, counter } => {
                let arena = connection.arena(ledger, participant)?;
                arena.release_counter(participant, counter).map_err(|_| Close)
            }
            Request::SlotClosed { ledger, participant, slot, generation } => {
                let arena = connection.arena(ledger, participant)?;
                arena.slot_closed(participant, slot, generation).map_err(|_| Close)
            }
            Request::Leave { ledger, participant } => connection.leave(ledger, participant),
            Request::Read => Ok(()), // the acknowledgement came in `read` of the same message
        }
    }
    /// Whether this peer may be sent descriptors now, or has to wait until other peers, or other connections of its own
    /// process, have read theirs.
    fn may_send_to(&self, id: u64) -> bool {
        let limits = self.limits;
        let who = self.connections.get(&id).map(|v| v.peer.who());
        let keeps_unread = |v: &&Connection| matches!(v.doing, Doing::Unread(_));
        let of_process = || {
            let unread = self.connections.values().filter(keeps_unread);
            unread.filter(|v| Some(v.peer.who()) == who).count()
        };
        self.unread < limits.unread
            && (self.unread < limits.unread_of_process || of_process() < limits.unread_of_process)
    }
    /// Marks as read the answers that the kernel reports as received although their peers have not acknowledged them
    /// yet.
    fn note_receipts(&mut self) {
        let unread = self.connections.values_mut().filter(|v| matches!(v.doing, Doing::Unread(_)));
        let mut received = 0;
        for connection in unread.filter(|v| self.sees_receipt && is_received(&v.socket)) {
            connection.listen();
            received += 1;
        }
        self.unread -= received;
    }
    /// Removes and returns the longest waiting connection that may be sent descriptors now.
    fn next_waiting(&mut self) -> Option<u64> {
        let at = self.waiting.iter().position(|id| self.may_send_to(*id))?;
        self.waiting.remove(at)
    }
    /// Serves waiting requests as far as the limits allow.
    fn serve_waiting(&mut self) {
        while let Some(id) = self.next_waiting() {
            let Some(connection) = self.connections.get_mut(&id) else { continue };
            let doing = std::mem::replace(&mut connection.doing, Doing::Listening);
            let Doing::Waiting(number, request, came) = doing else {
                connection.doing = doing;
                continue;
            };
            connection.expect(id, EventFlags::IN);
            let kept = self.for_one(id, |broker| {
                killpoint::panic_at("broker.serve_waiting");
                broker.serve(id, number, request, came)
            });
            if kept.is_err()
                && let Some(connection) = self.connections.remove(&id)
            {
                self.take_leave(connection);
            }
        }
    }
    /// Sends an answer that grants nothing.
    fn reply(&mut self, id: u64, number: u64, answer: Answer) -> ConnectionResult {
        self.answer(id, number, answer, Vec::new(), Grant::default())
    }
    fn answer(
        &mut self,
        id: u64,
        number: u64,
        mut answer: Answer,
        rights: Vec<Arc<OwnedFd>>,
        grant: Grant,
    ) -> ConnectionResult {
        if !rights.is_empty() {
            let key = identity().map_err(|_| Close)?.key;
            self.granted += 1;
            answer.nonce = hash(&key, &self.granted.to_le_bytes()).max(1); // a number that no peer can guess
            answer.is_urgent = !self.sees_receipt;
        }
        let connection = self.connections.get_mut(&id).ok_or(Close)?;
        connection.doing = Doing::Sending(Box::new(PendingReply { number, answer, rights, grant }));
        connection.deadline = Some(Instant::now() + PATIENCE);
        self.post(id)
    }
    /// Sends the pending answer, or waits until the socket's buffer has space for it.
    fn post(&mut self, id: u64) -> ConnectionResult {
        let connection = self.connections.get_mut(&id).ok_or(Close)?;
        let Doing::Sending(letter) = &mut connection.doing else { return Ok(()) };
        match letter.send(&connection.socket) {
            Ok(()) => {}
            Err(Errno::TOOMANYREFS | Errno::NOMEM | Errno::NOBUFS) if !letter.rights.is_empty() => {
                return self.withdraw(id);
            }
            // Where the system has no memory for it now, it is tried again: the peer is not to lose what it has open.
            Err(error @ (Errno::AGAIN | Errno::NOMEM | Errno::NOBUFS)) => {
                connection.expect(id, EventFlags::OUT);
                if error != Errno::AGAIN {
                    without_memory();
                }
                return Ok(());
            }
            Err(_) => return Err(Close),
        }
        let (nonce, grant) = (letter.answer.nonce, std::mem::take(&mut letter.grant));
        connection.expect(id, EventFlags::IN);
        if nonce == 0 {
            connection.listen();
        } else {
            self.unread += 1;
            connection.sent(nonce, grant);
        }
        Ok(())
    }
    /// Takes back what an answer grants when the answer cannot be sent, and sends a refusal instead.
    fn withdraw(&mut self, id: u64) -> ConnectionResult {
        let connection = self.connections.get_mut(&id).ok_or(Close)?;
        let doing = std::mem::replace(&mut connection.doing, Doing::Listening);
        let number = match doing {
            Doing::Sending(letter) => {
                connection.take_back(letter.grant);
                letter.number
            }
            Doing::Waiting(number, ..) => number,
            other => {
                connection.doing = other;
                return Ok(());
            }
        };
        self.reply(id, number, Answer::of(Verdict::Descriptors))
    }

    /// Ends a connection: its peer has hung up or is to be disconnected.
    pub fn part(&mut self, id: u64) {
        if let Some(connection) = self.connections.remove(&id) {
            self.take_leave(connection);
            self.serve_waiting();
        }
    }
    fn take_leave(&mut self, mut connection: Connection) {
        let arenas: Vec<_> = connection.joined.values().cloned().collect();
        connection.release_all();
        for arena in arenas.iter().filter(|arena| arena.tend()) {
            self.departed.insert(arena.id(), arena.downgrade());
            self.ask_after = (Instant::now() + ASKED_AFTER.0, ASKED_AFTER.0);
        }
        liveness::unwatch(&connection.socket);
        if matches!(connection.doing, Doing::Unread(_)) {
            self.unread -= 1;
        }
    }
}

fn accept(entrance: &Entrance) -> Result<OwnedFd, Errno> {
    uninterrupted(|| accept_with(entrance, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK))
}

/// Tells a peer why its connection is refused. The peer may have gone, or may never read it.
fn turn_away(socket: &impl AsFd, verdict: Verdict) {
    let _ = send(socket, &encode_answer(0, &Answer::of(verdict)), &[]);
}

/// What the system has no memory for in this moment is tried again, but not at full speed.
fn without_memory() {
    std::thread::sleep(Duration::from_millis(1));
}

mod patience;
mod severed;
#[cfg(test)]
mod tests;
