//! Makes SPIR-V word by word, for the tests of the interpreter and of the driver.

/// An instruction.
pub fn op(code: u32, operands: &[u32]) -> Vec<u32> {
    let first = (operands.len() as u32 + 1) << 16 | code;
    [first].into_iter().chain(operands.iter().copied()).collect()
}
/// An instruction with a string among its operands.
pub fn named(code: u32, before: &[u32], name: &str, after: &[u32]) -> Vec<u32> {
    let mut bytes = name.as_bytes().to_vec();
    bytes.resize((name.len() / 4 + 1) * 4, 0);
    let words = bytes.as_chunks::<4>().0.iter().map(|w| u32::from_le_bytes(*w));
    let all: Vec<u32> = before.iter().copied().chain(words).chain(after.iter().copied()).collect();
    op(code, &all)
}
/// A module with OpenCL capabilities and this bound of identifiers.
pub fn module(bound: u32, parts: &[Vec<u32>]) -> Vec<u8> {
    let head = [0x0723_0203, 0x0001_0000, 0, bound, 0];
    let start = [op(17, &[4]), op(17, &[5]), op(17, &[6]), op(14, &[2, 2])].concat();
    let words = head.into_iter().chain(start).chain(parts.concat());
    words.flat_map(u32::to_le_bytes).collect()
}
