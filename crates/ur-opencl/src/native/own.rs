//! Objects that OpenCL counts the references of, and what they tell of themselves.
#![expect(unsafe_code, reason = "calls into the vendors' drivers")]
use crate::{driver::*, error::broken};
use std::{ffi::c_void, fmt, ptr::null_mut};
use ur_hal::{Error, ErrorKind, Result};

/// What OpenCL counts the references of.
pub trait Counted: Copy + fmt::Debug {
    /// One reference more.
    fn retain(self) -> Outcome;
    /// One less.
    fn release(self) -> Outcome;
}
/// The driver's functions for each kind of object: what tells of it, what adds a reference and what takes one away.
macro_rules! objects { ($($raw:ident: $ask:ident $(, $retain:ident, $release:ident)?;)*) => { $(
    impl Tells for $raw {
        fn told(self, name: u32) -> Result<Vec<u8>> {
            // SAFETY: a live object; `bytes` passes room for as much as it says.
            bytes(|size, to, length| unsafe { driver().$ask(self, name, size, to, length) })
        }
    }
    $(impl Counted for $raw {
        fn retain(self) -> Outcome {
            // SAFETY: whoever has the name has a reference, or C promised that the object lives.
            unsafe { driver().$retain(self) }
        }
        fn release(self) -> Outcome {
            // SAFETY: called once for each reference that is ours.
            unsafe { driver().$release(self) }
        }
    })?
)* } }
objects! {
    RawPlatform: get_platform_info;
    RawDevice: get_device_info, retain_device, release_device;
    RawContext: get_context_info, retain_context, release_context;
    RawQueue: get_queue_info, retain_queue, release_queue;
    RawMem: get_mem_info, retain_mem, release_mem;
    RawSampler: get_sampler_info, retain_sampler, release_sampler;
    RawProgram: get_program_info, retain_program, release_program;
    RawKernel: get_kernel_info, retain_kernel, release_kernel;
    RawEvent: get_event_info, retain_event, release_event;
}
/// A reference to an object. Dropped, it is given back, but not in a forked child, where the driver does not work.
#[derive(Debug)]
pub struct Own<R: Counted>(R);
impl<R: Counted> Own<R> {
    /// What a call has just given.
    pub fn given(raw: R) -> Self {
        Self(raw)
    }
    /// What C brought: its own reference, if that `is_owned` by us from now on, or one more.
    ///
    /// # Errors
    /// The driver's error for what is no such object.
    pub fn adopted(raw: R, is_owned: bool) -> Result<Self> {
        if !is_owned {
            raw.retain().ok()?;
        }
        Ok(Self(raw))
    }
    /// One more reference.
    ///
    /// # Errors
    /// The driver's own.
    pub fn again(&self) -> Result<Self> {
        Self::adopted(self.0, false)
    }
    /// The driver's name of it.
    pub fn raw(&self) -> R {
        self.0
    }
}
impl<R: Counted> Drop for Own<R> {
    fn drop(&mut self) {
        if !is_unusable() {
            self.0.release().let_go();
        }
    }
}

/// Room for bytes of which the driver tells how many there are.
///
/// # Errors
/// `Unknown` for more than any driver has to tell; `OutOfHostMemory`.
pub(super) fn zeroes(length: usize) -> Result<Vec<u8>> {
    /// The longest answers are programs that were built.
    const MOST: usize = 1 << 28;
    if length > MOST {
        return Err(broken(&format!("an answer of it has {length} bytes")));
    }
    let mut bytes = vec![];
    bytes.try_reserve_exact(length).map_err(|_| ErrorKind::OutOfHostMemory)?;
    bytes.resize(length, 0);
    Ok(bytes)
}
/// Bytes of which the driver tells first how many there are.
///
/// # Errors
/// The driver's own.
pub(super) fn bytes(ask: impl Fn(usize, *mut c_void, *mut usize) -> Outcome) -> Result<Vec<u8>> {
    let mut length = 0;
    ask(0, null_mut(), &raw mut length).ok()?;
    let mut bytes = zeroes(length)?;
    if length > 0 {
        ask(length, bytes.as_mut_ptr().cast(), &raw mut length).ok()?;
    }
    bytes.truncate(length);
    Ok(bytes)
}
/// A number of 1 to 8 bytes.
pub(crate) fn number(bytes: &[u8]) -> u64 {
    let mut all = [0; 8];
    let length = bytes.len().min(8);
    all[..length].copy_from_slice(&bytes[..length]);
    u64::from_ne_bytes(all)
}
/// A text that may end with a NUL.
pub(crate) fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).trim().to_owned()
}
/// An object that tells something of itself, by OpenCL's names.
pub trait Tells: Copy {
    /// What it tells.
    ///
    /// # Errors
    /// The driver's own; `InvalidValue` for what it does not know.
    fn told(self, name: u32) -> Result<Vec<u8>>;
    /// The same, as a number.
    ///
    /// # Errors
    /// As for `told`.
    fn number(self, name: u32) -> Result<u64> {
        self.told(name).map(|bytes| number(&bytes))
    }
    /// The same, as a list of 8-byte numbers.
    ///
    /// # Errors
    /// As for `told`.
    fn numbers(self, name: u32) -> Result<Vec<usize>> {
        Ok(self.told(name)?.chunks_exact(8).map(|one| number(one) as usize).collect())
    }
    /// Checks that it is of a context, by the name under which it tells that.
    ///
    /// # Errors
    /// `kind` if it is of another one; the driver's own for what is no such object.
    fn check_context(self, name: u32, context: RawContext, kind: ErrorKind) -> Result<()> {
        match self.number(name)? as usize == context.addr() {
            true => Ok(()),
            false => Err(Error::new(kind, "the native object is of another context")),
        }
    }
    /// The same, as a text.
    ///
    /// # Errors
    /// As for `told`.
    fn text(self, name: u32) -> Result<String> {
        self.told(name).map(|bytes| text(&bytes))
    }
}
