//! The worker pool that out-of-order queues share. Threads are started when there are more jobs than threads,
//! and end after a while without work. A job's dependencies are complete when the pool gets it; only host
//! functions may still wait for each other.
use super::{
    out_of_order::Job,
    spin,
    sync::{Condvar, Mutex, PoisonError, locked},
    thread,
};
use std::{collections::VecDeque, sync::Arc, time::Duration};
use ur_mapping::PerProcess;

/// How long a thread stays without work.
const IDLE: Duration = Duration::from_secs(2);
/// How often it is checked whether all threads block in host functions while jobs wait.
const RELIEF: Duration = Duration::from_millis(1);
/// The largest number of threads.
const TOO_MANY: usize = 1024;

#[derive(Debug, Default)]
struct Pool {
    hands: Mutex<Hands>,
    arrival: Condvar,
}
#[derive(Debug, Default)]
struct Hands {
    jobs: VecDeque<Arc<Job>>,
    threads: usize,
    idle: usize,
    /// The number of jobs that call host functions, which may block: queued and running.
    calls: usize,
    /// The number of threads in host functions.
    away: usize,
    /// The number of jobs that were started.
    begun: u64,
    /// Whether the relief thread runs (see [`relieve`]).
    relief: bool,
}
impl Hands {
    /// Takes the next job for this thread; also returns whether it calls a host function.
    fn begin(&mut self) -> Option<(Arc<Job>, bool)> {
        let job = self.jobs.pop_front()?;
        let is_away = job.may_sleep();
        self.begun = self.begun.wrapping_add(1);
        self.away += usize::from(is_away);
        Some((job, is_away))
    }
    fn end(&mut self, was_away: bool) {
        self.away -= usize::from(was_away);
        self.calls -= usize::from(was_away);
    }
}
static POOL: PerProcess<Pool> = PerProcess::new();

/// The number of threads that are started as soon as there is work: more than cores, because host functions
/// may block. More are started when all of these seem to be blocked.
fn most_threads() -> usize {
    (2 * spin::cores()).max(8)
}

/// Queues `job` for a thread of the pool: an idle one, a new one, or the next that becomes free. If there is
/// no thread and none can be started, this thread executes it.
pub(super) fn give(job: Arc<Job>) {
    let pool = POOL.get();
    let mut hands = locked(&pool.hands);
    hands.calls += usize::from(job.may_sleep());
    hands.jobs.push_back(job);
    if hands.jobs.len() <= hands.idle {
        drop(hands);
        pool.arrival.notify_one();
        return;
    }
    if hands.threads >= most_threads() {
        let alone = hands.calls > 0 && !std::mem::replace(&mut hands.relief, true);
        drop(hands);
        if alone && thread::start("ur-cpu-relief", relieve).is_err() {
            locked(&pool.hands).relief = false; // the next job tries again
        }
        return;
    }
    hands.threads += 1;
    drop(hands);
    if thread::start("ur-cpu-worker", work).is_err() {
        let mut hands = locked(&pool.hands);
        hands.threads -= 1;
        let orphan = if hands.threads == 0 { hands.begin() } else { None };
        drop(hands);
        if let Some((job, is_call)) = orphan {
            job.execute();
            locked(&pool.hands).end(is_call);
        }
    }
}
/// The relief thread. While jobs wait and none is started because all threads are in host functions, it
/// starts one more thread at a time: these functions may wait for each other, or for later commands of a
/// queue.
fn relieve() {
    let pool = POOL.get();
    let mut extra = 0_u32;
    let mut begun = locked(&pool.hands).begun;
    loop {
        // The interval increases: if the functions compute, more threads do not help.
        std::thread::sleep(RELIEF * (1 + extra / 8));
        let mut hands = locked(&pool.hands);
        if hands.jobs.is_empty() {
            hands.relief = false;
            return;
        }
        let is_stuck = hands.begun == begun && hands.idle == 0;
        begun = hands.begun;
        if !is_stuck || hands.threads - hands.away >= most_threads() || hands.threads >= TOO_MANY {
            continue;
        }
        hands.threads += 1;
        extra += 1;
        drop(hands);
        if thread::start("ur-cpu-worker", work).is_err() {
            locked(&pool.hands).threads -= 1; // starting may succeed at the next attempt
        }
    }
}

/// A thread of the pool.
fn work() {
    let pool = POOL.get();
    let mut hands = locked(&pool.hands);
    loop {
        if let Some((job, is_away)) = hands.begin() {
            drop(hands);
            job.execute();
            // outside the lock, because it may drop the last reference to something that calls the
            // application
            drop(job);
            hands = locked(&pool.hands);
            hands.end(is_away);
            continue;
        }
        hands.idle += 1;
        let (back, waited) =
            pool.arrival.wait_timeout(hands, IDLE).unwrap_or_else(PoisonError::into_inner);
        hands = back;
        hands.idle -= 1;
        if waited.timed_out() && hands.jobs.is_empty() {
            hands.threads -= 1;
            return;
        }
    }
}
