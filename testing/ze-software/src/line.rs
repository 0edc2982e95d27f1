//! A line is what a hardware queue is: commands and the thread that runs them. Commands that need no order
//! may overtake each other, so that tests notice a missing dependency. A thread without commands ends after a while.
use crate::{
    clock,
    command::Call,
    device,
    event::{Promise, Wait},
    inject::Answer,
    knob,
};
use std::{
    collections::VecDeque,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Condvar, Mutex, MutexGuard, OnceLock, Weak,
        atomic::{
            AtomicBool,
            Ordering::{Acquire, Release},
        },
    },
    time::{Duration, Instant},
};
use ur_lock::{locked, unpoisoned};
use ze_sys::*;

/// The time without commands after which the thread ends.
const IDLE: Duration = Duration::from_millis(100);
/// How many unordered commands are searched for one that can run, and how often the first one may be
/// overtaken.
const WINDOW: usize = 8;

/// What a command does when it runs.
pub enum Work {
    /// For a command that runs once.
    Once(Box<dyn FnOnce() -> Answer + Send>),
    /// For a recorded command, which can run several times.
    Call(Call),
}
impl Work {
    fn run(self) -> Answer {
        match self {
            Self::Once(once) => once(),
            Self::Call(call) => call(),
        }
    }
}
/// A submitted command.
pub struct Ready {
    pub waits: Vec<Wait>,
    /// `None`: the command only waits and signals.
    pub work: Option<Work>,
    pub promise: Option<Promise>,
    /// Whether it may overtake other free commands, and be overtaken by them. A command that is not free runs
    /// after all earlier and before all later ones.
    pub free: bool,
}
impl Ready {
    fn run(self) -> Answer {
        self.waits.iter().for_each(Wait::wait);
        // The times are only needed for events with timestamps.
        let is_timed = self.promise.as_ref().is_some_and(Promise::is_timed);
        let start = if is_timed { clock::device_now() } else { 0 };
        let done = match self.work {
            Some(_) if device::check_lost().is_err() => Err(ZE_RESULT_ERROR_DEVICE_LOST),
            Some(work) => catch_unwind(AssertUnwindSafe(|| work.run())).unwrap_or_else(|_| {
                eprintln!("ze-software: a command panicked");
                Err(ZE_RESULT_ERROR_UNKNOWN)
            }),
            None => Ok(()),
        };
        // A command that failed signals its event too, so that waits for it end.
        if let Some(promise) = self.promise {
            // Each command takes at least one tick: readers of the timestamps take an end that is not later
            // than the start for a counter that wrapped around.
            let end = if is_timed { clock::device_now().max(start + 1) } else { 0 };
            promise.keep((start, end));
        }
        done
    }
}

#[derive(Default)]
struct State {
    waiting: VecDeque<(u64, Ready)>,
    submitted: u64,
    running: Option<u64>,
    /// How many threads wait for progress, and whether the line's own thread waits for commands.
    waiters: usize,
    asleep: bool,
    overtaken: usize,
    has_thread: bool,
    /// Whether it is in `LINES`.
    is_listed: bool,
    closed: bool,
    failure: Option<ze_result_t>,
}
impl State {
    /// All commands up to this number have run.
    fn done(&self) -> u64 {
        let first = self.waiting.front().map(|(number, _)| *number);
        let oldest = [first, self.running].into_iter().flatten().min();
        oldest.map_or(self.submitted, |number| number - 1)
    }
    fn next(&mut self) -> Option<(u64, Ready)> {
        // Only one command at a time: the previous one may still be running in the thread that submitted it.
        if self.running.is_some() {
            return None;
        }
        let free = self.waiting.iter().take(WINDOW).take_while(|(_, ready)| ready.free).count();
        let mut at = 0;
        if free > 1 && self.overtaken < WINDOW && reorders() {
            let can = |at: &usize| self.waiting[*at].1.waits.iter().all(Wait::is_over);
            at = (0..free).rev().find(can).unwrap_or(0);
        }
        self.overtaken = if at == 0 { 0 } else { self.overtaken + 1 };
        self.waiting.remove(at)
    }
}
/// The lines of this process that were ever used.
static LINES: Mutex<Vec<Weak<Line>>> = Mutex::new(Vec::new());
/// Keeps `what` alive until everything that is submitted now has run, on every line.
pub fn keep<T: Send + Sync + 'static>(what: &Arc<T>) {
    let mut lines = locked(&LINES);
    lines.retain(|line| line.strong_count() > 0);
    let lines: Vec<_> = lines.iter().filter_map(Weak::upgrade).collect();
    for line in lines {
        let what = Arc::clone(what);
        let work = Work::Once(Box::new(move || {
            drop(what);
            Ok(())
        }));
        let last = Ready { waits: Vec::new(), work: Some(work), promise: None, free: false };
        let busy = {
            let state = line.state();
            state.done() < state.submitted
        };
        if busy {
            line.submit([last]);
        }
    }
}
/// Whether a command that can run immediately runs in the thread that appends it (`ZE_SOFTWARE_INLINE`).
pub fn runs_at_once() -> bool {
    static WISH: OnceLock<bool> = OnceLock::new();
    *WISH.get_or_init(|| knob::is("INLINE", "1"))
}
fn reorders() -> bool {
    static WISH: OnceLock<bool> = OnceLock::new();
    *WISH.get_or_init(|| !knob::is("REORDER", "0"))
}

/// A line.
#[derive(Default)]
pub struct Line {
    state: Mutex<State>,
    /// Whether everything has run without a failure. Lets [`Line::poll`] answer without the lock.
    is_idle: AtomicBool,
    arrived: Condvar,
    advanced: Condvar,
}
impl Line {
    fn state(&self) -> MutexGuard<'_, State> {
        locked(&self.state)
    }
    /// Adds commands at the end, without others in between.
    pub fn submit(self: &Arc<Self>, commands: impl IntoIterator<Item = Ready>) {
        let mut state = self.state();
        for ready in commands {
            self.is_idle.store(false, Release);
            state.submitted += 1;
            let number = state.submitted;
            let its_turn = state.waiting.is_empty() && state.running.is_none();
            if runs_at_once() && its_turn && ready.waits.iter().all(Wait::is_over) {
                state = self.run(state, number, ready);
            } else {
                state.waiting.push_back((number, ready));
            }
        }
        if state.waiting.is_empty() || (state.has_thread && !state.asleep) {
            return;
        }
        if !state.has_thread {
            if !std::mem::replace(&mut state.is_listed, true) {
                locked(&LINES).push(Arc::downgrade(self));
            }
            let line = Arc::clone(self);
            let _thread = ur_mapping::start_thread("ze-software", move || line.work())
                .expect("the system has a thread left for a queue");
            state.has_thread = true; // only now: a call after one that panicked tries again
        }
        drop(state);
        self.arrived.notify_one();
    }
    fn run<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        number: u64,
        ready: Ready,
    ) -> MutexGuard<'a, State> {
        state.running = Some(number);
        drop(state);
        let done = ready.run();
        let mut state = self.state();
        state.running = None;
        if let Err(code) = done {
            eprintln!("ze-software: a command failed: {code:#x}");
            state.failure.get_or_insert(code);
        }
        if state.waiting.is_empty() && state.failure.is_none() {
            self.is_idle.store(true, Release);
        }
        if state.waiters != 0 {
            self.advanced.notify_all();
        }
        if state.asleep {
            self.arrived.notify_one();
        }
        state
    }
    fn work(&self) {
        let (mut state, mut is_idle) = (self.state(), false);
        loop {
            if let Some((number, ready)) = state.next() {
                (state, is_idle) = (self.run(state, number, ready), false);
            } else if (state.closed || is_idle) && state.waiting.is_empty() {
                state.has_thread = false;
                return;
            } else {
                state.asleep = true;
                let waited = unpoisoned(self.arrived.wait_timeout(state, IDLE));
                (state, is_idle) = (waited.0, waited.1.timed_out());
                state.asleep = false;
            }
        }
    }
    /// Waits for everything that was submitted before this call, or until `deadline`.
    ///
    /// # Errors
    /// `ZE_RESULT_NOT_READY` after the deadline; the error of the first command that failed.
    pub fn synchronize(&self, deadline: Option<Instant>) -> Answer {
        let mut state = self.state();
        let number = state.submitted;
        while state.done() < number {
            let left = deadline.map(|end| end.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return Err(ZE_RESULT_NOT_READY);
            }
            state.waiters += 1;
            state = match left {
                None => unpoisoned(self.advanced.wait(state)),
                Some(left) => {
                    let waited = self.advanced.wait_timeout(state, left);
                    unpoisoned(waited).0
                }
            };
            state.waiters -= 1;
        }
        state.failure.map_or(Ok(()), Err)
    }
    /// Whether everything that was submitted before this call is complete.
    ///
    /// # Errors
    /// As [`Line::synchronize`].
    pub fn poll(&self) -> Answer {
        if self.is_idle.load(Acquire) {
            return Ok(());
        }
        let state = self.state();
        if state.done() < state.submitted {
            return Err(ZE_RESULT_NOT_READY);
        }
        state.failure.map_or(Ok(()), Err)
    }
    /// Lets the line's thread end after the last command.
    pub fn close(&self) {
        self.state().closed = true;
        self.arrived.notify_one();
    }
}
