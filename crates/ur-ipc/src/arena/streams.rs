//! What devices of this process wait for. A death releases them by a bit in the word they look at; a late write of the
//! dead one's device takes it away again. So it is set again for as long as a device of ours may wait.
use super::{protocol::Progress, wait::Debt};
use crate::{fork::PerFork, liveness, locked};
use std::{
    collections::HashMap,
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

/// How long a device of ours waits at most after a write that took its release away.
pub(crate) const AGAIN: Duration = Duration::from_millis(5);

/// All that devices of this process may wait for.
static WAITS: PerFork<Mutex<HashMap<u64, Debt>>> = PerFork::new();

/// A device of this process may wait for a signal, in a stream, where nobody can call it away. To be kept until what
/// waits has gone on, whether the signal came or failed.
#[derive(Debug)]
pub struct DeviceWait(u64);

impl Debt {
    /// Notes that a device of this process is told to wait for it: if its debtor dies it is released, and again after
    /// whatever a device of the dead one's may write late.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Forked`], if this process cannot be watched over.
    pub fn awaited_by_device(&self) -> crate::Result<DeviceWait> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let id = NEXT.fetch_add(1, Relaxed);
        locked(WAITS.get()?).insert(id, self.clone());
        if self.progress() == Progress::Failed {
            liveness::nudge(); // it died before this was noted
        }
        Ok(DeviceWait(id))
    }
}
impl Drop for DeviceWait {
    fn drop(&mut self) {
        let ended = WAITS.peek().and_then(|waits| locked(waits).remove(&self.0));
        drop(ended); // not under the lock: with it an arena may go
    }
}

/// Releases again whom a death released; on the watcher thread. Whether there is anybody.
pub(crate) fn release_again() -> bool {
    let Some(waits) = WAITS.peek() else { return false };
    let waits = locked(waits);
    let failed = waits.values().filter(|debt| debt.progress() == Progress::Failed);
    failed.map(Debt::release).count() > 0
}
