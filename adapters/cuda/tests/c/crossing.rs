//! What a context of two devices promises: bytes get from one to the other, be there a link or not, whichever queue
//! carries them, and though nobody asked for peer access. With fewer than two devices the tests say so and are skipped.
use crate::{c::*, call};
use std::{
    ffi::c_void,
    ptr::{null, null_mut},
};
use ur_sys::{ur_mem_flags_t as F, ur_result_t as R, *};

/// Two devices of one context, each with a queue.
struct Pair([One; 2]);
impl Pair {
    fn new() -> Option<Self> {
        One::pair().map(Self)
    }
    fn memory(&self, bytes: usize) -> [*mut u8; 2] {
        [0, 1].map(|device| self.0[device].device_memory(bytes).cast())
    }
    fn write(&self, device: usize, to: *mut u8, bytes: &[u8]) {
        copy(&self.0[device], to, bytes.as_ptr(), bytes.len());
    }
    fn read(&self, device: usize, from: *const u8, bytes: usize) -> Vec<u8> {
        let mut all = vec![0; bytes];
        copy(&self.0[device], all.as_mut_ptr(), from, bytes);
        all
    }
    fn free(&self, memory: [*mut u8; 2]) {
        memory.iter().zip(&self.0).for_each(|(at, one)| one.free(at.cast()));
    }
}
fn copy(one: &One, to: *mut u8, from: *const u8, bytes: usize) {
    let (queue, to, from, none) = (one.queue, to.cast(), from.cast(), null_mut());
    let code = call!(enqueue.usm_memcpy(queue, true, to, from, bytes, 0, null(), none));
    assert_eq!(code, R::SUCCESS);
}
fn pattern(seed: usize, bytes: usize) -> Vec<u8> {
    (0..bytes).map(|n| ((n * 7 + seed) % 251) as u8).collect()
}
/// Each queue with each two ends that are not both its own.
fn ways() -> impl Iterator<Item = (usize, usize, usize)> {
    let all = (0..8).map(|n| (n & 1, n >> 1 & 1, n >> 2));
    all.filter(|(queue, to, from)| to != queue || from != queue)
}

#[test]
fn bytes_get_from_device_to_device_whichever_queue_copies_them() {
    let Some(pair) = Pair::new() else { return };
    // Less than what passes through the host at a time, more, and no multiple of anything.
    for (seed, bytes) in [(1, 12), (2, 4097), (3, (9 << 20) + 13)] {
        let room = bytes + 64;
        let (there, here) = (pair.memory(room), pair.memory(room));
        for (queue, to, from) in ways() {
            let sent = pattern(seed + queue + 2 * to + 4 * from, bytes);
            pair.write(from, there[from].wrapping_add(32), &sent);
            pair.write(to, here[to], &vec![0xEE; room]);
            let (to_at, from_at) = (here[to].wrapping_add(16), there[from].wrapping_add(32));
            copy(&pair.0[queue], to_at, from_at, bytes);
            let got = pair.read(to, here[to], room);
            let whole = [&[0xEE; 16][..], &sent, &[0xEE; 48]].concat();
            assert!(got == whole, "{bytes} bytes, queue {queue}: {to} from {from}");
        }
        pair.free(there);
        pair.free(here);
    }
}
#[test]
fn any_queue_reads_and_writes_any_devices_memory_from_the_host_and_fills_it() {
    let Some(pair) = Pair::new() else { return };
    let memory = pair.memory(1 << 20);
    for (queue, of) in [(0, 1), (1, 0)] {
        let (one, at) = (&pair.0[queue], memory[of]);
        let sent = pattern(queue, 1 << 20);
        copy(one, at, sent.as_ptr(), sent.len());
        assert!(pair.read(of, at, 1 << 20) == sent);
        assert!(pair.read(queue, at, 1 << 20) == sent);
        // One unit of the driver's, one that takes several, and one that no call of the driver's fills.
        for length in [1, 12, 300] {
            let unit = pattern(length, length);
            let (queue, from, bytes) = (one.queue, unit.as_ptr().cast(), 12_000);
            let none = null_mut();
            let to = at.wrapping_add(4).cast();
            let code = call!(enqueue.usm_fill(queue, to, length, from, bytes, 0, null(), none));
            assert_eq!((code, call!(queue.finish(queue))), (R::SUCCESS, R::SUCCESS), "{length}");
            let whole = [&sent[..4], &unit.repeat(bytes / length), &sent[4 + bytes..20_000]];
            assert!(pair.read(of, at, 20_000) == whole.concat(), "{length}");
            pair.write(of, at, &sent);
        }
        let unit = pattern(9, 4);
        let (queue, from, none) = (one.queue, unit.as_ptr().cast(), null_mut());
        let to = at.cast();
        let code = call!(enqueue.usm_fill_2d(queue, to, 100, 4, from, 40, 3, 0, null(), none));
        assert_eq!((code, call!(queue.finish(queue))), (R::SUCCESS, R::SUCCESS));
        let got = pair.read(of, at, 300);
        let is = |n: usize| if n % 100 < 40 { unit[n % 100 % 4] } else { sent[n] };
        assert!(got.iter().enumerate().all(|(n, byte)| *byte == is(n)));
    }
    pair.free(memory);
}
#[test]
fn rows_get_from_device_to_device_whichever_queue_copies_them() {
    let Some(pair) = Pair::new() else { return };
    let (to_pitch, from_pitch, width, height) = (700, 900, 613, 11);
    let (there, here) = (pair.memory(from_pitch * height), pair.memory(to_pitch * height));
    for (queue, to, from) in ways() {
        let sent = pattern(queue + 2 * to + 4 * from, from_pitch * height);
        pair.write(from, there[from], &sent);
        pair.write(to, here[to], &vec![0xEE; to_pitch * height]);
        let (queue, to_at, from_at) = (pair.0[queue].queue, here[to].cast(), there[from].cast());
        let none = null_mut();
        let code = call!(enqueue.usm_memcpy_2d(
            queue,
            true,
            to_at,
            to_pitch,
            from_at,
            from_pitch,
            width,
            height,
            0,
            null(),
            none
        ));
        assert_eq!(code, R::SUCCESS, "{to} from {from}");
        let got = pair.read(to, here[to], to_pitch * height);
        for (n, byte) in got.iter().enumerate() {
            let (row, x) = (n / to_pitch, n % to_pitch);
            let expected = if x < width { sent[row * from_pitch + x] } else { 0xEE };
            assert_eq!(*byte, expected, "{to} from {from}: row {row}, {x}");
        }
    }
    pair.free(there);
    pair.free(here);
}
#[test]
fn copies_between_devices_are_ordered_by_events_and_the_host_waits_at_the_end_alone() {
    let Some(pair) = Pair::new() else { return };
    let bytes = 5 << 20;
    let memory = pair.memory(bytes);
    let rounds = 16_u8;
    let mut last = Vec::new();
    // To and fro: what one queue fills the other fetches, which it overwrites next.
    for round in 0..rounds {
        let of = usize::from(round % 2);
        let (from, to) = (memory[of], memory[1 - of]);
        let enqueued = |queue: usize, fill: bool, after: &[ur_event_handle_t]| {
            let (queue, count) = (pair.0[queue].queue, after.len() as u32);
            let list = if after.is_empty() { null() } else { after.as_ptr() };
            let mut event = ur_event_handle_t::NULL;
            let (unit, half) = ((&raw const round).cast::<c_void>(), bytes / 2);
            let code = match fill {
                true => call!(enqueue.usm_fill(
                    queue,
                    from.cast(),
                    1,
                    unit,
                    half,
                    count,
                    list,
                    &mut event
                )),
                false => call!(enqueue.usm_memcpy(
                    queue,
                    false,
                    to.cast(),
                    from.cast(),
                    bytes,
                    count,
                    list,
                    &mut event
                )),
            };
            assert_eq!(code, R::SUCCESS);
            event
        };
        let filled = enqueued(of, true, &last);
        let fetched = enqueued(1 - of, false, &[filled]);
        for event in last.drain(..).chain([filled]) {
            assert_eq!(call!(event.release(event)), R::SUCCESS);
        }
        last.push(fetched);
    }
    assert_eq!(call!(event.wait(1, last.as_ptr())), R::SUCCESS);
    assert_eq!(call!(event.release(last[0])), R::SUCCESS);
    for device in [0, 1] {
        let got = pair.read(device, memory[device], bytes / 2);
        assert!(got.iter().all(|byte| *byte == rounds - 1), "{device}: {}", got[0]);
    }
    pair.free(memory);
}
#[test]
fn buffers_get_to_memory_on_another_device_and_back() {
    let Some(pair) = Pair::new() else { return };
    let (context, flags) = (pair.0[0].context, F::READ_WRITE);
    let mut buffer = ur_mem_handle_t::NULL;
    let code = call!(mem.buffer_create(context, flags, 4096, null(), &mut buffer));
    assert_eq!(code, R::SUCCESS);
    let memory = pair.memory(4096);
    for (queue, of) in [(0, 1), (1, 0)] {
        let sent = pattern(queue, 4096);
        pair.write(of, memory[of], &sent);
        let (queue, at, none) = (pair.0[queue].queue, memory[of].cast(), null_mut());
        let write =
            call!(enqueue.mem_buffer_write(queue, buffer, true, 0, 4096, at, 0, null(), none));
        pair.write(of, memory[of], &[0; 4096]);
        // Boxes: four rows of 100 bytes in two slices, out of rows of 128 into rows of 110.
        let corner = |x: u64| ur_rect_offset_t { x, y: 0, z: 0 };
        let region = ur_rect_region_t { width: 100, height: 4, depth: 2 };
        let read = call!(enqueue.mem_buffer_read_rect(
            queue,
            buffer,
            true,
            corner(8),
            corner(1),
            region,
            128,
            1024,
            110,
            550,
            at,
            0,
            null(),
            none
        ));
        assert_eq!((write, read), (R::SUCCESS, R::SUCCESS));
        let got = pair.read(of, memory[of], 1100);
        for (n, byte) in got.iter().enumerate() {
            let (z, y, x) = (n / 550, n % 550 / 110, n % 110);
            let is_in = y < 4 && (1..101).contains(&x);
            let expected = if is_in { sent[z * 1024 + y * 128 + x - 1 + 8] } else { 0 };
            assert_eq!(*byte, expected, "{z}, {y}, {x}");
        }
    }
    assert_eq!(call!(mem.release(buffer)), R::SUCCESS);
    pair.free(memory);
}
#[test]
fn a_context_copies_between_its_devices_before_the_call_returns() {
    let Some(pair) = Pair::new() else { return };
    let memory = pair.memory(5000);
    for (to, from) in [(0, 1), (1, 0), (1, 1)] {
        let sent = pattern(to + 2 * from, 2500);
        pair.write(from, memory[from], &sent);
        let (context, to_at) = (pair.0[0].context, memory[to].wrapping_add(2500));
        let code =
            call!(usm_exp.context_memcpy_exp(context, to_at.cast(), memory[from].cast(), 2500));
        assert_eq!(code, R::SUCCESS, "{to} from {from}");
        assert!(pair.read(to, to_at, 2500) == sent, "{to} from {from}");
    }
    pair.free(memory);
}
