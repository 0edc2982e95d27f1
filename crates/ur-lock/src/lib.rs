//! Locks of the standard library, taken also after a thread panicked while it held one. Panics become result codes
//! where C called (`ur_adapter::entry`), so a panic must not turn every later call into another one: whoever holds
//! one of these locks keeps what it guards consistent after each statement that can panic.
use std::sync::{
    LockResult, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard,
};

/// The result of a lock or of a condition variable, poisoned or not.
pub fn unpoisoned<T>(result: LockResult<T>) -> T {
    result.unwrap_or_else(PoisonError::into_inner)
}
/// Waits for the mutex.
pub fn locked<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    unpoisoned(mutex.lock())
}
/// Waits until no thread writes.
pub fn read_locked<T: ?Sized>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    unpoisoned(lock.read())
}
/// Waits until no other thread reads or writes.
pub fn write_locked<T: ?Sized>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    unpoisoned(lock.write())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{sync::Arc, thread};

    #[test]
    fn a_lock_is_taken_after_a_thread_panicked_with_it() {
        let both = Arc::new((Mutex::new(1), RwLock::new(2)));
        let its = both.clone();
        let panicked = thread::spawn(move || {
            let (_one, _other) = (its.0.lock(), its.1.write());
            panic!("with both");
        });
        assert!(panicked.join().is_err());
        assert!(both.0.is_poisoned() && both.1.is_poisoned());
        *locked(&both.0) += 1;
        *write_locked(&both.1) += 1;
        assert_eq!((*locked(&both.0), *read_locked(&both.1)), (2, 3));
    }
}
