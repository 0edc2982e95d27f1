//! Pools of the driver from which streams allocate memory in their order; other processes can open it.
use super::{DriverDevice, backing::reaching, driver::Dialect, native::pool::DriverPool};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};
use ur_hal::Result;
use ur_lock::locked;

/// Bytes of unused memory that a driver pool keeps.
const KEPT: u64 = 256 << 20;

/// A driver pool that is recorded as belonging to this adapter while this lives.
#[derive(Debug)]
struct OwnPool<D: Dialect>(Arc<DriverPool<D>>);
impl<D: Dialect> OwnPool<D> {
    fn new(pool: DriverPool<D>) -> Self {
        locked(&D::statics().memory.get().pools).insert(pool.raw());
        Self(Arc::new(pool))
    }
}
impl<D: Dialect> Drop for OwnPool<D> {
    fn drop(&mut self) {
        locked(&D::statics().memory.get().pools).remove(&self.0.raw());
    }
}
/// The driver pools of a context, by the number of the device; each is created at first use.
#[derive(Debug)]
pub struct OrderedPools<D: Dialect> {
    devices: Vec<Arc<DriverDevice<D>>>,
    pools: Mutex<HashMap<i32, OwnPool<D>>>,
}
impl<D: Dialect> OrderedPools<D> {
    /// For a context of these devices.
    pub(super) fn new(devices: Vec<Arc<DriverDevice<D>>>) -> Self {
        Self { devices, pools: Mutex::default() }
    }
    /// The devices of the context.
    pub(super) fn devices(&self) -> &[Arc<DriverDevice<D>>] {
        &self.devices
    }
    /// The pool of a device.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub(super) fn of(&self, device: &Arc<DriverDevice<D>>) -> Result<Arc<DriverPool<D>>> {
        if let Some(known) = locked(&self.pools).get(&device.number()) {
            return Ok(Arc::clone(&known.0));
        }
        let fresh = DriverPool::create(device, KEPT)?;
        let reaching = reaching(device, &self.devices)?;
        let mut all = locked(&self.pools);
        if let Some(known) = all.get(&device.number()) {
            let known = Arc::clone(&known.0); // another thread was faster
            drop(all); // before `fresh`, which the driver destroys
            return Ok(known);
        }
        let fresh = OwnPool::new(fresh);
        let pool = Arc::clone(&fresh.0);
        all.insert(device.number(), fresh);
        drop(all);
        D::statics().memory.get().peers.enter_pool(device, &pool, reaching)?;
        Ok(pool)
    }
}
