//! Updates of recorded commands: those that are allowed, those that are refused, and those that the device
//! does not support.
use super::{
    kernel::{idle_kernel, new_kernel},
    recorded_kernels::new,
};
use crate::{
    ask,
    bench::{Bench, Usm, exists, word},
    case::{Case, Stop, Verdict},
    cases, ensure, info, must,
    raw::Word,
    refused, same,
};
use std::ptr::{null, null_mut};
use ur_device_command_buffer_update_capability_flags_t as Can;
use ur_sys::*;

pub fn cases() -> Vec<Case> {
    let mut all = cases! { "command_buffer";
        "urCommandBufferAppendKernelLaunchWithArgsExp", "UR_RESULT_ERROR_INVALID_VALUE: the main kernel is also listed among its alternatives", "a kernel is no alternative to itself", own_alternative;
        "urCommandBufferUpdateKernelLaunchExp", "UR_RESULT_ERROR_INVALID_COMMAND_BUFFER_COMMAND_HANDLE_EXP: an update names a command that does not launch a kernel", "a fill is not changed as a launch", not_a_launch;
        "urCommandBufferUpdateKernelLaunchExp", "UR_RESULT_ERROR_INVALID_SIZE if num_kernel_updates == 0", "no updates are INVALID_SIZE", none;
        "urCommandBufferUpdateKernelLaunchExp", "UR_RESULT_ERROR_INVALID_WORK_DIMENSION: a new dimension count lies outside one to three", "no dimensions and four are INVALID_WORK_DIMENSION", dimensions;
        "urCommandBufferUpdateKernelLaunchExp", "UR_RESULT_ERROR_INVALID_VALUE: a new kernel was not among those named when the command was appended", "a kernel that was not named is INVALID_VALUE, and one that was is taken", unnamed_kernel;
        "urCommandBufferUpdateKernelLaunchExp", "UR_RESULT_ERROR_INVALID_VALUE: the dimension count changes without both a new global size and offset", "two dimensions without sizes are INVALID_VALUE", sizes_missing;
        "urCommandBufferUpdateSignalEventExp", "a fresh event in the place of the command's", "a new event is complete when the buffer has run", new_event;
        "urCommandBufferUpdateSignalEventExp", "UR_RESULT_ERROR_INVALID_OPERATION: the command's buffer was not created as updatable", "a buffer that cannot be changed gives no command, or no new event", fixed_signal;
        "urCommandBufferUpdateSignalEventExp", "UR_RESULT_ERROR_INVALID_OPERATION: the command's buffer has not yet been finalized", "a new event before the end of recording is INVALID_OPERATION", early_signal;
        "urCommandBufferUpdateSignalEventExp", "UR_RESULT_ERROR_INVALID_OPERATION: the command was appended without asking for an event", "a command without an event gets none", no_event;
        "urCommandBufferUpdateWaitEventsExp", "other events to wait for", "a buffer waits for the events that it was given last", new_waits;
        "urCommandBufferUpdateWaitEventsExp", "UR_RESULT_ERROR_INVALID_OPERATION: the command's buffer was not created as updatable", "a buffer that cannot be changed gives no command, or waits for no others", fixed_waits;
        "urCommandBufferUpdateWaitEventsExp", "UR_RESULT_ERROR_INVALID_OPERATION: the command's buffer has not yet been finalized", "other events before the end of recording are INVALID_OPERATION", early_waits;
        "urCommandBufferUpdateWaitEventsExp", "UR_RESULT_ERROR_INVALID_EVENT_WAIT_LIST: the wait list's length differs from the one at the command's creation", "more events than before are INVALID_EVENT_WAIT_LIST", more_waits;
    };
    for (index, (words, ..)) in LACKED.iter().enumerate() {
        let rule = format!("UR_RESULT_ERROR_UNSUPPORTED_FEATURE: {words}");
        let name = format!("UNSUPPORTED_FEATURE where {words}");
        let entry = "urCommandBufferUpdateKernelLaunchExp";
        all.push(Case::new("command_buffer", entry, rule, name, move |b| lacked(b, index)));
    }
    all
}
type Buffer = ur_exp_command_buffer_handle_t;
type Command = ur_exp_command_buffer_command_handle_t;
type Desc = ur_exp_command_buffer_update_kernel_launch_desc_t;
const LAUNCH: &str = "urCommandBufferAppendKernelLaunchWithArgsExp";
static SIZES: [usize; 3] = [1; 3];

fn release(b: &Bench, buffer: Buffer) -> Verdict {
    must!(b, command_buffer_exp.release_exp(buffer));
    Ok(())
}
fn finalize(b: &Bench, buffer: Buffer) -> Verdict {
    must!(b, command_buffer_exp.finalize_exp(buffer));
    Ok(())
}
/// The parameters for appending a launch of a kernel that does nothing.
#[derive(Default)]
struct Appended<'a> {
    alternatives: &'a [ur_kernel_handle_t],
    waits: &'a [ur_event_handle_t],
    wants_event: bool,
}
impl Appended<'_> {
    fn code(
        &self,
        b: &Bench,
        buffer: Buffer,
        kernel: ur_kernel_handle_t,
    ) -> Verdict<(ur_result_t, Command, ur_event_handle_t)> {
        let list = |n: usize, at: *const std::ffi::c_void| match n {
            0 => [Word::One(0), Word::One(0)],
            n => [Word::One(n as u64), word(at)],
        };
        let (mut command, mut event) = (Command::NULL, ur_event_handle_t::NULL);
        let mut words = vec![word(buffer.0), word(kernel.0), Word::One(1), Word::One(0)];
        words.extend([word(SIZES.as_ptr().cast()), Word::One(0), Word::One(0), Word::One(0)]);
        words.extend(list(self.alternatives.len(), self.alternatives.as_ptr().cast()));
        words.extend([Word::One(0), Word::One(0)]);
        words.extend(list(self.waits.len(), self.waits.as_ptr().cast()));
        let to_event = if self.wants_event { word((&raw mut event).cast()) } else { Word::One(0) };
        words.extend([Word::One(0), to_event, word((&raw mut command).cast())]);
        let code = b.adapter.call(LAUNCH, &words);
        Ok((code.ok_or_else(|| Stop::skipped(format!("{LAUNCH} is null")))?, command, event))
    }
    fn to(&self, b: &Bench, buffer: Buffer) -> Verdict<(Command, ur_event_handle_t)> {
        let kernel = idle_kernel(b)?;
        let (code, command, event) = self.code(b, buffer, kernel)?;
        b.succeeded(LAUNCH, code)?;
        must!(b, kernel.release(kernel));
        exists(command.0)?;
        Ok((command, event))
    }
}
fn desc(command: Command) -> Desc {
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
fn update(b: &Bench, buffer: Buffer, desc: &Desc) -> Verdict<ur_result_t> {
    Ok(ask!(b, command_buffer_exp.update_kernel_launch_exp(buffer, 1, desc)))
}
fn capabilities(b: &Bench) -> Verdict<Can> {
    b.needs(ur_device_info_t::COMMAND_BUFFER_SUPPORT_EXP)?;
    let (device, name) = (b.device()?, ur_device_info_t::COMMAND_BUFFER_UPDATE_CAPABILITIES_EXP);
    Ok(Can(info!(b, device.get_info(device, name), u32)))
}
/// Skips the case unless the device can update this.
fn can(b: &Bench, what: Can) -> Verdict {
    match capabilities(b)?.contains(what) {
        true => Ok(()),
        false => Err(Stop::skipped(format!("the device lets nobody change {what:?}"))),
    }
}
fn any(b: &Bench) -> Verdict {
    match capabilities(b)?.0 {
        0 => Err(Stop::skipped("the device lets nothing be changed")),
        _ => Ok(()),
    }
}
fn own_alternative(b: &Bench) -> Verdict {
    any(b)?;
    let (buffer, kernel) = (new(b, true)?, idle_kernel(b)?);
    let how = Appended { alternatives: &[kernel], ..Appended::default() };
    let (code, command, _) = how.code(b, buffer, kernel)?;
    b.was_refused(LAUNCH, code, ur_result_t::ERROR_INVALID_VALUE)?;
    ensure!(command.is_null(), "the result is written to");
    must!(b, kernel.release(kernel));
    release(b, buffer)
}
fn not_a_launch(b: &Bench) -> Verdict {
    any(b)?;
    let (buffer, at, pattern) = (new(b, true)?, b.alloc(Usm::Device, 64)?, 1_u8);
    let mut command = Command::NULL;
    let mut words = vec![word(buffer.0), word(at), word((&raw const pattern).cast())];
    words.extend([1, 64, 0, 0, 0, 0, 0, 0].map(Word::One));
    words.push(word((&raw mut command).cast()));
    let name = "urCommandBufferAppendUSMFillExp";
    let code = b.adapter.call(name, &words);
    b.succeeded(name, code.ok_or_else(|| Stop::skipped(format!("{name} is null")))?)?;
    exists(command.0)?;
    finalize(b, buffer)?;
    let expected = ur_result_t::ERROR_INVALID_COMMAND_BUFFER_COMMAND_HANDLE_EXP;
    same!(update(b, buffer, &desc(command))?, expected, "the update");
    release(b, buffer)?;
    b.free(at)
}
/// A finalized command buffer with a launch that can be updated.
fn recorded(b: &Bench) -> Verdict<(Buffer, Command)> {
    any(b)?;
    let buffer = new(b, true)?;
    let (command, _) = Appended::default().to(b, buffer)?;
    finalize(b, buffer)?;
    Ok((buffer, command))
}
fn none(b: &Bench) -> Verdict {
    let (buffer, command) = recorded(b)?;
    let desc = desc(command);
    refused!(b, ERROR_INVALID_SIZE, command_buffer_exp.update_kernel_launch_exp(buffer, 0, &desc));
    release(b, buffer)
}
fn dimensions(b: &Bench) -> Verdict {
    can(b, Can::GLOBAL_WORK_SIZE | Can::GLOBAL_WORK_OFFSET)?;
    let (buffer, command) = recorded(b)?;
    for n in [0, 4] {
        let code = update(b, buffer, &Desc { newWorkDim: n, ..desc(command) })?;
        same!(code, ur_result_t::ERROR_INVALID_WORK_DIMENSION, "{n} dimensions");
    }
    release(b, buffer)
}
fn unnamed_kernel(b: &Bench) -> Verdict {
    can(b, Can::KERNEL_HANDLE)?;
    let (buffer, named, stranger) = (new(b, true)?, idle_kernel(b)?, new_kernel(b)?);
    let how = Appended { alternatives: &[named], ..Appended::default() };
    let (command, _) = how.to(b, buffer)?;
    finalize(b, buffer)?;
    let code = update(b, buffer, &Desc { hNewKernel: stranger, ..desc(command) })?;
    same!(code, ur_result_t::ERROR_INVALID_VALUE, "a kernel that was not named");
    let code = update(b, buffer, &Desc { hNewKernel: named, ..desc(command) })?;
    same!(code, ur_result_t::SUCCESS, "a kernel that was named");
    for kernel in [named, stranger] {
        must!(b, kernel.release(kernel));
    }
    release(b, buffer)
}
fn sizes_missing(b: &Bench) -> Verdict {
    can(b, Can::GLOBAL_WORK_SIZE | Can::GLOBAL_WORK_OFFSET)?;
    let (buffer, command) = recorded(b)?;
    let mut sizes = SIZES;
    let at = sizes.as_mut_ptr();
    for (offset, global) in [(null_mut(), null_mut()), (at, null_mut()), (null_mut(), at)] {
        let desc = Desc {
            newWorkDim: 2,
            pNewGlobalWorkOffset: offset,
            pNewGlobalWorkSize: global,
            ..desc(command)
        };
        same!(update(b, buffer, &desc)?, ur_result_t::ERROR_INVALID_VALUE, "the update");
    }
    release(b, buffer)
}

/// The end of the rule's text, the capability that the device may lack, and an update that needs it.
type Lacked = (&'static str, Can, fn(&mut Desc, *mut usize, ur_kernel_handle_t));
const LACKED: [Lacked; 6] = [
    (
        "new kernel arguments are given but the device cannot update arguments",
        Can::KERNEL_ARGUMENTS,
        |desc, _, _| desc.numNewValueArgs = 1,
    ),
    (
        "a new local size is given but the device cannot update it",
        Can::LOCAL_WORK_SIZE,
        |desc, at, _| desc.pNewLocalWorkSize = at,
    ),
    (
        "a global but no local size is given; device cannot update local sizes",
        Can::LOCAL_WORK_SIZE,
        |desc, at, _| desc.pNewGlobalWorkSize = at,
    ),
    (
        "a new global size is given but the device cannot update it",
        Can::GLOBAL_WORK_SIZE,
        |desc, at, _| desc.pNewGlobalWorkSize = at,
    ),
    (
        "a new global offset is given but the device cannot update offsets",
        Can::GLOBAL_WORK_OFFSET,
        |desc, at, _| desc.pNewGlobalWorkOffset = at,
    ),
    (
        "a new kernel is given but the device cannot swap kernels",
        Can::KERNEL_HANDLE,
        |desc, _, kernel| desc.hNewKernel = kernel,
    ),
];
fn lacked(b: &Bench, index: usize) -> Verdict {
    let (_, what, spoil) = LACKED[index];
    if capabilities(b)?.contains(what) {
        return Err(Stop::skipped(format!("the device has it: {what:?} may be changed")));
    }
    let (buffer, command) = recorded(b)?;
    let (kernel, mut sizes, value) = (idle_kernel(b)?, SIZES, 1_u32);
    let argument = ur_exp_command_buffer_update_value_arg_desc_t {
        stype: ur_structure_type_t::EXP_COMMAND_BUFFER_UPDATE_VALUE_ARG_DESC,
        pNext: null(),
        argIndex: 0,
        argSize: 4,
        pProperties: null(),
        pNewValueArg: (&raw const value).cast(),
    };
    let mut desc = desc(command);
    spoil(&mut desc, sizes.as_mut_ptr(), kernel);
    if desc.numNewValueArgs > 0 {
        desc.pNewValueArgList = &argument;
    }
    same!(update(b, buffer, &desc)?, ur_result_t::ERROR_UNSUPPORTED_FEATURE, "the update");
    must!(b, kernel.release(kernel));
    release(b, buffer)
}

fn can_events(b: &Bench) -> Verdict {
    can(b, Can::EVENTS)?;
    b.needs(ur_device_info_t::COMMAND_BUFFER_EVENT_SUPPORT_EXP)
}
const WITH_EVENT: Appended<'static> = Appended { alternatives: &[], waits: &[], wants_event: true };

fn fresh(b: &Bench, command: Command) -> Verdict<(ur_result_t, ur_event_handle_t)> {
    let mut event = ur_event_handle_t::NULL;
    Ok((ask!(b, command_buffer_exp.update_signal_event_exp(command, &mut event)), event))
}
fn run(b: &Bench, buffer: Buffer) -> Verdict {
    let queue = b.queue()?;
    must!(b, enqueue_exp.command_buffer_exp(queue, buffer, 0, null(), null_mut()));
    Ok(())
}
fn new_event(b: &Bench) -> Verdict {
    can_events(b)?;
    let buffer = new(b, true)?;
    let (command, old) = WITH_EVENT.to(b, buffer)?;
    finalize(b, buffer)?;
    let (code, event) = fresh(b, command)?;
    b.succeeded("urCommandBufferUpdateSignalEventExp", code)?;
    ensure!(!event.is_null() && event != old, "{event:?} in the place of {old:?}");
    let gate = b.gate(b.queue()?)?;
    run(b, buffer)?;
    b.meanwhile()?;
    let early = b.status(event.0)?;
    ensure!(early != ur_event_status_t::COMPLETE, "complete before the buffer has run");
    gate.open();
    b.wait(&[event.0])?;
    for event in [event, old] {
        must!(b, event.release(event));
    }
    release(b, buffer)
}
/// A command buffer that is not updatable, and its command if the append returned one.
fn fixed(b: &Bench) -> Verdict<(Buffer, Option<Command>)> {
    can_events(b)?;
    let (buffer, kernel) = (new(b, false)?, idle_kernel(b)?);
    let (code, command, event) = WITH_EVENT.code(b, buffer, kernel)?;
    must!(b, kernel.release(kernel));
    if code == ur_result_t::SUCCESS {
        must!(b, event.release(event));
        finalize(b, buffer)?;
        return Ok((buffer, Some(command)));
    }
    b.was_refused(LAUNCH, code, ur_result_t::ERROR_INVALID_OPERATION)?;
    ensure!(command.is_null() && event.is_null(), "the results are written to");
    Ok((buffer, None))
}
fn fixed_signal(b: &Bench) -> Verdict {
    let (buffer, command) = fixed(b)?;
    if let Some(command) = command {
        let (code, event) = fresh(b, command)?;
        same!(code, ur_result_t::ERROR_INVALID_OPERATION, "a new event");
        ensure!(event.is_null(), "the result is written to");
    }
    release(b, buffer)
}
fn early_signal(b: &Bench) -> Verdict {
    can_events(b)?;
    let buffer = new(b, true)?;
    let (command, event) = WITH_EVENT.to(b, buffer)?;
    let (code, new) = fresh(b, command)?;
    same!(code, ur_result_t::ERROR_INVALID_OPERATION, "a new event");
    ensure!(new.is_null(), "the result is written to");
    must!(b, event.release(event));
    release(b, buffer)
}
fn no_event(b: &Bench) -> Verdict {
    can_events(b)?;
    let (buffer, command) = recorded(b)?;
    let (code, event) = fresh(b, command)?;
    same!(code, ur_result_t::ERROR_INVALID_OPERATION, "a new event");
    ensure!(event.is_null(), "the result is written to");
    release(b, buffer)
}
fn waiting(b: &Bench, buffer: Buffer) -> Verdict<Command> {
    let first = ur_event_handle_t(b.object("Event")?);
    let (command, _) = Appended { waits: &[first], ..Appended::default() }.to(b, buffer)?;
    Ok(command)
}
fn new_waits(b: &Bench) -> Verdict {
    can_events(b)?;
    let (buffer, other) = (new(b, true)?, b.new_queue(ur_queue_flags_t::default())?);
    let command = waiting(b, buffer)?;
    finalize(b, buffer)?;
    let gate = b.gate(other)?;
    let held = ur_event_handle_t(b.follow(other, &[])?);
    must!(b, command_buffer_exp.update_wait_events_exp(command, 1, &held));
    run(b, buffer)?;
    let after = b.follow(b.queue()?, &[])?;
    b.meanwhile()?;
    let early = b.status(after)?;
    ensure!(early != ur_event_status_t::COMPLETE, "the buffer did not wait");
    gate.open();
    b.wait(&[after])?;
    for event in [held, ur_event_handle_t(after)] {
        must!(b, event.release(event));
    }
    must!(b, queue.release(other));
    release(b, buffer)
}
fn fixed_waits(b: &Bench) -> Verdict {
    let (buffer, command) = fixed(b)?;
    let event = ur_event_handle_t(b.object("Event")?);
    if let Some(command) = command {
        refused!(
            b,
            ERROR_INVALID_OPERATION,
            command_buffer_exp.update_wait_events_exp(command, 1, &event)
        );
    }
    release(b, buffer)
}
fn early_waits(b: &Bench) -> Verdict {
    can_events(b)?;
    let (buffer, event) = (new(b, true)?, ur_event_handle_t(b.object("Event")?));
    let command = waiting(b, buffer)?;
    refused!(
        b,
        ERROR_INVALID_OPERATION,
        command_buffer_exp.update_wait_events_exp(command, 1, &event)
    );
    release(b, buffer)
}
fn more_waits(b: &Bench) -> Verdict {
    can_events(b)?;
    let (buffer, event) = (new(b, true)?, ur_event_handle_t(b.object("Event")?));
    let (command, two) = (waiting(b, buffer)?, [event; 2]);
    finalize(b, buffer)?;
    refused!(
        b,
        ERROR_INVALID_EVENT_WAIT_LIST,
        command_buffer_exp.update_wait_events_exp(command, 2, two.as_ptr())
    );
    release(b, buffer)
}
