//! The state of reconnecting to an exporter whose connection ended, and the decision when the exporter must be gone.
use crate::{
    access::hung_up,
    directory::{Address, Tried},
    fork::Guarded,
};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};

/// The pause between two attempts: at first, and at most.
pub(super) const PAUSES: (Duration, Duration) = (Duration::from_millis(1), Duration::from_secs(1));
/// A running exporter whose socket was removed binds it again within this time.
const ABSENT: Duration = Duration::from_secs(4);
/// A running exporter listens on its socket within this time after binding it; until then connections are refused.
const REFUSED: Duration = Duration::from_millis(100);

/// The state of reconnecting to an exporter.
#[derive(Default)]
pub(super) struct Return {
    /// The connection over which the resume request was made, and the request's number.
    pub asked: Option<(Arc<Guarded>, u64)>,
    pub pause: Duration,
    /// Since when its socket is missing, and since when it refuses connections.
    pub absent: Option<Instant>,
    pub refused: Option<Instant>,
    /// When the connection was last resumed.
    pub back: Option<Instant>,
    /// A connection without requests, held to see whether the exporter still runs once it keeps nothing for this
    /// process.
    pub idle: Option<Guarded>,
}
impl Return {
    /// When to try again; doubles the pause.
    pub fn next(&mut self) -> Instant {
        self.pause = (self.pause * 2).clamp(PAUSES.0, PAUSES.1);
        Instant::now() + self.pause
    }
    /// When to try, if not now: a connection that was resumed a moment ago is not tried without a pause.
    pub fn paused(&mut self) -> Option<Instant> {
        let back = self.back.take()?;
        if back.elapsed() < PAUSES.1 {
            return Some(self.next());
        }
        self.pause = Duration::ZERO; // earlier attempts do not count any more
        None
    }
    /// Whether the exporter keeps its end of the idle connection open. If not, this end is closed.
    pub fn is_idle_kept(&mut self) -> bool {
        self.idle.take_if(|idle| hung_up(idle));
        self.idle.is_some()
    }
    /// Whether this failed attempt and earlier ones prove that the exporter does not listen any more.
    pub fn proves_gone(&mut self, tried: &Tried, address: &Address) -> bool {
        let lasts = |since: &mut Option<Instant>, long| {
            since.get_or_insert_with(Instant::now).elapsed() > long
        };
        if tried.refused {
            return lasts(&mut self.refused, REFUSED);
        }
        self.refused = None;
        // A directory that cannot be used from here says nothing about the exporter.
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
    use crate::{InstanceId, envelope::SocketScope};
    use rustix::{
        io::Errno,
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
        let address = Address::of(InstanceId([7; 16]), geteuid().as_raw(), SocketScope::Private);
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
