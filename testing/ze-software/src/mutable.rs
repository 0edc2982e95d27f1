//! Command lists whose commands can be changed after they were recorded: arguments, group counts and sizes,
//! offsets, kernels, events. A list that was changed has to be closed again before it can run.
#![expect(unsafe_code, reason = "exports symbols of the driver")]
use crate::{
    command::{Command, Work},
    event,
    handle::{self, raw},
    inject::Answer,
    kernel::{self, Kernel, Launchable},
    list::{self, List},
    raw,
};
use ze_sys::*;

fn mutable(raw: ze_command_list_handle_t) -> Answer<std::sync::Arc<List>> {
    let list = list::get(raw)?;
    if list.mutable { Ok(list) } else { Err(ZE_RESULT_ERROR_INVALID_ARGUMENT) }
}
/// Gives the next command an identifier.
fn number(list: &List, to: *mut u64) -> Answer {
    let mut recorded = list.recorded()?;
    if recorded.closed {
        return Err(ZE_RESULT_ERROR_INVALID_ARGUMENT);
    }
    recorded.ids += 1;
    recorded.next_id = recorded.ids;
    raw::put(to, recorded.ids)
}
/// Changes the command with this identifier.
fn change(list: &List, id: u64, with: impl FnOnce(&mut Command) -> Answer) -> Answer {
    let mut recorded = list.recorded()?;
    let found = recorded.commands.iter_mut().find(|command| id != 0 && command.id == id);
    with(found.ok_or(ZE_RESULT_ERROR_INVALID_ARGUMENT)?)?;
    recorded.closed = false;
    Ok(())
}
fn launch(
    list: &List,
    id: u64,
    with: impl FnOnce(&mut Launchable, &mut [u32; 3]) -> Answer,
) -> Answer {
    change(list, id, |command| match &mut command.work {
        Work::Launch(kernel, groups) => with(kernel, groups),
        _ => Err(ZE_RESULT_ERROR_INVALID_ARGUMENT),
    })
}
/// Applies one structure of a chain of changes.
fn wish(list: &List, stype: ze_structure_type_t, at: *mut std::ffi::c_void) -> Answer {
    match stype {
        ZE_STRUCTURE_TYPE_MUTABLE_KERNEL_ARGUMENT_EXP_DESC => {
            let wish = raw::get(at.cast::<ze_mutable_kernel_argument_exp_desc_t>())?;
            launch(list, wish.commandId, |kernel, _| {
                kernel.set_argument(wish.argIndex, wish.argSize, wish.pArgValue)
            })
        }
        ZE_STRUCTURE_TYPE_MUTABLE_GROUP_COUNT_EXP_DESC => {
            let wish = raw::get(at.cast::<ze_mutable_group_count_exp_desc_t>())?;
            let count = raw::get(wish.pGroupCount)?;
            launch(list, wish.commandId, |_, groups| {
                *groups = [count.groupCountX, count.groupCountY, count.groupCountZ];
                Ok(())
            })
        }
        ZE_STRUCTURE_TYPE_MUTABLE_GROUP_SIZE_EXP_DESC => {
            let wish = raw::get(at.cast::<ze_mutable_group_size_exp_desc_t>())?;
            launch(list, wish.commandId, |kernel, _| {
                kernel.set_group_size([wish.groupSizeX, wish.groupSizeY, wish.groupSizeZ])
            })
        }
        ZE_STRUCTURE_TYPE_MUTABLE_GLOBAL_OFFSET_EXP_DESC => {
            let wish = raw::get(at.cast::<ze_mutable_global_offset_exp_desc_t>())?;
            launch(list, wish.commandId, |kernel, _| {
                kernel.set_offset([wish.offsetX, wish.offsetY, wish.offsetZ])
            })
        }
        _ => Err(ZE_RESULT_ERROR_UNSUPPORTED_FEATURE),
    }
}

entries! {
    fn zeCommandListGetNextCommandIdExp(
        list: ze_command_list_handle_t,
        desc: *const ze_mutable_command_id_exp_desc_t,
        to: *mut u64,
    ) {
        raw::get(desc)?;
        number(&*mutable(list)?, to)
    }
    fn zeCommandListGetNextCommandIdWithKernelsExp(
        list: ze_command_list_handle_t,
        desc: *const ze_mutable_command_id_exp_desc_t,
        count: u32,
        kernels: *mut ze_kernel_handle_t,
        to: *mut u64,
    ) {
        raw::get(desc)?;
        for one in raw::list(kernels, count as usize)? {
            handle::get::<Kernel>(raw!(one))?;
        }
        number(&*mutable(list)?, to)
    }
    fn zeCommandListUpdateMutableCommandsExp(
        list: ze_command_list_handle_t,
        desc: *const ze_mutable_commands_exp_desc_t,
    ) {
        let (list, desc) = (mutable(list)?, raw::get(desc)?);
        raw::chain(desc.pNext).try_for_each(|(stype, at)| wish(&list, stype, at))
    }
    fn zeCommandListUpdateMutableCommandSignalEventExp(
        list: ze_command_list_handle_t,
        id: u64,
        signal: ze_event_handle_t,
    ) {
        let list = mutable(list)?;
        let promise = list.promise(signal)?;
        change(&list, id, |command| {
            command.promise = promise;
            Ok(())
        })
    }
    fn zeCommandListUpdateMutableCommandWaitEventsExp(
        list: ze_command_list_handle_t,
        id: u64,
        count: u32,
        waits: *mut ze_event_handle_t,
    ) {
        let list = mutable(list)?;
        let handles = raw::list(waits, count as usize)?;
        let waits = handles.into_iter().map(|one| event::get(one).map(|event| event.capture()));
        let waits = waits.collect::<Answer<Vec<_>>>()?;
        change(&list, id, |command| {
            command.waits = waits;
            Ok(())
        })
    }
    fn zeCommandListUpdateMutableCommandKernelsExp(
        list: ze_command_list_handle_t,
        count: u32,
        ids: *mut u64,
        kernels: *mut ze_kernel_handle_t,
    ) {
        let list = mutable(list)?;
        let (ids, kernels) = (raw::list(ids, count as usize)?, raw::list(kernels, count as usize)?);
        for (id, one) in ids.into_iter().zip(kernels) {
            let other = kernel::capture(&*handle::get::<Kernel>(raw!(one))?);
            launch(&list, id, |kernel, _| {
                *kernel = other;
                Ok(())
            })?;
        }
        Ok(())
    }
    fn zeCommandListIsMutableExp(list: ze_command_list_handle_t, to: *mut ze_bool_t) {
        raw::put(to, u8::from(list::get(list)?.mutable))
    }
}
