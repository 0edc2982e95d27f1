//! What threads of this process share under a lock, and a forked child inherits. A thread that the
//! child does not have may have held the lock at the fork: the child then begins with nothing, since
//! what it would find may be half changed; else with what its parent had.
#![expect(unsafe_code, reason = "a value that is used by who has the lock")]
use std::{
    cell::UnsafeCell,
    ops::{Deref, DerefMut},
    process,
    ptr::null_mut,
    sync::atomic::{
        AtomicU32,
        Ordering::{Acquire, Relaxed, Release},
    },
};

/// A value and its lock.
pub(crate) struct Held<T> {
    /// The process of the thread that has the lock, or 0; with `WAITED` if another thread sleeps.
    owner: AtomicU32,
    value: UnsafeCell<T>,
}
/// No process has this bit in its number.
const WAITED: u32 = 1 << 31;

// SAFETY: the value is reached by one thread at a time.
unsafe impl<T: Send> Sync for Held<T> {}

impl<T: Default> Held<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self { owner: AtomicU32::new(0), value: UnsafeCell::new(value) }
    }
    /// Waits for other threads of this process.
    pub(crate) fn lock(&self) -> Guard<'_, T> {
        let us = process::id();
        // What is put there: once this thread has slept, others may sleep too.
        let mut mark = us;
        let mut seen = 0;
        while let Err(there) = self.owner.compare_exchange(seen, mark, Acquire, Relaxed) {
            let owner = there & !WAITED;
            if there == 0 || owner != us {
                // Free, or of a thread that is not in this process.
                seen = there;
                continue;
            }
            seen = 0;
            let waited = there | WAITED;
            if there == waited
                || self.owner.compare_exchange(there, waited, Relaxed, Relaxed).is_ok()
            {
                self.sleep(waited);
                mark = us | WAITED;
            }
        }
        if seen != 0 {
            // What its owner was at cannot even be dropped.
            // SAFETY: this thread has the lock, and the place is the value's.
            unsafe { self.value.get().write(T::default()) };
        }
        Guard { held: self }
    }
    /// Returns when the owner is no longer this one, or sooner.
    fn sleep(&self, owner: u32) {
        let (at, wait) = (self.owner.as_ptr(), libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG);
        let forever = null_mut::<libc::timespec>();
        // SAFETY: a word of this process, which stays.
        unsafe { libc::syscall(libc::SYS_futex, at, wait, owner, forever) };
    }
}
impl<T> Held<T> {
    fn free(&self) {
        if self.owner.swap(0, Release) & WAITED == 0 {
            return;
        }
        let (at, wake) = (self.owner.as_ptr(), libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG);
        // SAFETY: as in `sleep`.
        unsafe { libc::syscall(libc::SYS_futex, at, wake, 1) };
    }
}

/// The value, until this is dropped.
pub(crate) struct Guard<'h, T> {
    held: &'h Held<T>,
}
impl<T> Deref for Guard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: who has the lock is alone with it.
        unsafe { &*self.held.value.get() }
    }
}
impl<T> DerefMut for Guard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above.
        unsafe { &mut *self.held.value.get() }
    }
}
impl<T> Drop for Guard<'_, T> {
    fn drop(&mut self) {
        self.held.free();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How a child ended that did this; one that hangs is ended by a signal.
    fn in_a_child(act: impl FnOnce() -> bool) -> i32 {
        // SAFETY: the child calls this and ends.
        let child = unsafe { libc::fork() };
        assert!(child >= 0);
        if child == 0 {
            // SAFETY: a limit for one that hangs.
            unsafe { libc::alarm(20) };
            let well = act();
            // SAFETY: ends the child at once.
            unsafe { libc::_exit(i32::from(!well)) };
        }
        let mut status = 0;
        // SAFETY: a child of this process, and a place for the answer.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        status
    }
    #[test]
    fn a_child_inherits_the_value_and_what_it_changes_is_its_own() {
        let held = Held::new(1);
        *held.lock() = 2;
        let inherits = || *held.lock() == 2 && std::mem::replace(&mut *held.lock(), 3) == 2;
        assert_eq!(in_a_child(inherits), 0);
        assert_eq!(*held.lock(), 2);
    }
    #[test]
    fn a_child_that_was_made_while_the_lock_was_held_begins_with_nothing_and_does_not_wait() {
        let held = Held::new(vec![1]);
        let guard = held.lock();
        assert_eq!(in_a_child(|| held.lock().is_empty()), 0);
        drop(guard);
        assert_eq!(*held.lock(), [1]);
    }
    #[test]
    fn threads_wait_for_each_other() {
        let held = Held::new(0);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| (0..1000).for_each(|_| *held.lock() += 1));
            }
        });
        assert_eq!(*held.lock(), 8000);
    }
}
