//! Deferred free: memory that was freed or closed in this process, but may still be used by commands enqueued before,
//! or be open in another process. No thread waits here; entries are checked whenever memory is allocated or freed, and
//! when the last lease of a freed object ends.
//!
//! An entry waits for several moments, each a position in a lane: a sequence of commands that complete in order. It is
//! in the queue of one lane at a time, sorted by position, and moves to the next lane when that position has passed. So
//! a check costs one query for each lane instead of one for each entry, and a lane that does not progress delays only
//! the entries that wait for it. The queues are spread over several locks, none of which is held while the driver is
//! queried.
use std::{
    any::Any,
    collections::{BTreeMap, HashMap},
    sync::{
        Mutex, OnceLock,
        atomic::{AtomicUsize, Ordering::*},
    },
};
use ur_adapter::error::{Error, ErrorCode};
use ur_hal::Moment;
use ur_ipc::Kind;
use ur_lock::locked;

/// Something that waits for the last of its moments first.
struct Entry<M, S> {
    moments: Vec<M>,
    spent: S,
}
/// The entries that wait for one lane, by position.
type Line<M, S> = BTreeMap<u64, Vec<Entry<M, S>>>;
/// The queues of some lanes, behind one lock.
struct Shard<M, S> {
    /// The number of queues, mostly 0, which is read without the lock.
    count: AtomicUsize,
    lines: Mutex<HashMap<(usize, u32), Line<M, S>>>,
}
/// The number of locks.
const SHARDS: usize = 16;
/// How many lanes are queried when memory is allocated.
const ASKED: usize = 4;

/// Everything that waits in a process.
pub struct DeferredFree<M, S> {
    /// The number of entries, mostly 0, which is read without a lock.
    count: AtomicUsize,
    shards: [Shard<M, S>; SHARDS],
    /// Where the next check begins, so that every lane is checked in turn.
    turn: AtomicUsize,
    /// Freed memory that other processes have open, by object number.
    leased: Mutex<HashMap<(u64, Kind), Box<dyn Any + Send>>>,
    listening: OnceLock<()>,
}
impl<M, S> Default for DeferredFree<M, S> {
    fn default() -> Self {
        let shard = |_| Shard { count: AtomicUsize::new(0), lines: Mutex::default() };
        let (shards, turn) = (std::array::from_fn(shard), AtomicUsize::new(0));
        let (count, leased) = (AtomicUsize::new(0), Mutex::default());
        Self { count, shards, turn, leased, listening: OnceLock::new() }
    }
}

/// Whether freeing deferred memory may help against this error: memory has run out, or a pool has reached the limit
/// that its creator set. After other errors of the driver a second attempt would fail too.
pub fn is_for_room(error: &Error) -> bool {
    match error.code() {
        ErrorCode::OutOfDeviceMemory | ErrorCode::OutOfHostMemory => true,
        ErrorCode::OutOfResources => error.native_status().is_none(),
        _ => false,
    }
}

impl<M: Moment, S> Shard<M, S> {
    fn add(&self, entry: Entry<M, S>) {
        let Some(first) = entry.moments.last() else { return };
        let (lane, number) = (first.lane(), first.number());
        let mut lines = locked(&self.lines);
        lines.entry(lane).or_default().entry(number).or_default().push(entry);
        self.count.store(lines.len(), Release); // pairs with `lanes`
    }
    /// The lanes that entries wait for.
    fn lanes(&self) -> Vec<(usize, u32)> {
        match self.count.load(Acquire) {
            0 => vec![],
            _ => locked(&self.lines).keys().copied().collect(),
        }
    }
    /// The latest moment for which an entry in this lane waits. Querying that one tells about all before it.
    fn last(&self, lane: (usize, u32)) -> Option<M> {
        let lines = locked(&self.lines);
        let (_, entries) = lines.get(&lane)?.last_key_value()?;
        entries.first()?.moments.last().cloned()
    }
    /// Removes and returns the entries whose position in the lane is known to have passed.
    fn passed(&self, lane: (usize, u32)) -> Vec<Entry<M, S>> {
        let mut lines = locked(&self.lines);
        let Some(line) = lines.get_mut(&lane) else { return vec![] };
        let mut out = vec![];
        while let Some(first) = line.first_entry() {
            let is_over = |entry: &Entry<M, S>| entry.moments.last().is_none_or(M::has_passed);
            if !first.get().first().is_none_or(is_over) {
                break;
            }
            out.extend(first.remove());
        }
        if line.is_empty() {
            lines.remove(&lane);
        }
        self.count.store(lines.len(), Release);
        out
    }
}
impl<M: Moment, S> DeferredFree<M, S> {
    fn shard(&self, (lane, number): (usize, u32)) -> &Shard<M, S> {
        // The lane is the address of a large object, whose low bits are always the same.
        &self.shards[((lane >> 7) + number as usize) % SHARDS]
    }
    fn is_empty(&self) -> bool {
        self.count.load(Acquire) == 0 // pairs with `enter`
    }
    /// Drops `spent` as soon as all of `moments` have passed. Queries the driver until one has not; puts no marker into
    /// those lanes. Then checks one lane for other entries.
    pub fn after(&self, moments: Vec<M>, spent: impl Into<S>) {
        self.enter(moments, spent); // without moments, the driver is not queried
        self.look(1);
    }
    pub(super) fn enter(&self, mut moments: Vec<M>, spent: impl Into<S>) {
        while let Some(moment) = moments.last() {
            if !moment.has_passed() {
                moment.ask(false);
            }
            if !moment.has_passed() {
                let shard = self.shard(moment.lane());
                self.count.fetch_add(1, Release);
                return shard.add(Entry { moments, spent: spent.into() });
            }
            moments.pop();
        }
        drop(spent); // its `drop` may call this function again
    }
    /// Checks at most `most` lanes, in turn.
    fn look(&self, most: usize) {
        if self.is_empty() {
            return;
        }
        let lanes: Vec<_> = self.shards.iter().flat_map(Shard::lanes).collect();
        let start = self.turn.fetch_add(most.min(lanes.len()), Relaxed); // only affects fairness: any ordering will do
        for index in 0..lanes.len().min(most) {
            let lane = lanes[start.wrapping_add(index) % lanes.len()];
            let shard = self.shard(lane);
            let Some(last) = shard.last(lane) else { continue };
            last.ask(true);
            let passed = shard.passed(lane);
            self.count.fetch_sub(passed.len(), Release);
            for mut entry in passed {
                entry.moments.pop();
                self.enter(entry.moments, entry.spent);
            }
        }
    }
    /// Drops some of the objects that no command uses any more; queries a few lanes only.
    pub fn sweep(&self) {
        self.look(ASKED);
    }
    /// Drops everything that no command uses any more. For use when memory has run out.
    pub fn sweep_all(&self) {
        self.look(usize::MAX);
    }
    /// Takes the memory of an exported object that has been freed. When no other process has the object open, `ended`
    /// is called, which must call [`release`](Self::release) to drop the memory.
    pub(super) fn when_unleased(
        &self,
        (object, kind): (u64, Kind),
        kept: impl Send + 'static,
        ended: fn(u64, Kind),
    ) {
        self.listening.get_or_init(|| {
            let heard = ur_ipc::on_leases_gone(ended);
            heard.expect("an adapter asks for one function, and 32 may");
        });
        locked(&self.leased).insert((object, kind), Box::new(kept));
        // In this order: if the last lease ends in between, `ended` finds the memory.
        if !ur_ipc::leased(object, kind) {
            self.release(object, kind);
        }
    }
    /// Drops the memory of an object after its last lease has ended; called on the thread that noticed it.
    pub(super) fn release(&self, object: u64, kind: Kind) {
        let kept = locked(&self.leased).remove(&(object, kind));
        drop(kept); // after the lock is released, because it calls the driver
    }
    /// Whether the memory of an object waits for other processes to close it.
    pub(super) fn is_leased_out(&self, object: u64, kind: Kind) -> bool {
        locked(&self.leased).contains_key(&(object, kind))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{cell::Cell, rc::Rc};

    /// A lane that reports how far it is, and counts queries.
    #[derive(Default)]
    struct Lane {
        done: Cell<u64>,
        known: Cell<u64>,
        asked: Cell<usize>,
    }
    #[derive(Clone)]
    struct At(Rc<Lane>, u64);
    impl Moment for At {
        fn lane(&self) -> (usize, u32) {
            (Rc::as_ptr(&self.0).addr(), 0)
        }
        fn number(&self) -> u64 {
            self.1
        }
        fn has_passed(&self) -> bool {
            self.0.known.get() >= self.1
        }
        fn ask(&self, _may_mark: bool) {
            self.0.asked.set(self.0.asked.get() + 1);
            self.0.known.set(self.0.done.get());
        }
    }
    type Tested = DeferredFree<At, Rc<()>>;
    fn lanes<const N: usize>() -> [Rc<Lane>; N] {
        std::array::from_fn(|_| Rc::default())
    }
    fn at(lane: &Rc<Lane>, number: u64) -> At {
        At(Rc::clone(lane), number)
    }

    #[test]
    fn what_nothing_came_before_goes_at_once_and_the_rest_when_all_its_lanes_have_passed() {
        let (waiting, [one, other], memory) = (Tested::default(), lanes(), Rc::new(()));
        let kept = || Rc::strong_count(&memory) - 1;
        waiting.after(vec![], Rc::clone(&memory));
        assert_eq!(kept(), 0, "nothing came before");
        waiting.after(vec![at(&one, 1)], Rc::clone(&memory));
        waiting.after(vec![at(&one, 1), at(&other, 1)], Rc::clone(&memory));
        waiting.after(vec![at(&other, 2)], Rc::clone(&memory));
        assert_eq!(kept(), 3);
        other.done.set(1);
        waiting.look(usize::MAX);
        assert_eq!(kept(), 3);
        one.done.set(1);
        waiting.look(usize::MAX);
        assert_eq!(kept(), 1, "the other lane has yet to come to 2");
        other.done.set(2);
        waiting.look(usize::MAX);
        assert_eq!(kept(), 0);
        assert!(waiting.is_empty());
    }
    #[test]
    fn a_lane_that_stands_still_holds_up_only_what_waits_for_it() {
        let (waiting, [still, moving], memory) = (Tested::default(), lanes(), Rc::new(()));
        waiting.after(vec![at(&still, 1)], Rc::clone(&memory));
        for number in 1..=1000 {
            waiting.after(vec![at(&moving, number)], Rc::clone(&memory));
            moving.done.set(number);
            waiting.look(ASKED);
            assert_eq!(Rc::strong_count(&memory), 2, "after {number}");
        }
    }
    #[test]
    fn a_look_asks_once_for_each_lane_and_not_for_each_block_and_about_few_lanes() {
        let (waiting, all, memory) = (Tested::default(), lanes::<32>(), Rc::new(()));
        for number in 1..=100 {
            for lane in &all {
                waiting.after(vec![at(lane, number)], Rc::clone(&memory));
            }
        }
        let asked = || all.iter().map(|lane| lane.asked.replace(0)).sum::<usize>();
        asked();
        waiting.look(usize::MAX);
        assert_eq!(asked(), 32);
        waiting.look(ASKED);
        assert_eq!(asked(), ASKED);
        for _ in 0..32 / ASKED {
            all.iter().for_each(|lane| lane.done.set(100));
            waiting.look(ASKED);
        }
        assert_eq!(Rc::strong_count(&memory), 1, "each lane has its turn");
    }
}
