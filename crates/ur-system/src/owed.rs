//! Signals that other processes owe: one thread waits for all of them together, and tells what waits for each how it ended.
use std::{
    borrow::Borrow,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};
use ur_hal::{Error, Result};
use ur_ipc::arena::{Any, LocalWake, PendingSignal, Progress, wait_any};
use ur_lock::locked;

/// How long the thread stays without anything to wait for.
const IDLE: Duration = Duration::from_secs(2);

/// What waits for a signal.
pub trait Awaits: Send + Sync + 'static {
    /// Called once, when the signal has come or failed.
    fn ended(self: Arc<Self>, progress: Progress);
}
struct Owed<T> {
    signal: PendingSignal,
    then: Arc<T>,
}
impl<T> Borrow<PendingSignal> for Owed<T> {
    fn borrow(&self) -> &PendingSignal {
        &self.signal
    }
}
/// The signals that this process waits for, and the thread that does.
pub struct Watch<T> {
    inbox: Mutex<Inbox<T>>,
    wake: LocalWake,
}
struct Inbox<T> {
    arrived: Vec<Owed<T>>,
    /// The number of promises, for which the thread must stay.
    promised: usize,
    has_thread: bool,
}
impl<T> Default for Watch<T> {
    fn default() -> Self {
        let inbox = Inbox { arrived: vec![], promised: 0, has_thread: false };
        Self { inbox: Mutex::new(inbox), wake: LocalWake::new() }
    }
}
impl<T: Awaits> Watch<T> {
    /// Starts the thread, if it does not run.
    ///
    /// # Errors
    /// `OutOfResources` if it cannot be started.
    pub fn ready(&'static self, name: &str) -> Result<Promise<T>> {
        let mut inbox = locked(&self.inbox);
        if !inbox.has_thread {
            let started = ur_mapping::start_thread(name, || self.work());
            started.map_err(|error| Error::no_thread(name, &error))?;
            inbox.has_thread = true;
        }
        inbox.promised += 1;
        Ok(Promise(self))
    }
    fn work(&self) {
        let (mut all, mut was_idle) = (vec![], false);
        while self.take_arrivals(&mut all, was_idle) {
            let idle = all.is_empty().then(|| Instant::now() + IDLE);
            was_idle = matches!(wait_any(&all, &self.wake, idle), Any::TimedOut);
            let is_over = |one: &mut Owed<T>| one.signal.progress() != Progress::Pending;
            for Owed { signal, then } in all.extract_if(.., is_over) {
                then.ended(signal.progress());
            }
        }
    }
    /// Adds what arrived. Returns `false`, and marks the thread as ended, if there was nothing to wait for during `IDLE` and
    /// nothing is promised.
    fn take_arrivals(&self, all: &mut Vec<Owed<T>>, was_idle: bool) -> bool {
        let mut inbox = locked(&self.inbox);
        all.append(&mut inbox.arrived);
        inbox.has_thread = !(was_idle && all.is_empty() && inbox.promised == 0);
        inbox.has_thread
    }
}
/// Proof that the thread runs, and keeps running until this is dropped.
pub struct Promise<T: 'static>(&'static Watch<T>);
impl<T> Promise<T> {
    /// Has `then` told when the signal comes or fails.
    pub fn watch(&self, signal: PendingSignal, then: Arc<T>) {
        locked(&self.0.inbox).arrived.push(Owed { signal, then });
        self.0.wake.signal();
    }
}
impl<T> Drop for Promise<T> {
    fn drop(&mut self) {
        locked(&self.0.inbox).promised -= 1;
    }
}
impl<T> std::fmt::Debug for Promise<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Promise").finish_non_exhaustive()
    }
}
impl<T> std::fmt::Debug for Watch<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watch").finish_non_exhaustive()
    }
}
