//! Programs. The code depends on the backend. For native CPU devices the suite has a table of its own
//! functions, which is a binary by that backend's convention; for CUDA devices PTX; for Level Zero and OpenCL
//! devices SPIR-V, or OpenCL C for OpenCL devices without SPIR-V. Cases are skipped on other devices.
#![expect(unsafe_code, reason = "kernels are functions that are called as C code")]
use super::spirv;
use crate::{
    ask,
    bench::{Bench, word},
    case::{Case, Stop, Verdict},
    cases, ensure, info, must, refused, same,
};
use std::{
    ffi::{CStr, c_char, c_void},
    ptr::{null, null_mut},
};
use ur_sys::*;

pub fn cases() -> Vec<Case> {
    cases! { "program";
        "urProgramCreateWithBinary, urProgramGetInfo", "UR_PROGRAM_INFO_CONTEXT, _NUM_DEVICES, _DEVICES", "a program says its context and devices", facts;
        "urProgramGetInfo", "UR_PROGRAM_INFO_NUM_KERNELS and _KERNEL_NAMES", "a built program lists its kernels", kernels;
        "urProgramGetBuildInfo", "UR_PROGRAM_BUILD_INFO_STATUS", "the status of a built program is success", status;
        "urProgramCreateWithBinary", "UR_RESULT_ERROR_INVALID_NATIVE_BINARY: a binary does not fit the device listed at its position", "bytes that are no binary are refused, at the latest when they are built", garbage;
        "urProgramCreateWithIL", "UR_RESULT_ERROR_COMPILER_NOT_AVAILABLE: the context's devices cannot compile IL at run time; INVALID_BINARY: the IL is not a usable binary for the context's devices", "intermediate code that is none is refused", no_il;
        "urProgramGetFunctionPointer", "UR_RESULT_ERROR_INVALID_KERNEL_NAME: the program holds no function of that name", "a function that is not there is INVALID_KERNEL_NAME", no_function;
        "urProgramGetGlobalVariablePointer", "UR_RESULT_ERROR_INVALID_VALUE: the program has no variable of that name", "a variable that is not there is INVALID_VALUE", no_variable;
        "urProgramGetGlobalVariablePointer", "the size of the variable", "a variable of a program has its address and its size", variable;
        "urEnqueueDeviceGlobalVariableRead", "a copy that was enqueued before", "a copy of a variable is made though its program is built anew meanwhile", variable_kept;
        "urEnqueueDeviceGlobalVariableWrite, urEnqueueDeviceGlobalVariableRead", "writes and reads a program's variable", "a variable is as the program says at first, and then as it was written", variable_written;
        "urProgramRelease", "a program keeps its context", "a program answers after its context was released", outlives;
        "urProgramBuild", "a program may be built with options", "options that mean nothing to anybody do no harm or are a build failure", options;
    }
}

/// An entry of a table of functions; a null function ends the table.
#[repr(C)]
struct Pair(*const c_char, Option<unsafe extern "C" fn(*const *mut c_void, *const [usize; 3])>);
// SAFETY: the pointers are to constants.
unsafe impl Sync for Pair {}

/// The suite's kernels for native CPU devices, in alphabetical order.
static TABLE: [Pair; 3] =
    [Pair(c"add".as_ptr(), Some(add)), Pair(c"x".as_ptr(), Some(nothing)), Pair(null(), None)];
/// Another kernel `x`, which cannot be linked with the first.
static OTHER: [Pair; 2] = [Pair(c"x".as_ptr(), Some(add)), Pair(null(), None)];

/// Adds the second argument, a number, to the work item's element of the first argument, an array.
unsafe extern "C" fn add(arguments: *const *mut c_void, global_id: *const [usize; 3]) {
    // SAFETY: the suite launches `add` with two arguments.
    let array = unsafe { *arguments }.cast::<u32>();
    let second = arguments.wrapping_add(1);
    // SAFETY: as above.
    let value = unsafe { *second }.cast::<u32>();
    // SAFETY: the second argument is a copy of a number, which this pointer points at.
    let value = unsafe { *value };
    // SAFETY: the item's global id is at the beginning of the state.
    let id = unsafe { *global_id };
    let at = array.wrapping_add(id[0] + 16 * id[1] + 256 * id[2]);
    // SAFETY: the index is inside the array, and no other work item has the same element.
    unsafe { *at += value };
}
extern "C" fn nothing(_: *const *mut c_void, _: *const [usize; 3]) {}

const PTX: &str = concat!(include_str!("kernels.ptx"), "\0");
const RIVAL: &str = concat!(include_str!("rival.ptx"), "\0");

/// The kernels of `spirv.rs`, in OpenCL C.
const OPENCL_C: &str = "
kernel void add(global uint *array, uint value) {
    array[get_global_id(0) + 16 * get_global_id(1) + 256 * get_global_id(2)] += value;
}
kernel void x(void) {}
";
const OPENCL_C_RIVAL: &str = "kernel void x(void) {}\n";

/// Code for a device: a binary with its address and size, SPIR-V, or OpenCL C.
enum Code {
    Binary(*const u8, usize),
    Il(Vec<u32>),
    Text(&'static str),
}
/// Returns the suite's code for the device, and other code that also defines `x`.
fn codes(b: &Bench) -> Verdict<[Code; 2]> {
    let (device, platform) = (b.device()?, b.platform()?);
    let backend = info!(b, platform.get_info(platform, ur_platform_info_t::BACKEND), u32);
    let kind = info!(b, device.get_info(device, ur_device_info_t::TYPE), u32);
    match (ur_backend_t(backend), ur_device_type_t(kind)) {
        (ur_backend_t::NATIVE_CPU, ur_device_type_t::CPU) => Ok([
            Code::Binary(TABLE.as_ptr().cast(), size_of_val(&TABLE)),
            Code::Binary(OTHER.as_ptr().cast(), size_of_val(&OTHER)),
        ]),
        (ur_backend_t::CUDA, _) => {
            Ok([PTX, RIVAL].map(|text| Code::Binary(text.as_ptr(), text.len())))
        }
        (ur_backend_t::OPENCL, _) if !takes_il(b)? => {
            Ok([OPENCL_C, OPENCL_C_RIVAL].map(Code::Text))
        }
        (ur_backend_t::LEVEL_ZERO | ur_backend_t::OPENCL, _) => {
            Ok([spirv::kernels(), spirv::rival()].map(Code::Il))
        }
        _ => Err(Stop::skipped("the suite has no program for a device of this backend")),
    }
}
fn create(b: &Bench, context: ur_context_handle_t) -> Verdict<ur_program_handle_t> {
    let [code, _] = codes(b)?;
    of_code(b, context, &code)
}
/// Creates two programs, not built, that define a kernel of the same name and cannot be linked together.
pub fn rivals(b: &Bench) -> Verdict<[ur_program_handle_t; 2]> {
    let [_, rival] = codes(b)?;
    Ok([create(b, b.context()?)?, of_code(b, b.context()?, &rival)?])
}
fn of_code(b: &Bench, context: ur_context_handle_t, code: &Code) -> Verdict<ur_program_handle_t> {
    match code {
        Code::Binary(at, bytes) => of_binary(b, context, *at, *bytes),
        Code::Il(words) => of_il(b, context, words),
        Code::Text(text) => of_text(b, context, text),
    }
}
/// Whether the device accepts intermediate code: its IL_VERSION is not an empty string, which has no bytes or
/// only a NUL.
fn takes_il(b: &Bench) -> Verdict<bool> {
    let (device, mut length) = (b.device()?, usize::MAX);
    let name = ur_device_info_t::IL_VERSION;
    let told = ask!(b, device.get_info(device, name, 0, null_mut(), &mut length));
    Ok(told != ur_result_t::SUCCESS || length > 1)
}
/// Creates a program from OpenCL C, not built, on adapters that accept it as intermediate code.
pub fn of_text(
    b: &Bench,
    context: ur_context_handle_t,
    text: &str,
) -> Verdict<ur_program_handle_t> {
    let mut program = ur_program_handle_t::NULL;
    let (il, bytes) = (text.as_ptr().cast(), text.len());
    let code = ask!(b, program.create_with_il(context, il, bytes, null(), &mut program));
    if matches!(code, ur_result_t::ERROR_INVALID_BINARY | ur_result_t::ERROR_INVALID_OPERATION) {
        return Err(Stop::skipped("the device takes no SPIR-V, and the adapter no OpenCL C"));
    }
    b.succeeded("urProgramCreateWithIL", code)?;
    Ok(program)
}
/// Creates a program from SPIR-V, not built.
pub fn of_il(
    b: &Bench,
    context: ur_context_handle_t,
    words: &[u32],
) -> Verdict<ur_program_handle_t> {
    let mut program = ur_program_handle_t::NULL;
    let (il, bytes) = (words.as_ptr().cast(), size_of_val(words));
    if !takes_il(b)? {
        let why = "the device names no version of intermediate code (IL_VERSION is empty)";
        return Err(Stop::skipped(why));
    }
    let code = ask!(b, program.create_with_il(context, il, bytes, null(), &mut program));
    if code == ur_result_t::ERROR_COMPILER_NOT_AVAILABLE {
        return Err(Stop::skipped("the device compiles no intermediate code"));
    }
    b.succeeded("urProgramCreateWithIL", code)?;
    Ok(program)
}
pub fn of_binary(
    b: &Bench,
    context: ur_context_handle_t,
    binary: *const u8,
    bytes: usize,
) -> Verdict<ur_program_handle_t> {
    let (mut devices, mut lengths) = ([b.device()?], [bytes]);
    let (mut binaries, mut program) = ([binary], ur_program_handle_t::NULL);
    let (devices, lengths, binaries) =
        (devices.as_mut_ptr(), lengths.as_mut_ptr(), binaries.as_mut_ptr());
    must!(
        b,
        program.create_with_binary(context, 1, devices, lengths, binaries, null(), &mut program)
    );
    Ok(program)
}
/// Creates and builds a program with the kernels `add` and `x`.
pub fn new_program(b: &Bench) -> Verdict<ur_program_handle_t> {
    let (context, program) = (b.context()?, create(b, b.context()?)?);
    must!(b, program.build(context, program, null()));
    Ok(program)
}
fn release(b: &Bench, program: ur_program_handle_t) -> Verdict {
    must!(b, program.release(program));
    Ok(())
}
fn facts(b: &Bench) -> Verdict {
    use ur_program_info_t as Info;
    let program = new_program(b)?;
    let context = info!(b, program.get_info(program, Info::CONTEXT), usize);
    same!(context, b.context()?.0.addr(), "the context");
    same!(info!(b, program.get_info(program, Info::NUM_DEVICES), u32), 1, "devices");
    let device = info!(b, program.get_info(program, Info::DEVICES), usize);
    same!(device, b.device()?.0.addr(), "the device");
    release(b, program)
}
fn kernels(b: &Bench) -> Verdict {
    use ur_program_info_t as Info;
    let program = new_program(b)?;
    same!(info!(b, program.get_info(program, Info::NUM_KERNELS), usize), 2, "kernels");
    let mut text = [0_u8; 256];
    let to = text.as_mut_ptr().cast();
    must!(b, program.get_info(program, Info::KERNEL_NAMES, text.len(), to, null_mut()));
    let names = CStr::from_bytes_until_nul(&text).map_err(|e| Stop::failed(e.to_string()))?;
    let mut names: Vec<_> = names.to_bytes().split(|byte| *byte == b';').collect();
    names.sort_unstable();
    same!(names, [b"add".as_slice(), b"x"], "the names");
    release(b, program)
}
fn status(b: &Bench) -> Verdict {
    let (program, device) = (new_program(b)?, b.device()?);
    let name = ur_program_build_info_t::STATUS;
    let found = info!(b, program.get_build_info(program, device, name), u32);
    same!(ur_program_build_status_t(found), ur_program_build_status_t::SUCCESS, "the status");
    release(b, program)
}
fn garbage(b: &Bench) -> Verdict {
    let (context, junk) = (b.context()?, [0xa5_u8; 256]);
    let (mut devices, mut lengths) = ([b.device()?], [junk.len() - 1]);
    // An odd address, so that it is not taken for a table of pointers; the bytes are no backend's magic
    // number.
    let (mut binaries, mut program) = ([junk.as_ptr().wrapping_add(1)], ur_program_handle_t::NULL);
    let (devices, lengths, binaries) =
        (devices.as_mut_ptr(), lengths.as_mut_ptr(), binaries.as_mut_ptr());
    let code = ask!(
        b,
        program.create_with_binary(context, 1, devices, lengths, binaries, null(), &mut program)
    );
    if code == ur_result_t::SUCCESS {
        let code = ask!(b, program.build(context, program, null()));
        ensure!(code != ur_result_t::SUCCESS, "bytes that are no binary are built");
        return release(b, program);
    }
    if code == ur_result_t::ERROR_UNSUPPORTED_FEATURE {
        return Err(Stop::skipped("programs of binaries are not supported"));
    }
    ensure!(program.is_null(), "the result is written to");
    let allowed = [ur_result_t::ERROR_INVALID_BINARY, ur_result_t::ERROR_INVALID_NATIVE_BINARY];
    ensure!(allowed.contains(&code), "{code:?}");
    Ok(())
}
fn no_il(b: &Bench) -> Verdict {
    let (context, junk, mut program) = (b.context()?, [0x5a_u8; 64], ur_program_handle_t::NULL);
    let (il, length) = (junk.as_ptr().cast(), junk.len());
    let code = ask!(b, program.create_with_il(context, il, length, null(), &mut program));
    if code == ur_result_t::SUCCESS {
        let code = ask!(b, program.build(context, program, null()));
        ensure!(code != ur_result_t::SUCCESS, "bytes that are no code are built");
        return release(b, program);
    }
    let allowed = [
        ur_result_t::ERROR_INVALID_BINARY,
        ur_result_t::ERROR_COMPILER_NOT_AVAILABLE,
        ur_result_t::ERROR_UNSUPPORTED_FEATURE,
    ];
    ensure!(allowed.contains(&code) && program.is_null(), "{code:?}, and it is {program:?}");
    Ok(())
}
fn no_function(b: &Bench) -> Verdict {
    let (program, device, mut at) = (new_program(b)?, b.device()?, null_mut());
    let name = c"a function of nobody's".as_ptr();
    refused!(
        b,
        ERROR_INVALID_KERNEL_NAME,
        program.get_function_pointer(device, program, name, &mut at)
    );
    ensure!(at.is_null(), "the result is written to");
    release(b, program)
}
fn no_variable(b: &Bench) -> Verdict {
    let (program, device, mut at) = (new_program(b)?, b.device()?, null_mut());
    let (name, size) = (c"a variable of nobody's".as_ptr(), null_mut());
    refused!(
        b,
        ERROR_INVALID_VALUE,
        program.get_global_variable_pointer(device, program, name, size, &mut at)
    );
    ensure!(at.is_null(), "the result is written to");
    release(b, program)
}
/// Creates a program that has the 4-byte variable `var`.
fn with_variable(b: &Bench) -> Verdict<ur_program_handle_t> {
    if let [Code::Binary(..), _] = codes(b)? {
        return Err(Stop::skipped("the suite's program for this backend has no variable"));
    }
    new_program(b)
}
fn variable(b: &Bench) -> Verdict {
    let (program, device, mut at, mut size) = (with_variable(b)?, b.device()?, null_mut(), 0);
    let name = c"var".as_ptr();
    must!(b, program.get_global_variable_pointer(device, program, name, &mut size, &mut at));
    ensure!(!at.is_null(), "the address is null");
    same!(size, 4, "the size");
    release(b, program)
}
fn variable_written(b: &Bench) -> Verdict {
    let (program, queue, name) = (with_variable(b)?, b.queue()?, c"var".as_ptr());
    let read = |offset: usize, to: &mut [u8]| {
        let (count, at, none) = (to.len(), to.as_mut_ptr().cast(), null_mut());
        let list = null();
        must!(
            b,
            enqueue.device_global_variable_read(
                queue, program, name, true, count, offset, at, 0, list, none
            )
        );
        Ok::<_, Stop>(())
    };
    let mut seen = [0_u8; 4];
    read(0, &mut seen)?;
    same!(u32::from_ne_bytes(seen), 41, "the variable at first");
    let (new, list, mut event) = ([1_u8, 2], null(), ur_event_handle_t::NULL);
    must!(
        b,
        enqueue.device_global_variable_write(
            queue,
            program,
            name,
            false,
            2,
            1,
            new.as_ptr().cast(),
            0,
            list,
            &mut event
        )
    );
    b.wait(&[event.0])?;
    must!(b, event.release(event));
    read(0, &mut seen)?;
    same!(seen, [41, 1, 2, 0], "the variable");
    read(2, &mut seen[..1])?;
    same!(seen[0], 2, "a part of it");
    release(b, program)
}
fn variable_kept(b: &Bench) -> Verdict {
    let (program, queue, name) = (with_variable(b)?, b.queue()?, c"var".as_ptr());
    let gate = b.gate(queue)?;
    let (mut seen, list, none) = ([0_u8; 4], null(), null_mut());
    let (at, count) = (seen.as_mut_ptr().cast(), seen.len());
    must!(
        b,
        enqueue
            .device_global_variable_read(queue, program, name, false, count, 0, at, 0, list, none)
    );
    // Whether there are such options is the compiler's.
    let _ = ask!(b, program.build(b.context()?, program, c"-DOTHER=1".as_ptr()));
    gate.open();
    must!(b, queue.finish(queue));
    same!(u32::from_ne_bytes(seen), 41, "the variable at first");
    release(b, program)
}
fn outlives(b: &Bench) -> Verdict {
    codes(b)?;
    let context = b.new_context()?;
    let program = create(b, context)?;
    must!(b, context.release(context));
    let found = info!(b, program.get_info(program, ur_program_info_t::CONTEXT), usize);
    same!(found, context.0.addr(), "the context");
    release(b, program)
}
fn options(b: &Bench) -> Verdict {
    let (context, program) = (b.context()?, create(b, b.context()?)?);
    let options = c"-an-option-of-nobody".as_ptr();
    let code = ask!(b, program.build(context, program, options));
    let allowed = [ur_result_t::SUCCESS, ur_result_t::ERROR_PROGRAM_BUILD_FAILURE];
    ensure!(allowed.contains(&code), "{code:?}");
    same!(
        b.adapter.call("urProgramRelease", &[word(program.0)]),
        Some(ur_result_t::SUCCESS),
        "release"
    );
    Ok(())
}
