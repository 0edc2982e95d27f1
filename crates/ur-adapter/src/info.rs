//! Answers to `ur*GetInfo`: a size, or a value and its size, by the ABI's rules, in one place.
#![expect(unsafe_code, reason = "writes into the buffer C gave")]
use crate::{
    error::{Error, ErrorCode, Result},
    object::{Body, Object},
};
use std::{ffi::c_void, fmt, marker::PhantomData};

/// Where C wants the answer to one query.
pub struct Answer<'call> {
    size: usize,
    value: *mut c_void,
    size_ret: *mut usize,
    _call: PhantomData<&'call mut ()>,
}

/// Plain data an answer may consist of.
///
/// # Safety
/// `Self` has no padding bytes and may be copied bytewise to C.
pub unsafe trait Plain: Copy {}
macro_rules! plain { ($($t:ty)*) => { $(
    // SAFETY: a number, or a transparent or padding-free struct of numbers or pointers.
    unsafe impl Plain for $t {}
)* } }
plain! { u8 u16 u32 u64 usize i8 i16 i32 i64 isize f32 f64 }
// SAFETY: an array of plain data is plain data.
unsafe impl<T: Plain, const N: usize> Plain for [T; N] {}
// SAFETY: a pointer has no padding.
unsafe impl<T> Plain for *mut T {}

impl Answer<'_> {
    /// # Safety
    /// `value` is null or points at `size` writable bytes, `size_ret` is null or writable;
    /// both for as long as this lives.
    ///
    /// # Errors
    /// `INVALID_SIZE`: a buffer of size 0. `INVALID_NULL_POINTER`: a size without a buffer, or
    /// nowhere to put anything.
    pub unsafe fn new(size: usize, value: *mut c_void, size_ret: *mut usize) -> Result<Self> {
        match (size, value.is_null(), size_ret.is_null()) {
            (0, false, _) => Err(ErrorCode::InvalidSize.into()),
            (1.., true, _) | (_, true, true) => Err(ErrorCode::InvalidNullPointer.into()),
            _ => Ok(Self { size, value, size_ret, _call: PhantomData }),
        }
    }
    /// Answers with `value` as C lays it out.
    ///
    /// # Errors
    /// `INVALID_SIZE` if the buffer is too small; the size needed is told all the same.
    pub fn value<T: Plain>(&mut self, value: &T) -> Result<()> {
        self.slice(std::slice::from_ref(value))
    }
    /// `UR_TRUE` or `UR_FALSE`.
    ///
    /// # Errors
    /// As for `value`.
    pub fn bool(&mut self, value: bool) -> Result<()> {
        self.value(&u8::from(value))
    }
    /// A C string: `text` and its NUL.
    ///
    /// # Errors
    /// As for `value`.
    pub fn str(&mut self, text: &str) -> Result<()> {
        let mut bytes = text.replace('\0', " ").into_bytes();
        bytes.push(0);
        self.slice(&bytes)
    }
    /// An array; its length is told by its size.
    ///
    /// # Errors
    /// As for `value`.
    pub fn slice<T: Plain>(&mut self, values: &[T]) -> Result<()> {
        let needed = size_of_val(values);
        if !self.value.is_null() {
            if self.size < needed {
                // Told before the refusal, so that the caller can ask again.
                self.tell(needed);
                return Err(Error::new(
                    ErrorCode::InvalidSize,
                    format!("the answer takes {needed} bytes and the buffer has {}", self.size),
                ));
            }
            // SAFETY: `new`'s caller promised `size` writable bytes; `T` is plain data.
            unsafe { std::ptr::copy_nonoverlapping(values.as_ptr().cast(), self.value, needed) };
        }
        self.tell(needed);
        Ok(())
    }
    /// The handle of an object, without a reference.
    ///
    /// # Errors
    /// As for `value`.
    pub fn handle<T: Body>(&mut self, object: &Object<T>) -> Result<()> {
        self.value(&object.as_handle())
    }
    /// The handles of several objects, without references.
    ///
    /// # Errors
    /// As for `value`.
    pub fn handles<'o, T: Body>(
        &mut self,
        objects: impl IntoIterator<Item = &'o Object<T>>,
    ) -> Result<()> {
        let handles: Vec<_> = objects.into_iter().map(Object::as_handle).collect();
        self.slice(&handles)
    }
    /// Copies each of `blocks` to where C wants it: the buffer holds the addresses, null for none,
    /// each with room for as much as C was told before.
    ///
    /// # Errors
    /// As for `value`.
    pub fn copies(&mut self, blocks: &[&[u8]]) -> Result<()> {
        let needed = size_of::<*mut u8>() * blocks.len();
        if !self.value.is_null() && self.size >= needed {
            for (at, block) in blocks.iter().enumerate() {
                let place = self.value.cast::<*mut u8>().wrapping_add(at);
                // SAFETY: C put an address there; the buffer need not be aligned for it.
                let to = unsafe { place.read_unaligned() };
                if !to.is_null() {
                    // SAFETY: C vouches for as much room as the sizes say that it was told.
                    unsafe { to.copy_from_nonoverlapping(block.as_ptr(), block.len()) };
                }
            }
        } else if !self.value.is_null() {
            self.tell(needed);
            let why = format!("the answer takes {needed} bytes and the buffer has {}", self.size);
            return Err(Error::new(ErrorCode::InvalidSize, why));
        }
        self.tell(needed);
        Ok(())
    }
    fn tell(&mut self, needed: usize) {
        if !self.size_ret.is_null() {
            // SAFETY: not null, hence writable by `new`'s contract.
            unsafe { self.size_ret.write(needed) };
        }
    }
}
impl fmt::Debug for Answer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Answer({} bytes)", self.size)
    }
}
