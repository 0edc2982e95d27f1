//! What processes do with one counter word, over any word that offers the operations: shared memory and futexes in
//! earnest, loom's atomics in `tests/loom.rs`. The word is `value << 2 | DEAD | WAITERS`; values only grow.
use crate::killpoint;
use std::time::Instant;

/// Somebody sleeps, or is about to: who changes the word wakes all.
pub const WAITERS: u64 = 1;
/// The counter's owner is gone or gave up: what is not reached now never will be.
pub const DEAD: u64 = 2;
/// Set with `DEAD`, above all values: a device that waits for the word to be at least `value << 2` goes on. It cannot
/// look at `DEAD`, and nobody else could release it.
pub const RELEASED: u64 = 1 << 60;
const SHIFT: u32 = 2;
/// Values have 48 bits.
const VALUES: u64 = (1 << 48) - 1;

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

/// What a word says of a value: reached first, dead second, for a process may die after it did what it owed.
#[inline]
pub fn judge(word: u64, value: u64) -> Progress {
    if value_of(word) >= value {
        Progress::Complete
    } else if word & DEAD != 0 {
        Progress::Failed
    } else {
        Progress::Pending
    }
}

/// The owner reaches a value. Tells whether somebody had set `DEAD`: then the owner, since it lives, should go on with
/// a fresh counter; what it already owes on this one it may still complete.
#[inline]
pub fn complete<W: Word>(word: &W, value: u64) -> bool {
    let old = word.swap(value << SHIFT);
    if old & WAITERS != 0 {
        killpoint::reach("complete.before_wake");
        word.wake_all();
    }
    old & DEAD != 0
}

/// The owner gives up: every value that is not reached fails.
pub fn fail<W: Word>(word: &W) {
    word.fetch_or(DEAD | RELEASED);
    // Whatever the flag says: an owner that died may have taken it and not woken anybody.
    word.wake_all();
}

/// Fails a counter in the name of a participant that died, if it `is_theirs` still. A counter that went back and was
/// granted anew has another value since, so that the exchange fails and the question is asked again.
pub fn bury<W: Word>(word: &W, mut is_theirs: impl FnMut() -> bool) {
    // Bounded, for somebody hostile may change the word for ever; in the end it is done regardless.
    for _ in 0..1000 {
        let seen = word.load();
        if !is_theirs() {
            return;
        }
        if seen & DEAD != 0 || word.replace(seen, seen | DEAD | RELEASED) {
            word.wake_all();
            return;
        }
    }
    fail(word);
}

/// Makes a counter that went back a new owner's: a value that was never given out, so that nobody who looked before
/// takes it for the old owner's. `None` if it should not be used again.
pub fn adopt<W: Word>(word: &W, last: u64) -> Option<u64> {
    for _ in 0..1000 {
        let seen = word.load();
        let start = value_of(seen) + 1;
        if seen & DEAD != 0 || start > last {
            return None;
        }
        // The waiters, if any, wait for what this owner may reach.
        if word.replace(seen, start << SHIFT | seen & WAITERS) {
            return Some(start);
        }
    }
    None
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
    value: u64,
    deadline: Option<Instant>,
    mut nap: impl FnMut(u64) -> bool,
) -> Progress {
    loop {
        let seen = word.load();
        let progress = judge(seen, value);
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

/// Reads a slot's pair between two looks at its ledger line. `None` if the line was not, or did not stay, `live`:
/// the slot is another event's by now.
#[inline]
pub fn capture(live: u64, line: impl Fn() -> u64, pair: impl FnOnce() -> u64) -> Option<u64> {
    // The line is changed before the pair is given to another event, and `pair` acquires: who sees the new pair
    // sees the new line.
    if line() != live {
        return None;
    }
    let pair = pair();
    (line() == live).then_some(pair)
}
