//! Memory on its way back: freed or closed here, but perhaps still used by commands enqueued before, or
//! still open in another process. Nothing here waits; it is looked at again whenever memory is asked
//! for or given up, and when the last lease of a freed object ends.
use super::{
    allocation::{Allocation, Memory},
    backing::Chunk,
    driver::Dialect,
    queue::Ticket,
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

/// What waits, in the order of the frees.
type Waiting<D> = VecDeque<(Vec<Ticket<D>>, Spent<D>)>;
/// All that waits in a process.
pub(super) struct Limbo<D: Dialect> {
    waiting: Mutex<Waiting<D>>,
    /// Freed memory that others have open, by object; its like is lent again.
    leased: Mutex<HashMap<(u64, Kind), Kept<D>>>,
    listening: OnceLock<()>,
}
impl<D: Dialect> Default for Limbo<D> {
    fn default() -> Self {
        let (waiting, leased) = (Mutex::default(), Mutex::default());
        Self { waiting, leased, listening: OnceLock::new() }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
fn limbo<D: Dialect>() -> &'static Limbo<D> {
    &D::statics().memory.get().limbo
}

/// Drops `spent` as soon as all of `moments` have passed.
pub(super) fn after<D: Dialect>(mut moments: Vec<Ticket<D>>, spent: Spent<D>) {
    moments.retain(|moment| !moment.is_over());
    match moments.is_empty() {
        true => drop(spent),
        false => locked(&limbo::<D>().waiting).push_back((moments, spent)),
    }
    sweep::<D>();
}

/// Drops what no command uses any more, the oldest first, up to the first that is in use: asking costs
/// a call of the driver each.
pub(super) fn sweep<D: Dialect>() {
    let waiting = &limbo::<D>().waiting;
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
pub(super) fn sweep_all<D: Dialect>() {
    let waiting = &limbo::<D>().waiting;
    let all: Waiting<D> = std::mem::take(&mut *locked(waiting));
    let is_over = |(moments, _): &(Vec<Ticket<D>>, _)| moments.iter().all(Ticket::is_over);
    let (over, rest): (Waiting<D>, Waiting<D>) = all.into_iter().partition(is_over);
    locked(waiting).extend(rest);
    drop(over);
}

/// Takes the memory of an object that was exported and is no more. It goes back for others to have when
/// no other process has the object open.
pub(super) fn when_unleased<D: Dialect>(object: u64, kind: Kind, kept: Kept<D>) {
    let limbo = limbo::<D>();
    limbo.listening.get_or_init(|| {
        ur_ipc::on_leases_gone(release::<D>).expect("an adapter asks for one function, and 32 may");
    });
    locked(&limbo.leased).insert((object, kind), kept);
    // In this order: a lease that ends in between finds the memory here.
    if !ur_ipc::leased(object, kind) {
        release::<D>(object, kind);
    }
}
/// On whatever thread saw the last lease end.
fn release<D: Dialect>(object: u64, kind: Kind) {
    let kept = locked(&limbo::<D>().leased).remove(&(object, kind));
    drop(kept); // not under the lock: it calls the driver
}
