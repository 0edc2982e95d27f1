//! Addresses that the caller passes. An address is not a reference: memory behind one is accessed only in an adapter's
//! `bytes.rs` and `mapping.rs`; small inputs with a size are copied here.
#![expect(unsafe_code, reason = "copies what C points at")]
use crate::error::{ErrorCode, Result};
use std::{ffi::c_void, fmt, marker::PhantomData, num::NonZeroUsize};

/// An address in USM, mapped or host memory, as the caller passed it. Never 0.
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
    /// Reads a number at the address, which may be unaligned. The entry that was passed the address guarantees that
    /// there is one.
    pub fn read_size(self) -> usize {
        // SAFETY: the entry's contract, which its caller upholds: a `size_t` can be read there.
        unsafe { self.as_ptr().cast::<usize>().read_unaligned() }
    }
    /// Reads an `int32_t` at the address, under the same guarantee.
    pub fn read_i32(self) -> i32 {
        // SAFETY: the entry's contract, which its caller upholds: an `int32_t` can be read there.
        unsafe { self.as_ptr().cast::<i32>().read_unaligned() }
    }
    /// Writes a value at the address, which may be unaligned, under the same guarantee.
    pub fn write<T: Copy>(self, value: T) {
        // SAFETY: the entry's contract, which its caller upholds: such a value can be written there.
        unsafe { self.as_ptr().cast::<T>().write_unaligned(value) }
    }
    /// The address as a number that is not 0.
    pub const fn non_zero(self) -> NonZeroUsize {
        self.0
    }
    /// The address plus `bytes`.
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
    /// The address as a pointer for C.
    pub fn as_ptr(self) -> *mut c_void {
        std::ptr::with_exposed_provenance_mut(self.addr())
    }
}
impl fmt::Debug for UsmPtr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

/// The user data of a callback. It is only passed on, from thread to thread, and never dereferenced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UserData(usize);
impl UserData {
    /// Takes `pointer` as it is, null or not.
    pub fn new(pointer: *mut c_void) -> Self {
        Self(pointer.expose_provenance())
    }
    /// The pointer that was passed.
    pub fn as_ptr(self) -> *mut c_void {
        std::ptr::with_exposed_provenance_mut(self.0)
    }
}

/// Bytes that the caller lends for one call, and their number according to the caller. It may be wrong, so nothing is
/// read before the length has been accepted.
#[derive(Clone, Copy)]
pub struct HostBytes<'call> {
    start: *const u8,
    len: usize,
    _call: PhantomData<&'call [u8]>,
}
impl<'call> HostBytes<'call> {
    /// # Safety
    /// `start` points at as many readable bytes as the entry requires, for `'call`, and at `len` bytes if that length
    /// is accepted.
    ///
    /// # Errors
    /// `INVALID_NULL_POINTER` for null.
    pub unsafe fn new(start: *const c_void, len: usize) -> Result<Self> {
        match start.is_null() {
            true => Err(ErrorCode::InvalidNullPointer.into()),
            false => Ok(Self { start: start.cast(), len, _call: PhantomData }),
        }
    }
    /// How many bytes there are according to the caller.
    pub const fn len(&self) -> usize {
        self.len
    }
    /// Whether there are none according to the caller.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }
    /// All bytes, once the length is known to be right; `None` if it exceeds `most`.
    pub fn at_most(&self, most: usize) -> Option<&'call [u8]> {
        if self.len > most || self.len > isize::MAX as usize {
            return None;
        }
        // SAFETY: the caller of `new` promised `len` bytes once that length is accepted.
        Some(unsafe { std::slice::from_raw_parts(self.start, self.len) })
    }
    /// All bytes if there are exactly `N`.
    pub fn exactly<const N: usize>(&self) -> Option<[u8; N]> {
        if self.len != N {
            return None;
        }
        // SAFETY: as above; bytes need no alignment.
        Some(unsafe { self.start.cast::<[u8; N]>().read() })
    }
}
impl fmt::Debug for HostBytes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HostBytes({})", self.len)
    }
}
