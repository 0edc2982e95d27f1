//! Locks of the standard library, taken also after a thread panicked while it held one, values that are made once, and code whose panic ends nothing else. Panics become result codes
//! where C called (`ur_adapter::entry`), so a panic must not turn every later call into another one: whoever holds
//! one of these locks keeps what it guards consistent after each statement that can panic.
mod per_key;
mod shared;

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        LockResult, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, RwLockReadGuard,
        RwLockWriteGuard,
    },
};

pub use per_key::PerKey;
pub use shared::Shared;

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

/// The value of the cell. If it has none, `make` makes one; a failure is not kept. Several threads may make one at the same
/// time, of which one is kept.
///
/// # Errors
/// Returns the error of `make`.
pub fn get_or_try<T, E>(cell: &OnceLock<T>, make: impl FnOnce() -> Result<T, E>) -> Result<&T, E> {
    if let Some(known) = cell.get() {
        return Ok(known);
    }
    let made = make()?;
    Ok(cell.get_or_init(|| made))
}
/// Runs `act`; `None` if it panicked. The payload of the panic is dropped here; if that drop panics too, what it throws is
/// leaked, since nothing can be done with it that may not panic again.
pub fn caught<T>(act: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(act)).map_err(discard).ok()
}
/// Drops the payload of a panic, as [`caught`] does.
pub fn discard(payload: Box<dyn std::any::Any + Send>) {
    if let Err(again) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        std::mem::forget(again);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{sync::Arc, thread};

    #[test]
    fn a_value_is_made_once_and_a_failure_is_not_kept() {
        let cell = OnceLock::new();
        assert_eq!(get_or_try(&cell, || Err::<u8, _>("no")), Err("no"));
        assert_eq!(get_or_try::<_, &str>(&cell, || Ok(1)), Ok(&1));
        assert_eq!(get_or_try::<_, &str>(&cell, || unreachable!("it is made")), Ok(&1));
    }
    #[test]
    fn a_panic_ends_what_panicked_also_if_its_payload_panics_when_it_is_dropped() {
        struct Again(u32);
        impl Drop for Again {
            fn drop(&mut self) {
                if self.0 > 0 {
                    std::panic::panic_any(Again(self.0 - 1));
                }
            }
        }
        assert_eq!(caught(|| 7), Some(7));
        assert_eq!(caught(|| panic!("of its own")), None::<()>);
        for depth in 0..3 {
            assert_eq!(caught(|| std::panic::panic_any(Again(depth))), None::<()>);
        }
    }
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
