//! The states of streams, which outlive the streams until their commands are complete.
use std::sync::{Arc, RwLock, RwLockReadGuard};
use ur_lock::{read_locked, write_locked};

/// What a stream consists of, and what its commands need.
pub trait StreamState {
    /// Whether the stream was released.
    fn is_released(&self) -> bool;
    /// Whether all its commands are complete, or none runs any more. May query the driver.
    fn is_idle(&self) -> bool;
}
/// The states of all streams, or of some, also of those that were released and are still busy.
#[derive(Debug)]
pub struct StreamStates<S>(RwLock<Vec<Arc<S>>>);
impl<S: StreamState> StreamStates<S> {
    /// Without states.
    pub const fn new() -> Self {
        Self(RwLock::new(Vec::new()))
    }
    /// All of them. No driver may be called meanwhile.
    pub fn all(&self) -> RwLockReadGuard<'_, Vec<Arc<S>>> {
        read_locked(&self.0)
    }
    /// Those that are meant.
    pub fn of(&self, is_meant: impl Fn(&S) -> bool) -> Vec<Arc<S>> {
        self.all().iter().filter(|state| is_meant(state)).cloned().collect()
    }
    /// Adds the state of a new stream, and removes those that are of no use any more.
    pub fn add(&self, state: &Arc<S>) {
        self.sweep();
        write_locked(&self.0).push(Arc::clone(state));
    }
    /// Removes released states that are idle. The driver is queried, and the states are dropped, outside the lock.
    pub fn sweep(&self) {
        let gone: Vec<_> =
            self.of(S::is_released).into_iter().filter(|state| state.is_idle()).collect();
        if gone.is_empty() {
            return;
        }
        let is_gone = |state: &mut Arc<S>| gone.iter().any(|one| Arc::ptr_eq(one, state));
        let taken: Vec<_> = write_locked(&self.0).extract_if(.., is_gone).collect();
        drop(taken);
    }
}
impl<S: StreamState> Default for StreamStates<S> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct State(bool, bool);
    impl StreamState for State {
        fn is_released(&self) -> bool {
            self.0
        }
        fn is_idle(&self) -> bool {
            self.1
        }
    }
    #[test]
    fn a_state_is_kept_while_its_stream_is_used_or_busy() {
        let all = StreamStates::new();
        for state in [State(false, false), State(false, true), State(true, false)] {
            all.add(&Arc::new(state));
        }
        let over = Arc::new(State(true, true));
        all.add(&over);
        assert_eq!((all.all().len(), Arc::strong_count(&over)), (4, 2));
        all.sweep();
        assert_eq!((all.all().len(), Arc::strong_count(&over)), (3, 1));
        assert_eq!(all.of(State::is_idle).len(), 1);
    }
}
