//! The engine by itself: order, overlap, failure, signals, callbacks, and many threads at once.
mod errors;
mod model;
mod order;
mod plan;
mod signals;
mod stress;

use super::*;
use std::{
    sync::{
        Condvar, Mutex,
        atomic::{AtomicU64, Ordering::SeqCst},
    },
    time::{Duration, Instant},
};

const DEADLINE: Duration = Duration::from_secs(20);
/// No test of these asks for all queues of a context but the one that has its own.
const CONTEXT: usize = 0x1000;

fn in_order() -> Queue {
    Queue::new(CONTEXT, false, false)
}
fn out_of_order() -> Queue {
    Queue::new(CONTEXT, true, false)
}
fn both() -> [Queue; 2] {
    [in_order(), out_of_order()]
}

/// Looks until `condition`; panics after the deadline.
fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let end = Instant::now() + DEADLINE;
    while !condition() {
        assert!(Instant::now() < end, "never: {what}");
        std::thread::yield_now();
    }
}

/// A door that commands wait at until a test opens it.
#[derive(Default)]
struct Door(Mutex<bool>, Condvar);
impl Door {
    fn new() -> Arc<Self> {
        Arc::default()
    }
    fn open(&self) {
        *self.0.lock().unwrap() = true;
        self.1.notify_all();
    }
    fn pass(&self) {
        let closed = self.0.lock().unwrap();
        let (open, _) = self.1.wait_timeout_while(closed, DEADLINE, |open| !*open).unwrap();
        assert!(*open, "nobody opened the door");
    }
    /// A command that waits here.
    fn work(self: &Arc<Self>) -> Work {
        let door = Arc::clone(self);
        call(move || door.pass())
    }
}

fn add_one(count: &AtomicU64) {
    count.fetch_add(1, SeqCst);
}
fn call(what: impl FnOnce() + Send + 'static) -> Work {
    Work::Call(Box::new(move || {
        what();
        Ok(())
    }))
}
fn failing() -> Work {
    Work::Call(Box::new(|| Err(Error::new(ErrorCode::Unknown, "made to fail"))))
}
fn wanted(work: Work) -> Submission<'static> {
    Submission { want: true, ..Submission::new(work) }
}
fn barrier() -> Submission<'static> {
    Submission { order: Order::Both, want: true, ..Submission::new(Work::Barrier) }
}
fn signal(signal: Signal<'_>) -> Submission<'_> {
    Submission { signal, order: Order::Both, ..Submission::new(Work::Barrier) }
}
impl Queue {
    /// Submits behind these.
    fn send(
        &self,
        after: impl IntoIterator<Item = Dependency>,
        submission: Submission<'_>,
    ) -> Result<Option<Arc<Completion>>> {
        let mut dependencies = Dependencies::default();
        after.into_iter().try_for_each(|one| dependencies.add(one))?;
        self.submit(dependencies, submission)
    }
    /// Submits with a completion.
    fn put(&self, after: &[&Arc<Completion>], work: Work) -> Arc<Completion> {
        let after: Vec<_> = after.iter().map(|c| Dependency::Local(Arc::clone(c))).collect();
        self.send(after, wanted(work)).unwrap().unwrap()
    }
}
