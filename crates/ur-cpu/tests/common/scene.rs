//! A program that has one of everything, and what is none of it: for tests of what C programs get wrong.
use super::ur::*;
use crate::call;
use std::ffi::c_void;
use ur_result_t as R;

/// What no entry ever writes.
pub const UNTOUCHED: usize = 0x5a5a_5a5a_5a5a_5a5a;

/// A program with one object of each kind, and the bytes of a handle of each.
pub struct Scene {
    pub ur: Ur,
    pub queue: ur_queue_handle_t,
    pub memory: *mut c_void,
    pub physical: ur_physical_mem_handle_t,
    pub event: ur_event_handle_t,
    pub given: [Given; 3],
}
impl Scene {
    pub fn new() -> Self {
        let ur = Ur::new();
        let queue = ur.new_queue(ur_queue_flags_t::default());
        let memory = ur.alloc(Usm::Device, 4096).unwrap();
        let physical = ur.new_physical(1 << 20, true).unwrap();
        let event = ur.new_event(ur_exp_event_flags_t::IPC_EXP).unwrap();
        let objects = [memory, physical, event];
        let given = [0, 1, 2].map(|n| ur.get(KINDS[n], objects[n]).unwrap());
        let (physical, event) = (ur_physical_mem_handle_t(physical), ur_event_handle_t(event));
        Self { ur, queue, memory, physical, event, given }
    }
    /// Contexts that are none: null, another kind of handle, one that was released, and nobody's memory.
    pub fn contexts(&self) -> [(ur_context_handle_t, R); 4] {
        let released = self.ur.new_context();
        assert_eq!(call!(context.release(released)), R::SUCCESS);
        [
            (ur_context_handle_t::NULL, R::ERROR_INVALID_NULL_HANDLE),
            (ur_context_handle_t(self.queue.0), R::ERROR_INVALID_CONTEXT),
            (released, R::ERROR_INVALID_CONTEXT),
            (ur_context_handle_t(self.event.0), R::ERROR_INVALID_CONTEXT),
        ]
    }
    pub fn devices(&self) -> [(ur_device_handle_t, R); 2] {
        [
            (ur_device_handle_t::NULL, R::ERROR_INVALID_NULL_HANDLE),
            (ur_device_handle_t(self.queue.0), R::ERROR_INVALID_DEVICE),
        ]
    }
    pub fn events(&self) -> [(ur_event_handle_t, R); 3] {
        let released = self.ur.new_event(ur_exp_event_flags_t::IPC_EXP).unwrap();
        self.ur.close(Kind::Event, released).unwrap();
        [
            (ur_event_handle_t::NULL, R::ERROR_INVALID_NULL_HANDLE),
            (ur_event_handle_t(self.queue.0), R::ERROR_INVALID_EVENT),
            (ur_event_handle_t(released), R::ERROR_INVALID_EVENT),
        ]
    }
    pub fn queues(&self) -> [(ur_queue_handle_t, R); 3] {
        let released = self.ur.new_queue(ur_queue_flags_t::default());
        assert_eq!(call!(queue.release(released)), R::SUCCESS);
        [
            (ur_queue_handle_t::NULL, R::ERROR_INVALID_NULL_HANDLE),
            (ur_queue_handle_t(self.event.0), R::ERROR_INVALID_QUEUE),
            (released, R::ERROR_INVALID_QUEUE),
        ]
    }
    pub fn physicals(&self) -> [(ur_physical_mem_handle_t, R); 3] {
        let released = ur_physical_mem_handle_t(self.ur.new_physical(1 << 20, true).unwrap());
        assert_eq!(call!(physical_mem.release(released)), R::SUCCESS);
        [
            (ur_physical_mem_handle_t::NULL, R::ERROR_INVALID_NULL_HANDLE),
            (ur_physical_mem_handle_t(self.queue.0), R::ERROR_INVALID_MEM_OBJECT),
            (released, R::ERROR_INVALID_MEM_OBJECT),
        ]
    }
}
/// Calls with two places to write to, which must be left as they are.
#[track_caller]
pub fn untouched(expected: R, call: impl FnOnce(*mut c_void, *mut usize) -> R) {
    let (mut one, mut two) = (UNTOUCHED, UNTOUCHED);
    assert_eq!(call((&raw mut one).cast(), &raw mut two), expected);
    assert_eq!((one, two), (UNTOUCHED, UNTOUCHED), "what was to be written to");
}
