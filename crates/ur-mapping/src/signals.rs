//! Which signals threads take, and how a thread stops itself.
#![expect(unsafe_code, reason = "calls the C library")]
use std::{mem::MaybeUninit, ptr::null_mut};

/// What a thread raises by what it does itself. Blocking these would only hide who did it.
const OWN_FAULTS: [libc::c_int; 6] =
    [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGTRAP, libc::SIGSYS];

/// Has this thread take none of the program's signals until this is dropped, and threads that it starts meanwhile never.
pub struct Deaf(libc::sigset_t);
impl Deaf {
    /// From now on.
    pub fn begin() -> Self {
        let mut all = MaybeUninit::uninit();
        // SAFETY: a place for a set, which is written whole.
        unsafe { libc::sigfillset(all.as_mut_ptr()) };
        // SAFETY: written above.
        let mut all = unsafe { all.assume_init() };
        for fault in OWN_FAULTS {
            // SAFETY: a whole set, and a signal that there is.
            unsafe { libc::sigdelset(&raw mut all, fault) };
        }
        let mut before = all;
        // SAFETY: two whole sets, the second of which is written. Fails only for another first argument.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before) };
        Self(before)
    }
}
impl Drop for Deaf {
    fn drop(&mut self) {
        // SAFETY: a whole set, which the C library gave. It fails only for another first argument.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.0, null_mut()) };
    }
}

/// Stops this process as SIGSTOP does; this thread does nothing more before it goes on.
pub fn stop_here() {
    // SAFETY: takes no pointers. To this thread, where `kill` may choose another.
    let refused = unsafe { libc::raise(libc::SIGSTOP) };
    assert_eq!(refused, 0, "a process may stop itself");
}

#[cfg(test)]
mod tests {
    /// The signals that this thread does not take, a bit each, from 1 on.
    fn blocked() -> u64 {
        let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("SigBlk:")).unwrap();
        u64::from_str_radix(line.trim(), 16).unwrap()
    }
    #[test]
    fn a_thread_that_is_started_takes_no_signals_but_its_own_faults_and_its_starter_takes_all() {
        let before = blocked();
        let there = crate::start_thread("deaf", blocked).unwrap().join().unwrap();
        assert_eq!(blocked(), before);
        let is_in = |signal: libc::c_int| there >> (signal - 1) & 1 == 1;
        let theirs = [libc::SIGINT, libc::SIGTERM, libc::SIGPROF, libc::SIGCHLD, libc::SIGALRM];
        assert!(theirs.into_iter().all(is_in), "{there:x}");
        assert!(!super::OWN_FAULTS.into_iter().any(is_in), "{there:x}");
    }
}
