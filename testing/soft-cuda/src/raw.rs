//! What C hands over, read and written: nothing here knows what it is for.
#![expect(unsafe_code, reason = "the caller's pointers")]
use crate::code::{Answer, INVALID_VALUE};
use std::ffi::{CStr, c_char};

/// Writes `value` where C wants it.
pub fn put<T>(to: *mut T, value: T) -> Answer {
    if to.is_null() {
        return Err(INVALID_VALUE);
    }
    // SAFETY: the driver's contract: a pointer that is not null is writable for its type.
    unsafe { to.write_unaligned(value) };
    Ok(())
}
/// Writes `value` if C wants it.
pub fn put_maybe<T>(to: *mut T, value: T) {
    if !to.is_null() {
        let _written = put(to, value);
    }
}
/// Reads what C points to.
pub fn get<T: Copy>(from: *const T) -> Answer<T> {
    // SAFETY: the driver's contract: a pointer that is not null is readable for its type.
    if from.is_null() { Err(INVALID_VALUE) } else { Ok(unsafe { from.read_unaligned() }) }
}
/// Reads `count` things.
pub fn list<T: Copy>(from: *const T, count: usize) -> Answer<Vec<T>> {
    if count == 0 {
        Ok(Vec::new())
    } else {
        (0..count).map(|i| get(from.wrapping_add(i))).collect()
    }
}
/// A text that ends with a NUL.
pub fn text(from: *const c_char) -> Answer<String> {
    if from.is_null() {
        return Err(INVALID_VALUE);
    }
    // SAFETY: the driver's contract: names are C strings.
    Ok(unsafe { CStr::from_ptr(from) }.to_string_lossy().into_owned())
}
/// Writes `bytes` into `room` bytes of C's, cut short if need be.
pub fn put_bytes(to: *mut u8, room: usize, bytes: &[u8]) {
    let count = bytes.len().min(room);
    if count != 0 && !to.is_null() {
        // SAFETY: the driver's contract: `to` has `room` bytes, which are not ours.
        unsafe { to.copy_from_nonoverlapping(bytes.as_ptr(), count) };
    }
}
/// Copies `bytes` bytes; the ranges may overlap.
pub fn copy(to: *mut u8, from: *const u8, bytes: usize) {
    // SAFETY: both ranges were looked up in the table of ranges, or are the caller's host memory.
    unsafe { std::ptr::copy(from, to, bytes) };
}
