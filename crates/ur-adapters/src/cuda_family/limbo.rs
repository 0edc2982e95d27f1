//! What is on its way back to this driver; `memory/limbo.rs` says when it goes.
use super::{
    allocation::{Allocation, Memory},
    backing::Chunk,
    driver::Dialect,
    queue::Ticket,
    share::Open,
};
use crate::memory::limbo;
use std::sync::Arc;
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
    Chunk(Arc<Chunk<D>>),
}

/// What is dropped once no other process has the object open.
#[derive(Debug)]
#[expect(dead_code, reason = "held to be dropped")]
pub(super) enum Kept<D: Dialect> {
    /// A freed allocation's.
    Memory(Memory<D>),
}

/// All that waits in a process.
pub(super) type Limbo<D> = limbo::Limbo<Ticket<D>, Spent<D>, Kept<D>>;
fn limbo<D: Dialect>() -> &'static Limbo<D> {
    &D::statics().memory.get().limbo
}

/// Drops `spent` as soon as all of `moments` have passed.
pub(super) fn after<D: Dialect>(moments: Vec<Ticket<D>>, spent: Spent<D>) {
    limbo::<D>().after(moments, spent);
}
/// Drops the oldest of what no command uses any more.
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
