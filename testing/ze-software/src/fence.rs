//! Fences, with which the host waits for an execution of command lists.
#![expect(unsafe_code, reason = "exports symbols of the driver")]
use crate::{
    event::deadline,
    handle::{self, Object, raw},
    inject::Answer,
    queue, raw,
};
use std::{
    sync::{Arc, Condvar, Mutex, MutexGuard},
    time::Instant,
};
use ur_lock::{locked, unpoisoned};
use ze_sys::*;

/// A fence.
#[derive(Default)]
pub struct Fence {
    signalled: Mutex<bool>,
    changed: Condvar,
}
impl Object for Fence {
    const TAG: u64 = 0x7a65_6665_6e63_6500;
}
impl Fence {
    fn state(&self) -> MutexGuard<'_, bool> {
        locked(&self.signalled)
    }
    fn set(&self, signalled: bool) {
        *self.state() = signalled;
        self.changed.notify_all();
    }
    /// Signals that the execution is complete.
    pub fn signal(&self) {
        self.set(true);
    }
    fn wait(&self, deadline: Option<Instant>) -> Answer {
        let mut state = self.state();
        while !*state {
            state = match deadline.map(|end| end.saturating_duration_since(Instant::now())) {
                None => unpoisoned(self.changed.wait(state)),
                Some(left) if left.is_zero() => return Err(ZE_RESULT_NOT_READY),
                Some(left) => {
                    let waited = self.changed.wait_timeout(state, left);
                    unpoisoned(waited).0
                }
            };
        }
        Ok(())
    }
}
fn get(raw: ze_fence_handle_t) -> Answer<Arc<Fence>> {
    handle::get(raw!(raw))
}
/// The fence behind `raw`, if it is not null.
///
/// # Errors
/// As for [`handle::get`].
pub fn maybe(raw: ze_fence_handle_t) -> Answer<Option<Arc<Fence>>> {
    if raw.is_null() { Ok(None) } else { get(raw).map(Some) }
}

entries! {
    fn zeFenceCreate(
        queue: ze_command_queue_handle_t,
        desc: *const ze_fence_desc_t,
        to: *mut ze_fence_handle_t,
    ) {
        queue::get(queue)?;
        let desc = raw::get(desc)?;
        if desc.flags > 1 {
            return Err(ZE_RESULT_ERROR_INVALID_ENUMERATION);
        }
        let fence = Fence::default();
        fence.set(desc.flags & ZE_FENCE_FLAG_SIGNALED != 0);
        raw::put(to, handle::make(fence).cast())
    }
    fn zeFenceDestroy(fence: ze_fence_handle_t) {
        handle::destroy::<Fence>(raw!(fence)).map(drop)
    }
    fn zeFenceHostSynchronize(fence: ze_fence_handle_t, timeout: u64) {
        get(fence)?.wait(deadline(timeout))
    }
    fn zeFenceQueryStatus(fence: ze_fence_handle_t) {
        if *get(fence)?.state() { Ok(()) } else { Err(ZE_RESULT_NOT_READY) }
    }
    fn zeFenceReset(fence: ze_fence_handle_t) {
        get(fence)?.set(false);
        Ok(())
    }
}
