//! Whose turn it is to ask over a connection that several threads use. What is asked is `fetch`'s.
use crate::locked;
use std::{
    sync::{Condvar, Mutex, PoisonError},
    time::Instant,
};

/// Whose turn it is to ask. Not a lock: it is held while a peer is waited for, and so it is waited for no longer than
/// a peer is.
#[derive(Default)]
pub(crate) struct Turn {
    taken: Mutex<bool>,
    free: Condvar,
}
pub(crate) struct Taken<'a>(&'a Turn);
impl Turn {
    /// The turn, unless the deadline passes first.
    pub fn take(&self, deadline: Instant) -> Option<Taken<'_>> {
        let patience = deadline.saturating_duration_since(Instant::now());
        let waited = self.free.wait_timeout_while(locked(&self.taken), patience, |taken| *taken);
        let (mut taken, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
        if timeout.timed_out() && *taken {
            return None;
        }
        *taken = true;
        Some(Taken(self))
    }
    pub fn try_take(&self) -> Option<Taken<'_>> {
        let mut taken = locked(&self.taken);
        (!std::mem::replace(&mut *taken, true)).then_some(Taken(self))
    }
}
impl Drop for Taken<'_> {
    fn drop(&mut self) {
        *locked(&self.0.taken) = false;
        self.0.free.notify_one();
    }
}
