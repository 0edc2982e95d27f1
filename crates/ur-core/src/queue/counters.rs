//! The counters through which a queue's signals of shared events reach other processes: one for each arena whose events
//! the queue has signalled. A counter that has failed is dropped, and the next signal takes a new one.
use crate::process_mutex::ProcessMutex;
use std::sync::{Arc, MutexGuard};
use ur_adapter::error::Result;
use ur_ipc::arena::{Arena, Counter};

/// The counters of one queue. Locked from the reservation of a value until it is submitted and published, so that all
/// three happen in the same order for every value.
#[derive(Debug, Default)]
pub(super) struct Counters(Vec<(Arena, Arc<Counter>)>);
impl Counters {
    /// The counter for an arena. If there is none yet, it is taken without holding the lock, since another process may
    /// have to grant it.
    ///
    /// # Errors
    /// `OUT_OF_RESOURCES` if the arena has no counter left; errors of requesting one from the other process; as for
    /// [`ProcessMutex::lock`].
    pub(super) fn get<'a>(
        all: &'a ProcessMutex<Self>,
        arena: &Arena,
    ) -> Result<(MutexGuard<'a, Self>, Arc<Counter>)> {
        let mut fresh = None;
        loop {
            let mut counters = all.lock()?;
            // The counter of an exporter that is gone finishes its last events and is then dropped: keeping it would
            // keep the arena's memory and the connection.
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
    /// Marks every signal that the queue still owes through these counters as failed.
    pub(super) fn fail(&mut self) {
        for (_, counter) in self.0.iter().filter(|(_, one)| !one.is_settled()) {
            counter.fail();
        }
    }
}
