//! Programs and kernels as a C program has them, on whatever driver of Level Zero there is; without a device the tests
//! say so and are skipped.
#![expect(unsafe_code, clippy::undocumented_unsafe_blocks, reason = "plays the C caller")]
mod c;
#[path = "c/spirv.rs"]
mod spirv;

use c::*;
use spirv::{built, program};
use std::{
    ffi::{CStr, c_void},
    ptr::{null, null_mut},
};
use ur_sys::{
    ur_exp_kernel_arg_type_t as Kind, ur_exp_kernel_arg_value_t as Value, ur_result_t as R, *,
};

const NO_PROGRAM: ur_program_handle_t = ur_program_handle_t::NULL;
fn kernel(program: ur_program_handle_t, name: &CStr) -> ur_kernel_handle_t {
    let mut made = ur_kernel_handle_t::NULL;
    assert_eq!(call!(kernel.create(program, name.as_ptr(), &mut made)), R::SUCCESS);
    made
}
fn argument(index: u32, r#type: Kind, size: usize, value: Value) -> ur_exp_kernel_arg_properties_t {
    let stype = ur_structure_type_t::EXP_KERNEL_ARG_PROPERTIES;
    ur_exp_kernel_arg_properties_t { stype, pNext: null_mut(), r#type, index, size, value }
}
/// Launches over `items`, of an array and a number if there is one, and says what came of it.
fn run(
    queue: ur_queue_handle_t,
    kernel: ur_kernel_handle_t,
    items: usize,
    array: *mut c_void,
    number: Option<&u32>,
) -> R {
    let mut given = vec![argument(0, Kind::POINTER, 8, Value { pointer: array })];
    given.extend(
        number.map(|n| argument(1, Kind::VALUE, 4, Value { value: std::ptr::from_ref(n).cast() })),
    );
    let (global, n, at) = ([items], given.len() as u32, given.as_ptr());
    let (global, none) = (global.as_ptr(), null());
    call!(enqueue_exp.kernel_launch_with_args_exp(
        queue,
        kernel,
        1,
        none,
        global,
        none,
        n,
        at,
        null(),
        0,
        null(),
        null_mut()
    ))
}
/// What a kernel of one argument writes.
fn written(zero: &Zero, program: ur_program_handle_t, name: &CStr) -> [u32; 4] {
    let (kernel, array) = (kernel(program, name), zero.device_memory(16));
    assert_eq!(run(zero.queue, kernel, 4, array, None), R::SUCCESS);
    zero.finish();
    let found = zero.read(array);
    assert_eq!(call!(kernel.release(kernel)), R::SUCCESS);
    zero.free(array);
    found
}
/// Handles may be used by any thread.
struct Shared<'z>(&'z Zero, ur_kernel_handle_t);
unsafe impl Sync for Shared<'_> {}
fn release(all: &[ur_program_handle_t]) {
    all.iter().for_each(|one| assert_eq!(call!(program.release(*one)), R::SUCCESS));
}

#[test]
fn a_specialization_constant_is_what_was_set_before_the_build_or_its_default() {
    let Some(zero) = Zero::new() else { return };
    let (plain, set, value) =
        (built(&zero, &spirv::special()), program(&zero, &spirv::special()), 9_u32);
    let one =
        ur_specialization_constant_info_t { id: 7, size: 4, pValue: (&raw const value).cast() };
    assert_eq!(call!(program.set_specialization_constants(set, 1, &one)), R::SUCCESS);
    assert_eq!(call!(program.build(zero.context, set, null())), R::SUCCESS);
    assert_eq!(written(&zero, plain, c"put"), [1; 4]);
    assert_eq!(written(&zero, set, c"put"), [9; 4]);
    release(&[plain, set]);
}
#[test]
fn pieces_are_linked_before_they_are_loaded_and_afterwards() {
    let Some(zero) = Zero::new() else { return };
    let pieces = [program(&zero, &spirv::caller()), program(&zero, &spirv::callee())];
    for one in pieces {
        assert_eq!(call!(program.compile(zero.context, one, null())), R::SUCCESS);
    }
    let mut whole = pieces[0]; // whatever was there
    let link = |count, to| call!(program.link(zero.context, count, pieces.as_ptr(), null(), to));
    assert_eq!(link(1, &mut whole), R::ERROR_PROGRAM_LINK_FAILURE);
    assert_eq!(whole, NO_PROGRAM);
    assert_eq!(link(2, &mut whole), R::SUCCESS);
    assert_eq!(written(&zero, whole, c"call"), [42; 4]);
    let late = [program(&zero, &spirv::caller()), program(&zero, &spirv::callee())];
    let (device, open) = (&raw const zero.device, ur_exp_program_flags_t::ALLOW_UNRESOLVED_SYMBOLS);
    let none = ur_exp_program_flags_t::default();
    let build = |one, flags| call!(program_exp.build_exp(one, 1, device.cast_mut(), flags, null()));
    assert_eq!(build(late[0], none), R::ERROR_PROGRAM_BUILD_FAILURE);
    for one in late {
        assert_eq!(build(one, open), R::SUCCESS);
    }
    assert_eq!(call!(program_exp.dynamic_link_exp(zero.context, 2, late.as_ptr())), R::SUCCESS);
    assert_eq!(written(&zero, late[0], c"call"), [42; 4]);
    release(&[pieces[0], pieces[1], whole, late[0], late[1]]);
}
#[test]
fn the_binary_that_the_driver_made_is_a_program_again() {
    let Some(zero) = Zero::new() else { return };
    let (first, mut bytes) = (built(&zero, &spirv::special()), 0_usize);
    let get = |name, size, to| call!(program.get_info(first, name, size, to, null_mut()));
    let to = (&raw mut bytes).cast();
    assert_eq!(get(ur_program_info_t::BINARY_SIZES, 8, to), R::SUCCESS);
    let mut binary = vec![0_u8; bytes];
    let mut at = binary.as_mut_ptr();
    assert_eq!(get(ur_program_info_t::BINARIES, 8, (&raw mut at).cast()), R::SUCCESS);
    let (mut device, mut from, mut again) = (zero.device, binary.as_ptr(), NO_PROGRAM);
    let (devices, sizes, binaries) = (&raw mut device, &raw mut bytes, &raw mut from);
    let code = call!(program.create_with_binary(
        zero.context,
        1,
        devices,
        sizes,
        binaries,
        null(),
        &mut again
    ));
    assert_eq!(code, R::SUCCESS);
    assert_eq!(call!(program.build(zero.context, again, null())), R::SUCCESS);
    assert_eq!(written(&zero, again, c"put"), [1; 4]);
    release(&[first, again]);
}
#[test]
fn a_variable_is_read_and_written_by_host_and_kernel() {
    let Some(zero) = Zero::new() else { return };
    let (made, mut now, next) = (built(&zero, &spirv::variable()), 0_u32, 6_u32);
    let (queue, name) = (zero.queue, c"total".as_ptr());
    let read = |offset, bytes, to: *mut u32| {
        call!(enqueue.device_global_variable_read(
            queue,
            made,
            name,
            true,
            bytes,
            offset,
            to.cast(),
            0,
            null(),
            null_mut()
        ))
    };
    assert_eq!(read(0, 4, &mut now), R::SUCCESS);
    assert_eq!((now, written(&zero, made, c"get")), (5, [5; 4]));
    let from = (&raw const next).cast();
    let code = call!(enqueue.device_global_variable_write(
        queue,
        made,
        name,
        true,
        4,
        0,
        from,
        0,
        null(),
        null_mut()
    ));
    assert_eq!(code, R::SUCCESS);
    assert_eq!(written(&zero, made, c"get"), [6; 4]);
    assert_eq!(read(2, 4, &mut now), R::ERROR_INVALID_VALUE);
    // What is read does not fit where it is to go.
    let small = zero.device_memory(4096);
    let end = small.cast::<u8>().wrapping_add(4094).cast();
    assert_eq!(read(0, 4, end), R::ERROR_INVALID_SIZE);
    zero.free(small);
    let (mut bytes, mut at) = (0, null_mut());
    let of = (zero.device, made);
    let code = call!(program.get_global_variable_pointer(of.0, of.1, name, &mut bytes, &mut at));
    assert_eq!((code, bytes), (R::SUCCESS, 4));
    assert_eq!(zero.read::<u32, 1>(at), [6]);
    release(&[made]);
}
/// The number that a variable holds, or why it is not read.
fn variable(zero: &Zero, program: ur_program_handle_t, name: &CStr) -> Result<u32, R> {
    let (mut now, mut bytes, mut at) = (0_u32, 0, null_mut());
    let (device, none, name) = (zero.device, null_mut(), name.as_ptr());
    let told =
        call!(program.get_global_variable_pointer(device, program, name, &mut bytes, &mut at));
    let to = (&raw mut now).cast();
    let read = call!(enqueue.device_global_variable_read(
        zero.queue,
        program,
        name,
        true,
        4,
        0,
        to,
        0,
        null(),
        none
    ));
    assert_eq!(told, read, "both find it or neither does");
    if read == R::SUCCESS { Ok(now) } else { Err(read) }
}
#[test]
fn device_globals_are_found_by_the_names_that_sycl_gives_them_in_spir_v() {
    let Some(zero) = Zero::new() else { return };
    let words = spirv::device_global();
    let made = built(&zero, &words);
    assert_eq!(variable(&zero, made, c"a unique name::total"), Ok(5));
    assert_eq!(variable(&zero, made, c"total"), Ok(5));
    assert_eq!(variable(&zero, made, c"a unique name"), Err(R::ERROR_INVALID_VALUE));
    // What is linked has the names of its parts.
    let [piece, other] = [program(&zero, &words), program(&zero, &spirv::callee())];
    for one in [piece, other] {
        assert_eq!(call!(program.compile(zero.context, one, null())), R::SUCCESS);
    }
    let (mut whole, pieces) = (NO_PROGRAM, [piece, other]);
    let code = call!(program.link(zero.context, 2, pieces.as_ptr(), null(), &mut whole));
    assert_eq!(code, R::SUCCESS);
    assert_eq!(variable(&zero, whole, c"a unique name::total"), Ok(5));
    release(&[made, piece, other, whole]);
}
/// A program with one entry of metadata: a name, and the bytes behind the word in front.
fn described(
    zero: &Zero,
    words: &[u32],
    name: &CStr,
    content: &[u8],
) -> Result<ur_program_handle_t, R> {
    let mut content = [&[0; 8], content].concat();
    let entry = ur_program_metadata_t {
        pName: name.as_ptr(),
        r#type: ur_program_metadata_type_t::BYTE_ARRAY,
        size: content.len(),
        value: ur_program_metadata_value_t { pData: content.as_mut_ptr().cast() },
    };
    let properties = ur_program_properties_t {
        stype: ur_structure_type_t::PROGRAM_PROPERTIES,
        pNext: null_mut(),
        count: 1,
        pMetadatas: &entry,
    };
    let (mut made, at, bytes) = (NO_PROGRAM, words.as_ptr().cast(), size_of_val(words));
    match call!(program.create_with_il(zero.context, at, bytes, &properties, &mut made)) {
        R::SUCCESS => Ok(made),
        code => Err(code),
    }
}
#[test]
fn device_globals_are_found_by_the_names_that_the_metadata_maps() {
    let Some(zero) = Zero::new() else { return };
    let words = spirv::variable();
    let made = described(&zero, &words, c"sycl's@global_id_mapping", b"total\0").unwrap();
    assert_eq!(call!(program.build(zero.context, made, null())), R::SUCCESS);
    assert_eq!(variable(&zero, made, c"sycl's"), Ok(5));
    release(&[made]);
    let refused = described(&zero, &words, c"k@reqd_work_group_size", &[1, 2, 3]).unwrap_err();
    assert_eq!(refused, R::ERROR_INVALID_VALUE);
}
#[test]
fn a_kernel_tells_its_registers() {
    let name = "a_kernel_tells_its_registers";
    if !is_inside(name, &[]) {
        return;
    }
    let zero = Zero::new().expect("the software driver's device");
    let program = built(&zero, &spirv::set());
    let made = kernel(program, c"set");
    let (mut told, asked, none) = (0_u32, ur_kernel_info_t::NUM_REGS, null_mut());
    let code = call!(kernel.get_info(made, asked, 4, (&raw mut told).cast(), none));
    assert_eq!((code, told), (R::SUCCESS, 128));
    assert_eq!(call!(kernel.release(made)), R::SUCCESS);
    assert_eq!(call!(program.release(program)), R::SUCCESS);
}
#[test]
fn a_kernel_tells_the_attributes_of_its_source() {
    let name = "a_kernel_tells_the_attributes_of_its_source";
    if !is_inside(name, &[]) {
        return;
    }
    let zero = Zero::new().expect("the software driver's device");
    let attributes = |words: &[u32]| {
        let program = built(&zero, words);
        let made = kernel(program, c"set");
        let (mut told, asked, mut size) = ([1_u8; 64], ur_kernel_info_t::ATTRIBUTES, 0);
        let to = told.as_mut_ptr().cast();
        let code = call!(kernel.get_info(made, asked, told.len(), to, &mut size));
        assert_eq!(code, R::SUCCESS);
        assert_eq!(call!(kernel.release(made)), R::SUCCESS);
        release(&[program]);
        String::from_utf8(told[..size - 1].to_vec()).unwrap()
    };
    assert_eq!(attributes(&spirv::in_sub_groups()), "intel_reqd_sub_group_size(16)");
    assert_eq!(attributes(&spirv::set()), "");
}
#[test]
fn the_largest_group_of_a_kernel_is_what_its_spir_v_says_and_unknown_of_a_binary() {
    let Some(zero) = Zero::new() else { return };
    use ur_kernel_group_info_t as I;
    let most = |kernel| -> Result<[usize; 3], R> {
        let (mut told, name) = ([9_usize; 3], I::COMPILE_MAX_WORK_GROUP_SIZE);
        let (to, device, none) = ((&raw mut told).cast(), zero.device, null_mut());
        match call!(kernel.get_group_info(kernel, device, name, 24, to, none)) {
            R::SUCCESS => Ok(told),
            code => Err(code),
        }
    };
    let (limited, free) = (built(&zero, &spirv::limited()), built(&zero, &spirv::set()));
    let [tight, loose] = [limited, free].map(|program| kernel(program, c"set"));
    assert_eq!((most(tight), most(loose)), (Ok([4, 2, 1]), Ok([0; 3])));
    let (mut told, device, none) = (9_usize, zero.device, null_mut());
    let to = (&raw mut told).cast();
    let name = I::COMPILE_MAX_LINEAR_WORK_GROUP_SIZE;
    let all = call!(kernel.get_group_info(tight, device, name, 8, to, none));
    assert_eq!(all, R::ERROR_UNSUPPORTED_ENUMERATION);
    // Groups that we choose keep to it, and others are refused.
    let (array, value, mut best) = (zero.device_memory(64), 3_u32, [0_usize]);
    assert_eq!(run(zero.queue, tight, 16, array, Some(&value)), R::SUCCESS);
    zero.finish();
    assert_eq!(zero.read::<u32, 16>(array), [3; 16]);
    let (offset, global) = ([0_usize], [16_usize]);
    let (queue, offset, global) = (zero.queue, offset.as_ptr(), global.as_ptr());
    let to = best.as_mut_ptr();
    let code = call!(kernel.get_suggested_local_work_size(tight, queue, 1, offset, global, to));
    assert_eq!(code, R::SUCCESS);
    assert!((1..=4).contains(&best[0]), "{best:?}");
    // A module that somebody else loaded has no SPIR-V to ask.
    let (mut native, mut adopted) = (0, NO_PROGRAM);
    assert_eq!(call!(program.get_native_handle(limited, &mut native)), R::SUCCESS);
    let (context, to) = (zero.context, &raw mut adopted);
    let code = call!(program.create_with_native_handle(native, context, null(), to));
    assert_eq!(code, R::SUCCESS);
    let unknown = kernel(adopted, c"set");
    assert_eq!(most(unknown), Err(R::ERROR_UNSUPPORTED_ENUMERATION));
    for one in [tight, loose, unknown] {
        assert_eq!(call!(kernel.release(one)), R::SUCCESS);
    }
    release(&[adopted, limited, free]);
    zero.free(array);
}
#[test]
fn a_program_of_a_native_handle_is_built_already() {
    let Some(zero) = Zero::new() else { return };
    let (made, mut native, mut adopted) = (built(&zero, &spirv::special()), 0, NO_PROGRAM);
    assert_eq!(call!(program.get_native_handle(made, &mut native)), R::SUCCESS);
    let code = call!(program.create_with_native_handle(native, zero.context, null(), &mut adopted));
    assert_eq!(code, R::SUCCESS);
    use ur_program_build_info_t as I;
    let ask = |name| {
        let (mut told, device) = (77_u32, zero.device);
        let to = (&raw mut told).cast();
        let code = call!(program.get_build_info(adopted, device, name, 4, to, null_mut()));
        assert_eq!(code, R::SUCCESS);
        told
    };
    assert_eq!(ask(I::STATUS), ur_program_build_status_t::SUCCESS.0);
    assert_eq!(ask(I::BINARY_TYPE), ur_program_binary_type_t::EXECUTABLE.0);
    assert_eq!(written(&zero, adopted, c"put"), [1; 4]);
    // Building it again changes nothing.
    assert_eq!(call!(program.build(zero.context, adopted, null())), R::SUCCESS);
    assert_eq!(written(&zero, adopted, c"put"), [1; 4]);
    // One that is not built has nothing that the driver would know.
    let early = program(&zero, &spirv::special());
    let code = call!(program.get_native_handle(early, &mut native));
    assert_eq!(code, R::ERROR_INVALID_PROGRAM_EXECUTABLE);
    release(&[adopted, made, early]);
}
#[test]
fn a_failed_build_says_why() {
    let Some(zero) = Zero::new() else { return };
    let mut words = spirv::set();
    words.truncate(words.len() - 3);
    let (made, mut log, mut bytes) = (program(&zero, &words), [0_u8; 4096], 0);
    assert_eq!(call!(program.build(zero.context, made, null())), R::ERROR_PROGRAM_BUILD_FAILURE);
    let (name, to) = (ur_program_build_info_t::LOG, log.as_mut_ptr().cast());
    let code = call!(program.get_build_info(made, zero.device, name, 4096, to, &mut bytes));
    assert_eq!(code, R::SUCCESS);
    assert!(bytes > 1 && log[bytes - 1] == 0, "the log has {bytes} bytes");
    release(&[made]);
}
#[test]
fn threads_that_launch_one_kernel_do_not_mix_up_their_arguments() {
    let Some(zero) = Zero::new() else { return };
    let made = built(&zero, &spirv::set());
    let kernel = kernel(made, c"set");
    let shared = &Shared(&zero, kernel);
    std::thread::scope(|scope| {
        for number in 0..8_u32 {
            scope.spawn(move || {
                let Shared(zero, kernel) = *shared;
                let (mut queue, array) = (ur_queue_handle_t::NULL, zero.device_memory(1024 * 4));
                let code = call!(queue.create(zero.context, zero.device, null(), &mut queue));
                assert_eq!(code, R::SUCCESS);
                for round in 0..50 {
                    let value = number * 1000 + round;
                    let items = 1 + (number as usize + round as usize) % 1024;
                    assert_eq!(run(queue, kernel, items, array, Some(&value)), R::SUCCESS);
                    assert_eq!(call!(queue.finish(queue)), R::SUCCESS);
                    let found = zero.read::<u32, 1024>(array);
                    assert!(found[..items].iter().all(|one| *one == value), "{number} {round}");
                }
                assert_eq!(call!(queue.release(queue)), R::SUCCESS);
                zero.free(array);
            });
        }
    });
    assert_eq!(call!(kernel.release(kernel)), R::SUCCESS);
    release(&[made]);
}
#[test]
fn a_kernel_is_released_while_it_runs() {
    let Some(zero) = Zero::new() else { return };
    let array = zero.device_memory(64);
    for value in 0..32_u32 {
        let made = built(&zero, &spirv::set());
        let kernel = kernel(made, c"set");
        assert_eq!(run(zero.queue, kernel, 16, array, Some(&value)), R::SUCCESS);
        assert_eq!(call!(kernel.release(kernel)), R::SUCCESS);
        release(&[made]);
    }
    zero.finish();
    assert_eq!(zero.read::<u32, 16>(array), [31; 16]);
    zero.free(array);
}
#[test]
fn native_handles_of_programs_and_kernels_are_launched_like_others() {
    let Some(zero) = Zero::new() else { return };
    let made = built(&zero, &spirv::set());
    let (first, array, mut native) = (kernel(made, c"set"), zero.device_memory(64), 0);
    assert_eq!(call!(program.get_native_handle(made, &mut native)), R::SUCCESS);
    let mut again = NO_PROGRAM;
    let code = call!(program.create_with_native_handle(native, zero.context, null(), &mut again));
    assert_eq!(code, R::SUCCESS);
    assert_eq!(call!(kernel.get_native_handle(first, &mut native)), R::SUCCESS);
    let (mut other, c) = (ur_kernel_handle_t::NULL, zero.context);
    let code = call!(kernel.create_with_native_handle(native, c, again, null(), &mut other));
    assert_eq!(code, R::SUCCESS);
    // Both are one kernel of the driver's: what one sets the other does not take for its own.
    for (value, kernel) in [(1_u32, first), (2, other), (1, first), (1, other), (3, first)] {
        assert_eq!(run(zero.queue, kernel, 16, array, Some(&value)), R::SUCCESS);
        zero.finish();
        assert_eq!(zero.read::<u32, 16>(array), [value; 16]);
    }
    for one in [other, first] {
        assert_eq!(call!(kernel.release(one)), R::SUCCESS);
    }
    release(&[again, made]);
    zero.free(array);
}
#[test]
fn kernels_reach_all_of_a_buffer_that_exceeds_the_ordinary_limit() {
    if !is_inside(
        "kernels_reach_all_of_a_buffer_that_exceeds_the_ordinary_limit",
        &[
            ("ZE_SOFTWARE_MEMORY", "64"),
            ("ZE_SOFTWARE_STATEFUL_4G", "4"),
            ("UR_L0_ENABLE_RELAXED_ALLOCATION_LIMITS", "1"),
        ],
    ) {
        return;
    }
    let Some(zero) = Zero::new() else { return };
    let (mut most, name) = (0_u64, ur_device_info_t::MAX_MEM_ALLOC_SIZE);
    let to = (&raw mut most).cast();
    assert_eq!(call!(device.get_info(zero.device, name, 8, to, null_mut())), R::SUCCESS);
    assert_eq!(most, 64 << 20, "all that the device has");
    let array = zero.device_memory(48 << 20);
    let pieces = [program(&zero, &spirv::caller()), program(&zero, &spirv::callee())];
    for one in pieces {
        assert_eq!(call!(program.compile(zero.context, one, null())), R::SUCCESS);
    }
    let (mut linked, at) = (NO_PROGRAM, pieces.as_ptr());
    assert_eq!(call!(program.link(zero.context, 2, at, null(), &mut linked)), R::SUCCESS);
    for (program, name) in [(built(&zero, &spirv::special()), c"put"), (linked, c"call")] {
        let kernel = kernel(program, name);
        assert_eq!(run(zero.queue, kernel, 4, array, None), R::SUCCESS);
        zero.finish();
        assert_eq!(call!(kernel.release(kernel)), R::SUCCESS);
        release(&[program]);
    }
    release(&pieces);
    zero.free(array);
}

#[test]
fn the_driver_changes_launches_of_a_command_buffer_in_their_place() {
    // The first list is what is recorded, the second what the driver may change; there is no third.
    let name = "the_driver_changes_launches_of_a_command_buffer_in_their_place";
    if !is_inside(name, &[("ZE_SOFTWARE_FAIL", "zeCommandListCreate:3=0x70000003")]) {
        return;
    }
    let Some(zero) = Zero::new() else { return };
    let made = built(&zero, &spirv::set());
    let (set, array) = (kernel(made, c"set"), zero.device_memory(64));
    zero.write(array, &[0u32; 16]);
    let desc = ur_exp_command_buffer_desc_t { isUpdatable: 1, ..IN_ORDER_COMMANDS };
    let (mut buffer, mut command) =
        (ur_exp_command_buffer_handle_t::NULL, ur_exp_command_buffer_command_handle_t::NULL);
    let (context, device) = (zero.context, zero.device);
    let code = call!(command_buffer_exp.create_exp(context, device, &raw const desc, &mut buffer));
    assert_eq!(code, R::SUCCESS);
    let number = 1_u32;
    let value = Value { value: (&raw const number).cast() };
    let given = [
        argument(0, Kind::POINTER, 8, Value { pointer: array }),
        argument(1, Kind::VALUE, 4, value),
    ];
    let (global, at, none) = ([4_usize], given.as_ptr(), null());
    let code = call!(command_buffer_exp.append_kernel_launch_with_args_exp(
        buffer,
        set,
        1,
        none,
        global.as_ptr(),
        none,
        2,
        at,
        0,
        null_mut(),
        0,
        null(),
        0,
        null(),
        null_mut(),
        null_mut(),
        &mut command
    ));
    assert_eq!(code, R::SUCCESS);
    assert_eq!(call!(command_buffer_exp.finalize_exp(buffer)), R::SUCCESS);
    let run = || {
        let (queue, none) = (zero.queue, null_mut());
        let code = call!(enqueue_exp.command_buffer_exp(queue, buffer, 0, null(), none));
        assert_eq!(code, R::SUCCESS);
        zero.finish();
        zero.read::<u32, 16>(array)
    };
    assert_eq!(run()[..5], [1, 1, 1, 1, 0]);
    for (number, items) in [(2_u32, 4_usize), (3, 8), (4, 6)] {
        let value = ur_exp_command_buffer_update_value_arg_desc_t {
            stype: ur_structure_type_t::EXP_COMMAND_BUFFER_UPDATE_VALUE_ARG_DESC,
            pNext: null(),
            argIndex: 1,
            argSize: 4,
            pProperties: null(),
            pNewValueArg: (&raw const number).cast(),
        };
        let (mut offset, mut global) = ([0_usize], [items]);
        let update = ur_exp_command_buffer_update_kernel_launch_desc_t {
            stype: ur_structure_type_t::EXP_COMMAND_BUFFER_UPDATE_KERNEL_LAUNCH_DESC,
            pNext: null(),
            hCommand: command,
            hNewKernel: set,
            numNewMemObjArgs: 0,
            numNewPointerArgs: 0,
            numNewValueArgs: 1,
            newWorkDim: 1,
            pNewMemObjArgList: null(),
            pNewPointerArgList: null(),
            pNewValueArgList: &raw const value,
            pNewGlobalWorkOffset: offset.as_mut_ptr(),
            pNewGlobalWorkSize: global.as_mut_ptr(),
            pNewLocalWorkSize: null_mut(),
        };
        let one = &raw const update;
        let code = call!(command_buffer_exp.update_kernel_launch_exp(buffer, 1, one));
        assert_eq!(code, R::SUCCESS);
        let found = run();
        assert!(found[..items].iter().all(|one| *one == number), "{number}: {found:?}");
        assert!(found[items..].iter().all(|one| *one != number), "{number}: {found:?}");
    }
    assert_eq!(call!(command_buffer_exp.release_exp(buffer)), R::SUCCESS);
    assert_eq!(call!(kernel.release(set)), R::SUCCESS);
    release(&[made]);
    zero.free(array);
}

#[test]
fn a_launch_begins_at_its_own_offset_or_is_refused_whole() {
    let Some(zero) = Zero::new() else { return };
    let (made, array) = (built(&zero, &spirv::set()), zero.device_memory(4096));
    let set = kernel(made, c"set");
    zero.write(array, &[0_u32; 1024]);
    let launch = |number: u32, offset: usize, items: usize| {
        let desc = [
            argument(0, Kind::POINTER, 8, Value { pointer: array }),
            argument(1, Kind::VALUE, 4, Value { value: (&raw const number).cast() }),
        ];
        let (offset, global, none) = ([offset], [items], null());
        call!(enqueue_exp.kernel_launch_with_args_exp(
            zero.queue,
            set,
            1,
            offset.as_ptr(),
            global.as_ptr(),
            none,
            2,
            desc.as_ptr(),
            null(),
            0,
            null(),
            null_mut()
        ))
    };
    // The driver's offsets have 32 bits. Nothing of the refused launch is left for the next, and no offset of the one before.
    for (number, offset, code) in
        [(1, 512, R::SUCCESS), (2, 1 << 33, R::ERROR_INVALID_VALUE), (3, 0, R::SUCCESS)]
    {
        assert_eq!(launch(number, offset, 256), code, "{offset}");
    }
    zero.finish();
    let now = zero.read::<u32, 1024>(array);
    let parts: Vec<_> = now.chunks(256).map(|part| (part[0], part[255])).collect();
    assert_eq!(parts, [(3, 3), (0, 0), (1, 1), (0, 0)]);
    assert_eq!(call!(kernel.release(set)), R::SUCCESS);
    release(&[made]);
    zero.free(array);
}

#[test]
fn a_kernel_writes_the_end_of_a_large_buffer() {
    let Ok(gib) = std::env::var("CAUSEWAY_CARD_GIB") else {
        return println!("skipped: cargo xtask level-zero-card says how large it is to be");
    };
    let Some(zero) = Zero::new() else { return };
    let (mut most, name) = (0_u64, ur_device_info_t::MAX_MEM_ALLOC_SIZE);
    let to = (&raw mut most).cast();
    assert_eq!(call!(device.get_info(zero.device, name, 8, to, null_mut())), R::SUCCESS);
    let bytes = gib.parse::<usize>().unwrap() << 30;
    if most < bytes as u64 {
        return println!("skipped: the device has {most} bytes for one allocation");
    }
    let (made, array) = (built(&zero, &spirv::set()), zero.device_memory(bytes));
    let (set, number) = (kernel(made, c"set"), 77_u32);
    // As an argument, and reached from its beginning by items behind 4 GiB.
    let items = bytes / 4;
    let desc = [
        argument(0, Kind::POINTER, 8, Value { pointer: array }),
        argument(1, Kind::VALUE, 4, Value { value: (&raw const number).cast() }),
    ];
    let (offset, global) = ([items - 1024], [1024_usize]);
    let (offset, global, none) = (offset.as_ptr(), global.as_ptr(), null());
    let code = call!(enqueue_exp.kernel_launch_with_args_exp(
        zero.queue,
        set,
        1,
        offset,
        global,
        none,
        2,
        desc.as_ptr(),
        null(),
        0,
        null(),
        null_mut()
    ));
    assert_eq!(code, R::SUCCESS);
    zero.finish();
    let end = array.wrapping_byte_add(bytes - 4096);
    assert_eq!(zero.read::<u32, 1024>(end), [77; 1024]);
    assert_eq!(call!(kernel.release(set)), R::SUCCESS);
    release(&[made]);
    zero.free(array);
}
