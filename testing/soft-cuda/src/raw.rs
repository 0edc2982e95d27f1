//! Reads and writes the caller's memory; this file does not know its meaning.
#![expect(unsafe_code, reason = "the caller's pointers")]
use crate::code::{Answer, INVALID_VALUE};
use std::ffi::{CStr, c_char};

/// Writes `value` to the caller's pointer; fails if it is null.
pub fn put<T>(to: *mut T, value: T) -> Answer {
    if to.is_null() {
        return Err(INVALID_VALUE);
    }
    // SAFETY: by the driver's contract a pointer that is not null is writable for its type.
    unsafe { to.write_unaligned(value) };
    Ok(())
}
/// Writes `value` unless the pointer is null.
pub fn put_maybe<T>(to: *mut T, value: T) {
    if !to.is_null() {
        let _written = put(to, value);
    }
}
/// Reads the value that the caller's pointer points at; fails if it is null.
pub fn get<T: Copy>(from: *const T) -> Answer<T> {
    // SAFETY: by the driver's contract a pointer that is not null is readable for its type.
    if from.is_null() { Err(INVALID_VALUE) } else { Ok(unsafe { from.read_unaligned() }) }
}
/// Reads `count` values.
pub fn list<T: Copy>(from: *const T, count: usize) -> Answer<Vec<T>> {
    if count == 0 {
        Ok(Vec::new())
    } else {
        (0..count).map(|i| get(from.wrapping_add(i))).collect()
    }
}
/// Reads a string that ends with a NUL.
pub fn text(from: *const c_char) -> Answer<String> {
    if from.is_null() {
        return Err(INVALID_VALUE);
    }
    // SAFETY: by the driver's contract names are C strings.
    Ok(unsafe { CStr::from_ptr(from) }.to_string_lossy().into_owned())
}
/// Writes `bytes` into a buffer of `room` bytes, truncated if necessary.
pub fn put_bytes(to: *mut u8, room: usize, bytes: &[u8]) {
    let count = bytes.len().min(room);
    if count != 0 && !to.is_null() {
        // SAFETY: by the driver's contract `to` has `room` bytes, and they do not overlap `bytes`.
        unsafe { to.copy_from_nonoverlapping(bytes.as_ptr(), count) };
    }
}
/// Copies `bytes` bytes; the ranges may overlap.
pub fn copy(to: *mut u8, from: *const u8, bytes: usize) {
    // SAFETY: both ranges were looked up in the table of ranges, or are the caller's host memory.
    unsafe { std::ptr::copy(from, to, bytes) };
}
