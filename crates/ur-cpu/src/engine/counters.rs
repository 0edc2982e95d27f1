//! The counters that one queue signals shared events by: one for each arena it met. A counter
//! that failed is forgotten, and the next signal takes a fresh one.
use std::sync::Arc;
use ur_ipc::arena::{Arena, Counter};

/// One queue's counters. Lives under its queue's lock.
#[derive(Debug, Default)]
pub(super) struct Counters(Vec<(Arena, Arc<Counter>)>);

impl Counters {
    /// The counter for `arena`: the one in use, or `fresh`. `None` if there is neither; take one
    /// from the arena, with no lock held since a peer may be asked, and try again.
    pub(super) fn get(
        &mut self,
        arena: &Arena,
        fresh: &mut Option<Counter>,
    ) -> Option<Arc<Counter>> {
        // One whose exporter is gone serves its last events, and is not kept beyond them: with it the
        // queue would keep the arena's memory and the connection.
        self.0.retain(|(of, counter)| {
            !counter.is_retired() && (of.id() == arena.id() || !of.is_orphaned())
        });
        if let Some((_, counter)) = self.0.iter().find(|(of, _)| of.id() == arena.id()) {
            return Some(Arc::clone(counter));
        }
        let counter = Arc::new(fresh.take()?);
        self.0.push((arena.clone(), Arc::clone(&counter)));
        Some(counter)
    }
    /// No later signal uses `counter`.
    pub(super) fn forget(&mut self, counter: &Arc<Counter>) {
        self.0.retain(|(_, one)| !Arc::ptr_eq(one, counter));
    }
    /// No later signal uses any of these.
    pub(super) fn forget_all(&mut self) {
        self.0.clear();
    }
}
