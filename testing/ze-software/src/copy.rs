//! Commands on memory: copies, copies of regions, and fills.
#![expect(unsafe_code, reason = "exports symbols of the driver")]
use crate::{
    command::{Call, HostPlace, Work},
    context, device,
    inject::Answer,
    list::{self, Events},
    memory, raw,
};
use std::{ffi::c_void, sync::Arc};
use ze_sys::*;

fn present<T>(pointer: *const T) -> Answer<HostPlace> {
    if pointer.is_null() {
        Err(ZE_RESULT_ERROR_INVALID_NULL_POINTER)
    } else {
        Ok(HostPlace::new(pointer))
    }
}
/// Checks that a range that starts in an allocation also ends in it; a real device would be lost otherwise.
fn within(at: *mut u8, size: usize) -> Answer {
    all_within([at], size)
}
/// As [`within`], for several ranges.
fn all_within<const N: usize>(all: [*mut u8; N], size: usize) -> Answer {
    for (at, extent) in all.into_iter().zip(memory::extents(all.map(|at| at.addr()))) {
        if let Some((base, whole)) = extent
            && whole - (at.addr() - base) < size
        {
            eprintln!("ze-software: {size} bytes at {at:p} run past their allocation");
            return Err(ZE_RESULT_ERROR_DEVICE_LOST);
        }
    }
    Ok(())
}
/// Checks that the list's device can access the device memory at these addresses.
fn reached<const N: usize>(list: &list::List, all: [*mut u8; N]) -> Answer {
    for at in all {
        let found = memory::find(at.addr()).filter(|found| found.kind == ZE_MEMORY_TYPE_DEVICE);
        if let Some(home) = found.and_then(|found| found.device)
            && !device::reaches(&list.device, &home)
        {
            eprintln!("ze-software: {at:p} is memory of a device that the list's does not reach");
            return Err(ZE_RESULT_ERROR_INVALID_ARGUMENT);
        }
    }
    Ok(())
}
fn copy(
    list: ze_command_list_handle_t,
    (to, from): (*mut c_void, *const c_void),
    size: usize,
    events: Events,
) -> Answer {
    let (list, to, from) = (list::get(list)?, present(to)?, present(from)?);
    reached(&list, [to.bytes(), from.bytes()])?;
    let copy: Call = Arc::new(move || {
        all_within([to.bytes(), from.bytes()], size)?;
        raw::copy(to.bytes(), from.bytes(), size);
        Ok(())
    });
    list.append(Work::Call(list.offloaded(copy)), true, events)
}
/// Fills `size` bytes with repetitions of `pattern`.
fn spread(to: HostPlace, pattern: &[u8], size: usize) {
    if let [byte] = pattern {
        raw::fill(to.bytes(), *byte, size);
        return;
    }
    let mut done = pattern.len().min(size);
    raw::copy(to.bytes(), pattern.as_ptr(), done);
    // What is written already is a pattern twice as long.
    while done < size {
        let more = done.min(size - done);
        raw::copy(to.plus(done), to.bytes(), more);
        done += more;
    }
}
fn fill(
    list: ze_command_list_handle_t,
    to: *mut c_void,
    (pattern, length): (*const c_void, usize),
    size: usize,
    events: Events,
) -> Answer {
    let list = list::get(list)?;
    let to = present(to)?;
    if length == 0 || length > list.pattern() || (length > 16 && !size.is_multiple_of(length)) {
        return Err(ZE_RESULT_ERROR_INVALID_SIZE);
    }
    reached(&list, [to.bytes()])?;
    let pattern = raw::bytes(present(pattern)?.bytes(), length)?;
    let work = Work::call(move || {
        within(to.bytes(), size)?;
        spread(to, &pattern, size);
        Ok(())
    });
    list.append(work, true, events)
}

/// One side of a copy of a region: its address, origin and pitches.
#[derive(Clone, Copy)]
struct Side {
    at: HostPlace,
    origin: [usize; 3],
    row: usize,
    slice: usize,
}
impl Side {
    fn new(
        at: *const c_void,
        region: *const ze_copy_region_t,
        (row, slice): (u32, u32),
    ) -> Answer<(Self, [usize; 3])> {
        let r = raw::get(region)?;
        let [width, height, depth] = [r.width, r.height, r.depth].map(|n| n as usize);
        let origin = [r.originX, r.originY, r.originZ].map(|n| n as usize);
        // A pitch of zero is that of a contiguous region.
        let row = if row == 0 { width } else { row as usize };
        let slice = if slice == 0 { row * height.max(1) } else { slice as usize };
        let extent = [width, height.max(1), depth.max(1)];
        Ok((Self { at: present(at)?, origin, row, slice }, extent))
    }
    fn line(&self, y: usize, z: usize) -> *mut u8 {
        let [ox, oy, oz] = self.origin;
        self.at.plus(ox + (oy + y) * self.row + (oz + z) * self.slice)
    }
}

entries! {
    fn zeCommandListAppendMemoryCopy(
        list: ze_command_list_handle_t,
        to: *mut c_void,
        from: *const c_void,
        size: usize,
        signal: ze_event_handle_t,
        count: u32,
        waits: *mut ze_event_handle_t,
    ) {
        copy(list, (to, from), size, Events { signal, count, waits })
    }
    fn zeCommandListAppendMemoryCopyFromContext(
        list: ze_command_list_handle_t,
        to: *mut c_void,
        of: ze_context_handle_t,
        from: *const c_void,
        size: usize,
        signal: ze_event_handle_t,
        count: u32,
        waits: *mut ze_event_handle_t,
    ) {
        if !of.is_null() {
            context::get(of)?;
        }
        copy(list, (to, from), size, Events { signal, count, waits })
    }
    fn zeCommandListAppendMemoryCopyWithParameters(
        list: ze_command_list_handle_t,
        to: *mut c_void,
        from: *const c_void,
        size: usize,
        _next: *const c_void,
        signal: ze_event_handle_t,
        count: u32,
        waits: *mut ze_event_handle_t,
    ) {
        copy(list, (to, from), size, Events { signal, count, waits })
    }
    fn zeCommandListAppendMemoryFill(
        list: ze_command_list_handle_t,
        to: *mut c_void,
        pattern: *const c_void,
        length: usize,
        size: usize,
        signal: ze_event_handle_t,
        count: u32,
        waits: *mut ze_event_handle_t,
    ) {
        fill(list, to, (pattern, length), size, Events { signal, count, waits })
    }
    fn zeCommandListAppendMemoryFillWithParameters(
        list: ze_command_list_handle_t,
        to: *mut c_void,
        pattern: *const c_void,
        length: usize,
        size: usize,
        _next: *const c_void,
        signal: ze_event_handle_t,
        count: u32,
        waits: *mut ze_event_handle_t,
    ) {
        fill(list, to, (pattern, length), size, Events { signal, count, waits })
    }
    fn zeCommandListAppendMemoryCopyRegion(
        list: ze_command_list_handle_t,
        to: *mut c_void,
        to_region: *const ze_copy_region_t,
        to_row: u32,
        to_slice: u32,
        from: *const c_void,
        from_region: *const ze_copy_region_t,
        from_row: u32,
        from_slice: u32,
        signal: ze_event_handle_t,
        count: u32,
        waits: *mut ze_event_handle_t,
    ) {
        let (to, extent) = Side::new(to, to_region, (to_row, to_slice))?;
        let (from, same) = Side::new(from, from_region, (from_row, from_slice))?;
        if extent != same {
            return Err(ZE_RESULT_ERROR_INVALID_SIZE);
        }
        let list = list::get(list)?;
        reached(&list, [to.at.bytes(), from.at.bytes()])?;
        let work = Work::call(move || {
            let [width, height, depth] = extent;
            for (z, y) in (0..depth).flat_map(|z| (0..height).map(move |y| (z, y))) {
                within(to.line(y, z), width)?;
                within(from.line(y, z), width)?;
                raw::copy(to.line(y, z), from.line(y, z), width);
            }
            Ok(())
        });
        list.append(work, true, Events { signal, count, waits })
    }
}
