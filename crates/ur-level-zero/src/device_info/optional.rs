//! Answers about optional features that this adapter supports.
use super::super::{
    DriverDevice,
    native::{device as native, list::List},
};
use ur_adapter::{error::Result, info::Answer};
use ur_sys::{ur_device_info_t as I, *};

pub(super) fn answer(device: &DriverDevice, name: I, answer: &mut Answer<'_>) -> Result<bool> {
    match name {
        I::_2D_BLOCK_ARRAY_CAPABILITIES_EXP => {
            let told = native::extended::<native::BlockArrays>(device.raw())?;
            let known = ur_exp_device_2d_block_array_capability_flags_t::VALID.bits();
            answer.value(&(told.flags & known))
        }
        I::COMMAND_BUFFER_UPDATE_CAPABILITIES_EXP => answer.value(&updates().bits()),
        I::COMMAND_BUFFER_SUPPORT_EXP
        | I::COMMAND_BUFFER_EVENT_SUPPORT_EXP
        | I::GRAPH_RECORD_AND_REPLAY_SUPPORT_EXP => answer.bool(List::can_execute()),
        I::COMMAND_BUFFER_SUBGRAPH_SUPPORT_EXP => answer.bool(false),
        I::PROGRAM_SET_SPECIALIZATION_CONSTANTS
        | I::ESIMD_SUPPORT
        | I::MULTI_DEVICE_COMPILE_SUPPORT_EXP
        | I::DYNAMIC_LINK_SUPPORT_EXP => answer.bool(true),
        _ => return Ok(false),
    }?;
    Ok(true)
}
/// What can be changed in a recorded launch: everything, because command lists are created again from the
/// recording.
fn updates() -> ur_device_command_buffer_update_capability_flags_t {
    use ur_device_command_buffer_update_capability_flags_t as F;
    match List::can_execute() {
        true => F::VALID,
        false => F::default(),
    }
}
