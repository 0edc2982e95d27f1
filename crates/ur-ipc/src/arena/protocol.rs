//! What processes do with one counter word, over any word that offers the operations: shared memory and futexes in
//! earnest, loom's atomics in `tests/loom.rs`. The word is `value << 2 | ENDED | WAITERS`; values only grow. Beside it is
//! a mark, which no device writes: `deaths << 32 | grants << 1 | DEAD`. A device's late write may overwrite what a death
//! changed in the word, and the mark stays.
use crate::killpoint;
use std::time::Instant;

/// Somebody sleeps, or is about to: who changes the word wakes all.
pub const WAITERS: u64 = 1;
/// Set in the word after `DEAD` in the mark, so that nobody falls asleep on a word as it was before. It decides nothing.
pub const ENDED: u64 = 2;
/// In the mark: the counter's owner is gone or gave up: what is not reached now never will be.
pub const DEAD: u64 = 1;
/// Set with `ENDED`, above all values: a device that waits for the word to be at least `value << 2` goes on. It cannot
/// look at the mark, and nobody else could release it.
pub const RELEASED: u64 = 1 << 60;
const SHIFT: u32 = 2;
/// Values have 48 bits.
const VALUES: u64 = (1 << 48) - 1;
/// A counter that lives again starts so far above what it had reached: above all that its former owner had promised, so
/// that a device which waits for a promise goes on.
pub const STRIDE: u64 = 1 << 24;
/// So often an exchange is tried: somebody hostile may change a word for ever.
const ATTEMPTS: usize = 1000;

/// How far a submitted signal is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Progress {
    /// Neither of the two others yet.
    Pending,
    /// The value was reached.
    Complete,
    /// The process that owed it died, or its command failed: it will never be reached.
    Failed,
}

/// A counter word with the futex on it.
pub trait Word {
    /// Acquire: whoever sees a value sees what was done before it.
    fn load(&self) -> u64;
    /// AcqRel: publishes what was done before the value, and takes the flags that others set.
    fn swap(&self, new: u64) -> u64;
    /// Sets flags; AcqRel.
    fn fetch_or(&self, flags: u64) -> u64;
    /// Replaces `old` by `new` unless another came first; AcqRel. Tells whether it did.
    fn replace(&self, old: u64, new: u64) -> bool;
    /// The mark; Acquire: whoever sees that a life is over sees how far it came.
    fn mark(&self) -> u64;
    /// Replaces the mark `old` by `new` unless another came first; AcqRel. Tells whether it did.
    fn replace_mark(&self, old: u64, new: u64) -> bool;
    /// How far the counter came in the life before which it had died so often; Acquire.
    fn reached_in(&self, deaths: u32) -> u64;
    /// Notes that; Release.
    fn note_reached(&self, deaths: u32, value: u64);
    /// Sleeps unless the word is no longer `seen`, at most until `deadline`, and may return at any time without reason.
    fn sleep(&self, seen: u64, deadline: Option<Instant>);
    /// Wakes all who sleep.
    fn wake_all(&self);
}

/// The value that a word shows.
#[inline]
pub fn value_of(word: u64) -> u64 {
    word >> SHIFT & VALUES
}
/// The word that a device writes to reach a value, and that it waits for.
#[inline]
pub const fn word_of(value: u64) -> u64 {
    value << SHIFT
}

/// How often the counter had died, by its mark.
#[inline]
pub const fn deaths_of(mark: u64) -> u32 {
    (mark >> 32) as u32
}
/// The mark of the next owner's counter.
const fn granted(mark: u64) -> u64 {
    mark & !0xffff_ffff | ((mark as u32).wrapping_add(2) & !1) as u64
}

/// What a word as it was `seen` says of a value that was promised when the counter had died so often. Value first, dead
/// second, for a process may die after it did what it owed.
#[inline]
pub fn judge<W: Word>(word: &W, seen: u64, value: u64, deaths: u32) -> Progress {
    // After the word: who sees the word of a later life sees its mark.
    let mark = word.mark();
    if deaths_of(mark) != deaths {
        return judge_past(word, value, deaths);
    }
    if value_of(seen) >= value {
        return Progress::Complete;
    }
    if mark & DEAD == 0 {
        return Progress::Pending;
    }
    // It died after it was seen, and may have reached the value before.
    let last = value_of(word.load());
    if deaths_of(word.mark()) != deaths {
        return judge_past(word, value, deaths);
    }
    if last >= value { Progress::Complete } else { Progress::Failed }
}
/// The same for a life that is over. Of one long over nothing is known: then nobody may rely on it.
#[cold]
fn judge_past<W: Word>(word: &W, value: u64, deaths: u32) -> Progress {
    let reached = word.reached_in(deaths);
    // After what was read: its place is written again only when the counter has died once more than that.
    let since = deaths_of(word.mark()).wrapping_sub(deaths);
    if since < super::layout::LIVES && reached >= value {
        Progress::Complete
    } else {
        Progress::Failed
    }
}

/// The owner reaches a value. Tells whether somebody took it for dead: then the owner, since it lives, should go on with
/// a fresh counter; what it already owes on this one it may still complete.
#[inline]
pub fn complete<W: Word>(word: &W, value: u64) -> bool {
    let old = word.swap(value << SHIFT);
    if old & WAITERS != 0 {
        killpoint::reach("complete.before_wake");
        word.wake_all();
    }
    old & ENDED != 0
}

/// The owner gives up: every value that is not reached fails.
pub fn fail<W: Word>(word: &W) {
    bury(word, || true);
}

/// Fails a counter in the name of a participant that died, if it `is_theirs` still. A counter that went back and was
/// granted anew has another mark since, so that the exchange fails and the question is asked again.
pub fn bury<W: Word>(word: &W, mut is_theirs: impl FnMut() -> bool) {
    for _ in 0..ATTEMPTS {
        let mark = word.mark();
        if !is_theirs() {
            return;
        }
        if mark & DEAD != 0 || word.replace_mark(mark, mark | DEAD) {
            return release(word, deaths_of(mark));
        }
    }
}

/// Releases those who wait for a counter that died in this life of its: devices by a bit above all values, sleepers by
/// waking them. To be said again for as long as a device may wait, for a late write takes the bit away.
pub fn release<W: Word>(word: &W, deaths: u32) {
    for _ in 0..ATTEMPTS {
        let seen = word.load();
        // Between the word and its exchange: the next life's word is another.
        let mark = word.mark();
        if mark & DEAD == 0 || deaths_of(mark) != deaths {
            return; // and with the next life come a new word and a wake-up
        }
        let both = ENDED | RELEASED;
        if seen & both == both || word.replace(seen, seen | both) {
            break;
        }
    }
    // Whatever the flag says: an owner that died may have taken it and not woken anybody.
    word.wake_all();
}

/// Makes a counter that went back a new owner's: a value that was never given out, so that nobody who looked before
/// takes it for the old owner's. `None` if it should not be used again.
pub fn adopt<W: Word>(word: &W, last: u64) -> Option<u64> {
    let mark = word.mark();
    // Another mark, so that whoever is about to bury the former owner's does not bury this one.
    if mark & DEAD != 0 || !word.replace_mark(mark, granted(mark)) {
        return None;
    }
    for _ in 0..ATTEMPTS {
        let seen = word.load();
        let start = value_of(seen) + 1;
        if start > last {
            return None;
        }
        // The waiters, if any, wait for what this owner may reach.
        if word.replace(seen, start << SHIFT | seen & WAITERS) {
            return Some(start);
        }
    }
    None
}

/// Gives a dead counter another life, when nobody writes it any more and no event names it. Tells whether it did: near
/// the end of all values it stays dead.
pub fn revive<W: Word>(word: &W, last: u64) -> bool {
    let mark = word.mark();
    let reached = value_of(word.load());
    if mark & DEAD == 0 || reached + STRIDE > last {
        return false;
    }
    // In this order: who sees the word of the new life sees its mark, and who sees that how far the old one came.
    word.note_reached(deaths_of(mark), reached);
    let is_new = word.replace_mark(mark, granted(mark).wrapping_add(1 << 32));
    if is_new {
        word.swap((reached + STRIDE) << SHIFT);
        word.wake_all();
    }
    is_new
}

/// Says in the word that somebody will sleep on it. What to sleep on, or nothing if the word changed meanwhile.
#[inline]
pub fn announce<W: Word>(word: &W, seen: u64) -> Option<u64> {
    if seen & WAITERS == 0 && !word.replace(seen, seen | WAITERS) {
        return None;
    }
    killpoint::reach("wait.after_waiters_bit");
    Some(seen | WAITERS)
}

/// Sleeps until a value is reached, or cannot be any more, or the deadline has passed. `nap` is told what value was
/// seen instead, and may spend time otherwise, not long and not beyond the deadline; it tells whether it did.
pub fn wait<W: Word>(
    word: &W,
    (value, deaths): (u64, u32),
    deadline: Option<Instant>,
    mut nap: impl FnMut(u64) -> bool,
) -> Progress {
    loop {
        let seen = word.load();
        let progress = judge(word, seen, value, deaths);
        if progress != Progress::Pending || deadline.is_some_and(|at| Instant::now() >= at) {
            return progress;
        }
        if !nap(value_of(seen))
            && let Some(seen) = announce(word, seen)
        {
            word.sleep(seen, deadline);
        }
    }
}

/// Reads a slot's pair between two looks at its ledger line, and what is `beside` it between two looks at the pair: the
/// mark of its counter, which lives again only after no pair names it any more. `None` if the line was not, or did not
/// stay, `live`: the slot is another event's by now.
#[inline]
pub fn capture<T>(
    live: u64,
    line: impl Fn() -> u64,
    pair: impl Fn() -> u64,
    beside: impl Fn(u64) -> T,
) -> Option<(u64, T)> {
    // The line is changed before the pair is given to another event, and `pair` acquires: who sees the new pair
    // sees the new line.
    if line() != live {
        return None;
    }
    let mut seen = pair();
    let mut found = beside(seen);
    for _ in 0..ATTEMPTS {
        let again = pair();
        if again == seen {
            break;
        }
        seen = again;
        found = beside(seen);
    }
    (line() == live).then_some((seen, found))
}

/// Puts a pair into a slot, if its ledger line is `live` and stays so: `pair` is exchanged only as it was before the
/// line was looked at, and no two generations of a slot have one word in common. `false` if the slot is another event's.
#[inline]
pub fn publish(
    live: u64,
    line: impl Fn() -> u64,
    pair: impl Fn() -> u64,
    replace: impl Fn(u64) -> bool,
) -> bool {
    loop {
        let seen = pair();
        if line() != live {
            return false;
        }
        if replace(seen) {
            return true;
        }
    }
}
