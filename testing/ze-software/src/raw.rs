//! Reading and writing through the caller's pointers, and chains of structures.
#![expect(unsafe_code, reason = "the caller's pointers")]
use crate::{backing, inject::Answer};
use std::ffi::{CStr, c_char, c_void};
use ze_sys::*;

const NULL: ze_result_t = ZE_RESULT_ERROR_INVALID_NULL_POINTER;

/// Writes `value` to `to`, which must not be null.
pub fn put<T>(to: *mut T, value: T) -> Answer {
    if to.is_null() {
        return Err(NULL);
    }
    // SAFETY: by the API's contract, a pointer that is not null is writable for its type.
    unsafe { to.write_unaligned(value) };
    Ok(())
}
/// Writes `value` to `to` unless it is null.
pub fn put_maybe<T>(to: *mut T, value: T) {
    if !to.is_null() {
        let _written = put(to, value);
    }
}
/// Reads the value at `from`, which must not be null.
pub fn get<T: Copy>(from: *const T) -> Answer<T> {
    // SAFETY: by the API's contract, a pointer that is not null is readable for its type.
    if from.is_null() { Err(NULL) } else { Ok(unsafe { from.read_unaligned() }) }
}
/// Reads `count` values.
pub fn list<T: Copy>(from: *const T, count: usize) -> Answer<Vec<T>> {
    (0..count).map(|i| get(if from.is_null() { from } else { from.wrapping_add(i) })).collect()
}
/// Reads a NUL-terminated string.
pub fn text(from: *const c_char) -> Answer<String> {
    if from.is_null() {
        return Err(NULL);
    }
    // SAFETY: by the API's contract, names are C strings.
    Ok(unsafe { CStr::from_ptr(from) }.to_string_lossy().into_owned())
}
/// Reads `count` bytes.
pub fn bytes(from: *const u8, count: usize) -> Answer<Vec<u8>> {
    if count == 0 {
        return Ok(Vec::new());
    }
    if from.is_null() {
        return Err(NULL);
    }
    // SAFETY: by the API's contract, a pointer that is not null is readable for `count` bytes.
    Ok(unsafe { std::slice::from_raw_parts(from, count) }.to_vec())
}
/// Writes `bytes` to a buffer of `room` bytes; what does not fit is left out.
pub fn put_bytes(to: *mut u8, room: usize, bytes: &[u8]) {
    let count = bytes.len().min(room);
    if count != 0 && !to.is_null() {
        // SAFETY: by the API's contract, `to` is writable for `room` bytes; it does not overlap the driver's
        // own memory.
        unsafe { to.copy_from_nonoverlapping(bytes.as_ptr(), count) };
    }
}
/// The address through which the driver accesses memory that a command uses.
pub fn reached<T>(at: *const T) -> *mut T {
    std::ptr::with_exposed_provenance_mut(backing::reached_at(at.expose_provenance()))
}
/// Copies memory as a command does; the ranges may overlap.
pub fn copy(to: *mut u8, from: *const u8, bytes: usize) {
    let (to, from) = (reached(to), reached(from));
    // SAFETY: both ranges are the caller's or the driver's memory, and stay mapped while the command runs.
    unsafe { std::ptr::copy(from.cast_const(), to, bytes) };
}
/// Fills memory with `byte` as a command does.
pub fn fill(to: *mut u8, byte: u8, bytes: usize) {
    let to = reached(to);
    // SAFETY: the range is the caller's or the driver's memory, and stays mapped while the command runs.
    unsafe { std::ptr::write_bytes(to, byte, bytes) };
}
/// Returns a list in the usual way of Level Zero: `*count` is the size of the array (0 to get the number of
/// elements only), and then the number of elements that exist or were written.
pub fn put_list<T: Copy>(count: *mut u32, to: *mut T, all: &[T]) -> Answer {
    let room = get(count)? as usize;
    if room == 0 || to.is_null() {
        return put(count, all.len() as u32);
    }
    let fit = room.min(all.len());
    for (i, one) in all[..fit].iter().enumerate() {
        put(to.wrapping_add(i), *one)?;
    }
    put(count, fit as u32)
}
/// The text as an array of characters; it is cut if need be, and always ends with a NUL.
pub fn name<const N: usize>(text: &str) -> [c_char; N] {
    let mut to = [0; N];
    for (to, from) in to.iter_mut().zip(text.bytes().take(N - 1)) {
        *to = from.cast_signed();
    }
    to
}
#[repr(C)]
#[derive(Clone, Copy)]
struct Link {
    stype: ze_structure_type_t,
    next: *mut c_void,
}
/// The structures of a chain in order: their types and addresses.
pub fn chain(first: *const c_void) -> impl Iterator<Item = (ze_structure_type_t, *mut c_void)> {
    let mut at = first.cast_mut();
    std::iter::from_fn(move || {
        let here = at;
        let link = get(here.cast::<Link>()).ok()?;
        at = link.next;
        Some((link.stype, here))
    })
}
/// The structure of type `stype` in a chain, as a pointer to `T`.
pub fn find<T>(first: *const c_void, stype: ze_structure_type_t) -> Option<*mut T> {
    chain(first).find(|(t, _)| *t == stype).map(|(_, at)| at.cast())
}
/// Fills a structure of properties. `fill` gets the structure as the caller passed it, and keeps its type and
/// chain.
pub fn amend<T: Copy>(to: *mut T, fill: impl FnOnce(&mut T) -> Answer) -> Answer {
    let mut value = get(to)?;
    fill(&mut value)?;
    put(to, value)
}
