//! How a process learns that it was forked: a page that the kernel wipes in the child, and a handler of the C library.
#![expect(unsafe_code, reason = "maps the page, reads it through a pointer, registers the handler")]
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous};
use std::{
    os::fd::RawFd,
    ptr::null_mut,
    sync::{
        Once, OnceLock,
        atomic::{AtomicPtr, AtomicU64, Ordering::*},
    },
};

/// The count for the next process that finds its page wiped.
static NEXT: AtomicU64 = AtomicU64::new(1);
/// The page, mapped at first use and never unmapped. It holds this process's count, or 0 right after a fork.
static PAGE: AtomicPtr<AtomicU64> = AtomicPtr::new(null_mut());
/// Replaces the page on a kernel that cannot wipe one; a fork handler wipes it instead.
static FALLBACK: AtomicU64 = AtomicU64::new(0);

/// A number that differs between a forked child and its parent, and does not change otherwise. Mostly costs one load.
#[inline]
pub fn fork_count() -> u64 {
    let page = PAGE.load(Acquire); // pairs with the store in `map_page`
    let count = if page.is_null() { map_page() } else { at(page) };
    match count.load(Relaxed) {
        0 => renew(count),
        seen => seen,
    }
}

fn at(page: *mut AtomicU64) -> &'static AtomicU64 {
    // SAFETY: `PAGE` holds the address of a static or of a page that is never unmapped.
    unsafe { &*page }
}

/// Runs right after a fork, or at the very first call. Threads that race here agree on one number.
#[cold]
fn renew(count: &AtomicU64) -> u64 {
    // Relaxed: nothing but the number itself is read. `NEXT` is ordinary memory, which the fork copies.
    let mine = NEXT.fetch_add(1, Relaxed);
    count.compare_exchange(0, mine, Relaxed, Relaxed).map_or_else(|won| won, |_| mine)
}

#[cold]
fn map_page() -> &'static AtomicU64 {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let page = wiped_page().unwrap_or_else(|| {
            on_fork_in_child(|| FALLBACK.store(0, Relaxed));
            (&raw const FALLBACK).cast_mut()
        });
        PAGE.store(page, Release);
    });
    at(PAGE.load(Acquire))
}

/// Maps the page; `None` where the kernel is older than 4.14, or short of mappings.
fn wiped_page() -> Option<*mut AtomicU64> {
    const BYTES: usize = 4096;
    let rights = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: creates a new mapping at an address that the kernel chooses.
    let page = unsafe { mmap_anonymous(null_mut(), BYTES, rights, MapFlags::PRIVATE) }.ok()?;
    // SAFETY: the page was mapped above, and nothing else refers to it yet.
    let wiped = unsafe { madvise(page, BYTES, Advice::LinuxWipeOnFork) };
    wiped.ok().map(|()| page.cast())
}

/// How many different handlers can be registered.
const HANDLERS: usize = 16;
static REGISTERED: [OnceLock<fn()>; HANDLERS] = [const { OnceLock::new() }; HANDLERS];

/// Registers `f`, which is called in every child that the C library forks, before `fork` returns there. It is called
/// once per child, however often it is registered. `f` may only use atomics and async-signal-safe calls. A bare `clone`
/// does not call it.
///
/// # Panics
/// If more than 16 different handlers are registered. Their number is fixed by the program's code.
pub fn on_fork_in_child(f: fn()) {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the handler only reads statics and calls the registered functions, which are async-signal-safe.
        let refused = unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
        assert_eq!(refused, 0, "the C library has no memory for a fork handler");
    });
    let mine = |place: &OnceLock<fn()>| *place.get_or_init(|| f) as usize == f as usize;
    assert!(REGISTERED.iter().any(mine), "more than {HANDLERS} different fork handlers");
}

/// Has the C library call these at every fork: `before` by the thread that forks, last of all that is done before a fork where
/// no handler was registered earlier; `after` by the same thread, in the parent; `in_child` by the child's thread. That
/// may only use atomics and async-signal-safe calls. A bare `clone` calls none of them, and neither does `vfork`.
pub fn around_forks(before: extern "C" fn(), after: extern "C" fn(), in_child: extern "C" fn()) {
    // SAFETY: the three are safe functions without arguments, which stay as long as this library is loaded.
    let refused = unsafe { libc::pthread_atfork(Some(before), Some(after), Some(in_child)) };
    assert_eq!(refused, 0, "the C library has no memory for a fork handler");
}

/// Closes a descriptor that a forked child inherited and does not use. It may only be called by handlers of
/// [`on_fork_in_child`]. The descriptor's owner learns from [`fork_count`] that it no longer belongs to its process.
pub fn close_in_child(fd: RawFd) {
    // SAFETY: `close` is async-signal-safe, takes no pointer, and fails for a number that is not open.
    unsafe { libc::close(fd) };
}

/// Takes no lock, because another thread of the parent may have held it at the fork.
unsafe extern "C" fn in_child() {
    for f in REGISTERED.iter().map_while(OnceLock::get) {
        f();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::{Pid, WaitOptions, waitpid};

    static CALLS: AtomicU64 = AtomicU64::new(0);
    fn count_call() {
        CALLS.fetch_add(1, Relaxed);
    }

    /// Whether `f` returns true in a forked child.
    fn in_forked_child(f: impl FnOnce() -> bool) -> bool {
        // SAFETY: the child only uses atomics and ends with `_exit`.
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            let code = if f() { 7 } else { 1 };
            // SAFETY: ends the child without running the test harness's exit handlers.
            unsafe { libc::_exit(code) }
        }
        let pid = Pid::from_raw(pid).expect("fork works");
        let status = waitpid(Some(pid), WaitOptions::empty()).unwrap().unwrap().1;
        status.exit_status() == Some(7)
    }

    #[test]
    fn a_child_counts_differently_and_keeps_its_count() {
        let ours = fork_count();
        assert_eq!(fork_count(), ours);
        let grandchild = |theirs| move || fork_count() != theirs && fork_count() != ours;
        assert!(in_forked_child(|| {
            let theirs = fork_count();
            theirs != ours && fork_count() == theirs && in_forked_child(grandchild(theirs))
        }));
        assert_eq!(fork_count(), ours);
    }
    #[test]
    fn what_is_called_around_a_fork_is_called_once_on_each_side() {
        static AROUND: AtomicU64 = AtomicU64::new(0);
        extern "C" fn before() {
            AROUND.fetch_add(1, Relaxed);
        }
        extern "C" fn after() {
            AROUND.fetch_add(10, Relaxed);
        }
        extern "C" fn in_child() {
            AROUND.fetch_add(100, Relaxed);
        }
        around_forks(before, after, in_child);
        let seen = AROUND.load(Relaxed); // other tests fork, too
        assert!(in_forked_child(|| AROUND.load(Relaxed) % 1000 / 100 == 1));
        assert!(AROUND.load(Relaxed) >= seen + 11);
        assert_eq!(AROUND.load(Relaxed) / 100, 0, "in the child only");
    }
    #[test]
    fn a_handler_registered_twice_runs_once_in_the_child_only() {
        on_fork_in_child(count_call);
        on_fork_in_child(count_call);
        assert!(in_forked_child(|| CALLS.load(Relaxed) == 1));
        assert_eq!(CALLS.load(Relaxed), 0);
    }
}
