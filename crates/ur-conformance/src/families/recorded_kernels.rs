//! Launches in command buffers: they run at each execution, and can be updated in between.
use super::kernel::{argument, idle_kernel, new_kernel, pointer};
use crate::{
    ask,
    bench::{Bench, Usm, exists, word},
    case::{Case, Stop, Verdict},
    cases, must,
    raw::Word,
    same,
};
use std::{
    ffi::c_void,
    ptr::{null, null_mut},
};
use ur_device_command_buffer_update_capability_flags_t as Can;
use ur_sys::*;

pub fn cases() -> Vec<Case> {
    cases! { "command_buffer";
        "urCommandBufferAppendKernelLaunchWithArgsExp", "recorded launches run", "a recorded launch runs each time the buffer does", runs;
        "urCommandBufferUpdateKernelLaunchExp", "a launch can be changed", "a launch that was given another array writes there from then on", updated;
        "urCommandBufferUpdateKernelLaunchExp", "the arguments of a kernel are its own", "a kernel in the place of another has no argument of that one, which has its own when it comes back", swapped;
        "urCommandBufferUpdateKernelLaunchExp", "UR_RESULT_ERROR_INVALID_NULL_HANDLE if null == update_kernel_launch.hCommand", "an update without a command is INVALID_NULL_HANDLE, whatever the buffer is", no_command;
        "urCommandBufferUpdateKernelLaunchExp", "UR_RESULT_ERROR_INVALID_OPERATION: the command buffer is still open for recording, not finalized", "an update before the end of recording is INVALID_OPERATION", too_early;
        "urCommandBufferUpdateKernelLaunchExp", "UR_RESULT_ERROR_INVALID_OPERATION: the command buffer was not created as updatable", "a buffer that was not made to be changed is not", not_updatable;
        "urCommandBufferUpdateKernelLaunchExp", "UR_RESULT_ERROR_INVALID_COMMAND_BUFFER_COMMAND_HANDLE_EXP: an update names a command belonging to another command buffer", "a command of another buffer is not changed", other_buffer;
        "urCommandBufferAppendKernelLaunchExp", "UR_RESULT_ERROR_INVALID_VALUE: the main kernel is also listed among its alternatives", "a kernel is no alternative to itself", own_alternative;
    }
}
type Buffer = ur_exp_command_buffer_handle_t;
type Command = ur_exp_command_buffer_command_handle_t;
type Desc = ur_exp_command_buffer_update_kernel_launch_desc_t;
const LAUNCH: &str = "urCommandBufferAppendKernelLaunchWithArgsExp";

pub fn new(b: &Bench, is_updatable: bool) -> Verdict<Buffer> {
    b.needs(ur_device_info_t::COMMAND_BUFFER_SUPPORT_EXP)?;
    let desc = ur_exp_command_buffer_desc_t {
        stype: ur_structure_type_t::EXP_COMMAND_BUFFER_DESC,
        pNext: null(),
        isUpdatable: is_updatable.into(),
        isInOrder: 1,
        enableProfiling: 0,
    };
    let (context, device, mut made) = (b.context()?, b.device()?, Buffer::NULL);
    must!(b, command_buffer_exp.create_exp(context, device, &desc, &mut made));
    exists(made.0)?;
    Ok(made)
}
/// Records a launch that adds 1 to the first eight numbers at `at`; returns its command if the buffer is
/// updatable.
fn record(b: &Bench, buffer: Buffer, at: *mut c_void, is_updatable: bool) -> Verdict<Command> {
    let kernel = new_kernel(b)?;
    let command = record_of(b, buffer, (kernel, &[]), at, is_updatable)?;
    must!(b, kernel.release(kernel));
    Ok(command)
}
/// Records the same launch with alternative kernels that can replace its kernel.
fn record_of(
    b: &Bench,
    buffer: Buffer,
    (kernel, alternatives): (ur_kernel_handle_t, &[ur_kernel_handle_t]),
    at: *mut c_void,
    is_updatable: bool,
) -> Verdict<Command> {
    let (global, value) = ([8_usize, 1, 1], 1_u32);
    let value = ur_exp_kernel_arg_value_t { value: (&raw const value).cast() };
    let arguments = [pointer(at), argument(1, ur_exp_kernel_arg_type_t::VALUE, value)];
    let mut command = Command::NULL;
    let mut words = vec![word(buffer.0), word(kernel.0), Word::One(1), Word::One(0)];
    words.extend([word(global.as_ptr().cast()), Word::One(0), Word::One(2)]);
    words.push(word(arguments.as_ptr().cast()));
    match alternatives {
        [] => words.extend([Word::One(0), Word::One(0)]),
        some => words.extend([Word::One(some.len() as u64), word(some.as_ptr().cast())]),
    }
    words.extend([0; 6].map(Word::One)); // no wait lists, no sync point, no event
    words.push(if is_updatable { word((&raw mut command).cast()) } else { Word::One(0) });
    let code = b.adapter.call(LAUNCH, &words);
    b.succeeded(LAUNCH, code.ok_or_else(|| Stop::skipped(format!("{LAUNCH} is null")))?)?;
    if is_updatable {
        exists(command.0)?;
    }
    Ok(command)
}
fn array(b: &Bench) -> Verdict<*mut c_void> {
    let at = b.alloc(Usm::Device, 64)?;
    b.write(at, &[0; 64])?;
    Ok(at)
}
fn run(b: &Bench, buffer: Buffer) -> Verdict {
    let queue = b.queue()?;
    must!(b, enqueue_exp.command_buffer_exp(queue, buffer, 0, null(), null_mut()));
    b.finish(queue)
}
fn holds(b: &Bench, at: *mut c_void, number: u8) -> Verdict {
    let expected: Vec<_> = (0..64).map(|n| if n < 32 && n % 4 == 0 { number } else { 0 }).collect();
    same!(b.read(at, 64)?, expected, "what the launches wrote");
    Ok(())
}
/// Updates the first argument to another array; returns the code.
fn update(b: &Bench, buffer: Buffer, command: Command, at: *mut c_void) -> Verdict<ur_result_t> {
    let pointer = ur_exp_command_buffer_update_pointer_arg_desc_t {
        stype: ur_structure_type_t::EXP_COMMAND_BUFFER_UPDATE_POINTER_ARG_DESC,
        pNext: null(),
        argIndex: 0,
        pProperties: null(),
        // The address of the pointer, as in `urKernelSetArgPointer`.
        pNewPointerArg: (&raw const at).cast(),
    };
    let desc = Desc { numNewPointerArgs: 1, pNewPointerArgList: &pointer, ..nothing_new(command) };
    Ok(ask!(b, command_buffer_exp.update_kernel_launch_exp(buffer, 1, &desc)))
}
/// An update that changes nothing.
fn nothing_new(command: Command) -> Desc {
    Desc {
        stype: ur_structure_type_t::EXP_COMMAND_BUFFER_UPDATE_KERNEL_LAUNCH_DESC,
        pNext: null(),
        hCommand: command,
        hNewKernel: ur_kernel_handle_t::NULL,
        numNewMemObjArgs: 0,
        numNewPointerArgs: 0,
        numNewValueArgs: 0,
        newWorkDim: 1,
        pNewMemObjArgList: null(),
        pNewPointerArgList: null(),
        pNewValueArgList: null(),
        pNewGlobalWorkOffset: null_mut(),
        pNewGlobalWorkSize: null_mut(),
        pNewLocalWorkSize: null_mut(),
    }
}
fn release(b: &Bench, buffer: Buffer) -> Verdict {
    must!(b, command_buffer_exp.release_exp(buffer));
    Ok(())
}
fn runs(b: &Bench) -> Verdict {
    let (buffer, at) = (new(b, false)?, array(b)?);
    record(b, buffer, at, false)?;
    must!(b, command_buffer_exp.finalize_exp(buffer));
    for times in 1..=3 {
        run(b, buffer)?;
        holds(b, at, times)?;
    }
    release(b, buffer)
}
/// Skips the case unless the device can update arguments.
fn can_update(b: &Bench) -> Verdict {
    can(b, Can::KERNEL_ARGUMENTS)
}
fn can(b: &Bench, what: Can) -> Verdict {
    b.needs(ur_device_info_t::COMMAND_BUFFER_SUPPORT_EXP)?;
    let (device, name) = (b.device()?, ur_device_info_t::COMMAND_BUFFER_UPDATE_CAPABILITIES_EXP);
    let can = Can(crate::info!(b, device.get_info(device, name), u32));
    match can.contains(what) {
        true => Ok(()),
        false => Err(Stop::skipped(format!("the device lets nobody change {what:?}"))),
    }
}
/// Replaces a kernel with two arguments by one without any.
fn swapped(b: &Bench) -> Verdict {
    can(b, Can::KERNEL_ARGUMENTS | Can::KERNEL_HANDLE)?;
    let (buffer, at, adds, idle) = (new(b, true)?, array(b)?, new_kernel(b)?, idle_kernel(b)?);
    let command = record_of(b, buffer, (adds, &[idle]), at, true)?;
    must!(b, command_buffer_exp.finalize_exp(buffer));
    run(b, buffer)?;
    let desc = Desc { hNewKernel: idle, ..nothing_new(command) };
    must!(b, command_buffer_exp.update_kernel_launch_exp(buffer, 1, &desc));
    run(b, buffer)?;
    holds(b, at, 1)?;
    let five = 5_u32;
    let value = ur_exp_command_buffer_update_value_arg_desc_t {
        stype: ur_structure_type_t::EXP_COMMAND_BUFFER_UPDATE_VALUE_ARG_DESC,
        pNext: null(),
        argIndex: 1,
        argSize: 4,
        pProperties: null(),
        pNewValueArg: (&raw const five).cast(),
    };
    let values = Desc { numNewValueArgs: 1, pNewValueArgList: &value, ..desc };
    let back = Desc { hNewKernel: adds, ..values };
    must!(b, command_buffer_exp.update_kernel_launch_exp(buffer, 1, &back));
    run(b, buffer)?;
    holds(b, at, 6)?;
    for kernel in [adds, idle] {
        must!(b, kernel.release(kernel));
    }
    release(b, buffer)
}
fn no_command(b: &Bench) -> Verdict {
    can_update(b)?;
    let (at, kernel) = (array(b)?, new_kernel(b)?);
    for is_updatable in [true, false] {
        let buffer = new(b, is_updatable)?;
        let command = record_of(b, buffer, (kernel, &[]), at, is_updatable)?;
        must!(b, command_buffer_exp.finalize_exp(buffer));
        // Alone, and after a valid update.
        let none = nothing_new(Command::NULL);
        let both = [nothing_new(command), none];
        for all in [&[none][..], &both] {
            let n = all.len() as u32;
            let code =
                ask!(b, command_buffer_exp.update_kernel_launch_exp(buffer, n, all.as_ptr()));
            same!(code, ur_result_t::ERROR_INVALID_NULL_HANDLE, "{n} updates of {is_updatable}");
        }
        release(b, buffer)?;
    }
    must!(b, kernel.release(kernel));
    Ok(())
}
fn updated(b: &Bench) -> Verdict {
    can_update(b)?;
    let (buffer, one, two) = (new(b, true)?, array(b)?, array(b)?);
    let command = record(b, buffer, one, true)?;
    must!(b, command_buffer_exp.finalize_exp(buffer));
    run(b, buffer)?;
    let code = update(b, buffer, command, two)?;
    b.succeeded("urCommandBufferUpdateKernelLaunchExp", code)?;
    run(b, buffer)?;
    run(b, buffer)?;
    holds(b, one, 1)?;
    holds(b, two, 2)?;
    release(b, buffer)
}
const REFUSED: ur_result_t = ur_result_t::ERROR_INVALID_OPERATION;

fn too_early(b: &Bench) -> Verdict {
    can_update(b)?;
    let (buffer, one, two) = (new(b, true)?, array(b)?, array(b)?);
    let command = record(b, buffer, one, true)?;
    same!(update(b, buffer, command, two)?, REFUSED, "the update");
    must!(b, command_buffer_exp.finalize_exp(buffer));
    run(b, buffer)?;
    holds(b, one, 1)?;
    release(b, buffer)
}
fn not_updatable(b: &Bench) -> Verdict {
    can_update(b)?;
    let (fixed, other, one, two) = (new(b, false)?, new(b, true)?, array(b)?, array(b)?);
    record(b, fixed, one, false)?;
    // Only updatable buffers return a command handle.
    let command = record(b, other, two, true)?;
    for buffer in [fixed, other] {
        must!(b, command_buffer_exp.finalize_exp(buffer));
    }
    same!(update(b, fixed, command, two)?, REFUSED, "the update");
    run(b, fixed)?;
    holds(b, one, 1)?;
    release(b, fixed)?;
    release(b, other)
}
fn other_buffer(b: &Bench) -> Verdict {
    can_update(b)?;
    let (mine, other, one, two) = (new(b, true)?, new(b, true)?, array(b)?, array(b)?);
    record(b, mine, one, true)?;
    let command = record(b, other, two, true)?;
    for buffer in [mine, other] {
        must!(b, command_buffer_exp.finalize_exp(buffer));
    }
    let expected = ur_result_t::ERROR_INVALID_COMMAND_BUFFER_COMMAND_HANDLE_EXP;
    same!(update(b, mine, command, one)?, expected, "the update");
    run(b, other)?;
    holds(b, two, 1)?;
    release(b, mine)?;
    release(b, other)
}
fn own_alternative(b: &Bench) -> Verdict {
    let (buffer, kernel, global) = (new(b, true)?, idle_kernel(b)?, [1_usize; 3]);
    let alternatives = [kernel];
    let mut words = vec![word(buffer.0), word(kernel.0), Word::One(1), Word::One(0)];
    words.extend([word(global.as_ptr().cast()), Word::One(0), Word::One(1)]);
    words.push(word(alternatives.as_ptr().cast()));
    words.extend([0; 7].map(Word::One));
    let code = b.adapter.call("urCommandBufferAppendKernelLaunchExp", &words);
    let code = code.ok_or_else(|| Stop::skipped("the entry is null"))?;
    b.was_refused("urCommandBufferAppendKernelLaunchExp", code, ur_result_t::ERROR_INVALID_VALUE)?;
    must!(b, kernel.release(kernel));
    release(b, buffer)
}
