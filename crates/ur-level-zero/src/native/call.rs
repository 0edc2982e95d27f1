//! Functions of the driver's that are found by name.
#![expect(unsafe_code, reason = "calls functions that the vendor's driver gave the address of")]
use super::super::driver::{RawDriver, extension};
use std::{
    ffi::{CStr, c_void},
    mem::transmute_copy,
    ptr::NonNull,
};

/// A driver's extension function; `None` if the driver does not have it.
///
/// # Safety
/// `F` is the type of a pointer to a function with that prototype.
pub unsafe fn function<F: Copy>(of: RawDriver, name: &CStr) -> Option<F> {
    const { assert!(size_of::<F>() == size_of::<NonNull<c_void>>()) };
    // SAFETY: a function's address, of the size of `F`; the caller names the prototype.
    extension(of, name).map(|at| unsafe { transmute_copy(&at) })
}
