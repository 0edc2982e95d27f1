//! Answers to `ur*GetInfo` queries: a value and its size, or only the size, by the ABI's rules.
#![expect(unsafe_code, reason = "writes into the buffer C gave")]
use crate::{
    error::{Error, ErrorCode, Result},
    object::{Body, Object},
};
use std::{ffi::c_void, fmt, marker::PhantomData};

/// Where the caller wants the answer to one query.
pub struct Answer<'call> {
    size: usize,
    value: *mut c_void,
    size_ret: *mut usize,
    _call: PhantomData<&'call mut ()>,
}

/// Plain data of which an answer may consist.
///
/// # Safety
/// `Self` has no padding bytes and may be copied to C byte by byte.
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
    /// `value` is null or points at `size` writable bytes; `size_ret` is null or writable. Both hold as long as this
    /// value exists.
    ///
    /// # Errors
    /// `INVALID_SIZE` for a buffer of size 0; `INVALID_NULL_POINTER` for a size without a buffer, or if both pointers
    /// are null.
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
    /// `INVALID_SIZE` if the buffer is too small; the required size is still returned.
    pub fn value<T: Plain>(&mut self, value: &T) -> Result<()> {
        self.slice(std::slice::from_ref(value))
    }
    /// Answers `UR_TRUE` or `UR_FALSE`.
    ///
    /// # Errors
    /// As for [`Answer::value`].
    pub fn bool(&mut self, value: bool) -> Result<()> {
        self.value(&u8::from(value))
    }
    /// Answers with a C string: `text` and its NUL.
    ///
    /// # Errors
    /// As for [`Answer::value`].
    pub fn str(&mut self, text: &str) -> Result<()> {
        let mut bytes = text.replace('\0', " ").into_bytes();
        bytes.push(0);
        self.slice(&bytes)
    }
    /// Answers with an array, whose length follows from its size.
    ///
    /// # Errors
    /// As for [`Answer::value`].
    pub fn slice<T: Plain>(&mut self, values: &[T]) -> Result<()> {
        let needed = size_of_val(values);
        if !self.value.is_null() {
            if self.size < needed {
                // Before returning the error, so that the caller can repeat the query with a larger buffer.
                self.tell(needed);
                return Err(Error::new(
                    ErrorCode::InvalidSize,
                    format!("the answer takes {needed} bytes and the buffer has {}", self.size),
                ));
            }
            // SAFETY: the caller of `new` promised `size` writable bytes, and `T` is plain data.
            unsafe { std::ptr::copy_nonoverlapping(values.as_ptr().cast(), self.value, needed) };
        }
        self.tell(needed);
        Ok(())
    }
    /// Answers with the handle of an object, without a reference.
    ///
    /// # Errors
    /// As for [`Answer::value`].
    pub fn handle<T: Body>(&mut self, object: &Object<T>) -> Result<()> {
        self.value(&object.as_handle())
    }
    /// Answers with the handles of several objects, without references.
    ///
    /// # Errors
    /// As for [`Answer::value`].
    pub fn handles<'o, T: Body>(
        &mut self,
        objects: impl IntoIterator<Item = &'o Object<T>>,
    ) -> Result<()> {
        let handles: Vec<_> = objects.into_iter().map(Object::as_handle).collect();
        self.slice(&handles)
    }
    /// Copies each of `blocks` to the address that the caller put into the buffer for it; a null address is skipped.
    /// Each address has space for the size that an earlier query returned.
    ///
    /// # Errors
    /// As for [`Answer::value`].
    pub fn copies(&mut self, blocks: &[&[u8]]) -> Result<()> {
        let needed = size_of::<*mut u8>() * blocks.len();
        if !self.value.is_null() && self.size >= needed {
            for (at, block) in blocks.iter().enumerate() {
                let place = self.value.cast::<*mut u8>().wrapping_add(at);
                // SAFETY: the caller put an address there; the buffer may be unaligned.
                let to = unsafe { place.read_unaligned() };
                if !to.is_null() {
                    // SAFETY: the query's contract: the caller provides as much space as an earlier query told it.
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
            // SAFETY: not null, hence writable as the caller of `new` promised.
            unsafe { self.size_ret.write(needed) };
        }
    }
}
impl fmt::Debug for Answer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Answer({} bytes)", self.size)
    }
}
