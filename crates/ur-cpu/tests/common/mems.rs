//! A C program with a queue and memory objects: buffers and images, and the commands on them as one
//! calls them without events.
#![expect(unsafe_code, clippy::undocumented_unsafe_blocks, reason = "plays the C caller")]
use super::ur::*;
use crate::call;
use std::{
    ffi::c_void,
    ptr::{null, null_mut},
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering::*},
    },
    thread,
};
use ur_mem_flags_t as F;
use ur_result_t as R;

pub const ANY: F = F::READ_WRITE;

/// A box as the entries for boxes take it: origin in memory, origin elsewhere, region, both pitches
/// in memory, both pitches elsewhere.
#[derive(Clone, Copy, Debug)]
pub struct Boxes {
    pub one: [u64; 3],
    pub other: [u64; 3],
    pub region: [u64; 3],
    pub pitches: [usize; 4],
}
pub fn at(origin: [u64; 3]) -> ur_rect_offset_t {
    ur_rect_offset_t { x: origin[0], y: origin[1], z: origin[2] }
}
pub fn of(region: [u64; 3]) -> ur_rect_region_t {
    ur_rect_region_t { width: region[0], height: region[1], depth: region[2] }
}
pub fn counting(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|i| (i * 7 + i / 251) as u8).collect()
}

/// A program with a queue.
#[derive(Clone, Copy)]
pub struct Mems {
    pub ur: Ur,
    pub queue: ur_queue_handle_t,
}
/// A memory object that any thread may use.
#[derive(Clone, Copy)]
pub struct Anywhere(ur_mem_handle_t);
impl Anywhere {
    pub fn new(mem: ur_mem_handle_t) -> Self {
        Self(mem)
    }
    pub fn mem(self) -> ur_mem_handle_t {
        self.0
    }
}
unsafe impl Send for Anywhere {}
unsafe impl Sync for Anywhere {}
// Handles are C's: any thread may use them.
unsafe impl Send for Mems {}
unsafe impl Sync for Mems {}
const NO_EVENT: *mut ur_event_handle_t = null_mut();

impl Mems {
    pub fn new() -> Self {
        let ur = Ur::new();
        Self { ur, queue: ur.new_queue(ur_queue_flags_t::default()) }
    }
    pub fn buffer(&self, flags: F, size: usize, host: *mut c_void) -> Outcome<ur_mem_handle_t> {
        let stype = ur_structure_type_t::BUFFER_PROPERTIES;
        let properties = ur_buffer_properties_t { stype, pNext: null_mut(), pHost: host };
        let properties = if host.is_null() { null() } else { &raw const properties };
        let mut mem = ur_mem_handle_t::NULL;
        let context = self.ur.context;
        self.ur.check(call!(mem.buffer_create(context, flags, size, properties, &mut mem)))?;
        Ok(mem)
    }
    /// A buffer that holds a copy of `bytes`.
    pub fn holding(&self, bytes: &[u8]) -> ur_mem_handle_t {
        let host = bytes.as_ptr().cast_mut().cast();
        self.buffer(ANY | F::ALLOC_COPY_HOST_POINTER, bytes.len(), host).expect("a buffer")
    }
    pub fn part(
        &self,
        mem: ur_mem_handle_t,
        flags: F,
        origin: usize,
        size: usize,
    ) -> Outcome<ur_mem_handle_t> {
        let stype = ur_structure_type_t::BUFFER_REGION;
        let region = ur_buffer_region_t { stype, pNext: null(), origin, size };
        let (kind, mut part) = (ur_buffer_create_type_t::REGION, ur_mem_handle_t::NULL);
        self.ur.check(call!(mem.buffer_partition(mem, flags, kind, &region, &mut part)))?;
        Ok(part)
    }
    pub fn release(&self, mem: ur_mem_handle_t) {
        assert_eq!(call!(mem.release(mem)), R::SUCCESS);
    }
    pub fn release_all<const N: usize>(&self, mems: [ur_mem_handle_t; N]) {
        mems.into_iter().for_each(|mem| self.release(mem));
    }
    pub fn info<T: Copy + Default>(&self, mem: ur_mem_handle_t, name: ur_mem_info_t) -> Outcome<T> {
        self.ur.value(|size, to, ret| call!(mem.get_info(mem, name, size, to, ret)))
    }
    pub fn finish(&self) {
        assert_eq!(call!(queue.finish(self.queue)), R::SUCCESS);
    }
    pub fn read(&self, mem: ur_mem_handle_t, offset: usize, to: &mut [u8]) -> Outcome<()> {
        let (at, size) = (to.as_mut_ptr().cast(), to.len());
        let queue = self.queue;
        let code =
            call!(enqueue.mem_buffer_read(queue, mem, true, offset, size, at, 0, null(), NO_EVENT));
        self.ur.check(code)
    }
    pub fn write(&self, mem: ur_mem_handle_t, offset: usize, from: &[u8]) -> Outcome<()> {
        let (at, size) = (from.as_ptr().cast(), from.len());
        let queue = self.queue;
        let code = call!(enqueue.mem_buffer_write(
            queue,
            mem,
            true,
            offset,
            size,
            at,
            0,
            null(),
            NO_EVENT
        ));
        self.ur.check(code)
    }
    pub fn copy(
        &self,
        [from, to]: [ur_mem_handle_t; 2],
        [from_at, to_at]: [usize; 2],
        size: usize,
    ) -> Outcome<()> {
        let queue = self.queue;
        let code = call!(enqueue.mem_buffer_copy(
            queue,
            from,
            to,
            from_at,
            to_at,
            size,
            0,
            null(),
            NO_EVENT
        ));
        self.ur.check(code)
    }
    pub fn fill(
        &self,
        mem: ur_mem_handle_t,
        pattern: &[u8],
        offset: usize,
        size: usize,
    ) -> Outcome<()> {
        let (at, len) = (pattern.as_ptr().cast(), pattern.len());
        let queue = self.queue;
        let code =
            call!(enqueue.mem_buffer_fill(queue, mem, at, len, offset, size, 0, null(), NO_EVENT));
        self.ur.check(code)
    }
    pub fn read_box(&self, mem: ur_mem_handle_t, boxes: Boxes, to: &mut [u8]) -> Outcome<()> {
        let Boxes { one, other, region, pitches: [row, slice, host_row, host_slice] } = boxes;
        let (queue, host) = (self.queue, to.as_mut_ptr().cast());
        let (one, other, region) = (at(one), at(other), of(region));
        let code = call!(enqueue.mem_buffer_read_rect(
            queue,
            mem,
            true,
            one,
            other,
            region,
            row,
            slice,
            host_row,
            host_slice,
            host,
            0,
            null(),
            NO_EVENT
        ));
        self.ur.check(code)
    }
    pub fn write_box(&self, mem: ur_mem_handle_t, boxes: Boxes, from: &[u8]) -> Outcome<()> {
        let Boxes { one, other, region, pitches: [row, slice, host_row, host_slice] } = boxes;
        let (queue, host) = (self.queue, from.as_ptr().cast_mut().cast());
        let (one, other, region) = (at(one), at(other), of(region));
        let code = call!(enqueue.mem_buffer_write_rect(
            queue,
            mem,
            true,
            one,
            other,
            region,
            row,
            slice,
            host_row,
            host_slice,
            host,
            0,
            null(),
            NO_EVENT
        ));
        self.ur.check(code)
    }
    pub fn copy_box(&self, [from, to]: [ur_mem_handle_t; 2], boxes: Boxes) -> Outcome<()> {
        let Boxes { one, other, region, pitches: [row, slice, to_row, to_slice] } = boxes;
        let (queue, one, other, region) = (self.queue, at(one), at(other), of(region));
        let code = call!(enqueue.mem_buffer_copy_rect(
            queue,
            from,
            to,
            one,
            other,
            region,
            row,
            slice,
            to_row,
            to_slice,
            0,
            null(),
            NO_EVENT
        ));
        self.ur.check(code)
    }
    pub fn map(
        &self,
        mem: ur_mem_handle_t,
        flags: ur_map_flags_t,
        offset: usize,
        size: usize,
    ) -> Outcome<*mut c_void> {
        let (queue, mut at) = (self.queue, null_mut());
        let code = call!(enqueue.mem_buffer_map(
            queue,
            mem,
            true,
            flags,
            offset,
            size,
            0,
            null(),
            NO_EVENT,
            &mut at
        ));
        self.ur.check(code)?;
        Ok(at)
    }
    pub fn unmap(&self, mem: ur_mem_handle_t, at: *mut c_void) -> Outcome<()> {
        self.ur.check(call!(enqueue.mem_unmap(self.queue, mem, at, 0, null(), NO_EVENT)))
    }
}

/// A gate in a queue: a host task that waits until it is opened.
#[derive(Default)]
pub struct Gate(AtomicBool);
unsafe extern "C" fn wait_at_gate(gate: *mut c_void) {
    let gate = unsafe { &*gate.cast::<Gate>() };
    while !gate.0.load(Acquire) {
        thread::yield_now();
    }
}
impl Gate {
    /// One that lasts: a host task looks at it until it ends, whatever the test does meanwhile.
    pub fn lasting() -> &'static Self {
        static ALL: Mutex<Vec<&'static Gate>> = Mutex::new(vec![]); // not lost, leak checkers see
        let gate = Box::leak(Box::default());
        ALL.lock().unwrap().push(gate);
        gate
    }
    pub fn close(&'static self, queue: ur_queue_handle_t) -> ur_event_handle_t {
        let mut event = ur_event_handle_t::NULL;
        let at = (&raw const *self).cast_mut().cast();
        let (task, none) = (Some(wait_at_gate as unsafe extern "C" fn(*mut c_void)), null());
        let code = call!(enqueue_exp.host_task_exp(queue, task, at, null(), 0, none, &mut event));
        assert_eq!(code, R::SUCCESS);
        event
    }
    pub fn open(&self) {
        self.0.store(true, Release);
    }
}
