//! What this adapter has beside the core of the specification, and what it has not: a plain no, of
//! the type the ABI gives.
use super::super::{Device, driver::driver, native::device as native};
use ur_adapter::{error::Result, info::Answer};
use ur_sys::{ur_device_info_t as I, *};
use ze_sys::*;

pub(super) fn answer(device: &Device, name: I, answer: &mut Answer<'_>) -> Option<Result<()>> {
    Some(match name {
        I::_2D_BLOCK_ARRAY_CAPABILITIES_EXP => {
            let told = native::extended::<native::BlockArrays>(device.raw());
            let known = ur_exp_device_2d_block_array_capability_flags_t::VALID.bits();
            told.and_then(|told| answer.value(&(told.flags & known)))
        }
        I::COMMAND_BUFFER_UPDATE_CAPABILITIES_EXP => {
            updates(device).and_then(|flags| answer.value(&flags.bits()))
        }
        I::PROGRAM_SET_SPECIALIZATION_CONSTANTS
        | I::ESIMD_SUPPORT
        | I::REUSABLE_EVENTS_SUPPORT_EXP
        | I::PER_EVENT_PROFILING_SUPPORT_EXP
        | I::TIMESTAMP_RECORDING_SUPPORT_EXP
        | I::DEVICE_WAIT_SUPPORT_EXP
        | I::ENQUEUE_HOST_TASK_SUPPORT_EXP
        | I::ENQUEUE_NATIVE_COMMAND_SUPPORT_EXP
        | I::COMMAND_BUFFER_SUPPORT_EXP
        | I::COMMAND_BUFFER_EVENT_SUPPORT_EXP
        | I::MULTI_DEVICE_COMPILE_SUPPORT_EXP
        | I::DYNAMIC_LINK_SUPPORT_EXP => answer.bool(true),
        _ => return missing(name).then(|| answer.bool(false)),
    })
}
/// What of a recorded launch can be changed: what the driver's lists let be changed.
fn updates(device: &Device) -> Result<ur_device_command_buffer_update_capability_flags_t> {
    use ur_device_command_buffer_update_capability_flags_t as F;
    if !driver().has("command_list_update_mutable_commands_exp") {
        return Ok(F::default());
    }
    let told = native::extended::<ze_mutable_command_list_exp_properties_t>(device.raw())?;
    let pairs = [
        (ZE_MUTABLE_COMMAND_EXP_FLAG_KERNEL_ARGUMENTS, F::KERNEL_ARGUMENTS),
        (ZE_MUTABLE_COMMAND_EXP_FLAG_GROUP_SIZE, F::LOCAL_WORK_SIZE),
        (ZE_MUTABLE_COMMAND_EXP_FLAG_GROUP_COUNT, F::GLOBAL_WORK_SIZE),
        (ZE_MUTABLE_COMMAND_EXP_FLAG_GLOBAL_OFFSET, F::GLOBAL_WORK_OFFSET),
    ];
    let set = pairs.into_iter().filter(|(flag, _)| told.mutableCommandFlags & flag != 0);
    Ok(set.fold(F::default(), |all, (_, flag)| all | flag))
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
