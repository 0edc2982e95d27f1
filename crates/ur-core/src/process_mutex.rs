//! A lock that a forked child does not take: a thread of the parent, which the child does not have, may hold it.
use std::sync::{Mutex, MutexGuard};
use ur_adapter::error::{Error, ErrorCode, Result};
use ur_lock::locked;

/// A value that only the process that made it may use, one thread at a time.
pub(crate) struct ProcessMutex<T> {
    fork: u64,
    value: Mutex<T>,
}
impl<T> ProcessMutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Self { fork: ur_mapping::fork_count(), value: Mutex::new(value) }
    }
    /// Locks the value.
    ///
    /// # Errors
    /// `UNINITIALIZED` in a forked child.
    pub(crate) fn lock(&self) -> Result<MutexGuard<'_, T>> {
        if self.fork == ur_mapping::fork_count() {
            return Ok(locked(&self.value));
        }
        let why = "these recorded commands were made before a fork and stayed with the parent: record them anew in the child";
        Err(Error::new(ErrorCode::Uninitialized, why))
    }
}
