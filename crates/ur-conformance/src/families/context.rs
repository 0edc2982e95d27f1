//! Contexts: their contents, and what outlives them.
use crate::{
    bench::{Bench, USM, Usm},
    case::{Case, Verdict},
    cases, ensure, info, must, refused, same,
};
use std::{
    ffi::c_void,
    ptr::null,
    sync::atomic::{AtomicUsize, Ordering::SeqCst},
};
use ur_sys::*;

pub fn cases() -> Vec<Case> {
    cases! { "context";
        "urContextGetInfo", "UR_CONTEXT_INFO_DEVICES", "a context says which devices it was made of", devices;
        "urContextCreate", "contexts are objects of their own", "two contexts of one device are two", two;
        "urContextCreate", "UR_RESULT_ERROR_INVALID_NULL_HANDLE or INVALID_DEVICE", "a null device in the list is refused", null_device;
        "urContextRelease", "queues keep their context alive", "a queue works on after its context was released", outlived_by_queue;
        "urContextRelease", "events keep their context alive", "an event is waited for after context and queue were released", outlived_by_event;
        "urContextSetExtendedDeleter", "called when the context is destroyed", "the deleter is called once, at the last release", deleter;
        "urContextSetExtendedDeleter", "called when the context is destroyed", "several deleters are all called", deleters;
        "urContextGetNativeHandle, urContextCreateWithNativeHandle", "a native handle leads back", "a context made of a native handle works", native;
        "urContextRetain", "counts are exact under concurrency", "eight threads retain and release, and the count is as before", threads;
    }
}

fn devices(b: &Bench) -> Verdict {
    use ur_context_info_t as Info;
    let (context, device) = (b.context()?, b.device()?);
    same!(info!(b, context.get_info(context, Info::NUM_DEVICES), u32), 1, "devices");
    let found = info!(b, context.get_info(context, Info::DEVICES), usize);
    same!(found, device.0.addr(), "the device");
    Ok(())
}
fn two(b: &Bench) -> Verdict {
    let (one, two) = (b.new_context()?, b.new_context()?);
    ensure!(one != two, "both have one handle");
    must!(b, context.release(one));
    let refs = info!(b, context.get_info(two, ur_context_info_t::REFERENCE_COUNT), u32);
    same!(refs, 1, "the count of the other");
    must!(b, context.release(two));
    Ok(())
}
fn null_device(b: &Bench) -> Verdict {
    let (devices, mut context) =
        ([b.device()?, ur_device_handle_t::NULL], ur_context_handle_t::NULL);
    let code = crate::ask!(b, context.create(2, devices.as_ptr(), null(), &mut context));
    let refusals = [
        ur_result_t::ERROR_INVALID_NULL_HANDLE,
        ur_result_t::ERROR_INVALID_DEVICE,
        ur_result_t::ERROR_INVALID_VALUE,
    ];
    ensure!(refusals.contains(&code), "{code:?}");
    ensure!(context.is_null(), "the result is written to");
    Ok(())
}
fn queue_of(b: &Bench, context: ur_context_handle_t) -> Verdict<ur_queue_handle_t> {
    let mut queue = ur_queue_handle_t::NULL;
    must!(b, queue.create(context, b.device()?, null(), &mut queue));
    Ok(queue)
}
fn outlived_by_queue(b: &Bench) -> Verdict {
    let context = b.new_context()?;
    let queue = queue_of(b, context)?;
    must!(b, context.release(context));
    b.finish(queue)?;
    let event = b.follow(queue, &[])?;
    b.wait(&[event])?;
    let found = info!(b, queue.get_info(queue, ur_queue_info_t::CONTEXT), usize);
    same!(found, context.0.addr(), "the queue's context");
    must!(b, event.release(ur_event_handle_t(event)));
    must!(b, queue.release(queue));
    Ok(())
}
fn outlived_by_event(b: &Bench) -> Verdict {
    let context = b.new_context()?;
    let queue = queue_of(b, context)?;
    let event = b.follow(queue, &[])?;
    must!(b, queue.release(queue));
    must!(b, context.release(context));
    b.wait(&[event])?;
    same!(b.status(event)?, ur_event_status_t::COMPLETE, "the status");
    must!(b, event.release(ur_event_handle_t(event)));
    Ok(())
}
extern "C" fn count(counter: *mut c_void) {
    // The data is the index of a counter in `COUNTERS`.
    COUNTERS[counter.addr()].fetch_add(1, SeqCst);
}
static COUNTERS: [AtomicUsize; 3] = [const { AtomicUsize::new(0) }; 3];
fn data(index: usize) -> *mut c_void {
    std::ptr::without_provenance_mut(index)
}
fn deleter(b: &Bench) -> Verdict {
    COUNTERS[1].store(0, SeqCst);
    let context = b.new_context()?;
    must!(b, context.set_extended_deleter(context, Some(count), data(1)));
    must!(b, context.retain(context));
    must!(b, context.release(context));
    same!(COUNTERS[1].load(SeqCst), 0, "calls while a reference is left");
    must!(b, context.release(context));
    same!(COUNTERS[1].load(SeqCst), 1, "calls after the last release");
    Ok(())
}
fn deleters(b: &Bench) -> Verdict {
    COUNTERS[2].store(0, SeqCst);
    let context = b.new_context()?;
    for _ in 0..3 {
        must!(b, context.set_extended_deleter(context, Some(count), data(2)));
    }
    must!(b, context.release(context));
    same!(COUNTERS[2].load(SeqCst), 3, "calls after the last release");
    Ok(())
}
fn native(b: &Bench) -> Verdict {
    let (adapter, context, device) = (b.handle()?, b.context()?, b.device()?);
    let (mut native, mut again) = (0, ur_context_handle_t::NULL);
    must!(b, context.get_native_handle(context, &mut native));
    must!(b, context.create_with_native_handle(native, adapter, 1, &device, null(), &mut again));
    crate::bench::exists(again.0)?;
    let queue = queue_of(b, again)?;
    b.finish(queue)?;
    must!(b, queue.release(queue));
    must!(b, context.release(again));
    Ok(())
}
fn threads(b: &Bench) -> Verdict {
    let (context, adapter) = (b.context()?, b.adapter);
    let refs = || -> Verdict<u32> {
        Ok(info!(b, context.get_info(context, ur_context_info_t::REFERENCE_COUNT), u32))
    };
    let before = refs()?;
    let words = [crate::bench::word(context.0)];
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..1000 {
                    adapter.call("urContextRetain", &words);
                    adapter.call("urContextRelease", &words);
                }
            });
        }
    });
    same!(refs()?, before, "the count after 8,000 pairs");
    // The context remains usable throughout.
    let at = b.alloc(USM[0], 64)?;
    b.free(at)?;
    let far = b.alloc(Usm::Device, 64)?;
    refused!(b, ERROR_INVALID_NULL_HANDLE, usm.free(ur_context_handle_t::NULL, far));
    b.free(far)
}
