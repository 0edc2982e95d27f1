//! What is on its way back to this driver; `memory/limbo.rs` says when it goes.
use super::{
    allocation::{Allocation, Memory},
    backing::Chunk,
    driver::Dialect,
    queue::{Moment, Ticket},
    share::Open,
};
use crate::memory::limbo;
use std::sync::{Arc, atomic::Ordering::*};
use ur_adapter::pool;
use ur_ipc::Kind;

/// What is dropped once the commands before have ended.
#[derive(Debug)]
#[expect(dead_code, reason = "held to be dropped")]
pub(super) enum Spent<D: Dialect> {
    /// A freed allocation.
    Allocation(Arc<Allocation<D>>),
    /// A closed pointer.
    Open(Open<D>),
    /// What a pool no longer keeps.
    Chunk(Leaving<D>),
}

/// A chunk on its way back to the driver. The driver takes pinned, managed and legacy device memory back only when
/// its context is idle, and has the caller wait for that: in the worst case for a command that waits for this very
/// thread. So the chunk stays while any queue of the process has commands, as long as [`MOST`] bytes stay so.
#[derive(Debug)]
pub(super) struct Leaving<D: Dialect>(Option<Arc<Chunk<D>>>);
/// How many bytes are kept from the driver while queues are busy; what is more is given back at once, as C's own
/// call of the driver would: programs whose queues are never idle must not run out of memory.
const MOST: usize = 256 << 20;
impl<D: Dialect> Leaving<D> {
    pub(super) fn new(chunk: Arc<Chunk<D>>) -> Self {
        if chunk.goes_when_idle() {
            D::statics().memory.get().leaving.fetch_add(pool::Chunk::bytes(&*chunk), Relaxed);
        }
        Self(Some(chunk))
    }
}
impl<D: Dialect> Drop for Leaving<D> {
    fn drop(&mut self) {
        let Some(chunk) = self.0.take().filter(|chunk| chunk.goes_when_idle()) else { return };
        let (store, bytes) = (D::statics().memory.get(), pool::Chunk::bytes(&*chunk));
        let now = D::statics().queues_now.ticket(0);
        // The sum is a limit and orders nothing.
        if store.leaving.load(Relaxed) <= MOST && !now.is_over() {
            store.limbo.later(now.into_moments(), Spent::Chunk(Self(Some(chunk))));
        } else {
            store.leaving.fetch_sub(bytes, Relaxed);
        }
    }
}

/// What is dropped once no other process has the object open.
#[derive(Debug)]
#[expect(dead_code, reason = "held to be dropped")]
pub(super) enum Kept<D: Dialect> {
    /// A freed allocation's.
    Memory(Memory<D>),
}

/// All that waits in a process.
pub(super) type Limbo<D> = limbo::Limbo<Moment<D>, Spent<D>, Kept<D>>;
fn limbo<D: Dialect>() -> &'static Limbo<D> {
    &D::statics().memory.get().limbo
}

/// Drops `spent` as soon as what was submitted before is done.
pub(super) fn after<D: Dialect>(before: Ticket<D>, spent: Spent<D>) {
    limbo::<D>().after(before.into_moments(), spent);
}
/// Drops `spent` as soon as all of `before` is done.
pub(super) fn after_all<D: Dialect>(before: Vec<Ticket<D>>, spent: Spent<D>) {
    limbo::<D>().after(before.into_iter().flat_map(Ticket::into_moments).collect(), spent);
}
/// Drops what no command uses any more, as far as a few questions tell.
pub(super) fn sweep<D: Dialect>() {
    limbo::<D>().sweep();
}
/// Drops all that no command uses any more: where memory has run out.
pub(super) fn sweep_all<D: Dialect>() {
    limbo::<D>().sweep_all();
}
/// Takes the memory of an object that was exported and is no more, until no other process has it open.
pub(super) fn when_unleased<D: Dialect>(object: u64, kind: Kind, kept: Kept<D>) {
    limbo::<D>().when_unleased((object, kind), kept, release::<D>);
}
fn release<D: Dialect>(object: u64, kind: Kind) {
    limbo::<D>().release(object, kind);
}
