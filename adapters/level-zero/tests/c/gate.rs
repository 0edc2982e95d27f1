//! Holds up a queue.
#![expect(
    unsafe_code,
    clippy::undocumented_unsafe_blocks,
    reason = "plays the C caller, whose function a queue calls"
)]
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
        let code = call!(enqueue_exp.host_task_exp(queue, task, data, null(), 0, list, none));
        assert_eq!(code, R::SUCCESS);
    }
    pub fn open(&self) {
        *self.is_open.lock().unwrap() = true;
        self.opened.notify_all();
    }
}
