//! Every question about every object of the CPU, with too little room, just enough and plenty: no answer is longer
//! than it says, and none is written past the room there is.
#![no_main]
mod common;
use std::{
    ffi::c_void,
    ptr::null_mut,
};
use ur_cpu::TABLE;
use ur_sys::*;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let Some((&[entry, size, how], property)) = input.split_first_chunk::<3>() else { return };
    let mut number = [0; 4];
    number[..property.len().min(4)].copy_from_slice(&property[..property.len().min(4)]);
    let name = u32::from_le_bytes(number);
    let stage = common::stage();
    // SAFETY: the handles are good, `value` has `size` bytes and `needed` is one.
    let ask = |size: usize, value: *mut c_void, needed: *mut usize| unsafe {
        match entry % 22 {
            0 => TABLE.adapter.get_info.unwrap()(stage.adapter, ur_adapter_info_t(name), size, value, needed),
            1 => TABLE.platform.get_info.unwrap()(stage.platform, ur_platform_info_t(name), size, value, needed),
            2 => TABLE.device.get_info.unwrap()(stage.device, ur_device_info_t(name), size, value, needed),
            3 => TABLE.context.get_info.unwrap()(stage.context, ur_context_info_t(name), size, value, needed),
            4 => TABLE.queue.get_info.unwrap()(stage.queue, ur_queue_info_t(name), size, value, needed),
            5 => TABLE.event.get_info.unwrap()(stage.done, ur_event_info_t(name), size, value, needed),
            6 => TABLE.event.get_profiling_info.unwrap()(stage.done, ur_profiling_info_t(name), size, value, needed),
            7 => TABLE.usm.pool_get_info.unwrap()(stage.pool, ur_usm_pool_info_t(name), size, value, needed),
            8 => TABLE.usm.get_mem_alloc_info.unwrap()(
                stage.context, stage.usm, ur_usm_alloc_info_t(name), size, value, needed),
            9 => TABLE.physical_mem.get_info.unwrap()(
                stage.physical_mem, ur_physical_mem_info_t(name), size, value, needed),
            10 => TABLE.virtual_mem.granularity_get_info.unwrap()(
                stage.context, stage.device, 1_usize.checked_shl(how.into()).unwrap_or(0), ur_virtual_mem_granularity_info_t(name), size, value, needed),
            11 => TABLE.virtual_mem.get_info.unwrap()(
                stage.context, stage.mapped, 1_usize.checked_shl(how.into()).unwrap_or(0), ur_virtual_mem_info_t(name), size, value, needed),
            12 => TABLE.mem.get_info.unwrap()(stage.buffer, ur_mem_info_t(name), size, value, needed),
            13 => TABLE.mem.get_info.unwrap()(stage.image, ur_mem_info_t(name), size, value, needed),
            14 => TABLE.mem.image_get_info.unwrap()(stage.image, ur_image_info_t(name), size, value, needed),
            15 => TABLE.sampler.get_info.unwrap()(stage.sampler, ur_sampler_info_t(name), size, value, needed),
            16 => TABLE.command_buffer_exp.get_info_exp.unwrap()(
                stage.commands, ur_exp_command_buffer_info_t(name), size, value, needed),
            17 => TABLE.program.get_info.unwrap()(stage.program, ur_program_info_t(name), size, value, needed),
            18 => TABLE.program.get_build_info.unwrap()(
                stage.program, stage.device, ur_program_build_info_t(name), size, value, needed),
            19 => TABLE.kernel.get_info.unwrap()(stage.kernel, ur_kernel_info_t(name), size, value, needed),
            20 => TABLE.kernel.get_group_info.unwrap()(
                stage.kernel, stage.device, ur_kernel_group_info_t(name), size, value, needed),
            _ => TABLE.kernel.get_sub_group_info.unwrap()(
                stage.kernel, stage.device, ur_kernel_sub_group_info_t(name), size, value, needed),
        }
    };
    let mut needed = usize::MAX;
    let code = ask(0, null_mut(), &mut needed);
    if code != ur_result_t::SUCCESS {
        assert_eq!(needed, usize::MAX, "{code:?} left an answer");
        return;
    }
    let mut room = vec![0xa5; needed + 64];
    let size = match how % 3 {
        0 => usize::from(size),
        1 => needed,
        _ => needed.saturating_sub(1),
    };
    let given = size.min(room.len());
    let mut again = usize::MAX;
    let code = ask(given, room.as_mut_ptr().cast(), &mut again);
    let written = if code == ur_result_t::SUCCESS { needed } else { 0 };
    assert!(written <= given, "{code:?}: {needed} bytes in {given}");
    assert!(room[written..].iter().all(|&byte| byte == 0xa5), "{code:?} wrote past {written}");
});

