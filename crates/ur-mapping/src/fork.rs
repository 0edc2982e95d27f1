//! How a process learns that it was forked: a page which the kernel wipes in the child, and a handler of the C library.
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

/// The count to give to the next process that finds its page wiped.
static NEXT: AtomicU64 = AtomicU64::new(1);
/// The page, mapped at first use and never unmapped; it holds this process's count, or 0 right after a fork.
static PAGE: AtomicPtr<AtomicU64> = AtomicPtr::new(null_mut());
/// Stands in for the page on a kernel that cannot wipe one; the handler below wipes it.
static FALLBACK: AtomicU64 = AtomicU64::new(0);

/// A number that differs in a forked child from its parent's and stays the same in between. One load, mostly.
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
    // SAFETY: what `PAGE` holds is mapped, or a static, for ever.
    unsafe { &*page }
}

/// Right after a fork, or at the very first call. Threads that race here agree on one number.
#[cold]
fn renew(count: &AtomicU64) -> u64 {
    // Relaxed: the number is all there is to see. `NEXT` is ordinary memory, copied by the fork.
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

/// `None` where the kernel is older than 4.14, or short of mappings.
fn wiped_page() -> Option<*mut AtomicU64> {
    const BYTES: usize = 4096;
    let rights = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a new mapping at an address of the kernel's choice.
    let page = unsafe { mmap_anonymous(null_mut(), BYTES, rights, MapFlags::PRIVATE) }.ok()?;
    // SAFETY: the mapping made above, which nobody uses yet.
    let wiped = unsafe { madvise(page, BYTES, Advice::LinuxWipeOnFork) };
    wiped.ok().map(|()| page.cast())
}

/// So many different handlers can be registered.
const HANDLERS: usize = 16;
static REGISTERED: [OnceLock<fn()>; HANDLERS] = [const { OnceLock::new() }; HANDLERS];

/// Has `f` called in every child that the C library forks, before `fork` returns there; once, however often it is
/// registered. `f` may use atomics and async-signal-safe calls only. A bare `clone` calls nobody.
///
/// # Panics
/// If more than 16 different handlers are registered: their number is known when the program is written.
pub fn on_fork_in_child(f: fn()) {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the handler only reads statics and calls what was registered.
        let refused = unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
        assert_eq!(refused, 0, "the C library has no memory for a fork handler");
    });
    let mine = |place: &OnceLock<fn()>| *place.get_or_init(|| f) as usize == f as usize;
    assert!(REGISTERED.iter().any(mine), "more than {HANDLERS} different fork handlers");
}

/// Closes the descriptor of that number, which a forked child inherited and nothing in it uses: to be called by handlers of
/// [`on_fork_in_child`] only. Whoever owns it is told by [`fork_count`] that it is not this process' any more.
pub fn close_in_child(fd: RawFd) {
    // SAFETY: a system call that takes a number, may be made in a handler, and fails for one that nothing has open.
    unsafe { libc::close(fd) };
}

/// No lock is taken here: another thread of the parent may have held it.
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

    /// What `f` says in a forked child.
    fn in_forked_child(f: impl FnOnce() -> bool) -> bool {
        // SAFETY: the child only touches atomics and leaves by `_exit`.
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            let code = if f() { 7 } else { 1 };
            // SAFETY: ends the child without running the harness's handlers.
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
    fn a_handler_registered_twice_runs_once_in_the_child_only() {
        on_fork_in_child(count_call);
        on_fork_in_child(count_call);
        assert!(in_forked_child(|| CALLS.load(Relaxed) == 1));
        assert_eq!(CALLS.load(Relaxed), 0);
    }
}
