//! The suite's kernels in SPIR-V, for OpenCL and Level Zero devices: the same as in `kernels.ptx`, assembled
//! word by word so that no compiler is needed.

const KERNEL: u32 = 6;
const VOID: u32 = 1;
const INT: u32 = 2;
const LONG: u32 = 3;
const TRIPLE: u32 = 4;
const ARRAY: u32 = 5;

/// An instruction with its opcode and operands.
fn op(code: u32, operands: &[u32]) -> Vec<u32> {
    let first = ((operands.len() as u32 + 1) << 16) | code;
    [first].into_iter().chain(operands.iter().copied()).collect()
}
/// A name of at most three letters, which is one word.
fn text(name: &str) -> u32 {
    name.bytes().rev().fold(0, |word, byte| word << 8 | u32::from(byte))
}
/// The entry point of a kernel.
fn entry(function: u32, name: &str, interface: &[u32]) -> Vec<u32> {
    let operands: Vec<u32> =
        [KERNEL, function, text(name)].into_iter().chain(interface.iter().copied()).collect();
    op(15, &operands)
}
/// A module whose identifiers are below `bound`: entry points and decorations, then the rest.
fn module(bound: u32, entries: &[Vec<u32>], rest: &[Vec<u32>]) -> Vec<u32> {
    let head = [
        vec![0x0723_0203, 0x0001_0000, 0, bound, 0], // magic number, version, generator
        op(17, &[4]),                                // capabilities: addresses,
        op(17, &[5]),                                // linkage,
        op(17, &[KERNEL]),                           // kernels,
        op(17, &[11]),                               // and 64-bit integers
        op(14, &[2, 2]),                             // 64-bit addresses, the OpenCL memory model
    ];
    [head.concat(), entries.concat(), rest.concat()].concat()
}
fn types() -> Vec<u32> {
    let all = [
        op(19, &[VOID]),
        op(21, &[INT, 32, 0]),
        op(21, &[LONG, 64, 0]),
        op(23, &[TRIPLE, LONG, 3]),
        op(32, &[ARRAY, 5, INT]),
    ];
    all.concat()
}
/// A kernel without parameters that does nothing. It uses the identifier `function` and the next two.
fn nothing(function: u32) -> Vec<u32> {
    let (kind, label) = (function + 1, function + 2);
    let all = [op(54, &[VOID, function, 0, kind]), op(248, &[label]), op(253, &[]), op(56, &[])];
    all.concat()
}
/// `add(array, value)` adds to the element x + 16 y + 256 z of the work item with the global id (x, y, z),
/// offset included; `x()` does nothing. `var` is a variable with the initial value 41.
pub(super) fn kernels() -> Vec<u32> {
    let [id, pointer, kind, rows, layers, add, array, value, label] =
        [10, 11, 12, 13, 14, 15, 16, 17, 18];
    let [all, x, y, z, down, back, row, index] = [20, 21, 22, 23, 24, 25, 26, 27];
    let [element, old, new, nothing_at, variable, first] = [28, 29, 30, 40, 45, 46];
    let declared = [
        op(32, &[pointer, 1, TRIPLE]),
        op(43, &[LONG, rows, 16, 0]),
        op(43, &[LONG, layers, 256, 0]),
        op(33, &[kind, VOID, ARRAY, INT]),
        op(33, &[nothing_at + 1, VOID]),
        op(59, &[pointer, id, 1]),
        op(43, &[INT, first, 41]),
        op(59, &[ARRAY, variable, 5, first]),
    ];
    let body = [
        op(54, &[VOID, add, 0, kind]),
        op(55, &[ARRAY, array]),
        op(55, &[INT, value]),
        op(248, &[label]),
        op(61, &[TRIPLE, all, id, 2, 32]),
        op(81, &[LONG, x, all, 0]),
        op(81, &[LONG, y, all, 1]),
        op(81, &[LONG, z, all, 2]),
        op(132, &[LONG, down, y, rows]),
        op(132, &[LONG, back, z, layers]),
        op(128, &[LONG, row, x, down]),
        op(128, &[LONG, index, row, back]),
        op(70, &[ARRAY, element, array, index]),
        op(61, &[INT, old, element, 2, 4]),
        op(128, &[INT, new, old, value]),
        op(62, &[element, new, 2, 4]),
        op(253, &[]),
        op(56, &[]),
    ];
    let entries = [
        entry(add, "add", &[id]),
        entry(nothing_at, "x", &[]),
        op(71, &[id, 11, 28]),                   // the global invocation id,
        op(71, &[id, 22]),                       // which is constant
        op(71, &[variable, 41, text("var"), 0]), // exported
    ];
    module(50, &entries, &[types(), declared.concat(), body.concat(), nothing(nothing_at)])
}
/// Another `x`, which cannot be linked with that of `kernels`.
pub(super) fn rival() -> Vec<u32> {
    let entries = [entry(10, "x", &[])];
    module(20, &entries, &[types(), op(33, &[11, VOID]), nothing(10)])
}
/// A kernel `k` that stores the specialization constant 7.
pub(super) fn special() -> Vec<u32> {
    let [kind, constant, function, to, label] = [10, 11, 12, 13, 14];
    let rest = [
        types(),
        op(33, &[kind, VOID, ARRAY]),
        op(50, &[INT, constant, 1]),
        op(54, &[VOID, function, 0, kind]),
        op(55, &[ARRAY, to]),
        op(248, &[label]),
        op(62, &[to, constant, 2, 4]), // store, aligned to four bytes
        op(253, &[]),
        op(56, &[]),
    ];
    module(20, &[entry(function, "k", &[]), op(71, &[constant, 1, 7])], &rest)
}
