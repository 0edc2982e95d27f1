//! Commands on images.
#![expect(unsafe_code, reason = "exports symbols of the driver")]
use crate::{
    command::{HostPlace, Work},
    handle::{self, raw},
    image::Image,
    inject::Answer,
    list::{self, Events},
    raw,
};
use std::{ffi::c_void, sync::Arc};
use ze_sys::*;

fn of(raw: ze_image_handle_t) -> Answer<Arc<Image>> {
    handle::get(raw!(raw))
}
/// A region, or the whole image.
fn region(at: *const ze_image_region_t) -> Answer<Option<ze_image_region_t>> {
    if at.is_null() { Ok(None) } else { raw::get(at).map(Some) }
}
fn between(
    list: ze_command_list_handle_t,
    [to, from]: [ze_image_handle_t; 2],
    [to_region, from_region]: [*const ze_image_region_t; 2],
    events: Events,
) -> Answer {
    let (to, from) = (of(to)?, of(from)?);
    let (to_region, from_region) = (region(to_region)?, region(from_region)?);
    let work = Work::call(move || to.copy_from(&from, to_region, from_region));
    list::get(list)?.append(work, true, events)
}
fn out(
    list: ze_command_list_handle_t,
    (to, row, slice): (*mut c_void, u32, u32),
    (image, part): (ze_image_handle_t, *const ze_image_region_t),
    events: Events,
) -> Answer {
    if to.is_null() {
        return Err(ZE_RESULT_ERROR_INVALID_NULL_POINTER);
    }
    let (to, image, part) = (HostPlace::new(to), of(image)?, region(part)?);
    let work = Work::call(move || image.read(part, to.any(), row, slice));
    list::get(list)?.append(work, true, events)
}
fn into(
    list: ze_command_list_handle_t,
    (image, part): (ze_image_handle_t, *const ze_image_region_t),
    (from, row, slice): (*const c_void, u32, u32),
    events: Events,
) -> Answer {
    if from.is_null() {
        return Err(ZE_RESULT_ERROR_INVALID_NULL_POINTER);
    }
    let (from, image, part) = (HostPlace::new(from), of(image)?, region(part)?);
    let work = Work::call(move || image.write(part, from.any().cast_const(), row, slice));
    list::get(list)?.append(work, true, events)
}

entries! {
    fn zeCommandListAppendImageCopy(
        list: ze_command_list_handle_t,
        to: ze_image_handle_t,
        from: ze_image_handle_t,
        signal: ze_event_handle_t,
        count: u32,
        waits: *mut ze_event_handle_t,
    ) {
        between(list, [to, from], [std::ptr::null(); 2], Events { signal, count, waits })
    }
    fn zeCommandListAppendImageCopyRegion(
        list: ze_command_list_handle_t,
        to: ze_image_handle_t,
        from: ze_image_handle_t,
        to_region: *const ze_image_region_t,
        from_region: *const ze_image_region_t,
        signal: ze_event_handle_t,
        count: u32,
        waits: *mut ze_event_handle_t,
    ) {
        between(list, [to, from], [to_region, from_region], Events { signal, count, waits })
    }
    fn zeCommandListAppendImageCopyToMemory(
        list: ze_command_list_handle_t,
        to: *mut c_void,
        image: ze_image_handle_t,
        part: *const ze_image_region_t,
        signal: ze_event_handle_t,
        count: u32,
        waits: *mut ze_event_handle_t,
    ) {
        out(list, (to, 0, 0), (image, part), Events { signal, count, waits })
    }
    fn zeCommandListAppendImageCopyFromMemory(
        list: ze_command_list_handle_t,
        image: ze_image_handle_t,
        from: *const c_void,
        part: *const ze_image_region_t,
        signal: ze_event_handle_t,
        count: u32,
        waits: *mut ze_event_handle_t,
    ) {
        into(list, (image, part), (from, 0, 0), Events { signal, count, waits })
    }
    fn zeCommandListAppendImageCopyToMemoryExt(
        list: ze_command_list_handle_t,
        to: *mut c_void,
        image: ze_image_handle_t,
        part: *const ze_image_region_t,
        row: u32,
        slice: u32,
        signal: ze_event_handle_t,
        count: u32,
        waits: *mut ze_event_handle_t,
    ) {
        out(list, (to, row, slice), (image, part), Events { signal, count, waits })
    }
    fn zeCommandListAppendImageCopyFromMemoryExt(
        list: ze_command_list_handle_t,
        image: ze_image_handle_t,
        from: *const c_void,
        part: *const ze_image_region_t,
        row: u32,
        slice: u32,
        signal: ze_event_handle_t,
        count: u32,
        waits: *mut ze_event_handle_t,
    ) {
        into(list, (image, part), (from, row, slice), Events { signal, count, waits })
    }
}
