//! The synchronization primitives that the engine uses from `std`, in one place: the model in
//! `tests/model.rs` compiles `gate.rs` with loom's instead.
pub(super) use std::sync::{
    Condvar, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicU32, AtomicU64, Ordering, fence},
};

/// Locks, even if a holder panicked: the data is consistent between statements.
pub(super) fn locked<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}
