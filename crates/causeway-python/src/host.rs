//! Bytes of the host: arrays that another library vouches for, gathered from wherever they are; and words that several
//! processes have.
#![expect(unsafe_code, reason = "reads memory at addresses that other libraries give")]
use crate::layout::Layout;
use std::sync::atomic::{AtomicU32, AtomicU64};

/// Bytes that are gathered before they are passed on.
const PIECE: usize = 4 << 20;

/// Gives the elements of an array, one after the other, to `take` in pieces.
///
/// # Safety
/// The array's first element is at `address`, and all that `layout` reaches from there may be read until this returns.
///
/// # Errors
/// What `take` returns.
pub unsafe fn gather<E>(
    address: usize,
    layout: &Layout,
    mut take: impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<(), E> {
    let (starts, length) = layout.runs();
    let mut piece = Vec::with_capacity(PIECE.min(layout.bytes()));
    for start in starts {
        let mut done = 0;
        while done < length {
            let part = (length - done).min(PIECE - piece.len());
            let at = address.wrapping_add_signed(start as isize).wrapping_add(done) as *const u8;
            // SAFETY: a part of a run of elements of the array, which the caller vouches for.
            piece.extend_from_slice(unsafe { std::slice::from_raw_parts(at, part) });
            done += part;
            if piece.len() == PIECE {
                take(&piece)?;
                piece.clear();
            }
        }
    }
    if piece.is_empty() { Ok(()) } else { take(&piece) }
}

/// Copies the elements of an array to `to`, one after the other.
///
/// # Safety
/// As [`gather`]; as many bytes as the elements have are mapped at `to` and may be written, and the array is not there.
pub unsafe fn gather_to(address: usize, layout: &Layout, to: usize) {
    if layout.is_contiguous() {
        let (from, to) = (address as *const u8, to as *mut u8);
        // SAFETY: all elements, which follow each other; the caller vouches for both sides.
        unsafe { std::ptr::copy_nonoverlapping(from, to, layout.bytes()) };
        return;
    }
    let (starts, length) = layout.runs();
    for (number, start) in starts.enumerate() {
        let at = address.wrapping_add_signed(start as isize) as *const u8;
        let to = (to + number * length) as *mut u8;
        // SAFETY: a run of elements of the array, and its place among the elements, for which the caller vouches.
        unsafe { std::ptr::copy_nonoverlapping(at, to, length) };
    }
}

/// A word of the host's memory that several processes have.
///
/// # Safety
/// `address` is a multiple of 8, and the 8 bytes there are mapped and may be written as long as the word is used; all
/// processes use them as an atomic word only.
pub unsafe fn word<'a>(address: usize) -> &'a AtomicU64 {
    // SAFETY: the caller's promise is the same.
    unsafe { AtomicU64::from_ptr(address as *mut u64) }
}

/// As [`word`], of four bytes.
///
/// # Safety
/// As there; no other word overlaps it.
pub unsafe fn short_word<'a>(address: usize) -> &'a AtomicU32 {
    // SAFETY: the caller's promise is the same.
    unsafe { AtomicU32::from_ptr(address as *mut u32) }
}

/// A copy of bytes that another process may be writing: what it wrote is checked afterwards.
///
/// # Safety
/// The bytes are mapped.
pub unsafe fn read(address: usize, out: &mut [u8]) {
    // SAFETY: mapped, by the caller's promise; `out` is this process's own, so they do not overlap.
    unsafe { std::ptr::copy_nonoverlapping(address as *const u8, out.as_mut_ptr(), out.len()) };
}
/// Writes bytes that another process may be reading.
///
/// # Safety
/// The bytes at `address` are mapped and may be written.
pub unsafe fn write(address: usize, bytes: &[u8]) {
    // SAFETY: mapped for writing, by the caller's promise; `bytes` are this process's own, so they do not overlap.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), address as *mut u8, bytes.len()) };
}
