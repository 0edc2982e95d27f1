//! Malformed modules: each leads to an error message, and none to a panic, a hang or the end of the process.
use super::{
    assembler::{module, named, op},
    words::stores,
};
use crate::spirv::Program;

/// The error message for a module.
fn refusal(bytes: &[u8]) -> String {
    match Program::build(bytes, &[]) {
        Ok(_) => panic!("the module was built"),
        Err(why) => why,
    }
}
#[test]
fn what_is_no_spirv_at_all_is_refused() {
    assert!(refusal(b"").contains("too few"));
    assert!(refusal(&[0; 64]).contains("begins with"));
    assert!(refusal(b"\x03\x02\x23\x07").contains("too few"));
}
#[test]
fn a_module_cut_anywhere_has_no_kernel() {
    let whole = stores();
    for end in 0..whole.len() {
        let cut = Program::build(&whole[..end], &[]);
        assert!(cut.is_err() || cut.is_ok_and(|p| p.kernels().is_empty()), "cut at {end}");
    }
}
#[test]
fn a_module_with_any_word_changed_ends_in_an_answer() {
    let whole = stores();
    let mut refused = 0;
    for at in (0..whole.len()).step_by(4) {
        for word in [0_u32, 1, 3, 5, 0xff, 0x0001_0000, 0x0010_0036, 0x7fff_ffff, u32::MAX] {
            let mut bytes = whole.clone();
            bytes[at..at + 4].copy_from_slice(&word.to_le_bytes());
            refused += u32::from(Program::build(&bytes, &[]).is_err());
        }
    }
    assert!(refused > 100, "only {refused} changes were noticed");
}
#[test]
fn words_of_chance_end_in_an_answer() {
    let (mut seed, mut refused) = (0x9e37_79b9_7f4a_7c15_u64, 0);
    let mut next = || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed as u32
    };
    for _ in 0..3000 {
        let mut parts = vec![op(19, &[1]), op(21, &[2, 32, 0]), op(33, &[3, 1])];
        for _ in 0..next() % 12 {
            let operands: Vec<u32> = (0..next() % 6).map(|_| next() % 24).collect();
            parts.push(op(next() % 410, &operands));
        }
        refused += u32::from(Program::build(&module(24, &parts), &[]).is_err());
    }
    assert!(refused > 1000, "only {refused} were refused");
}
#[test]
fn an_instruction_that_is_not_known_is_named() {
    let parts =
        [op(19, &[1]), op(33, &[2, 1]), op(54, &[1, 3, 0, 2]), op(248, &[4]), op(4000, &[])];
    let why = refusal(&module(5, &[parts.concat(), op(253, &[]), op(56, &[])]));
    assert!(why.contains("instruction 4000"), "{why}");
}
#[test]
fn types_that_are_too_large_or_made_of_nothing_are_refused() {
    let huge = [op(21, &[1, 64, 0]), op(43, &[1, 2, u32::MAX, u32::MAX]), op(28, &[3, 1, 2])];
    assert!(refusal(&module(4, &huge)).contains("larger than any memory"));
    assert!(refusal(&module(4, &[op(30, &[3, 3])])).contains("%3"));
    assert!(refusal(&module(4, &[op(23, &[3, 2, 4])])).contains("%2"));
}
#[test]
fn a_small_module_cannot_ask_for_all_memory() {
    // Each type is an array of 2^20 of the previous one, but the innermost is empty, and so all have size 0.
    let mut nothing = vec![op(21, &[1, 64, 0]), op(43, &[1, 2, 1 << 20, 0]), op(30, &[3])];
    nothing.extend((4..40).map(|id| op(28, &[id, id - 1, 2])));
    nothing.push(op(46, &[39, 40]));
    assert!(Program::build(&module(41, &nothing), &[]).is_ok());
    // Many constants of 2^18 zeros.
    let mut zeros = vec![op(21, &[1, 32, 0]), op(43, &[1, 2, 1 << 18]), op(28, &[3, 1, 2])];
    zeros.extend((4..200).map(|id| op(46, &[3, id])));
    assert!(refusal(&module(200, &zeros)).contains("more constants"));
    // Very deeply nested structures.
    let mut deep = vec![op(21, &[1, 32, 0])];
    deep.extend((2..5000).map(|id| op(30, &[id, id - 1])));
    assert!(refusal(&module(5000, &deep)).contains("inside each other"));
}
#[test]
fn an_entry_point_without_a_function_is_refused() {
    let why = refusal(&module(4, &[named(15, &[6, 2], "k", &[])]));
    assert!(why.contains("kernel k"), "{why}");
}
