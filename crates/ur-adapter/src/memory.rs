//! Addresses that C hands over. An address is not a reference: bytes behind one are touched
//! only in an adapter's `native.rs` and `mapping.rs`.
use crate::error::{ErrorCode, Result};
use std::{ffi::c_void, fmt, num::NonZeroUsize};

/// An address in USM, mapped or host memory, as C gave it. Never 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UsmPtr(NonZeroUsize);

impl UsmPtr {
    /// # Errors
    /// `INVALID_NULL_POINTER` for null.
    pub fn new(pointer: *const c_void) -> Result<Self> {
        Self::from_addr(pointer.expose_provenance()).ok_or(ErrorCode::InvalidNullPointer.into())
    }
    /// `None` for 0.
    pub const fn from_addr(address: usize) -> Option<Self> {
        match NonZeroUsize::new(address) {
            Some(address) => Some(Self(address)),
            None => None,
        }
    }
    /// The address as a number.
    pub const fn addr(self) -> usize {
        self.0.get()
    }
    /// The address `bytes` further on.
    ///
    /// # Errors
    /// `INVALID_SIZE` where that wraps around.
    pub fn offset(self, bytes: usize) -> Result<Self> {
        self.0.checked_add(bytes).map(Self).ok_or(ErrorCode::InvalidSize.into())
    }
    /// Whether `[self, self + bytes)` and `[other, other + bytes)` share a byte.
    pub fn overlaps(self, other: Self, bytes: usize) -> bool {
        self.addr().abs_diff(other.addr()) < bytes
    }
    /// The pointer C knows.
    pub fn as_ptr(self) -> *mut c_void {
        std::ptr::with_exposed_provenance_mut(self.addr())
    }
}
impl fmt::Debug for UsmPtr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

/// What C wants back with a callback. Ours to carry from thread to thread, never to look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UserData(usize);
impl UserData {
    /// Takes `pointer` as it is, null or not.
    pub fn new(pointer: *mut c_void) -> Self {
        Self(pointer.expose_provenance())
    }
    /// What C gave.
    pub fn as_ptr(self) -> *mut c_void {
        std::ptr::with_exposed_provenance_mut(self.0)
    }
}
