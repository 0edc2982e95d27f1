//! Every system call of this crate that waits, or that a signal can cut short. A signal says nothing of what was asked:
//! the call is made again, with the time that is left. Profilers and language runtimes send thousands a second.
use rustix::{
    event::{PollFd, PollFlags, Timespec, epoll, poll},
    io::Errno,
    net::{
        SocketAddrUnix, connect,
        sockopt::{Timeout, set_socket_timeout},
    },
    thread::{ClockId, futex},
    time::clock_gettime,
};
use std::{
    os::fd::AsFd,
    sync::atomic::AtomicU32,
    time::{Duration, Instant},
};

/// For calls that do not wait, and which a signal may end all the same.
pub(crate) use rustix::io::retry_on_intr as uninterrupted;

/// The longest that a call waits on a connected socket that is told to wait no longer; see [`connect_by`].
pub(crate) const AT_A_TIME: Duration = Duration::from_millis(100);

const AT_ONCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

/// The time that is left, for the kernel; nothing if the deadline has passed.
fn left(deadline: Instant) -> Option<Timespec> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() { None } else { Timespec::try_from(left).ok() }
}

/// What each of these is ready for at this moment.
pub(crate) fn look(polled: &mut [PollFd<'_>]) -> Result<(), Errno> {
    // Even a look that waits for nothing ends with EINTR where a signal is about to be delivered.
    uninterrupted(|| poll(polled, Some(&AT_ONCE))).map(drop)
}

/// What of `interest`, or of its end, a descriptor is ready for at this moment.
pub(crate) fn look_at(fd: &impl AsFd, interest: PollFlags) -> Result<PollFlags, Errno> {
    let mut polled = [PollFd::new(fd, interest)];
    look(&mut polled).map(|()| polled[0].revents())
}

/// Waits until a descriptor is ready for `interest` or at its end; `false` if the deadline passes first.
pub(crate) fn ready_by(
    fd: &impl AsFd,
    interest: PollFlags,
    deadline: Instant,
) -> Result<bool, Errno> {
    let mut polled = [PollFd::new(fd, interest)];
    loop {
        // A last look after the deadline: what came meanwhile came in time, as far as anybody can tell.
        let left = left(deadline);
        match poll(&mut polled, Some(left.as_ref().unwrap_or(&AT_ONCE))) {
            Err(Errno::INTR) => {}
            Ok(0) if left.is_none() => return Ok(false),
            Ok(0) => {}
            Ok(_) => return Ok(true),
            Err(e) => return Err(e),
        }
    }
}

/// Connects a socket that blocks, however long the other side's queue is full. A call that receives from it waits for
/// [`AT_A_TIME`] at the longest.
///
/// # Errors
/// `EAGAIN` if the deadline passes first; else what the kernel says.
pub(crate) fn connect_by(
    socket: &impl AsFd,
    address: &SocketAddrUnix,
    deadline: Instant,
) -> Result<(), Errno> {
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(Errno::AGAIN);
        }
        // The only clock that such a connect goes by. Cut short by a signal, it has connected nothing.
        set_socket_timeout(socket, Timeout::Send, Some(left))?;
        match connect(socket, address) {
            Err(Errno::INTR) => {}
            Err(e) => return Err(e),
            Ok(()) => return set_socket_timeout(socket, Timeout::Recv, Some(AT_A_TIME)),
        }
    }
}

/// Waits for events, which `into` has then; none if the deadline passes first. A process that was stopped and goes on is
/// told so by a signal: it first hears what came meanwhile, and only then that time is over.
pub(crate) fn events_by(
    epoll: &impl AsFd,
    into: &mut Vec<epoll::Event>,
    deadline: Option<Instant>,
) -> Result<(), Errno> {
    loop {
        let timeout = deadline.map(|at| left(at).unwrap_or(AT_ONCE));
        into.clear();
        match epoll::wait(epoll, rustix::buffer::spare_capacity(into), timeout.as_ref()) {
            Err(Errno::INTR) => {}
            done => return done.map(drop),
        }
    }
}

/// Sleeps on a futex that shows `seen`. Returns for no reason at all too: whoever sleeps looks again, and at the clock.
///
/// # Errors
/// What is neither a wake-up nor the end of the time: futexes do not work here.
pub(crate) fn sleep_on(
    word: &AtomicU32,
    flags: futex::Flags,
    seen: u32,
    longest: Duration,
) -> Result<(), Errno> {
    let timeout = Timespec::try_from(longest).ok();
    awake(futex::wait(word, flags, seen, timeout.as_ref()))
}

/// The same on several futexes.
///
/// # Errors
/// As [`sleep_on`]; `ENOSYS` and `EPERM` where the kernel has no such call.
pub(crate) fn sleep_on_any(waits: &[futex::Wait], longest: Duration) -> Result<(), Errno> {
    let until = after(longest);
    awake(futex::waitv(waits, futex::WaitvFlags::empty(), Some(&until), ClockId::Monotonic))
}

fn awake<T>(slept: Result<T, Errno>) -> Result<(), Errno> {
    match slept {
        Ok(_) | Err(Errno::AGAIN | Errno::INTR | Errno::TIMEDOUT) => Ok(()),
        Err(e) => Err(e),
    }
}

/// The point in time, by the clock that `futex_waitv` goes by.
fn after(longest: Duration) -> Timespec {
    let now = clock_gettime(ClockId::Monotonic);
    let nanoseconds = now.tv_nsec + i64::from(longest.subsec_nanos());
    Timespec {
        tv_sec: now.tv_sec + longest.as_secs().cast_signed() + nanoseconds / 1_000_000_000,
        tv_nsec: nanoseconds % 1_000_000_000,
    }
}
