//! Queues: their flags, their waits, and what outlives them.
use crate::{
    bench::{Bench, Usm, share::Gate},
    case::{Case, Verdict},
    cases, ensure, info, must, same,
};
use std::{
    ffi::c_void,
    ptr::{null, null_mut},
};
use ur_sys::*;

pub fn cases() -> Vec<Case> {
    cases! { "queue";
        "urQueueCreate", "UR_QUEUE_INFO_FLAGS says the flags", "a queue has the flags that it was made with", flags;
        "urQueueGetInfo", "UR_QUEUE_INFO_CONTEXT and _DEVICE", "a queue says of which context and device it is", parents;
        "urQueueGetInfo", "UR_QUEUE_INFO_EMPTY", "a queue is empty when all is done, and not while something waits", empty;
        "urQueueFinish", "blocks until all commands are done", "what was enqueued is done after finish", finish;
        "urQueueFinish", "an empty queue has nothing to wait for", "finish of an empty queue returns, again and again", finish_empty;
        "urQueueFlush", "submits what is queued", "flush does not wait, and what was enqueued gets done", flush;
        "urQueueRelease", "commands hold what they need", "commands of a released queue are done all the same", released_at_work;
        "urQueueCreate", "in-order queues keep the order", "an in-order queue runs commands one after the other", in_order;
        "urQueueCreate", "queues are independent", "a queue does not wait for another", independent;
        "urQueueCreate", "an out-of-order queue does not order commands", "a command of an out-of-order queue overtakes one that waits", overtakes;
        "urEnqueueEventsWait, urEnqueueHostTaskExp", "an out-of-order queue does not order commands", "a wait and a function of an out-of-order queue that name what they wait for overtake one that waits for something else", waits_overtake;
        "urQueueCreate", "counts are exact under concurrency", "eight threads enqueue into one queue, and all gets done", threads;
        "urQueueGetNativeHandle, urQueueCreateWithNativeHandle", "a native handle leads back", "a queue made of a native handle works", native;
    }
}
const OOO: ur_queue_flags_t = ur_queue_flags_t::OUT_OF_ORDER_EXEC_MODE_ENABLE;

fn flags(b: &Bench) -> Verdict {
    for flags in [ur_queue_flags_t::default(), ur_queue_flags_t::PROFILING_ENABLE, OOO] {
        let queue = b.new_queue(flags)?;
        let found = info!(b, queue.get_info(queue, ur_queue_info_t::FLAGS), u32);
        same!(ur_queue_flags_t(found) & flags, flags, "the flags");
        must!(b, queue.release(queue));
    }
    Ok(())
}
fn parents(b: &Bench) -> Verdict {
    let queue = b.queue()?;
    let context = info!(b, queue.get_info(queue, ur_queue_info_t::CONTEXT), usize);
    same!(context, b.context()?.0.addr(), "the context");
    let device = info!(b, queue.get_info(queue, ur_queue_info_t::DEVICE), usize);
    same!(device, b.device()?.0.addr(), "the device");
    Ok(())
}
fn empty(b: &Bench) -> Verdict {
    let queue = b.queue()?;
    let is_empty = || -> Verdict<bool> {
        Ok(info!(b, queue.get_info(queue, ur_queue_info_t::EMPTY), u8) != 0)
    };
    b.finish(queue)?;
    ensure!(is_empty()?, "not empty after finish");
    let gate = b.gate(queue)?;
    let event = b.follow(queue, &[])?;
    ensure!(!is_empty()?, "empty while a command waits");
    gate.open();
    b.wait(&[event])?;
    b.finish(queue)?;
    ensure!(is_empty()?, "not empty at the end");
    must!(b, event.release(ur_event_handle_t(event)));
    Ok(())
}
const BYTES: usize = 1 << 20;
fn fill(b: &Bench, queue: ur_queue_handle_t, at: *mut std::ffi::c_void, byte: u8) -> Verdict {
    let (pattern, none) = ((&raw const byte).cast(), null_mut());
    must!(b, enqueue.usm_fill(queue, at, 1, pattern, BYTES, 0, null(), none));
    Ok(())
}
fn finish(b: &Bench) -> Verdict {
    let queue = b.new_queue(OOO)?;
    let at = b.alloc(Usm::Device, BYTES)?;
    fill(b, queue, at, 9)?;
    must!(b, queue.finish(queue));
    let read = b.read(at, BYTES)?;
    ensure!(read.iter().all(|byte| *byte == 9), "what was filled is not there");
    must!(b, queue.release(queue));
    b.free(at)
}
fn finish_empty(b: &Bench) -> Verdict {
    let queue = b.queue()?;
    for _ in 0..10 {
        must!(b, queue.finish(queue));
    }
    Ok(())
}
fn flush(b: &Bench) -> Verdict {
    let queue = b.queue()?;
    let gate = b.gate(queue)?;
    let event = b.follow(queue, &[])?;
    must!(b, queue.flush(queue)); // would hang if it waited, because the gate is closed
    gate.open();
    b.wait(&[event])?;
    must!(b, event.release(ur_event_handle_t(event)));
    Ok(())
}
fn released_at_work(b: &Bench) -> Verdict {
    let queue = b.new_queue(ur_queue_flags_t::default())?;
    let at = b.alloc(Usm::Device, BYTES)?;
    let gate = b.gate(queue)?;
    fill(b, queue, at, 5)?;
    let event = b.follow(queue, &[])?;
    // Released from another thread, because an adapter may let a release wait for the queue's commands.
    let (adapter, words) = (b.adapter, [crate::bench::word(queue.0)]);
    let code = std::thread::scope(|scope| {
        let released = scope.spawn(|| adapter.call("urQueueRelease", &words));
        gate.open();
        released.join()
    });
    same!(code.ok().flatten(), Some(ur_result_t::SUCCESS), "the release");
    b.wait(&[event])?;
    let read = b.read(at, BYTES)?;
    ensure!(read.iter().all(|byte| *byte == 5), "the command was not done");
    must!(b, event.release(ur_event_handle_t(event)));
    b.free(at)
}
fn in_order(b: &Bench) -> Verdict {
    let (queue, at) = (b.queue()?, b.alloc(Usm::Device, BYTES)?);
    for byte in 0..50 {
        fill(b, queue, at, byte)?;
    }
    b.finish(queue)?;
    let read = b.read(at, BYTES)?;
    ensure!(read.iter().all(|byte| *byte == 49), "the last command did not come last");
    b.free(at)
}
/// A queue with a command that does not end until the gate is opened.
fn held(b: &Bench, flags: ur_queue_flags_t) -> Verdict<(ur_queue_handle_t, Gate)> {
    let queue = b.new_queue(flags)?;
    let gate = b.gate(queue)?;
    Ok((queue, gate))
}
fn independent(b: &Bench) -> Verdict {
    let (queue, gate) = held(b, ur_queue_flags_t::default())?;
    b.finish(b.queue()?)?;
    gate.open();
    b.finish(queue)?;
    must!(b, queue.release(queue));
    Ok(())
}
fn overtakes(b: &Bench) -> Verdict {
    let (queue, gate) = held(b, OOO)?;
    let at = b.alloc(Usm::Device, 64)?;
    let (byte, mut event) = (1_u8, ur_event_handle_t::NULL);
    let pattern = (&raw const byte).cast();
    must!(b, enqueue.usm_fill(queue, at, 1, pattern, 64, 0, null(), &mut event));
    b.wait(&[event.0])?; // a device may have only one engine: then this hangs, and the case fails at its deadline
    gate.open();
    b.finish(queue)?;
    must!(b, event.release(event));
    must!(b, queue.release(queue));
    b.free(at)
}
extern "C" fn nothing(_: *mut c_void) {}
fn waits_overtake(b: &Bench) -> Verdict {
    let ((queue, gate), (other, first)) = (held(b, OOO)?, held(b, ur_queue_flags_t::default())?);
    let named = ur_event_handle_t(b.follow(other, &[])?); // pending, or nothing would be waited for
    let (waited, mut called) = (b.follow(queue, &[named.0])?, ur_event_handle_t::NULL);
    let none = null_mut();
    must!(b, enqueue_exp.host_task_exp(queue, Some(nothing), none, null(), 1, &named, &mut called));
    first.open();
    b.wait(&[waited, called.0])?;
    gate.open();
    for queue in [queue, other] {
        b.finish(queue)?;
        must!(b, queue.release(queue));
    }
    for event in [named, called, ur_event_handle_t(waited)] {
        must!(b, event.release(event));
    }
    Ok(())
}
fn threads(b: &Bench) -> Verdict {
    for flags in [ur_queue_flags_t::default(), OOO] {
        let queue = b.new_queue(flags)?;
        let all: Vec<_> = (0..8).map(|_| b.alloc(Usm::Host, 4096)).collect::<Verdict<_>>()?;
        let addresses: Vec<_> = all.iter().map(|at| at.expose_provenance()).collect();
        let (adapter, subject) = (b.adapter, b.subject.clone());
        let queue_word = queue.0.expose_provenance();
        let results = std::thread::scope(|scope| {
            let spawned = addresses.iter().map(|at| {
                let subject = subject.clone();
                scope.spawn(move || -> Verdict {
                    let b = Bench::new(adapter, subject);
                    let queue =
                        ur_queue_handle_t(std::ptr::with_exposed_provenance_mut(queue_word));
                    let at = std::ptr::with_exposed_provenance_mut(*at);
                    for byte in 0..100_u8 {
                        let (pattern, none) = ((&raw const byte).cast(), null_mut());
                        must!(b, enqueue.usm_fill(queue, at, 1, pattern, 4096, 0, null(), none));
                    }
                    Ok(())
                })
            });
            let spawned: Vec<_> = spawned.collect();
            spawned.into_iter().map(|thread| thread.join()).collect::<Vec<_>>()
        });
        for result in results {
            result.map_err(|_| crate::case::Stop::failed("a thread panicked"))??;
        }
        b.finish(queue)?;
        for at in all {
            let read = b.read(at, 4096)?;
            let last = flags != ur_queue_flags_t::default() || read.iter().all(|n| *n == 99);
            ensure!(last, "an in-order queue did not end with the last command");
            b.free(at)?;
        }
        must!(b, queue.release(queue));
    }
    Ok(())
}
fn native(b: &Bench) -> Verdict {
    let (context, device, queue) = (b.context()?, b.device()?, b.queue()?);
    let (mut native, mut again) = (0, ur_queue_handle_t::NULL);
    must!(b, queue.get_native_handle(queue, null_mut(), &mut native));
    must!(b, queue.create_with_native_handle(native, context, device, null(), &mut again));
    crate::bench::exists(again.0)?;
    b.finish(again)?;
    must!(b, queue.release(again));
    Ok(())
}
