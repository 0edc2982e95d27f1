//! Counter-based events: created without a pool, given a new state by each append that signals them, and
//! shared by handles of 64 bytes. By the specification's function names and by the older ones of Intel's
//! driver.
#![expect(unsafe_code, reason = "exports symbols of the driver")]
use crate::{
    cell::{Hold, Own},
    context, device,
    event::{self, Event, Homes, Kind, Times},
    handle::{self, raw},
    inject::{self, Answer},
    loader_face, raw, ticket,
};
use std::{
    ffi::{c_char, c_void},
    sync::{Arc, Mutex},
};
use ze_sys::*;

/// All flags of the specification.
const FLAGS: u32 = 0x7f;
const TIMES: u32 =
    ZE_EVENT_COUNTER_BASED_FLAG_DEVICE_TIMESTAMP | ZE_EVENT_COUNTER_BASED_FLAG_HOST_TIMESTAMP;

/// Fails for a function that the environment disables.
fn offered(name: &str) -> Answer {
    if inject::hidden(name) { Err(ZE_RESULT_ERROR_UNSUPPORTED_FEATURE) } else { Ok(()) }
}

fn times(flags: u32) -> Times {
    if flags & ZE_EVENT_COUNTER_BASED_FLAG_HOST_TIMESTAMP != 0 {
        Times::Mapped
    } else if flags & ZE_EVENT_COUNTER_BASED_FLAG_DEVICE_TIMESTAMP != 0 {
        Times::Device
    } else {
        Times::None
    }
}
fn made(hold: Hold, flags: u32, opened: bool, scopes: [u32; 2]) -> Event {
    // Without flags for kinds of lists the default is immediate lists.
    let lists = ZE_EVENT_COUNTER_BASED_FLAG_IMMEDIATE | ZE_EVENT_COUNTER_BASED_FLAG_NON_IMMEDIATE;
    let implied = if flags & lists == 0 { ZE_EVENT_COUNTER_BASED_FLAG_IMMEDIATE } else { 0 };
    Event {
        hold,
        kind: Kind::Counter { flags: flags | implied, opened },
        times: times(flags),
        signal_scope: scopes[0],
        wait_scope: scopes[1],
        homes: Homes::All,
        pool: 0,
        exporter: 0,
        snapshot: None,
        moving: Mutex::new(None),
    }
}
fn create(
    context: ze_context_handle_t,
    device: ze_device_handle_t,
    (flags, scopes): (u32, [u32; 2]),
    to: *mut ze_event_handle_t,
) -> Answer {
    let (context, device) = (context::get(context)?, device::get(device)?);
    if !context.has(&device) {
        return Err(ZE_RESULT_ERROR_INVALID_ARGUMENT);
    }
    if flags & !FLAGS != 0 || scopes.iter().any(|scope| *scope > 7) {
        return Err(ZE_RESULT_ERROR_INVALID_ENUMERATION);
    }
    // Times are kept by the device that ran the command, which another process cannot query.
    if flags & ZE_EVENT_COUNTER_BASED_FLAG_IPC != 0 && flags & TIMES != 0 {
        return Err(ZE_RESULT_ERROR_INVALID_ARGUMENT);
    }
    let event = made(Hold::Own(Own::new()?), flags, false, scopes);
    let event = Event { homes: Homes::Device(device.index), ..event };
    raw::put(to, handle::make(event).cast())
}
fn share(event: ze_event_handle_t) -> Answer<[c_char; 64]> {
    let event = event::get(event)?;
    match (&event.hold, event.kind) {
        (Hold::Own(own), Kind::Counter { flags, .. })
            if flags & ZE_EVENT_COUNTER_BASED_FLAG_IPC != 0 =>
        {
            // With `snapshots`, sharing needs an existing state.
            match inject::shares_one_way() && own.latest() == 0 {
                true => Err(ZE_RESULT_ERROR_INVALID_ARGUMENT),
                false => ticket::event(own, flags),
            }
        }
        _ => Err(ZE_RESULT_ERROR_INVALID_ARGUMENT),
    }
}
fn open(context: ze_context_handle_t, data: [c_char; 64], to: *mut ze_event_handle_t) -> Answer {
    context::get(context)?;
    let (opened, flags, exporter) = ticket::open(data)?;
    let scopes = [ZE_EVENT_SCOPE_FLAG_HOST; 2];
    let snapshot = inject::shares_one_way().then(|| opened.latest());
    let event = Event { exporter, snapshot, ..made(Hold::Opened(opened), flags, true, scopes) };
    raw::put(to, handle::make(event).cast())
}
fn close(event: ze_event_handle_t) -> Answer {
    let Kind::Counter { opened: true, .. } = event::get(event)?.kind else {
        return Err(ZE_RESULT_ERROR_INVALID_ARGUMENT);
    };
    handle::destroy::<Event>(raw!(event)).map(drop)
}
fn counter(event: ze_event_handle_t) -> Answer<(Arc<Event>, u32)> {
    let event = event::get(event)?;
    match event.kind {
        Kind::Counter { flags, .. } => Ok((event, flags)),
        Kind::Flag => Err(ZE_RESULT_ERROR_INVALID_ARGUMENT),
    }
}
fn address(event: ze_event_handle_t, value: *mut u64, address: *mut u64) -> Answer {
    let (event, _) = counter(event)?;
    let (cell, n) = event.cell();
    raw::put(value, n)?;
    raw::put(address, cell.address(n))
}

entries! {
    fn zeEventCounterBasedCreate(
        context: ze_context_handle_t,
        device: ze_device_handle_t,
        desc: *const ze_event_counter_based_desc_t,
        to: *mut ze_event_handle_t,
    ) {
        offered("zeEventCounterBasedCreate")?;
        let desc = raw::get(desc)?;
        if !desc.pNext.is_null() {
            chained(desc.pNext)?;
        }
        create(context, device, (desc.flags, [desc.signal, desc.wait]), to)
    }
    fn zeEventCounterBasedGetIpcHandle(
        event: ze_event_handle_t,
        to: *mut ze_ipc_event_counter_based_handle_t,
    ) {
        offered("zeEventCounterBasedGetIpcHandle")?;
        raw::put(to, ze_ipc_event_counter_based_handle_t { data: share(event)? })
    }
    fn zeEventCounterBasedOpenIpcHandle(
        context: ze_context_handle_t,
        ipc: ze_ipc_event_counter_based_handle_t,
        to: *mut ze_event_handle_t,
    ) {
        offered("zeEventCounterBasedOpenIpcHandle")?;
        open(context, ipc.data, to)
    }
    fn zeEventCounterBasedCloseIpcHandle(event: ze_event_handle_t) {
        offered("zeEventCounterBasedCloseIpcHandle")?;
        close(event)
    }
    fn zeEventCounterBasedGetDeviceAddress(event: ze_event_handle_t, value: *mut u64, to: *mut u64) {
        offered("zeEventCounterBasedGetDeviceAddress")?;
        address(event, value, to)
    }
    fn zeEventGetCounterBasedFlags(event: ze_event_handle_t, to: *mut ze_event_counter_based_flags_t) {
        offered("zeEventGetCounterBasedFlags")?;
        raw::put(to, counter(event)?.1)
    }
    fn zexCounterBasedEventCreate2(
        context: ze_context_handle_t,
        device: ze_device_handle_t,
        desc: *const ze_event_counter_based_desc_t,
        to: *mut ze_event_handle_t,
    ) {
        offered("zexCounterBasedEventCreate2")?;
        loader_face::check_extension();
        // The older structure has another type number, but the same members at the same offsets.
        let desc = raw::get(desc)?;
        create(context, device, (desc.flags, [desc.signal, desc.wait]), to)
    }
    fn zexCounterBasedEventGetIpcHandle(
        event: ze_event_handle_t,
        to: *mut ze_ipc_event_counter_based_handle_t,
    ) {
        offered("zexCounterBasedEventGetIpcHandle")?;
        raw::put(to, ze_ipc_event_counter_based_handle_t { data: share(event)? })
    }
    fn zexCounterBasedEventOpenIpcHandle(
        context: ze_context_handle_t,
        ipc: ze_ipc_event_counter_based_handle_t,
        to: *mut ze_event_handle_t,
    ) {
        offered("zexCounterBasedEventOpenIpcHandle")?;
        open(context, ipc.data, to)
    }
    fn zexCounterBasedEventCloseIpcHandle(event: ze_event_handle_t) {
        offered("zexCounterBasedEventCloseIpcHandle")?;
        close(event)
    }
    fn zexEventGetDeviceAddress(event: ze_event_handle_t, value: *mut u64, to: *mut u64) {
        offered("zexEventGetDeviceAddress")?;
        address(event, value, to)
    }
}

/// Checks the structures linked to an event's description. How the host waits makes no difference here;
/// memory of the caller for the event is not supported.
fn chained(next: *const c_void) -> Answer {
    let known = |stype| stype == ZE_STRUCTURE_TYPE_EVENT_SYNC_MODE_DESC;
    let all = raw::chain(next).all(|(stype, _)| known(stype));
    if all { Ok(()) } else { Err(ZE_RESULT_ERROR_UNSUPPORTED_FEATURE) }
}
