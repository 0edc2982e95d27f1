//! The team: threads that take part in kernels of many work-groups. Whoever executes a kernel
//! begins with it at once and alone; others are called when what is left is worth it.
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
use ur_adapter::per_process::PerProcess;

/// How long a thread stays without anything to do.
const IDLE: Duration = Duration::from_secs(2);
/// What is left must take longer than this before others are called: so long it takes until they
/// are there.
const WORTH_IT: Duration = Duration::from_micros(30);

/// Work in pieces that may be done in any order, at the same time.
pub(crate) struct Task {
    each: Box<dyn Fn(usize) + Send + Sync>,
    pieces: usize,
    next: AtomicUsize,
    /// How many are done; the last one rings.
    done: Mutex<usize>,
    over: Condvar,
    panicked: AtomicBool,
    /// The processors that it may use; none for all.
    cpus: Option<Vec<usize>>,
}
impl Task {
    /// Calls `each` for 0 to `pieces`.
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
    /// Does all of it, with as many others as that takes; whether no piece panicked.
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
        *done += ours + 1; // and the first
        while *done < task.pieces {
            done = task.over.wait(done).unwrap_or_else(PoisonError::into_inner);
        }
        drop(done);
        !task.panicked.load(Relaxed)
    }
    fn one(&self, piece: usize) {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| (self.each)(piece))) {
            // Dropping what it carries may panic in turn; a leak is the lesser harm.
            std::mem::forget(panic);
            self.panicked.store(true, Relaxed);
        }
    }
    /// Does pieces until there are none; how many.
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
    /// The part of another than the one who runs it.
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

/// A thread on some processors, for as long as this lives; then where it was before.
struct Place(Option<CpuSet>);
impl Place {
    fn take(cpus: Option<&[usize]>) -> Self {
        let Some(cpus) = cpus else { return Self(None) };
        let Ok(before) = sched_getaffinity(None) else { return Self(None) };
        let mut set = CpuSet::new();
        cpus.iter().filter(|&&cpu| cpu < CpuSet::MAX_CPU).for_each(|&cpu| set.set(cpu));
        // If they have been taken from this process meanwhile, it computes where it may.
        Self(sched_setaffinity(None, &set).is_ok().then_some(before))
    }
}
impl Drop for Place {
    fn drop(&mut self) {
        if let Some(before) = &self.0 {
            let _ = sched_setaffinity(None, before); // it was allowed there a moment ago
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

/// Has `hands` more threads take part, or as many as there can be.
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
                bench.threads -= 1; // the others do it
            }
        }
    }
    if bench.threads == 0 {
        bench.calls.clear(); // nobody will come
    }
}
/// Nobody else need come: whoever is busy elsewhere would keep what the task holds alive.
fn forget(task: &Arc<Task>) {
    locked(&TEAM.get().bench).calls.retain(|call| !Arc::ptr_eq(call, task));
}
/// One thread of the team.
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
