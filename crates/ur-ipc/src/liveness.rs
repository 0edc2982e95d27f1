//! The one watcher thread of a process: it waits for deaths, for hang-ups and for the broker's visitors, and ends when
//! nothing is left to wait for. What an event means is said by those who are called.
use crate::{
    Error, Result,
    broker::Broker,
    envelope::Door,
    fork::{Guarded, PerFork},
    hosts, joining, locked,
};
use nix::sys::signal::{SigSet, SigmaskHow};
use rustix::{
    event::{EventfdFlags, Timespec, epoll, eventfd},
    io::Errno,
    time::{
        Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create,
        timerfd_settime,
    },
};
use std::{
    os::fd::{AsFd, OwnedFd},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering::*},
    },
    thread,
    time::{Duration, Instant},
};

/// Events taken in at once: all there can be, so that nobody's time is declared over who has spoken.
const EVENTS: usize = 1024;
/// After so many nanoseconds at the latest, a broker hears that an answer was read. Well within its patience.
const REMINDED: i64 = 50_000_000;

/// What the watcher waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Source {
    /// Somebody nudged the thread.
    Nudge,
    /// An importer wants to connect to our broker.
    Entrance(Door),
    /// A connection to our broker.
    Visitor(u64),
    /// The process at its other end.
    VisitorProcess(u64),
    /// A connection of ours to another's broker.
    Host(u64),
    /// The process at its other end.
    HostProcess(u64),
    /// A third process, which owes a signal in an arena that we joined.
    Debtor(u64),
    /// It is time to acknowledge what was read.
    Reminder,
}
impl Source {
    fn pack(self) -> u64 {
        let (kind, id) = match self {
            Self::Nudge => (0, 0),
            Self::Entrance(door) => (1, door as u64),
            Self::Visitor(id) => (2, id),
            Self::VisitorProcess(id) => (3, id),
            Self::Host(id) => (4, id),
            Self::HostProcess(id) => (5, id),
            Self::Debtor(id) => (6, id),
            Self::Reminder => (7, 0),
        };
        id << 3 | kind
    }
    fn unpack(packed: u64) -> Self {
        let id = packed >> 3;
        match packed & 7 {
            1 if id == Door::Others as u64 => Self::Entrance(Door::Others),
            1 => Self::Entrance(Door::Private),
            2 => Self::Visitor(id),
            3 => Self::VisitorProcess(id),
            4 => Self::Host(id),
            5 => Self::HostProcess(id),
            6 => Self::Debtor(id),
            7 => Self::Reminder,
            _ => Self::Nudge,
        }
    }
}

/// What the thread and those who give it work share.
struct Post {
    epoll: Guarded,
    nudge: Guarded,
    timer: Guarded,
    armed: AtomicBool,
}
/// The running thread's post, and how many sources it watches.
#[derive(Default)]
struct Watch {
    post: Option<Arc<Post>>,
    sources: usize,
}
static WATCH: PerFork<Mutex<Watch>> = PerFork::new();

/// Watches `fd` for `interest`, starting the thread if need be. Hang-ups are always told.
pub(crate) fn watch(source: Source, fd: &impl AsFd, interest: epoll::EventFlags) -> Result<()> {
    let mut watch = locked(WATCH.get()?);
    let post = match &watch.post {
        Some(post) => post.clone(),
        None => start()?,
    };
    let added = epoll::add(&post.epoll, fd, epoll::EventData::new_u64(source.pack()), interest);
    match added {
        Ok(()) => watch.sources += 1,
        Err(_) if watch.sources == 0 && watch.post.is_none() => nudge_post(&post), // ends the fresh thread
        Err(_) => {}
    }
    watch.post.get_or_insert(post);
    added.map_err(|e| Error::system("watch a descriptor (epoll)", e))
}

/// Changes what a watched descriptor is watched for.
pub(crate) fn rewatch(source: Source, fd: &impl AsFd, interest: epoll::EventFlags) {
    let Some(watch) = WATCH.peek() else { return };
    if let Some(post) = &locked(watch).post {
        // Fails only if it is not watched any more: then nobody waits for it either.
        let _ = epoll::modify(&post.epoll, fd, epoll::EventData::new_u64(source.pack()), interest);
    }
}

/// Ends the watching; to be called before the descriptor is closed.
pub(crate) fn unwatch(fd: &impl AsFd) {
    let Some(watch) = WATCH.peek() else { return };
    let mut watch = locked(watch);
    let Some(post) = watch.post.clone() else { return };
    if epoll::delete(&post.epoll, fd).is_ok() {
        watch.sources = watch.sources.saturating_sub(1);
        if watch.sources == 0 {
            nudge_post(&post);
        }
    }
}

/// Has the thread look whether there is anything left to do.
pub(crate) fn nudge() {
    if let Some(post) = WATCH.peek().and_then(|watch| locked(watch).post.clone()) {
        nudge_post(&post);
    }
}
fn nudge_post(post: &Post) {
    // Full means nudged already; nothing else can fail.
    let _ = rustix::io::write(&post.nudge, &1u64.to_ne_bytes());
}

/// Has what was read acknowledged before long, without waking anybody now.
pub(crate) fn remind() {
    let Some(post) = WATCH.peek().and_then(|watch| locked(watch).post.clone()) else { return };
    if !post.armed.swap(true, AcqRel) {
        let after = Timespec { tv_sec: 0, tv_nsec: REMINDED };
        let once = Itimerspec { it_interval: Timespec::default(), it_value: after };
        // Cannot fail: the timer is ours and the time is one.
        let _ = timerfd_settime(&post.timer, TimerfdTimerFlags::empty(), &once);
    }
}

fn start() -> Result<Arc<Post>> {
    let doing = "start the watcher thread";
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(|e| Error::system(doing, e))?;
    let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
    let nudge: OwnedFd = eventfd(0, flags).map_err(|e| Error::system(doing, e))?;
    let data = epoll::EventData::new_u64(Source::Nudge.pack());
    epoll::add(&epoll, &nudge, data, epoll::EventFlags::IN).map_err(|e| Error::system(doing, e))?;
    let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
    let timer =
        timerfd_create(TimerfdClockId::Monotonic, flags).map_err(|e| Error::system(doing, e))?;
    let data = epoll::EventData::new_u64(Source::Reminder.pack());
    epoll::add(&epoll, &timer, data, epoll::EventFlags::IN).map_err(|e| Error::system(doing, e))?;
    let post = Arc::new(Post {
        epoll: Guarded::new(epoll),
        nudge: Guarded::new(nudge),
        timer: Guarded::new(timer),
        armed: AtomicBool::new(false),
    });
    let theirs = post.clone();
    // Blocked here and inherited there: not for an instant does the thread take a signal of the program's.
    let before = SigSet::all().thread_swap_mask(SigmaskHow::SIG_BLOCK);
    let thread = thread::Builder::new().name("causeway".into()).spawn(move || attend(&theirs));
    if let Ok(before) = before {
        before.thread_set_mask().map_err(|e| Error::system("restore the signal mask", e))?;
    }
    thread.map_err(|e| Error::system(doing, e))?;
    Ok(post)
}

/// The thread.
fn attend(post: &Arc<Post>) {
    let mut broker = Broker::new();
    let mut events = Vec::with_capacity(EVENTS);
    loop {
        let now = Instant::now();
        let patience = broker.deadline().map(|at| at.saturating_duration_since(now));
        // Rounded up: woken a little late, not twice.
        let patience = patience.map(|p| p + Duration::from_micros(100));
        let patience = patience.and_then(|p| Timespec::try_from(p).ok());
        events.clear();
        let waited = epoll::wait(
            &post.epoll,
            rustix::buffer::spare_capacity(&mut events),
            patience.as_ref(),
        );
        match waited {
            Ok(_) => {}
            // A process that was stopped and goes on is told so, and not what came meanwhile: nobody's time is over yet.
            Err(Errno::INTR) => continue,
            Err(_) => thread::sleep(Duration::from_millis(10)), // out of memory, for now: do not spin
        }
        for event in &events {
            pass_on(Source::unpack(event.data.u64()), event.flags, post, &mut broker);
        }
        broker.expire(Instant::now());
        broker.close_if_idle();
        if is_over(post) {
            return;
        }
    }
}

/// Tells whom it concerns.
fn pass_on(source: Source, flags: epoll::EventFlags, post: &Post, broker: &mut Broker) {
    match source {
        Source::Nudge => {
            let _ = rustix::io::read(&post.nudge, &mut [0; 8]); // nudged twice is nudged once
        }
        Source::Entrance(door) => broker.admit(door),
        Source::Visitor(id) => broker.hear(id, flags),
        Source::VisitorProcess(id) => broker.part(id),
        Source::Host(id) => {
            if let Some(host) = hosts::by_id(id) {
                host.hear(flags);
            }
        }
        Source::HostProcess(id) => {
            if let Some(host) = hosts::by_id(id) {
                host.bury();
            }
        }
        Source::Debtor(id) => joining::gone(id),
        Source::Reminder => {
            let _ = rustix::io::read(&post.timer, &mut [0; 8]); // it rang: that is all there is to know
            post.armed.store(false, Release); // first: what is read from here on rings anew
            hosts::all().iter().for_each(|host| host.acknowledge());
        }
    }
}

/// Whether nothing is left to watch; then the next source starts a new thread.
fn is_over(post: &Arc<Post>) -> bool {
    let Some(watch) = WATCH.peek() else { return true };
    let mut watch = locked(watch);
    let ours = watch.post.as_ref().is_some_and(|current| Arc::ptr_eq(current, post));
    if ours && watch.sources == 0 {
        watch.post = None;
    }
    !ours || watch.sources == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_survives_packing() {
        let sources = [
            Source::Nudge,
            Source::Entrance(Door::Private),
            Source::Entrance(Door::Others),
            Source::Visitor(7),
            Source::VisitorProcess(1 << 40),
            Source::Host(0),
            Source::HostProcess(3),
            Source::Debtor(9),
            Source::Reminder,
        ];
        for source in sources {
            assert_eq!(Source::unpack(source.pack()), source);
        }
    }
}
