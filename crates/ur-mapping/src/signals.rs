//! Which signals a thread takes, and stopping the process.
#![expect(unsafe_code, reason = "calls the C library")]
use std::{mem::MaybeUninit, ptr::null_mut};

/// Signals that a thread raises by its own faults. Blocking them would only hide the faulty thread.
const OWN_FAULTS: [libc::c_int; 6] =
    [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGTRAP, libc::SIGSYS];

/// While this exists, the calling thread takes none of the program's signals; threads that it starts meanwhile never
/// do.
pub(crate) struct Deaf(libc::sigset_t);
impl Deaf {
    /// Blocks the signals from now on.
    pub(crate) fn begin() -> Self {
        let mut all = MaybeUninit::uninit();
        // SAFETY: a place for a set, which the call writes completely.
        unsafe { libc::sigfillset(all.as_mut_ptr()) };
        // SAFETY: written above.
        let mut all = unsafe { all.assume_init() };
        for fault in OWN_FAULTS {
            // SAFETY: an initialised set and a valid signal.
            unsafe { libc::sigdelset(&raw mut all, fault) };
        }
        let mut before = all;
        // SAFETY: two initialised sets, of which the second is written. It fails only for an invalid first argument.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before) };
        Self(before)
    }
}
impl Drop for Deaf {
    fn drop(&mut self) {
        // SAFETY: an initialised set, which the C library returned. It fails only for an invalid first argument.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.0, null_mut()) };
    }
}

/// Stops this process like SIGSTOP; the calling thread does nothing more before the process is resumed.
pub fn stop_here() {
    // SAFETY: takes no pointers. `raise` signals this thread, where `kill` may choose another.
    let refused = unsafe { libc::raise(libc::SIGSTOP) };
    assert_eq!(refused, 0, "a process may stop itself");
}

#[cfg(test)]
mod tests {
    /// The signals that this thread blocks, as a mask whose lowest bit is signal 1.
    fn blocked() -> u64 {
        let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("SigBlk:")).unwrap();
        u64::from_str_radix(line.trim(), 16).unwrap()
    }
    #[test]
    fn a_thread_that_is_started_takes_no_signals_but_its_own_faults_and_its_starter_takes_all() {
        let before = blocked();
        let free = crate::start_thread("deaf", blocked).unwrap().join().unwrap();
        let scoped = std::thread::scope(|scope| {
            crate::start_scoped_thread(scope, "deaf", blocked).unwrap().join().unwrap()
        });
        assert_eq!(blocked(), before);
        for there in [free, scoped] {
            let is_in = |signal: libc::c_int| there >> (signal - 1) & 1 == 1;
            let theirs = [libc::SIGINT, libc::SIGTERM, libc::SIGPROF, libc::SIGCHLD, libc::SIGALRM];
            assert!(theirs.into_iter().all(is_in), "{there:x}");
            assert!(!super::OWN_FAULTS.into_iter().any(is_in), "{there:x}");
        }
    }
}
