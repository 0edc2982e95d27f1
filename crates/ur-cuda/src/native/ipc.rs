//! Sharing memory by the driver's IPC handles: 64 bytes that identify a whole allocation of `cuMemAlloc`.
#![expect(unsafe_code, reason = "calls into the vendor's driver")]
use super::{
    super::{
        device::DriverDevice,
        driver::{Dialect, IpcBytes},
    },
    context::{IpcMemory, Owned},
    virtual_memory::foreign,
};
use ur_hal::{Result, told};

/// The handle with which other processes can open the whole allocation at `at`.
///
/// # Errors
/// Returns the driver's error, also for memory of another kind.
pub fn handle_of<D: Dialect>(device: &DriverDevice<D>, at: u64) -> Result<IpcBytes> {
    let (_on, mut bytes) = (device.enter()?, [0; 64]);
    // SAFETY: `bytes` has the size of the driver's handle.
    unsafe { D::driver().ipc_get_memory(&raw mut bytes, at) }.ok().map(|()| bytes)
}

/// An allocation of another process, closed on drop.
pub type OpenedHandle<D> = Owned<IpcMemory, D>;
impl<D: Dialect> OpenedHandle<D> {
    /// Opens it for `device`; access of peers is enabled at their first use.
    ///
    /// # Errors
    /// `INVALID_VALUE` for an invalid handle, and for a handle of this process.
    pub fn open(device: &DriverDevice<D>, handle: IpcBytes) -> Result<Self> {
        let _on = device.enter()?;
        let driver = D::driver();
        let at = told(|to| match driver.has("ipc_open_memory_hip") {
            // SAFETY: `to` is writable; the driver checks the handle. Flags 1: enable peer access lazily.
            true => unsafe { driver.ipc_open_memory_hip(to, handle, 1) },
            // SAFETY: as above.
            false => unsafe { driver.ipc_open_memory(to, handle, 1) },
        });
        Owned::made(device, IpcMemory(at.map_err(foreign)?))
    }
    /// Its address in this process.
    pub fn at(&self) -> u64 {
        self.raw().0
    }
}
