//! Hands out what is exported, to those whom its policy admits. Runs on the watcher thread, for all peers at once, none
//! of which can make it wait. What there is to hand out is `exports`' to say.
use crate::{
    access::Peer,
    directory::Entrance,
    envelope::Door,
    exports::DESK,
    fork::Guarded,
    identity::{hash, identity},
    leases::Object,
    liveness::{self, Source},
    locked,
    protocol::{
        Answer, PATIENCE, REQUEST_LEN, Request, Verdict, decode_request, encode_answer, receive,
        send,
    },
    visitor::{Close, Doing, Kept, Letter, Visitor},
};
use rustix::{
    event::{EventfdFlags, PollFd, PollFlags, Timespec, epoll::EventFlags, eventfd, poll},
    io::Errno,
    net::{RecvFlags, SendFlags, SocketFlags, accept_with},
};
use std::{
    collections::{HashMap, VecDeque},
    os::fd::{AsFd, OwnedFd},
    sync::Arc,
    time::{Duration, Instant},
};

/// Connections of one user.
const PER_USER: usize = 64;
/// Connections in all.
const IN_ALL: usize = 256;
/// Answers with descriptors that their askers have not read yet. At 1,025 descriptors the kernel would let nobody of
/// this user send any.
const UNREAD: usize = 64;
/// Connections accepted in one go, before others are heard again.
const AT_ONCE: usize = 16;
/// For so long nobody is let in once there is no descriptor for it.
const PAUSE: Duration = Duration::from_millis(10);

/// The broker's side of all connections.
pub(crate) struct Broker {
    visitors: HashMap<u64, Visitor>,
    next: u64,
    unread: usize,
    /// Answers with descriptors, ever.
    granted: u64,
    /// Who asks for descriptors while too many are unread.
    waiting: VecDeque<u64>,
    /// Given up for an instant when descriptors run out, so that a peer can be told so.
    reserve: Option<OwnedFd>,
    /// Doors that nobody is let in at until then, for want of descriptors.
    paused: Option<(Door, Instant)>,
}

impl Broker {
    pub fn new() -> Self {
        Self {
            visitors: HashMap::new(),
            next: 1,
            unread: 0,
            granted: 0,
            waiting: VecDeque::new(),
            reserve: None,
            paused: None,
        }
    }
    /// When somebody's patience ends next.
    pub fn deadline(&self) -> Option<Instant> {
        let deadlines = self.visitors.values().filter_map(|visitor| visitor.deadline);
        deadlines.chain(self.paused.map(|(_, until)| until)).min()
    }

    /// Lets in who waits at the door.
    pub fn admit(&mut self, door: Door) {
        if self.reserve.is_none() {
            self.reserve = eventfd(0, EventfdFlags::CLOEXEC).ok();
        }
        let Ok(desk) = DESK.get() else { return };
        for _ in 0..AT_ONCE {
            let accepted = match locked(desk).entrance(door) {
                Some(entrance) => accept(entrance), // which does not wait: the lock is held for an instant
                None => return,
            };
            match accepted {
                Ok(socket) => self.welcome(socket),
                Err(Errno::MFILE | Errno::NFILE) => {
                    if self.reserve.take().is_none() {
                        return self.pause(door);
                    }
                    if let Some(Ok(socket)) = locked(desk).entrance(door).map(accept) {
                        turn_away(&socket, Verdict::Descriptors);
                    }
                    self.reserve = eventfd(0, EventfdFlags::CLOEXEC).ok();
                }
                Err(_) => return, // nobody waits, or the one who did is gone
            }
        }
    }
    pub fn welcome(&mut self, socket: OwnedFd) {
        let Ok(peer) = Peer::of(&socket) else { return };
        let uid = peer.uid;
        if self.visitors.values().filter(|v| v.peer.uid == uid).count() >= PER_USER {
            self.evict(|visitor| visitor.peer.uid == uid);
        }
        if self.visitors.len() >= IN_ALL {
            self.evict(|_| true);
        }
        let of_user = self.visitors.values().filter(|v| v.peer.uid == uid).count();
        if of_user >= PER_USER || self.visitors.len() >= IN_ALL {
            return turn_away(&socket, Verdict::Full);
        }
        let (id, socket) = (self.next, Guarded::new(socket));
        self.next += 1;
        if liveness::watch(Source::Visitor(id), &socket, EventFlags::IN).is_err() {
            return turn_away(&socket, Verdict::Descriptors);
        }
        let now = Instant::now();
        let visitor = Visitor {
            socket,
            peer,
            watched: false,
            admitted: false,
            since: now,
            interest: EventFlags::IN,
            deadline: Some(now + PATIENCE),
            doing: Doing::Listening,
            leases: HashMap::new(),
            joined: HashMap::new(),
        };
        self.visitors.insert(id, visitor);
    }
    /// Closes the longest connected of those who hold nothing and have said nothing that is still to be heard. One that
    /// lapsed stays: it has descriptors on their way.
    fn evict(&mut self, among: impl Fn(&Visitor) -> bool) {
        let idle = self.visitors.iter().filter(|(_, v)| !v.holds() && !v.is_lapsed() && among(v));
        let mut idle: Vec<_> = idle.collect();
        idle.sort_by_key(|(_, v)| v.since);
        let mut polled: Vec<_> =
            idle.iter().map(|(_, v)| PollFd::new(&v.socket, PollFlags::IN)).collect();
        if poll(&mut polled, Some(&Timespec::default())).is_err() {
            return; // out of memory: then nobody is let in either
        }
        let mute = |polled: &PollFd<'_>| !matches!(polled.revents(), PollFlags::IN);
        let Some((id, visitor)) = idle.iter().zip(&polled).find_map(|(v, p)| mute(p).then_some(*v))
        else {
            return;
        };
        let id = *id;
        turn_away(&visitor.socket, Verdict::Full);
        self.part(id);
    }

    /// Something happened on a connection.
    pub fn hear(&mut self, id: u64, flags: EventFlags) {
        let Some(visitor) = self.visitors.get_mut(&id) else { return };
        let kept = match &visitor.doing {
            Doing::Sending(_) if flags.contains(EventFlags::OUT) => self.post(id),
            Doing::Listening | Doing::Unread(_) if flags.contains(EventFlags::IN) => self.read(id),
            _ if flags.intersects(EventFlags::HUP | EventFlags::ERR) => Err(Close),
            _ => Ok(()),
        };
        if kept.is_err() {
            self.part(id);
        }
    }
    /// One datagram.
    fn read(&mut self, id: u64) -> Kept {
        let visitor = self.visitors.get_mut(&id).ok_or(Close)?;
        let mut bytes = [0; REQUEST_LEN];
        let received = match receive(&visitor.socket, &mut bytes, RecvFlags::DONTWAIT) {
            Ok(received) => received,
            Err(Errno::AGAIN | Errno::INTR) => return Ok(()),
            Err(_) => return Err(Close),
        };
        // What came along and is not needed is closed when `received` goes. A peer that speaks otherwise is not ours.
        let whole = bytes.get(..received.length).and_then(decode_request);
        let (number, read, request) = whole.ok_or(Close)?;
        if read != 0 {
            let is_it = matches!(visitor.doing, Doing::Unread(nonce) if nonce == read);
            if !is_it {
                return Err(Close);
            }
            visitor.listen();
            self.unread -= 1;
        } else if matches!(visitor.doing, Doing::Unread(_)) && request.wants_answer() {
            return Err(Close);
        }
        let kept = self.serve(id, number, request, received.rights);
        if read != 0 {
            self.serve_waiting();
        }
        kept
    }
    fn serve(&mut self, id: u64, number: u64, request: Request, came: Vec<OwnedFd>) -> Kept {
        let visitor = self.visitors.get_mut(&id).ok_or(Close)?;
        let brings = matches!(request, Request::Fetch { .. } | Request::Debtor { .. });
        if brings && self.unread >= UNREAD {
            visitor.doing = Doing::Waiting(number, request, came);
            visitor.deadline = Some(Instant::now() + PATIENCE);
            visitor.expect(id, EventFlags::empty());
            self.waiting.push_back(id);
            return Ok(());
        }
        match request {
            Request::Fetch { ticket, has_ledger, participant } => {
                let has = (has_ledger, participant);
                let ((answer, rights), lease) = match visitor.fetch(id, &ticket, came, has) {
                    Ok((packed, object)) => (packed, Some(object)),
                    Err(verdict) => ((Answer::of(verdict), Vec::new()), None),
                };
                self.answer(id, number, answer, rights, lease)
            }
            Request::TakeCounter { ledger, participant } => {
                let answer = visitor.take_counter(ledger, participant);
                self.answer(id, number, answer, Vec::new(), None)
            }
            Request::Debtor { ledger, participant, counter } => {
                let (answer, rights) = visitor.debtor(ledger, participant, counter);
                self.answer(id, number, answer, rights, None)
            }
            Request::Ping => {
                self.answer(id, number, Answer::of(Verdict::Granted), Vec::new(), None)
            }
            Request::LeaseEnd { kind, object } => visitor.end_lease((kind, object)),
            Request::ReleaseCounter { ledger, participant, counter } => {
                let arena = visitor.arena(ledger, participant)?;
                arena.release_counter(participant, counter).map_err(|_| Close)
            }
            Request::SlotClosed { ledger, participant, slot, generation } => {
                let arena = visitor.arena(ledger, participant)?;
                arena.slot_closed(participant, slot, generation).map_err(|_| Close)
            }
            Request::Leave { ledger, participant } => visitor.leave(ledger, participant),
            Request::Read => Ok(()), // which was said along with it
        }
    }
    /// Those who wait go on while there is room.
    fn serve_waiting(&mut self) {
        while self.unread < UNREAD
            && let Some(id) = self.waiting.pop_front()
        {
            let Some(visitor) = self.visitors.get_mut(&id) else { continue };
            let doing = std::mem::replace(&mut visitor.doing, Doing::Listening);
            let Doing::Waiting(number, request, came) = doing else {
                visitor.doing = doing;
                continue;
            };
            visitor.expect(id, EventFlags::IN);
            if self.serve(id, number, request, came).is_err()
                && let Some(visitor) = self.visitors.remove(&id)
            {
                self.take_leave(visitor);
            }
        }
    }
    fn answer(
        &mut self,
        id: u64,
        number: u64,
        mut answer: Answer,
        rights: Vec<Arc<OwnedFd>>,
        lease: Option<Object>,
    ) -> Kept {
        if !rights.is_empty() {
            let key = identity().map_err(|_| Close)?.key;
            self.granted += 1;
            answer.nonce = hash(&key, &self.granted.to_le_bytes()).max(1); // which nobody can guess
        }
        let visitor = self.visitors.get_mut(&id).ok_or(Close)?;
        visitor.doing = Doing::Sending(Box::new(Letter { number, answer, rights, lease }));
        visitor.deadline = Some(Instant::now() + PATIENCE);
        self.post(id)
    }
    /// Sends what is to be sent, or waits for room.
    fn post(&mut self, id: u64) -> Kept {
        let visitor = self.visitors.get_mut(&id).ok_or(Close)?;
        let Doing::Sending(letter) = &mut visitor.doing else { return Ok(()) };
        match letter.send(&visitor.socket) {
            Ok(()) => {}
            Err(Errno::AGAIN) => {
                visitor.expect(id, EventFlags::OUT);
                return Ok(());
            }
            Err(Errno::TOOMANYREFS | Errno::NOMEM | Errno::NOBUFS) if !letter.rights.is_empty() => {
                let (number, lease) = (letter.number, letter.lease);
                if let Some(object) = lease {
                    visitor.end_lease(object)?;
                }
                return self.answer(id, number, Answer::of(Verdict::Descriptors), Vec::new(), None);
            }
            Err(_) => return Err(Close),
        }
        let nonce = letter.answer.nonce;
        visitor.expect(id, EventFlags::IN);
        if nonce == 0 {
            visitor.listen();
        } else {
            self.unread += 1;
            visitor.doing = Doing::Unread(nonce);
            visitor.deadline = Some(Instant::now() + PATIENCE);
        }
        Ok(())
    }

    /// The peer is gone, or has to go.
    pub fn part(&mut self, id: u64) {
        if let Some(visitor) = self.visitors.remove(&id) {
            self.take_leave(visitor);
            self.serve_waiting();
        }
    }
    fn take_leave(&mut self, mut visitor: Visitor) {
        visitor.strip();
        liveness::unwatch(&visitor.socket);
        if matches!(visitor.doing, Doing::Unread(_)) {
            self.unread -= 1;
        }
    }
    /// Ends everybody's patience that is over.
    pub fn expire(&mut self, now: Instant) {
        if let Some((door, until)) = self.paused
            && until <= now
        {
            self.paused = None;
            if let Some(entrance) = DESK.peek().map(locked).as_ref().and_then(|d| d.entrance(door))
            {
                liveness::rewatch(Source::Entrance(door), entrance, EventFlags::IN);
            }
        }
        let late = |v: &Visitor| v.deadline.is_some_and(|deadline| deadline <= now);
        let late: Vec<u64> =
            self.visitors.iter().filter(|(_, v)| late(v)).map(|(id, _)| *id).collect();
        for id in late {
            match self.visitors.get_mut(&id) {
                Some(visitor) if matches!(visitor.doing, Doing::Unread(_)) => {
                    visitor.lapse(id);
                    self.unread -= 1;
                    self.serve_waiting();
                }
                _ => self.part(id),
            }
        }
    }
    /// Descriptors ran out altogether: lets nobody in for a moment instead of being told again and again.
    fn pause(&mut self, door: Door) {
        if let Some(entrance) = DESK.peek().map(locked).as_ref().and_then(|d| d.entrance(door)) {
            liveness::rewatch(Source::Entrance(door), entrance, EventFlags::empty());
            self.paused = Some((door, Instant::now() + PAUSE));
        }
    }
    /// When the last export and lease are gone, so are the doors and all who still stand about.
    pub fn close_if_idle(&mut self) {
        if self.visitors.values().any(Visitor::holds) {
            return;
        }
        if DESK.peek().is_some_and(|desk| locked(desk).close_if_idle()) {
            for (_, visitor) in std::mem::take(&mut self.visitors) {
                self.take_leave(visitor);
            }
            self.waiting.clear();
            (self.reserve, self.paused) = (None, None);
        }
    }
}

fn accept(entrance: &Entrance) -> Result<OwnedFd, Errno> {
    accept_with(entrance, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK)
}

/// Tells a peer why it is not let in. It may be gone, or never read it.
fn turn_away(socket: &impl AsFd, verdict: Verdict) {
    let _ = send(socket, &encode_answer(0, &Answer::of(verdict)), &[], SendFlags::DONTWAIT);
}

#[cfg(test)]
mod tests;
