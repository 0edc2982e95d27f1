//! Every system call of this crate that waits or that a signal can interrupt. An interrupted call is made again with
//! the time that is left, because a signal says nothing about what the call waits for. Profilers and language runtimes
//! send thousands of signals a second.
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

/// For calls that do not wait but that a signal may interrupt all the same.
pub(crate) use rustix::io::retry_on_intr as uninterrupted;

/// The longest that one receive call waits on a socket that [`connect_by`] connected.
pub(crate) const AT_A_TIME: Duration = Duration::from_millis(100);

const AT_ONCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

/// The time until the deadline, for the kernel; `None` if it has passed.
fn left(deadline: Instant) -> Option<Timespec> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() { None } else { Timespec::try_from(left).ok() }
}

/// Polls what each of these is ready for at this moment.
pub(crate) fn look(polled: &mut [PollFd<'_>]) -> Result<(), Errno> {
    // Even a poll that does not wait ends with EINTR if a signal is about to be delivered.
    uninterrupted(|| poll(polled, Some(&AT_ONCE))).map(drop)
}

/// Which events of `interest`, or hang-up or error, a descriptor is ready for at this moment.
pub(crate) fn look_at(fd: &impl AsFd, interest: PollFlags) -> Result<PollFlags, Errno> {
    let mut polled = [PollFd::new(fd, interest)];
    look(&mut polled).map(|()| polled[0].revents())
}

/// Waits until a descriptor is ready for `interest`, hung up or in error; returns `false` if the deadline passes first.
pub(crate) fn ready_by(
    fd: &impl AsFd,
    interest: PollFlags,
    deadline: Instant,
) -> Result<bool, Errno> {
    let mut polled = [PollFd::new(fd, interest)];
    loop {
        // Polls once more after the deadline: what arrived before that poll counts as in time.
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

/// Connects a blocking socket, waiting until the deadline if the listener's queue is full. A later receive call on it
/// waits for at most [`AT_A_TIME`].
///
/// # Errors
/// `EAGAIN` if the deadline passes first; otherwise the kernel's error.
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
        // The send timeout is the only limit that such a connect obeys. An interrupted connect has connected nothing.
        set_socket_timeout(socket, Timeout::Send, Some(left))?;
        match connect(socket, address) {
            Err(Errno::INTR) => {}
            Err(e) => return Err(e),
            Ok(()) => return set_socket_timeout(socket, Timeout::Recv, Some(AT_A_TIME)),
        }
    }
}

/// Waits for events and stores them in `into`, which stays empty if the deadline passes first. A process that is
/// resumed after a stop is interrupted by a signal: the retry then still returns the events that came meanwhile, before
/// any timeout is applied.
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

/// Sleeps on a futex while it has the value `seen`. It may return spuriously: the caller checks its condition and the
/// clock again.
///
/// # Errors
/// Any error other than a wake-up, a changed value, an interruption or the timeout: futexes do not work here.
pub(crate) fn sleep_on(
    word: &AtomicU32,
    flags: futex::Flags,
    seen: u32,
    longest: Duration,
) -> Result<(), Errno> {
    let timeout = Timespec::try_from(longest).ok();
    awake(futex::wait(word, flags, seen, timeout.as_ref()))
}

/// Like [`sleep_on`], on several futexes.
///
/// # Errors
/// As [`sleep_on`]; `ENOSYS` or `EPERM` where the kernel lacks the call or a filter forbids it.
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

/// The time `longest` from now, by the clock that `futex_waitv` uses.
fn after(longest: Duration) -> Timespec {
    let now = clock_gettime(ClockId::Monotonic);
    let nanoseconds = now.tv_nsec + i64::from(longest.subsec_nanos());
    Timespec {
        tv_sec: now.tv_sec + longest.as_secs().cast_signed() + nanoseconds / 1_000_000_000,
        tv_nsec: nanoseconds % 1_000_000_000,
    }
}
