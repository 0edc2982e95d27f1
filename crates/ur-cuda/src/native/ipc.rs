//! Sharing memory by the driver's IPC handles: 64 bytes that identify a whole allocation of `cuMemAlloc`.
#![expect(unsafe_code, reason = "calls into the vendor's driver")]
use super::{
    super::{
        device::DriverDevice,
        driver::{Dialect, IpcBytes, RawContext},
    },
    memory::release,
    virtual_memory::foreign,
};
use std::marker::PhantomData;
use ur_hal::Result;

/// The handle with which other processes can open the whole allocation at `at`.
///
/// # Errors
/// Returns the driver's error, also for memory of another kind.
pub fn handle_of<D: Dialect>(device: &DriverDevice<D>, at: u64) -> Result<IpcBytes> {
    let _on = device.enter()?;
    let mut bytes = [0; 64];
    // SAFETY: `bytes` has the size of the driver's handle.
    unsafe { D::driver().ipc_get_memory(&raw mut bytes, at) }.ok::<D>()?;
    Ok(bytes)
}

/// An allocation of another process, closed on drop.
#[derive(Debug)]
pub struct OpenedHandle<D: Dialect> {
    at: u64,
    context: RawContext,
    _dialect: PhantomData<fn() -> D>,
}
impl<D: Dialect> OpenedHandle<D> {
    /// Opens it for `device`; access of peers is enabled at their first use.
    ///
    /// # Errors
    /// `INVALID_VALUE` for an invalid handle, and for a handle of this process.
    pub fn open(device: &DriverDevice<D>, handle: IpcBytes) -> Result<Self> {
        let _on = device.enter()?;
        let (mut at, driver) = (0, D::driver());
        let outcome = match driver.has("ipc_open_memory_hip") {
            // SAFETY: `at` is writable; the driver checks the handle. Flags 1: enable peer access lazily.
            true => unsafe { driver.ipc_open_memory_hip(&raw mut at, handle, 1) },
            // SAFETY: as above.
            false => unsafe { driver.ipc_open_memory(&raw mut at, handle, 1) },
        };
        outcome.ok::<D>().map_err(foreign)?;
        Ok(Self { at, context: device.context()?, _dialect: PhantomData })
    }
    /// Its address in this process.
    pub fn at(&self) -> u64 {
        self.at
    }
}
impl<D: Dialect> Drop for OpenedHandle<D> {
    fn drop(&mut self) {
        release::<D>(self.context, || {
            // SAFETY: opened here, and closed once.
            unsafe { D::driver().ipc_close_memory(self.at) }.released::<D>()
        });
    }
}
