//! Memory on its way back: freed or closed here, but perhaps still used by commands enqueued
//! before, or still open in another process. Nothing here waits; it is looked at again whenever
//! memory is asked for or given up, and when the last lease of a freed object ends.
use super::{
    allocation::{Allocation, Memory},
    backing::Block,
    engine::Passed,
    physical_mem::Backing,
    share::Open,
};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
};
use ur_adapter::per_process::PerProcess;
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
    Chunk(Arc<Block>),
}

/// What is dropped once no other process has the object open.
#[derive(Debug)]
#[expect(dead_code, reason = "held to be dropped")]
pub(super) enum Kept {
    /// A freed allocation's.
    Memory(Memory),
    /// What physical memory consists of; mappings of it may keep it longer.
    Physical(Arc<Backing>),
}

#[derive(Default)]
struct Limbo {
    waiting: Mutex<Vec<(Vec<Passed>, Spent)>>,
    /// Freed blocks that others have open, by object; their like are lent again.
    leased: Mutex<HashMap<(u64, Kind), Kept>>,
    listening: OnceLock<()>,
}
static LIMBO: PerProcess<Limbo> = PerProcess::new();

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Drops `spent` as soon as all of `moments` have passed.
pub(super) fn after(mut moments: Vec<Passed>, spent: Spent) {
    moments.retain(|moment| !moment.has_passed());
    if !moments.is_empty() {
        locked(&LIMBO.get().waiting).push((moments, spent));
    }
    sweep();
}

/// Drops what no command uses any more.
pub(super) fn sweep() {
    let mut waiting = locked(&LIMBO.get().waiting);
    if waiting.is_empty() {
        return;
    }
    let passed = |(moments, _): &mut (Vec<Passed>, Spent)| moments.iter().all(Passed::has_passed);
    let over: Vec<_> = waiting.extract_if(.., passed).collect();
    drop(waiting); // what is dropped may come here again
    drop(over);
}

/// Takes the memory of an object that was exported and is no more. It goes back for others to
/// have when no other process has the object open.
pub(super) fn when_unleased(object: u64, kind: Kind, kept: Kept) {
    let limbo = LIMBO.get();
    limbo.listening.get_or_init(|| {
        ur_ipc::on_leases_gone(release).expect("an adapter asks for one function, and 32 may");
    });
    locked(&limbo.leased).insert((object, kind), kept);
    // In this order: a lease that ends in between finds the memory here.
    if !ur_ipc::leased(object, kind) {
        release(object, kind);
    }
}
/// On whatever thread saw the last lease end.
fn release(object: u64, kind: Kind) {
    let kept = locked(&LIMBO.get().leased).remove(&(object, kind));
    drop(kept); // not under the lock: a pool may give its chunk up
}

#[cfg(test)]
pub(super) fn is_leased_out(object: u64, kind: Kind) -> bool {
    locked(&LIMBO.get().leased).contains_key(&(object, kind))
}
