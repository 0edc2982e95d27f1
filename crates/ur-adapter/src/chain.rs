//! `pNext` chains: extension structs that hang off a descriptor, told apart by their first word.
#![expect(unsafe_code, reason = "follows pointers C linked")]
use crate::error::{Error, ErrorCode, Result};
use std::ffi::c_void;
use ur_sys::ur_structure_type_t;

/// A struct that starts with `stype` and `pNext`.
///
/// # Safety
/// `Self` is `repr(C)` and starts with a `ur_structure_type_t` and a pointer, and `STYPE` is the
/// type that the ABI gives to exactly this struct.
pub unsafe trait Chained {
    /// What its first member says.
    const STYPE: ur_structure_type_t;
}

#[repr(C)]
struct Link {
    stype: ur_structure_type_t,
    next: *const c_void,
}

/// Longer chains than the ABI has structs to link are loops.
const LONGEST: usize = 64;

/// The first `T` in the chain that starts at `first`, if there is one.
///
/// # Safety
/// `first` is null or points at a live struct that starts with `stype` and `pNext`, and so on
/// down the chain, for `'a`; each is of the type it says.
///
/// # Errors
/// `INVALID_VALUE` if the chain does not end.
pub unsafe fn find<'a, T: Chained>(first: *const c_void) -> Result<Option<&'a T>> {
    let mut at = first.cast::<Link>();
    for _ in 0..LONGEST {
        // SAFETY: null, or the caller's promise.
        let Some(link) = (unsafe { at.as_ref() }) else { return Ok(None) };
        if link.stype == T::STYPE {
            // SAFETY: the struct is of the type it says.
            return Ok(Some(unsafe { &*at.cast::<T>() }));
        }
        at = link.next.cast();
    }
    Err(Error::new(ErrorCode::InvalidValue, "the pNext chain of a descriptor does not end"))
}
