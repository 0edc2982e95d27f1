//! Signals that devices of this process wait for. If the signalling process dies, a bit in the word releases the
//! devices; a late write of its device can remove that bit. The bit is therefore set again while a device here may
//! wait.
use super::{protocol::Progress, wait::PendingSignal};
use crate::{fork::PerFork, liveness, locked};
use std::{
    collections::HashMap,
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

/// The longest time that a device here waits after a late write removed the bit.
pub(crate) const AGAIN: Duration = Duration::from_millis(5);

/// All signals that devices of this process may wait for.
static WAITS: PerFork<Mutex<HashMap<u64, PendingSignal>>> = PerFork::new();

/// Records that a device of this process may wait for a signal in a stream, where no thread can interrupt it. Keep it
/// until the waiting work has continued, whether the signal was completed or failed.
#[derive(Debug)]
pub struct DeviceWait(u64);

impl PendingSignal {
    /// Records that a device of this process will wait for this signal. If the signalling process dies, the device is
    /// released, and again after each late write of that process's device.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Forked`] if this process is forked too deeply to be watched.
    pub fn awaited_by_device(&self) -> crate::Result<DeviceWait> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let id = NEXT.fetch_add(1, Relaxed);
        locked(WAITS.get()?).insert(id, self.clone());
        if self.progress() == Progress::Failed {
            liveness::nudge(); // it had failed before this was recorded
        }
        Ok(DeviceWait(id))
    }
}
impl Drop for DeviceWait {
    fn drop(&mut self) {
        let ended = WAITS.peek().and_then(|waits| locked(waits).remove(&self.0));
        drop(ended); // after the lock is released, because it may drop an arena
    }
}

/// Releases again the devices that wait for failed signals; called on the watcher thread. Returns whether there are
/// any.
pub(crate) fn release_again() -> bool {
    let Some(waits) = WAITS.peek() else { return false };
    let waits = locked(waits);
    let failed = waits.values().filter(|debt| debt.progress() == Progress::Failed);
    failed.map(PendingSignal::release).count() > 0
}
