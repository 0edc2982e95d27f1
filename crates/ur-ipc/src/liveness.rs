//! What the one watcher thread of a process waits for: deaths, hang-ups and the broker's visitors. It starts with the first
//! of them and ends when nothing is left to wait for. What it does when something happens is `watcher`'s.
use crate::{
    Error, ErrorKind, Result,
    envelope::Door,
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
    pub fn unpack(packed: u64) -> Self {
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
pub(crate) struct Post {
    pub epoll: Guarded,
    pub nudge: Guarded,
}
/// The running thread's post, and how many sources it watches.
#[derive(Default)]
struct Watch {
    post: Option<Arc<Post>>,
    sources: usize,
}
static WATCH: PerFork<Mutex<Watch>> = PerFork::new();

type Attend = fn(&Arc<Post>);
/// What the thread does. It stands above all that is watched.
static ATTEND: OnceLock<Attend> = OnceLock::new();

/// Has the thread do this when it starts; to be called before anything is watched.
pub(crate) fn attend_by(attend: Attend) {
    ATTEND.get_or_init(|| attend);
}

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
    let attend = ATTEND.get().expect("whoever shares or opens names it first");
    limits::asked(); // while it is this thread that reads the environment
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

/// Whether nothing is left to watch; then the next source starts a new thread.
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
