//! The driver's memory pools: memory allocated and freed in stream order, which can be shared with other
//! processes.
#![expect(unsafe_code, reason = "calls into the vendor's driver")]
use super::{
    super::{
        device::DriverDevice,
        driver::{
            Dialect, IpcBytes, RawPool, RawStream,
            layout::{AccessDesc, Location, PoolProps},
        },
    },
    context::{Owned, release},
    memory::pointer,
    own_streams::utility,
    virtual_memory::{exported, foreign},
};
use std::{
    os::fd::{AsRawFd, BorrowedFd, OwnedFd},
    sync::{Arc, OnceLock},
};
use ur_hal::{Result, made, told};

const DESCRIPTOR: i32 = 1;
/// The attribute for the bytes that stay in a pool at synchronizations.
const RELEASE_THRESHOLD: i32 = 4;

/// A pool that was created here, imported from another process, or created by other code in this process.
#[derive(Debug)]
pub struct DriverPool<D: Dialect> {
    pool: Owned<RawPool, D>,
    exported: OnceLock<Arc<OwnedFd>>,
}
impl<D: Dialect> DriverPool<D> {
    /// Whether the device has pools that can be shared with other processes.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn is_supported(device: &DriverDevice<D>) -> Result<bool> {
        // A driver that does not know the second attribute cannot share pools.
        let descriptors = device.attribute(119).is_ok_and(|types| types & DESCRIPTOR != 0);
        Ok(device.attribute(115)? != 0 && descriptors)
    }
    /// Creates a pool of `device`'s memory that keeps up to `keep` unused bytes.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn create(device: &DriverDevice<D>, keep: u64) -> Result<Self> {
        let _on = device.enter()?;
        let location = Location { kind: 1, id: device.number() };
        let properties = PoolProps { handle_types: DESCRIPTOR, location, ..PoolProps::default() };
        // SAFETY: `to` is writable, the properties are initialized.
        let raw = made(|to| unsafe { D::driver().pool_create(to, &properties) })?;
        let (pool, mut keep) = (Self::of(device, raw, true)?, keep);
        let value = (&raw mut keep).cast();
        // SAFETY: the attribute is a 64-bit number.
        unsafe { D::driver().pool_set(raw, RELEASE_THRESHOLD, value) }.ok()?;
        Ok(pool)
    }
    fn of(device: &DriverDevice<D>, raw: RawPool, is_ours: bool) -> Result<Self> {
        let pool = Owned::of(raw, is_ours, device.context()?);
        Ok(Self { pool, exported: OnceLock::new() })
    }
    /// Wraps a pool of other code in this process; it is never destroyed here.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn borrowed(device: &DriverDevice<D>, raw: RawPool) -> Result<Self> {
        Self::of(device, raw, false)
    }
    /// Imports a pool of another process by its descriptor.
    ///
    /// # Errors
    /// `INVALID_VALUE` if the descriptor is not of a pool.
    pub fn import(device: &DriverDevice<D>, fd: BorrowedFd<'_>) -> Result<Self> {
        let _on = device.enter()?;
        let number = pointer(fd.as_raw_fd() as u64);
        // SAFETY: the driver checks the descriptor, and does not keep it.
        let raw = made(|to| unsafe { D::driver().pool_import(to, number, DESCRIPTOR, 0) });
        Self::of(device, raw.map_err(foreign)?, true)
    }
    /// The driver's handle.
    pub fn raw(&self) -> RawPool {
        self.pool.raw()
    }
    /// Gives the devices with these numbers access to its memory, or revokes it. The pool's own device always
    /// has access.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn admit(&self, device: &DriverDevice<D>, devices: &[i32], may: bool) -> Result<()> {
        let _on = device.enter()?;
        let flags = if may { 3 } else { 0 };
        let others = devices.iter().filter(|&&id| id != device.number());
        let access = |&id: &i32| AccessDesc { location: Location { kind: 1, id }, flags };
        let all: Vec<_> = others.map(access).collect();
        if all.is_empty() {
            return Ok(());
        }
        // SAFETY: the list has the length that is passed.
        unsafe { D::driver().pool_access(self.raw(), all.as_ptr(), all.len()) }.ok()
    }
    /// Allocates in the order of `stream`; a context must be current.
    ///
    /// # Errors
    /// Returns the driver's error, typically out of memory.
    pub fn alloc(&self, bytes: usize, stream: Option<RawStream>) -> Result<u64> {
        // SAFETY: `to` is writable; the stream is live.
        told(|to| unsafe { D::driver().pool_alloc(to, bytes, self.raw(), stream) })
    }
    /// The descriptor with which other processes can import it.
    ///
    /// # Errors
    /// Returns the driver's error, also for a pool that was not created for sharing.
    pub fn export(&self, device: &DriverDevice<D>) -> Result<Arc<OwnedFd>> {
        exported(device, &self.exported, |to| {
            // SAFETY: `to` is for a descriptor.
            unsafe { D::driver().pool_export(to, self.raw(), DESCRIPTOR, 0) }
        })
    }
    /// Opens an allocation of this pool by another process's export data.
    ///
    /// # Errors
    /// `INVALID_VALUE` for data that is not of this pool.
    pub fn import_pointer(&self, device: &DriverDevice<D>, mut data: IpcBytes) -> Result<u64> {
        let _on = device.enter()?;
        // SAFETY: both are writable and have the driver's sizes.
        told(|to| unsafe { D::driver().pool_import_pointer(to, self.raw(), &raw mut data) })
            .map_err(foreign)
    }
}
/// The data that other processes need, besides the pool, to open the allocation at `at`.
///
/// # Errors
/// Returns the driver's error.
pub fn export_pointer<D: Dialect>(device: &DriverDevice<D>, at: u64) -> Result<IpcBytes> {
    let _on = device.enter()?;
    let mut data = [0; 64];
    // SAFETY: `data` has the driver's size.
    unsafe { D::driver().pool_export_pointer(&raw mut data, at) }.ok().map(|()| data)
}

/// An allocation of a pool, made here or opened, freed on drop.
#[derive(Debug)]
pub struct FromPool<D: Dialect> {
    at: u64,
    /// Whether it was already freed in stream order.
    is_free: bool,
    pool: Arc<DriverPool<D>>,
}
impl<D: Dialect> FromPool<D> {
    /// Takes ownership of an allocation of `pool` at `at`.
    pub fn new(pool: Arc<DriverPool<D>>, at: u64) -> Self {
        Self { at, is_free: false, pool }
    }
    /// Its address.
    pub fn at(&self) -> u64 {
        self.at
    }
    /// The pool that it is from.
    pub fn pool(&self) -> &Arc<DriverPool<D>> {
        &self.pool
    }
    /// Frees it in the order of `stream`; a context must be current.
    ///
    /// # Errors
    /// Returns the driver's error; it is then freed on drop.
    pub fn free_on(&mut self, stream: Option<RawStream>) -> Result<()> {
        // SAFETY: owned, and freed once.
        unsafe { D::driver().free_async(self.at, stream) }.ok()?;
        self.is_free = true;
        Ok(())
    }
}
impl<D: Dialect> Drop for FromPool<D> {
    fn drop(&mut self) {
        if !self.is_free {
            let context = self.pool.pool.context();
            release::<D>(context, |on| {
                let stream = utility(on, context)?;
                // SAFETY: the owner guarantees that no command uses it any more.
                unsafe { D::driver().free_async(self.at, stream.raw()) }.released()
            });
        }
    }
}
