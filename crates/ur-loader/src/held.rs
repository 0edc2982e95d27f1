//! A lock for values that a forked child inherits. If a thread of the parent held the lock at the fork, that
//! thread does not exist in the child and may have left the value half changed: the child then starts with
//! the default value. Else the child starts with the parent's value.
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

/// A value protected by its lock.
pub(crate) struct Held<T> {
    /// The id of the process whose thread holds the lock, or 0; combined with `WAITED` if threads sleep on
    /// it.
    owner: AtomicU32,
    value: UnsafeCell<T>,
}
/// A bit that no process id has.
const WAITED: u32 = 1 << 31;

// SAFETY: only the thread that holds the lock accesses the value, through `Guard`.
unsafe impl<T: Send> Sync for Held<T> {}

impl<T: Default> Held<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self { owner: AtomicU32::new(0), value: UnsafeCell::new(value) }
    }
    /// Takes the lock; waits while another thread of this process holds it.
    pub(crate) fn lock(&self) -> Guard<'_, T> {
        let us = process::id();
        // What is stored on success. After this thread has slept, other threads may still sleep, so it keeps
        // `WAITED`.
        let mut mark = us;
        let mut seen = 0;
        while let Err(there) = self.owner.compare_exchange(seen, mark, Acquire, Relaxed) {
            let owner = there & !WAITED;
            if there == 0 || owner != us {
                // The lock is free, or its owner is a thread of the parent process: take it.
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
            // The value may be half changed, so it is overwritten without being dropped.
            //
            // SAFETY: this thread holds the lock, and the pointer is that of the value.
            unsafe { self.value.get().write(T::default()) };
        }
        Guard { held: self }
    }
    /// Sleeps until the owner word is no longer `owner`; it may also return earlier.
    fn sleep(&self, owner: u32) {
        let (at, wait) = (self.owner.as_ptr(), libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG);
        let forever = null_mut::<libc::timespec>();
        // SAFETY: the word belongs to `self`, which outlives the call.
        unsafe { libc::syscall(libc::SYS_futex, at, wait, owner, forever) };
    }
}
impl<T> Held<T> {
    fn free(&self) {
        if self.owner.swap(0, Release) & WAITED == 0 {
            return;
        }
        let (at, wake) = (self.owner.as_ptr(), libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG);
        // SAFETY: the word belongs to `self`, which outlives the call.
        unsafe { libc::syscall(libc::SYS_futex, at, wake, 1) };
    }
}

/// Access to the value; dropping it releases the lock.
pub(crate) struct Guard<'h, T> {
    held: &'h Held<T>,
}
impl<T> Deref for Guard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: the guard exists only while its thread holds the lock, so no other thread accesses the
        // value.
        unsafe { &*self.held.value.get() }
    }
}
impl<T> DerefMut for Guard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as in `deref`; `&mut self` excludes other references through this guard.
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

    /// Runs `act` in a forked child and returns the child's wait status; a child that hangs is killed by
    /// SIGALRM.
    fn in_a_child(act: impl FnOnce() -> bool) -> i32 {
        // SAFETY: the child only runs `act` and then calls `_exit`.
        let child = unsafe { libc::fork() };
        assert!(child >= 0);
        if child == 0 {
            // SAFETY: only sets a timer, which ends a child that hangs.
            unsafe { libc::alarm(20) };
            let well = act();
            // SAFETY: ends the child at once, without running exit handlers of the parent.
            unsafe { libc::_exit(i32::from(!well)) };
        }
        let mut status = 0;
        // SAFETY: `child` is a child of this process, and `status` is writable.
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
