//! Holds up a queue.
#![expect(
    unsafe_code,
    clippy::undocumented_unsafe_blocks,
    reason = "plays the C caller, whose function a queue calls"
)]
#![allow(dead_code, reason = "each test binary uses its own part")]
use crate::call;
use std::{
    ffi::c_void,
    ptr::{null, null_mut},
    sync::{Condvar, Mutex},
};
use ur_sys::{ur_result_t as R, *};

/// A queue that is held up until it is let go.
pub struct Gate {
    is_open: Mutex<bool>,
    opened: Condvar,
}
impl Gate {
    pub fn shut() -> &'static Self {
        Box::leak(Box::new(Self { is_open: Mutex::new(false), opened: Condvar::new() }))
    }
    pub fn hold(&'static self, queue: ur_queue_handle_t) {
        assert_eq!(self.try_to_hold(queue), R::SUCCESS);
    }
    /// The same, where the driver may refuse it.
    pub fn try_to_hold(&'static self, queue: ur_queue_handle_t) -> R {
        unsafe extern "C" fn stand(gate: *mut c_void) {
            let gate = unsafe { &*gate.cast::<Gate>() };
            let mut is_open = gate.is_open.lock().unwrap();
            while !*is_open {
                is_open = gate.opened.wait(is_open).unwrap();
            }
        }
        let data = (&raw const *self).cast_mut().cast();
        let (none, list) = (null_mut(), null());
        let task: Option<unsafe extern "C" fn(*mut c_void)> = Some(stand);
        call!(enqueue_exp.host_task_exp(queue, task, data, null(), 0, list, none))
    }
    pub fn open(&self) {
        *self.is_open.lock().unwrap() = true;
        self.opened.notify_all();
    }
}
