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
use super::{Host, State};
use crate::{
    access::{Peer, hung_up},
    directory::{Address, Reached, Tried, reach},
    fork::{Guarded, PerFork},
    hosts,
    liveness::{self, Source},
    locked,
    protocol::{ANSWER_LEN, Request, Verdict, decode_answer, encode_request, receive_answer, send},
};
use rustix::{event::epoll::EventFlags, io::Errno};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, atomic::Ordering::Relaxed},
    time::{Duration, Instant},
};

/// How long after one attempt comes the next, at first and at most.
const PAUSES: (Duration, Duration) = (Duration::from_millis(1), Duration::from_secs(1));
/// For so long the watcher may stand at a door that is crowded.
const AT_THE_DOOR: Duration = Duration::from_millis(1);
/// A running exporter whose socket was removed binds it again sooner.
const ABSENT: Duration = Duration::from_secs(4);
/// A running exporter that binds its socket listens on it sooner: until then it refuses.
const REFUSED: Duration = Duration::from_millis(100);

/// The way back to an exporter.
#[derive(Default)]
pub(super) struct Return {
    /// The connection over which it was asked, and the number of the question.
    asked: Option<(Arc<Guarded>, u64)>,
    pause: Duration,
    /// Since when its socket is not found, and since when it refuses.
    absent: Option<Instant>,
    refused: Option<Instant>,
    /// When it came back last.
    back: Option<Instant>,
    /// A connection that asks nothing, from when nothing is kept over any other.
    idle: Option<Guarded>,
}
impl Return {
    /// When to try again.
    fn next(&mut self) -> Instant {
        self.pause = (self.pause * 2).clamp(PAUSES.0, PAUSES.1);
        Instant::now() + self.pause
    }
    /// When to try, if not now: one that came back a moment ago is not tried without a pause.
    fn paused(&mut self) -> Option<Instant> {
        let back = self.back.take()?;
        if back.elapsed() < PAUSES.1 {
            return Some(self.next());
        }
        self.pause = Duration::ZERO; // what went before is another story
        None
    }
}

/// Which hosts are to be looked at, and when.
static DUE: PerFork<Mutex<HashMap<u64, Instant>>> = PerFork::new();

/// When one is to be looked at next.
pub(crate) fn next() -> Option<Instant> {
    DUE.peek().and_then(|due| locked(due).values().min().copied())
}
/// Looks at those whose time has come; on the watcher thread.
pub(crate) fn look() {
    let Some(due) = DUE.peek() else { return };
    let now = Instant::now();
    let ids: Vec<u64> = locked(due).extract_if(|_, at| *at <= now).map(|(id, _)| id).collect();
    for id in ids {
        let _again = AfterFault(id);
        if let Some(at) = hosts::by_id(id).and_then(|host| host.look_for_exporter()) {
            look_at(id, at);
        }
    }
}
/// A fault while one is looked at must not leave it in doubt for ever.
struct AfterFault(u64);
impl Drop for AfterFault {
    fn drop(&mut self) {
        if std::thread::panicking() {
            look_at(self.0, Instant::now() + PAUSES.1);
        }
    }
}
fn look_at(id: u64, at: Instant) {
    if let Ok(due) = DUE.get() {
        locked(due).entry(id).and_modify(|known| *known = at.min(*known)).or_insert(at);
    }
}
pub(super) fn look_at_once(id: u64) {
    look_at(id, Instant::now());
    liveness::nudge();
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
        look_at(self.id, locked(&self.returning).next());
    }
    pub(super) fn drop_return(&self) {
        let mut way = locked(&self.returning);
        way.idle = None;
        if let Some((socket, _)) = way.asked.take() {
            liveness::unwatch(&*socket);
        }
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
impl Return {
    /// Whether the exporter keeps its end of the connection that asks nothing. If not, it is closed.
    fn is_idle_kept(&mut self) -> bool {
        self.idle.take_if(|idle| hung_up(idle));
        self.idle.is_some()
    }
    /// Whether what was tried in vain, now and before, can only mean that nobody listens there any more.
    fn proves_gone(&mut self, tried: &Tried, address: &Address) -> bool {
        let lasts = |since: &mut Option<Instant>, long| {
            since.get_or_insert_with(Instant::now).elapsed() > long
        };
        if tried.refused {
            return lasts(&mut self.refused, REFUSED);
        }
        self.refused = None;
        // A directory that may not be used from here says nothing of the exporter.
        let is_absent = tried.is_absent() && !tried.denied;
        if !is_absent {
            self.absent = None;
            return false;
        }
        lasts(&mut self.absent, ABSENT) && address.is_listened_at() != Some(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{InstanceId, envelope::Door};
    use rustix::{
        net::{AddressFamily, SocketFlags, SocketType, socketpair},
        process::geteuid,
    };
    use std::path::Path;

    fn tried(errno: Errno) -> Tried {
        let mut tried = Tried::default();
        tried.add(Path::new("/a"), errno, "");
        tried
    }
    fn long_ago() -> Option<Instant> {
        Instant::now().checked_sub(Duration::from_secs(60))
    }
    #[test]
    fn an_exporter_is_gone_only_if_its_socket_is_refused_or_absent_for_long() {
        let address = Address::of(InstanceId([7; 16]), geteuid().as_raw(), Door::Private);
        let mut way = Return::default();
        let is_gone = |way: &mut Return, errno| way.proves_gone(&tried(errno), &address);
        assert!(!is_gone(&mut way, Errno::CONNREFUSED), "it may be about to listen");
        way.refused = long_ago();
        assert!(is_gone(&mut way, Errno::CONNREFUSED));
        assert!(!is_gone(&mut way, Errno::NOENT), "it may be about to bind it again");
        assert!(!is_gone(&mut way, Errno::CONNREFUSED), "not all the time");
        way.absent = long_ago();
        assert!(is_gone(&mut way, Errno::NOENT));
        for errno in [Errno::ACCESS, Errno::PERM, Errno::NOTDIR] {
            way.absent = long_ago();
            assert!(!is_gone(&mut way, errno), "{errno}: it says nothing of the exporter");
        }
    }
    #[test]
    fn a_connection_that_asks_nothing_is_kept_until_its_other_end_is_closed() {
        let flags = SocketFlags::CLOEXEC;
        let (ours, theirs) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap();
        let mut way = Return { idle: Some(Guarded::new(ours)), ..Return::default() };
        assert!(way.is_idle_kept());
        drop(theirs);
        assert!(!way.is_idle_kept() && way.idle.is_none());
    }
    #[test]
    fn after_a_time_of_peace_the_next_attempts_come_soon_again() {
        let mut way = Return { pause: PAUSES.1, back: long_ago(), ..Return::default() };
        assert_eq!(way.paused(), None);
        assert!(way.next() < Instant::now() + PAUSES.1 / 2);
        way.back = Some(Instant::now());
        assert!(way.paused().is_some());
    }
}
