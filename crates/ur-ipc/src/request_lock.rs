//! The lock that orders the requests of several threads over one connection. The requests are made in `fetch`.
use crate::locked;
use std::{
    sync::{Condvar, Mutex},
    time::Instant,
};

/// Serialises requests. It is not a mutex because it is held while waiting for a peer: threads therefore wait for it
/// only until their deadline.
#[derive(Default)]
pub(crate) struct RequestLock {
    state: Mutex<State>,
    free: Condvar,
}
#[derive(Default)]
struct State {
    taken: bool,
    waiting: usize,
}
pub(crate) struct Taken<'a>(&'a RequestLock);
impl RequestLock {
    /// Takes the lock; `None` if the deadline passes first.
    pub fn take(&self, deadline: Instant) -> Option<Taken<'_>> {
        let mut state = locked(&self.state);
        if state.taken {
            state.waiting += 1;
            let patience = deadline.saturating_duration_since(Instant::now());
            let waited = self.free.wait_timeout_while(state, patience, |state| state.taken);
            (state, _) = ur_lock::unpoisoned(waited);
            state.waiting -= 1;
        }
        (!std::mem::replace(&mut state.taken, true)).then(|| Taken(self)) // lazily: dropping a `Taken` takes the mutex
    }
    pub fn try_take(&self) -> Option<Taken<'_>> {
        let mut state = locked(&self.state);
        (!std::mem::replace(&mut state.taken, true)).then(|| Taken(self)) // lazily: dropping a `Taken` takes the mutex
    }
}
impl Drop for Taken<'_> {
    fn drop(&mut self) {
        let mut state = locked(&self.0.state);
        state.taken = false;
        if state.waiting > 0 {
            self.0.free.notify_one(); // a system call, and mostly no thread waits
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{thread, time::Duration};

    #[test]
    fn a_turn_is_one_threads_at_a_time_and_waited_for_no_longer_than_said() {
        let turn = RequestLock::default();
        let taken = turn.take(Instant::now()).unwrap();
        assert!(turn.try_take().is_none());
        assert!(turn.take(Instant::now() + Duration::from_millis(5)).is_none());
        drop(taken);
        assert!(turn.try_take().is_some());
    }
    #[test]
    fn whoever_waits_gets_it_next() {
        let (turn, taken) = (RequestLock::default(), std::sync::atomic::AtomicU32::new(0));
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        let _turn = turn.take(Instant::now() + Duration::from_secs(20)).unwrap();
                        let others = taken.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                        assert_eq!(others, 0);
                        taken.fetch_sub(1, std::sync::atomic::Ordering::SeqCst);
                    }
                });
            }
        });
    }
}
