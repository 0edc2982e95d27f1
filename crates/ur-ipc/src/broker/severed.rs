//! Connections that a fault of this side ended while their peers hold something. Nobody's memory is given away for that:
//! what such a peer holds is kept for it until it comes back over another connection, hangs up, or ends. Who it is, the
//! kernel says; which of its connections, a secret that it chose.
use super::Broker;
use crate::{
    killpoint, liveness,
    protocol::{MESSAGE_LEN, Message, Verdict, decode_message, receive},
    visitor::{Close, Doing, Kept, Visitor},
};
use rustix::{
    event::epoll::EventFlags,
    net::{Shutdown, shutdown},
};
use std::mem::replace;

impl Visitor {
    fn is_of(&self, session: u64) -> bool {
        session != 0 && self.session == session
    }
}

impl Broker {
    /// Ends the connection after a fault of this side's, which may have come between two changes that belong together.
    /// What the peer holds is kept for it.
    pub fn give_up(&mut self, id: u64) {
        self.sever(id);
        let is_unread = |v: &&Visitor| matches!(v.doing, Doing::Unread(_));
        self.unread = self.visitors.values().filter(is_unread).count();
        self.serve_waiting();
    }
    /// After a fault in what was done for a peer of which nothing was heard just then: its request may be lost.
    pub fn give_up_served(&mut self) {
        if let Some(id) = self.serving.take() {
            self.give_up(id);
        }
    }
    /// Says nothing more over the connection, which the peer notices. If it holds something that it can come back for,
    /// that is kept; else it is over.
    pub(super) fn sever(&mut self, id: u64) {
        let Some(visitor) = self.visitors.get_mut(&id) else { return };
        let owed = match replace(&mut visitor.doing, Doing::Severed(None)) {
            Doing::Unread(nonce) => {
                self.unread = self.unread.saturating_sub(1); // after a fault it may not be so
                Some(nonce)
            }
            Doing::Sending(letter) => {
                visitor.take_back(letter.grant);
                None
            }
            Doing::Severed(owed) => owed,
            Doing::Listening | Doing::Waiting(..) | Doing::Lapsed(_) => None,
        };
        (visitor.doing, visitor.deadline) = (Doing::Severed(owed), None);
        if visitor.session == 0 || !visitor.holds() {
            return self.part(id);
        }
        visitor.expect(id, EventFlags::empty()); // its hang-up is always told
        // This way only. What it says before it notices is heard when it comes back. Fails if it hung up itself.
        let _ = shutdown(&visitor.socket, Shutdown::Write);
        killpoint::reach("broker.severed");
    }
    /// The peer has lost the connection of that session, and wants to go on over the one with this `id`.
    pub(super) fn resume(&mut self, id: u64, session: u64, nonce: u64) -> Verdict {
        let Some(visitor) = self.visitors.get(&id).filter(|visitor| !visitor.holds()) else {
            return Verdict::Nonsense;
        };
        let who = visitor.peer.who();
        let is_same = |v: &Visitor| v.is_of(session) && v.peer.who() == who;
        let mut others = self.visitors.iter().filter(|(other, v)| **other != id && is_same(v));
        let Some(lost) = others.next().map(|(other, _)| *other) else { return Verdict::Unknown };
        self.sever(lost); // unless it is: it may be the peer that had the fault
        if self.hear_out(lost).is_err() {
            self.part(lost);
        }
        let Some(mut visitor) = self.visitors.remove(&lost) else { return Verdict::Unknown };
        liveness::unwatch(&visitor.socket);
        if matches!(visitor.doing, Doing::Severed(Some(unread)) if unread != nonce) {
            visitor.take_last_back(); // it hung up before it read that
        }
        match self.visitors.get_mut(&id) {
            Some(next) => next.take_over(id, visitor),
            None => visitor.strip(),
        }
        Verdict::Granted
    }
    /// Hears what the peer said over the lost connection, and does it; questions it asks again.
    fn hear_out(&mut self, id: u64) -> Kept {
        let visitor = self.visitors.get_mut(&id).ok_or(Close)?;
        // So that this ends: what is there can still be read. Fails if the other end is closed.
        let _ = shutdown(&visitor.socket, Shutdown::Read);
        loop {
            let visitor = self.visitors.get_mut(&id).ok_or(Close)?;
            let mut bytes = [0; MESSAGE_LEN];
            let length = match receive(&visitor.socket, &mut bytes) {
                Ok(received) if received.length > 0 => received.length,
                Ok(_) | Err(_) => return Ok(()), // that was all
            };
            let whole = bytes.get(..length).and_then(decode_message);
            let Message { number, read, ends, request } = whole.ok_or(Close)?;
            if matches!(visitor.doing, Doing::Severed(Some(unread)) if unread == read) {
                visitor.doing = Doing::Severed(None);
            }
            ends.into_iter().try_for_each(|object| visitor.end_lease(object))?;
            if !request.wants_answer() {
                self.serve(id, number, request, Vec::new())?;
            }
        }
    }
}
