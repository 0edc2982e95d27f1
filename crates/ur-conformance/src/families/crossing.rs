//! Copies between two devices of one context: USM and buffers, by the queue of either device, without peer
//! access. And long chains of copies over two queues, of one device or of two, each of which waits for the last copies of both: the
//! number of paths through such a chain doubles with each pair, so that an adapter which follows all of them does not come to an end.
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
    let mut all = cases! { "crossing";
        "urEnqueueUSMMemcpy", "copies bytes between memory of any devices of the queue's context", "bytes get from one device to another of the context, whichever queue copies them", bytes;
        "urEnqueueUSMMemcpy2D", "copies rows between memory of any devices of the queue's context", "rows get from one device to another of the context, whichever queue copies them", rows;
        "urEnqueueUSMMemcpy", "a copy waits for its list", "a copy waits for what the other device's queue fills", order;
        "urEnqueueMemBufferWrite, urEnqueueMemBufferRead", "a memory object is its context's", "what one device writes into a buffer another reads", buffer;
    };
    all.extend(cases! { "chains";
        "urEnqueueUSMMemcpy", "a command waits for its list", "sixty-four pairs of copies on two queues, each behind both copies before, run in order behind a host task", in_order_chain;
        "urEnqueueUSMMemcpy", "a command waits for its list", "sixty-four pairs of copies on two out-of-order queues, each behind both copies before, run in order behind a host task", out_of_order_chain;
        "urEnqueueUSMMemcpy", "a command waits for its list", "sixty-four pairs of copies on two devices, each behind both copies before, run in order behind a host task", crossing_chain;
    });
    all
}

/// Two devices of one context, or one twice, each with a queue and memory.
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
        Self::of(b, &[first, second], ur_queue_flags_t::default())
    }
    /// Two queues of one device.
    fn of_one(b: &Bench, flags: ur_queue_flags_t) -> Verdict<Self> {
        Self::of(b, &[b.device()?], flags)
    }
    fn of(b: &Bench, devices: &[ur_device_handle_t], flags: ur_queue_flags_t) -> Verdict<Self> {
        let (count, mut context) = (devices.len() as u32, ur_context_handle_t::NULL);
        must!(b, context.create(count, devices.as_ptr(), null(), &mut context));
        let mut pair =
            Self { context, queues: [ur_queue_handle_t::NULL; 2], memory: [null_mut(); 2] };
        let stype = ur_structure_type_t::QUEUE_PROPERTIES;
        let properties = ur_queue_properties_t { stype, pNext: null_mut(), flags };
        for n in 0..2 {
            let device = devices[n % devices.len()];
            let (none, to) = (ur_usm_pool_handle_t::NULL, &mut pair.memory[n]);
            must!(b, queue.create(context, device, &properties, &mut pair.queues[n]));
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

/// Pairs of copies of a chain.
const PAIRS: usize = 64;
/// What one of them copies.
const HALF: usize = BYTES / 2;

fn in_order_chain(b: &Bench) -> Verdict {
    chain(b, Pair::of_one(b, ur_queue_flags_t::default())?)
}
fn out_of_order_chain(b: &Bench) -> Verdict {
    chain(b, Pair::of_one(b, ur_queue_flags_t::OUT_OF_ORDER_EXEC_MODE_ENABLE)?)
}
fn crossing_chain(b: &Bench) -> Verdict {
    chain(b, Pair::new(b)?)
}
/// Each queue copies, again and again, a half of the other one's memory into the other half of its own: while a pair runs, nobody
/// writes what is read. Nothing holds the first chain up, since queues may create streams for their first commands: NVIDIA's driver
/// was seen to wait for a running host function then, if other processes used the device.
fn chain(b: &Bench, pair: Pair) -> Verdict {
    let free = copies(b, &pair)?;
    b.wait(&free)?;
    for (n, byte) in [(0, 1), (1, 2)] {
        pair.write(b, n, &[byte; BYTES])?;
    }
    let gate = b.gate(pair.queues[0])?;
    let last = copies(b, &pair)?;
    for event in last {
        let is_over = b.status(event)? == ur_event_status_t::COMPLETE;
        ensure!(!is_over, "the last copies did not wait for the host task");
    }
    gate.open();
    b.wait(&last)?;
    for event in last {
        must!(b, event.release(ur_event_handle_t(event)));
    }
    for (n, byte) in [(0, 1), (1, 2)] {
        b.finish(pair.queues[n])?;
        let is_right = pair.read(b, n)?[..HALF] == [byte; HALF];
        ensure!(is_right, "the copies of queue {n} did not run in order");
    }
    pair.end(b)
}
/// Submits the copies, and returns the events of the last pair.
fn copies(b: &Bench, pair: &Pair) -> Verdict<[*mut c_void; 2]> {
    let half = |n: usize, step: usize| pair.memory[n].wrapping_byte_add(step % 2 * HALF);
    let mut last = [b.follow(pair.queues[0], &[])?, b.follow(pair.queues[1], &[])?];
    for step in 0..PAIRS {
        let mut next = [ur_event_handle_t::NULL; 2];
        for (n, event) in next.iter_mut().enumerate() {
            let (to, from) = (half(n, step + 1), half(1 - n, step));
            let (queue, waits) = (pair.queues[n], last.as_ptr().cast());
            must!(b, enqueue.usm_memcpy(queue, false, to, from, HALF, 2, waits, event));
        }
        for event in std::mem::replace(&mut last, next.map(|event| event.0)) {
            must!(b, event.release(ur_event_handle_t(event)));
        }
    }
    Ok(last)
}
