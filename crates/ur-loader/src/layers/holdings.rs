//! Tracks resources that are no objects but can leak like them: allocations, reserved address ranges, IPC
//! handles and memory opened from them. Those that were never given back are reported at the end.
//!
//! Only successful calls count. A resource is removed from the records before the call that gives it back,
//! because another thread may get the same address from then on, and is recorded again if the call fails. The
//! end of a pool gives back everything that was allocated from it. Unknown addresses are not checked.
use super::{
    bounds,
    effect::{Class, Holding, Row},
    moment::Moment,
    operands::Operands,
    report,
};
use std::{
    collections::HashMap,
    fmt::{self, Display},
    mem::take,
    sync::{Mutex, MutexGuard},
};
use ur_lock::locked;
use ur_sys::ur_result_t;

/// A resource that the program got.
struct Held {
    what: &'static str,
    /// In bytes; `None` where it is not known.
    size: Option<usize>,
    /// The pool that it is from, or 0.
    pool: usize,
    made: Moment,
}
type Key = (Class, usize);
/// The resources at each address, the latest last. There may be several: a pool's block may begin where the
/// memory of the pool begins, and memory may be opened several times at one address.
type Holdings = HashMap<Key, Vec<Held>>;

const SHARDS: usize = 16;
type Shard = Mutex<Option<Holdings>>;
static HELD: [Shard; SHARDS] = [const { Mutex::new(None) }; SHARDS];

/// Returns the shard of an address. Allocations are aligned to at least a cache line, ranges to a page.
fn shard((_, address): Key) -> MutexGuard<'static, Option<Holdings>> {
    locked(&HELD[((address >> 6) ^ (address >> 12) ^ (address >> 21)) % SHARDS])
}
fn hold(key: Key, held: Held) {
    shard(key).get_or_insert_default().entry(key).or_default().push(held);
}
fn give_back(key: Key) -> Option<Held> {
    let mut all = shard(key);
    let all = all.as_mut()?;
    let there = all.get_mut(&key)?;
    let held = there.pop();
    if there.is_empty() {
        all.remove(&key);
    }
    held
}

/// The resources that a call gives back, kept until its result is known.
pub struct Taken(Vec<(Key, Held)>);

/// Removes the resources that a call is to give back: those it names, and those of the pool that it ends.
pub fn before(row: &Row, operands: Operands<'_>, ended_pool: Option<usize>) -> Taken {
    let mut taken = Vec::new();
    for holding in row.holdings {
        if let Holding::Takes { param, class } = *holding {
            let key = (class, operands.word(param));
            taken.extend(give_back(key).map(|held| (key, held)));
        }
    }
    if let Some(pool) = ended_pool {
        HELD.iter().for_each(|shard| end_pool(shard, pool, &mut taken));
    }
    Taken(taken)
}
/// Removes the resources of one shard that come from `pool`.
fn end_pool(shard: &'static Shard, pool: usize, taken: &mut Vec<(Key, Held)>) {
    let mut all = locked(shard);
    let Some(all) = all.as_mut() else { return };
    all.retain(|key, there| {
        let (ended, left): (Vec<_>, _) = take(there).into_iter().partition(|h| h.pool == pool);
        taken.extend(ended.into_iter().map(|held| (*key, held)));
        *there = left;
        !there.is_empty()
    });
}
/// Records the resources that a call gave; if it failed, records again those that it was to give back.
pub fn after(row: &Row, operands: Operands<'_>, taken: Taken, result: ur_result_t) {
    if result != ur_result_t::SUCCESS {
        taken.0.into_iter().for_each(|(key, held)| hold(key, held));
        return;
    }
    for holding in row.holdings {
        let Holding::Gives { param, class, what, size, pool } = holding else { continue };
        let address = operands.pointed(*param);
        if address == 0 {
            continue;
        }
        let size = match size {
            Some(size) => Some(operands.size(size)),
            None => bounds::left(row, operands, address),
        };
        let pool = pool.map_or(0, |pool| operands.word(pool));
        hold((*class, address), Held { what, size, pool, made: Moment::now(row.call.name) });
    }
}

/// The report of a resource that was never given back.
struct Leak<'h> {
    key: Key,
    held: &'h Held,
    times: usize,
}
impl Display for Leak<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self { key: (class, address), held, times }, what) = (self, self.held.what);
        write!(f, "{what} at {address:#x}")?;
        if let Some(bytes) = held.size {
            write!(f, " ({bytes} bytes)")?;
        }
        match class {
            Class::Usm | Class::Range => write!(f, " was never freed")?,
            Class::Ticket => write!(f, " was taken {times} time(s) more than put back")?,
            Class::Opened => write!(f, " was opened {times} time(s) more than closed")?,
        }
        write!(f, "; given by {}", held.made)
    }
}
/// Removes all records; with `tells`, reports what the program still holds.
pub fn end(tells: bool) {
    for shard in &HELD {
        let all = locked(shard).take();
        for (key, there) in all.into_iter().flatten() {
            if !tells {
                continue;
            }
            // Resources that are counted are reported once, the others one by one.
            let counted = matches!(key.0, Class::Ticket | Class::Opened);
            let told = if counted { 1 } else { there.len() };
            for held in there.iter().take(told) {
                report(Leak { key, held, times: there.len() });
            }
        }
    }
}
