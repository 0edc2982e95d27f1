//! The team: threads that help with kernels of many work-groups. The thread that executes a kernel begins at
//! once and alone; others are called if the rest takes long enough.
use super::{
    spin,
    sync::{Condvar, Mutex, PoisonError, locked},
    thread,
};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::{
    collections::VecDeque,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::*},
    },
    time::{Duration, Instant},
};
use ur_mapping::PerProcess;

/// How long a thread stays without work.
const IDLE: Duration = Duration::from_secs(2);
/// The estimated duration of the rest from which other threads are called: about how long it takes until they
/// run.
const WORTH_IT: Duration = Duration::from_micros(30);

/// Work in pieces that may be done in any order and concurrently.
pub(crate) struct Task {
    each: Box<dyn Fn(usize) + Send + Sync>,
    pieces: usize,
    next: AtomicUsize,
    /// The number of pieces that are done.
    done: Mutex<usize>,
    over: Condvar,
    panicked: AtomicBool,
    /// The processors that it may use; `None`: all.
    cpus: Option<Vec<usize>>,
}
impl Task {
    /// A task that calls `each` for 0 to `pieces` (exclusive).
    pub(crate) fn new(
        pieces: usize,
        cpus: Option<&[usize]>,
        each: impl Fn(usize) + Send + Sync + 'static,
    ) -> Self {
        Self {
            each: Box::new(each),
            pieces,
            next: AtomicUsize::new(0),
            done: Mutex::default(),
            over: Condvar::new(),
            panicked: AtomicBool::new(false),
            cpus: cpus.map(<[usize]>::to_vec),
        }
    }
    /// Does all pieces, with the help of other threads if worthwhile; returns whether none panicked.
    pub(crate) fn run(self) -> bool {
        let _there = Place::take(self.cpus.as_deref());
        let start = Instant::now();
        self.one(0);
        if self.pieces < 2 {
            return !self.panicked.load(Relaxed);
        }
        let left =
            start.elapsed().saturating_mul(u32::try_from(self.pieces - 1).unwrap_or(u32::MAX));
        self.next.store(1, Relaxed);
        let task = Arc::new(self);
        let is_long = left > WORTH_IT;
        if is_long {
            let hands = task.cpus.as_ref().map_or_else(spin::cores, Vec::len).min(spin::cores());
            call(&task, hands.min(task.pieces) - 1);
        }
        let ours = task.take_part();
        if is_long {
            forget(&task);
        }
        let mut done = locked(&task.done);
        *done += ours + 1; // and the first piece
        while *done < task.pieces {
            done = task.over.wait(done).unwrap_or_else(PoisonError::into_inner);
        }
        drop(done);
        !task.panicked.load(Relaxed)
    }
    fn one(&self, piece: usize) {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| (self.each)(piece))) {
            // Dropping the payload could panic again, so it is leaked.
            std::mem::forget(panic);
            self.panicked.store(true, Relaxed);
        }
    }
    /// Does pieces until none is left; returns how many.
    fn take_part(&self) -> usize {
        let mut ours = 0;
        loop {
            let piece = self.next.fetch_add(1, Relaxed);
            if piece >= self.pieces {
                return ours;
            }
            self.one(piece);
            ours += 1;
        }
    }
    /// The contribution of a helping thread.
    fn help(&self) {
        let _there = Place::take(self.cpus.as_deref());
        let ours = self.take_part();
        if ours == 0 {
            return;
        }
        let mut done = locked(&self.done);
        *done += ours;
        if *done >= self.pieces {
            self.over.notify_one();
        }
    }
}

/// Restricts the thread to some processors while this lives.
struct Place(Option<CpuSet>);
impl Place {
    fn take(cpus: Option<&[usize]>) -> Self {
        let Some(cpus) = cpus else { return Self(None) };
        let Ok(before) = sched_getaffinity(None) else { return Self(None) };
        let mut set = CpuSet::new();
        cpus.iter().filter(|&&cpu| cpu < CpuSet::MAX_CPU).for_each(|&cpu| set.set(cpu));
        // Fails if the process may not use these processors any more; then it runs where it may.
        Self(sched_setaffinity(None, &set).is_ok().then_some(before))
    }
}
impl Drop for Place {
    fn drop(&mut self) {
        if let Some(before) = &self.0 {
            let _ = sched_setaffinity(None, before); // a failure is harmless: the affinity was valid before
        }
    }
}

#[derive(Default)]
struct Team {
    bench: Mutex<Bench>,
    arrival: Condvar,
}
#[derive(Default)]
struct Bench {
    calls: VecDeque<Arc<Task>>,
    threads: usize,
    idle: usize,
}
static TEAM: PerProcess<Team> = PerProcess::new();

/// Asks `hands` more threads to help, or as many as there can be.
fn call(task: &Arc<Task>, hands: usize) {
    let team = TEAM.get();
    let mut bench = locked(&team.bench);
    for _ in 0..hands {
        bench.calls.push_back(Arc::clone(task));
        if bench.calls.len() <= bench.idle {
            team.arrival.notify_one();
        } else if bench.threads < spin::cores() {
            bench.threads += 1;
            if thread::start("ur-cpu-team", serve).is_err() {
                bench.threads -= 1; // the others do the work
            }
        }
    }
    if bench.threads == 0 {
        bench.calls.clear(); // no thread will come
    }
}
/// Withdraws the requests for help: threads that are busy elsewhere would keep alive what the task holds.
fn forget(task: &Arc<Task>) {
    locked(&TEAM.get().bench).calls.retain(|call| !Arc::ptr_eq(call, task));
}
/// A thread of the team.
fn serve() {
    let team = TEAM.get();
    let mut bench = locked(&team.bench);
    loop {
        if let Some(task) = bench.calls.pop_front() {
            drop(bench);
            task.help();
            drop(task);
            bench = locked(&team.bench);
            continue;
        }
        bench.idle += 1;
        let (back, waited) =
            team.arrival.wait_timeout(bench, IDLE).unwrap_or_else(PoisonError::into_inner);
        bench = back;
        bench.idle -= 1;
        if waited.timed_out() && bench.calls.is_empty() {
            bench.threads -= 1;
            return;
        }
    }
}
