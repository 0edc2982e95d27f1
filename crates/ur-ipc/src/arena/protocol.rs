//! The operations of processes on one counter word. They are generic over the word, which is shared memory with a futex
//! in production and loom's atomics in `tests/loom.rs`. The word is `value << 2 | ENDED | WAITERS`; values only grow.
//! Beside it is a mark, which no device writes: `deaths << 32 | grants << 1 | DEAD`. A device's late write may
//! overwrite what a death changed in the word, but not the mark.
use crate::killpoint;
use std::time::Instant;

/// A thread sleeps or is about to sleep: a change of the word must wake all sleepers.
pub const WAITERS: u64 = 1;
/// Set in the word after `DEAD` was set in the mark, so that no thread falls asleep on the word's previous value. The
/// mark alone decides.
pub const ENDED: u64 = 2;
/// In the mark: the counter's owner has gone or failed, so values that are not reached will never be.
pub const DEAD: u64 = 1;
/// Set together with `ENDED`, above all values: a device that waits until the word is at least `value << 2` continues.
/// A device cannot read the mark, and nothing else could release it.
pub const RELEASED: u64 = 1 << 60;
const SHIFT: u32 = 2;
/// Values have 48 bits.
const VALUES: u64 = (1 << 48) - 1;
/// A revived counter starts this far above the value that it had reached, and so above all values that its former owner
/// had reserved. A device that waits for one of those continues.
pub const STRIDE: u64 = 1 << 24;
/// How often an exchange is tried: a malicious process may keep changing a word.
const ATTEMPTS: usize = 1000;

/// The progress of a submitted signal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Progress {
    /// Neither complete nor failed yet.
    Pending,
    /// The value was reached.
    Complete,
    /// The process that was to complete it died, or its command failed: the value will never be reached.
    Failed,
}

/// A counter word with its futex and its mark.
pub trait Word {
    /// Loads the word. Acquire: a reader that sees a value sees what was done before it.
    fn load(&self) -> u64;
    /// Replaces the word. AcqRel: publishes what was done before, and reads the flags that others set.
    fn swap(&self, new: u64) -> u64;
    /// Sets flags in the word. AcqRel.
    fn fetch_or(&self, flags: u64) -> u64;
    /// Replaces `old` by `new` unless the word has changed; returns whether it did. AcqRel.
    fn replace(&self, old: u64, new: u64) -> bool;
    /// Loads the mark. Acquire: a reader that sees that a life is over sees how far it came.
    fn mark(&self) -> u64;
    /// Replaces the mark `old` by `new` unless it has changed; returns whether it did. AcqRel.
    fn replace_mark(&self, old: u64, new: u64) -> bool;
    /// How far the counter came in the life before which it had died `deaths` times. Acquire.
    fn reached_in(&self, deaths: u32) -> u64;
    /// Records how far it came in that life. Release.
    fn note_reached(&self, deaths: u32, value: u64);
    /// Sleeps while the word is `seen`, at most until `deadline`; may return spuriously.
    fn sleep(&self, seen: u64, deadline: Option<Instant>);
    /// Wakes all sleeping threads.
    fn wake_all(&self);
}

/// The value in a word.
#[inline]
pub fn value_of(word: u64) -> u64 {
    word >> SHIFT & VALUES
}
/// The word that a device writes to complete a value, and that a device waits for.
#[inline]
pub const fn word_of(value: u64) -> u64 {
    value << SHIFT
}

/// How often the counter has died, according to its mark.
#[inline]
pub const fn deaths_of(mark: u64) -> u32 {
    (mark >> 32) as u32
}
/// The mark with which the counter goes to its next owner.
const fn granted(mark: u64) -> u64 {
    mark & !0xffff_ffff | ((mark as u32).wrapping_add(2) & !1) as u64
}

/// The progress of a value that was reserved when the counter had died `deaths` times, judged by the word as it was
/// `seen`. The value is checked before death, because a process may die after it has completed its signals.
#[inline]
pub fn judge<W: Word>(word: &W, seen: u64, value: u64, deaths: u32) -> Progress {
    // Read after the word: a reader that sees the word of a later life sees that life's mark.
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
    // It died after the word was read, and may have reached the value before.
    let last = value_of(word.load());
    if deaths_of(word.mark()) != deaths {
        return judge_past(word, value, deaths);
    }
    if last >= value { Progress::Complete } else { Progress::Failed }
}
/// Judges a value of a life that is over. Nothing is known of a life long past; its values count as failed.
#[cold]
fn judge_past<W: Word>(word: &W, value: u64, deaths: u32) -> Progress {
    let reached = word.reached_in(deaths);
    // Read after the recorded value: its place is reused only after so many further deaths.
    let since = deaths_of(word.mark()).wrapping_sub(deaths);
    if since < super::layout::LIVES && reached >= value {
        Progress::Complete
    } else {
        Progress::Failed
    }
}

/// Completes a value; called by the owner. Returns whether another process marked the counter as dead. The owner, which
/// is alive, should then continue with a fresh counter; it may still complete what it has reserved on this one.
#[inline]
pub fn complete<W: Word>(word: &W, value: u64) -> bool {
    let old = word.swap(value << SHIFT);
    if old & WAITERS != 0 {
        killpoint::reach("complete.before_wake");
        word.wake_all();
    }
    old & ENDED != 0
}

/// Fails every value that is not reached; called by the owner.
pub fn fail<W: Word>(word: &W) {
    mark_owner_dead(word, || true);
}

/// Marks a counter as dead on behalf of a participant that died, if it `is_theirs` still. A counter that was returned
/// and granted again has another mark since, so the exchange fails and the check is repeated.
pub fn mark_owner_dead<W: Word>(word: &W, mut is_theirs: impl FnMut() -> bool) {
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

/// Releases all that wait for a counter that died in this life: devices by a bit above all values, sleeping threads by
/// a wake-up. It has to be repeated while a device may wait, because a late write of a device removes the bit.
pub fn release<W: Word>(word: &W, deaths: u32) {
    for _ in 0..ATTEMPTS {
        let seen = word.load();
        // Read between the word and its exchange: in the next life the word is different.
        let mark = word.mark();
        if mark & DEAD == 0 || deaths_of(mark) != deaths {
            return; // the next life brings a new word and a wake-up
        }
        let both = ENDED | RELEASED;
        if seen & both == both || word.replace(seen, seen | both) {
            break;
        }
    }
    // Whatever the flag says: an owner that died may have cleared it without waking the sleepers.
    word.wake_all();
}

/// Prepares a returned counter for a new owner; returns a value that was never reserved, so that a thread that read the
/// word before does not take it for the old owner's. `None` if the counter should not be used again.
pub fn adopt<W: Word>(word: &W, last: u64) -> Option<u64> {
    let mark = word.mark();
    // The mark is changed, so that a process about to mark the former owner's counter as dead does not mark this one.
    if mark & DEAD != 0 || !word.replace_mark(mark, granted(mark)) {
        return None;
    }
    for _ in 0..ATTEMPTS {
        let seen = word.load();
        let start = value_of(seen) + 1;
        if start > last {
            return None;
        }
        // Sleeping threads, if any, wait for values that this owner may reach.
        if word.replace(seen, start << SHIFT | seen & WAITERS) {
            return Some(start);
        }
    }
    None
}

/// Revives a dead counter, which no process writes any more and no event names. Returns whether it did: near the end of
/// its values a counter stays dead.
pub fn revive<W: Word>(word: &W, last: u64) -> bool {
    let mark = word.mark();
    let reached = value_of(word.load());
    if mark & DEAD == 0 || reached + STRIDE > last {
        return false;
    }
    // In this order: a reader that sees the word of the new life sees its mark, and a reader that sees the new mark
    // sees how far the old life came.
    word.note_reached(deaths_of(mark), reached);
    let is_new = word.replace_mark(mark, granted(mark).wrapping_add(1 << 32));
    if is_new {
        word.swap((reached + STRIDE) << SHIFT);
        word.wake_all();
    }
    is_new
}

/// Announces in the word that a thread will sleep on it. Returns the word to sleep on, or `None` if it changed
/// meanwhile.
#[inline]
pub fn announce<W: Word>(word: &W, seen: u64) -> Option<u64> {
    if seen & WAITERS == 0 && !word.replace(seen, seen | WAITERS) {
        return None;
    }
    killpoint::reach("wait.after_waiters_bit");
    Some(seen | WAITERS)
}

/// Sleeps until a value is reached or has failed, or the deadline has passed. `nap` is called with the value that was
/// seen instead, and may sleep in another way, briefly and not beyond the deadline; it returns whether it did.
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

/// Reads a slot's pair between two reads of its ledger line, and what is `beside` it (the mark of its counter) between
/// two reads of the pair. A counter is revived only after no pair names it any more. Returns `None` if the line was not
/// `live` or did not stay so: the slot then belongs to another event.
#[inline]
pub fn capture<T>(
    live: u64,
    line: impl Fn() -> u64,
    pair: impl Fn() -> u64,
    beside: impl Fn(u64) -> T,
) -> Option<(u64, T)> {
    // The line is changed before the pair is given to another event, and `pair` acquires: a reader that sees the new
    // pair sees the new line.
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

/// Stores a pair in a slot if its ledger line is `live` and stays so. The exchange succeeds only if the pair is the one
/// read before the line, and no two generations of a slot have a word in common. Returns `false` if the slot belongs to
/// another event.
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
