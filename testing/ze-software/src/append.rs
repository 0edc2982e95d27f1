//! Commands that order, signal and record times.
#![expect(unsafe_code, reason = "exports symbols of the driver")]
use crate::{
    clock,
    command::{HostPlace, Work},
    device,
    event::{self, Event, Kind},
    inject::Answer,
    list::{self, Events},
    raw, timestamps,
};
use std::{ffi::c_void, sync::Arc};
use ze_sys::*;

/// For hints, which have no effect here: the command only takes its place in the order.
const HINT: Events = Events::NONE;

fn flag(raw: ze_event_handle_t) -> Answer<Arc<Event>> {
    let event = event::get(raw)?;
    match event.kind {
        Kind::Flag => Ok(event),
        Kind::Counter { .. } => Err(ZE_RESULT_ERROR_INVALID_ARGUMENT),
    }
}

entries! {
    fn zeCommandListAppendBarrier(
        list: ze_command_list_handle_t,
        signal: ze_event_handle_t,
        count: u32,
        waits: *mut ze_event_handle_t,
    ) {
        list::get(list)?.append(Work::Nothing, false, Events { signal, count, waits })
    }
    fn zeCommandListAppendMemoryRangesBarrier(
        list: ze_command_list_handle_t,
        ranges: u32,
        sizes: *const usize,
        starts: *mut *const c_void,
        signal: ze_event_handle_t,
        count: u32,
        waits: *mut ze_event_handle_t,
    ) {
        raw::list(sizes, ranges as usize)?;
        raw::list(starts, ranges as usize)?;
        list::get(list)?.append(Work::Nothing, false, Events { signal, count, waits })
    }
    fn zeCommandListAppendWaitOnEvents(
        list: ze_command_list_handle_t,
        count: u32,
        waits: *mut ze_event_handle_t,
    ) {
        if waits.is_null() {
            return Err(ZE_RESULT_ERROR_INVALID_NULL_POINTER);
        }
        list::get(list)?.append(Work::Nothing, false, Events { count, waits, ..Events::NONE })
    }
    fn zeCommandListAppendSignalEvent(list: ze_command_list_handle_t, signal: ze_event_handle_t) {
        event::get(signal)?;
        list::get(list)?.append(Work::Nothing, false, Events { signal, ..Events::NONE })
    }
    fn zeCommandListAppendEventReset(list: ze_command_list_handle_t, of: ze_event_handle_t) {
        let promise = flag(of)?.promise(false, 0)?;
        let clear = Work::call(move || {
            promise.clear();
            Ok(())
        });
        list::get(list)?.append(clear, false, Events::NONE)
    }
    fn zeCommandListAppendWriteGlobalTimestamp(
        list: ze_command_list_handle_t,
        to: *mut u64,
        signal: ze_event_handle_t,
        count: u32,
        waits: *mut ze_event_handle_t,
    ) {
        if to.is_null() {
            return Err(ZE_RESULT_ERROR_INVALID_NULL_POINTER);
        }
        let to = HostPlace::new(to);
        let write = Work::call(move || {
            raw::put(raw::reached(to.any().cast()), clock::shown(clock::device_now()))
        });
        list::get(list)?.append(write, false, Events { signal, count, waits })
    }
    fn zeCommandListAppendQueryKernelTimestamps(
        list: ze_command_list_handle_t,
        of: u32,
        events: *mut ze_event_handle_t,
        to: *mut c_void,
        offsets: *const usize,
        signal: ze_event_handle_t,
        count: u32,
        waits: *mut ze_event_handle_t,
    ) {
        if events.is_null() || to.is_null() {
            return Err(ZE_RESULT_ERROR_INVALID_NULL_POINTER);
        }
        let handles = raw::list(events, of as usize)?;
        let events = handles.into_iter().map(event::get).collect::<Answer<Vec<_>>>()?;
        let size = size_of::<ze_kernel_timestamp_result_t>();
        let offsets = if offsets.is_null() {
            (0..events.len()).map(|i| i * size).collect()
        } else {
            raw::list(offsets, events.len())?
        };
        let to = HostPlace::new(to);
        let query = Work::call(move || {
            for (event, offset) in events.iter().zip(&offsets) {
                raw::put(raw::reached(to.plus(*offset).cast()), timestamps::of(event)?)?;
            }
            Ok(())
        });
        list::get(list)?.append(query, false, Events { signal, count, waits })
    }
    fn zeCommandListAppendMemoryPrefetch(
        list: ze_command_list_handle_t,
        at: *const c_void,
        _size: usize,
    ) {
        if at.is_null() {
            return Err(ZE_RESULT_ERROR_INVALID_NULL_POINTER);
        }
        list::get(list)?.append(Work::Nothing, true, HINT)
    }
    fn zeCommandListAppendMemAdvise(
        list: ze_command_list_handle_t,
        device: ze_device_handle_t,
        at: *const c_void,
        _size: usize,
        advice: ze_memory_advice_t,
    ) {
        device::get(device)?;
        if at.is_null() {
            return Err(ZE_RESULT_ERROR_INVALID_NULL_POINTER);
        }
        if advice > ZE_MEMORY_ADVICE_CLEAR_SYSTEM_MEMORY_PREFERRED_LOCATION {
            return Err(ZE_RESULT_ERROR_INVALID_ENUMERATION);
        }
        list::get(list)?.append(Work::Nothing, true, HINT)
    }
    fn zeCommandListAppendHostFunction(
        list: ze_command_list_handle_t,
        function: ze_host_function_callback_t,
        data: *mut c_void,
        _next: *const c_void,
        signal: ze_event_handle_t,
        count: u32,
        waits: *mut ze_event_handle_t,
    ) {
        let function = function.ok_or(ZE_RESULT_ERROR_INVALID_NULL_POINTER)?;
        let data = HostPlace::new(data);
        let call = Work::call(move || {
            // SAFETY: the caller passed the function and its argument, to be called by the driver.
            unsafe { function(data.any()) };
            Ok(())
        });
        list::get(list)?.append(call, false, Events { signal, count, waits })
    }
}
