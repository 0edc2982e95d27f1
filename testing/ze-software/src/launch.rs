//! Kernel launches. A launch uses the kernel's arguments at the time of the append.
#![expect(unsafe_code, reason = "exports symbols of the driver")]
use crate::{
    command::{HostPlace, Work},
    handle::{self, raw},
    inject::Answer,
    kernel::{self, Kernel, Launchable},
    list::{self, Events},
    raw,
};
use std::{ffi::c_void, sync::Arc};
use ze_sys::*;

fn of(raw: ze_kernel_handle_t) -> Answer<Arc<Kernel>> {
    handle::get(raw!(raw))
}
const fn groups(count: ze_group_count_t) -> [u32; 3] {
    [count.groupCountX, count.groupCountY, count.groupCountZ]
}
fn launch(
    list: ze_command_list_handle_t,
    kernel: ze_kernel_handle_t,
    count: *const ze_group_count_t,
    events: Events,
) -> Answer {
    let (list, count) = (list::get(list)?, groups(raw::get(count)?));
    list.computes()?;
    list.append(Work::Launch(Box::new(kernel::capture(&*of(kernel)?)), count), true, events)
}
/// A launch that reads its number of groups when it runs.
fn indirect(kernel: Launchable, count: HostPlace) -> Work {
    Work::call(move || {
        let count = groups(raw::get(raw::reached(count.any().cast::<ze_group_count_t>()))?);
        kernel.run(count)
    })
}

entries! {
    fn zeCommandListAppendLaunchKernel(
        list: ze_command_list_handle_t,
        kernel: ze_kernel_handle_t,
        groups: *const ze_group_count_t,
        signal: ze_event_handle_t,
        count: u32,
        waits: *mut ze_event_handle_t,
    ) {
        launch(list, kernel, groups, Events { signal, count, waits })
    }
    fn zeCommandListAppendLaunchCooperativeKernel(
        list: ze_command_list_handle_t,
        kernel: ze_kernel_handle_t,
        groups: *const ze_group_count_t,
        signal: ze_event_handle_t,
        count: u32,
        waits: *mut ze_event_handle_t,
    ) {
        launch(list, kernel, groups, Events { signal, count, waits })
    }
    fn zeCommandListAppendLaunchKernelWithParameters(
        list: ze_command_list_handle_t,
        kernel: ze_kernel_handle_t,
        groups: *const ze_group_count_t,
        _next: *const c_void,
        signal: ze_event_handle_t,
        count: u32,
        waits: *mut ze_event_handle_t,
    ) {
        launch(list, kernel, groups, Events { signal, count, waits })
    }
    fn zeCommandListAppendLaunchKernelWithArguments(
        list: ze_command_list_handle_t,
        kernel: ze_kernel_handle_t,
        count: ze_group_count_t,
        size: ze_group_size_t,
        arguments: *mut *mut c_void,
        _next: *const c_void,
        signal: ze_event_handle_t,
        waiting: u32,
        waits: *mut ze_event_handle_t,
    ) {
        let list = list::get(list)?;
        list.computes()?;
        let size = [size.groupSizeX, size.groupSizeY, size.groupSizeZ];
        let kernel = kernel::capture_with(&*of(kernel)?, size, arguments.cast_const())?;
        let work = Work::Launch(Box::new(kernel), groups(count));
        list.append(work, true, Events { signal, count: waiting, waits })
    }
    fn zeCommandListAppendLaunchKernelIndirect(
        list: ze_command_list_handle_t,
        kernel: ze_kernel_handle_t,
        groups: *const ze_group_count_t,
        signal: ze_event_handle_t,
        count: u32,
        waits: *mut ze_event_handle_t,
    ) {
        let list = list::get(list)?;
        list.computes()?;
        if groups.is_null() {
            return Err(ZE_RESULT_ERROR_INVALID_NULL_POINTER);
        }
        let work = indirect(kernel::capture(&*of(kernel)?), HostPlace::new(groups));
        list.append(work, true, Events { signal, count, waits })
    }
    fn zeCommandListAppendLaunchMultipleKernelsIndirect(
        list: ze_command_list_handle_t,
        most: u32,
        kernels: *mut ze_kernel_handle_t,
        used: *const u32,
        groups: *const ze_group_count_t,
        signal: ze_event_handle_t,
        count: u32,
        waits: *mut ze_event_handle_t,
    ) {
        let list = list::get(list)?;
        list.computes()?;
        if groups.is_null() || used.is_null() {
            return Err(ZE_RESULT_ERROR_INVALID_NULL_POINTER);
        }
        let handles = raw::list(kernels, most as usize)?;
        let kernels = handles.into_iter().map(|one| Ok(kernel::capture(&*of(one)?)));
        let kernels = kernels.collect::<Answer<Vec<_>>>()?;
        let (used, counts) = (HostPlace::new(used), HostPlace::new(groups));
        let work = Work::call(move || {
            let used = raw::get(raw::reached(used.any().cast::<u32>()))? as usize;
            for (i, kernel) in kernels.iter().take(used).enumerate() {
                let at = counts.plus(i * size_of::<ze_group_count_t>()).cast::<ze_group_count_t>();
                kernel.run(self::groups(raw::get(raw::reached(at))?))?;
            }
            Ok(())
        });
        list.append(work, true, Events { signal, count, waits })
    }
}
