//! The timestamps of events, in the forms of the different queries.
#![expect(unsafe_code, reason = "exports symbols of the driver")]
use crate::{
    clock, device,
    event::{self, Event, Times},
    inject::Answer,
    raw,
};
use ze_sys::*;

/// The start and end timestamps of an event on the device's clock. The result has global and context
/// timestamps, which are the same here.
///
/// # Errors
/// As [`Event::stamps`].
pub fn of(event: &Event) -> Answer<ze_kernel_timestamp_result_t> {
    let (start, end) = event.stamps()?;
    let [start, end] = [start, end].map(clock::shown_by_command);
    let data = ze_kernel_timestamp_data_t { kernelStart: start, kernelEnd: end };
    Ok(ze_kernel_timestamp_result_t { global: data, context: data })
}
fn mapped(event: &Event) -> Answer<ze_synchronized_timestamp_result_ext_t> {
    if event.times != Times::Mapped {
        return Err(ZE_RESULT_ERROR_INVALID_ARGUMENT);
    }
    let (start, end) = event.stamps()?;
    let (start, end) = (clock::host_of(start), clock::host_of(end));
    let data = ze_synchronized_timestamp_data_ext_t { kernelStart: start, kernelEnd: end };
    Ok(ze_synchronized_timestamp_result_ext_t { global: data, context: data })
}
/// Sets `*count` to one, the number of timestamps, and returns whether the caller has room for it.
fn room(count: *mut u32) -> Answer<bool> {
    let room = raw::get(count)?;
    raw::put(count, 1)?;
    Ok(room != 0)
}

entries! {
    fn zeEventQueryKernelTimestamp(event: ze_event_handle_t, to: *mut ze_kernel_timestamp_result_t) {
        raw::put(to, of(&*event::get(event)?)?)
    }
    fn zeEventQueryKernelTimestampsExt(
        event: ze_event_handle_t,
        device: ze_device_handle_t,
        count: *mut u32,
        to: *mut ze_event_query_kernel_timestamps_results_ext_properties_t,
    ) {
        let event = event::get(event)?;
        device::get(device)?;
        if !room(count)? || to.is_null() {
            return Ok(());
        }
        let to = raw::get(to)?;
        if !to.pKernelTimestampsBuffer.is_null() {
            raw::put(to.pKernelTimestampsBuffer, of(&event)?)?;
        }
        if !to.pSynchronizedTimestampsBuffer.is_null() {
            raw::put(to.pSynchronizedTimestampsBuffer, mapped(&event)?)?;
        }
        Ok(())
    }
    fn zeEventQueryTimestampsExp(
        event: ze_event_handle_t,
        device: ze_device_handle_t,
        count: *mut u32,
        to: *mut ze_kernel_timestamp_result_t,
    ) {
        let event = event::get(event)?;
        device::get(device)?;
        if room(count)? && !to.is_null() { raw::put(to, of(&event)?) } else { Ok(()) }
    }
}
