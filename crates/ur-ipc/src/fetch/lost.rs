//! A connection to an exporter that ended although the exporter's process lives: after a fault of either side, or
//! because the process now runs another program. Nothing is published about it before the cause is known. On the
//! watcher thread, without waiting there, this module connects to the exporter again and asks it to resume:
//!
//! - No process listens any more, or another one does: the exporter is gone, as if it had died. A socket that is
//!   missing or refuses connections for a moment does not prove that, because the exporter may be about to bind the
//!   name again.
//! - It answers that it kept what this process holds: everything continues, and pending messages are sent.
//! - It answers that it did not: what was opened is stale ([`State::Cut`]), because the memory may have been reused.
//!   Its pending signals are still waited for.
//! - It does not answer because it is stopped: this process waits, as for everything that a stopped process has
//!   pending. While its end of a connection is open, it has not ended and runs no other program, wherever its socket
//!   is.
use super::{Host, State, due, way::PAUSES};
use crate::{
    access::{Peer, hung_up},
    directory::{Reached, reach},
    fork::Guarded,
    hosts,
    liveness::{self, Source},
    locked,
    protocol::{ANSWER_LEN, Request, Verdict, decode_answer, encode_request, receive_answer, send},
};
use rustix::{event::epoll::EventFlags, io::Errno};
use std::{
    sync::{Arc, atomic::Ordering::Relaxed},
    time::{Duration, Instant},
};

/// How long the watcher thread may wait to connect when the exporter's backlog is full.
const AT_THE_DOOR: Duration = Duration::from_millis(1);
/// Checks the hosts that are due; called on the watcher thread.
pub(crate) fn look() {
    for id in due::take(Instant::now()) {
        let _again = AfterFault(id);
        if let Some(at) = hosts::by_id(id).and_then(|host| host.look_for_exporter()) {
            due::look_at(id, at);
        }
    }
}
/// Schedules another check after a panic, so that the host does not stay in doubt for ever.
struct AfterFault(u64);
impl Drop for AfterFault {
    fn drop(&mut self) {
        if std::thread::panicking() {
            due::look_at(self.0, Instant::now() + PAUSES.1);
        }
    }
}
impl Host {
    /// Makes one attempt without waiting. Returns when the next one is due, if one is.
    fn look_for_exporter(&self) -> Option<Instant> {
        let is_suspect = self.state() == State::Suspect;
        let is_awaited = || self.state() == State::Cut && !self.live_arenas().is_empty();
        if !is_suspect && !is_awaited() {
            return None;
        }
        if self.is_dead() {
            self.mark_owner_dead();
            return None;
        }
        // If a thread is making a request, it receives the rest of what came over the ended connection.
        let Some(_turn) = self.turn.try_take() else { return Some(Instant::now() + PAUSES.0) };
        if is_suspect {
            while let Ok((number, answer, _)) = self.hear_answer(None) {
                self.forget(number, &answer);
            }
        }
        let mut way = locked(&self.returning);
        if let Some(at) = way.paused() {
            return Some(at);
        }
        // A process closes its end when it dies or becomes another program; a stopped one does not.
        let keeps_its_end = match is_suspect {
            true => !hung_up(&*self.socket()),
            false => way.is_idle_kept(),
        };
        if keeps_its_end && !is_suspect {
            return Some(way.next()); // nothing more is to be found out
        }
        let reached = match reach(&self.address, Instant::now() + AT_THE_DOOR) {
            Ok(Ok(reached)) => reached,
            Ok(Err(tried)) if !keeps_its_end && way.proves_gone(&tried, &self.address) => {
                drop(way);
                self.mark_owner_dead();
                return None;
            }
            // The socket was removed and is about to be bound again, this process is out of descriptors, or the backlog
            // is full.
            Ok(Err(_)) | Err(_) => return Some(way.next()),
        };
        (way.absent, way.refused) = (None, None);
        let Reached { socket, owner } = reached;
        match Peer::of(&socket) {
            Ok(peer) if peer.uid == owner && peer.who() == self.who => {}
            Ok(_) => {
                drop(way);
                self.mark_owner_dead(); // another process listens in its place
                return None;
            }
            Err(_) => return Some(way.next()),
        }
        if self.state() != State::Suspect {
            way.idle = Some(Guarded::new(socket)); // it still runs the same program, which is all there was to find out
            return Some(way.next());
        }
        way.asked = self.ask_to_resume(Guarded::new(socket));
        if way.asked.is_none() { Some(way.next()) } else { None }
    }
    /// Asks the exporter to resume over the new connection.
    fn ask_to_resume(&self, socket: Guarded) -> Option<(Arc<Guarded>, u64)> {
        liveness::watch(Source::Returning(self.id), &socket, EventFlags::IN).ok()?;
        let number = self.next.fetch_add(1, Relaxed);
        // No other thread sends or receives on this host in the state `Suspect`.
        let request = Request::Resume { session: self.session, nonce: self.read.load(Relaxed) };
        if send(&socket, &encode_request(number, 0, &request), &[]).is_err() {
            liveness::unwatch(&socket);
            return None;
        }
        Some((Arc::new(socket), number))
    }
    /// Receives the exporter's answer to the resume request; called on the watcher thread.
    pub fn hear_return(&self) {
        let Some((socket, number)) = locked(&self.returning).asked.clone() else { return };
        let mut bytes = [0; ANSWER_LEN];
        let length = match receive_answer(&*socket, &mut bytes) {
            Err(Errno::AGAIN) => return,
            Ok(received) if received.length > 0 => received.length,
            // The new connection ended too.
            Ok(_) | Err(_) => return self.try_later(),
        };
        match bytes.get(..length).and_then(decode_answer) {
            Some((got, answer)) if got == number && answer.verdict == Verdict::Granted => {
                self.go_on_over(socket);
            }
            Some((0, _)) => self.try_later(), // refused at the entrance for lack of space
            _ => self.cut_off(),
        }
    }
    /// Abandons this attempt to resume and schedules the next one.
    pub fn try_later(&self) {
        self.drop_return();
        due::look_at(self.id, locked(&self.returning).next());
    }
    /// Continues over the new connection, to which the exporter has moved everything that was held over the lost one.
    fn go_on_over(&self, socket: Arc<Guarded>) {
        {
            let mut way = locked(&self.returning);
            (way.asked, way.back) = (None, Some(Instant::now()));
        }
        let pending = locked(&self.pending); // no message is sent meanwhile
        self.read.store(0, Relaxed); // the resume request has acknowledged it
        // Their answers were received, or what they granted has been taken back.
        locked(&self.overdue).clear();
        let lost = std::mem::replace(&mut *locked(&self.socket), socket.clone());
        liveness::rewatch(Source::Host(self.id), &*socket, super::END);
        let goes_on = self.turn_to(State::Connected, &[State::Suspect], &locked(&self.holds));
        drop(pending);
        drop(lost);
        if goes_on {
            self.say_ends();
        } else {
            liveness::unwatch(&*socket); // the exporter died meanwhile
        }
    }
}
