//! A place to sleep until something that another thread stores comes true. What comes true is the
//! caller's; no wake-up is lost between its check and its sleep, and nobody awake pays for a lock.
use super::sync::{AtomicU32, Condvar, Mutex, Ordering::*, fence, locked};

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
        // Pairs with the fence in `ring`: either the ringer sees this sleeper or `ready` sees
        // what the ringer stored.
        fence(SeqCst);
        while !ready() {
            asleep = self.bell.wait(asleep).unwrap_or_else(super::sync::PoisonError::into_inner);
        }
        self.sleepers.fetch_sub(1, Relaxed);
    }
    /// Wakes all sleepers, to look again.
    pub(super) fn ring(&self) {
        fence(SeqCst); // pairs with the fence in `wait_until`
        if self.sleepers.load(Relaxed) != 0 {
            // A sleeper holds the lock from its count to its sleep: once we have had the lock,
            // the bell cannot come too early for it.
            drop(locked(&self.lock));
            self.bell.notify_all();
        }
    }
}
