//! Hands: the pool that out-of-order queues share, whose threads come when there is more to do than
//! hands and go when there is nothing for a while; and large copies cut in pieces. What jobs depend on
//! has ended before the pool has them; only host functions may wait for one another by themselves.
use super::{
    out_of_order::Job,
    spin,
    sync::{Condvar, Mutex, PoisonError, locked},
    thread,
};
use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::*},
    },
    time::Duration,
};
use ur_adapter::per_process::PerProcess;

/// How long a thread stays without anything to do.
const IDLE: Duration = Duration::from_secs(2);
/// How often it is looked whether all threads sleep in host functions while jobs wait.
const RELIEF: Duration = Duration::from_millis(1);
/// More threads than this do not help anybody.
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
    /// Host functions, which may sleep, or wait for others: those among `jobs` and those begun.
    calls: usize,
    /// Threads in host functions.
    away: usize,
    /// Jobs that have been begun.
    begun: u64,
    /// A thread looks after the others.
    relief: bool,
}
impl Hands {
    /// The next job, begun by this thread; whether it is a host function.
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

/// So many threads are there as soon as there is work for them: more than cores, since a host
/// function may sleep. Others come when all of these seem to.
fn most_threads() -> usize {
    (2 * spin::cores()).max(8)
}

/// Has `job` executed by a thread of the pool: an idle one, else a new one, else the next that is
/// done with what it does or comes to relieve those that sleep. If there is no thread at all and
/// none can be started, by this one.
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
/// While jobs wait and none is begun, since every thread that counts is in a host function, starts
/// one more at a time: these functions may wait for each other, or for what else is in the queue.
fn relieve() {
    let pool = POOL.get();
    let mut extra = 0_u32;
    let mut begun = locked(&pool.hands).begun;
    loop {
        // Later each time: functions that compute are not helped by more threads.
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
            locked(&pool.hands).threads -= 1; // there may be one in a moment
        }
    }
}

/// One thread of the pool.
fn work() {
    let pool = POOL.get();
    let mut hands = locked(&pool.hands);
    loop {
        if let Some((job, is_away)) = hands.begin() {
            drop(hands);
            job.execute();
            drop(job); // the last of its command may be a thing of C's, and is none of the lock's
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

/// A core that does less than this of a large copy costs more than it saves.
const LEAST_SHARE: usize = 2 << 20;
/// Several pieces a core, so that a core that others need does fewer; none so small that the C
/// library would copy it through the cache.
const PIECES_A_CORE: usize = 4;

/// Calls `each` with offsets and lengths that make up `bytes`, large amounts on several cores at
/// once, and returns when all are done. Pieces start at multiples of a page. The threads are
/// started for the one call: what is worth several cores takes much longer than that.
pub(crate) fn for_each_piece(bytes: usize, each: impl Fn(usize, usize) + Sync) {
    let shares = (bytes / LEAST_SHARE).min(spin::cores());
    if shares < 2 {
        return each(0, bytes);
    }
    let piece = (bytes / (shares * PIECES_A_CORE)).max(LEAST_SHARE).next_multiple_of(4096);
    let next = AtomicUsize::new(0);
    let take_part = || {
        loop {
            let start = next.fetch_add(1, Relaxed).saturating_mul(piece);
            if start >= bytes {
                return;
            }
            each(start, piece.min(bytes - start));
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..shares {
            let more = std::thread::Builder::new().name("ur-cpu-copy".into());
            let _deaf = ur_mapping::Deaf::begin(); // as `ur_mapping::start_thread` does, also the next
            if ur_mapping::addresses_exhausted() || more.spawn_scoped(scope, take_part).is_err() {
                break; // fewer hands, the same pieces
            }
        }
        take_part();
    });
}
