//! The progress of a queue: every command has a number, and the passage has the number up to which all are
//! complete. `finish` and deferred frees wait for it.
use super::{
    gate::{Odometer, Stored},
    spin,
    sync::{Mutex, locked},
};
use std::sync::{
    Arc, Weak,
    atomic::{AtomicU64, Ordering::*},
};
use ur_mapping::PerProcess;

/// The number of the last submitted command, and the number up to which all are complete.
#[derive(Debug)]
pub struct Passage {
    submitted: AtomicU64,
    ended: Odometer,
}
impl Passage {
    fn new() -> Self {
        Self { submitted: AtomicU64::new(0), ended: Odometer::new() }
    }
    pub(super) fn submitted(&self) -> u64 {
        self.submitted.load(Acquire)
    }
    pub(super) fn ended(&self) -> u64 {
        self.ended.reached()
    }
    /// Whether all submitted commands are complete.
    pub(super) fn is_idle(&self) -> bool {
        self.ended() >= self.submitted()
    }
    /// The number of the next command. To be called under the queue's lock.
    pub(super) fn submit(&self) -> u64 {
        let number = self.submitted.load(Relaxed) + 1;
        self.submitted.store(number, Release);
        number
    }
    /// Records that all commands up to `number` are complete. `ring` wakes the sleepers.
    pub(super) fn end(&self, number: u64) {
        self.ended.reach(number);
    }
    pub(super) fn ring(&self, stored: Stored) {
        self.ended.ring(stored);
    }
    /// Waits until all commands up to `number` are complete.
    pub(super) fn wait_for(&self, number: u64) {
        if !spin::for_end(|| self.ended() >= number) {
            self.ended.wait_for(number);
        }
    }
}

/// An observer of a queue, which keeps neither the queue nor its commands alive. It also works for a dropped
/// queue that is still busy.
#[derive(Clone, Debug)]
pub(crate) struct Watch(Weak<Passage>);
impl Watch {
    pub(super) fn new(passage: &Arc<Passage>) -> Self {
        Self(Arc::downgrade(passage))
    }
    /// Whether the queue was dropped and is idle.
    pub(crate) fn is_over(&self) -> bool {
        self.0.strong_count() == 0
    }
}
/// The sync point of all commands submitted so far to these queues.
pub(crate) fn ticket<'a>(queues: impl IntoIterator<Item = &'a Watch>) -> Passed {
    let mut passed = Passed::default();
    queues.into_iter().filter_map(|one| one.0.upgrade()).for_each(|one| passed.add(&one));
    passed
}

/// A point that a queue must pass.
#[derive(Clone, Debug)]
pub struct Moment(Arc<Passage>, u64);
impl ur_hal::Moment for Moment {
    fn lane(&self) -> (usize, u32) {
        (Arc::as_ptr(&self.0).addr(), 0)
    }
    fn number(&self) -> u64 {
        self.1
    }
    fn has_passed(&self) -> bool {
        self.0.ended() >= self.1
    }
    fn ask(&self, _may_mark: bool) {} // always known
}
/// A sync point: all commands submitted so far to some queues. It keeps no queue alive.
#[derive(Clone, Debug, Default)]
pub struct Passed(Vec<Moment>);
impl Passed {
    fn add(&mut self, passage: &Arc<Passage>) {
        let number = passage.submitted();
        if passage.ended() < number {
            self.0.push(Moment(Arc::clone(passage), number));
        }
    }
    /// Its points: for each queue the number that it must reach.
    pub(crate) fn into_moments(self) -> Vec<Moment> {
        self.0
    }
    /// Whether all are complete.
    #[cfg(test)]
    pub(crate) fn has_passed(&self) -> bool {
        self.0.iter().all(ur_hal::Moment::has_passed)
    }
    /// Waits until all are complete.
    pub(crate) fn wait(&self) {
        self.0.iter().for_each(|Moment(passage, number)| passage.wait_for(*number));
    }
}

/// The passages of this process's queues, each with its context.
type QueueRegistry = Mutex<Vec<(usize, Weak<Passage>)>>;
static QUEUES: PerProcess<QueueRegistry> = PerProcess::new();

/// A passage for a queue of `context`, registered for `all_queues_sync_point` until it is dropped.
pub(super) fn passage(context: usize) -> Arc<Passage> {
    let passage = Arc::new(Passage::new());
    let mut all = locked(QUEUES.get());
    all.retain(|(_, queue)| queue.strong_count() != 0);
    all.push((context, Arc::downgrade(&passage)));
    passage
}

/// The sync point of all commands submitted so far to any queue of `context`, including dropped queues that
/// are still busy. Deferred frees wait for it.
pub(crate) fn all_queues_sync_point(context: usize) -> Passed {
    let mut passed = Passed::default();
    let all = locked(QUEUES.get());
    let queues = all.iter().filter(|(of, _)| *of == context);
    queues.filter_map(|(_, queue)| queue.upgrade()).for_each(|queue| passed.add(&queue));
    passed
}
