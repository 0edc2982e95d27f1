//! Sleeping until a condition becomes true that another thread sets. No wake-up is lost between the check and
//! the sleep, and a thread that finds the condition true takes no lock.
use super::sync::{AtomicU32, AtomicU64, Condvar, Mutex, Ordering::*, fence, locked};

/// Proof of a fence: what was stored before is seen by every sleeper that a ringing thread does not see.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stored(());
impl Stored {
    /// Executes the fence; one serves several calls of `ring`.
    pub(super) fn now() -> Self {
        fence(SeqCst); // pairs with the fences of sleepers
        Self(())
    }
}

/// The sleeping threads, and the condition variable that wakes them.
#[derive(Debug, Default)]
pub(super) struct Gate {
    sleepers: AtomicU32,
    lock: Mutex<()>,
    bell: Condvar,
}

impl Gate {
    /// Sleeps until `ready` returns true. The thread that makes it true must call `ring` afterwards.
    pub(super) fn wait_until(&self, mut ready: impl FnMut() -> bool) {
        let mut asleep = locked(&self.lock);
        self.sleepers.fetch_add(1, Relaxed);
        // Pairs with the fence in `Stored`: either the ringing thread sees this sleeper, or `ready` sees what
        // that stored.
        fence(SeqCst);
        while !ready() {
            asleep = self.bell.wait(asleep).unwrap_or_else(super::sync::PoisonError::into_inner);
        }
        self.sleepers.fetch_sub(1, Relaxed);
    }
    /// Wakes all sleepers, so that they check again.
    pub(super) fn ring(&self, _: Stored) {
        if self.sleepers.load(Relaxed) != 0 {
            // A sleeper holds the lock from its increment until it sleeps. So after the lock was taken once,
            // the notification cannot be too early for it.
            drop(locked(&self.lock));
            self.bell.notify_all();
        }
    }
}

/// An increasing number, and sleepers that each wait for a value. They are only woken when one of them has
/// something to do.
#[derive(Debug)]
pub(super) struct Odometer {
    reached: AtomicU64,
    /// The smallest value that a sleeper waits for.
    wanted: AtomicU64,
    gate: Gate,
}
const NOTHING: u64 = u64::MAX;

impl Odometer {
    /// At 0.
    pub(super) fn new() -> Self {
        let (reached, wanted) = (AtomicU64::new(0), AtomicU64::new(NOTHING));
        Self { reached, wanted, gate: Gate::default() }
    }
    /// The value; also makes visible what was done before it was reached.
    pub(super) fn reached(&self) -> u64 {
        self.reached.load(Acquire) // pairs with `reach`
    }
    /// Sets the value. Only one thread at a time may do this. `ring` wakes the sleepers.
    pub(super) fn reach(&self, value: u64) {
        self.reached.store(value, Release); // pairs with `reached`
    }
    /// Wakes the sleepers if one of them waits for a value that has been reached.
    pub(super) fn ring(&self, _: Stored) {
        if self.reached.load(Relaxed) >= self.wanted.load(Relaxed) {
            // If this overwrites a new entry, that sleeper is woken too and repeats it.
            self.wanted.store(NOTHING, Relaxed);
            self.gate.ring(Stored::now());
        }
    }
    /// Sleeps until `value` is reached.
    pub(super) fn wait_for(&self, value: u64) {
        self.gate.wait_until(|| {
            self.wanted.fetch_min(value, Relaxed);
            // Pairs with the fence in `Stored`: either the ringing thread sees `wanted`, or this sees
            // `reached`.
            fence(SeqCst);
            self.reached() >= value
        });
    }
}
