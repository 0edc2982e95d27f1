//! Events of commands: their properties, waits for them, and their lifetime.
use crate::{
    bench::{Bench, Usm},
    case::{Case, Stop, Verdict},
    cases, ensure, info, must, refused, same,
};
use std::{
    ffi::c_void,
    ptr::{null, null_mut},
    sync::atomic::{AtomicU32, Ordering::SeqCst},
    time::{Duration, Instant},
};
use ur_sys::*;

pub fn cases() -> Vec<Case> {
    cases! { "event";
        "urEventGetInfo", "UR_EVENT_INFO_COMMAND_TYPE", "an event says of which command it is", types;
        "urEventGetInfo", "UR_EVENT_INFO_COMMAND_QUEUE and _CONTEXT", "an event says of which queue and context it is", parents;
        "urEventGetInfo", "UR_EVENT_INFO_COMMAND_EXECUTION_STATUS", "an event is complete when its command is, and not before", status;
        "urEventWait", "blocks until every event is complete", "a wait for many events returns when the last is complete", many;
        "urEventWait", "an event may be waited for again", "a complete event is waited for at once, again and again", again;
        "urEventWait", "UR_RESULT_ERROR_INVALID_VALUE if num_events == 0", "a list of no events is INVALID_VALUE", none;
        "urEventWait", "UR_RESULT_ERROR_INVALID_NULL_POINTER without a list", "a count without a list is INVALID_NULL_POINTER, and not a fault of the list", no_list;
        "urEventWait", "UR_RESULT_ERROR_INVALID_EVENT, and no fault of the list", "a null event or a queue among the events is refused, and not as a fault of a wait list", strangers;
        "urEventWait", "several threads may wait", "eight threads wait for one event", threads;
        "urEventRelease", "commands hold their events", "an event may be released before its command is done", released_early;
        "urEventRelease", "events outlive their queue", "an event answers after its queue was released", outlives;
        "urEventGetProfilingInfo", "times are in order", "queued, submitted, started and ended come in that order", times;
        "urEventGetProfilingInfo", "UR_RESULT_ERROR_PROFILING_INFO_NOT_AVAILABLE: the event's queue was created without profiling turned on", "an event of a queue without profiling has no times", no_times;
        "urEventGetProfilingInfo", "times are of the device's clock", "times lie between two readings of the device's clock", clock;
        "urEventSetCallback", "called when the event is complete", "the callback is called once, with the event and its state", callback;
        "urEventSetCallback", "called when the event is complete", "a callback on a complete event is called too", late_callback;
        "urEventSetCallback", "a fresh event counts as complete", "a callback on a reusable event that was never signalled is called once", fresh_callback;
        "urEventGetNativeHandle, urEventCreateWithNativeHandle", "a native handle leads back", "an event made of a native handle is waited for", native;
        "urEventCreateWithNativeHandle", "0 stands for an event that is complete already", "the native handle 0 is an event that is complete, and nothing waits for it", native_zero;
    }
}

fn release(b: &Bench, event: *mut c_void) -> Verdict {
    must!(b, event.release(ur_event_handle_t(event)));
    Ok(())
}
fn types(b: &Bench) -> Verdict {
    let (queue, at) = (b.queue()?, b.alloc(Usm::Host, 256)?);
    let byte = [1_u8; 16];
    let pattern = byte.as_ptr().cast::<c_void>();
    let found = |event: ur_event_handle_t| -> Verdict<ur_command_t> {
        let kind = info!(b, event.get_info(event, ur_event_info_t::COMMAND_TYPE), u32);
        must!(b, event.wait(1, &event));
        must!(b, event.release(event));
        Ok(ur_command_t(kind))
    };
    let mut event = ur_event_handle_t::NULL;
    must!(b, enqueue.events_wait(queue, 0, null(), &mut event));
    same!(found(event)?, ur_command_t::EVENTS_WAIT, "the type of a wait");
    must!(b, enqueue.events_wait_with_barrier(queue, 0, null(), &mut event));
    same!(found(event)?, ur_command_t::EVENTS_WAIT_WITH_BARRIER, "the type of a barrier");
    must!(b, enqueue.usm_fill(queue, at, 1, pattern, 256, 0, null(), &mut event));
    same!(found(event)?, ur_command_t::USM_FILL, "the type of a fill");
    must!(b, enqueue.usm_memcpy(queue, false, at, pattern, 16, 0, null(), &mut event));
    same!(found(event)?, ur_command_t::USM_MEMCPY, "the type of a copy");
    must!(b, enqueue.usm_fill_2d(queue, at, 16, 1, pattern, 16, 2, 0, null(), &mut event));
    same!(found(event)?, ur_command_t::USM_FILL_2D, "the type of a 2D fill");
    must!(
        b,
        enqueue.usm_memcpy_2d(queue, false, at, 16, pattern, 16, 16, 1, 0, null(), &mut event)
    );
    same!(found(event)?, ur_command_t::USM_MEMCPY_2D, "the type of a 2D copy");
    let flags = ur_usm_migration_flags_t::default();
    must!(b, enqueue.usm_prefetch(queue, at, 256, flags, 0, null(), &mut event));
    same!(found(event)?, ur_command_t::USM_PREFETCH, "the type of a prefetch");
    must!(b, enqueue.usm_advise(queue, at, 256, ur_usm_advice_flags_t::DEFAULT, &mut event));
    same!(found(event)?, ur_command_t::USM_ADVISE, "the type of an advice");
    b.free(at)
}
fn parents(b: &Bench) -> Verdict {
    let (queue, context) = (b.queue()?, b.context()?);
    let event = ur_event_handle_t(b.follow(queue, &[])?);
    let found = info!(b, event.get_info(event, ur_event_info_t::COMMAND_QUEUE), usize);
    same!(found, queue.0.addr(), "the queue");
    let found = info!(b, event.get_info(event, ur_event_info_t::CONTEXT), usize);
    same!(found, context.0.addr(), "the context");
    release(b, event.0)
}
fn status(b: &Bench) -> Verdict {
    let queue = b.queue()?;
    let gate = b.gate(queue)?;
    let event = b.follow(queue, &[])?;
    b.meanwhile()?;
    let early = b.status(event)?;
    ensure!(early != ur_event_status_t::COMPLETE, "complete before its turn");
    gate.open();
    b.wait(&[event])?;
    same!(b.status(event)?, ur_event_status_t::COMPLETE, "the status after the wait");
    release(b, event)
}
fn many(b: &Bench) -> Verdict {
    let ooo = b.new_queue(ur_queue_flags_t::OUT_OF_ORDER_EXEC_MODE_ENABLE)?;
    let events: Vec<_> = (0..1000).map(|_| b.follow(ooo, &[])).collect::<Verdict<_>>()?;
    b.wait(&events)?;
    for event in events {
        same!(b.status(event)?, ur_event_status_t::COMPLETE, "a status after the wait");
        release(b, event)?;
    }
    must!(b, queue.release(ooo));
    Ok(())
}
fn again(b: &Bench) -> Verdict {
    let event = b.follow(b.queue()?, &[])?;
    for _ in 0..10 {
        b.wait(&[event, event])?;
    }
    release(b, event)
}
fn none(b: &Bench) -> Verdict {
    let event = ur_event_handle_t(b.object("Event")?);
    refused!(b, ERROR_INVALID_VALUE, event.wait(0, &event));
    Ok(())
}
fn no_list(b: &Bench) -> Verdict {
    b.device()?;
    refused!(b, ERROR_INVALID_NULL_POINTER, event.wait(1, null()));
    Ok(())
}
fn strangers(b: &Bench) -> Verdict {
    let (event, queue) = (b.object("Event")?, b.queue()?);
    for stranger in [null_mut(), queue.0] {
        for list in [[stranger, event], [event, stranger]] {
            let code = b.wait_code(&list)?;
            let allowed =
                [ur_result_t::ERROR_INVALID_EVENT, ur_result_t::ERROR_INVALID_NULL_HANDLE];
            ensure!(allowed.contains(&code), "{stranger:p} among the events: {code:?}");
        }
    }
    Ok(())
}
fn threads(b: &Bench) -> Verdict {
    let queue = b.queue()?;
    let gate = b.gate(queue)?;
    let event = b.follow(queue, &[])?;
    let handle = [ur_event_handle_t(event)];
    let list = handle.as_ptr().expose_provenance() as u64;
    let words = [crate::raw::Word::One(1), crate::raw::Word::One(list)];
    let adapter = b.adapter;
    let codes = std::thread::scope(|scope| {
        let waiting: Vec<_> =
            (0..8).map(|_| scope.spawn(|| adapter.call("urEventWait", &words))).collect();
        gate.open();
        waiting.into_iter().map(|thread| thread.join().ok().flatten()).collect::<Vec<_>>()
    });
    ensure!(codes.iter().all(|code| *code == Some(ur_result_t::SUCCESS)), "{codes:?}");
    release(b, event)
}
fn released_early(b: &Bench) -> Verdict {
    let queue = b.queue()?;
    let gate = b.gate(queue)?;
    let first = b.follow(queue, &[])?;
    let second = b.follow(queue, &[first])?;
    release(b, first)?;
    gate.open();
    b.wait(&[second])?;
    release(b, second)
}
fn outlives(b: &Bench) -> Verdict {
    let queue = b.new_queue(ur_queue_flags_t::default())?;
    let event = b.follow(queue, &[])?;
    b.wait(&[event])?;
    must!(b, queue.release(queue));
    same!(b.status(event)?, ur_event_status_t::COMPLETE, "the status");
    release(b, event)
}
fn time(b: &Bench, event: *mut c_void, name: ur_profiling_info_t) -> Verdict<u64> {
    let event = ur_event_handle_t(event);
    Ok(info!(b, event.get_profiling_info(event, name), u64))
}
fn times(b: &Bench) -> Verdict {
    use ur_profiling_info_t as Info;
    let queue = b.new_queue(ur_queue_flags_t::PROFILING_ENABLE)?;
    let at = b.alloc(Usm::Device, 1 << 20)?;
    let (byte, mut event) = (1_u8, ur_event_handle_t::NULL);
    let pattern = (&raw const byte).cast();
    must!(b, enqueue.usm_fill(queue, at, 1, pattern, 1 << 20, 0, null(), &mut event));
    b.wait(&[event.0])?;
    let names =
        [Info::COMMAND_QUEUED, Info::COMMAND_SUBMIT, Info::COMMAND_START, Info::COMMAND_END];
    let times: Vec<_> =
        names.map(|name| time(b, event.0, name)).into_iter().collect::<Verdict<_>>()?;
    ensure!(times.is_sorted(), "{times:?}");
    ensure!(times[0] > 0, "no time: {times:?}");
    release(b, event.0)?;
    must!(b, queue.release(queue));
    b.free(at)
}
fn no_times(b: &Bench) -> Verdict {
    let event = ur_event_handle_t(b.object("Event")?);
    let (mut value, name) = (0x5a_u64, ur_profiling_info_t::COMMAND_END);
    let to = (&raw mut value).cast();
    refused!(
        b,
        ERROR_PROFILING_INFO_NOT_AVAILABLE,
        event.get_profiling_info(event, name, 8, to, null_mut())
    );
    same!(value, 0x5a, "the time that is not had");
    Ok(())
}
fn clock(b: &Bench) -> Verdict {
    let (device, mut before, mut after) = (b.device()?, 0, 0);
    must!(b, device.get_global_timestamps(device, &mut before, null_mut()));
    let event = b.make("ProfiledEvent")?;
    must!(b, device.get_global_timestamps(device, &mut after, null_mut()));
    let end = time(b, event, ur_profiling_info_t::COMMAND_END)?;
    ensure!((before..=after).contains(&end), "{end} is not between {before} and {after}");
    release(b, event)
}
static CALLS: [AtomicU32; 4] = [const { AtomicU32::new(0) }; 4];
extern "C" fn called(event: ur_event_handle_t, how: ur_execution_info_t, n: *mut c_void) {
    let is_right = !event.is_null() && how == ur_execution_info_t::COMPLETE;
    CALLS[n.addr()].fetch_add(if is_right { 1 } else { 1000 }, SeqCst);
}
fn heard(n: usize) -> Verdict {
    let deadline = Instant::now() + Duration::from_secs(10);
    while CALLS[n].load(SeqCst) == 0 {
        if Instant::now() > deadline {
            return Err(Stop::failed("the callback is not called"));
        }
        std::thread::yield_now();
    }
    same!(CALLS[n].load(SeqCst), 1, "calls with the right arguments");
    Ok(())
}
fn callback(b: &Bench) -> Verdict {
    let (queue, complete) = (b.queue()?, ur_execution_info_t::COMPLETE);
    CALLS[0].store(0, SeqCst);
    let gate = b.gate(queue)?;
    let event = ur_event_handle_t(b.follow(queue, &[])?);
    must!(b, event.set_callback(event, complete, Some(called), null_mut()));
    same!(CALLS[0].load(SeqCst), 0, "calls before the event is complete");
    gate.open();
    b.wait(&[event.0])?;
    heard(0)?;
    release(b, event.0)
}
fn late_callback(b: &Bench) -> Verdict {
    let (event, complete) = (ur_event_handle_t(b.object("Event")?), ur_execution_info_t::COMPLETE);
    CALLS[1].store(0, SeqCst);
    let data = std::ptr::without_provenance_mut(1);
    must!(b, event.set_callback(event, complete, Some(called), data));
    heard(1)
}
fn fresh_callback(b: &Bench) -> Verdict {
    b.needs(ur_device_info_t::REUSABLE_EVENTS_SUPPORT_EXP)?;
    let event = ur_event_handle_t(b.new_event(ur_exp_event_flags_t::default())?);
    CALLS[2].store(0, SeqCst);
    let (complete, data) = (ur_execution_info_t::COMPLETE, std::ptr::without_provenance_mut(2));
    must!(b, event.set_callback(event, complete, Some(called), data));
    heard(2)?;
    // A second call would come during the following commands.
    b.wait(&[event.0])?;
    b.meanwhile()?;
    same!(CALLS[2].load(SeqCst), 1, "calls in the end");
    release(b, event.0)
}
fn native(b: &Bench) -> Verdict {
    let (context, event) = (b.context()?, ur_event_handle_t(b.object("Event")?));
    let (mut native, mut again) = (0, ur_event_handle_t::NULL);
    must!(b, event.get_native_handle(event, &mut native));
    must!(b, event.create_with_native_handle(native, context, null(), &mut again));
    crate::bench::exists(again.0)?;
    must!(b, event.wait(1, &again));
    release(b, again.0)
}
fn native_zero(b: &Bench) -> Verdict {
    let (context, queue, mut event) = (b.context()?, b.queue()?, ur_event_handle_t::NULL);
    must!(b, event.create_with_native_handle(0, context, null(), &mut event));
    crate::bench::exists(event.0)?;
    same!(b.status(event.0)?, ur_event_status_t::COMPLETE, "the status");
    let found = info!(b, event.get_info(event, ur_event_info_t::CONTEXT), usize);
    same!(found, context.0.addr(), "the context");
    let found = info!(b, event.get_info(event, ur_event_info_t::COMMAND_QUEUE), usize);
    same!(found, 0, "the queue");
    b.wait(&[event.0, event.0])?;
    let after = b.follow(queue, &[event.0])?;
    let gate = b.gate(queue)?;
    b.wait(&[event.0, after])?; // independent of the blocked queue
    gate.open();
    CALLS[3].store(0, SeqCst);
    let (complete, data) = (ur_execution_info_t::COMPLETE, std::ptr::without_provenance_mut(3));
    must!(b, event.set_callback(event, complete, Some(called), data));
    heard(3)?;
    release(b, after)?;
    must!(b, event.retain(event));
    release(b, event.0)?;
    same!(b.status(event.0)?, ur_event_status_t::COMPLETE, "the status at the end");
    release(b, event.0)
}
