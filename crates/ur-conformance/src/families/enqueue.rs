//! Commands: copies, fills, rectangles, maps, barriers and host tasks; their results and their dependencies.
use crate::{
    ask,
    bench::{Bench, USM, Usm},
    call::rect::{self, Side},
    case::{Case, Stop, Verdict},
    cases, ensure,
    families::memory::{read, write},
    must, refused, same,
};
use std::{
    ffi::c_void,
    ptr::{null, null_mut},
    sync::atomic::{AtomicUsize, Ordering::SeqCst},
};
use ur_sys::*;

pub fn cases() -> Vec<Case> {
    let mut all = cases! { "enqueue";
        "urEnqueueUSMMemcpy", "copies bytes between any kinds of memory", "every pair of kinds, and the host's own memory, is copied", copies;
        "urEnqueueUSMMemcpy", "ranges that run past their allocation", "a copy that runs past an allocation is refused, and nothing is copied", copy_past;
        "urEnqueueUSMMemcpy", "a copy waits for its list", "a copy of another queue waits for what fills its source", waits;
        "urEnqueueUSMFill", "fills with a pattern", "patterns of 1 to 128 bytes are repeated to the end", patterns;
        "urEnqueueUSMFill", "ranges that run past their allocation", "a fill that runs past an allocation is refused, and nothing is filled", fill_past;
        "urEnqueueUSMFill2D, urEnqueueUSMMemcpy2D", "rows at a pitch", "rows are filled and copied, and nothing between them", rows;
        "urEnqueueUSMPrefetch, urEnqueueUSMAdvise", "hints change nothing", "memory holds its bytes through prefetch and advice", hints;
        "urEnqueueMemBufferCopy", "copies between buffers", "a range goes from one buffer to another, and nothing beside it", buffer_copy;
        "urEnqueueMemBufferRead", "UR_RESULT_ERROR_INVALID_SIZE: the offset plus size runs past the buffer's end", "a read past the end is INVALID_SIZE, and nothing is read", read_past;
        "urEnqueueMemBufferWrite", "UR_RESULT_ERROR_INVALID_SIZE: the offset plus size runs past the buffer's end", "a write past the end is INVALID_SIZE, and nothing is written", write_past;
        "urEnqueueMemBufferFill", "fills with a pattern", "patterns fill the range and nothing beside it", buffer_fill;
        "urEnqueueMemBufferWriteRect, urEnqueueMemBufferReadRect, urEnqueueMemBufferCopyRect", "boxes at pitches", "a box is written, copied and read at pitches of its own", boxes;
        "urEnqueueMemBufferReadRect", "UR_RESULT_ERROR_INVALID_SIZE: origin, region and pitches together reach outside the buffer", "a box outside of its buffer is INVALID_SIZE", box_outside;
        "urEnqueueMemBufferMap, urEnqueueMemUnmap", "the host reaches a buffer", "what is written through a map is in the buffer after the unmap", map;
        "urEnqueueEventsWaitWithBarrier", "later commands wait", "a barrier of an out-of-order queue holds what comes after it", barrier;
        "urEnqueueEventsWait", "complete when its list is", "a wait for events of two queues is complete when both are", join;
        "urEnqueueEventsWait", "wait lists of any length", "a list of a thousand events is waited for", long_list;
        "urEnqueueEventsWait", "events of another context", "what waits for an event of another context waits for it or is refused", other_context;
        "urEnqueueUSMMemcpy", "commands of many threads", "eight threads with queues of their own copy at once", threads;
    };
    all.extend(cases! { "host_task";
        "urEnqueueHostTaskExp", "a function of the host's runs in the queue's order", "host tasks run once each and in order", tasks;
        "urEnqueueHostTaskExp", "the event is complete when the function has returned", "what waits for a host task waits for its end", task_event;
        "urEnqueueHostTaskExp", "the function may wait", "a host task does not hold other queues", task_holds;
        "urEnqueueNativeCommandExp", "a function of the host's enqueues natively", "the function is called once, with its queue and data, in queues of either order", native_command;
    });
    all
}

fn copies(b: &Bench) -> Verdict {
    let there: Vec<_> = (0..70_000_u32).map(|n| (n % 249) as u8).collect();
    for from in USM {
        for to in USM {
            let (from, to) = (b.alloc(from, 70_000)?, b.alloc(to, 70_000)?);
            b.write(from, &there)?;
            b.copy(to.wrapping_byte_add(17), from.wrapping_byte_add(5), 60_000)?;
            ensure!(b.read(to.wrapping_byte_add(17), 60_000)? == there[5..60_005], "changed");
            b.free(from)?;
            b.free(to)?;
        }
    }
    Ok(())
}
fn copy_past(b: &Bench) -> Verdict {
    let (queue, at) = (b.queue()?, b.alloc(Usm::Device, 1 << 20)?);
    b.write(at, &[1; 64])?;
    let mine = vec![2_u8; 1 << 21];
    let (from, none) = (mine.as_ptr().cast::<c_void>(), null_mut());
    let too_many = (1 << 20) + (1 << 19);
    let code = ask!(b, enqueue.usm_memcpy(queue, true, at, from, too_many, 0, null(), none));
    ensure!(code != ur_result_t::SUCCESS, "copied past the end");
    same!(b.read(at, 64)?, vec![1; 64], "what was there");
    b.free(at)
}
fn waits(b: &Bench) -> Verdict {
    let (one, two) = (b.queue()?, b.new_queue(ur_queue_flags_t::default())?);
    let (from, to) = (b.alloc(Usm::Device, 4096)?, b.alloc(Usm::Device, 4096)?);
    let (byte, mut filled) = (7_u8, ur_event_handle_t::NULL);
    let gate = b.gate(one)?;
    let pattern = (&raw const byte).cast();
    must!(b, enqueue.usm_fill(one, from, 1, pattern, 4096, 0, null(), &mut filled));
    must!(b, enqueue.usm_memcpy(two, false, to, from, 4096, 1, &filled, null_mut()));
    let event = b.follow(two, &[])?;
    ensure!(b.status(event)? != ur_event_status_t::COMPLETE, "complete before its source");
    gate.open();
    b.finish(two)?;
    same!(b.read(to, 4096)?, vec![7; 4096], "what was copied");
    must!(b, event.release(filled));
    must!(b, event.release(ur_event_handle_t(event)));
    must!(b, queue.release(two));
    b.free(from)?;
    b.free(to)
}
fn patterns(b: &Bench) -> Verdict {
    let (queue, pattern) = (b.queue()?, (1..=128_u8).collect::<Vec<_>>());
    for kind in USM {
        let at = b.alloc(kind, 4096)?;
        for length in [1, 2, 4, 8, 16, 32, 64, 128] {
            b.write(at, &[0; 4096])?;
            let (from, none) = (pattern.as_ptr().cast(), null_mut());
            must!(b, enqueue.usm_fill(queue, at, length, from, 2048, 0, null(), none));
            b.finish(queue)?;
            let read = b.read(at, 4096)?;
            let is_right = |(n, byte): (usize, &u8)| *byte == pattern[n % length];
            ensure!(read[..2048].iter().enumerate().all(is_right), "a pattern of {length} bytes");
            ensure!(read[2048..].iter().all(|byte| *byte == 0), "filled past the end");
        }
        b.free(at)?;
    }
    Ok(())
}
fn fill_past(b: &Bench) -> Verdict {
    let (queue, at) = (b.queue()?, b.alloc(Usm::Device, 1 << 20)?);
    b.write(at, &[1; 64])?;
    let (byte, none) = (2_u8, null_mut());
    let pattern = (&raw const byte).cast();
    let code = ask!(b, enqueue.usm_fill(queue, at, 1, pattern, 1 << 21, 0, null(), none));
    ensure!(code != ur_result_t::SUCCESS, "filled past the end");
    b.finish(queue)?;
    same!(b.read(at, 64)?, vec![1; 64], "what was there");
    b.free(at)
}
fn rows(b: &Bench) -> Verdict {
    let queue = b.queue()?;
    for kind in USM {
        let (from, to) = (b.alloc(kind, 4096)?, b.alloc(kind, 4096)?);
        let (byte, none) = (5_u8, null_mut());
        let pattern = (&raw const byte).cast();
        b.write(from, &[1; 4096])?;
        b.write(to, &[2; 4096])?;
        must!(b, enqueue.usm_fill_2d(queue, from, 64, 1, pattern, 20, 10, 0, null(), none));
        must!(b, enqueue.usm_memcpy_2d(queue, true, to, 100, from, 64, 30, 10, 0, null(), none));
        let read = b.read(to, 4096)?;
        for (n, byte) in read.iter().enumerate() {
            let expected = match (n / 100, n % 100) {
                (0..10, 0..20) => 5,
                (0..10, 20..30) => 1,
                _ => 2,
            };
            same!(*byte, expected, "byte {n}");
        }
        b.free(from)?;
        b.free(to)?;
    }
    Ok(())
}
fn hints(b: &Bench) -> Verdict {
    let queue = b.queue()?;
    for kind in USM {
        let (at, none) = (b.alloc(kind, 65_536)?, null_mut());
        b.write(at, &[3; 65_536])?;
        let flags = ur_usm_migration_flags_t::default();
        must!(b, enqueue.usm_prefetch(queue, at, 65_536, flags, 0, null(), none));
        let advice = ur_usm_advice_flags_t::DEFAULT;
        must!(b, enqueue.usm_advise(queue, at, 65_536, advice, none));
        b.finish(queue)?;
        ensure!(b.read(at, 65_536)?.iter().all(|byte| *byte == 3), "the bytes changed");
        b.free(at)?;
    }
    Ok(())
}
fn buffer(b: &Bench, bytes: usize, byte: u8) -> Verdict<ur_mem_handle_t> {
    let buffer = b.new_buffer(ur_mem_flags_t::READ_WRITE, bytes)?;
    write(b, buffer, 0, &vec![byte; bytes])?;
    Ok(buffer)
}
fn release(b: &Bench, buffer: ur_mem_handle_t) -> Verdict {
    must!(b, mem.release(buffer));
    Ok(())
}
fn buffer_copy(b: &Bench) -> Verdict {
    let (queue, from, to) = (b.queue()?, buffer(b, 4096, 1)?, buffer(b, 4096, 2)?);
    let none = null_mut();
    must!(b, enqueue.mem_buffer_copy(queue, from, to, 10, 1000, 500, 0, null(), none));
    b.finish(queue)?;
    same!(read(b, to, 1000, 500)?, vec![1; 500], "what was copied");
    same!(read(b, to, 0, 1000)?, vec![2; 1000], "what is before it");
    same!(read(b, to, 1500, 2596)?, vec![2; 2596], "what is behind it");
    let code = ask!(b, enqueue.mem_buffer_copy(queue, from, to, 4000, 0, 97, 0, null(), none));
    same!(code, ur_result_t::ERROR_INVALID_SIZE, "a copy past the end of its source");
    let code = ask!(b, enqueue.mem_buffer_copy(queue, from, to, 0, 4000, 97, 0, null(), none));
    same!(code, ur_result_t::ERROR_INVALID_SIZE, "a copy past the end of its target");
    release(b, from)?;
    release(b, to)
}
/// Ranges that exceed a buffer of 4,096 bytes.
const PAST: [(usize, usize); 4] = [(4000, 97), (4096, 1), (0, 4097), (usize::MAX - 10, 20)];

fn read_past(b: &Bench) -> Verdict {
    let (queue, buffer) = (b.queue()?, buffer(b, 4096, 1)?);
    let (mut mine, none) = (vec![0x5a_u8; 8192], null_mut());
    for (at, n) in PAST {
        let to = mine.as_mut_ptr().cast();
        refused!(
            b,
            ERROR_INVALID_SIZE,
            enqueue.mem_buffer_read(queue, buffer, true, at, n, to, 0, null(), none)
        );
        ensure!(mine.iter().all(|byte| *byte == 0x5a), "something was read");
    }
    release(b, buffer)
}
fn write_past(b: &Bench) -> Verdict {
    let (queue, buffer) = (b.queue()?, buffer(b, 4096, 1)?);
    let (mine, none) = (vec![2_u8; 8192], null_mut());
    for (at, n) in PAST {
        let from = mine.as_ptr().cast();
        refused!(
            b,
            ERROR_INVALID_SIZE,
            enqueue.mem_buffer_write(queue, buffer, true, at, n, from, 0, null(), none)
        );
    }
    same!(read(b, buffer, 0, 4096)?, vec![1; 4096], "what was there");
    release(b, buffer)
}
fn buffer_fill(b: &Bench) -> Verdict {
    let queue = b.queue()?;
    let pattern: Vec<_> = (1..=128_u8).collect();
    for length in [1, 2, 4, 8, 16, 32, 64, 128] {
        let (buffer, from, none) = (buffer(b, 4096, 0)?, pattern.as_ptr().cast(), null_mut());
        must!(b, enqueue.mem_buffer_fill(queue, buffer, from, length, 1024, 1024, 0, null(), none));
        b.finish(queue)?;
        let found = read(b, buffer, 0, 4096)?;
        for (n, byte) in found.iter().enumerate() {
            let is_in = (1024..2048).contains(&n);
            let expected = if is_in { pattern[n % length] } else { 0 };
            same!(*byte, expected, "byte {n} with a pattern of {length}");
        }
        release(b, buffer)?;
    }
    Ok(())
}
fn at(x: u64, y: u64, z: u64) -> ur_rect_offset_t {
    ur_rect_offset_t { x, y, z }
}
fn boxes(b: &Bench) -> Verdict {
    let (queue, one, two) = (b.queue()?, buffer(b, 8192, 1)?, buffer(b, 8192, 2)?);
    let entries = &b.adapter.tables.enqueue;
    let null = || Stop::skipped("a rectangle entry is null");
    let region = ur_rect_region_t { width: 7, height: 3, depth: 2 };
    let mut mine: Vec<_> = (0..4096).map(|n| (n % 241) as u8).collect();
    // The host's rectangle begins at (2, 1, 1), with rows of 20 bytes and slices of 100.
    let (host, first) = (Side(at(2, 1, 1), 20, 100), Side(at(3, 2, 0), 32, 256));
    let second = Side(at(0, 1, 1), 16, 128);
    let write = entries.mem_buffer_write_rect.ok_or_else(null)?;
    let code = rect::host(write, (queue, one), (first, host), region, mine.as_mut_ptr().cast());
    b.succeeded("urEnqueueMemBufferWriteRect", code)?;
    let copy = entries.mem_buffer_copy_rect.ok_or_else(null)?;
    let code = rect::copy(copy, (queue, one, two), (first, second), region);
    b.succeeded("urEnqueueMemBufferCopyRect", code)?;
    let mut back = vec![0_u8; 4096];
    let read_rect = entries.mem_buffer_read_rect.ok_or_else(null)?;
    let code =
        rect::host(read_rect, (queue, two), (second, host), region, back.as_mut_ptr().cast());
    b.succeeded("urEnqueueMemBufferReadRect", code)?;
    let (in_one, in_two) = (read(b, one, 0, 8192)?, read(b, two, 0, 8192)?);
    let mut inside = [vec![false; 8192], vec![false; 8192], vec![false; 4096]];
    for (z, y, x) in (0..2).flat_map(|z| (0..3).flat_map(move |y| (0..7).map(move |x| (z, y, x)))) {
        let of_host = (z + 1) * 100 + (y + 1) * 20 + x + 2;
        let places = [z * 256 + (y + 2) * 32 + x + 3, (z + 1) * 128 + (y + 1) * 16 + x, of_host];
        let found = [in_one[places[0]], in_two[places[1]], back[of_host]];
        same!(found, [mine[of_host]; 3], "the byte at {x}, {y}, {z}");
        inside.iter_mut().zip(places).for_each(|(inside, place)| inside[place] = true);
    }
    for ((found, inside), byte) in [&in_one, &in_two, &back].iter().zip(&inside).zip([1, 2, 0]) {
        let beside = found.iter().zip(inside).filter(|(_, is_in)| !**is_in);
        ensure!(beside.into_iter().all(|(n, _)| *n == byte), "something beside a box changed");
    }
    release(b, one)?;
    release(b, two)
}
fn box_outside(b: &Bench) -> Verdict {
    let (queue, buffer) = (b.queue()?, buffer(b, 1024, 1)?);
    let entry = b.adapter.tables.enqueue.mem_buffer_read_rect;
    let entry = entry.ok_or_else(|| Stop::skipped("urEnqueueMemBufferReadRect is null"))?;
    let mut mine = vec![0x5a_u8; 4096];
    let region = ur_rect_region_t { width: 32, height: 4, depth: 1 };
    for side in
        [Side(at(0, 29, 0), 32, 1024), Side(at(1, 28, 0), 32, 1024), Side(at(0, 0, 1), 32, 1024)]
    {
        let host = Side(at(0, 0, 0), 32, 128);
        let code =
            rect::host(entry, (queue, buffer), (side, host), region, mine.as_mut_ptr().cast());
        b.was_refused("urEnqueueMemBufferReadRect", code, ur_result_t::ERROR_INVALID_SIZE)?;
        ensure!(mine.iter().all(|byte| *byte == 0x5a), "something was read");
    }
    release(b, buffer)
}
#[expect(unsafe_code, reason = "writes through a map as a host program does")]
fn map(b: &Bench) -> Verdict {
    let (queue, buffer) = (b.queue()?, buffer(b, 4096, 1)?);
    let flags = ur_map_flags_t::READ | ur_map_flags_t::WRITE;
    let (mut mapped, none) = (null_mut(), null_mut());
    must!(
        b,
        enqueue.mem_buffer_map(queue, buffer, true, flags, 100, 200, 0, null(), none, &mut mapped)
    );
    ensure!(!mapped.is_null(), "no address");
    // SAFETY: 200 bytes are mapped there until they are unmapped, and no enqueued command touches them.
    let bytes = unsafe { std::slice::from_raw_parts_mut(mapped.cast::<u8>(), 200) };
    ensure!(bytes.iter().all(|byte| *byte == 1), "the map does not show the buffer");
    bytes.fill(9);
    must!(b, enqueue.mem_unmap(queue, buffer, mapped, 0, null(), none));
    b.finish(queue)?;
    same!(read(b, buffer, 100, 200)?, vec![9; 200], "what was mapped");
    same!(read(b, buffer, 0, 100)?, vec![1; 100], "what is before it");
    same!(read(b, buffer, 300, 100)?, vec![1; 100], "what is behind it");
    release(b, buffer)
}
fn barrier(b: &Bench) -> Verdict {
    let ooo = b.new_queue(ur_queue_flags_t::OUT_OF_ORDER_EXEC_MODE_ENABLE)?;
    let gate = b.gate(ooo)?;
    must!(b, enqueue.events_wait_with_barrier(ooo, 0, null(), null_mut()));
    let after = b.follow(ooo, &[])?;
    ensure!(b.status(after)? != ur_event_status_t::COMPLETE, "it went past the barrier");
    gate.open();
    b.wait(&[after])?;
    must!(b, event.release(ur_event_handle_t(after)));
    must!(b, queue.release(ooo));
    Ok(())
}
fn join(b: &Bench) -> Verdict {
    let queues = [0, 1, 2].map(|_| b.new_queue(ur_queue_flags_t::default()));
    let [one, two, three] = queues;
    let (one, two, three) = (one?, two?, three?);
    let gates = [b.gate(one)?, b.gate(two)?];
    let events = [b.follow(one, &[])?, b.follow(two, &[])?];
    let both = b.follow(three, &events)?;
    gates[0].open();
    b.wait(&events[..1])?;
    ensure!(b.status(both)? != ur_event_status_t::COMPLETE, "complete when one of two is");
    gates[1].open();
    b.wait(&[both])?;
    for event in [events[0], events[1], both] {
        must!(b, event.release(ur_event_handle_t(event)));
    }
    for queue in [one, two, three] {
        must!(b, queue.release(queue));
    }
    Ok(())
}
fn long_list(b: &Bench) -> Verdict {
    let ooo = b.new_queue(ur_queue_flags_t::OUT_OF_ORDER_EXEC_MODE_ENABLE)?;
    let events: Vec<_> = (0..1000).map(|_| b.follow(ooo, &[])).collect::<Verdict<_>>()?;
    let all = b.follow(b.queue()?, &events)?;
    b.wait(&[all])?;
    for event in events.into_iter().chain([all]) {
        must!(b, event.release(ur_event_handle_t(event)));
    }
    must!(b, queue.release(ooo));
    Ok(())
}
fn other_context(b: &Bench) -> Verdict {
    let other = Bench::new(b.adapter, b.subject.clone());
    let event = ur_event_handle_t(other.object("Event")?);
    let code = ask!(b, enqueue.events_wait(b.queue()?, 1, &event, null_mut()));
    let allowed = [
        ur_result_t::SUCCESS,
        ur_result_t::ERROR_INVALID_CONTEXT,
        ur_result_t::ERROR_INVALID_EVENT_WAIT_LIST,
    ];
    ensure!(allowed.contains(&code), "{code:?}");
    b.finish(b.queue()?)
}
fn threads(b: &Bench) -> Verdict {
    b.context()?;
    let (adapter, subject) = (b.adapter, b.subject.clone());
    let run = |byte: u8| {
        let subject = subject.clone();
        std::thread::spawn(move || -> Verdict {
            let b = Bench::new(adapter, subject);
            let (one, two) = (b.alloc(Usm::Device, 9000)?, b.alloc(Usm::Device, 9000)?);
            for _ in 0..50 {
                b.write(one, &[byte; 9000])?;
                b.copy(two, one, 9000)?;
                same!(b.read(two, 9000)?, vec![byte; 9000], "thread {byte}");
            }
            b.free(one)?;
            b.free(two)
        })
    };
    let spawned: Vec<_> = (0..8).map(run).collect();
    for thread in spawned {
        thread.join().map_err(|_| Stop::failed("a thread panicked"))??;
    }
    Ok(())
}

static ORDER: AtomicUsize = AtomicUsize::new(0);
static WRONG: AtomicUsize = AtomicUsize::new(0);
extern "C" fn in_turn(turn: *mut c_void) {
    if ORDER.fetch_add(1, SeqCst) != turn.addr() {
        WRONG.fetch_add(1, SeqCst);
    }
}
fn tasks(b: &Bench) -> Verdict {
    let queue = b.queue()?;
    ORDER.store(0, SeqCst);
    WRONG.store(0, SeqCst);
    for turn in 0..100 {
        let (turn, none) = (std::ptr::without_provenance_mut(turn), null_mut());
        must!(b, enqueue_exp.host_task_exp(queue, Some(in_turn), turn, null(), 0, null(), none));
    }
    b.finish(queue)?;
    same!(ORDER.load(SeqCst), 100, "tasks that ran");
    same!(WRONG.load(SeqCst), 0, "tasks that ran out of turn");
    Ok(())
}
static ENDED: AtomicUsize = AtomicUsize::new(0);
extern "C" fn slowly(_: *mut c_void) {
    (0..1_000_000).for_each(|n| {
        std::hint::black_box(n);
    });
    ENDED.store(1, SeqCst);
}
fn task_event(b: &Bench) -> Verdict {
    let (queue, mut event) = (b.queue()?, ur_event_handle_t::NULL);
    for _ in 0..20 {
        ENDED.store(0, SeqCst);
        let none = null_mut();
        must!(
            b,
            enqueue_exp.host_task_exp(queue, Some(slowly), none, null(), 0, null(), &mut event)
        );
        b.wait(&[event.0])?;
        same!(ENDED.load(SeqCst), 1, "whether the task ended before its event was complete");
        must!(b, event.release(event));
    }
    Ok(())
}
fn task_holds(b: &Bench) -> Verdict {
    let held = b.new_queue(ur_queue_flags_t::default())?;
    let gate = b.gate(held)?;
    let event = b.follow(b.queue()?, &[])?;
    b.wait(&[event])?;
    gate.open();
    b.finish(held)?;
    must!(b, event.release(ur_event_handle_t(event)));
    must!(b, queue.release(held));
    Ok(())
}
static NATIVE: AtomicUsize = AtomicUsize::new(0);
extern "C" fn natively(queue: ur_queue_handle_t, data: *mut c_void) {
    NATIVE.fetch_add(if queue.is_null() { 1000 } else { data.addr() }, SeqCst);
}
fn native_command(b: &Bench) -> Verdict {
    b.needs(ur_device_info_t::ENQUEUE_NATIVE_COMMAND_SUPPORT_EXP)?;
    let (data, none) = (std::ptr::without_provenance_mut(1), null_mut());
    for flags in [ur_queue_flags_t::default(), ur_queue_flags_t::OUT_OF_ORDER_EXEC_MODE_ENABLE] {
        let queue = b.new_queue(flags)?;
        NATIVE.store(0, SeqCst);
        must!(
            b,
            enqueue_exp.native_command_exp(
                queue,
                Some(natively),
                data,
                0,
                null(),
                null(),
                0,
                null(),
                none
            )
        );
        b.finish(queue)?;
        same!(NATIVE.load(SeqCst), 1, "calls with the queue and the data");
        must!(b, queue.release(queue));
    }
    Ok(())
}
