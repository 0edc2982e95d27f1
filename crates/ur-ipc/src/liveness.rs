//! The one watcher thread of a process: it waits for deaths, for hang-ups and for the broker's visitors, and ends when
//! nothing is left to wait for. What an event means is said by those who are called.
use crate::{
    Error, ErrorKind, Result,
    arena::streams::{AGAIN, release_again},
    broker::Broker,
    envelope::Door,
    fetch::{later, lost},
    fork::{Guarded, PerFork},
    hosts, joining, killpoint, limits, locked,
    notice::notice,
    waiting::events_by,
};
use nix::sys::signal::{SigSet, SigmaskHow};
use rustix::event::{EventfdFlags, epoll, eventfd};
use std::{
    os::fd::{AsFd, OwnedFd},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex},
    thread,
    time::{Duration, Instant},
};

/// Events taken in at once: all there can be, so that nobody's time is declared over who has spoken.
const EVENTS: usize = 1024;

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
    /// A connection that is to take the place of one of ours that was lost.
    Returning(u64),
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
            Self::Returning(id) => (7, id),
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
            7 => Self::Returning(id),
            _ => Self::Nudge,
        }
    }
}

/// What the thread and those who give it work share.
struct Post {
    epoll: Guarded,
    nudge: Guarded,
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

fn start() -> Result<Arc<Post>> {
    let doing = "start the watcher thread";
    limits::asked(); // while it is this thread that reads the environment
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(|e| Error::system(doing, e))?;
    let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
    let nudge: OwnedFd = eventfd(0, flags).map_err(|e| Error::system(doing, e))?;
    let data = epoll::EventData::new_u64(Source::Nudge.pack());
    epoll::add(&epoll, &nudge, data, epoll::EventFlags::IN).map_err(|e| Error::system(doing, e))?;
    let post = Arc::new(Post { epoll: Guarded::new(epoll), nudge: Guarded::new(nudge) });
    let theirs = post.clone();
    // Blocked here and inherited there: not for an instant does the thread take a signal of the program's.
    let before = SigSet::all().thread_swap_mask(SigmaskHow::SIG_BLOCK);
    let thread = ur_mapping::start_thread("causeway", move || attend(&theirs));
    if let Ok(before) = before {
        before.thread_set_mask().map_err(|e| Error::system("restore the signal mask", e))?;
    }
    thread.map_err(|e| {
        if ur_mapping::addresses_exhausted() || ur_mapping::mappings_exhausted() {
            return Error::system(doing, rustix::io::Errno::NOMEM); // which says which of them
        }
        let why = format!(
            "could not {doing}: {e}; this user or its control group has as many threads as it may have (raise `ulimit -u` or pids.max)"
        );
        let error = Error::new(ErrorKind::TooManyThreads, why);
        e.raw_os_error().map_or(error.clone(), |errno| error.with_errno(errno))
    })?;
    Ok(post)
}

/// The thread.
fn attend(post: &Arc<Post>) {
    let mut broker = Broker::new();
    let mut events = Vec::with_capacity(EVENTS);
    // Whether a device of ours may wait for somebody dead, whose own may write late.
    let mut is_awaited = false;
    loop {
        // Rounded up: woken a little late, not twice.
        let until = broker.deadline().map(|at| at + Duration::from_micros(100));
        let again = is_awaited.then(|| Instant::now() + AGAIN);
        let until = until.into_iter().chain(again).chain(lost::next()).chain(later::next()).min();
        if events_by(&post.epoll, &mut events, until).is_err() {
            thread::sleep(Duration::from_millis(10)); // out of memory, for now: do not spin
        }
        for event in &events {
            let source = Source::unpack(event.data.u64());
            let told = survives(|| pass_on(source, event.flags, post, &mut broker));
            if !told {
                survives(|| give_up(source, &mut broker));
            }
        }
        let kept = survives(|| {
            // If there may be more to hear, that comes before anybody's time is over.
            if events.len() < EVENTS {
                broker.expire(Instant::now());
            }
            broker.close_if_idle();
        });
        survives(|| broker.give_up_served());
        if !kept {
            thread::sleep(Duration::from_millis(10)); // whatever it is may be there again: do not spin
        }
        survives(lost::look);
        survives(later::look);
        survives(|| is_awaited = release_again());
        if !is_awaited && is_over(post) {
            return;
        }
    }
}

/// Does it, and returns whether it did not panic. A fault at one peer must not end the watching of all the others. No
/// lock stays poisoned (see `locked`), and what was being done for the peer is given up as a whole.
fn survives(act: impl FnOnce()) -> bool {
    let survived = catch_unwind(AssertUnwindSafe(act)).is_ok();
    if !survived {
        notice(
            &"a fault in the thread that serves and watches other processes, which is printed above: it goes on, and the connection that was concerned is given up; please report it",
        );
    }
    survived
}

/// Hearing of it failed: nothing more is expected from there.
fn give_up(source: Source, broker: &mut Broker) {
    match source {
        Source::Visitor(id) => broker.give_up(id),
        Source::VisitorProcess(id) => broker.part(id),
        Source::Host(id) => {
            if let Some(host) = hosts::by_id(id) {
                host.ended(); // and so asks whether it is there still
            }
        }
        Source::HostProcess(id) => {
            if let Some(host) = hosts::by_id(id) {
                host.bury();
            }
        }
        Source::Returning(id) => {
            if let Some(host) = hosts::by_id(id) {
                host.try_later();
            }
        }
        Source::Debtor(id) => joining::gone(id),
        Source::Entrance(_) | Source::Nudge => {} // the next one comes
    }
}

/// Tells whom it concerns.
fn pass_on(source: Source, flags: epoll::EventFlags, post: &Post, broker: &mut Broker) {
    match source {
        Source::Nudge => {
            let _ = rustix::io::read(&post.nudge, &mut [0; 8]); // nudged twice is nudged once
        }
        Source::Entrance(door) => broker.admit(door),
        Source::Visitor(id) => {
            killpoint::panic_at("watcher.hear");
            broker.hear(id, flags);
        }
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
        Source::Returning(id) => {
            if let Some(host) = hosts::by_id(id) {
                host.hear_return();
            }
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
            Source::Returning(4),
        ];
        for source in sources {
            assert_eq!(Source::unpack(source.pack()), source);
        }
    }
}
