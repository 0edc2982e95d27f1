//! Primary contexts: retained once a device, pushed for the time of a few driver calls.
#![expect(unsafe_code, reason = "calls into the vendor's driver")]
use super::super::driver::{Dialect, RawContext};
use std::marker::PhantomData;
use ur_adapter::{
    error::{Error, ErrorCode, Result},
    log,
};

/// Starts the driver, or finds it started.
///
/// # Errors
/// The driver's own, "no device" among them.
pub fn init<D: Dialect>() -> Result<()> {
    // SAFETY: may be called at any time, from any thread.
    unsafe { D::driver().init(0) }.ok::<D>()
}
/// Retains the primary context of the device with the driver's number `device`. It is never given
/// back: it may be cudart's too, and costs nothing more once it is there.
///
/// # Errors
/// Returns the driver's error.
pub fn retain_primary<D: Dialect>(device: i32) -> Result<RawContext> {
    let mut context = None;
    // SAFETY: `context` is writable.
    unsafe { D::driver().primary_retain(&raw mut context, device) }.ok::<D>()?;
    context.ok_or_else(|| Error::new(ErrorCode::Unknown, "the driver gave a null context"))
}

/// Whether somebody in this process has started the primary context of the device with that number.
///
/// # Errors
/// Returns the driver's error.
pub fn is_primary_active<D: Dialect>(device: i32) -> Result<bool> {
    let (mut flags, mut active) = (0, 0);
    // SAFETY: both are writable.
    unsafe { D::driver().primary_state(device, &raw mut flags, &raw mut active) }.ok::<D>()?;
    Ok(active != 0)
}

/// While this lives, a context is current on this thread; what was current before is afterwards.
#[derive(Debug)]
#[must_use]
pub struct Entered<D: Dialect> {
    pushed: bool,
    /// Not for another thread.
    _thread: PhantomData<*mut D>,
}
impl<D: Dialect> Entered<D> {
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
    /// Bytes of the device that are free, and all there are.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn memory(&self) -> Result<(usize, usize)> {
        let (mut free, mut total) = (0, 0);
        // SAFETY: both are writable.
        unsafe { D::driver().memory_info(&raw mut free, &raw mut total) }.ok::<D>()?;
        Ok((free, total))
    }
    /// The least and the greatest priority of streams; greater ones are smaller numbers.
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
            outcome.unwrap_or_else(|error| {
                log::say(D::BACKEND, ur_sys::ur_logger_level_t::WARN, &error)
            });
        }
    }
}
