//! Kernels assembled word by word, with what compilers of OpenCL C rarely or never emit.
use super::{
    assembler::{module, named, op},
    at, built, launch,
};
use crate::spirv::{Argument, Program};
use std::sync::Arc;

const VOID: u32 = 1;
const INT: u32 = 2;
const POINTER: u32 = 3;
const TAKES: u32 = 4;
const FUNCTION: u32 = 5;
const TO: u32 = 6;
/// The types of a kernel `k` that takes a pointer to integers.
fn types() -> Vec<u32> {
    let declared = [
        op(19, &[VOID]),
        op(21, &[INT, 32, 0]),
        op(32, &[POINTER, 5, INT]),
        op(33, &[TAKES, VOID, POINTER]),
    ];
    declared.concat()
}
fn begin() -> Vec<u32> {
    let parts = [op(54, &[VOID, FUNCTION, 0, TAKES]), op(55, &[POINTER, TO]), op(248, &[7])];
    parts.concat()
}
fn end() -> Vec<u32> {
    [op(253, &[]), op(56, &[])].concat()
}
fn entry() -> Vec<u32> {
    named(15, &[6, FUNCTION], "k", &[])
}
/// A module whose kernel `k` stores twice the value of specialization constant 7.
pub(super) fn stores() -> Vec<u8> {
    let special = op(71, &[8, 1, 7]);
    let constant = op(50, &[INT, 8, 41]);
    let sum = op(52, &[INT, 9, 128, 8, 8]);
    let store = op(62, &[TO, 9, 2, 4]);
    module(16, &[entry(), special, types(), constant, sum, begin(), store, end()])
}
fn stored(program: &Arc<Program>) -> u32 {
    let mut number = [0_u32];
    launch(program, "k", [1; 3], vec![at(&mut number)]).run([1; 3]).unwrap();
    number[0]
}

#[test]
fn a_special_constant_and_what_is_computed_of_it_take_the_value_given() {
    assert_eq!(stored(&built(&stores())), 82);
    let given = [(7, 5_u32.to_le_bytes().to_vec())];
    let program = Program::build(&stores(), &given).unwrap();
    assert_eq!(program.specials(), [(7, 4)]);
    assert_eq!(stored(&Arc::new(program)), 10);
}
#[test]
fn a_module_in_the_other_order_of_bytes_is_the_same() {
    let mut bytes = stores();
    bytes.as_chunks_mut::<4>().0.iter_mut().for_each(|word| word.reverse());
    assert_eq!(stored(&built(&bytes)), 82);
}
#[test]
fn a_function_of_another_module_is_called_once_it_is_linked() {
    let outside = |kind| named(71, &[10, 41], "twice", &[kind]);
    let types_of_function = op(33, &[11, INT, INT]);
    let declared = [op(54, &[INT, 10, 0, 11]), op(55, &[INT, 12])].concat();
    let constant = op(43, &[INT, 8, 21]);
    let body = [op(57, &[INT, 9, 10, 8]), op(62, &[TO, 9, 2, 4])].concat();
    let import = [declared.clone(), op(56, &[])].concat();
    let head = [types(), types_of_function.clone(), constant].concat();
    let caller = module(16, &[entry(), outside(1), head, import, begin(), body, end()]);
    let sum = [op(248, &[13]), op(128, &[INT, 14, 12, 12]), op(254, &[14]), op(56, &[])].concat();
    let callee = module(16, &[outside(0), types(), types_of_function, declared, sum]);
    let (caller, callee) = (built(&caller), built(&callee));
    assert_eq!(caller.missing(), ["twice"]);
    let mut number = [0_u32];
    let k = launch(&caller, "k", [1; 3], vec![at(&mut number)]);
    assert!(k.run([1; 3]).unwrap_err().contains("twice is called and not linked"));
    caller.link(&callee);
    assert!(caller.missing().is_empty());
    assert_eq!(stored(&caller), 42);
}
#[test]
fn a_kernel_that_goes_where_nothing_is_ends_with_a_sentence() {
    let program = built(&stores());
    let k = launch(&program, "k", [1; 3], vec![Argument::Bytes([0; 8].into())]);
    assert!(k.run([1; 3]).unwrap_err().contains("where nothing is"));
}
/// A kernel that stores the result of a collective instruction: `together` gets the item's index (%20) and
/// computes %30.
fn collective(together: &[Vec<u32>]) -> Vec<u8> {
    let builtin = op(71, &[15, 11, 29]);
    let more = [
        op(20, &[16]),
        op(32, &[17, 1, INT]),
        op(59, &[17, 15, 1]),
        op(43, &[INT, 18, 3]), // the scope of a subgroup
        op(43, &[INT, 19, 2]), // the scope of a group, also used as the number two
    ];
    let body = [
        op(61, &[INT, 20, 15]),
        together.concat(),
        op(67, &[POINTER, 31, TO, 20]),
        op(62, &[31, 30, 2, 4]),
    ];
    module(40, &[entry(), builtin, types(), more.concat(), begin(), body.concat(), end()])
}
fn results(together: &[Vec<u32>], items: u32) -> Vec<u32> {
    let program = built(&collective(together));
    let mut all = vec![0_u32; items as usize];
    launch(&program, "k", [items, 1, 1], vec![at(&mut all)]).run([1; 3]).unwrap();
    all
}
#[test]
fn items_add_up_what_those_before_them_have() {
    let sums = results(&[op(349, &[INT, 30, 18, 2, 20])], 20);
    let before = |n: u32| (n / 16 * 16..n).sum::<u32>();
    assert_eq!(sums, (0..20).map(before).collect::<Vec<_>>());
    assert_eq!(results(&[op(264, &[INT, 30, 19, 0, 20])], 20), vec![190; 20]);
}
#[test]
fn items_take_the_numbers_of_others() {
    let exchanged = results(&[op(346, &[INT, 30, 18, 20, 19])], 8);
    assert_eq!(exchanged, [2, 3, 0, 1, 6, 7, 4, 5]);
    let first = results(&[op(338, &[INT, 30, 18, 20])], 18);
    assert_eq!(first[..16], [0; 16]);
    assert_eq!(first[16..], [16; 2]);
}
#[test]
fn items_find_the_largest_and_the_least() {
    assert_eq!(results(&[op(271, &[INT, 30, 19, 0, 20])], 5), [4; 5]);
    assert_eq!(results(&[op(267, &[INT, 30, 19, 1, 20])], 5), [0; 5]);
}
