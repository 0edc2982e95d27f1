//! Tests of the engine alone: order, concurrency, failures, signals, callbacks, and stress.
mod errors;
mod model;
mod order;
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
use ur_hal::{Order, Profile, Status};
use ur_ipc::arena::{Counter, Slot};

const DEADLINE: Duration = Duration::from_secs(20);
/// Only one test waits for all queues of a context, and that test has a context of its own.
const CONTEXT: usize = 0x1000;

fn in_order() -> Queue {
    Queue::new(CONTEXT, false)
}
fn out_of_order() -> Queue {
    Queue::new(CONTEXT, true)
}
fn both() -> [Queue; 2] {
    [in_order(), out_of_order()]
}

/// Polls `condition`; panics after the deadline.
fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let end = Instant::now() + DEADLINE;
    while !condition() {
        assert!(Instant::now() < end, "never: {what}");
        std::thread::yield_now();
    }
}

/// A door at which commands wait until the test opens it.
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
    /// A command that waits at the door.
    fn work(self: &Arc<Self>) -> Work {
        let door = Arc::clone(self);
        call(move || door.pass())
    }
}

fn add_one(count: &AtomicU64) {
    count.fetch_add(1, SeqCst);
}
fn call(what: impl FnOnce() + Send + 'static) -> Work {
    Work::Run(Box::new(move || {
        what();
        Ok(())
    }))
}
fn failing() -> Work {
    Work::Run(Box::new(|| Err(Error::new(ErrorKind::Unknown, "made to fail"))))
}
fn wanted(work: Work) -> Submission {
    Submission { want: true, ..Submission::new(work) }
}
fn barrier() -> Submission {
    Submission { order: Order::Both, want: true, ..Submission::new(Work::Barrier) }
}
/// An event that can be signalled repeatedly: the completion of the last command that signalled it.
struct Reusable(Mutex<Arc<Completion>>);
impl Reusable {
    /// Not signalled yet, which counts as complete.
    fn new() -> Self {
        let fresh = Completion::submitted(Profile::Off);
        fresh.settle(Ok(()));
        Self(Mutex::new(fresh))
    }
    fn current(&self) -> Arc<Completion> {
        Arc::clone(&self.0.lock().unwrap())
    }
}
/// What a barrier signals.
enum Signal<'a> {
    Local(&'a Reusable, Profile),
    Shared(&'a Slot),
}
/// The counters for signals to other processes: one for each queue and arena, as the core has them.
static COUNTERS: Mutex<Vec<Known>> = Mutex::new(Vec::new());
type Known = ((usize, u64), Arc<Counter>);
impl Queue {
    /// Submits with these dependencies.
    fn send(
        &self,
        after: impl IntoIterator<Item = Dependency>,
        submission: Submission,
    ) -> Result<Option<Arc<Completion>>> {
        let mut dependencies = Dependencies::default();
        after.into_iter().try_for_each(|one| dependencies.add(one))?;
        self.submit(dependencies, submission)
    }
    /// Submits a signal with these dependencies.
    fn signal(
        &self,
        after: impl IntoIterator<Item = Dependency>,
        signal: Signal<'_>,
    ) -> Result<()> {
        let plain = Submission { order: Order::Both, ..Submission::new(Work::Barrier) };
        match signal {
            Signal::Local(event, profile) => {
                let made = self.send(after, Submission { want: true, profile, ..plain })?;
                *event.0.lock().unwrap() = made.expect("one was wanted");
                Ok(())
            }
            Signal::Shared(slot) => {
                let key = (std::ptr::from_ref(self).addr(), slot.arena().id());
                let mut all = COUNTERS.lock().unwrap();
                all.retain(|(_, counter)| !counter.is_retired());
                let known = all.iter().find(|(its, _)| *its == key);
                let counter = match known.map(|(_, counter)| Arc::clone(counter)) {
                    Some(counter) => counter,
                    None => {
                        let fresh = Arc::new(
                            slot.arena().take_counter().map_err(ur_adapter::error::Error::from)?,
                        );
                        all.push((key, Arc::clone(&fresh)));
                        fresh
                    }
                };
                let value = counter.reserve();
                let owed = Some(OwedSignal { counter: Arc::clone(&counter), value });
                self.send(after, Submission { owed, ..plain })?;
                Ok(ur_core::unseen::judge(slot.publish(&counter, value))?)
            }
        }
    }
    /// Submits with these dependencies, and returns the completion.
    fn put(&self, after: &[&Arc<Completion>], work: Work) -> Arc<Completion> {
        let after: Vec<_> = after.iter().map(|c| Dependency::Local(Arc::clone(c))).collect();
        self.send(after, wanted(work)).unwrap().unwrap()
    }
}
