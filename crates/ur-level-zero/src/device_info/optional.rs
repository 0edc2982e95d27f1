//! What this adapter has beside the core of the specification, and what it has not: a plain no, of
//! the type the ABI gives.
use super::super::{
    Device,
    native::{device as native, queue::can_batch},
};
use ur_adapter::{error::Result, info::Answer};
use ur_sys::{ur_device_info_t as I, *};

pub(super) fn answer(device: &Device, name: I, answer: &mut Answer<'_>) -> Option<Result<()>> {
    Some(match name {
        I::_2D_BLOCK_ARRAY_CAPABILITIES_EXP => {
            let told = native::extended::<native::BlockArrays>(device.raw());
            let known = ur_exp_device_2d_block_array_capability_flags_t::VALID.bits();
            told.and_then(|told| answer.value(&(told.flags & known)))
        }
        I::COMMAND_BUFFER_UPDATE_CAPABILITIES_EXP => answer.value(&updates().bits()),
        I::COMMAND_BUFFER_SUPPORT_EXP | I::COMMAND_BUFFER_EVENT_SUPPORT_EXP => {
            answer.bool(can_batch())
        }
        I::PROGRAM_SET_SPECIALIZATION_CONSTANTS
        | I::ESIMD_SUPPORT
        | I::REUSABLE_EVENTS_SUPPORT_EXP
        | I::PER_EVENT_PROFILING_SUPPORT_EXP
        | I::TIMESTAMP_RECORDING_SUPPORT_EXP
        | I::DEVICE_WAIT_SUPPORT_EXP
        | I::ENQUEUE_HOST_TASK_SUPPORT_EXP
        | I::ENQUEUE_NATIVE_COMMAND_SUPPORT_EXP
        | I::MULTI_DEVICE_COMPILE_SUPPORT_EXP
        | I::DYNAMIC_LINK_SUPPORT_EXP => answer.bool(true),
        _ => return missing(name).then(|| answer.bool(false)),
    })
}
/// What of a recorded launch can be changed: all, since lists are made again from what was recorded.
fn updates() -> ur_device_command_buffer_update_capability_flags_t {
    use ur_device_command_buffer_update_capability_flags_t as F;
    match can_batch() {
        true => F::VALID,
        false => F::default(),
    }
}
fn missing(name: I) -> bool {
    matches!(
        name,
        I::KERNEL_SET_SPECIALIZATION_CONSTANTS
            | I::MEM_CHANNEL_SUPPORT
            | I::HOST_PIPE_READ_WRITE_SUPPORT
            | I::COMMAND_BUFFER_SUBGRAPH_SUPPORT_EXP
            | I::GRAPH_RECORD_AND_REPLAY_SUPPORT_EXP
            | I::BINDLESS_IMAGES_SUPPORT_EXP
            | I::BINDLESS_IMAGES_SHARED_USM_SUPPORT_EXP
            | I::BINDLESS_IMAGES_1D_USM_SUPPORT_EXP
            | I::BINDLESS_IMAGES_2D_USM_SUPPORT_EXP
            | I::MIPMAP_SUPPORT_EXP
            | I::MIPMAP_ANISOTROPY_SUPPORT_EXP
            | I::MIPMAP_LEVEL_REFERENCE_SUPPORT_EXP
            | I::EXTERNAL_MEMORY_IMPORT_SUPPORT_EXP
            | I::EXTERNAL_SEMAPHORE_IMPORT_SUPPORT_EXP
            | I::CUBEMAP_SUPPORT_EXP
            | I::CUBEMAP_SEAMLESS_FILTERING_SUPPORT_EXP
            | I::BINDLESS_SAMPLED_IMAGE_FETCH_1D_USM_SUPPORT_EXP
            | I::BINDLESS_SAMPLED_IMAGE_FETCH_1D_SUPPORT_EXP
            | I::BINDLESS_SAMPLED_IMAGE_FETCH_2D_USM_SUPPORT_EXP
            | I::BINDLESS_SAMPLED_IMAGE_FETCH_2D_SUPPORT_EXP
            | I::BINDLESS_SAMPLED_IMAGE_FETCH_3D_SUPPORT_EXP
            | I::IMAGE_ARRAY_SUPPORT_EXP
            | I::BINDLESS_UNIQUE_ADDRESSING_PER_DIM_SUPPORT_EXP
            | I::BINDLESS_SAMPLE_1D_USM_SUPPORT_EXP
            | I::BINDLESS_SAMPLE_2D_USM_SUPPORT_EXP
            | I::BINDLESS_IMAGES_GATHER_SUPPORT_EXP
            | I::CLOCK_SUB_GROUP_SUPPORT_EXP
            | I::CLOCK_WORK_GROUP_SUPPORT_EXP
            | I::CLOCK_DEVICE_SUPPORT_EXP
            | I::LOW_POWER_EVENTS_SUPPORT_EXP
    )
}
