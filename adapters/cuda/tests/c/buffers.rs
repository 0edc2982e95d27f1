//! Buffers and images as a C program uses them on either driver: mapped, over memory of its own, and by two devices in
//! turn. Without a device, or without two where it takes two, the tests say so and are skipped.
use crate::{c::*, call, gate::Gate};
use std::{
    ffi::c_void,
    ptr::{null, null_mut},
    sync::atomic::{AtomicBool, AtomicU32, Ordering::*},
    time::Duration,
};
use ur_sys::{ur_map_flags_t as M, ur_mem_flags_t as F, ur_result_t as R, *};

/// A context of several devices, with a queue on each.
struct Several {
    devices: Vec<ur_device_handle_t>,
    context: ur_context_handle_t,
    queues: Vec<ur_queue_handle_t>,
}
// SAFETY: UR allows handles to be used from all threads.
unsafe impl Sync for Several {}
/// A memory object that threads use.
#[derive(Clone, Copy)]
struct Shared(ur_mem_handle_t);
// SAFETY: as above.
unsafe impl Send for Shared {}
impl Shared {
    fn get(self) -> ur_mem_handle_t {
        self.0
    }
}
impl Several {
    fn new(count: usize) -> Option<Self> {
        One::new()?; // says so if there is none
        let (mut adapter, mut platform) = (ur_adapter_handle_t::NULL, ur_platform_handle_t::NULL);
        assert_eq!(call!(adapter.get(1, &mut adapter, null_mut())), R::SUCCESS);
        assert_eq!(call!(platform.get(adapter, 1, &mut platform, null_mut())), R::SUCCESS);
        let (all, mut there) = (ur_device_type_t::GPU, 0);
        assert_eq!(call!(device.get(platform, all, 0, null_mut(), &mut there)), R::SUCCESS);
        if (there as usize) < count {
            println!("skipped: it takes {count} devices and there are {there}");
            return None;
        }
        let mut devices = vec![ur_device_handle_t::NULL; count];
        let room = count as u32;
        let to = devices.as_mut_ptr();
        assert_eq!(call!(device.get(platform, all, room, to, null_mut())), R::SUCCESS);
        let mut context = ur_context_handle_t::NULL;
        let from = devices.as_ptr();
        assert_eq!(call!(context.create(room, from, null(), &mut context)), R::SUCCESS);
        let queue = |device: &ur_device_handle_t| {
            let mut queue = ur_queue_handle_t::NULL;
            assert_eq!(call!(queue.create(context, *device, null(), &mut queue)), R::SUCCESS);
            queue
        };
        let queues = devices.iter().map(queue).collect();
        Some(Self { devices, context, queues })
    }
    fn buffer(&self, flags: F, host: &mut [u8], bytes: usize) -> ur_mem_handle_t {
        let properties = ur_buffer_properties_t {
            stype: ur_structure_type_t::BUFFER_PROPERTIES,
            pNext: null_mut(),
            pHost: host.as_mut_ptr().cast(),
        };
        let given = if host.is_empty() { null() } else { &raw const properties };
        let mut buffer = ur_mem_handle_t::NULL;
        let made = call!(mem.buffer_create(self.context, flags, bytes, given, &mut buffer));
        assert_eq!(made, R::SUCCESS);
        buffer
    }
    /// Fills a part of a buffer; the event of it.
    fn fill(
        &self,
        queue: usize,
        buffer: ur_mem_handle_t,
        byte: u8,
        (offset, size): (usize, usize),
        after: &[ur_event_handle_t],
    ) -> ur_event_handle_t {
        let (queue, pattern) = (self.queues[queue], (&raw const byte).cast());
        let (waits, list) =
            (after.len() as u32, if after.is_empty() { null() } else { after.as_ptr() });
        let mut event = ur_event_handle_t::NULL;
        let code = call!(
            enqueue
                .mem_buffer_fill(queue, buffer, pattern, 1, offset, size, waits, list, &mut event)
        );
        assert_eq!(code, R::SUCCESS);
        event
    }
    /// Writes a column of 32 rows of 128 bytes that begins at a byte of each row; the event of it.
    fn write_column(
        &self,
        queue: ur_queue_handle_t,
        buffer: ur_mem_handle_t,
        (first, width): (usize, usize),
        bytes: &[u8],
        after: &[ur_event_handle_t],
    ) -> ur_event_handle_t {
        assert_eq!(bytes.len(), 32 * width);
        let here = ur_rect_offset_t { x: 0, y: 0, z: 0 };
        let there = ur_rect_offset_t { x: first as u64, ..here };
        let region = ur_rect_region_t { width: width as u64, height: 32, depth: 1 };
        let (from, mut event) = (bytes.as_ptr().cast_mut().cast(), ur_event_handle_t::NULL);
        let list = if after.is_empty() { null() } else { after.as_ptr() };
        let code = call!(enqueue.mem_buffer_write_rect(
            queue,
            buffer,
            false,
            there,
            here,
            region,
            128,
            0,
            width,
            0,
            from,
            after.len() as u32,
            list,
            &mut event
        ));
        assert_eq!(code, R::SUCCESS);
        event
    }
    fn read(
        &self,
        queue: usize,
        buffer: ur_mem_handle_t,
        size: usize,
        after: &[ur_event_handle_t],
    ) -> Vec<u8> {
        let (mut bytes, none) = (vec![0_u8; size], null_mut());
        let (waits, list) =
            (after.len() as u32, if after.is_empty() { null() } else { after.as_ptr() });
        let to: *mut c_void = bytes.as_mut_ptr().cast();
        let queue = self.queues[queue];
        let code =
            call!(enqueue.mem_buffer_read(queue, buffer, true, 0, size, to, waits, list, none));
        assert_eq!(code, R::SUCCESS);
        bytes
    }
    fn map(&self, buffer: ur_mem_handle_t, flags: M, offset: usize, size: usize) -> *mut u8 {
        let (queue, none, mut at) = (self.queues[0], null_mut(), null_mut());
        let code = call!(enqueue.mem_buffer_map(
            queue,
            buffer,
            true,
            flags,
            offset,
            size,
            0,
            null(),
            none,
            &mut at
        ));
        assert_eq!(code, R::SUCCESS);
        at.cast()
    }
    fn unmap(&self, buffer: ur_mem_handle_t, at: *mut u8) -> R {
        call!(enqueue.mem_unmap(self.queues[0], buffer, at.cast(), 0, null(), null_mut()))
    }
    fn finish(&self) {
        self.queues.iter().for_each(|queue| assert_eq!(call!(queue.finish(*queue)), R::SUCCESS));
    }
    fn release(&self, mem: ur_mem_handle_t) {
        assert_eq!(call!(mem.release(mem)), R::SUCCESS);
    }
}
fn release(event: ur_event_handle_t) {
    assert_eq!(call!(event.release(event)), R::SUCCESS);
}

#[test]
fn what_one_device_writes_another_reads_and_adds_to() {
    let Some(c) = Several::new(2) else { return };
    let buffer = c.buffer(F::READ_WRITE, &mut [], 100_000);
    let first = c.fill(0, buffer, 1, (0, 100_000), &[]);
    let second = c.fill(1, buffer, 2, (50_000, 10), &[first]);
    let third = c.fill(0, buffer, 3, (99_990, 10), &[second]);
    let mut expected = vec![1; 100_000];
    expected[50_000..50_010].fill(2);
    expected[99_990..].fill(3);
    for queue in [1, 0, 1] {
        assert!(c.read(queue, buffer, 100_000, &[third]) == expected, "what queue {queue} reads");
    }
    [first, second, third].into_iter().for_each(release);
    c.release(buffer);
}
#[test]
fn bytes_that_a_buffer_begins_with_are_there_on_every_device() {
    let Some(c) = Several::new(2) else { return };
    let mut host: Vec<u8> = (0..5000).map(|n| (n % 251) as u8).collect();
    let expected = host.clone();
    let buffer = c.buffer(F::READ_WRITE | F::ALLOC_COPY_HOST_POINTER, &mut host, 5000);
    host.fill(0);
    assert!(c.read(1, buffer, 5000, &[]) == expected);
    assert!(c.read(0, buffer, 5000, &[]) == expected);
    c.release(buffer);
}
#[test]
fn what_c_writes_into_a_mapped_range_is_in_the_buffer_when_it_is_unmapped() {
    let Some(c) = Several::new(1) else { return };
    let buffer = c.buffer(F::READ_WRITE, &mut [], 4096);
    release(c.fill(0, buffer, 5, (0, 4096), &[]));
    let at = c.map(buffer, M::READ | M::WRITE, 100, 50);
    let there = unsafe { std::slice::from_raw_parts_mut(at, 50) };
    assert!(there.iter().all(|byte| *byte == 5));
    there.fill(6);
    assert_eq!(c.unmap(buffer, at), R::SUCCESS);
    assert_eq!(c.unmap(buffer, at), R::ERROR_INVALID_VALUE);
    // A range that is only read brings nothing back.
    let at = c.map(buffer, M::READ, 0, 4096);
    unsafe { at.write_bytes(9, 4096) };
    assert_eq!(c.unmap(buffer, at), R::SUCCESS);
    c.finish();
    let bytes = c.read(0, buffer, 4096, &[]);
    let is_written = |n| (100..150).contains(&n);
    assert!(bytes.iter().enumerate().all(|(n, byte)| *byte == if is_written(n) { 6 } else { 5 }));
    c.release(buffer);
}
#[test]
fn mappings_of_memory_that_the_host_has_are_that_memory() {
    let Some(c) = Several::new(1) else { return };
    let mut host = vec![4_u8; 8192];
    let home = host.as_mut_ptr();
    let over = c.buffer(F::READ_WRITE | F::USE_HOST_POINTER, &mut host, 8192);
    release(c.fill(0, over, 7, (1000, 10), &[]));
    let at = c.map(over, M::READ, 1000, 20);
    assert_eq!(at.addr(), home.addr() + 1000);
    assert_eq!(unsafe { at.cast::<[u8; 20]>().read() }, [[7; 10], [4; 10]].concat()[..]);
    assert_eq!(c.unmap(over, at), R::SUCCESS);
    c.finish();
    c.release(over);
    let pinned = c.buffer(F::READ_WRITE | F::ALLOC_HOST_POINTER, &mut [], 4096);
    let (one, other) = (c.map(pinned, M::WRITE, 0, 64), c.map(pinned, M::WRITE, 0, 64));
    assert_eq!(one, other);
    unsafe { one.write_bytes(3, 64) };
    assert_eq!([c.unmap(pinned, one), c.unmap(pinned, one)], [R::SUCCESS; 2]);
    assert_eq!(c.read(0, pinned, 64, &[]), [3; 64]);
    c.release(pinned);
}
#[test]
fn two_buffers_over_one_page_of_c_both_work() {
    let Some(c) = Several::new(1) else { return };
    let mut page = vec![1_u8; 4096];
    let (low, high) = page.split_at_mut(1000);
    let flags = F::READ_WRITE | F::USE_HOST_POINTER;
    let (one, other) = (c.buffer(flags, low, 1000), c.buffer(flags, high, 1000));
    release(c.fill(0, one, 2, (0, 1000), &[]));
    release(c.fill(0, other, 3, (0, 500), &[]));
    assert_eq!(c.read(0, one, 1000, &[]), [2; 1000]);
    assert_eq!(c.read(0, other, 1000, &[]), [[3; 500], [1; 500]].concat());
    // Where the driver does not take C's memory, or a page of it twice, what is in it follows when it is mapped.
    let at = c.map(other, M::READ, 0, 1000);
    assert_eq!(at.addr(), high.as_ptr().addr());
    assert_eq!(unsafe { at.cast::<[u8; 500]>().read() }, [3; 500]);
    assert_eq!(c.unmap(other, at), R::SUCCESS);
    c.finish();
    c.release(one);
    c.release(other);
}
#[test]
fn the_native_handle_of_a_buffer_is_its_address_on_the_device() {
    let Some(c) = Several::new(1) else { return };
    let buffer = c.buffer(F::READ_WRITE, &mut [], 4096);
    release(c.fill(0, buffer, 8, (0, 4096), &[]));
    let mut native = 0;
    assert_eq!(call!(mem.get_native_handle(buffer, c.devices[0], &mut native)), R::SUCCESS);
    let mut again = ur_mem_handle_t::NULL;
    let code = call!(mem.buffer_create_with_native_handle(native, c.context, null(), &mut again));
    assert_eq!(code, R::SUCCESS);
    let (mut size, name) = (0_usize, ur_mem_info_t::SIZE);
    let told = call!(mem.get_info(again, name, 8, (&raw mut size).cast(), null_mut()));
    assert_eq!((told, size), (R::SUCCESS, 4096), "and not what the driver has there");
    release(c.fill(0, again, 9, (10, 10), &[]));
    let bytes = c.read(0, buffer, 30, &[]);
    assert_eq!(bytes, [[8; 10], [9; 10], [8; 10]].concat());
    c.release(again);
    c.release(buffer);
    let nothing = call!(mem.buffer_create_with_native_handle(64, c.context, null(), &mut again));
    assert_eq!(nothing, R::ERROR_INVALID_MEM_OBJECT);
}
#[test]
fn a_native_handle_that_is_taken_while_a_write_is_under_way_hides_nothing_from_later_readers() {
    let Some(c) = Several::new(2) else { return };
    let buffer = c.buffer(F::READ_WRITE, &mut [], 4096);
    release(c.fill(0, buffer, 1, (0, 4096), &[]));
    let gate = Gate::shut();
    gate.hold(c.queues[0]);
    let written = c.fill(0, buffer, 2, (0, 4096), &[]);
    for device in [c.devices[1], ur_device_handle_t::NULL] {
        let mut native = 0;
        assert_eq!(call!(mem.get_native_handle(buffer, device, &mut native)), R::SUCCESS);
    }
    gate.open();
    assert_eq!(c.read(1, buffer, 4096, &[written]), [2; 4096]);
    assert_eq!(c.read(0, buffer, 4096, &[]), [2; 4096]);
    release(written);
    c.release(buffer);
}
#[test]
fn parts_that_do_not_overlap_are_written_on_two_devices_at_the_same_time() {
    let Some(c) = Several::new(2) else { return };
    let buffer = c.buffer(F::READ_WRITE, &mut [], 8192);
    release(c.fill(0, buffer, 1, (0, 8192), &[]));
    c.finish();
    let part = |origin| {
        let region = ur_buffer_region_t {
            stype: ur_structure_type_t::BUFFER_REGION,
            pNext: null_mut(),
            origin,
            size: 4096,
        };
        let (kind, mut part) = (ur_buffer_create_type_t::REGION, ur_mem_handle_t::NULL);
        let flags = F::READ_WRITE;
        let made = call!(mem.buffer_partition(buffer, flags, kind, &region, &mut part));
        assert_eq!(made, R::SUCCESS);
        part
    };
    let (low, high) = (part(0), part(4096));
    let gate = Gate::shut();
    gate.hold(c.queues[0]);
    let first = c.fill(0, low, 2, (0, 4096), &[]);
    let second = c.fill(1, high, 3, (100, 50), &[]);
    assert_eq!(c.read(1, high, 150, &[second]), [[1; 100].as_slice(), &[3; 50]].concat());
    gate.open();
    let expected = [vec![2; 4096], vec![1; 100], vec![3; 50], vec![1; 3946]].concat();
    for queue in [0, 1] {
        assert!(c.read(queue, buffer, 8192, &[first, second]) == expected, "queue {queue}");
    }
    [first, second].into_iter().for_each(release);
    [low, high, buffer].into_iter().for_each(|mem| c.release(mem));
}
#[test]
fn two_commands_that_write_different_bytes_of_one_range_are_both_waited_for() {
    let Some(c) = Several::new(2) else { return };
    let buffer = c.buffer(F::READ_WRITE, &mut [], 4096);
    release(c.fill(0, buffer, 1, (0, 4096), &[]));
    c.finish();
    let mut other = ur_queue_handle_t::NULL;
    assert_eq!(call!(queue.create(c.context, c.devices[0], null(), &mut other)), R::SUCCESS);
    // Every second row of 64 bytes, from the first row on and from the second.
    let rows = [[2_u8; 2048], [3; 2048]];
    let write =
        |queue, which: usize| c.write_column(queue, buffer, (64 * which, 64), &rows[which], &[]);
    let gate = Gate::shut();
    gate.hold(c.queues[0]);
    let events = [write(c.queues[0], 0), write(other, 1)];
    gate.open();
    let expected: Vec<u8> = (0..4096).map(|n| if n / 64 % 2 == 0 { 2 } else { 3 }).collect();
    for queue in [1, 0] {
        assert!(c.read(queue, buffer, 4096, &events) == expected, "device {queue}");
    }
    events.into_iter().for_each(release);
    assert_eq!(call!(queue.release(other)), R::SUCCESS);
    c.release(buffer);
}
#[test]
fn threads_that_write_columns_of_one_buffer_on_two_devices_lose_nothing() {
    let Some(c) = Several::new(2) else { return };
    let buffer = c.buffer(F::READ_WRITE, &mut [], 4096);
    release(c.fill(0, buffer, 0, (0, 4096), &[]));
    c.finish();
    for round in 1..=100_u8 {
        std::thread::scope(|scope| {
            for which in [0, 1] {
                let (c, buffer) = (&c, Shared(buffer));
                scope.spawn(move || {
                    let buffer = buffer.get();
                    let (queue, bytes) = (c.queues[which], [2 * round + which as u8; 2048]);
                    let event = c.write_column(queue, buffer, (64 * which, 64), &bytes, &[]);
                    assert_eq!(call!(event.wait(1, &event)), R::SUCCESS);
                    release(event);
                });
            }
        });
        let expected: Vec<u8> = (0..4096).map(|n| 2 * round + (n / 64 % 2) as u8).collect();
        for queue in [0, 1] {
            assert!(c.read(queue, buffer, 4096, &[]) == expected, "round {round}, device {queue}");
        }
    }
    c.release(buffer);
}
#[test]
fn what_threads_write_through_one_queue_each_reads_on_another_device() {
    let Some(c) = Several::new(2) else { return };
    let buffer = c.buffer(F::READ_WRITE, &mut [], 4096);
    release(c.fill(0, buffer, 0, (0, 4096), &[]));
    c.finish();
    std::thread::scope(|scope| {
        for which in 0..8 {
            let (c, buffer) = (&c, Shared(buffer));
            scope.spawn(move || {
                let buffer = buffer.get();
                for round in 1..=100_u8 {
                    let bytes = [round; 512];
                    let event = c.write_column(c.queues[0], buffer, (16 * which, 16), &bytes, &[]);
                    let read = c.read(1, buffer, 4096, &[event]);
                    let column = read.chunks(128).flat_map(|row| &row[16 * which..][..16]);
                    assert!(column.eq(&bytes), "thread {which}, round {round}");
                    release(event);
                }
            });
        }
    });
    c.release(buffer);
}
#[test]
fn a_copy_does_not_wait_behind_one_for_a_later_command_of_the_same_queue() {
    let Some(c) = Several::new(2) else { return };
    let buffers = [(); 2].map(|()| c.buffer(F::READ_WRITE, &mut [], 64));
    let (first, second) = (Gate::shut(), Gate::shut());
    first.hold(c.queues[0]);
    let early = c.fill(0, buffers[0], 1, (0, 64), &[]);
    second.hold(c.queues[0]);
    let late = c.fill(0, buffers[1], 2, (0, 64), &[]);
    let mut other = ur_queue_handle_t::NULL;
    assert_eq!(call!(queue.create(c.context, c.devices[1], null(), &mut other)), R::SUCCESS);
    let mut read = [0_u8; 64];
    let to = read.as_mut_ptr().cast();
    let code =
        call!(enqueue.mem_buffer_read(other, buffers[1], false, 0, 64, to, 1, &late, null_mut()));
    assert_eq!(code, R::SUCCESS);
    first.open();
    assert_eq!(c.read(1, buffers[0], 64, &[early]), [1; 64]);
    second.open();
    assert_eq!(call!(queue.finish(other)), R::SUCCESS);
    assert_eq!(read, [2; 64]);
    assert_eq!(call!(queue.release(other)), R::SUCCESS);
    [early, late].into_iter().for_each(release);
    buffers.into_iter().for_each(|mem| c.release(mem));
}
#[test]
fn many_copies_that_wait_hold_up_no_other() {
    let Some(c) = Several::new(2) else { return };
    let buffers: Vec<_> = (0..12).map(|_| c.buffer(F::READ_WRITE, &mut [], 64)).collect();
    let free = c.buffer(F::READ_WRITE, &mut [], 64);
    release(c.fill(0, free, 9, (0, 64), &[]));
    c.finish();
    let (gate, mut read) = (Gate::shut(), [[0_u8; 64]; 12]);
    gate.hold(c.queues[0]);
    for (buffer, bytes) in buffers.iter().zip(&mut read) {
        let written = c.fill(0, *buffer, 5, (0, 64), &[]);
        let (to, none) = (bytes.as_mut_ptr().cast(), null_mut());
        let queue = c.queues[1];
        let code =
            call!(enqueue.mem_buffer_read(queue, *buffer, false, 0, 64, to, 1, &written, none));
        assert_eq!(code, R::SUCCESS);
        release(written);
    }
    let mut other = ur_queue_handle_t::NULL;
    assert_eq!(call!(queue.create(c.context, c.devices[1], null(), &mut other)), R::SUCCESS);
    let mut now = [0_u8; 64];
    let to = now.as_mut_ptr().cast();
    let code = call!(enqueue.mem_buffer_read(other, free, true, 0, 64, to, 0, null(), null_mut()));
    assert_eq!((code, now), (R::SUCCESS, [9; 64]));
    gate.open();
    c.finish();
    assert_eq!(read, [[5; 64]; 12]);
    assert_eq!(call!(queue.release(other)), R::SUCCESS);
    buffers.into_iter().chain([free]).for_each(|mem| c.release(mem));
}
#[test]
fn readers_on_one_device_do_not_wait_for_what_another_reader_waits_for() {
    let Some(c) = Several::new(2) else { return };
    let buffer = c.buffer(F::READ_WRITE, &mut [], 4096);
    let written = c.fill(0, buffer, 4, (0, 4096), &[]);
    c.finish();
    let (gate, mut bytes) = (Gate::shut(), [0_u8; 16]);
    gate.hold(c.queues[1]);
    let (queue, to, none) = (c.queues[1], bytes.as_mut_ptr().cast(), null_mut());
    let code = call!(enqueue.mem_buffer_read(queue, buffer, false, 0, 16, to, 1, &written, none));
    assert_eq!(code, R::SUCCESS);
    let mut other = ur_queue_handle_t::NULL;
    assert_eq!(call!(queue.create(c.context, c.devices[1], null(), &mut other)), R::SUCCESS);
    let mut now = [0_u8; 16];
    let to = now.as_mut_ptr().cast();
    let code = call!(enqueue.mem_buffer_read(other, buffer, true, 0, 16, to, 0, null(), none));
    assert_eq!((code, now), (R::SUCCESS, [4; 16]));
    gate.open();
    c.finish();
    assert_eq!(bytes, [4; 16]);
    assert_eq!(call!(queue.release(other)), R::SUCCESS);
    release(written);
    c.release(buffer);
}
#[test]
fn barriers_that_threads_set_at_the_same_time_all_hold() {
    struct Order {
        first: AtomicU32,
        seen: AtomicU32,
    }
    unsafe extern "C" fn first(order: *mut c_void) {
        std::thread::sleep(Duration::from_micros(200));
        unsafe { &*order.cast::<Order>() }.first.fetch_add(1, Release);
    }
    unsafe extern "C" fn second(order: *mut c_void) {
        let order = unsafe { &*order.cast::<Order>() };
        order.seen.store(order.first.load(Acquire), Release);
    }
    let Some(all) = Several::new(1) else { return };
    let properties = ur_queue_properties_t {
        stype: ur_structure_type_t::QUEUE_PROPERTIES,
        pNext: null_mut(),
        flags: ur_queue_flags_t::OUT_OF_ORDER_EXEC_MODE_ENABLE,
    };
    let mut queue = ur_queue_handle_t::NULL;
    let made = call!(queue.create(all.context, all.devices[0], &properties, &mut queue));
    assert_eq!(made, R::SUCCESS);
    let all = Several { queues: vec![queue], ..all };
    let barrier = |all: &Several| {
        let (queue, none) = (all.queues[0], null_mut());
        let code = call!(enqueue.events_wait_with_barrier(queue, 0, null(), none));
        assert_eq!(code, R::SUCCESS);
    };
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !is_over.load(Relaxed) {
                    barrier(&all);
                    std::thread::sleep(Duration::from_micros(30));
                }
            });
        }
        let order = Order { first: AtomicU32::new(0), seen: AtomicU32::new(0) };
        let data = (&raw const order).cast_mut().cast();
        let task = |call: unsafe extern "C" fn(*mut c_void)| {
            let (queue, none) = (all.queues[0], null_mut());
            call!(enqueue_exp.host_task_exp(queue, Some(call), data, null(), 0, null(), none))
        };
        let mut rounds = vec![];
        for round in 1..=600 {
            assert_eq!(task(first), R::SUCCESS);
            barrier(&all);
            assert_eq!(task(second), R::SUCCESS);
            all.finish();
            rounds.extend((order.seen.load(Acquire) != round).then_some(round));
        }
        is_over.store(true, Relaxed);
        assert!(rounds.is_empty(), "the second was before the first in rounds {rounds:?}");
    });
}

#[test]
fn a_queue_takes_no_buffer_of_another_context() {
    let (Some(c), Some(other)) = (Several::new(1), Several::new(1)) else { return };
    let buffer = c.buffer(F::READ_WRITE, &mut [], 64);
    let (mut bytes, none) = ([0_u8; 64], null_mut());
    let (queue, to) = (other.queues[0], bytes.as_mut_ptr().cast());
    let code = call!(enqueue.mem_buffer_read(queue, buffer, true, 0, 64, to, 0, null(), none));
    assert_eq!(code, R::ERROR_INVALID_CONTEXT);
    let (flags, mut at) = (M::WRITE_INVALIDATE_REGION, null_mut());
    let code =
        call!(enqueue.mem_buffer_map(queue, buffer, true, flags, 0, 64, 0, null(), none, &mut at));
    assert_eq!(code, R::ERROR_INVALID_CONTEXT, "it would copy nothing");
    let mapped = c.map(buffer, M::READ, 0, 64);
    assert_eq!(other.unmap(buffer, mapped), R::ERROR_INVALID_CONTEXT);
    assert_eq!(c.unmap(buffer, mapped), R::SUCCESS);
    c.release(buffer);
}
#[test]
fn an_image_that_one_device_wrote_another_reads() {
    let Some(c) = Several::new(2) else { return };
    let format = ur_image_format_t {
        channelOrder: ur_image_channel_order_t::RGBA,
        channelType: ur_image_channel_type_t::UNSIGNED_INT8,
    };
    let desc = ur_image_desc_t {
        stype: ur_structure_type_t::IMAGE_DESC,
        pNext: null(),
        r#type: ur_mem_type_t::IMAGE2D,
        width: 16,
        height: 8,
        depth: 0,
        arraySize: 0,
        rowPitch: 0,
        slicePitch: 0,
        numMipLevel: 0,
        numSamples: 0,
    };
    let (flags, mut image) = (F::READ_WRITE, ur_mem_handle_t::NULL);
    let made = call!(mem.image_create(c.context, flags, &format, &desc, null_mut(), &mut image));
    assert_eq!(made, R::SUCCESS);
    let origin = ur_rect_offset_t { x: 0, y: 0, z: 0 };
    let region = ur_rect_region_t { width: 16, height: 8, depth: 1 };
    let mut pixels: Vec<u8> = (0..512).map(|n| (n % 255) as u8).collect();
    let (from, none) = (pixels.as_mut_ptr().cast(), null_mut());
    let queue = c.queues[0];
    let code = call!(enqueue.mem_image_write(
        queue,
        image,
        true,
        origin,
        region,
        0,
        0,
        from,
        0,
        null(),
        none
    ));
    assert_eq!(code, R::SUCCESS);
    let mut read = vec![0_u8; 512];
    let (to, queue) = (read.as_mut_ptr().cast(), c.queues[1]);
    let code = call!(enqueue.mem_image_read(
        queue,
        image,
        true,
        origin,
        region,
        0,
        0,
        to,
        0,
        null(),
        none
    ));
    match has_images_of(c.devices[1], c.devices[0]) {
        true => assert_eq!((code, read), (R::SUCCESS, pixels)),
        false => assert_eq!(code, R::ERROR_UNSUPPORTED_FEATURE),
    }
    c.release(image);
}
#[test]
fn peers_are_reached_exactly_where_they_are_said_to_be() {
    let Some(c) = Several::new(2) else { return };
    let (one, other) = (c.devices[0], c.devices[1]);
    let (mut can, name) = (-1_i32, ur_exp_peer_info_t::UR_PEER_ACCESS_SUPPORT);
    let to = (&raw mut can).cast();
    let asked = call!(usm_p2p_exp.peer_access_get_info_exp(one, other, name, 4, to, null_mut()));
    assert_eq!(asked, R::SUCCESS);
    for _ in 0..2 {
        let enabled = call!(usm_p2p_exp.enable_peer_access_exp(one, other));
        let expected = if can == 1 { R::SUCCESS } else { R::ERROR_INVALID_OPERATION };
        assert_eq!(enabled, expected, "{can}");
    }
    if can == 1 {
        for _ in 0..2 {
            assert_eq!(call!(usm_p2p_exp.disable_peer_access_exp(one, other)), R::SUCCESS);
        }
    }
}
