//! Connections that a fault of this process ended while their peers hold something. What such a peer holds is kept, and
//! its memory is not reused, until the peer resumes over another connection, hangs up or ends. The kernel identifies
//! the peer, and a secret that the peer chose identifies its connection.
use super::Broker;
use crate::{
    connection::{Close, Connection, ConnectionResult, Doing},
    killpoint, liveness,
    protocol::{MESSAGE_LEN, Message, Verdict, decode_message, receive},
};
use rustix::{
    event::epoll::EventFlags,
    net::{Shutdown, shutdown},
};
use std::mem::replace;

impl Connection {
    fn is_of(&self, session: u64) -> bool {
        session != 0 && self.session == session
    }
}

impl Broker {
    /// Ends the connection after a panic in this process, which may have left related changes incomplete. What the peer
    /// holds is kept for it.
    pub fn give_up(&mut self, id: u64) {
        self.sever(id);
        let is_unread = |v: &&Connection| matches!(v.doing, Doing::Unread(_));
        self.unread = self.connections.values().filter(is_unread).count();
        self.serve_waiting();
    }
    /// Gives up the connection in `serving` after a panic there: the panic came while the broker served a waiting
    /// request, which may be lost.
    pub fn give_up_served(&mut self) {
        if let Some(id) = self.serving.take() {
            self.give_up(id);
        }
    }
    /// Stops sending over the connection, which the peer notices. If the peer holds something and can resume, it is
    /// kept; otherwise the connection ends.
    pub(super) fn sever(&mut self, id: u64) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        let owed = match replace(&mut connection.doing, Doing::Severed(None)) {
            Doing::Unread(nonce) => {
                self.unread = self.unread.saturating_sub(1); // the count may be wrong after a panic
                Some(nonce)
            }
            Doing::Sending(letter) => {
                connection.take_back(letter.grant);
                None
            }
            Doing::Severed(owed) => owed,
            Doing::Listening | Doing::Waiting(..) | Doing::Lapsed(_) => None,
        };
        (connection.doing, connection.deadline) = (Doing::Severed(owed), None);
        if connection.session == 0 || !connection.holds() {
            return self.part(id);
        }
        connection.expect(id, EventFlags::empty()); // its hang-up is still reported
        // Only this direction. What the peer sends before it notices is read when it resumes. Fails if the peer hung
        // up.
        let _ = shutdown(&connection.socket, Shutdown::Write);
        killpoint::reach("broker.severed");
    }
    /// The peer has lost the connection of this session and wants to continue over the connection `id`.
    pub(super) fn resume(&mut self, id: u64, session: u64, nonce: u64) -> Verdict {
        let Some(connection) = self.connections.get(&id).filter(|connection| !connection.holds())
        else {
            return Verdict::Nonsense;
        };
        let who = connection.peer.who();
        let is_same = |v: &Connection| v.is_of(session) && v.peer.who() == who;
        let mut others = self.connections.iter().filter(|(other, v)| **other != id && is_same(v));
        let Some(lost) = others.next().map(|(other, _)| *other) else { return Verdict::Unknown };
        self.sever(lost); // unless it is severed already: the fault may have been the peer's
        if self.hear_out(lost).is_err() {
            self.part(lost);
        }
        let Some(mut connection) = self.connections.remove(&lost) else { return Verdict::Unknown };
        liveness::unwatch(&connection.socket);
        if matches!(connection.doing, Doing::Severed(Some(unread)) if unread != nonce) {
            connection.take_last_back(); // the connection ended before the peer read that answer
        }
        match self.connections.get_mut(&id) {
            Some(next) => next.take_over(id, connection),
            None => connection.release_all(),
        }
        Verdict::Granted
    }
    /// Reads and applies what the peer sent over the lost connection. Requests that want an answer are left out,
    /// because the peer repeats them.
    fn hear_out(&mut self, id: u64) -> ConnectionResult {
        let connection = self.connections.get_mut(&id).ok_or(Close)?;
        // So that this loop ends; what has arrived can still be read. Fails if the other end is closed.
        let _ = shutdown(&connection.socket, Shutdown::Read);
        loop {
            let connection = self.connections.get_mut(&id).ok_or(Close)?;
            let mut bytes = [0; MESSAGE_LEN];
            let length = match receive(&connection.socket, &mut bytes) {
                Ok(received) if received.length > 0 => received.length,
                Ok(_) | Err(_) => return Ok(()), // that was all
            };
            let whole = bytes.get(..length).and_then(decode_message);
            let Message { number, read, ends, request } = whole.ok_or(Close)?;
            if matches!(connection.doing, Doing::Severed(Some(unread)) if unread == read) {
                connection.doing = Doing::Severed(None);
            }
            ends.into_iter().try_for_each(|object| connection.end_lease(object))?;
            if !request.wants_answer() {
                self.serve(id, number, request, Vec::new())?;
            }
        }
    }
}
