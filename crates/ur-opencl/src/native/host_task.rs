//! Functions of the host's in a queue's order. They may wait for whatever they like: threads of a pool call them, since those of the
//! driver, and those that wait for the driver, must not be held up.
use super::{
    event::{call_when_over, of_user, settle},
    queue::{NativeQueue, given},
};
use crate::driver::RawEvent;
use std::{
    collections::VecDeque,
    sync::{Condvar, Mutex, PoisonError},
    time::Duration,
};
use ur_hal::{Error, Result, repeated};
use ur_lock::locked;
use ur_mapping::PerProcess;

/// Enqueues the call of a function behind what `begin` puts into the queue, and what `end` does, which waits for the function to return.
/// The function is told whether the former succeeded.
///
/// # Errors
/// `OutOfResources` without a thread to call it; the driver's own. Then it is not called.
pub fn enqueue(
    queue: &NativeQueue,
    (begin, end): (
        impl FnOnce(&mut Option<RawEvent>) -> Result<()>,
        impl FnOnce(&[RawEvent]) -> Result<()>,
    ),
    call: impl FnOnce(bool) + Send + 'static,
) -> Result<()> {
    POOL.get().has_thread()?;
    let mut before = None;
    begin(&mut before)?;
    let (before, over) = (given(before)?, of_user(queue.context())?);
    let done = over.again()?;
    end(&[over.raw()]).inspect_err(|_| settle(&over))?;
    let told = call_when_over(&before, move |is_good| {
        POOL.get().give(Box::new(move || {
            call(is_good);
            settle(&done);
        }));
    });
    told.inspect_err(|_| settle(&over))?;
    // The application waits for what the function does, perhaps without asking the queue. If it is refused, whoever asks flushes.
    let _refused = repeated(|| queue.flush());
    Ok(())
}

type Task = Box<dyn FnOnce() + Send>;
/// Threads that call functions: as many as can be started where several are to be called at once, and always one.
#[derive(Default)]
struct Pool {
    state: Mutex<State>,
    arrival: Condvar,
}
#[derive(Default)]
struct State {
    ready: VecDeque<Task>,
    threads: usize,
    idle: usize,
}
static POOL: PerProcess<Pool> = PerProcess::new();
impl Pool {
    /// Has at least one thread from here on.
    fn has_thread(&'static self) -> Result<()> {
        let mut state = locked(&self.state);
        if state.threads == 0 { self.grow(&mut state) } else { Ok(()) }
    }
    fn grow(&'static self, state: &mut State) -> Result<()> {
        let name = "causeway-host-task";
        ur_mapping::start_thread(name, || self.work())
            .map_err(|why| Error::no_thread(name, &why))?;
        state.threads += 1;
        Ok(())
    }
    /// Has a function called: now, if a thread is idle or can be started, else once one is.
    fn give(&'static self, task: Task) {
        let mut state = locked(&self.state);
        state.ready.push_back(task);
        if state.ready.len() > state.idle {
            let _ = self.grow(&mut state); // there is at least one that comes to it
        }
        drop(state);
        self.arrival.notify_one();
    }
    fn work(&self) {
        /// How long a thread stays without anything to do, unless it is the last.
        const IDLE: Duration = Duration::from_secs(2);
        let mut state = locked(&self.state);
        loop {
            if let Some(task) = state.ready.pop_front() {
                drop(state);
                // A panic of the application's is none of the next function's.
                let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(task));
                state = locked(&self.state);
                continue;
            }
            state.idle += 1;
            let waited = self.arrival.wait_timeout(state, IDLE);
            let (back, slept) = waited.unwrap_or_else(PoisonError::into_inner);
            state = back;
            state.idle -= 1;
            if slept.timed_out() && state.ready.is_empty() && state.threads > 1 {
                state.threads -= 1;
                return;
            }
        }
    }
}
