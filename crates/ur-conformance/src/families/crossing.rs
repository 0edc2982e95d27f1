//! Copies between two devices of one context: USM and buffers, by the queue of either device, without peer
//! access.
use crate::{
    bench::Bench,
    case::{Case, Stop, Verdict},
    cases, ensure, must, same,
};
use std::{
    ffi::c_void,
    ptr::{null, null_mut},
};
use ur_sys::*;

pub fn cases() -> Vec<Case> {
    cases! { "crossing";
        "urEnqueueUSMMemcpy", "copies bytes between memory of any devices of the queue's context", "bytes get from one device to another of the context, whichever queue copies them", bytes;
        "urEnqueueUSMMemcpy2D", "copies rows between memory of any devices of the queue's context", "rows get from one device to another of the context, whichever queue copies them", rows;
        "urEnqueueUSMMemcpy", "a copy waits for its list", "a copy waits for what the other device's queue fills", order;
        "urEnqueueMemBufferWrite, urEnqueueMemBufferRead", "a memory object is its context's", "what one device writes into a buffer another reads", buffer;
    }
}

/// Two devices of one context, each with a queue and memory.
struct Pair {
    context: ur_context_handle_t,
    queues: [ur_queue_handle_t; 2],
    memory: [*mut c_void; 2],
}
const BYTES: usize = 70_000;

impl Pair {
    fn new(b: &Bench) -> Verdict<Self> {
        let (first, all) = (b.device()?, b.devices(b.platform()?)?);
        let second = all.into_iter().find(|device| *device != first);
        let second = second.ok_or_else(|| Stop::skipped("the platform has one device"))?;
        let (devices, mut context) = ([first, second], ur_context_handle_t::NULL);
        must!(b, context.create(2, devices.as_ptr(), null(), &mut context));
        let mut pair =
            Self { context, queues: [ur_queue_handle_t::NULL; 2], memory: [null_mut(); 2] };
        for (n, device) in devices.into_iter().enumerate() {
            let (none, to) = (ur_usm_pool_handle_t::NULL, &mut pair.memory[n]);
            must!(b, queue.create(context, device, null(), &mut pair.queues[n]));
            must!(b, usm.device_alloc(context, device, null(), none, BYTES, to));
        }
        Ok(pair)
    }
    fn copy(&self, b: &Bench, by: usize, to: *mut c_void, from: *const c_void) -> Verdict {
        let queue = self.queues[by];
        must!(b, enqueue.usm_memcpy(queue, true, to, from, BYTES, 0, null(), null_mut()));
        Ok(())
    }
    /// Writes bytes into a device's memory, through its own queue.
    fn write(&self, b: &Bench, device: usize, bytes: &[u8]) -> Verdict {
        self.copy(b, device, self.memory[device], bytes.as_ptr().cast())
    }
    fn read(&self, b: &Bench, device: usize) -> Verdict<Vec<u8>> {
        let mut bytes = vec![0; BYTES];
        self.copy(b, device, bytes.as_mut_ptr().cast(), self.memory[device])?;
        Ok(bytes)
    }
    fn end(self, b: &Bench) -> Verdict {
        for (queue, at) in self.queues.into_iter().zip(self.memory) {
            must!(b, usm.free(self.context, at));
            must!(b, queue.release(queue));
        }
        must!(b, context.release(self.context));
        Ok(())
    }
}
fn sent(seed: usize) -> Vec<u8> {
    (0..BYTES).map(|n| ((n * 3 + seed) % 241) as u8).collect()
}
/// Each queue with each direction.
const WAYS: [(usize, usize, usize); 4] = [(0, 0, 1), (0, 1, 0), (1, 0, 1), (1, 1, 0)];

fn bytes(b: &Bench) -> Verdict {
    let pair = Pair::new(b)?;
    for (by, to, from) in WAYS {
        let sent = sent(by + 2 * to);
        pair.write(b, from, &sent)?;
        pair.write(b, to, &[0; BYTES])?;
        pair.copy(b, by, pair.memory[to], pair.memory[from])?;
        ensure!(pair.read(b, to)? == sent, "changed: queue {by}, device {to} from {from}");
    }
    pair.end(b)
}
fn rows(b: &Bench) -> Verdict {
    let pair = Pair::new(b)?;
    let (to_pitch, from_pitch, width, height) = (500, 600, 401, 100);
    for (by, to, from) in WAYS {
        let (sent, queue) = (sent(by + 2 * to), pair.queues[by]);
        let (to_at, from_at) = (pair.memory[to], pair.memory[from].cast_const());
        pair.write(b, from, &sent)?;
        pair.write(b, to, &[250; BYTES])?;
        must!(
            b,
            enqueue.usm_memcpy_2d(
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
                null_mut()
            )
        );
        for (n, byte) in pair.read(b, to)?.into_iter().enumerate() {
            let (row, x) = (n / to_pitch, n % to_pitch);
            let inside = row < height && x < width;
            let expected = if inside { sent[row * from_pitch + x] } else { 250 };
            same!(byte, expected, "byte {n}: queue {by}, device {to} from {from}");
        }
    }
    pair.end(b)
}
fn order(b: &Bench) -> Verdict {
    let pair = Pair::new(b)?;
    for (to, from) in [(0, 1), (1, 0)] {
        pair.write(b, from, &[1; BYTES])?;
        let (byte, mut filled) = (7_u8, ur_event_handle_t::NULL);
        let (other, own) = (pair.queues[from], pair.queues[to]);
        let (at, there, pattern) = (pair.memory[to], pair.memory[from], (&raw const byte).cast());
        let gate = b.gate(other)?;
        must!(b, enqueue.usm_fill(other, there, 1, pattern, BYTES, 0, null(), &mut filled));
        must!(b, enqueue.usm_memcpy(own, false, at, there, BYTES, 1, &filled, null_mut()));
        gate.open();
        b.finish(own)?;
        ensure!(pair.read(b, to)? == [7; BYTES], "device {to} did not wait for {from}");
        must!(b, event.release(filled));
    }
    pair.end(b)
}
fn buffer(b: &Bench) -> Verdict {
    let pair = Pair::new(b)?;
    let mut buffer = ur_mem_handle_t::NULL;
    let flags = ur_mem_flags_t::READ_WRITE;
    must!(b, mem.buffer_create(pair.context, flags, BYTES, null(), &mut buffer));
    for (writer, reader) in [(0, 1), (1, 0), (0, 0)] {
        let (sent, mut got) = (sent(writer), vec![0_u8; BYTES]);
        let [write, read] = [writer, reader].map(|n| pair.queues[n]);
        let (from, to, none) = (sent.as_ptr().cast(), got.as_mut_ptr().cast(), null_mut());
        must!(b, enqueue.mem_buffer_write(write, buffer, true, 0, BYTES, from, 0, null(), none));
        must!(b, enqueue.mem_buffer_read(read, buffer, true, 0, BYTES, to, 0, null(), none));
        ensure!(got == sent, "device {reader} reads something else than {writer} wrote");
    }
    must!(b, mem.release(buffer));
    pair.end(b)
}
