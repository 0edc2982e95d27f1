//! The counters by which a queue's signals of shared events reach other processes: one for each arena that it met. One that
//! failed is forgotten, and the next signal takes a fresh one.
use std::sync::{Arc, Mutex, MutexGuard};
use ur_adapter::error::Result;
use ur_ipc::arena::{Arena, Counter};
use ur_lock::locked;

/// One queue's. Locked from the reservation of a value until the value is submitted and published, which keeps all three in
/// the same order.
#[derive(Debug, Default)]
pub(super) struct Counters(Vec<(Arena, Arc<Counter>)>);
impl Counters {
    /// The counter for an arena. One that is not there is taken without the lock, since another process may have to be
    /// asked for it.
    ///
    /// # Errors
    /// `OUT_OF_RESOURCES` where there is none left; what asking the other process fails with.
    pub(super) fn get<'a>(
        all: &'a Mutex<Self>,
        arena: &Arena,
    ) -> Result<(MutexGuard<'a, Self>, Arc<Counter>)> {
        let mut fresh = None;
        loop {
            let mut counters = locked(all);
            // One whose exporter is gone serves its last events, and is not kept beyond them: with it the queue would keep
            // the arena's memory and the connection.
            counters.0.retain(|(of, counter)| {
                !counter.is_retired() && (of.id() == arena.id() || !of.is_orphaned())
            });
            if let Some(counter) = fresh.take() {
                counters.0.push((arena.clone(), Arc::new(counter)));
            }
            let known = counters.0.iter().find(|(of, _)| of.id() == arena.id());
            if let Some(counter) = known.map(|(_, counter)| Arc::clone(counter)) {
                return Ok((counters, counter));
            }
            drop(counters);
            fresh = Some(arena.take_counter()?);
        }
    }
    /// What the queue owes by them will never come.
    pub(super) fn fail(&mut self) {
        for (_, counter) in self.0.iter().filter(|(_, one)| !one.is_settled()) {
            counter.fail();
        }
    }
}
