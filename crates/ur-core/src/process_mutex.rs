//! A lock that a forked child does not take: a thread of the parent, which the child does not have, may hold it, and may be
//! in the middle of a change of the value. So the child does not drop the value either.
use std::{
    fmt,
    sync::{Mutex, MutexGuard},
};
use ur_adapter::error::{Error, ErrorCode, Result};
use ur_lock::{locked, unpoisoned};

/// A value that only the process that made it may use, one thread at a time.
pub(crate) struct ProcessMutex<T> {
    fork: u64,
    /// Taken by `drop`.
    value: Option<Mutex<T>>,
}
impl<T> ProcessMutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Self { fork: ur_mapping::fork_count(), value: Some(Mutex::new(value)) }
    }
    fn is_own(&self) -> bool {
        self.fork == ur_mapping::fork_count()
    }
    /// Locks the value.
    ///
    /// # Errors
    /// `UNINITIALIZED` in a forked child.
    pub(crate) fn lock(&self) -> Result<MutexGuard<'_, T>> {
        if let Some(value) = self.value.as_ref().filter(|_| self.is_own()) {
            return Ok(locked(value));
        }
        let why = "the object was made before a fork and stayed with the parent: make it anew in the child";
        Error::refuse(ErrorCode::Uninitialized, why)
    }
    /// The value, without its lock; `None` in a forked child.
    pub(crate) fn get_mut(&mut self) -> Option<&mut T> {
        let is_own = self.is_own();
        self.value.as_mut().filter(|_| is_own).map(|value| unpoisoned(value.get_mut()))
    }
}
impl<T: Default> Default for ProcessMutex<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}
impl<T> fmt::Debug for ProcessMutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProcessMutex").finish_non_exhaustive()
    }
}
impl<T> Drop for ProcessMutex<T> {
    fn drop(&mut self) {
        if !self.is_own() {
            std::mem::forget(self.value.take());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        mem::forget,
        sync::atomic::{AtomicU32, Ordering::Relaxed},
    };

    static DROPPED: AtomicU32 = AtomicU32::new(0);
    #[derive(Debug)]
    struct Counts;
    impl Drop for Counts {
        fn drop(&mut self) {
            DROPPED.fetch_add(1, Relaxed);
        }
    }

    #[test]
    fn only_the_process_that_made_a_value_locks_or_drops_it() {
        let own = ProcessMutex::new(Counts);
        assert!(own.lock().is_ok());
        drop(own);
        assert_eq!(DROPPED.load(Relaxed), 1);
        // As a forked child inherits it: while a thread of the parent, which the child does not have, changes the value.
        let mut inherited = ProcessMutex::new(Counts);
        inherited.fork = 0;
        assert_eq!(inherited.lock().unwrap_err().code(), ErrorCode::Uninitialized);
        drop(inherited);
        assert_eq!(DROPPED.load(Relaxed), 1, "the value is the parent's");
        let mut held = ProcessMutex::new(());
        assert!(held.get_mut().is_some());
        forget(held.lock().unwrap());
        held.fork = 0;
        assert_eq!(held.lock().unwrap_err().code(), ErrorCode::Uninitialized);
        assert!(held.get_mut().is_none());
    }
}
