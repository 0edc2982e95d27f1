//! Requests and their answers over a connection to an exporter, one at a time, and messages that need no answer. What
//! an answer that came too late granted is given back.
use super::{
    END, Host, State, later, nonsense,
    pending::{GrantClaim, Pending},
    silent,
};
use crate::{
    Error, ErrorKind, Object, Result,
    deadline::Deadline,
    exports::refusal,
    fork::Guarded,
    killpoint,
    liveness::{self, Source},
    locked,
    protocol::{
        ANSWER_LEN, Answer, ENDS, PATIENCE, Received, Request, Verdict, await_answer,
        decode_answer, encode_message, receive_answer, send,
    },
    waiting::{AT_A_TIME, ready_by},
};
use rustix::{
    event::{PollFlags, epoll::EventFlags},
    io::Errno,
};
use std::{
    os::fd::{BorrowedFd, OwnedFd},
    sync::atomic::Ordering::Relaxed,
    time::Instant,
};

/// How often a request is repeated whose answer lapsed because this process was stopped when it came, or whose
/// connection was lost.
const TRIES: u32 = 8;

impl Host {
    /// Makes a request that grants nothing to be given back, and waits for its answer until the deadline. Refusals are
    /// errors.
    pub fn ask(&self, request: &Request) -> Result<(Answer, Vec<OwnedFd>)> {
        self.ask_by(&Deadline::new(), request, &[], None)
    }
    /// Requests a counter in the arena that was joined under this participant number; returns its index and epoch.
    pub fn take_counter(&self, arena: u32, participant: u32) -> Result<(u16, u32)> {
        let request = Request::TakeCounter { ledger: arena, participant };
        let claim = GrantClaim::Counter { arena, participant };
        let (answer, _) = self.ask_by(&Deadline::new(), &request, &[], Some(claim))?;
        Ok((answer.counter, answer.epoch))
    }
    pub(super) fn ask_by(
        &self,
        deadline: &Deadline,
        request: &Request,
        rights: &[BorrowedFd<'_>],
        claim: Option<GrantClaim>,
    ) -> Result<(Answer, Vec<OwnedFd>)> {
        self.is_ours()?;
        for _ in 0..TRIES {
            if !self.is_settled_by(deadline.at()) {
                return Err(silent());
            }
            match claim {
                Some(GrantClaim::Open { .. }) => self.check_door(deadline.at())?,
                _ => self.check_state()?,
            }
            let turn = self.turn.take(deadline.at()).ok_or_else(silent)?;
            if self.state() == State::Suspect {
                continue; // the watcher thread needs the lock then
            }
            let asked = self.ask_in_turn(request, rights, claim, deadline);
            drop(turn); // first, because the watcher thread takes it to receive overdue answers
            if matches!(&asked, Err(e) if e.kind() == ErrorKind::TimedOut) {
                liveness::rewatch(Source::Host(self.id), &*self.socket(), END | EventFlags::IN);
            }
            match asked {
                Ok(Some(answered)) => return Ok(answered),
                // The connection was lost, perhaps not for good. The exporter takes back what it granted and was not
                // read.
                Err(e) if e.kind() == ErrorKind::ExporterGone && !self.is_over() => continue,
                Err(e) => return Err(e),
                Ok(None) => {}
            }
        }
        Err(refusal(Verdict::Lapsed))
    }
    /// Whether something can be requested over the connection. A broker that refuses a connection says why and hangs up, and the
    /// watcher thread may notice that before a request is made: what the broker said is the error then.
    fn check_door(&self, deadline: Instant) -> Result<()> {
        self.check_way().map_err(|gone| {
            let turn = self.turn.take(deadline);
            match turn.and_then(|_turn| self.hear_answer(None).ok()) {
                Some((0, answer, _)) => refusal(answer.verdict),
                _ => gone,
            }
        })
    }
    /// Returns `None` if the exporter has taken back what it granted, because this process read the answer too late.
    fn ask_in_turn(
        &self,
        request: &Request,
        rights: &[BorrowedFd<'_>],
        claim: Option<GrantClaim>,
        deadline: &Deadline,
    ) -> Result<Option<(Answer, Vec<OwnedFd>)>> {
        self.flush_pending();
        self.hear_overdue(deadline.at())?;
        let asked = Instant::now();
        let number = self.put(request, rights, deadline.at())?;
        killpoint::reach("fetch.before_answer");
        let (got, answer, came) = self.recv_until(deadline.at(), claim).inspect_err(|e| {
            if e.kind() == ErrorKind::TimedOut {
                locked(&self.overdue).insert(number, claim);
            }
        })?;
        match (got, answer.verdict) {
            (0, refused) => {
                self.cut_off(); // refused at the entrance: there is no connection
                Err(refusal(refused))
            }
            (got, _) if got != number => {
                self.hang_up();
                Err(nonsense())
            }
            (_, Verdict::Granted) => {
                let stands = answer.nonce == 0 || self.settle(&answer, asked, deadline)?;
                Ok(stands.then_some((answer, came)))
            }
            (_, refused) => Err(refusal(refused)),
        }
    }
    /// Waits for the answers to requests that were given up: those come first.
    pub(super) fn hear_overdue(&self, deadline: Instant) -> Result<()> {
        while !locked(&self.overdue).is_empty() {
            let (number, answer, _) = self.recv_until(deadline, None)?;
            if !self.forget(number, &answer) {
                self.hang_up();
                return Err(nonsense());
            }
        }
        Ok(())
    }
    pub(super) fn next_number(&self) -> u64 {
        self.next.fetch_add(1, Relaxed)
    }
    /// Sends a request; returns its number.
    fn put(&self, request: &Request, rights: &[BorrowedFd<'_>], deadline: Instant) -> Result<u64> {
        let number = self.next_number();
        while let Err(e) = self.say_question(number, request, rights) {
            match e {
                // A broker that refuses the connection may have sent the reason before it hung up.
                Errno::PIPE | Errno::CONNRESET => break,
                Errno::AGAIN => self.await_room(deadline)?,
                e => return Err(Error::system("ask the exporter", e)),
            }
        }
        Ok(number)
    }
    /// Whether what was granted, and has just been received, stands. The exporter's time for the answer to be read
    /// began after `asked`. Before the exporter takes anything back, it checks whether the answer was received or,
    /// where its kernel does not tell, reads pending acknowledgements. So whatever was received or acknowledged within
    /// that time stands. As this process may have been stopped at any moment before, the exporter is asked if the time
    /// has passed.
    fn settle(&self, answer: &Answer, asked: Instant, deadline: &Deadline) -> Result<bool> {
        killpoint::reach("fetch.before_acknowledge");
        let nonce = answer.nonce;
        if answer.is_urgent {
            self.acknowledge();
        }
        let is_known = !answer.is_urgent || self.read.load(Relaxed) == 0;
        if is_known && asked.elapsed() < PATIENCE {
            return Ok(true);
        }
        // If this process was stopped, the time for the open has passed meanwhile.
        deadline.renew();
        self.confirm(nonce, deadline.at()).inspect_err(|_| self.tell(Request::GiveBack { nonce }))
    }
    /// Asks the exporter whether what the answer with this nonce granted still stands.
    fn confirm(&self, nonce: u64, deadline: Instant) -> Result<bool> {
        let number = self.put(&Request::Confirm { nonce }, &[], deadline)?;
        let (got, answer, _) = self.recv_until(deadline, None).inspect_err(|e| {
            if e.kind() == ErrorKind::TimedOut {
                locked(&self.overdue).insert(number, None);
            }
        })?;
        match (got == number, answer.verdict) {
            (true, Verdict::Granted) => Ok(true),
            (true, Verdict::Lapsed) => Ok(false),
            _ => {
                self.hang_up();
                Err(nonsense())
            }
        }
    }
    pub(super) fn recv_until(
        &self,
        deadline: Instant,
        claim: Option<GrantClaim>,
    ) -> Result<(u64, Answer, Vec<OwnedFd>)> {
        // The answer mostly comes soon, and then one system call is enough.
        if deadline.saturating_duration_since(Instant::now()) > AT_A_TIME {
            match self.hear_answer_by(await_answer, claim) {
                Err(e) if e.kind() == ErrorKind::TimedOut => {}
                heard => return heard,
            }
        }
        loop {
            match ready_by(&*self.socket(), PollFlags::IN, deadline) {
                Ok(true) => {}
                Ok(false) => return Err(silent()),
                Err(e) => return Err(Error::system("wait for the exporter's answer", e)),
            }
            match self.hear_answer(claim) {
                Err(e) if e.kind() == ErrorKind::TimedOut => {} // a spurious wake-up
                heard => return heard,
            }
        }
    }
    /// Receives an answer that has arrived. If descriptors came with it, it remains to be acknowledged.
    pub(super) fn hear_answer(
        &self,
        claim: Option<GrantClaim>,
    ) -> Result<(u64, Answer, Vec<OwnedFd>)> {
        self.hear_answer_by(receive_answer, claim)
    }
    fn hear_answer_by(
        &self,
        receive: fn(&Guarded, &mut [u8]) -> std::result::Result<Received, Errno>,
        claim: Option<GrantClaim>,
    ) -> Result<(u64, Answer, Vec<OwnedFd>)> {
        let mut bytes = [0; ANSWER_LEN];
        let received = loop {
            match receive(&self.socket(), &mut bytes) {
                Ok(received) => break received,
                // The broker hung up without reading the request, but may have sent the reason first. Reported only
                // once.
                Err(Errno::CONNRESET) => {}
                // Without memory for it now, it is still to come.
                Err(Errno::AGAIN | Errno::INTR | Errno::NOMEM | Errno::NOBUFS) => {
                    return Err(silent());
                }
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
            self.read.store(answer.nonce, Relaxed);
        }
        if received.rights.len() == answer.rights.count() {
            return Ok((number, answer, received.rights));
        }
        if received.rights_lost {
            // What was granted but could not be received is given back.
            let overdue = locked(&self.overdue).remove(&number).flatten();
            if let Some(claim) = overdue.or(claim) {
                self.give_back(claim, &answer);
            }
            return Err(Error::system("take in the exporter's descriptors", Errno::MFILE));
        }
        self.hang_up();
        Err(nonsense())
    }
    /// Gives back what a late answer granted; returns whether its request was one that had been given up.
    pub(super) fn forget(&self, number: u64, answer: &Answer) -> bool {
        let overdue = locked(&self.overdue).remove(&number);
        if let (Verdict::Granted, Some(Some(claim))) = (answer.verdict, overdue) {
            self.give_back(claim, answer);
        }
        overdue.is_some()
    }
    /// Gives back what was granted and has no user.
    fn give_back(&self, claim: GrantClaim, answer: &Answer) {
        if answer.nonce != 0 {
            // It may have lapsed meanwhile; the exporter knows which.
            return self.tell(Request::GiveBack { nonce: answer.nonce });
        }
        let is_joined = |ledger, participant| {
            // If the arena is no longer held, this process has left it, and with it everything that it had there.
            self.arena(ledger).is_some_and(|arena| arena.participant() == participant)
        };
        let (kind, is_slot, ledger, participant, slot, generation) = match claim {
            GrantClaim::Open { kind, is_slot, arena, participant, slot, generation } => {
                (kind, is_slot, arena, participant, slot, generation)
            }
            GrantClaim::Counter { arena: ledger, participant } => {
                if is_joined(ledger, participant) {
                    let counter = answer.counter;
                    self.tell(Request::ReleaseCounter { ledger, participant, counter });
                }
                return;
            }
        };
        self.end_lease((kind, answer.object), false);
        if !is_slot {
            return;
        }
        if participant == 0 {
            self.tell(Request::Leave { ledger, participant: answer.participant });
        } else if is_joined(ledger, participant) {
            self.tell(Request::SlotClosed { ledger, participant, slot, generation });
        }
    }
    /// Held while sending: a request that overtook the message with the acknowledgement would violate the protocol.
    pub(super) fn say_question(
        &self,
        number: u64,
        request: &Request,
        rights: &[BorrowedFd<'_>],
    ) -> rustix::io::Result<()> {
        self.say(&mut locked(&self.pending), number, request, rights)
    }
    /// Sends a message, together with the acknowledgement and the ended opens, which stay pending if this fails.
    fn say(
        &self,
        pending: &mut Pending,
        number: u64,
        request: &Request,
        rights: &[BorrowedFd<'_>],
    ) -> rustix::io::Result<()> {
        let read = self.read.swap(0, Relaxed);
        let ends = pending.ends.len().min(ENDS);
        let bytes = encode_message(number, read, &pending.ends[..ends], request);
        match send(&*self.socket(), &bytes, rights) {
            Ok(()) => drop(pending.ends.drain(..ends)),
            Err(e) => {
                self.read.store(read, Relaxed); // otherwise the acknowledgement would be lost
                return Err(e);
            }
        }
        Ok(())
    }
    /// Waits until the socket has space.
    pub(super) fn await_room(&self, deadline: Instant) -> Result<()> {
        match ready_by(&*self.socket(), PollFlags::OUT, deadline) {
            Ok(true) => Ok(()),
            Ok(false) => Err(silent()),
            Err(e) => Err(Error::system("wait for room on the way to the exporter", e)),
        }
    }
    /// Sends a message that needs no answer. It never waits: if the socket has no space, the message is sent later.
    pub fn tell(&self, request: Request) {
        if self.is_ours().is_ok() && !self.is_over() {
            locked(&self.pending).requests.push(request);
            self.flush_pending();
        }
    }
    /// Records that one open of the object has ended. It is reported with the next request, or soon; at once if
    /// `is_urgent`.
    pub(super) fn end_lease(&self, object: Object, is_urgent: bool) {
        if self.is_ours().is_err() || self.is_over() {
            return;
        }
        let mut pending = locked(&self.pending);
        pending.ends.push(object);
        pending.has_ended = true;
        let is_full = pending.ends.len() >= ENDS;
        drop(pending);
        if is_full || is_urgent {
            self.say_ends();
        } else {
            later::soon();
        }
    }
    /// Reports the ended opens that no request has carried. Returns whether any has ended since the last call.
    pub fn say_ends(&self) -> bool {
        let mut pending = locked(&self.pending);
        // Pending messages already carry some of them. Thus no messages accumulate while the socket has no space.
        let messages = pending.ends.len().div_ceil(ENDS).saturating_sub(pending.requests.len());
        pending.requests.extend(std::iter::repeat_n(Request::Read, messages));
        let has_ended = std::mem::take(&mut pending.has_ended);
        drop(pending);
        self.flush_pending();
        has_ended
    }
    pub(super) fn flush_pending(&self) {
        let mut pending = locked(&self.pending);
        match self.state() {
            State::Connected => {}
            State::Suspect => return, // sent over the next connection
            State::Cut | State::Gone => return *pending = Pending::default(),
        }
        let requests = std::mem::take(&mut pending.requests);
        let is_put_off = |e| matches!(e, Errno::AGAIN | Errno::PIPE | Errno::CONNRESET);
        let said = requests.iter().take_while(|request| {
            // A message that fails with another error cannot be sent at all.
            !self.say(&mut pending, 0, request, &[]).is_err_and(is_put_off)
        });
        let said = said.count();
        pending.requests.extend(requests.into_iter().skip(said));
        if !pending.requests.is_empty() {
            liveness::rewatch(Source::Host(self.id), &*self.socket(), END | EventFlags::OUT);
        }
    }
    /// Acknowledges the latest answer, unless another message has done so.
    pub(super) fn acknowledge(&self) {
        if self.read.load(Relaxed) != 0 {
            self.tell(Request::Read);
        }
    }
}
