//! Reusable events: complete when they are created, signalled repeatedly; waits refer to the latest signal
//! that was submitted.
use crate::{
    ask,
    bench::Bench,
    case::{Case, Verdict},
    cases, ensure, info, must, refused, same,
};
use std::{
    ffi::c_void,
    ptr::{null, null_mut},
};
use ur_sys::*;

pub fn cases() -> Vec<Case> {
    cases! { "reusable_events";
        "urEventCreateExp", "a fresh event counts as complete", "a fresh event is complete and waited for at once", fresh;
        "urEnqueueEventsWaitWithBarrierExt", "signals a caller's event, again and again", "an event is signalled a thousand times", again;
        "urEnqueueEventsWaitWithBarrierExt", "the status is submitted at once, then complete", "a signal behind a gate is submitted, and complete when the gate opens", submitted;
        "urEnqueueEventsWaitWithBarrierExt", "a dependency is captured when the waiting command is submitted", "a later signal neither releases nor delays who waits for an earlier one", captured;
        "urEnqueueEventsWaitWithBarrierExt", "null makes an event", "a null event in is an event of the barrier out", makes;
        "urEnqueueEventsWaitWithBarrierExt", "UR_RESULT_ERROR_INVALID_EVENT for what urEventCreateExp did not make", "an event of a command is INVALID_EVENT, and nothing is enqueued", ordinary;
        "urEnqueueEventsWaitWithBarrierExt", "UR_RESULT_ERROR_INVALID_EVENT_WAIT_LIST for an event in its own list", "an event in its own wait list is INVALID_EVENT_WAIT_LIST and stays as it was", own_list;
        "urEnqueueEventsWaitWithBarrierExt", "a barrier of an out-of-order queue", "a signal of an out-of-order queue waits for all that is before it", out_of_order;
        "urEventRelease", "nobody need wait before releasing", "an event is released while its signal is owed", released;
        "urEventCreateExp", "UR_EXP_EVENT_FLAG_IPC_EXP with ENABLE_PROFILING is INVALID_VALUE", "an event is shared or timed and not both", both;
        "urEventCreateExp", "the device must belong to the context", "an event answers its context, type and count", facts;
        "urEventCreateExp", "the device must belong to the context", "a device outside of the context is INVALID_DEVICE, and no event is made", foreign_device;
        "urEventCreateExp", "a signal's times are one timestamp in the queue's base", "submit, start and end of a timed signal are one moment, between two readings of the clock", timed;
    }
}
fn needs(b: &Bench) -> Verdict {
    b.needs(ur_device_info_t::REUSABLE_EVENTS_SUPPORT_EXP)
}
fn new(b: &Bench) -> Verdict<*mut c_void> {
    needs(b)?;
    b.new_event(ur_exp_event_flags_t::default())
}
fn release(b: &Bench, event: *mut c_void) -> Verdict {
    must!(b, event.release(ur_event_handle_t(event)));
    Ok(())
}
const COMPLETE: ur_event_status_t = ur_event_status_t::COMPLETE;
const SUBMITTED: ur_event_status_t = ur_event_status_t::SUBMITTED;

fn fresh(b: &Bench) -> Verdict {
    let event = new(b)?;
    same!(b.status(event)?, COMPLETE, "the status");
    b.wait(&[event])?;
    let after = b.follow(b.queue()?, &[event])?;
    b.wait(&[after])?;
    release(b, after)?;
    release(b, event)
}
fn again(b: &Bench) -> Verdict {
    let (event, queue) = (new(b)?, b.queue()?);
    for _ in 0..1000 {
        b.signal(queue, event, &[])?;
    }
    b.wait(&[event])?;
    same!(b.status(event)?, COMPLETE, "the status");
    release(b, event)
}
fn submitted(b: &Bench) -> Verdict {
    let (event, queue) = (new(b)?, b.queue()?);
    for _ in 0..3 {
        let gate = b.gate(queue)?;
        b.signal(queue, event, &[])?;
        same!(b.status(event)?, SUBMITTED, "the status behind the gate");
        gate.open();
        b.wait(&[event])?;
        same!(b.status(event)?, COMPLETE, "the status after the gate");
    }
    release(b, event)
}
fn captured(b: &Bench) -> Verdict {
    let (event, one) = (new(b)?, b.queue()?);
    let flags = ur_queue_flags_t::default();
    let (two, three) = (b.new_queue(flags)?, b.new_queue(flags)?);
    // The earlier signal completes while the later one is blocked, and the other way round.
    let early = b.follow(three, &[event])?;
    let gate = b.gate(one)?;
    b.signal(one, event, &[])?;
    b.wait(&[early])?;
    let waits = b.follow(three, &[event])?;
    b.signal(two, event, &[])?;
    b.wait(&[event])?;
    ensure!(b.status(waits)? != COMPLETE, "a later signal released who waits for an earlier one");
    gate.open();
    b.wait(&[waits])?;
    for event in [early, waits, event] {
        release(b, event)?;
    }
    must!(b, queue.release(two));
    must!(b, queue.release(three));
    Ok(())
}
fn makes(b: &Bench) -> Verdict {
    needs(b)?;
    let (queue, mut event) = (b.queue()?, ur_event_handle_t::NULL);
    must!(b, enqueue.events_wait_with_barrier_ext(queue, null(), 0, null(), &mut event));
    ensure!(!event.is_null(), "no event");
    b.wait(&[event.0])?;
    release(b, event.0)
}
fn ordinary(b: &Bench) -> Verdict {
    needs(b)?;
    let (queue, mut event) = (b.queue()?, ur_event_handle_t(b.make("Event")?));
    let before = event;
    refused!(
        b,
        ERROR_INVALID_EVENT,
        enqueue.events_wait_with_barrier_ext(queue, null(), 0, null(), &mut event)
    );
    same!(event, before, "the event that was passed");
    release(b, event.0)
}
fn own_list(b: &Bench) -> Verdict {
    let (queue, mut event) = (b.queue()?, ur_event_handle_t(new(b)?));
    let list = [event];
    refused!(
        b,
        ERROR_INVALID_EVENT_WAIT_LIST,
        enqueue.events_wait_with_barrier_ext(queue, null(), 1, list.as_ptr(), &mut event)
    );
    same!(b.status(event.0)?, COMPLETE, "the status");
    release(b, event.0)
}
fn out_of_order(b: &Bench) -> Verdict {
    let event = new(b)?;
    let ooo = b.new_queue(ur_queue_flags_t::OUT_OF_ORDER_EXEC_MODE_ENABLE)?;
    let gate = b.gate(ooo)?;
    b.signal(ooo, event, &[])?;
    same!(b.status(event)?, SUBMITTED, "the status behind the gate");
    gate.open();
    b.wait(&[event])?;
    must!(b, queue.release(ooo));
    release(b, event)
}
fn released(b: &Bench) -> Verdict {
    let (event, queue) = (new(b)?, b.queue()?);
    let gate = b.gate(queue)?;
    b.signal(queue, event, &[])?;
    let after = b.follow(b.new_queue(ur_queue_flags_t::default())?, &[event])?;
    release(b, event)?;
    gate.open();
    b.wait(&[after])?;
    b.finish(queue)?;
    release(b, after)
}
fn create(b: &Bench, flags: ur_exp_event_flags_t) -> Verdict<(ur_result_t, ur_event_handle_t)> {
    let stype = ur_structure_type_t::EXP_EVENT_DESC;
    let desc = ur_exp_event_desc_t { stype, pNext: null(), flags };
    let (context, device, mut event) = (b.context()?, b.device()?, ur_event_handle_t::NULL);
    Ok((ask!(b, event_exp.create_exp(context, device, &desc, &mut event)), event))
}
fn both(b: &Bench) -> Verdict {
    needs(b)?;
    b.needs(ur_device_info_t::IPC_EVENT_SUPPORT_EXP)?;
    let flags = ur_exp_event_flags_t::IPC_EXP | ur_exp_event_flags_t::ENABLE_PROFILING;
    let (code, event) = create(b, flags)?;
    b.was_refused("urEventCreateExp", code, ur_result_t::ERROR_INVALID_VALUE)?;
    ensure!(event.is_null(), "the result is written to");
    Ok(())
}
fn foreign_device(b: &Bench) -> Verdict {
    needs(b)?;
    let parts = super::device::parts(b)?;
    let mut context = ur_context_handle_t::NULL;
    must!(b, context.create(1, &parts[0], null(), &mut context));
    for flags in [ur_exp_event_flags_t::default(), ur_exp_event_flags_t::IPC_EXP] {
        let stype = ur_structure_type_t::EXP_EVENT_DESC;
        let desc = ur_exp_event_desc_t { stype, pNext: null(), flags };
        let mut event = ur_event_handle_t::NULL;
        let code = ask!(b, event_exp.create_exp(context, parts[1], &desc, &mut event));
        b.was_refused("urEventCreateExp", code, ur_result_t::ERROR_INVALID_DEVICE)?;
        ensure!(event.0.is_null(), "an event is written");
        must!(b, event_exp.create_exp(context, parts[0], &desc, &mut event));
        release(b, event.0)?;
    }
    must!(b, context.release(context));
    parts.iter().try_for_each(|part| {
        must!(b, device.release(*part));
        Ok(())
    })
}
fn facts(b: &Bench) -> Verdict {
    let event = ur_event_handle_t(new(b)?);
    let found = info!(b, event.get_info(event, ur_event_info_t::CONTEXT), usize);
    same!(found, b.context()?.0.addr(), "the context");
    let found = info!(b, event.get_info(event, ur_event_info_t::REFERENCE_COUNT), u32);
    same!(found, 1, "the count");
    release(b, event.0)
}
fn timed(b: &Bench) -> Verdict {
    needs(b)?;
    b.needs(ur_device_info_t::PER_EVENT_PROFILING_SUPPORT_EXP)?;
    let event = b.new_event(ur_exp_event_flags_t::ENABLE_PROFILING)?;
    let (device, mut before, mut after) = (b.device()?, 0, 0);
    must!(b, device.get_global_timestamps(device, &mut before, null_mut()));
    b.signal(b.queue()?, event, &[])?;
    b.wait(&[event])?;
    must!(b, device.get_global_timestamps(device, &mut after, null_mut()));
    let handle = ur_event_handle_t(event);
    let time = |name| -> Verdict<u64> { Ok(info!(b, event.get_profiling_info(handle, name), u64)) };
    use ur_profiling_info_t as Info;
    let [submit, start, end] =
        [time(Info::COMMAND_SUBMIT)?, time(Info::COMMAND_START)?, time(Info::COMMAND_END)?];
    ensure!(submit == start && start == end, "{submit}, {start}, {end}");
    ensure!((before..=after).contains(&end), "{end} is not between {before} and {after}");
    release(b, event)
}
