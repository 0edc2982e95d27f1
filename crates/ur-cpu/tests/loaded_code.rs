//! Loaded code, as a C program reaches it: variables in a queue's order, variables and functions by
//! address, what is refused, and an object that must not be loaded.
#![expect(unsafe_code, clippy::undocumented_unsafe_blocks, reason = "plays the C caller")]
mod common;
use common::{code::*, ur::*};
use std::{
    ffi::{CStr, c_void},
    ptr::{null, null_mut},
};
use ur_result_t as R;

/// A built program of the example's code.
fn built(codes: &Codes) -> Option<ur_program_handle_t> {
    let program = codes.program(example()?).unwrap();
    codes.build(program).unwrap();
    Some(program)
}
fn of<T>(values: &mut [T]) -> *mut c_void {
    values.as_mut_ptr().cast()
}
/// What a copy is: on which queue, whose and which variable, blocking, from where.
#[derive(Clone, Copy)]
struct Part<'a>(ur_queue_handle_t, ur_program_handle_t, &'a CStr, bool, usize);

fn read<A>(part: Part<'_>, to: &mut [A], event: *mut ur_event_handle_t) -> R {
    let (Part(queue, program, name, blocking, offset), bytes) = (part, size_of_val(to));
    call!(enqueue.device_global_variable_read(
        queue,
        program,
        name.as_ptr(),
        blocking,
        bytes,
        offset,
        of(to),
        0,
        null(),
        event
    ))
}
fn write<A>(part: Part<'_>, from: &[A], event: *mut ur_event_handle_t) -> R {
    let (Part(queue, program, name, blocking, offset), bytes) = (part, size_of_val(from));
    call!(enqueue.device_global_variable_write(
        queue,
        program,
        name.as_ptr(),
        blocking,
        bytes,
        offset,
        from.as_ptr().cast(),
        0,
        null(),
        event
    ))
}
fn address(codes: &Codes, program: ur_program_handle_t, name: &CStr) -> (R, usize, *mut c_void) {
    let (mut size, mut at, device) = (0, null_mut(), codes.ur.device);
    let name = name.as_ptr();
    let answer =
        call!(program.get_global_variable_pointer(device, program, name, &mut size, &mut at));
    (answer, size, at)
}

#[test]
fn variables_change_in_the_order_of_the_queue() {
    let codes = Codes::new();
    let Some(program) = built(&codes) else { return };
    let kernel = codes.kernel(program, "scaled").unwrap();
    let part = |name, blocking, offset| Part(codes.queue, program, name, blocking, offset);
    let mut scale = [0_i32];
    assert_eq!(read(part(c"scale", true, 0), &mut scale, null_mut()), R::SUCCESS);
    assert_eq!(scale, [3], "as the code initialises it");
    let mut a: Vec<i32> = (0..1000).collect();
    let mut out = vec![vec![0_i32; 1000]; 5];
    let values = [[10_i32], [20], [30], [40], [50]];
    for (value, out) in values.iter().zip(&mut out) {
        let mut event = ur_event_handle_t::NULL;
        assert_eq!(write(part(c"scale", false, 0), value, &mut event), R::SUCCESS);
        let name = ur_event_info_t::COMMAND_TYPE;
        let kind: u32 = codes
            .ur
            .value(|size, to, ret| call!(event.get_info(event, name, size, to, ret)))
            .unwrap();
        assert_eq!(kind, ur_command_t::DEVICE_GLOBAL_VARIABLE_WRITE.0);
        let arguments = [pointer(0, of(out)), pointer(1, of(&mut a)), value_of_one()];
        let launched =
            codes.launch_on(codes.queue, kernel, items(&[1000]), &arguments, &[]).unwrap();
        assert_eq!(call!(event.release(event)), R::SUCCESS);
        assert_eq!(call!(event.release(launched)), R::SUCCESS);
    }
    assert_eq!(call!(queue.finish(codes.queue)), R::SUCCESS);
    for ([scale], out) in values.iter().zip(out) {
        assert!(out.iter().zip(&a).all(|(got, a)| *got == a * scale + 1), "{scale}");
    }
    codes.release(kernel);
    codes.release_program(program);
}
fn value_of_one() -> ur_exp_kernel_arg_properties_t {
    static ONE: i32 = 1;
    value(2, &ONE)
}
#[test]
fn parts_of_a_variable_are_read_and_written_and_its_address_is_that_of_kernels() {
    let codes = Codes::new();
    let Some(program) = built(&codes) else { return };
    let kernel = codes.kernel(program, "visit").unwrap();
    codes.run(kernel, items(&[1002]), &[]).unwrap();
    let part = |offset| Part(codes.queue, program, c"visits", true, offset);
    let mut visits = [0_u64; 4];
    assert_eq!(read(part(0), &mut visits, null_mut()), R::SUCCESS);
    assert_eq!(visits, [251, 251, 250, 250]);
    assert_eq!(write(part(8), &[1000_u64, 2000], null_mut()), R::SUCCESS);
    let (answer, size, at) = address(&codes, program, c"visits");
    assert_eq!((answer, size), (R::SUCCESS, 32));
    let there = unsafe { at.cast::<[u64; 4]>().read() };
    assert_eq!(there, [251, 1000, 2000, 250]);
    let mut last = [0_u64];
    assert_eq!(read(part(24), &mut last, null_mut()), R::SUCCESS);
    assert_eq!(last, [250]);
    codes.release(kernel);
    codes.release_program(program);
}
#[test]
fn each_program_that_is_built_has_variables_of_its_own() {
    let codes = Codes::new();
    let (Some(one), Some(two)) = (built(&codes), built(&codes)) else { return };
    let part = |program| Part(codes.queue, program, c"scale", true, 0);
    assert_eq!(write(part(one), &[77_i32], null_mut()), R::SUCCESS);
    let mut scale = [0_i32];
    assert_eq!(read(part(two), &mut scale, null_mut()), R::SUCCESS);
    assert_eq!(scale, [3]);
    codes.release_program(one);
    assert_eq!(read(part(two), &mut scale, null_mut()), R::SUCCESS);
    codes.release_program(two);
}
#[test]
fn functions_are_found_by_name_and_can_be_called() {
    let codes = Codes::new();
    let Some(program) = built(&codes) else { return };
    let device = codes.ur.device;
    let find = |name: &CStr| {
        let (name, mut at) = (name.as_ptr(), null_mut());
        (call!(program.get_function_pointer(device, program, name, &mut at)), at)
    };
    let (answer, at) = find(c"increment");
    assert_eq!(answer, R::SUCCESS);
    let function: Function = unsafe { std::mem::transmute(at) };
    let (mut number, by, state) =
        ([5_i32, 6], 4_i32, State { global_id: [1, 0, 0], ..State::default() });
    let arguments = [of(&mut number), (&raw const by).cast_mut().cast()];
    unsafe { function(arguments.as_ptr(), &state) };
    assert_eq!(number, [5, 10]);
    assert_eq!(find(c"nobody").0, R::ERROR_INVALID_KERNEL_NAME);
    assert_eq!(find(c"scale").0, R::ERROR_INVALID_KERNEL_NAME, "a variable is no function");
    let name = c"increment".as_ptr();
    let answer = call!(program.get_function_pointer(device, program, name, null_mut()));
    assert_eq!(answer, R::ERROR_INVALID_NULL_POINTER);
    codes.release_program(program);
}
#[test]
fn what_is_no_part_of_a_variable_is_refused() {
    let codes = Codes::new();
    let Some(program) = built(&codes) else { return };
    let unbuilt = codes.program(example().unwrap()).unwrap();
    let (queue, none) = (codes.queue, null_mut());
    let mut eight = [0_u64];
    let mut refused = |program, name, offset, expected| {
        let part = Part(queue, program, name, true, offset);
        assert_eq!(read(part, &mut eight, none), expected, "read {name:?} + {offset}");
        assert_eq!(write(part, &eight, none), expected, "write {name:?} + {offset}");
    };
    refused(program, c"nobody", 0, R::ERROR_INVALID_VALUE);
    refused(program, c"increment", 0, R::ERROR_INVALID_VALUE);
    refused(program, c"visits", 25, R::ERROR_INVALID_VALUE);
    refused(program, c"visits", 32, R::ERROR_INVALID_VALUE);
    refused(program, c"visits", usize::MAX, R::ERROR_INVALID_VALUE);
    refused(program, c"scale", 0, R::ERROR_INVALID_VALUE);
    refused(unbuilt, c"visits", 0, R::ERROR_INVALID_PROGRAM_EXECUTABLE);
    refused(ur_program_handle_t(queue.0), c"visits", 0, R::ERROR_INVALID_PROGRAM);
    refused(ur_program_handle_t::NULL, c"visits", 0, R::ERROR_INVALID_NULL_HANDLE);
    let other = Codes::new();
    let part = Part(other.queue, program, c"visits", true, 0);
    assert_eq!(read(part, &mut eight, none), R::ERROR_INVALID_CONTEXT);
    assert_eq!(address(&codes, program, c"nobody").0, R::ERROR_INVALID_VALUE);
    assert_eq!(address(&codes, unbuilt, c"scale").0, R::ERROR_INVALID_PROGRAM_EXECUTABLE);
    codes.release_program(unbuilt);
    codes.release_program(program);
}
#[test]
fn an_object_that_lacks_what_is_to_be_loaded_is_refused_before_it_is_mapped() {
    let Some(example) = example() else { return };
    let codes = Codes::new();
    // Without its table of sections: only the segments tell that they are not whole.
    let mut cut = example[..4096].to_vec();
    cut[0x28..0x30].fill(0);
    cut[0x3a..0x40].fill(0);
    let program = codes.program(&cut).unwrap();
    let refused = codes.build(program).expect_err("cut off");
    assert_eq!(refused.code, R::ERROR_PROGRAM_BUILD_FAILURE);
    assert!(codes.log(program).contains("cut off"), "{}", codes.log(program));
    codes.release_program(program);
}
