//! Writing that ends no program: whoever reads a pipe may leave, and a file may reach the limit on sizes
//! (`ulimit -f`). The kernel says either by a signal as well, which ends a program that has not asked for it.
#![expect(unsafe_code, reason = "asks the C library")]
use std::{io, mem::MaybeUninit, ptr::null_mut};

/// The signals that a write can get for itself.
const SIGNALS: [i32; 2] = [libc::SIGPIPE, libc::SIGXFSZ];

/// Has `write` fail, and only that, where its thread would get one of these signals.
///
/// # Errors
/// Those of `write`, which tells of every write that fails.
pub fn spared(write: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
    let (ours, mut before) = (set(&SIGNALS), set(&[]));
    // SAFETY: a set of signals, and a place for another.
    if unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const ours, &raw mut before) } != 0 {
        return write();
    }
    let mut waited = set(&[]);
    // SAFETY: a place for a set.
    unsafe { libc::sigpending(&raw mut waited) };
    let written = write();
    if written.is_err() {
        // What waited before is the program's own.
        let new = SIGNALS.into_iter().filter(|signal| !has(&waited, *signal));
        for signal in new.filter(|signal| !has(&before, *signal)) {
            take(signal);
        }
    }
    // SAFETY: the set that was there before.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, null_mut()) };
    written
}
/// Takes a signal that waits for this thread, if one does.
fn take(signal: i32) {
    let (only, now) = (set(&[signal]), libc::timespec { tv_sec: 0, tv_nsec: 0 });
    // SAFETY: a set and a time; nothing more is asked of the signal.
    unsafe { libc::sigtimedwait(&raw const only, null_mut(), &raw const now) };
}
fn set(signals: &[i32]) -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: a place for a set, which is empty then.
    unsafe { libc::sigemptyset(set.as_mut_ptr()) };
    for signal in signals {
        // SAFETY: a set, and a signal that there is.
        unsafe { libc::sigaddset(set.as_mut_ptr(), *signal) };
    }
    // SAFETY: it was made empty, and so is whole.
    unsafe { set.assume_init() }
}
fn has(set: &libc::sigset_t, signal: i32) -> bool {
    // SAFETY: a set, and a signal that there is.
    unsafe { libc::sigismember(set, signal) == 1 }
}
