//! Primary contexts: each is retained once, and pushed for the duration of a few driver calls.
#![expect(unsafe_code, reason = "calls into the vendor's driver")]
use super::super::driver::{Dialect, RawContext};
use crate::notice;
use std::marker::PhantomData;
use ur_hal::{Error, ErrorKind, Result, Severity};

/// Initialises the driver; no effect if it is initialised.
///
/// # Errors
/// Returns the driver's error, also if there is no device.
pub fn init<D: Dialect>() -> Result<()> {
    // SAFETY: may be called at any time, from any thread.
    unsafe { D::driver().init(0) }.ok::<D>()
}
/// Retains the primary context of the device with the driver's number `device`. It is never released: the
/// CUDA runtime may use it too, and keeping it costs nothing more.
///
/// # Errors
/// Returns the driver's error.
pub fn retain_primary<D: Dialect>(device: i32) -> Result<RawContext> {
    let mut context = None;
    // SAFETY: `context` is writable.
    unsafe { D::driver().primary_retain(&raw mut context, device) }.ok::<D>()?;
    context.ok_or_else(|| Error::new(ErrorKind::Unknown, "the driver gave a null context"))
}

/// Whether the primary context of the device with this number is active in this process.
///
/// # Errors
/// Returns the driver's error.
pub fn is_primary_active<D: Dialect>(device: i32) -> Result<bool> {
    let (mut flags, mut active) = (0, 0);
    // SAFETY: both are writable.
    unsafe { D::driver().primary_state(device, &raw mut flags, &raw mut active) }.ok::<D>()?;
    Ok(active != 0)
}

/// While this lives, a context is current on this thread; afterwards the previous one is current again.
#[derive(Debug)]
#[must_use]
pub struct Entered<D: Dialect> {
    pushed: bool,
    /// Not `Send`: contexts are current for one thread.
    _thread: PhantomData<*mut D>,
}
impl<D: Dialect> Entered<D> {
    /// Makes `context` current.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn enter(context: RawContext) -> Result<Self> {
        let mut current = None;
        // SAFETY: `current` is writable.
        unsafe { D::driver().context_current(&raw mut current) }.ok::<D>()?;
        let pushed = current != Some(context);
        if pushed {
            // SAFETY: the context was retained and is never released.
            unsafe { D::driver().context_push(context) }.ok::<D>()?;
        }
        Ok(Self { pushed, _thread: PhantomData })
    }
    /// The device's free and total memory in bytes.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn memory(&self) -> Result<(usize, usize)> {
        let (mut free, mut total) = (0, 0);
        // SAFETY: both are writable.
        unsafe { D::driver().memory_info(&raw mut free, &raw mut total) }.ok::<D>()?;
        Ok((free, total))
    }
    /// The least and the greatest priority of streams; a smaller number is a greater priority.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn priorities(&self) -> Result<(i32, i32)> {
        let (mut least, mut greatest) = (0, 0);
        // SAFETY: both are writable.
        unsafe { D::driver().context_priorities(&raw mut least, &raw mut greatest) }.ok::<D>()?;
        Ok((least, greatest))
    }
}
impl<D: Dialect> Drop for Entered<D> {
    fn drop(&mut self) {
        if self.pushed {
            let mut popped = None;
            // SAFETY: `popped` is writable, and what is popped was pushed here.
            let outcome = unsafe { D::driver().context_pop(&raw mut popped) }.released::<D>();
            outcome.unwrap_or_else(|error| notice::<D>(Severity::Warning, &error));
        }
    }
}
