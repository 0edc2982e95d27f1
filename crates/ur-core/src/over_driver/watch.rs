//! Callbacks of events: one thread that looks at the events which somebody wants to hear of, and
//! calls back when one is over. The driver's own callbacks are not used: nothing that they call may
//! call the driver, and C's callbacks do.
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

/// How long the thread waits between two looks, at first and at most.
const NAPS: [Duration; 2] = [Duration::from_micros(20), Duration::from_micros(500)];

/// An event that callbacks can be made of.
pub trait CompletionCallbacks: Body {
    /// What the process has once of these events.
    fn watch() -> &'static Watch<Self>;
    /// # Errors
    /// Those of all entries in a forked child, whose parent has the thread.
    fn check_fork() -> Result<()>;
    /// Whether its latest signal is over. One that cannot be looked at is: its callback must not be lost.
    fn is_over(&self) -> bool;
}

struct Wish<E: CompletionCallbacks> {
    event: Owned<E>,
    status: ur_execution_info_t,
    callback: EventCallback,
}
/// What the thread has to look at.
pub struct Watch<E: CompletionCallbacks> {
    state: Mutex<State<E>>,
    more: Condvar,
}
struct State<E: CompletionCallbacks> {
    wishes: Vec<Wish<E>>,
    is_running: bool,
}
impl<E: CompletionCallbacks> Watch<E> {
    /// Nobody wants to hear of anything yet.
    #[expect(clippy::new_without_default, reason = "statics are made with it")]
    pub const fn new() -> Self {
        let state = Mutex::new(State { wishes: Vec::new(), is_running: false });
        Self { state, more: Condvar::new() }
    }
    fn state(&self) -> MutexGuard<'_, State<E>> {
        ur_lock::locked(&self.state)
    }
}
impl<E: CompletionCallbacks> std::fmt::Debug for Watch<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watch").finish_non_exhaustive()
    }
}

/// Calls `callback` once `event`'s latest signal is over, on a thread of ours.
///
/// # Errors
/// `OUT_OF_RESOURCES` if no thread can be started.
pub fn call_when_over<E: CompletionCallbacks>(
    event: Owned<E>,
    status: ur_execution_info_t,
    callback: EventCallback,
) -> Result<()> {
    E::check_fork()?; // the thread is the parent's
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
            nap = NAPS[0]; // what is new may be over soon
        } else if !state.wishes.is_empty() {
            drop(watch.more.wait_timeout(state, nap)); // or until there is more
        }
    }
}
