//! What a SYCL compiler says of a program beside its code: names of device globals, and the groups that
//! kernels want.
#![expect(unsafe_code, reason = "plays the C caller")]
mod common;
use common::{code::*, ur::*};
use std::{
    ffi::{CStr, c_void},
    ptr::{null, null_mut},
};
use ur_kernel_group_info_t as I;
use ur_result_t as R;

/// An entry: its name, and the bytes behind the word in front.
type Entry = (&'static CStr, Vec<u8>);

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}
/// A program of a table or of an object's bytes, with metadata.
fn program(
    codes: &Codes,
    (at, length): (*const u8, usize),
    entries: &[Entry],
) -> Outcome<ur_program_handle_t> {
    let mut contents: Vec<_> =
        entries.iter().map(|(_, content)| [&[0; 8], &content[..]].concat()).collect();
    let entry = |((name, _), content): (&Entry, &mut Vec<u8>)| ur_program_metadata_t {
        pName: name.as_ptr(),
        r#type: ur_program_metadata_type_t::BYTE_ARRAY,
        size: content.len(),
        value: ur_program_metadata_value_t { pData: content.as_mut_ptr().cast() },
    };
    let all: Vec<_> = entries.iter().zip(&mut contents).map(entry).collect();
    let properties = ur_program_properties_t {
        stype: ur_structure_type_t::PROGRAM_PROPERTIES,
        pNext: null_mut(),
        count: all.len() as u32,
        pMetadatas: all.as_ptr(),
    };
    let (mut device, mut length, mut at) = (codes.ur.device, length, at);
    let mut made = ur_program_handle_t::NULL;
    let (device, length, at) = (&raw mut device, &raw mut length, &raw mut at);
    let context = codes.ur.context;
    let code =
        call!(program.create_with_binary(context, 1, device, length, at, &properties, &mut made));
    codes.ur.check(code)?;
    Ok(made)
}
fn variable(codes: &Codes, program: ur_program_handle_t, name: &CStr) -> Outcome<usize> {
    let (mut at, device, name) = (null_mut(), codes.ur.device, name.as_ptr());
    let code =
        call!(program.get_global_variable_pointer(device, program, name, null_mut(), &mut at));
    codes.ur.check(code).map(|()| at.addr())
}
unsafe extern "C" fn nothing(_: *const *mut c_void, _: *const State) {}

#[test]
fn a_device_global_is_found_by_the_name_that_sycl_gives_it() {
    let Some(object) = example() else { return };
    let codes = Codes::new();
    let bytes = (object.as_ptr(), object.len());
    let mapping = (c"sycl's::name@global_id_mapping", b"scale\0".to_vec());
    let mapped = program(&codes, bytes, std::slice::from_ref(&mapping)).unwrap();
    codes.build(mapped).unwrap();
    let at = variable(&codes, mapped, c"sycl's::name").unwrap();
    assert_eq!(variable(&codes, mapped, c"scale"), Ok(at));
    let mut value = [0_u8; 4];
    let read = call!(enqueue.device_global_variable_read(
        codes.queue,
        mapped,
        c"sycl's::name".as_ptr(),
        true,
        4,
        0,
        value.as_mut_ptr().cast(),
        0,
        null(),
        null_mut()
    ));
    assert_eq!(read, R::SUCCESS);
    // What is linked has the names of its parts.
    let linked = codes.link(&[mapped]).unwrap();
    assert!(variable(&codes, linked, c"sycl's::name").is_ok());
    let plain = codes.program(object).unwrap();
    codes.build(plain).unwrap();
    let unknown = variable(&codes, plain, c"sycl's::name").expect_err("nobody said it");
    assert_eq!(unknown.code, R::ERROR_INVALID_VALUE);
    for one in [mapped, linked, plain] {
        codes.release_program(one);
    }
}
#[test]
fn groups_are_as_the_kernel_wants_them() {
    let codes = Codes::new();
    let pairs = [pair(c"fixed", nothing), pair(c"small", nothing), pair(c"free", nothing), END];
    let bytes = (pairs.as_ptr().cast(), size_of_val(&pairs));
    let entries = [
        (c"fixed@reqd_work_group_size", words(&[4, 2])),
        (c"small@max_work_group_size", words(&[8, 1, 1])),
        (c"small@max_linear_work_group_size", words(&[6])),
    ];
    let made = program(&codes, bytes, &entries).unwrap();
    codes.build(made).unwrap();
    let kernels = ["fixed", "small", "free"].map(|name| codes.kernel(made, name).unwrap());
    let [fixed, small, free] = kernels;
    let three = |kernel, name| -> [usize; 3] {
        let device = codes.ur.device;
        let ask = |size, to, ret| call!(kernel.get_group_info(kernel, device, name, size, to, ret));
        codes.ur.value(ask).unwrap()
    };
    assert_eq!(three(fixed, I::COMPILE_WORK_GROUP_SIZE), [4, 2, 1]);
    assert_eq!(three(small, I::COMPILE_MAX_WORK_GROUP_SIZE), [8, 1, 1]);
    assert_eq!(three(free, I::COMPILE_WORK_GROUP_SIZE), [0; 3]);
    assert_eq!(three(free, I::COMPILE_MAX_WORK_GROUP_SIZE), [0; 3]);
    let launch = |kernel, local: Option<&[usize]>| {
        codes.run(kernel, Items { local, ..items(&[24, 4]) }, &[]).map_err(|e| e.code)
    };
    let wrong = Err(R::ERROR_INVALID_WORK_GROUP_SIZE);
    assert_eq!(launch(fixed, Some(&[4, 2])), Ok(()));
    assert_eq!(launch(fixed, Some(&[2, 2])), wrong);
    assert_eq!(launch(fixed, None), Ok(()));
    assert_eq!(launch(small, Some(&[6, 1])), Ok(()));
    assert_eq!(launch(small, Some(&[8, 1])), wrong, "more than 6 in all");
    assert_eq!(launch(small, Some(&[2, 2])), wrong, "more than 1 in the second dimension");
    assert_eq!(launch(small, None), Ok(()));
    let (offset, global, mut best) = ([0_usize; 2], [24_usize, 4], [0_usize; 2]);
    let (queue, offset, global, to) =
        (codes.queue, offset.as_ptr(), global.as_ptr(), best.as_mut_ptr());
    let mut suggested = |kernel| {
        let code =
            call!(kernel.get_suggested_local_work_size(kernel, queue, 2, offset, global, to));
        assert_eq!(code, R::SUCCESS);
        std::hint::black_box(&mut best);
        best
    };
    assert_eq!(suggested(fixed), [4, 2]);
    let [x, y] = suggested(small);
    assert!(x <= 6 && y == 1, "{x} x {y}");
    kernels.into_iter().for_each(|kernel| codes.release(kernel));
    codes.release_program(made);
}
#[test]
fn metadata_of_another_form_is_refused() {
    let codes = Codes::new();
    let pairs = [pair(c"k", nothing), END];
    let bytes = (pairs.as_ptr().cast(), size_of_val(&pairs));
    let malformed = [(c"k@reqd_work_group_size", vec![1, 2, 3])];
    let refused = program(&codes, bytes, &malformed).expect_err("three bytes are no size");
    assert_eq!(refused.code, R::ERROR_INVALID_VALUE);
}
