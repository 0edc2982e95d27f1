//! A place to sleep until something that another thread stores comes true. What comes true is the
//! caller's; no wake-up is lost between its check and its sleep, and nobody awake pays for a lock.
use super::sync::{AtomicU32, AtomicU64, Condvar, Mutex, Ordering::*, fence, locked};

/// What was stored before this was made is seen by every sleeper whom a ringer does not see.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stored(());
impl Stored {
    /// Here and now; one for several bells.
    pub(super) fn now() -> Self {
        fence(SeqCst); // pairs with the fences of sleepers
        Self(())
    }
}

/// Where threads sleep, and the bell that wakes them.
#[derive(Debug, Default)]
pub(super) struct Gate {
    sleepers: AtomicU32,
    lock: Mutex<()>,
    bell: Condvar,
}

impl Gate {
    /// Sleeps until `ready`. Whoever makes it true calls `ring` afterwards.
    pub(super) fn wait_until(&self, mut ready: impl FnMut() -> bool) {
        let mut asleep = locked(&self.lock);
        self.sleepers.fetch_add(1, Relaxed);
        // Pairs with the fence in `Stored`: either the ringer sees this sleeper or `ready` sees
        // what the ringer stored.
        fence(SeqCst);
        while !ready() {
            asleep = self.bell.wait(asleep).unwrap_or_else(super::sync::PoisonError::into_inner);
        }
        self.sleepers.fetch_sub(1, Relaxed);
    }
    /// Wakes all sleepers, to look again at what was `Stored`.
    pub(super) fn ring(&self, _: Stored) {
        if self.sleepers.load(Relaxed) != 0 {
            // A sleeper holds the lock from its count to its sleep: once we have had the lock,
            // the bell cannot come too early for it.
            drop(locked(&self.lock));
            self.bell.notify_all();
        }
    }
}

/// A number that only grows, and sleepers each of whom waits for one value: nobody is woken
/// before there is something to wake for.
#[derive(Debug)]
pub(super) struct Odometer {
    reached: AtomicU64,
    /// The least that a sleeper waits for.
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
    /// The value; what was done before it was reached is seen.
    pub(super) fn reached(&self) -> u64 {
        self.reached.load(Acquire) // pairs with `reach`
    }
    /// Reaches a value. One thread at a time. `ring` is for those who sleep.
    pub(super) fn reach(&self, value: u64) {
        self.reached.store(value, Release); // pairs with `reached`
    }
    /// Wakes the sleepers if one of them waits for no more than what was reached and `Stored`.
    pub(super) fn ring(&self, _: Stored) {
        if self.reached.load(Relaxed) >= self.wanted.load(Relaxed) {
            // A wish that this overwrites is repeated: its owner is among those who are woken.
            self.wanted.store(NOTHING, Relaxed);
            self.gate.ring(Stored::now());
        }
    }
    /// Sleeps until `value` is reached.
    pub(super) fn wait_for(&self, value: u64) {
        self.gate.wait_until(|| {
            self.wanted.fetch_min(value, Relaxed);
            // Pairs with the fence in `Stored`: either the ringer sees what is wanted or this
            // sees what was reached.
            fence(SeqCst);
            self.reached() >= value
        });
    }
}
