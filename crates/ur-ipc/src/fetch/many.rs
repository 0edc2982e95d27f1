//! Many requests over a connection, of which none waits for the answer to the one before. Which tickets are asked for so is
//! left to `ahead`.
use super::{END, Host, State, gone_error, lease::Lease, nonsense, pending::GrantClaim, silent};
use crate::{
    ENVELOPE_LEN, ErrorKind, Result,
    deadline::Deadline,
    envelope::{Envelope, Transport},
    exports::refusal,
    ledger,
    liveness::{self, Source},
    locked,
    protocol::{Answer, Request, Verdict},
    standing::{ArrivedPayload, Fetched, Ledger, Standing},
};
use rustix::{event::epoll::EventFlags, io::Errno};
use std::{collections::VecDeque, sync::Arc};

/// A ticket, decoded and as it came.
pub(crate) type Wanted = (Envelope, [u8; ENVELOPE_LEN]);

/// The most requests that are under way over one connection.
const UNDER_WAY: usize = 32;

impl Host {
    /// Whether the answer to a fetch of this ticket brings no descriptor: the payload is bytes, and the ledger came with an earlier
    /// answer. The exporter then waits for no acknowledgement, and reads the next request at once.
    pub fn needs_no_descriptor(&self, envelope: &Envelope) -> bool {
        envelope.transport == Transport::Bytes && self.ledger_of(envelope).is_some()
    }
    fn ledger_of(&self, envelope: &Envelope) -> Option<Arc<ledger::Reader>> {
        locked(&self.ledgers).get(&envelope.ledger).cloned()
    }
    /// Fetches what tickets name that [need no descriptor](Self::needs_no_descriptor), by the deadline. `None` for what was not
    /// granted, and for all that remains after an error, which is returned too: an open of it makes a request of its own, and
    /// reports why it is refused.
    pub fn fetch_many(
        self: &Arc<Self>,
        wanted: &[Wanted],
        deadline: &Deadline,
    ) -> (Vec<Option<Fetched>>, Result<()>) {
        let mut fetched = Vec::with_capacity(wanted.len());
        let asked = self.ask_for(wanted, deadline, &mut fetched);
        if matches!(&asked, Err(e) if e.kind() == ErrorKind::TimedOut) {
            liveness::rewatch(Source::Host(self.id), &*self.socket(), END | EventFlags::IN);
        }
        fetched.resize_with(wanted.len(), || None);
        (fetched, asked)
    }
    fn ask_for(
        self: &Arc<Self>,
        wanted: &[Wanted],
        deadline: &Deadline,
        fetched: &mut Vec<Option<Fetched>>,
    ) -> Result<()> {
        self.is_ours()?;
        self.check_way()?;
        let _turn = self.turn.take(deadline.at()).ok_or_else(silent)?;
        if self.state() == State::Suspect {
            return Err(silent()); // the watcher thread needs the lock then
        }
        self.flush_pending();
        self.hear_overdue(deadline.at())?;
        let (mut rest, mut under_way) = (wanted, VecDeque::new());
        loop {
            while let Some((next, after)) = rest.split_first()
                && under_way.len() < UNDER_WAY
            {
                let number = self.next_number();
                match self.say_question(number, &self.request_of(next), &[]) {
                    Ok(()) => {
                        under_way.push_back((number, next));
                        rest = after;
                    }
                    Err(Errno::AGAIN) if under_way.is_empty() => self.await_room(deadline.at())?,
                    Err(Errno::AGAIN) => break, // the answers to those under way make room
                    Err(_) if under_way.is_empty() => return Err(gone_error()),
                    Err(_) => rest = &[], // the exporter may have answered those under way before
                }
            }
            let Some(&(number, (envelope, _))) = under_way.front() else { return Ok(()) };
            let heard = self.recv_until(deadline.at(), Some(claim_on(envelope)));
            let (got, answer, _) = heard.inspect_err(|e| match e.kind() {
                ErrorKind::TimedOut => locked(&self.overdue).extend(
                    under_way.iter().map(|(number, (of, _))| (*number, Some(claim_on(of)))),
                ),
                ErrorKind::ExporterGone => {} // no answer comes any more over this connection
                _ => self.hang_up(),          // it is not known which answers are still to come
            })?;
            if got == 0 {
                self.cut_off(); // refused at the entrance: there is no connection
                return Err(refusal(answer.verdict));
            }
            if got != number || answer.nonce != 0 || answer.rights.count() != 0 {
                self.hang_up();
                return Err(nonsense());
            }
            under_way.pop_front();
            fetched.push(self.granted(envelope, answer));
        }
    }
    fn request_of(&self, (_, ticket): &Wanted) -> Request {
        let (has_ledger, lacks_memory, participant, part) = (true, false, 0, 0);
        let (session, ticket) = (self.session, Box::new(*ticket));
        Request::Fetch { session, ticket, has_ledger, lacks_memory, participant, part }
    }
    fn granted(self: &Arc<Self>, envelope: &Envelope, answer: Answer) -> Option<Fetched> {
        if answer.verdict != Verdict::Granted {
            return None;
        }
        let lease = Lease::new(self, (envelope.kind, answer.object), envelope.size);
        let ledger = Ledger::Reader(self.ledger_of(envelope)?);
        Some(Fetched {
            payload: ArrivedPayload::Bytes(answer.payload),
            object: answer.object,
            standing: Standing::Connected(self.clone(), ledger),
            lease: Some(lease),
        })
    }
}
fn claim_on(envelope: &Envelope) -> GrantClaim {
    GrantClaim::Open {
        kind: envelope.kind,
        is_slot: false,
        arena: envelope.ledger,
        participant: 0,
        slot: envelope.slot,
        generation: envelope.slot_generation,
    }
}
