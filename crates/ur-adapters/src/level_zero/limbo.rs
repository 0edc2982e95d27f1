//! Memory on its way back: freed or closed here, but perhaps still used by commands enqueued before, or
//! still open in another process. Nothing here waits; it is looked at again whenever memory is asked
//! for or given up, and when the last lease of a freed object ends.
use super::{
    allocation::{Allocation, Memory},
    backing::Chunk,
    queue::Ticket,
    registry::registry,
    share::Open,
};
use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
};
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

/// What waits, in the order of the frees.
type Waiting = VecDeque<(Vec<Ticket>, Spent)>;
/// All that waits in a process.
#[derive(Default)]
pub(super) struct Limbo {
    waiting: Mutex<Waiting>,
    /// Freed memory that others have open, by object; its like is lent again.
    leased: Mutex<HashMap<(u64, Kind), Kept>>,
    listening: OnceLock<()>,
}
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
fn limbo() -> &'static Limbo {
    &registry().get().limbo
}

/// Drops `spent` as soon as all of `moments` have passed.
pub(super) fn after(mut moments: Vec<Ticket>, spent: Spent) {
    moments.retain(|moment| !moment.is_over());
    match moments.is_empty() {
        true => drop(spent),
        false => locked(&limbo().waiting).push_back((moments, spent)),
    }
    sweep();
}

/// Drops what no command uses any more, the oldest first, up to the first that is in use: asking costs
/// a call of the driver each.
pub(super) fn sweep() {
    let waiting = &limbo().waiting;
    loop {
        // Taken out: nothing is asked of the driver under the lock.
        let Some((moments, spent)) = locked(waiting).pop_front() else { return };
        if !moments.iter().all(Ticket::is_over) {
            return locked(waiting).push_front((moments, spent));
        }
        drop(spent); // which may come here again
    }
}
/// Drops all that no command uses any more: where memory has run out.
pub(super) fn sweep_all() {
    let waiting = &limbo().waiting;
    let all: Waiting = std::mem::take(&mut *locked(waiting));
    let is_over = |(moments, _): &(Vec<Ticket>, _)| moments.iter().all(Ticket::is_over);
    let (over, rest): (Waiting, Waiting) = all.into_iter().partition(is_over);
    locked(waiting).extend(rest);
    drop(over);
}

/// Takes the memory of an object that was exported and is no more. It goes back for others to have when
/// no other process has the object open.
pub(super) fn when_unleased(object: u64, kind: Kind, kept: Kept) {
    let limbo = limbo();
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
    let kept = locked(&limbo().leased).remove(&(object, kind));
    drop(kept); // not under the lock: it calls the driver
}
