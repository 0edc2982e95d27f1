//! What is on its way back to this driver; `memory/limbo.rs` says when it goes.
use super::{
    allocation::{Allocation, Memory},
    backing::Chunk,
    queue::{Moment, Ticket},
    registry::registry,
    share::Open,
};
use crate::memory::limbo;
use std::sync::Arc;
use ur_ipc::Kind;

/// What is dropped once the commands before have ended.
#[derive(Debug)]
#[expect(dead_code, reason = "held to be dropped")]
pub(super) enum Spent {
    /// A freed allocation.
    Allocation(Arc<Allocation>),
    /// A closed pointer.
    Open(Open),
    /// What a pool no longer keeps.
    Chunk(Arc<Chunk>),
}

/// What is dropped once no other process has the object open.
#[derive(Debug)]
#[expect(dead_code, reason = "held to be dropped")]
pub(super) enum Kept {
    /// A freed allocation's.
    Memory(Memory),
}

/// All that waits in a process.
pub(super) type Limbo = limbo::Limbo<Moment, Spent, Kept>;
fn limbo() -> &'static Limbo {
    &registry().get().limbo
}

/// Drops `spent` as soon as what was submitted before is done.
pub(super) fn after(before: Ticket, spent: Spent) {
    limbo().after(before.into_moments(), spent);
}
/// Drops `spent` as soon as all of `before` is done.
pub(super) fn after_all(before: Vec<Ticket>, spent: Spent) {
    limbo().after(before.into_iter().flat_map(Ticket::into_moments).collect(), spent);
}
/// Drops what no command uses any more, as far as a few questions tell.
pub(super) fn sweep() {
    limbo().sweep();
}
/// Drops all that no command uses any more: where memory has run out.
pub(super) fn sweep_all() {
    limbo().sweep_all();
}
/// Takes the memory of an object that was exported and is no more, until no other process has it open.
pub(super) fn when_unleased(object: u64, kind: Kind, kept: Kept) {
    limbo().when_unleased((object, kind), kept, release);
}
fn release(object: u64, kind: Kind) {
    limbo().release(object, kind);
}
