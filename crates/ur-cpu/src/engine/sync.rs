//! What the engine takes from `std` to be safe between threads, in one place: the models in
//! `tests/model.rs` compile `gate.rs` over loom's instead.
pub(super) use std::sync::{
    Condvar, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicU32, AtomicU64, Ordering, fence},
};

/// The lock, whatever happened to its last holder: what ours guard is whole between statements.
pub(super) fn locked<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}
