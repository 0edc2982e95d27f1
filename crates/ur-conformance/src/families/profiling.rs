//! Profiling in special situations: commands before their end, timestamp commands, signals, and commands
//! without times.
use crate::{
    ask,
    bench::Bench,
    case::{Case, Verdict},
    cases, ensure, must, same,
};
use std::{
    ffi::c_void,
    ptr::{null, null_mut},
};
use ur_sys::{ur_profiling_info_t as Info, *};

const MISSING: ur_result_t = ur_result_t::ERROR_PROFILING_INFO_NOT_AVAILABLE;
const EARLY: [Info; 2] = [Info::COMMAND_QUEUED, Info::COMMAND_SUBMIT];
const LATE: [Info; 3] = [Info::COMMAND_START, Info::COMMAND_END, Info::COMMAND_COMPLETE];

pub fn cases() -> Vec<Case> {
    let mut all = cases! { "event";
        "urEventGetProfilingInfo", "the time of submission is known from then on", "the times of submission are known before a command ends, and no others", early;
        "urEventGetProfilingInfo", "events outlive their queue", "the times of submission are known when the queue was released before the command ended", early_without_queue;
        "urEventGetProfilingInfo", "UR_RESULT_ERROR_PROFILING_INFO_NOT_AVAILABLE before anything else", "an event without times says so whatever the pointers and sizes are", first;
        "urEventGetProfilingInfo", "an event that is complete from the beginning has no times", "an event made of the native handle 0 has no times", native_zero;
    };
    all.extend(cases! { "reusable_events";
        "urEventGetProfilingInfo", "a queue with profiling times its signals", "an event made without profiling has one time after a signal of a queue with profiling, and none after another queue's", signalled;
        "urEventGetProfilingInfo", "a signal's times are known when it has come", "a timed signal has no time before it has come", signal_early;
    });
    all.extend(cases! { "command_buffer";
        "urEventGetProfilingInfo, urEnqueueCommandBufferExp", "a queue with profiling times its commands", "a command buffer's run in a queue with profiling has times", run;
    });
    all.extend(cases! { "host_task";
        "urEnqueueTimestampRecordingExp", "a timestamp in the queue's order", "a recorded timestamp is one moment, between two readings of the clock", timestamp;
        "urEnqueueTimestampRecordingExp", "a timestamp in the queue's order", "a recorded timestamp is taken when its turn comes, and the time of submission is known before", timestamp_early;
        "urEnqueueTimestampRecordingExp", "an out-of-order queue overtakes", "a timestamp of an out-of-order queue is taken while another one's turn has not come", timestamp_overtakes;
    });
    all
}

/// Returns the profiling value, or the code if there is none.
fn time(b: &Bench, event: *mut c_void, name: Info) -> Verdict<Result<u64, ur_result_t>> {
    let (mut value, mut size) = (0_u64, 0_usize);
    let (handle, to) = (ur_event_handle_t(event), (&raw mut value).cast());
    let code = ask!(b, event.get_profiling_info(handle, name, 8, to, &mut size));
    if code != ur_result_t::SUCCESS {
        return Ok(Err(code));
    }
    same!(size, 8, "the size of {name:?}");
    Ok(Ok(value))
}
fn known(b: &Bench, event: *mut c_void, name: Info) -> Verdict<u64> {
    let time = time(b, event, name)?;
    ensure!(time.is_ok_and(|time| time > 0), "{name:?} is {time:?}");
    Ok(time.unwrap_or_default())
}
fn release(b: &Bench, event: *mut c_void) -> Verdict {
    must!(b, event.release(ur_event_handle_t(event)));
    Ok(())
}
/// Checks a command that has not ended: only the times of its queueing and submission are known. Returns the
/// latter.
fn is_early(b: &Bench, event: *mut c_void) -> Verdict<u64> {
    let status = b.status(event)?;
    ensure!(status != ur_event_status_t::COMPLETE, "complete before its turn");
    for name in LATE {
        same!(time(b, event, name)?, Err(MISSING), "{name:?} before the end");
    }
    let [queued, submitted] = EARLY.map(|name| known(b, event, name));
    let (queued, submitted) = (queued?, submitted?);
    ensure!(queued <= submitted, "queued at {queued}, submitted at {submitted}");
    Ok(submitted)
}
/// Checks the times of a command that has ended, and was submitted at `submitted`.
fn is_late(b: &Bench, event: *mut c_void, submitted: u64) -> Verdict {
    let names = [Info::COMMAND_QUEUED, Info::COMMAND_SUBMIT, Info::COMMAND_START];
    let names = names.into_iter().chain([Info::COMMAND_END]);
    let times: Vec<_> = names.map(|name| known(b, event, name)).collect::<Verdict<_>>()?;
    ensure!(times.is_sorted(), "{times:?}");
    ensure!(submitted <= times[3], "submitted at {submitted}, which is not before {times:?}");
    Ok(())
}
fn early(b: &Bench) -> Verdict {
    for flags in [ur_queue_flags_t::default(), ur_queue_flags_t::OUT_OF_ORDER_EXEC_MODE_ENABLE] {
        let queue = b.new_queue(flags | ur_queue_flags_t::PROFILING_ENABLE)?;
        let gate = b.gate(b.queue()?)?;
        let held = b.follow(b.queue()?, &[])?;
        let event = b.follow(queue, &[held])?;
        let submitted = is_early(b, event)?;
        gate.open();
        b.wait(&[event])?;
        is_late(b, event, submitted)?;
        release(b, held)?;
        release(b, event)?;
        must!(b, queue.release(queue));
    }
    Ok(())
}
fn early_without_queue(b: &Bench) -> Verdict {
    let queue = b.new_queue(ur_queue_flags_t::PROFILING_ENABLE)?;
    let gate = b.gate(queue)?;
    let event = b.follow(queue, &[])?;
    must!(b, queue.release(queue));
    let submitted = is_early(b, event)?;
    gate.open();
    b.wait(&[event])?;
    is_late(b, event, submitted)?;
    release(b, event)
}
fn first(b: &Bench) -> Verdict {
    let (event, mut value) = (ur_event_handle_t(b.object("Event")?), 0x5a_u64);
    let (none, to) = (null_mut(), (&raw mut value).cast());
    for name in EARLY.into_iter().chain(LATE) {
        for (size, to) in [(0, none), (0, to), (8, none), (1, to)] {
            let code = ask!(b, event.get_profiling_info(event, name, size, to, null_mut()));
            same!(code, MISSING, "{name:?} into {size} bytes at {to:p}");
        }
    }
    same!(value, 0x5a, "the time that is not had");
    Ok(())
}
fn native_zero(b: &Bench) -> Verdict {
    let (context, mut event) = (b.context()?, ur_event_handle_t::NULL);
    must!(b, event.create_with_native_handle(0, context, null(), &mut event));
    for name in EARLY.into_iter().chain(LATE) {
        same!(time(b, event.0, name)?, Err(MISSING), "{name:?}");
    }
    release(b, event.0)
}
fn signalled(b: &Bench) -> Verdict {
    b.needs(ur_device_info_t::REUSABLE_EVENTS_SUPPORT_EXP)?;
    let (device, plain) = (b.device()?, b.queue()?);
    let timed = b.new_queue(ur_queue_flags_t::PROFILING_ENABLE)?;
    let event = b.new_event(ur_exp_event_flags_t::default())?;
    for _ in 0..3 {
        same!(time(b, event, Info::COMMAND_END)?, Err(MISSING), "END without a timed signal");
        let (mut before, mut after) = (0, 0);
        must!(b, device.get_global_timestamps(device, &mut before, null_mut()));
        b.signal(timed, event, &[])?;
        b.wait(&[event])?;
        must!(b, device.get_global_timestamps(device, &mut after, null_mut()));
        let end = known(b, event, Info::COMMAND_END)?;
        for name in [Info::COMMAND_SUBMIT, Info::COMMAND_START] {
            same!(known(b, event, name)?, end, "{name:?}");
        }
        ensure!((before..=after).contains(&end), "{end} is not between {before} and {after}");
        b.signal(plain, event, &[])?;
        b.wait(&[event])?;
    }
    same!(time(b, event, Info::COMMAND_END)?, Err(MISSING), "END after a signal without times");
    release(b, event)?;
    must!(b, queue.release(timed));
    Ok(())
}
fn signal_early(b: &Bench) -> Verdict {
    b.needs(ur_device_info_t::PER_EVENT_PROFILING_SUPPORT_EXP)?;
    let timed = b.new_queue(ur_queue_flags_t::PROFILING_ENABLE)?;
    for (queue, flags) in [
        (b.queue()?, ur_exp_event_flags_t::ENABLE_PROFILING),
        (timed, ur_exp_event_flags_t::default()),
    ] {
        let event = b.new_event(flags)?;
        let gate = b.gate(queue)?;
        b.signal(queue, event, &[])?;
        same!(time(b, event, Info::COMMAND_END)?, Err(MISSING), "END behind the gate, {flags:?}");
        gate.open();
        b.wait(&[event])?;
        known(b, event, Info::COMMAND_END)?;
        release(b, event)?;
    }
    must!(b, queue.release(timed));
    Ok(())
}
fn run(b: &Bench) -> Verdict {
    b.needs(ur_device_info_t::COMMAND_BUFFER_SUPPORT_EXP)?;
    let timed = b.new_queue(ur_queue_flags_t::PROFILING_ENABLE)?;
    let buffer = ur_exp_command_buffer_handle_t(b.object("FinalizedCommandBuffer")?);
    let mut event = ur_event_handle_t::NULL;
    must!(b, enqueue_exp.command_buffer_exp(timed, buffer, 0, null(), &mut event));
    b.wait(&[event.0])?;
    is_late(b, event.0, 0)?;
    release(b, event.0)?;
    must!(b, queue.release(timed));
    Ok(())
}
fn timestamp(b: &Bench) -> Verdict {
    b.needs(ur_device_info_t::TIMESTAMP_RECORDING_SUPPORT_EXP)?;
    let timed = b.new_queue(ur_queue_flags_t::PROFILING_ENABLE)?;
    for queue in [b.queue()?, timed] {
        let (device, mut event) = (b.device()?, ur_event_handle_t::NULL);
        let (mut before, mut after) = (0, 0);
        must!(b, device.get_global_timestamps(device, &mut before, null_mut()));
        must!(b, enqueue_exp.timestamp_recording_exp(queue, true, 0, null(), &mut event));
        must!(b, device.get_global_timestamps(device, &mut after, null_mut()));
        let [start, end] = [Info::COMMAND_START, Info::COMMAND_END].map(|n| known(b, event.0, n));
        let (start, end) = (start?, end?);
        same!(start, end, "the start, and the end");
        ensure!((before..=after).contains(&end), "{end} is not in {before}..={after}");
        is_late(b, event.0, 0)?;
        release(b, event.0)?;
    }
    must!(b, queue.release(timed));
    Ok(())
}
fn timestamp_overtakes(b: &Bench) -> Verdict {
    b.needs(ur_device_info_t::TIMESTAMP_RECORDING_SUPPORT_EXP)?;
    let queue = b.new_queue(ur_queue_flags_t::OUT_OF_ORDER_EXEC_MODE_ENABLE)?;
    let done = ur_event_handle_t(b.follow(b.queue()?, &[])?);
    b.wait(&[done.0])?;
    let (mut held, mut free) = (ur_event_handle_t::NULL, ur_event_handle_t::NULL);
    let gate = b.gate(queue)?;
    // Without a wait list it is behind the gate, with one behind what that names.
    must!(b, enqueue_exp.timestamp_recording_exp(queue, false, 0, null(), &mut held));
    must!(b, enqueue_exp.timestamp_recording_exp(queue, false, 1, &done, &mut free));
    b.wait(&[free.0])?;
    let taken = known(b, free.0, Info::COMMAND_END)?;
    is_early(b, held.0)?;
    gate.open();
    b.wait(&[held.0])?;
    ensure!(taken <= known(b, held.0, Info::COMMAND_END)?, "the one that overtook is later");
    for event in [done, held, free] {
        release(b, event.0)?;
    }
    must!(b, queue.release(queue));
    Ok(())
}
fn timestamp_early(b: &Bench) -> Verdict {
    b.needs(ur_device_info_t::TIMESTAMP_RECORDING_SUPPORT_EXP)?;
    let (device, queue) = (b.device()?, b.queue()?);
    let (mut opened, mut event) = (0, ur_event_handle_t::NULL);
    let gate = b.gate(queue)?;
    must!(b, enqueue_exp.timestamp_recording_exp(queue, false, 0, null(), &mut event));
    let submitted = is_early(b, event.0)?;
    must!(b, device.get_global_timestamps(device, &mut opened, null_mut()));
    gate.open();
    b.wait(&[event.0])?;
    is_late(b, event.0, submitted)?;
    let start = known(b, event.0, Info::COMMAND_START)?;
    ensure!(opened <= start, "taken at {start}, before {opened}, when its turn came");
    release(b, event.0)
}
