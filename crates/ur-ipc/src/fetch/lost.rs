//! A connection to an exporter that ended although its process lives: after a fault of either side, or because the process
//! runs another program now. Nothing that others read says so before it is known which. On the watcher thread, which never
//! waits here, the exporter is connected to again and asked:
//!
//! - Nobody listens any more, or another process does: it is gone, as if it had died. That its socket is not found, or is
//!   refused for a moment, does not prove it: it may be stopped before it binds the name again.
//! - It answers that it kept what this process holds: all goes on, and what was to be said meanwhile is said.
//! - It answers that it did not: what was opened is stale ([`State::Cut`]), for its memory may be another's by now. Signals
//!   that it owes are still waited for.
//! - It does not answer, because it is stopped: one waits, as one does for all that a stopped process owes. As long as its end
//!   of a connection to it is open, it is no other program and not gone, wherever its socket is.
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

/// For so long the watcher may stand at a door that is crowded.
const AT_THE_DOOR: Duration = Duration::from_millis(1);
/// Looks at those whose time has come; on the watcher thread.
pub(crate) fn look() {
    for id in due::take(Instant::now()) {
        let _again = AfterFault(id);
        if let Some(at) = hosts::by_id(id).and_then(|host| host.look_for_exporter()) {
            due::look_at(id, at);
        }
    }
}
/// A fault while one is looked at must not leave it in doubt for ever.
struct AfterFault(u64);
impl Drop for AfterFault {
    fn drop(&mut self) {
        if std::thread::panicking() {
            due::look_at(self.0, Instant::now() + PAUSES.1);
        }
    }
}
impl Host {
    /// One attempt, which does not wait. When the next is due, if one is.
    fn look_for_exporter(&self) -> Option<Instant> {
        let is_suspect = self.state() == State::Suspect;
        let is_awaited = || self.state() == State::Cut && !self.live_arenas().is_empty();
        if !is_suspect && !is_awaited() {
            return None;
        }
        if self.is_dead() {
            self.bury();
            return None;
        }
        // Whoever asked when the connection ended takes in the rest of what came over it.
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
        // A process closes its end as it dies or becomes another program; one that is stopped does not.
        let keeps_its_end = match is_suspect {
            true => !hung_up(&*self.socket()),
            false => way.is_idle_kept(),
        };
        if keeps_its_end && !is_suspect {
            return Some(way.next()); // that is all there is to know
        }
        let reached = match reach(&self.address, Instant::now() + AT_THE_DOOR) {
            Ok(Ok(reached)) => reached,
            Ok(Err(tried)) if !keeps_its_end && way.proves_gone(&tried, &self.address) => {
                drop(way);
                self.bury();
                return None;
            }
            // Removed, and about to be bound again; or out of descriptors here; or there is no room at its door.
            Ok(Err(_)) | Err(_) => return Some(way.next()),
        };
        (way.absent, way.refused) = (None, None);
        let Reached { socket, owner } = reached;
        match Peer::of(&socket) {
            Ok(peer) if peer.uid == owner && peer.who() == self.who => {}
            Ok(_) => {
                drop(way);
                self.bury(); // another process has its place
                return None;
            }
            Err(_) => return Some(way.next()),
        }
        if self.state() != State::Suspect {
            way.idle = Some(Guarded::new(socket)); // it is the same program still: that is all there was to know
            return Some(way.next());
        }
        way.asked = self.ask_to_resume(Guarded::new(socket));
        if way.asked.is_none() { Some(way.next()) } else { None }
    }
    /// Asks whether the exporter goes on for this process over that connection.
    fn ask_to_resume(&self, socket: Guarded) -> Option<(Arc<Guarded>, u64)> {
        liveness::watch(Source::Returning(self.id), &socket, EventFlags::IN).ok()?;
        let number = self.next.fetch_add(1, Relaxed);
        // Nobody else reads or says anything as long as the state is what it is.
        let request = Request::Resume { session: self.session, nonce: self.read.load(Relaxed) };
        if send(&socket, &encode_request(number, 0, &request), &[]).is_err() {
            liveness::unwatch(&socket);
            return None;
        }
        Some((Arc::new(socket), number))
    }
    /// The exporter answers; on the watcher thread.
    pub fn hear_return(&self) {
        let Some((socket, number)) = locked(&self.returning).asked.clone() else { return };
        let mut bytes = [0; ANSWER_LEN];
        let length = match receive_answer(&*socket, &mut bytes) {
            Err(Errno::AGAIN) => return,
            Ok(received) if received.length > 0 => received.length,
            // It ended, or this connection did too.
            Ok(_) | Err(_) => return self.try_later(),
        };
        match bytes.get(..length).and_then(decode_answer) {
            Some((got, answer)) if got == number && answer.verdict == Verdict::Granted => {
                self.go_on_over(socket);
            }
            Some((0, _)) => self.try_later(), // turned away at the door: there is no room
            _ => self.cut_off(),
        }
    }
    /// It does not go on so, and is tried again.
    pub fn try_later(&self) {
        self.drop_return();
        due::look_at(self.id, locked(&self.returning).next());
    }
    /// The exporter has taken over to this connection all that was held over the lost one.
    fn go_on_over(&self, socket: Arc<Guarded>) {
        {
            let mut way = locked(&self.returning);
            (way.asked, way.back) = (None, Some(Instant::now()));
        }
        let unsaid = locked(&self.unsaid); // nothing is said meanwhile
        self.read.store(0, Relaxed); // which was said along with the question
        // Their answers were taken in, or what they granted has been taken back.
        locked(&self.overdue).clear();
        let lost = std::mem::replace(&mut *locked(&self.socket), socket.clone());
        liveness::rewatch(Source::Host(self.id), &*socket, super::END);
        let goes_on = self.turn_to(State::Connected, &[State::Suspect], &locked(&self.holds));
        drop(unsaid);
        drop(lost);
        if goes_on {
            self.say_ends();
        } else {
            liveness::unwatch(&*socket); // it died meanwhile
        }
    }
}
