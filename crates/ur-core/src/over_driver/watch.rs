//! Callbacks of events for drivers without their own: one thread polls the events that have callbacks, and calls back
//! when an event is final.
use std::{
    sync::{Condvar, Mutex, MutexGuard},
    time::Duration,
};
use ur_adapter::{
    callback::EventCallback,
    error::{Error, Result},
    object::{Body, Owned},
};
use ur_sys::ur_execution_info_t;

/// The interval between two polls: at first, and at most.
const NAPS: [Duration; 2] = [Duration::from_micros(20), Duration::from_micros(500)];

/// A kind of event with callbacks.
pub trait CompletionCallbacks: Body {
    /// The process's list of callbacks for these events; a forked child has one of its own, as it has no thread of its
    /// parent's.
    fn watch() -> &'static Watch<Self>;
    /// Whether its latest signal is final. Also true for an event that cannot be queried, so that its callback is not
    /// lost.
    fn is_over(&self) -> bool;
}

struct Wish<E: CompletionCallbacks> {
    event: Owned<E>,
    status: ur_execution_info_t,
    callback: EventCallback,
}
/// The callbacks that the thread still has to make.
pub struct Watch<E: CompletionCallbacks> {
    state: Mutex<State<E>>,
    more: Condvar,
}
struct State<E: CompletionCallbacks> {
    wishes: Vec<Wish<E>>,
    is_running: bool,
}
impl<E: CompletionCallbacks> Default for Watch<E> {
    fn default() -> Self {
        let state = Mutex::new(State { wishes: Vec::new(), is_running: false });
        Self { state, more: Condvar::new() }
    }
}
impl<E: CompletionCallbacks> Watch<E> {
    fn state(&self) -> MutexGuard<'_, State<E>> {
        ur_lock::locked(&self.state)
    }
}
impl<E: CompletionCallbacks> std::fmt::Debug for Watch<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watch").finish_non_exhaustive()
    }
}

/// Calls `callback` on another thread when `event`'s latest signal is final.
///
/// # Errors
/// `OUT_OF_RESOURCES` if no thread can be started.
pub fn call_when_over<E: CompletionCallbacks>(
    event: Owned<E>,
    status: ur_execution_info_t,
    callback: EventCallback,
) -> Result<()> {
    let watch = E::watch();
    let mut state = watch.state();
    state.wishes.push(Wish { event, status, callback });
    if !state.is_running {
        let name = "causeway-events";
        let started = ur_mapping::start_thread(name, move || look(E::watch()));
        if let Err(error) = started {
            let mine = state.wishes.pop();
            drop(state);
            drop(mine);
            return Err(Error::no_thread(name, &error));
        }
        state.is_running = true;
    }
    watch.more.notify_one();
    Ok(())
}

fn look<E: CompletionCallbacks>(watch: &Watch<E>) {
    let mut nap = NAPS[0];
    loop {
        let mut state = watch.state();
        while state.wishes.is_empty() {
            state = ur_lock::unpoisoned(watch.more.wait(state));
            nap = NAPS[0];
        }
        let wishes = std::mem::take(&mut state.wishes);
        drop(state);
        let (over, open): (Vec<_>, Vec<_>) = wishes.into_iter().partition(|w| w.event.is_over());
        nap = if over.is_empty() { (nap * 2).min(NAPS[1]) } else { NAPS[0] };
        for Wish { event, status, callback } in over {
            callback.call(&event, status);
        }
        let mut state = watch.state();
        let is_new = !state.wishes.is_empty();
        state.wishes.extend(open);
        if is_new {
            nap = NAPS[0]; // a new event may soon be final
        } else if !state.wishes.is_empty() {
            drop(watch.more.wait_timeout(state, nap)); // or until a callback is added
        }
    }
}
