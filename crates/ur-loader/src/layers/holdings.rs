//! What the program holds that is no object but leaks like one: allocations, reserved addresses, IPC
//! handles and memory opened by them. What is never given back is told at the end.
//!
//! Only what calls that succeed say counts. What is given back is forgotten before its call, since from
//! then on another thread may get that address, and is known again if the call fails. A pool's end gives
//! back what is from the pool; an address that is not known is nobody's to judge.
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

/// Something that was given.
struct Held {
    what: &'static str,
    /// In bytes; where nobody says it, nothing.
    size: Option<usize>,
    /// The pool that it is from, or 0.
    pool: usize,
    made: Moment,
}
type Key = (Class, usize);
/// What was given at each address, the latest last: a block of a pool may begin where the memory
/// does that the pool was made of, and an opened allocation may have its address already.
type Holdings = HashMap<Key, Vec<Held>>;

const SHARDS: usize = 16;
type Shard = Mutex<Option<Holdings>>;
static HELD: [Shard; SHARDS] = [const { Mutex::new(None) }; SHARDS];

/// The shard of an address: allocations begin at multiples of at least a cache line, ranges of a page.
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

/// What a call gives back, until it is known whether it does.
pub struct Taken(Vec<(Key, Held)>);

/// Forgets what a call is to give back: what it names, and what is from the pool that it ends.
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
/// Forgets what is from a pool.
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
/// Notes what a call has given; what one that failed was to give back is held still.
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

/// What is said of something that was never given back.
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
/// Forgets all; with `tells`, says what the program still holds.
pub fn end(tells: bool) {
    for shard in &HELD {
        let all = locked(shard).take();
        for (key, there) in all.into_iter().flatten() {
            if !tells {
                continue;
            }
            // What is counted is told once, the rest one by one.
            let counted = matches!(key.0, Class::Ticket | Class::Opened);
            let told = if counted { 1 } else { there.len() };
            for held in there.iter().take(told) {
                report(Leak { key, held, times: there.len() });
            }
        }
    }
}
