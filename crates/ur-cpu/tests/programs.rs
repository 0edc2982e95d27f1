//! Programs as a C program has them: which binaries are taken, building and linking, and what they
//! tell. What becomes of their code is program_code.rs's.
#![expect(
    unsafe_code,
    clippy::undocumented_unsafe_blocks,
    clippy::multiple_unsafe_ops_per_block,
    reason = "plays the C caller"
)]
mod common;
use common::{code::*, ur::*};
use std::{
    ffi::{CStr, c_char, c_void},
    ptr::{null, null_mut},
};
use ur_program_build_info_t as B;
use ur_program_info_t as I;
use ur_result_t as R;

/// The code of a refusal, which says why.
#[track_caller]
fn code<T: std::fmt::Debug>(outcome: Outcome<T>) -> R {
    outcome.expect_err("a refusal").code
}
/// The same, of a call that was just made.
#[track_caller]
fn refused(codes: &Codes, result: R, because: &str) -> R {
    let sentence = codes.ur.check(result).expect_err("a refusal").sentence;
    assert!(sentence.contains(because), "{sentence:?} does not say {because:?}");
    result
}
unsafe extern "C" fn nothing(_: *const *mut c_void, _: *const State) {}
unsafe extern "C" fn another(args: *const *mut c_void, _: *const State) {
    unsafe { *(*args).cast::<u32>() += 1 };
}
fn tables() -> [[Pair; 3]; 2] {
    [[pair(c"b", nothing), pair(c"a", another), END], [pair(c"c", nothing), END, END]]
}

fn build_info<T: Copy + Default>(codes: &Codes, program: ur_program_handle_t, name: B) -> T {
    let device = codes.ur.device;
    let query = |size, to, ret| call!(program.get_build_info(program, device, name, size, to, ret));
    codes.ur.value(query).expect("an answer")
}
fn status(codes: &Codes, program: ur_program_handle_t) -> ur_program_build_status_t {
    ur_program_build_status_t(build_info(codes, program, B::STATUS))
}
fn kind(codes: &Codes, program: ur_program_handle_t) -> ur_program_binary_type_t {
    ur_program_binary_type_t(build_info(codes, program, B::BINARY_TYPE))
}
fn kernel_names(codes: &Codes, program: ur_program_handle_t) -> String {
    let name = I::KERNEL_NAMES;
    codes.text(|size, to, ret| call!(program.get_info(program, name, size, to, ret)))
}

#[test]
fn a_table_is_a_program_that_tells_what_is_in_it() {
    let codes = Codes::new();
    let [table, _] = tables();
    let program = codes.table(&table).unwrap();
    assert_eq!(status(&codes, program), ur_program_build_status_t::NONE);
    assert_eq!(kind(&codes, program), ur_program_binary_type_t::NONE);
    assert_eq!(code(codes.kernel(program, "a")), R::ERROR_INVALID_PROGRAM_EXECUTABLE);
    assert_eq!(
        code(codes.program_info::<usize>(program, I::NUM_KERNELS)),
        R::ERROR_INVALID_PROGRAM_EXECUTABLE
    );
    let options = c"-fast";
    let done = call!(program.build(codes.ur.context, program, options.as_ptr()));
    assert_eq!(done, R::SUCCESS);
    assert_eq!(status(&codes, program), ur_program_build_status_t::SUCCESS);
    assert_eq!(kind(&codes, program), ur_program_binary_type_t::EXECUTABLE);
    let (device, name) = (codes.ur.device, B::OPTIONS);
    let told = codes
        .text(|size, to, ret| call!(program.get_build_info(program, device, name, size, to, ret)));
    assert_eq!((told.as_str(), codes.log(program).as_str()), ("-fast", ""));
    assert_eq!(codes.program_info(program, I::NUM_KERNELS), Ok(2_usize));
    assert_eq!(kernel_names(&codes, program), "a;b");
    assert_eq!(codes.program_info(program, I::NUM_DEVICES), Ok(1_u32));
    assert_eq!(codes.program_info(program, I::DEVICES), Ok(codes.ur.device.0.addr()));
    assert_eq!(codes.program_info(program, I::CONTEXT), Ok(codes.ur.context.0.addr()));
    assert_eq!(codes.program_info(program, I::BINARY_SIZES), Ok(0_usize));
    let mut size = 99;
    let il = call!(program.get_info(program, I::IL, 0, null_mut(), &mut size));
    assert_eq!((il, size), (R::SUCCESS, 0), "it was not made from any");
    assert_eq!(call!(program.retain(program)), R::SUCCESS);
    assert_eq!(codes.program_info(program, I::REFERENCE_COUNT), Ok(2_u32));
    codes.release_program(program);
    codes.release_program(program);
    assert_eq!(call!(program.release(program)), R::ERROR_INVALID_PROGRAM);
}
#[test]
fn a_table_ends_at_its_length_as_well_as_at_its_end() {
    let codes = Codes::new();
    let [table, _] = tables();
    let program = codes.table(&table[..1]).unwrap();
    codes.build(program).unwrap();
    assert_eq!(kernel_names(&codes, program), "b");
    codes.release_program(program);
    let program = codes.table(&[END, table[0]]).unwrap();
    codes.build(program).unwrap();
    assert_eq!(codes.program_info(program, I::NUM_KERNELS), Ok(0_usize));
    codes.release_program(program);
}
#[test]
fn an_object_gives_back_the_bytes_that_it_was_made_of() {
    let Some(object) = example() else { return };
    let codes = Codes::new();
    let program = codes.program(object).unwrap();
    codes.build(program).unwrap();
    assert_eq!(codes.program_info(program, I::BINARY_SIZES), Ok(object.len()));
    let mut bytes = vec![0_u8; object.len()];
    let mut places = [bytes.as_mut_ptr()];
    let (name, at) = (I::BINARIES, places.as_mut_ptr().cast());
    assert_eq!(call!(program.get_info(program, name, 8, at, null_mut())), R::SUCCESS);
    assert!(bytes == object);
    let names = kernel_names(&codes, program);
    let names: Vec<_> = names.split(';').collect();
    assert!(names.contains(&"scaled") && names.contains(&"visit"), "{names:?}");
    assert!(!names.contains(&"scale"), "a variable is no kernel");
    codes.release_program(program);
}
#[test]
fn what_is_neither_a_table_nor_an_object_is_refused() {
    let codes = Codes::new();
    let spir_v = [[0x0723_0203_u32, 0x0001_0600, 0, 100, 0], [0; 5], [0; 5], [0; 5]];
    let spir_v: Vec<u8> = spir_v.iter().flatten().flat_map(|word| word.to_le_bytes()).collect();
    let bit_code = [b"BC\xc0\xde".as_slice(), &[1; 80]].concat();
    let elf = [b"\x7fELF\x02\x01\x01".as_slice(), &[1; 30]].concat();
    for bytes in [&spir_v[..], &spir_v[..24], &bit_code, &bit_code[..20], &elf, &elf[..16]] {
        assert_eq!(code(codes.program(bytes)), R::ERROR_INVALID_BINARY, "{bytes:x?}");
    }
    let [table, _] = tables();
    let at: *const u8 = table.as_ptr().cast();
    assert_eq!(code(codes.raw(at, 15)), R::ERROR_INVALID_BINARY, "less than a function");
    assert_eq!(code(codes.raw(at, usize::MAX)), R::ERROR_INVALID_SIZE);
    assert_eq!(code(codes.raw(at.wrapping_add(1), 16)), R::ERROR_INVALID_BINARY);
    assert_eq!(code(codes.raw(null(), 48)), R::ERROR_INVALID_NULL_POINTER);
    let nameless = [Pair(null(), Some(nothing)), END];
    assert_eq!(code(codes.table(&nameless)), R::ERROR_INVALID_BINARY);
}
#[test]
fn intermediate_code_is_refused_as_on_a_device_without_a_compiler() {
    let codes = Codes::new();
    let (words, mut program) = ([0x0723_0203_u32, 0x0001_0600], ur_program_handle_t::NULL);
    let (context, at) = (codes.ur.context, words.as_ptr().cast());
    let made = call!(program.create_with_il(context, at, 8, null(), &mut program));
    assert_eq!(refused(&codes, made, "no compiler"), R::ERROR_COMPILER_NOT_AVAILABLE);
    let made = call!(program.create_with_il(context, at, 0, null(), &mut program));
    assert_eq!(made, R::ERROR_INVALID_SIZE);
    assert!(program.0.is_null());
}
#[test]
fn the_first_binary_for_a_native_cpu_is_selected() {
    let codes = Codes::new();
    let binary = |target: Option<&'static CStr>| ur_device_binary_t {
        stype: ur_structure_type_t::DEVICE_BINARY,
        pNext: null(),
        pDeviceTargetSpec: target.map_or(null(), CStr::as_ptr),
    };
    let other = binary(Some(c"spir64"));
    let (ours, longer) = (binary(Some(c"native_cpu")), binary(Some(c"native_cpu_2")));
    let select = |binaries: &[ur_device_binary_t]| {
        let (count, mut selected) = (binaries.len() as u32, u32::MAX);
        let (device, first) = (codes.ur.device, binaries.as_ptr());
        let code = call!(device.select_binary(device, first, count, &mut selected));
        (code, selected)
    };
    assert_eq!(select(&[ours]), (R::SUCCESS, 0));
    assert_eq!(select(&[other, longer, binary(None), ours, ours]), (R::SUCCESS, 3));
    assert_eq!(select(&[other, longer]), (R::ERROR_INVALID_BINARY, u32::MAX));
    assert_eq!(select(&[binary(None)]), (R::ERROR_INVALID_BINARY, u32::MAX));
    assert_eq!(select(&[]), (R::ERROR_INVALID_SIZE, u32::MAX));
}
#[test]
fn compiled_programs_are_linked_into_one_with_the_kernels_of_all() {
    let codes = Codes::new();
    let parts = tables().map(|table| codes.table(&table).unwrap());
    assert_eq!(code(codes.link(&parts)), R::ERROR_INVALID_OPERATION, "none is compiled");
    parts.iter().for_each(|part| codes.compile(*part).unwrap());
    assert_eq!(kind(&codes, parts[0]), ur_program_binary_type_t::COMPILED_OBJECT);
    assert_eq!(code(codes.kernel(parts[0], "a")), R::ERROR_INVALID_PROGRAM_EXECUTABLE);
    let linked = codes.link(&parts).unwrap();
    parts.into_iter().for_each(|part| codes.release_program(part));
    assert_eq!(kernel_names(&codes, linked), "a;b;c");
    assert_eq!(kind(&codes, linked), ur_program_binary_type_t::EXECUTABLE);
    let kernel = codes.kernel(linked, "a").unwrap();
    codes.release_program(linked);
    let mut word = [41_u32];
    codes.run(kernel, items(&[1]), &[pointer(0, word.as_mut_ptr().cast())]).unwrap();
    assert_eq!(word, [42]);
    codes.release(kernel);
}
#[test]
fn names_that_two_linked_programs_have_are_a_link_failure() {
    let codes = Codes::new();
    let one = codes.table(&[pair(c"same", nothing), END]).unwrap();
    let two = codes.table(&[pair(c"same", another), END]).unwrap();
    [one, two].iter().for_each(|part| codes.compile(*part).unwrap());
    let failure = codes.link(&[one, two]).expect_err("both have it");
    assert_eq!(failure.code, R::ERROR_PROGRAM_LINK_FAILURE);
    assert!(failure.sentence.contains("same"), "{}", failure.sentence);
    // One and the same function twice is no conflict.
    codes.release_program(codes.link(&[one, one]).unwrap());
    [one, two].into_iter().for_each(|part| codes.release_program(part));
}
#[test]
fn the_entries_with_device_lists_build_compile_and_link_too() {
    let codes = Codes::new();
    let (mut device, flags) = (codes.ur.device, ur_exp_program_flags_t::default());
    let [table, other] = tables();
    let [built, part] = [&table, &other].map(|table| codes.table(table).unwrap());
    let build =
        |program, device: &mut _| call!(program_exp.build_exp(program, 1, device, flags, null()));
    assert_eq!(build(built, &mut device), R::SUCCESS);
    assert_eq!(kernel_names(&codes, built), "a;b");
    assert_eq!(call!(program_exp.compile_exp(part, 1, &mut device, flags, null())), R::SUCCESS);
    let (context, mut linked) = (codes.ur.context, ur_program_handle_t::NULL);
    let all = [built, part];
    let link = call!(program_exp.link_exp(
        context,
        1,
        &mut device,
        flags,
        2,
        all.as_ptr(),
        null(),
        &mut linked
    ));
    assert_eq!(link, R::SUCCESS);
    assert_eq!(kernel_names(&codes, linked), "a;b;c");
    let dynamic = call!(program_exp.dynamic_link_exp(context, 2, all.as_ptr()));
    assert_eq!(dynamic, R::ERROR_UNSUPPORTED_FEATURE);
    let mut none = ur_device_handle_t::NULL;
    assert_eq!(build(built, &mut none), R::ERROR_INVALID_NULL_HANDLE);
    [linked, built, part].into_iter().for_each(|program| codes.release_program(program));
}
#[test]
fn a_program_of_another_context_or_device_is_refused() {
    let codes = Codes::new();
    let other = codes.ur.new_context();
    let program = codes.table(&tables()[0]).unwrap();
    let wrong = call!(program.build(other, program, null()));
    assert_eq!(refused(&codes, wrong, "another context"), R::ERROR_INVALID_CONTEXT);
    codes.build(program).unwrap();
    let mut linked = ur_program_handle_t::NULL;
    let wrong = call!(program.link(other, 1, &program, null(), &mut linked));
    assert_eq!(wrong, R::ERROR_INVALID_CONTEXT);
    let null_program = ur_program_handle_t::NULL;
    let wrong = call!(program.build(codes.ur.context, null_program, null()));
    assert_eq!(wrong, R::ERROR_INVALID_NULL_HANDLE);
    let a_context = ur_program_handle_t(codes.ur.context.0.cast());
    let wrong = call!(program.build(codes.ur.context, a_context, null()));
    assert_eq!(wrong, R::ERROR_INVALID_PROGRAM);
    let (mut none, mut size, mut at) = (ur_device_handle_t::NULL, 16, null::<u8>());
    let context = codes.ur.context;
    let mut make = |count, program: &mut _| {
        call!(program.create_with_binary(
            context,
            count,
            &raw mut none,
            &raw mut size,
            &raw mut at,
            null(),
            program
        ))
    };
    assert_eq!(make(0, &mut linked), R::ERROR_INVALID_SIZE);
    assert_eq!(make(1, &mut linked), R::ERROR_INVALID_NULL_HANDLE);
    assert_eq!(call!(context.release(other)), R::SUCCESS);
    codes.release_program(program);
}
#[test]
fn a_program_for_a_part_of_the_device_is_for_that_part_only() {
    let codes = Codes::new();
    let Some(part) = codes.ur.a_part() else { return };
    let [table, _] = tables();
    let (mut device, mut size) = (part, size_of_val(&table));
    let mut at: *const u8 = table.as_ptr().cast();
    let (context, mut program) = (codes.ur.context, ur_program_handle_t::NULL);
    let made = call!(program.create_with_binary(
        context,
        1,
        &mut device,
        &mut size,
        &mut at,
        null(),
        &mut program
    ));
    assert_eq!(made, R::SUCCESS);
    codes.build(program).unwrap();
    let kernel = codes.kernel(program, "b").unwrap();
    assert_eq!(code(codes.run(kernel, items(&[1]), &[])), R::ERROR_INVALID_DEVICE);
    let mut queue = ur_queue_handle_t::NULL;
    assert_eq!(call!(queue.create(context, part, null(), &mut queue)), R::SUCCESS);
    let event = codes.launch_on(queue, kernel, items(&[1]), &[], &[]).unwrap();
    codes.wait(event);
    codes.release(kernel);
    codes.release_program(program);
    assert_eq!(call!(queue.release(queue)), R::SUCCESS);
    assert_eq!(call!(device.release(part)), R::SUCCESS);
}
#[test]
fn native_handles_of_programs_and_kernels_are_good_for_themselves_only() {
    let codes = Codes::new();
    let program = codes.table(&tables()[0]).unwrap();
    codes.build(program).unwrap();
    let kernel = codes.kernel(program, "a").unwrap();
    let (context, mut of_program, mut of_kernel) = (codes.ur.context, 0, 0);
    assert_eq!(call!(program.get_native_handle(program, &mut of_program)), R::SUCCESS);
    assert_eq!(call!(kernel.get_native_handle(kernel, &mut of_kernel)), R::SUCCESS);
    let program_of = |native, context| {
        let mut back = ur_program_handle_t::NULL;
        let make = call!(program.create_with_native_handle(native, context, null(), &mut back));
        codes.ur.check(make).map(|()| back)
    };
    let kernel_of = |native, program| {
        let mut back = ur_kernel_handle_t::NULL;
        let make =
            call!(kernel.create_with_native_handle(native, context, program, null(), &mut back));
        codes.ur.check(make).map(|()| back)
    };
    assert_eq!(program_of(of_program, context), Ok(program));
    codes.release_program(program);
    for from in [program, ur_program_handle_t::NULL] {
        assert_eq!(kernel_of(of_kernel, from), Ok(kernel));
        codes.release(kernel);
    }
    for wrong in [0, 8, of_kernel, usize::MAX, of_program + 1] {
        assert_eq!(code(program_of(wrong, context)), R::ERROR_INVALID_PROGRAM, "{wrong:#x}");
    }
    for wrong in [0, 8, of_program, usize::MAX, of_kernel + 1] {
        assert_eq!(code(kernel_of(wrong, program)), R::ERROR_INVALID_KERNEL, "{wrong:#x}");
    }
    let elsewhere = codes.ur.new_context();
    assert_eq!(code(program_of(of_program, elsewhere)), R::ERROR_INVALID_CONTEXT);
    assert_eq!(call!(context.release(elsewhere)), R::SUCCESS);
    let other = codes.table(&tables()[1]).unwrap();
    assert_eq!(code(kernel_of(of_kernel, other)), R::ERROR_INVALID_PROGRAM);
    codes.release(kernel);
    [program, other].into_iter().for_each(|program| codes.release_program(program));
}
#[test]
fn specialization_constants_are_refused_as_the_device_says() {
    let codes = Codes::new();
    let program = codes.table(&tables()[0]).unwrap();
    codes.build(program).unwrap();
    let kernel = codes.kernel(program, "a").unwrap();
    let number = 1_u32;
    let constant =
        ur_specialization_constant_info_t { id: 0, size: 4, pValue: (&raw const number).cast() };
    let set = |count, at: *const _| call!(program.set_specialization_constants(program, count, at));
    assert_eq!(set(1, &constant), R::ERROR_UNSUPPORTED_FEATURE);
    assert_eq!(set(0, &constant), R::ERROR_INVALID_SIZE);
    assert_eq!(set(1, null()), R::ERROR_INVALID_NULL_POINTER);
    let set = call!(kernel.set_specialization_constants(kernel, 1, &constant));
    assert_eq!(set, R::ERROR_UNSUPPORTED_FEATURE);
    codes.release(kernel);
    codes.release_program(program);
}
#[test]
fn what_the_device_says_of_programs_is_so() {
    let codes = Codes::new();
    let said = |name| {
        let device = codes.ur.device;
        let said: u8 = codes
            .ur
            .value(|size, to, ret| call!(device.get_info(device, name, size, to, ret)))
            .unwrap();
        said != 0
    };
    use ur_device_info_t as D;
    for yes in [D::LINKER_AVAILABLE, D::BUILD_ON_SUBDEVICE, D::GLOBAL_VARIABLE_SUPPORT] {
        assert!(said(yes), "{yes:?}");
    }
    let no = [
        D::COMPILER_AVAILABLE,
        D::PROGRAM_SET_SPECIALIZATION_CONSTANTS,
        D::KERNEL_SET_SPECIALIZATION_CONSTANTS,
        D::DYNAMIC_LINK_SUPPORT_EXP,
    ];
    for no in no {
        assert!(!said(no), "{no:?}");
    }
}
#[test]
fn wrong_names_and_sizes_are_refused_with_the_documented_code() {
    let codes = Codes::new();
    let program = codes.table(&tables()[0]).unwrap();
    codes.build(program).unwrap();
    let mut kernel = ur_kernel_handle_t::NULL;
    let make = |name: *const c_char, to: *mut _| call!(kernel.create(program, name, to));
    assert_eq!(make(null(), &mut kernel), R::ERROR_INVALID_NULL_POINTER);
    assert_eq!(make(c"a".as_ptr(), null_mut()), R::ERROR_INVALID_NULL_POINTER);
    assert_eq!(make(c"A".as_ptr(), &mut kernel), R::ERROR_INVALID_KERNEL_NAME);
    assert!(kernel.0.is_null());
    let (mut four, mut size) = (0_u32, 0);
    let at = (&raw mut four).cast();
    let info = |name, size, at, ret| call!(program.get_info(program, name, size, at, ret));
    assert_eq!(info(I::NUM_DEVICES, 3, at, null_mut()), R::ERROR_INVALID_SIZE);
    assert_eq!(info(I::NUM_DEVICES, 0, at, null_mut()), R::ERROR_INVALID_SIZE);
    assert_eq!(info(I::NUM_DEVICES, 4, null_mut(), null_mut()), R::ERROR_INVALID_NULL_POINTER);
    assert_eq!(info(I(999), 4, at, &mut size), R::ERROR_INVALID_ENUMERATION);
    assert_eq!(info(I::NUM_DEVICES, 4, at, &mut size), R::SUCCESS);
    assert_eq!((four, size), (1, 4));
    let device = codes.ur.device;
    let build = call!(program.get_build_info(program, device, B(99), 4, at, &mut size));
    assert_eq!(build, R::ERROR_INVALID_ENUMERATION);
    codes.release_program(program);
}
