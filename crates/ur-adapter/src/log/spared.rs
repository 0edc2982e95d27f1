//! Writing without the risk of ending the program: the reader of a pipe may close it, and a file may reach the size
//! limit (`ulimit -f`). In both cases the kernel also sends a signal, which ends a program that does not handle it.
#![expect(unsafe_code, reason = "asks the C library")]
use std::{io, mem::MaybeUninit, ptr::null_mut};

/// The signals that a write can raise.
const SIGNALS: [i32; 2] = [libc::SIGPIPE, libc::SIGXFSZ];

/// Calls `write` so that it only fails where its thread would otherwise get one of these signals.
///
/// # Errors
/// The errors of `write`, which must report every write that fails.
pub fn spared(write: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
    let (ours, mut before) = (set(&SIGNALS), set(&[]));
    // SAFETY: an initialised set of signals, and a place for another set.
    if unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const ours, &raw mut before) } != 0 {
        return write();
    }
    let mut waited = set(&[]);
    // SAFETY: a place for a set.
    unsafe { libc::sigpending(&raw mut waited) };
    let written = write();
    if written.is_err() {
        // A signal that was pending before belongs to the program.
        let new = SIGNALS.into_iter().filter(|signal| !has(&waited, *signal));
        for signal in new.filter(|signal| !has(&before, *signal)) {
            take(signal);
        }
    }
    // SAFETY: the set that was active before.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, null_mut()) };
    written
}
/// Takes a signal that is pending for this thread, if it is.
fn take(signal: i32) {
    let (only, now) = (set(&[signal]), libc::timespec { tv_sec: 0, tv_nsec: 0 });
    // SAFETY: an initialised set and time; null is allowed where no information is wanted.
    unsafe { libc::sigtimedwait(&raw const only, null_mut(), &raw const now) };
}
fn set(signals: &[i32]) -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: a place for a set, which the call initialises.
    unsafe { libc::sigemptyset(set.as_mut_ptr()) };
    for signal in signals {
        // SAFETY: an initialised set and a valid signal.
        unsafe { libc::sigaddset(set.as_mut_ptr(), *signal) };
    }
    // SAFETY: `sigemptyset` initialised it.
    unsafe { set.assume_init() }
}
fn has(set: &libc::sigset_t, signal: i32) -> bool {
    // SAFETY: an initialised set and a valid signal.
    unsafe { libc::sigismember(set, signal) == 1 }
}
