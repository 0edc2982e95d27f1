//! Kernels: their properties, launches and arguments.
use crate::{
    ask,
    bench::{Bench, Usm},
    case::{Case, Stop, Verdict},
    cases, ensure,
    families::{
        build::backend,
        memory,
        program::{new_program, of_text},
    },
    info, must, refused, same,
};
use std::{
    ffi::{CStr, c_void},
    ptr::{null, null_mut},
};
use ur_sys::*;

pub fn cases() -> Vec<Case> {
    cases! { "kernel";
        "urKernelCreate, urKernelGetInfo", "UR_KERNEL_INFO_FUNCTION_NAME, _CONTEXT, _PROGRAM", "a kernel says its name, context and program", facts;
        "urKernelCreate", "UR_RESULT_ERROR_INVALID_KERNEL_NAME: the program holds no kernel of that name", "a kernel that the program has not is INVALID_KERNEL_NAME", no_kernel;
        "urKernelRelease", "a kernel keeps its program", "a kernel runs after its program was released", outlives;
        "urEnqueueKernelLaunchWithArgsExp", "every item runs once", "every item of a range runs once, in one to three dimensions", ranges;
        "urEnqueueKernelLaunchWithArgsExp", "ids start at the offset", "an offset moves the range", offset;
        "urEnqueueKernelLaunchWithArgsExp", "workDim: the number of dimensions of the range", "a kernel of OpenCL's is told of as many dimensions as were named", dimensions;
        "urProgramBuild", "pOptions: the options of this build", "a program that is built anew with other options has other code, and kernels keep theirs", rebuilt;
        "urEnqueueKernelLaunchWithArgsExp", "UR_RESULT_ERROR_INVALID_KERNEL_ARGS", "kernels of OpenCL's are not given values for addresses, nor anything else for samplers", other_arguments;
        "urEnqueueKernelLaunchWithArgsExp", "groups of the size that is asked for", "a size of groups that divides the range is taken", groups;
        "urEnqueueKernelLaunchWithArgsExp", "UR_RESULT_ERROR_INVALID_WORK_GROUP_SIZE", "groups larger than the device allows are refused", groups_too_large;
        "urEnqueueKernelLaunchWithArgsExp", "arguments are as they were at the call", "values that change after the launch do not change it", captured;
        "urEnqueueKernelLaunchWithArgsExp", "a launch waits for its list", "a launch of another queue waits for what fills its memory", waits;
        "urEnqueueKernelLaunchWithArgsExp", "buffers are arguments", "a kernel writes into a buffer and a part of one", buffers;
        "urEnqueueKernelLaunchWithArgsExp", "UR_COMMAND_KERNEL_LAUNCH", "the event of a launch is of that type", event_type;
        "urKernelGetSuggestedLocalWorkSize", "a size that fits", "the suggested size divides the range", suggested;
        "urKernelGetGroupInfo", "UR_KERNEL_GROUP_INFO_WORK_GROUP_SIZE", "a kernel's groups are not larger than the device's", group_info;
    }
}
/// Creates the kernel `add`.
pub fn new_kernel(b: &Bench) -> Verdict<ur_kernel_handle_t> {
    let program = new_program(b)?;
    let kernel = named(b, program, c"add");
    must!(b, program.release(program));
    kernel
}
/// Creates a kernel that has no parameters and does nothing.
pub fn idle_kernel(b: &Bench) -> Verdict<ur_kernel_handle_t> {
    let program = new_program(b)?;
    let kernel = named(b, program, c"x");
    must!(b, program.release(program));
    kernel
}
fn named(
    b: &Bench,
    program: ur_program_handle_t,
    name: &std::ffi::CStr,
) -> Verdict<ur_kernel_handle_t> {
    let mut kernel = ur_kernel_handle_t::NULL;
    must!(b, kernel.create(program, name.as_ptr(), &mut kernel));
    Ok(kernel)
}
fn release(b: &Bench, kernel: ur_kernel_handle_t) -> Verdict {
    must!(b, kernel.release(kernel));
    Ok(())
}
/// The geometry and the dependencies of a launch.
struct Launch<'a> {
    offset: Option<&'a [usize]>,
    global: &'a [usize],
    local: Option<&'a [usize]>,
    after: &'a [ur_event_handle_t],
}
impl<'a> Launch<'a> {
    fn over(global: &'a [usize]) -> Self {
        Self { offset: None, global, local: None, after: &[] }
    }
}
pub fn argument(
    index: u32,
    kind: ur_exp_kernel_arg_type_t,
    value: ur_exp_kernel_arg_value_t,
) -> ur_exp_kernel_arg_properties_t {
    let stype = ur_structure_type_t::EXP_KERNEL_ARG_PROPERTIES;
    let size = if kind == ur_exp_kernel_arg_type_t::VALUE { 4 } else { 8 };
    ur_exp_kernel_arg_properties_t { stype, pNext: null_mut(), r#type: kind, index, size, value }
}
fn launch_code(
    b: &Bench,
    queue: ur_queue_handle_t,
    kernel: ur_kernel_handle_t,
    first: ur_exp_kernel_arg_properties_t,
    value: &u32,
    how: &Launch<'_>,
) -> Verdict<(ur_result_t, ur_event_handle_t)> {
    let at = std::ptr::from_ref(value).cast();
    let second =
        argument(1, ur_exp_kernel_arg_type_t::VALUE, ur_exp_kernel_arg_value_t { value: at });
    let arguments = [first, second];
    let list = |list: Option<&[usize]>| list.map_or_else(null, <[usize]>::as_ptr);
    let (n, after) = match how.after {
        [] => (0, null()),
        some => (some.len() as u32, some.as_ptr()),
    };
    let (dimensions, mut event) = (how.global.len() as u32, ur_event_handle_t::NULL);
    let (offset, local) = (list(how.offset), list(how.local));
    let code = ask!(
        b,
        enqueue_exp.kernel_launch_with_args_exp(
            queue,
            kernel,
            dimensions,
            offset,
            how.global.as_ptr(),
            local,
            2,
            arguments.as_ptr(),
            null(),
            n,
            after,
            &mut event
        )
    );
    Ok((code, event))
}
pub fn pointer(at: *mut c_void) -> ur_exp_kernel_arg_properties_t {
    let value = ur_exp_kernel_arg_value_t { pointer: at };
    argument(0, ur_exp_kernel_arg_type_t::POINTER, value)
}
/// Launches, waits, and releases the event.
fn launch(
    b: &Bench,
    kernel: ur_kernel_handle_t,
    first: ur_exp_kernel_arg_properties_t,
    value: u32,
    how: &Launch<'_>,
) -> Verdict {
    let (code, event) = launch_code(b, b.queue()?, kernel, first, &value, how)?;
    b.succeeded("urEnqueueKernelLaunchWithArgsExp", code)?;
    b.wait(&[event.0])?;
    must!(b, event.release(event));
    Ok(())
}
const COUNT: usize = 4096;
/// Allocates an array of zeros.
fn array(b: &Bench) -> Verdict<*mut c_void> {
    let at = b.alloc(Usm::Device, 4 * COUNT)?;
    b.write(at, &[0; 4 * COUNT])?;
    Ok(at)
}
fn numbers(bytes: &[u8]) -> Vec<u32> {
    bytes
        .chunks_exact(4)
        .map(|four| u32::from_ne_bytes([four[0], four[1], four[2], four[3]]))
        .collect()
}
/// Checks that exactly the elements for which `is_in` is true have the value, and the others 0.
fn has(b: &Bench, at: *mut c_void, value: u32, is_in: impl Fn([usize; 3]) -> bool) -> Verdict {
    for (n, found) in numbers(&b.read(at, 4 * COUNT)?).into_iter().enumerate() {
        let id = [n % 16, n / 16 % 16, n / 256];
        same!(found, if is_in(id) { value } else { 0 }, "the element at {id:?}");
    }
    Ok(())
}
fn facts(b: &Bench) -> Verdict {
    use ur_kernel_info_t as Info;
    let program = new_program(b)?;
    let kernel = named(b, program, c"add")?;
    let name = info!(b, kernel.get_info(kernel, Info::FUNCTION_NAME), [u8; 4]);
    same!(&name, b"add\0", "the name");
    let found = info!(b, kernel.get_info(kernel, Info::CONTEXT), usize);
    same!(found, b.context()?.0.addr(), "the context");
    let found = info!(b, kernel.get_info(kernel, Info::PROGRAM), usize);
    same!(found, program.0.addr(), "the program");
    must!(b, program.release(program));
    release(b, kernel)
}
fn no_kernel(b: &Bench) -> Verdict {
    let (program, mut kernel) = (new_program(b)?, ur_kernel_handle_t::NULL);
    let name = c"a kernel of nobody's".as_ptr();
    refused!(b, ERROR_INVALID_KERNEL_NAME, kernel.create(program, name, &mut kernel));
    ensure!(kernel.is_null(), "the result is written to");
    must!(b, program.release(program));
    Ok(())
}
fn outlives(b: &Bench) -> Verdict {
    let (kernel, at) = (new_kernel(b)?, array(b)?);
    launch(b, kernel, pointer(at), 5, &Launch::over(&[3]))?;
    has(b, at, 5, |id| id[0] < 3 && id[1] == 0 && id[2] == 0)?;
    release(b, kernel)?;
    b.free(at)
}
fn ranges(b: &Bench) -> Verdict {
    let kernel = new_kernel(b)?;
    for global in [&[16_usize][..], &[1], &[16, 16], &[5, 3], &[16, 16, 16], &[3, 2, 4]] {
        let at = array(b)?;
        launch(b, kernel, pointer(at), 7, &Launch::over(global))?;
        let size = |d: usize| global.get(d).copied().unwrap_or(1);
        has(b, at, 7, |id| (0..3).all(|d| id[d] < size(d)))?;
        b.free(at)?;
    }
    release(b, kernel)
}
fn offset(b: &Bench) -> Verdict {
    let (kernel, at) = (new_kernel(b)?, array(b)?);
    let how = Launch { offset: Some(&[2, 1]), ..Launch::over(&[4, 3]) };
    launch(b, kernel, pointer(at), 9, &how)?;
    has(b, at, 9, |id| (2..6).contains(&id[0]) && (1..4).contains(&id[1]) && id[2] == 0)?;
    release(b, kernel)?;
    b.free(at)
}
/// A program of OpenCL C, built with options; skipped, for the reason `why`, on other backends.
fn opencl_c(b: &Bench, text: &str, options: &CStr, why: &str) -> Verdict<ur_program_handle_t> {
    if backend(b)? != ur_backend_t::OPENCL {
        return Err(Stop::skipped(why));
    }
    let program = of_text(b, b.context()?, text)?;
    must!(b, program.build(b.context()?, program, options.as_ptr()));
    Ok(program)
}
fn rebuilt(b: &Bench) -> Verdict {
    const TEXT: &str = "kernel void add(global uint *array, uint value) { array[PLACE] += value; }";
    let why = "the suite has code with options for OpenCL C alone";
    let program = opencl_c(b, TEXT, c"-DPLACE=1", why)?;
    let (first, at) = (named(b, program, c"add")?, array(b)?);
    must!(b, program.build(b.context()?, program, c"-DPLACE=2".as_ptr()));
    let second = named(b, program, c"add")?;
    let broken = c"-DPLACE=)";
    let code = ask!(b, program.build(b.context()?, program, broken.as_ptr()));
    b.was_refused("urProgramBuild", code, ur_result_t::ERROR_PROGRAM_BUILD_FAILURE)?;
    let mut none = ur_kernel_handle_t::NULL;
    let code = ask!(b, kernel.create(program, c"add".as_ptr(), &mut none));
    b.was_refused("urKernelCreate", code, ur_result_t::ERROR_INVALID_PROGRAM_EXECUTABLE)?;
    for (kernel, value) in [(first, 5), (second, 6)] {
        launch(b, kernel, pointer(at), value, &Launch::over(&[1]))?;
    }
    let told = numbers(&b.read(at, 4 * size_of::<u32>())?);
    same!(told, [0, 5, 6, 0], "what was added to the element that each build names");
    release(b, first)?;
    release(b, second)?;
    must!(b, program.release(program));
    b.free(at)
}
fn dimensions(b: &Bench) -> Verdict {
    const TELLS: &str =
        "kernel void add(global uint *array, uint value) { array[get_work_dim()] += value; }";
    let program = opencl_c(b, TELLS, c"", "kernels of OpenCL C alone ask for it here")?;
    let (kernel, at) = (named(b, program, c"add")?, array(b)?);
    for (count, value) in [(1, 5), (2, 6), (3, 7)] {
        launch(b, kernel, pointer(at), value, &Launch::over(&[1; 3][..count]))?;
    }
    let told = numbers(&b.read(at, 4 * size_of::<u32>())?);
    same!(told, [0, 5, 6, 7], "what was added to the element of each number");
    release(b, kernel)?;
    must!(b, program.release(program));
    b.free(at)
}
fn other_arguments(b: &Bench) -> Verdict {
    use ur_exp_kernel_arg_type_t as Kind;
    const TAKES: &str = "kernel void at(global uint *array, uint value) { array[0] += value; }
        kernel void with(sampler_t how, uint value) {}";
    let why = "what kernels of OpenCL C take is known to their driver alone";
    let program = opencl_c(b, TAKES, c"", why)?;
    let (text, at) = ([7_u64], array(b)?);
    let value = ur_exp_kernel_arg_value_t { value: text.as_ptr().cast() };
    let value = ur_exp_kernel_arg_properties_t { size: 8, ..argument(0, Kind::VALUE, value) };
    for (name, first) in [(c"at", value), (c"with", value), (c"with", pointer(at))] {
        let kernel = named(b, program, name)?;
        let how = Launch::over(&[1]);
        let (code, _) = launch_code(b, b.queue()?, kernel, first, &1, &how)?;
        let wanted = ur_result_t::ERROR_INVALID_KERNEL_ARGS;
        b.was_refused("urEnqueueKernelLaunchWithArgsExp", code, wanted)?;
        release(b, kernel)?;
    }
    must!(b, program.release(program));
    b.free(at)
}
fn groups(b: &Bench) -> Verdict {
    let kernel = new_kernel(b)?;
    for local in [[1, 1], [4, 1], [8, 2], [16, 4]] {
        let at = array(b)?;
        let how = Launch { local: Some(&local), ..Launch::over(&[16, 8]) };
        launch(b, kernel, pointer(at), 2, &how)?;
        has(b, at, 2, |id| id[1] < 8 && id[2] == 0)?;
        b.free(at)?;
    }
    release(b, kernel)
}
fn groups_too_large(b: &Bench) -> Verdict {
    let (kernel, at, device) = (new_kernel(b)?, array(b)?, b.device()?);
    let most = info!(b, device.get_info(device, ur_device_info_t::MAX_WORK_GROUP_SIZE), usize);
    let size =
        most.checked_mul(2).ok_or_else(|| Stop::skipped("groups of every size are allowed"))?;
    let (global, local) = ([size], [size]);
    let how = Launch { local: Some(&local), ..Launch::over(&global) };
    let (code, event) = launch_code(b, b.queue()?, kernel, pointer(at), &1, &how)?;
    let allowed =
        [ur_result_t::ERROR_INVALID_WORK_GROUP_SIZE, ur_result_t::ERROR_INVALID_WORK_ITEM_SIZE];
    ensure!(allowed.contains(&code) && event.is_null(), "{code:?}, and the event is {event:?}");
    release(b, kernel)?;
    b.free(at)
}
fn captured(b: &Bench) -> Verdict {
    let (kernel, at, queue) = (new_kernel(b)?, array(b)?, b.queue()?);
    let gate = b.gate(queue)?;
    let mut value = 3;
    let (code, event) = launch_code(b, queue, kernel, pointer(at), &value, &Launch::over(&[16]))?;
    b.succeeded("urEnqueueKernelLaunchWithArgsExp", code)?;
    value += 100;
    release(b, kernel)?; // a launch keeps its kernel alive, too
    gate.open();
    b.wait(&[event.0])?;
    has(b, at, value - 100, |id| id[1] == 0 && id[2] == 0)?;
    must!(b, event.release(event));
    b.free(at)
}
fn waits(b: &Bench) -> Verdict {
    let (kernel, at, one) = (new_kernel(b)?, array(b)?, b.queue()?);
    let two = b.new_queue(ur_queue_flags_t::default())?;
    let gate = b.gate(one)?;
    let first = ur_event_handle_t(b.follow(one, &[])?);
    let how = Launch { after: &[first], ..Launch::over(&[16]) };
    let (code, event) = launch_code(b, two, kernel, pointer(at), &4, &how)?;
    b.succeeded("urEnqueueKernelLaunchWithArgsExp", code)?;
    ensure!(b.status(event.0)? != ur_event_status_t::COMPLETE, "it did not wait");
    gate.open();
    b.wait(&[event.0])?;
    has(b, at, 4, |id| id[1] == 0 && id[2] == 0)?;
    must!(b, event.release(event));
    must!(b, event.release(first));
    must!(b, queue.release(two));
    release(b, kernel)?;
    b.free(at)
}
fn buffers(b: &Bench) -> Verdict {
    let (kernel, flags) = (new_kernel(b)?, ur_mem_flags_t::READ_WRITE);
    let buffer = b.new_buffer(flags, 4 * COUNT)?;
    memory::write(b, buffer, 0, &[0; 4 * COUNT])?;
    let stype = ur_structure_type_t::BUFFER_REGION;
    let region = ur_buffer_region_t { stype, pNext: null(), origin: 8192, size: 4096 };
    let (kind, mut part) = (ur_buffer_create_type_t::REGION, ur_mem_handle_t::NULL);
    must!(b, mem.buffer_partition(buffer, flags, kind, &region, &mut part));
    for (mem, value) in [(buffer, 1), (part, 2)] {
        let tuple = ur_exp_kernel_arg_mem_obj_tuple_t { hMem: mem, flags };
        let value_of = ur_exp_kernel_arg_value_t { memObjTuple: tuple };
        let first = argument(0, ur_exp_kernel_arg_type_t::MEM_OBJ, value_of);
        launch(b, kernel, first, value, &Launch::over(&[10]))?;
    }
    let found = numbers(&memory::read(b, buffer, 0, 4 * COUNT)?);
    let expected = |n: usize| match n {
        0..10 => 1,
        2048..2058 => 2,
        _ => 0,
    };
    let wrong = found.iter().enumerate().find(|(n, value)| **value != expected(*n));
    same!(wrong, None, "the first element that is wrong");
    must!(b, mem.release(part));
    must!(b, mem.release(buffer));
    release(b, kernel)
}
fn event_type(b: &Bench) -> Verdict {
    let (kernel, at) = (new_kernel(b)?, array(b)?);
    let (code, event) = launch_code(b, b.queue()?, kernel, pointer(at), &1, &Launch::over(&[1]))?;
    b.succeeded("urEnqueueKernelLaunchWithArgsExp", code)?;
    let found = info!(b, event.get_info(event, ur_event_info_t::COMMAND_TYPE), u32);
    same!(ur_command_t(found), ur_command_t::KERNEL_LAUNCH, "the type");
    b.wait(&[event.0])?;
    must!(b, event.release(event));
    release(b, kernel)?;
    b.free(at)
}
fn suggested(b: &Bench) -> Verdict {
    let (kernel, queue) = (new_kernel(b)?, b.queue()?);
    for global in [[1, 1, 1], [64, 1, 1], [60, 7, 3], [1009, 1, 1]] {
        let (offset, mut local) = ([0_usize; 3], [0_usize; 3]);
        let (from, of, to) = (offset.as_ptr(), global.as_ptr(), local.as_mut_ptr());
        must!(b, kernel.get_suggested_local_work_size(kernel, queue, 3, from, of, to));
        let divides = global
            .iter()
            .zip(&local)
            .all(|(n, by): (&usize, &usize)| n.checked_rem(*by) == Some(0));
        ensure!(divides, "groups of {local:?} for {global:?}");
    }
    release(b, kernel)
}
fn group_info(b: &Bench) -> Verdict {
    let (kernel, device) = (new_kernel(b)?, b.device()?);
    let name = ur_kernel_group_info_t::WORK_GROUP_SIZE;
    let of_kernel = info!(b, kernel.get_group_info(kernel, device, name), usize);
    let most = info!(b, device.get_info(device, ur_device_info_t::MAX_WORK_GROUP_SIZE), usize);
    ensure!((1..=most).contains(&of_kernel), "{of_kernel} where the device allows {most}");
    release(b, kernel)
}
