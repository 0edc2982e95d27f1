//! Programs in SPIR-V, put together word by word so that no compiler is needed.
#![allow(dead_code, reason = "each test binary uses its own part")]
use super::c::*;
use crate::call;
use std::ptr::null;
use ur_sys::*;

/// A program of a module.
pub fn program(zero: &Zero, words: &[u32]) -> ur_program_handle_t {
    let (mut made, at, bytes) =
        (ur_program_handle_t::NULL, words.as_ptr().cast(), size_of_val(words));
    let code = call!(program.create_with_il(zero.context, at, bytes, null(), &mut made));
    assert_eq!(code, ur_result_t::SUCCESS);
    made
}
/// The same, built.
pub fn built(zero: &Zero, words: &[u32]) -> ur_program_handle_t {
    let made = program(zero, words);
    assert_eq!(call!(program.build(zero.context, made, null())), ur_result_t::SUCCESS);
    made
}

fn op(code: u32, operands: &[u32]) -> Vec<u32> {
    let first = ((operands.len() as u32 + 1) << 16) | code;
    [first].into_iter().chain(operands.iter().copied()).collect()
}
/// With a name between the operands.
fn named(code: u32, before: &[u32], name: &str, after: &[u32]) -> Vec<u32> {
    let mut bytes = name.as_bytes().to_vec();
    bytes.resize((name.len() / 4 + 1) * 4, 0); // a zero byte at least
    let name: Vec<u32> =
        bytes.chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
    op(code, &[before, &name, after].concat())
}
const VOID: u32 = 1;
const INT: u32 = 2;
const LONG: u32 = 3;
const TRIPLE: u32 = 4;
const ARRAY: u32 = 5;
const AT_TRIPLE: u32 = 6;
const ID: u32 = 7;
const KERNEL: u32 = 6;

/// A module: what it begins with, `names` (entry points and decorations), the types, `rest`.
fn module(names: &[Vec<u32>], rest: &[Vec<u32>]) -> Vec<u32> {
    let head = [
        vec![0x0723_0203, 0x0001_0000, 0, 99, 0],
        op(17, &[4]),
        op(17, &[5]),
        op(17, &[KERNEL]),
        op(17, &[11]),
        op(14, &[2, 2]),
    ];
    let types = [
        op(19, &[VOID]),
        op(21, &[INT, 32, 0]),
        op(21, &[LONG, 64, 0]),
        op(23, &[TRIPLE, LONG, 3]),
        op(32, &[ARRAY, 5, INT]),
        op(32, &[AT_TRIPLE, 1, TRIPLE]),
        op(59, &[AT_TRIPLE, ID, 1]),
    ];
    [head.concat(), names.concat(), types.concat(), rest.concat()].concat()
}
fn place() -> Vec<u32> {
    [op(71, &[ID, 11, 28]), op(71, &[ID, 22])].concat()
}
/// From the item's number on: `element` becomes the address of its element of `array`.
fn element(array: u32, element: u32) -> Vec<u32> {
    let (all, x) = (90, 91);
    let parts = [
        op(61, &[TRIPLE, all, ID, 2, 32]),
        op(81, &[LONG, x, all, 0]),
        op(70, &[ARRAY, element, array, x]),
    ];
    parts.concat()
}
/// `set(array, value)` writes a number to the item's element.
pub fn set() -> Vec<u32> {
    set_of(&[])
}
/// The same, of a kernel that allows groups of at most 4, 2 and 1 items.
pub fn limited() -> Vec<u32> {
    set_of(&[op(16, &[11, 5893, 4, 2, 1])])
}
/// The same, of a kernel whose sub-groups have 16 items.
pub fn in_sub_groups() -> Vec<u32> {
    set_of(&[op(16, &[11, 35, 16])])
}
fn set_of(modes: &[Vec<u32>]) -> Vec<u32> {
    let [kind, function, array, value, label, at] = [10, 11, 12, 13, 14, 15];
    let names = [named(15, &[KERNEL, function], "set", &[ID]), modes.concat(), place()];
    let rest = [
        op(33, &[kind, VOID, ARRAY, INT]),
        op(54, &[VOID, function, 0, kind]),
        op(55, &[ARRAY, array]),
        op(55, &[INT, value]),
        op(248, &[label]),
        element(array, at),
        op(62, &[at, value, 2, 4]),
        op(253, &[]),
        op(56, &[]),
    ];
    module(&names, &rest)
}
/// `put(array)` writes specialization constant 7, which is 1 if nobody says otherwise.
pub fn special() -> Vec<u32> {
    let [kind, function, array, constant, label, at] = [10, 11, 12, 13, 14, 15];
    let names = [named(15, &[KERNEL, function], "put", &[ID]), op(71, &[constant, 1, 7]), place()];
    let rest = [
        op(33, &[kind, VOID, ARRAY]),
        op(50, &[INT, constant, 1]),
        op(54, &[VOID, function, 0, kind]),
        op(55, &[ARRAY, array]),
        op(248, &[label]),
        element(array, at),
        op(62, &[at, constant, 2, 4]),
        op(253, &[]),
        op(56, &[]),
    ];
    module(&names, &rest)
}
/// `call(array)` writes what `number()` gives, which is another module's.
pub fn caller() -> Vec<u32> {
    let [kind, function, array, label, at] = [10, 11, 12, 14, 15];
    let [giving, number, given] = [16, 17, 18];
    let names = [
        named(15, &[KERNEL, function], "call", &[ID]),
        named(71, &[number, 41], "number", &[1]), // imported
        place(),
    ];
    let rest = [
        op(33, &[kind, VOID, ARRAY]),
        op(33, &[giving, INT]),
        op(54, &[INT, number, 0, giving]),
        op(56, &[]),
        op(54, &[VOID, function, 0, kind]),
        op(55, &[ARRAY, array]),
        op(248, &[label]),
        element(array, at),
        op(57, &[INT, given, number]),
        op(62, &[at, given, 2, 4]),
        op(253, &[]),
        op(56, &[]),
    ];
    module(&names, &rest)
}
/// `number()`, which gives 42.
pub fn callee() -> Vec<u32> {
    let [giving, number, label, value] = [16, 17, 18, 19];
    let names = [named(71, &[number, 41], "number", &[0]), place()]; // exported
    let rest = [
        op(33, &[giving, INT]),
        op(43, &[INT, value, 42]),
        op(54, &[INT, number, 0, giving]),
        op(248, &[label]),
        op(254, &[value]),
        op(56, &[]),
    ];
    module(&names, &rest)
}
/// The variable `total`, 5 at first, and `get(array)`, which writes it.
pub fn variable() -> Vec<u32> {
    variable_of(&[])
}
/// The same, with a name that SYCL gives it.
pub fn device_global() -> Vec<u32> {
    variable_of(&[named(71, &[17, 6188, 3], "a unique name::total", &[])])
}
fn variable_of(notes: &[Vec<u32>]) -> Vec<u32> {
    let [kind, function, array, label, at] = [10, 11, 12, 14, 15];
    let [first, total, now] = [16, 17, 18];
    let names = [
        named(15, &[KERNEL, function], "get", &[ID]),
        named(71, &[total, 41], "total", &[0]),
        notes.concat(),
        place(),
    ];
    let rest = [
        op(33, &[kind, VOID, ARRAY]),
        op(43, &[INT, first, 5]),
        op(59, &[ARRAY, total, 5, first]),
        op(54, &[VOID, function, 0, kind]),
        op(55, &[ARRAY, array]),
        op(248, &[label]),
        element(array, at),
        op(61, &[INT, now, total, 2, 4]),
        op(62, &[at, now, 2, 4]),
        op(253, &[]),
        op(56, &[]),
    ];
    module(&names, &rest)
}
