//! The memory accesses of kernels. A kernel's addresses are addresses of the process, or of a device's own
//! memory. An access to unmapped memory ends the process, as on a processor; only accesses to the first page
//! are checked.
#![expect(unsafe_code, reason = "kernels read and write at the addresses that they compute")]
use super::{
    arithmetic::{binary, bits, float},
    types::Scalar,
};
use crate::backing::reached_at;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering::SeqCst};

/// The kind of an atomic instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Atomic {
    Load,
    Store,
    Exchange,
    Compare,
    /// Replaces the old value by the result of an operation on it and the operand. Contains the opcode.
    Update(u16),
}
/// Why a kernel failed.
pub(super) type Fault = String;

/// Checks an access of `bytes` bytes, and returns the host address of the memory.
fn checked(at: u64, bytes: u64) -> Result<u64, Fault> {
    match at {
        0..4096 => Err(format!("the kernel goes to address {at:#x}, where nothing is")),
        _ if at.checked_add(bytes).is_none() => {
            Err(format!("address {at:#x} has no {bytes} bytes after it"))
        }
        _ => Ok(reached_at(at as usize) as u64),
    }
}
/// Reads a number.
pub(super) fn read(at: u64, scalar: Scalar) -> Result<u64, Fault> {
    let bytes = scalar.bytes();
    let at = checked(at, bytes)?;
    let mut word = [0; 8];
    // SAFETY: the kernel's author is responsible for the address, as on a processor; any alignment is
    // permitted.
    unsafe { std::ptr::copy_nonoverlapping(at as *const u8, word.as_mut_ptr(), bytes as usize) };
    Ok(u64::from_le_bytes(word))
}
pub(super) fn write(at: u64, scalar: Scalar, value: u64) -> Result<(), Fault> {
    let bytes = scalar.bytes();
    let at = checked(at, bytes)?;
    let word = value.to_le_bytes();
    // SAFETY: as above.
    unsafe { std::ptr::copy_nonoverlapping(word.as_ptr(), at as *mut u8, bytes as usize) };
    Ok(())
}
/// Copies bytes.
pub(super) fn copy(to: u64, from: u64, bytes: u64) -> Result<(), Fault> {
    if bytes == 0 {
        return Ok(());
    }
    let (to, from) = (checked(to, bytes)?, checked(from, bytes)?);
    // SAFETY: as above; the ranges may overlap.
    unsafe { std::ptr::copy(from as *const u8, to as *mut u8, bytes as usize) };
    Ok(())
}
fn new(op: u16, scalar: Scalar, old: u64, value: u64) -> u64 {
    let (x, y) = (scalar.signed(old), scalar.signed(value));
    match op {
        232 => old.wrapping_add(1) & scalar.mask(),
        233 => old.wrapping_sub(1) & scalar.mask(),
        234 => binary(128, scalar, old, value),
        235 => binary(130, scalar, old, value),
        236 => {
            if x <= y {
                old
            } else {
                value
            }
        }
        237 => old.min(value),
        238 => {
            if x >= y {
                old
            } else {
                value
            }
        }
        239 => old.max(value),
        240 => old & value,
        241 => old | value,
        242 => old ^ value,
        318 => 1,
        5614 => bits(scalar, float(scalar, old).min(float(scalar, value))),
        5615 => bits(scalar, float(scalar, old).max(float(scalar, value))),
        _ => binary(129, scalar, old, value),
    }
}
macro_rules! at_once {
    ($kind:ident, $word:ty, $at:ident, $op:ident, $scalar:ident, $value:ident, $expected:ident) => {{
        // SAFETY: as for `read`; `atomic` has checked the alignment.
        let cell = unsafe { $kind::from_ptr($at as *mut $word) };
        let value = $value as $word;
        u64::from(match $op {
            Atomic::Load => cell.load(SeqCst),
            Atomic::Store => {
                cell.store(value, SeqCst);
                value
            }
            Atomic::Exchange => cell.swap(value, SeqCst),
            Atomic::Compare => {
                let done = cell.compare_exchange($expected as $word, value, SeqCst, SeqCst);
                done.unwrap_or_else(|was| was)
            }
            Atomic::Update(op) => {
                let next = |old| Some(new(op, $scalar, u64::from(old), $value) as $word);
                cell.fetch_update(SeqCst, SeqCst, next).unwrap_or_else(|was| was)
            }
        })
    }};
}
/// Executes an atomic instruction and returns the old value.
pub(super) fn atomic(
    op: Atomic,
    scalar: Scalar,
    at: u64,
    value: u64,
    expected: u64,
) -> Result<u64, Fault> {
    let bytes = scalar.bytes();
    let at = checked(at, bytes)?;
    if !at.is_multiple_of(bytes) {
        return Err(format!("an atomic operation at {at:#x}, which is no multiple of {bytes}"));
    }
    Ok(match bytes {
        1 => at_once!(AtomicU8, u8, at, op, scalar, value, expected),
        2 => at_once!(AtomicU16, u16, at, op, scalar, value, expected),
        4 => at_once!(AtomicU32, u32, at, op, scalar, value, expected),
        _ => at_once!(AtomicU64, u64, at, op, scalar, value, expected),
    })
}
