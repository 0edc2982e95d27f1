//! What is given back when its time is over: by one thread, which needs nothing of the interpreter, and runs while there is anything.
use std::{
    collections::BTreeMap,
    io,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak},
    thread,
    time::{Duration, Instant},
};

/// Entries from which on those of what is gone are dropped.
const MANY: usize = 1024;

/// What is to be given back, and when. What its owner has given back before, or dropped, is no matter.
pub struct Clock<T> {
    state: Mutex<State<T>>,
    news: Condvar,
    /// Held while something is given back.
    giving_back: Mutex<()>,
}
struct State<T> {
    /// By time, and a number.
    due: BTreeMap<(Instant, u64), Weak<Mutex<T>>>,
    number: u64,
    /// How many entries there may be until those of what is gone are dropped.
    most: usize,
    has_thread: bool,
    /// Nothing is given back any more.
    is_over: bool,
}
impl<T> Default for Clock<T> {
    fn default() -> Self {
        let (due, most) = (BTreeMap::new(), MANY);
        let state = State { due, number: 0, most, has_thread: false, is_over: false };
        Self { state: Mutex::new(state), news: Condvar::new(), giving_back: Mutex::new(()) }
    }
}
impl<T: Default + Send + 'static> Clock<T> {
    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Has `what` given back after so long: replaced by the default, and dropped within `inside`.
    ///
    /// # Errors
    /// Without a thread. Then nothing gives it back.
    pub fn give_back_after(
        &'static self,
        after: Duration,
        what: &Arc<Mutex<T>>,
        inside: fn(&mut dyn FnMut()),
    ) -> io::Result<()> {
        let Some(at) = Instant::now().checked_add(after) else { return Ok(()) }; // it lives longer than this process
        let mut state = self.state();
        if state.is_over {
            return Ok(());
        }
        if !state.has_thread {
            let named = thread::Builder::new().name("causeway_ipc expiry".into());
            named.spawn(move || self.run(inside))?;
            state.has_thread = true;
        }
        state.number += 1;
        let place = (at, state.number);
        state.due.insert(place, Arc::downgrade(what));
        if state.due.len() >= state.most {
            state.due.retain(|_, what| what.strong_count() > 0);
            state.most = MANY.max(2 * state.due.len());
        }
        drop(state);
        self.news.notify_one();
        Ok(())
    }
    /// The thread.
    fn run(&self, inside: fn(&mut dyn FnMut())) {
        let mut state = self.state();
        while let Some(first) = state.due.first_entry() {
            let rest = first.key().0.saturating_duration_since(Instant::now());
            if !rest.is_zero() {
                let waited = self.news.wait_timeout(state, rest);
                state = waited.unwrap_or_else(PoisonError::into_inner).0;
                continue;
            }
            let what = first.remove().upgrade();
            drop(state); // before anything is given back
            if let Some(what) = what {
                inside(&mut || {
                    let _giving_back = self.giving_back();
                    drop(std::mem::take(&mut *what.lock().unwrap_or_else(PoisonError::into_inner)));
                });
            }
            state = self.state();
        }
        state.has_thread = false;
    }
    fn giving_back(&self) -> MutexGuard<'_, ()> {
        self.giving_back.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Gives nothing back from now on.
    pub fn end(&self) {
        let mut state = self.state();
        state.is_over = true;
        state.due.clear();
        drop(state);
        self.news.notify_one();
        drop(self.giving_back()); // what the thread has begun with
    }
    /// How many entries there are.
    #[cfg(test)]
    #[allow(dead_code, reason = "asked by tests/clock.rs, and not by the library's own")]
    pub fn entries(&self) -> usize {
        self.state().due.len()
    }
}
