//! Signals of other processes that out-of-order commands wait for: one thread waits for all of them together,
//! and releases each command when its signal comes or fails.
use super::{
    command::ended,
    completion::Failure,
    out_of_order::Job,
    sync::{Mutex, locked},
    thread,
};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};
use ur_hal::Result;
use ur_ipc::arena::{Any, LocalWake, PendingSignal, wait_any};
use ur_mapping::PerProcess;

/// How long the thread stays with nothing to watch.
const IDLE: Duration = Duration::from_secs(2);

struct Watch {
    inbox: Mutex<Inbox>,
    wake: LocalWake,
}
impl Default for Watch {
    fn default() -> Self {
        Self { inbox: Mutex::default(), wake: LocalWake::new() }
    }
}
#[derive(Default)]
struct Inbox {
    arrived: Vec<(PendingSignal, Arc<Job>)>,
    /// The number of signals that are about to arrive, for which the thread must stay.
    promised: usize,
    started: bool,
}
static WATCH: PerProcess<Watch> = PerProcess::new();

/// Proof that the thread runs, and keeps running until this is dropped.
#[derive(Debug)]
pub(super) struct Promise(());

/// Starts the thread, if it does not run.
///
/// # Errors
/// `OUT_OF_RESOURCES` if it cannot be started.
pub(super) fn ready() -> Result<Promise> {
    let mut inbox = locked(&WATCH.get().inbox);
    if !inbox.started {
        thread::start("ur-cpu-remote", work)?;
        inbox.started = true;
    }
    inbox.promised += 1;
    Ok(Promise(()))
}
impl Drop for Promise {
    fn drop(&mut self) {
        locked(&WATCH.get().inbox).promised -= 1;
    }
}

/// Releases `job` when `debt` comes or fails.
pub(super) fn watch(_ready: &Promise, debt: PendingSignal, job: Arc<Job>) {
    let watch = WATCH.get();
    locked(&watch.inbox).arrived.push((debt, job));
    watch.wake.signal();
}

/// The thread.
fn work() {
    let watch = WATCH.get();
    let (mut debts, mut jobs) = (Vec::new(), Vec::new());
    let mut long_idle = false;
    while take_arrivals(watch, &mut debts, &mut jobs, long_idle) {
        let idle = debts.is_empty().then(|| Instant::now() + IDLE);
        long_idle = matches!(wait_any(&debts, &watch.wake, idle), Any::TimedOut);
        release_ended(&mut debts, &mut jobs);
    }
}
/// Adds what arrived. Returns `false`, and marks the thread as ended, if there was nothing to watch for
/// `IDLE` and nothing is promised.
fn take_arrivals(
    watch: &Watch,
    debts: &mut Vec<PendingSignal>,
    jobs: &mut Vec<Arc<Job>>,
    long_idle: bool,
) -> bool {
    let mut inbox = locked(&watch.inbox);
    for (debt, job) in inbox.arrived.drain(..) {
        debts.push(debt);
        jobs.push(job);
    }
    inbox.started = !(long_idle && debts.is_empty() && inbox.promised == 0);
    inbox.started
}
/// Releases all commands whose signals have come or failed.
fn release_ended(debts: &mut Vec<PendingSignal>, jobs: &mut Vec<Arc<Job>>) {
    let mut at = 0;
    while at < debts.len() {
        match ended(debts[at].progress()) {
            None => at += 1,
            Some(outcome) => {
                debts.swap_remove(at);
                let failure: Option<Failure> = outcome.err();
                jobs.swap_remove(at).released(failure.as_ref());
            }
        }
    }
}
