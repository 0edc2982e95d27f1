//! Words in memory shared between processes, which a device's streams can write and wait for.
#![expect(unsafe_code, reason = "calls into the vendor's driver")]
use super::{
    super::driver::{Dialect, RawContext},
    context::Entered,
};
use crate::notice;
use std::{ffi::c_void, marker::PhantomData, ptr};
use ur_hal::{Result, Severity};

/// `CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP`: usable in all contexts.
const FLAGS: u32 = 3;

/// A piece of shared memory, registered with the driver until this is dropped.
#[derive(Debug)]
pub struct Words<D: Dialect> {
    start: usize,
    device: u64,
    context: RawContext,
    _dialect: PhantomData<fn() -> D>,
}
fn pointer(at: usize) -> *mut c_void {
    ptr::with_exposed_provenance_mut(at)
}
impl<D: Dialect> Words<D> {
    /// Pins `bytes` at `start`: whole pages that must stay mapped until this is dropped.
    ///
    /// # Errors
    /// Returns the driver's error, also for a piece that is registered already.
    pub fn register(
        _on: &Entered<D>,
        context: RawContext,
        start: usize,
        bytes: usize,
    ) -> Result<Self> {
        // SAFETY: the driver checks the range; pinning it does not affect the host's accesses.
        unsafe { D::driver().host_register(pointer(start), bytes, FLAGS) }.ok::<D>()?;
        let mut words = Self { start, device: 0, context, _dialect: PhantomData };
        let to = &raw mut words.device;
        // SAFETY: `to` is writable, and the range was registered above.
        unsafe { D::driver().host_pointer(to, pointer(start), 0) }.ok::<D>()?;
        Ok(words)
    }
    /// The device's address of the word at `address`.
    pub fn on_device(&self, address: usize) -> u64 {
        self.device + (address - self.start) as u64
    }
}
impl<D: Dialect> Drop for Words<D> {
    fn drop(&mut self) {
        if super::super::device::check_fork::<D>().is_err() {
            return;
        }
        let gone = Entered::<D>::enter(self.context).and_then(|_on| {
            // SAFETY: registered here; commands that wait for its words or write them are complete.
            unsafe { D::driver().host_unregister(pointer(self.start)) }.released::<D>()
        });
        gone.unwrap_or_else(|error| notice::<D>(Severity::Warning, &error));
    }
}
