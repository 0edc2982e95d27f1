//! The broker's timeouts and periodic checks, and the closing of everything once nothing is exported or leased.
use super::{ASKED_AFTER, AT_ONCE, Broker, LOOK_AGAIN, PAUSE};
use crate::{
    connection::{Close, Connection, ConnectionResult, Doing},
    envelope::SocketScope,
    exports::EXPORT_TABLE,
    liveness::{self, Source},
    locked,
    notice::notice,
    receipt::is_received,
};
use rustix::event::epoll::EventFlags;
use std::time::Instant;

impl Broker {
    /// Applies all timeouts that have passed, and checks the entrances.
    pub fn expire(&mut self, now: Instant) {
        let said = EXPORT_TABLE.peek().map(|table| locked(table).look_after_entrances(now));
        said.into_iter().flatten().for_each(|sentence| notice(&sentence));
        if let Some((scope, until)) = self.paused
            && until <= now
        {
            self.paused = None;
            if let Some(entrance) =
                EXPORT_TABLE.peek().map(locked).as_ref().and_then(|d| d.entrance(scope))
            {
                liveness::rewatch(Source::Entrance(scope), entrance, EventFlags::IN);
            }
        }
        if self.look_again.take_if(|at| *at <= now).is_some() {
            self.note_receipts();
            self.serve_waiting();
            let connections = &self.connections;
            let waits = |id: &u64| connections.get(id).is_some_and(Connection::is_waiting);
            self.waiting.retain(waits);
            self.look_again = (!self.waiting.is_empty()).then_some(now + LOOK_AGAIN);
        }
        if !self.departed.is_empty() && self.ask_after.0 <= now {
            self.departed.retain(|_, arena| arena.upgrade().is_some_and(|arena| arena.tend()));
            let pause = (self.ask_after.1 * 2).min(ASKED_AFTER.1);
            self.ask_after = (now + pause, pause);
        }
        let late = |v: &Connection| v.deadline.is_some_and(|deadline| deadline <= now);
        let ids: Vec<u64> =
            self.connections.iter().filter(|(_, v)| late(v)).map(|(id, _)| *id).collect();
        for id in ids {
            let kept = self.for_one(id, |broker| match broker.catch_up(id) {
                Ok(true) => broker.time_out(id, late),
                Ok(false) => Ok(()),
                Err(close) => Err(close),
            });
            if kept.is_err() {
                self.part(id);
            }
        }
    }
    /// Runs `act` for one connection, which is recorded in `serving` in case `act` panics.
    pub(super) fn for_one<T>(&mut self, id: u64, act: impl FnOnce(&mut Self) -> T) -> T {
        let before = self.serving.replace(id);
        let done = act(self);
        self.serving = before;
        done
    }
    /// Reads what a peer has already sent: it counts as in time even if this thread reads it late. Returns whether that
    /// was all. If not, the peer's time is not over: the rest may contain its acknowledgement, and is read after the
    /// other peers'.
    fn catch_up(&mut self, id: u64) -> Result<bool, Close> {
        for _ in 0..AT_ONCE {
            let connection = self.connections.get(&id).ok_or(Close)?;
            let hears = matches!(connection.doing, Doing::Unread(_) | Doing::Listening);
            if !hears || !self.read(id)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
    /// Handles a connection's timeout. A peer that holds something keeps it: no lease ends by time.
    fn time_out(&mut self, id: u64, is_late: impl Fn(&Connection) -> bool) -> ConnectionResult {
        let Some(connection) = self.connections.get_mut(&id).filter(|v| is_late(v)) else {
            return Ok(());
        };
        match connection.doing {
            Doing::Unread(nonce) => {
                match self.sees_receipt && is_received(&connection.socket) {
                    true => connection.listen(),
                    false => connection.expire_grant(nonce),
                }
                self.unread -= 1;
                self.serve_waiting();
                Ok(())
            }
            Doing::Waiting(..) | Doing::Sending(_) if connection.holds() => {
                self.withdraw(id)?;
                if let Some(connection) = self.connections.get_mut(&id)
                    && matches!(connection.doing, Doing::Sending(_))
                {
                    connection.deadline = None; // until the socket has space or the peer hangs up
                }
                Ok(())
            }
            _ => Err(Close),
        }
    }
    /// Descriptors have run out: accepts no connection for a moment, so that the event does not fire again and again.
    pub(super) fn pause(&mut self, scope: SocketScope) {
        if let Some(entrance) =
            EXPORT_TABLE.peek().map(locked).as_ref().and_then(|d| d.entrance(scope))
        {
            liveness::rewatch(Source::Entrance(scope), entrance, EventFlags::empty());
            self.paused = Some((scope, Instant::now() + PAUSE));
        }
    }
    /// Once the last export and lease have ended, closes the entrances and all remaining connections.
    pub fn close_if_idle(&mut self) {
        if self.connections.values().any(Connection::holds) {
            return;
        }
        if EXPORT_TABLE.peek().is_some_and(|table| locked(table).close_if_idle()) {
            for (_, connection) in std::mem::take(&mut self.connections) {
                self.take_leave(connection);
            }
            self.waiting.clear();
            self.paused = None;
        }
    }
}
