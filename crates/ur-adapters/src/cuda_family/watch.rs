//! Callbacks of events: one thread that looks at the events which somebody wants to hear of, and
//! calls back when one is over. The driver's own callbacks are not used: nothing that they call may
//! call the driver, and C's callbacks do.
use super::{Event, driver::Dialect};
use std::{
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};
use ur_adapter::{
    callback::EventCallback,
    error::{Error, ErrorCode, Result},
    object::Owned,
};
use ur_sys::{ur_event_status_t, ur_execution_info_t};

/// How long the thread waits between two looks, at first and at most.
const NAPS: [Duration; 2] = [Duration::from_micros(20), Duration::from_micros(500)];

struct Wish<D: Dialect> {
    event: Owned<Event<D>>,
    status: ur_execution_info_t,
    callback: EventCallback,
}
/// What the thread has to look at.
pub struct Watch<D: Dialect> {
    state: Mutex<State<D>>,
    more: Condvar,
}
struct State<D: Dialect> {
    wishes: Vec<Wish<D>>,
    is_running: bool,
}
impl<D: Dialect> Watch<D> {
    pub(super) const fn new() -> Self {
        let state = Mutex::new(State { wishes: Vec::new(), is_running: false });
        Self { state, more: Condvar::new() }
    }
    fn state(&self) -> MutexGuard<'_, State<D>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
impl<D: Dialect> std::fmt::Debug for Watch<D> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watch").finish_non_exhaustive()
    }
}

/// Calls `callback` once `event`'s latest signal is over, on a thread of ours.
///
/// # Errors
/// `OUT_OF_RESOURCES` if no thread can be started.
pub(super) fn call_when_over<D: Dialect>(
    event: Owned<Event<D>>,
    status: ur_execution_info_t,
    callback: EventCallback,
) -> Result<()> {
    super::device::check_fork::<D>()?; // the thread is the parent's
    let watch = &D::statics().watch;
    let mut state = watch.state();
    state.wishes.push(Wish { event, status, callback });
    if !state.is_running {
        let name = "causeway-events".to_owned();
        let started = thread::Builder::new().name(name).spawn(move || look(&D::statics().watch));
        if let Err(error) = started {
            let mine = state.wishes.pop();
            drop(state);
            drop(mine);
            let why = format!("no thread could be started for callbacks: {error}");
            return Err(Error::new(ErrorCode::OutOfResources, why));
        }
        state.is_running = true;
    }
    watch.more.notify_one();
    Ok(())
}

fn look<D: Dialect>(watch: &Watch<D>) {
    let mut nap = NAPS[0];
    loop {
        let mut state = watch.state();
        while state.wishes.is_empty() {
            state = watch.more.wait(state).unwrap_or_else(PoisonError::into_inner);
            nap = NAPS[0];
        }
        let wishes = std::mem::take(&mut state.wishes);
        drop(state);
        let (over, open): (Vec<_>, Vec<_>) = wishes.into_iter().partition(|w| is_over(&w.event));
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
/// An event that cannot be looked at is over: its callback must not be lost.
fn is_over<D: Dialect>(event: &Event<D>) -> bool {
    let Ok(_on) = event.context().devices()[0].enter() else { return true };
    let pending = [ur_event_status_t::SUBMITTED, ur_event_status_t::RUNNING];
    !event.status().is_ok_and(|status| pending.contains(&status))
}
