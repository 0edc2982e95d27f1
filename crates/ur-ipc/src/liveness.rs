//! The set of descriptors that the watcher thread, one per process, waits on: deaths, hang-ups and connections to the
//! broker. The thread starts with the first of them and ends when none is left. `watcher` handles the events.
use crate::{
    Error, ErrorKind, Result,
    envelope::SocketScope,
    fork::{Guarded, PerFork},
    limits, locked,
};
use rustix::event::{EventfdFlags, epoll, eventfd};
use std::{
    os::fd::{AsFd, OwnedFd},
    sync::{Arc, Mutex, OnceLock},
};

/// What the watcher waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Source {
    /// Another thread woke the watcher thread.
    Nudge,
    /// An importer wants to connect to this process's broker.
    Entrance(SocketScope),
    /// A connection to this process's broker.
    Connection(u64),
    /// The process at the other end of a connection to this process's broker.
    ConnectionProcess(u64),
    /// A connection of this process to another process's broker.
    Host(u64),
    /// The process at the other end of a connection to another broker.
    HostProcess(u64),
    /// A third process, which has a signal pending in an arena that this process joined.
    Debtor(u64),
    /// A connection that is to replace a lost connection to another broker.
    Returning(u64),
}
impl Source {
    fn pack(self) -> u64 {
        let (kind, id) = match self {
            Self::Nudge => (0, 0),
            Self::Entrance(scope) => (1, scope as u64),
            Self::Connection(id) => (2, id),
            Self::ConnectionProcess(id) => (3, id),
            Self::Host(id) => (4, id),
            Self::HostProcess(id) => (5, id),
            Self::Debtor(id) => (6, id),
            Self::Returning(id) => (7, id),
        };
        id << 3 | kind
    }
    pub fn unpack(packed: u64) -> Self {
        let id = packed >> 3;
        match packed & 7 {
            1 if id == SocketScope::Others as u64 => Self::Entrance(SocketScope::Others),
            1 => Self::Entrance(SocketScope::Private),
            2 => Self::Connection(id),
            3 => Self::ConnectionProcess(id),
            4 => Self::Host(id),
            5 => Self::HostProcess(id),
            6 => Self::Debtor(id),
            7 => Self::Returning(id),
            _ => Self::Nudge,
        }
    }
}

/// What the watcher thread shares with the threads that add to its work.
pub(crate) struct Post {
    pub epoll: Guarded,
    pub nudge: Guarded,
}
/// The running thread's [`Post`], and how many sources it watches.
#[derive(Default)]
struct Watch {
    post: Option<Arc<Post>>,
    sources: usize,
}
static WATCH: PerFork<Mutex<Watch>> = PerFork::new();

type Attend = fn(&Arc<Post>);
/// The thread's main function. It is registered at run time because `watcher`, which defines it, depends on this
/// module.
static ATTEND: OnceLock<Attend> = OnceLock::new();

/// Registers the thread's main function; to be called before anything is watched.
pub(crate) fn attend_by(attend: Attend) {
    ATTEND.get_or_init(|| attend);
}

/// Watches `fd` for `interest`, and starts the thread if necessary. Hang-ups are always reported.
pub(crate) fn watch(source: Source, fd: &impl AsFd, interest: epoll::EventFlags) -> Result<()> {
    let mut watch = locked(WATCH.get()?);
    let post = match &watch.post {
        Some(post) => post.clone(),
        None => start()?,
    };
    let added = epoll::add(&post.epoll, fd, epoll::EventData::new_u64(source.pack()), interest);
    match added {
        Ok(()) => watch.sources += 1,
        Err(_) if watch.sources == 0 && watch.post.is_none() => nudge_post(&post), // ends the new thread
        Err(_) => {}
    }
    watch.post.get_or_insert(post);
    added.map_err(|e| Error::system("watch a descriptor (epoll)", e))
}

/// Changes the events for which a descriptor is watched.
pub(crate) fn rewatch(source: Source, fd: &impl AsFd, interest: epoll::EventFlags) {
    let Some(watch) = WATCH.peek() else { return };
    if let Some(post) = &locked(watch).post {
        // Fails only if the descriptor is not watched any more; then its events are of no interest either.
        let _ = epoll::modify(&post.epoll, fd, epoll::EventData::new_u64(source.pack()), interest);
    }
}

/// Stops watching a descriptor; to be called before it is closed.
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

/// Wakes the thread so that it checks whether there is anything left to do.
pub(crate) fn nudge() {
    if let Some(post) = WATCH.peek().and_then(|watch| locked(watch).post.clone()) {
        nudge_post(&post);
    }
}
fn nudge_post(post: &Post) {
    // A full counter means that the thread was woken already; nothing else can fail.
    let _ = rustix::io::write(&post.nudge, &1u64.to_ne_bytes());
}

fn start() -> Result<Arc<Post>> {
    let doing = "start the watcher thread";
    let attend = ATTEND.get().expect("whoever shares or opens names it first");
    limits::asked(); // here, because the watcher thread must not read the environment
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(|e| Error::system(doing, e))?;
    let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
    let nudge: OwnedFd = eventfd(0, flags).map_err(|e| Error::system(doing, e))?;
    let data = epoll::EventData::new_u64(Source::Nudge.pack());
    epoll::add(&epoll, &nudge, data, epoll::EventFlags::IN).map_err(|e| Error::system(doing, e))?;
    let post = Arc::new(Post { epoll: Guarded::new(epoll), nudge: Guarded::new(nudge) });
    let theirs = post.clone();
    let thread = ur_mapping::start_thread("causeway", move || attend(&theirs));
    thread.map_err(|e| {
        if ur_mapping::addresses_exhausted() || ur_mapping::mappings_exhausted() {
            return Error::system(doing, rustix::io::Errno::NOMEM); // from which `Error::system` tells which limit it is
        }
        let why = format!(
            "could not {doing}: {e}; this user or its control group has as many threads as it may have (raise `ulimit -u` or pids.max)"
        );
        let error = Error::new(ErrorKind::TooManyThreads, why);
        e.raw_os_error().map_or(error.clone(), |errno| error.with_errno(errno))
    })?;
    Ok(post)
}

/// Whether nothing is left to watch. If so, the thread ends, and the next source starts a new one.
pub(crate) fn is_over(post: &Arc<Post>) -> bool {
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
            Source::Entrance(SocketScope::Private),
            Source::Entrance(SocketScope::Others),
            Source::Connection(7),
            Source::ConnectionProcess(1 << 40),
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
