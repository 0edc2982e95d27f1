//! What the fuzzers find on the CPU: one object of each kind, and good tickets of what can be shared.
#![allow(dead_code, reason = "each fuzzer uses its part")]
use std::{
    ptr::{null, null_mut},
    slice,
    sync::OnceLock,
};
use ur_cpu::TABLE;
use ur_sys::*;

pub struct Stage {
    pub adapter: ur_adapter_handle_t,
    pub platform: ur_platform_handle_t,
    pub device: ur_device_handle_t,
    pub context: ur_context_handle_t,
    pub queue: ur_queue_handle_t,
    pub done: ur_event_handle_t,
    pub pool: ur_usm_pool_handle_t,
    pub usm: *mut std::ffi::c_void,
    pub physical_mem: ur_physical_mem_handle_t,
    /// A page, with the physical memory mapped.
    pub mapped: *mut std::ffi::c_void,
    pub buffer: ur_mem_handle_t,
    pub image: ur_mem_handle_t,
    pub sampler: ur_sampler_handle_t,
    pub commands: ur_exp_command_buffer_handle_t,
    pub program: ur_program_handle_t,
    pub kernel: ur_kernel_handle_t,
    /// Tickets.
    pub memory: Vec<u8>,
    pub physical: Vec<u8>,
    pub event: Vec<u8>,
}
// SAFETY: handles and USM may be used by any thread.
unsafe impl Send for Stage {}
// SAFETY: as above.
unsafe impl Sync for Stage {}

macro_rules! must { ($table:ident.$entry:ident($($argument:expr),* $(,)?)) => {
    assert_eq!(unsafe { TABLE.$table.$entry.unwrap()($($argument),*) }, ur_result_t::SUCCESS)
} }

/// Made at first use, and never released: what a run opens must be closed again within it.
pub fn stage() -> &'static Stage {
    static STAGE: OnceLock<Stage> = OnceLock::new();
    STAGE.get_or_init(make)
}

/// A kernel that nobody launches.
extern "C" fn item(_arguments: *const *mut std::ffi::c_void, _state: *const u8) {}

fn make() -> Stage {
    let mut adapter = ur_adapter_handle_t::NULL;
    must!(adapter.get(1, &mut adapter, null_mut()));
    let mut platform = ur_platform_handle_t::NULL;
    must!(platform.get(adapter, 1, &mut platform, null_mut()));
    let mut device = ur_device_handle_t::NULL;
    must!(device.get(platform, ur_device_type_t::ALL, 1, &mut device, null_mut()));
    let mut context = ur_context_handle_t::NULL;
    must!(context.create(1, &device, null(), &mut context));
    let properties = ur_queue_properties_t {
        stype: ur_structure_type_t::QUEUE_PROPERTIES,
        pNext: null_mut(),
        flags: ur_queue_flags_t::PROFILING_ENABLE,
    };
    let mut queue = ur_queue_handle_t::NULL;
    must!(queue.create(context, device, &properties, &mut queue));
    let mut done = ur_event_handle_t::NULL;
    must!(enqueue.events_wait(queue, 0, null(), &mut done));
    must!(queue.finish(queue));
    let mut desc = ur_usm_pool_desc_t {
        stype: ur_structure_type_t::USM_POOL_DESC,
        pNext: null_mut(),
        flags: ur_usm_pool_flags_t::default(),
    };
    let mut pool = ur_usm_pool_handle_t::NULL;
    must!(usm.pool_create(context, &mut desc, &mut pool));
    let mut usm = null_mut();
    let none = ur_usm_pool_handle_t::NULL;
    must!(usm.device_alloc(context, device, null(), none, 8192, &mut usm));

    let (mut buffer, mut image) = (ur_mem_handle_t::NULL, ur_mem_handle_t::NULL);
    must!(mem.buffer_create(context, ur_mem_flags_t::READ_WRITE, 64, null(), &mut buffer));
    let format = ur_image_format_t {
        channelOrder: ur_image_channel_order_t::RGBA,
        channelType: ur_image_channel_type_t::UNORM_INT8,
    };
    let desc = ur_image_desc_t {
        stype: ur_structure_type_t::IMAGE_DESC,
        pNext: null(),
        r#type: ur_mem_type_t::IMAGE2D,
        width: 4,
        height: 4,
        depth: 1,
        arraySize: 1,
        rowPitch: 0,
        slicePitch: 0,
        numMipLevel: 0,
        numSamples: 0,
    };
    let flags = ur_mem_flags_t::READ_WRITE;
    must!(mem.image_create(context, flags, &format, &desc, null_mut(), &mut image));
    let desc = ur_sampler_desc_t {
        stype: ur_structure_type_t::SAMPLER_DESC,
        pNext: null(),
        normalizedCoords: true,
        addressingMode: ur_sampler_addressing_mode_t::CLAMP,
        filterMode: ur_sampler_filter_mode_t::LINEAR,
    };
    let mut sampler = ur_sampler_handle_t::NULL;
    must!(sampler.create(context, &desc, &mut sampler));
    let desc = ur_exp_command_buffer_desc_t {
        stype: ur_structure_type_t::EXP_COMMAND_BUFFER_DESC,
        pNext: null(),
        isUpdatable: 1,
        isInOrder: 0,
        enableProfiling: 1,
    };
    let mut commands = ur_exp_command_buffer_handle_t::NULL;
    must!(command_buffer_exp.create_exp(context, device, &desc, &mut commands));
    // A table of functions: names and addresses, and a pair of nulls.
    let table = [c"item".as_ptr().addr(), item as *const () as usize, 0, 0];
    let (mut length, mut at) = (size_of_val(&table), (&raw const table).cast::<u8>());
    let mut program = ur_program_handle_t::NULL;
    must!(program.create_with_binary(
        context, 1, &mut { device }, &mut length, &mut at, null(), &mut program
    ));
    must!(program.build(context, program, null()));
    let mut kernel = ur_kernel_handle_t::NULL;
    must!(kernel.create(program, c"item".as_ptr(), &mut kernel));

    let (mut data, mut size) = (null_mut(), 0);
    // SAFETY: the adapter said where the ticket is and how long.
    let ticket = |data: *mut _, size| unsafe { slice::from_raw_parts(data as *const u8, size).to_vec() };
    must!(ipc_exp.get_mem_handle_exp(context, usm, &mut data, &mut size));
    let memory = ticket(data, size);

    let properties = ur_physical_mem_properties_t {
        stype: ur_structure_type_t::PHYSICAL_MEM_PROPERTIES,
        pNext: null_mut(),
        flags: ur_physical_mem_flags_t::ENABLE_IPC,
    };
    let mut physical_mem = ur_physical_mem_handle_t::NULL;
    must!(physical_mem.create(context, device, 1 << 16, &properties, &mut physical_mem));
    must!(ipc_exp.get_phys_mem_handle_exp(context, physical_mem, &mut data, &mut size));
    let physical = ticket(data, size);
    let mut mapped = null_mut();
    must!(virtual_mem.reserve(context, null(), 1 << 16, &mut mapped));
    let access = ur_virtual_mem_access_flags_t::READ_WRITE;
    must!(virtual_mem.map(context, mapped, 1 << 16, physical_mem, 0, access));

    let desc = ur_exp_event_desc_t {
        stype: ur_structure_type_t::EXP_EVENT_DESC,
        pNext: null_mut(),
        flags: ur_exp_event_flags_t::IPC_EXP,
    };
    let mut shared = ur_event_handle_t::NULL;
    must!(event_exp.create_exp(context, device, &desc, &mut shared));
    must!(ipc_exp.get_event_handle_exp(shared, &mut data, &mut size));
    let event = ticket(data, size);
    Stage {
        adapter,
        platform,
        device,
        context,
        queue,
        done,
        pool,
        usm,
        physical_mem,
        mapped,
        buffer,
        image,
        sampler,
        commands,
        program,
        kernel,
        memory,
        physical,
        event,
    }
}
