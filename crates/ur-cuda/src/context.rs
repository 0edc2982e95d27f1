//! A context: its devices, and pools of the driver from which its streams allocate memory in their order; other processes
//! can open it. There is no driver object for a context; each device has a primary context.
use super::{backing::reaching, device::DriverDevice, driver::Dialect, native::pool::DriverPool};
use std::sync::Arc;
use ur_hal::Result;
use ur_lock::{PerKey, locked};

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
/// A context as the core holds it; its streams keep it, too.
pub type DriverContext<D> = Arc<ContextState<D>>;
/// The devices of a context, and its driver pools.
#[derive(Debug)]
pub struct ContextState<D: Dialect> {
    devices: Vec<Arc<DriverDevice<D>>>,
    /// By the number of the device; each is created at first use.
    pools: PerKey<i32, Arc<OwnPool<D>>>,
}
impl<D: Dialect> ContextState<D> {
    /// A context of these devices; at least one.
    pub(super) fn new(devices: Vec<Arc<DriverDevice<D>>>) -> Arc<Self> {
        Arc::new(Self { devices, pools: PerKey::new() })
    }
    /// Its devices; never empty.
    pub fn devices(&self) -> &[Arc<DriverDevice<D>>] {
        &self.devices
    }
    /// The pool of a device.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub(super) fn pool(&self, device: &Arc<DriverDevice<D>>) -> Result<Arc<DriverPool<D>>> {
        let own = self.pools.get(device.number(), || {
            let fresh = DriverPool::create(device, KEPT)?;
            let reaching = reaching(device, &self.devices)?;
            let fresh = OwnPool::new(fresh);
            D::statics().memory.get().peers.enter_pool(device, &fresh.0, reaching)?;
            Ok::<_, ur_hal::Error>(Arc::new(fresh))
        })?;
        Ok(Arc::clone(&own.0))
    }
}
