//! USM: chunks for the core's pools, and the driver pools for allocations in stream order.
use super::DriverDevice;
use super::{
    Family,
    backing::{ALIGNMENT, Chunk, reaching},
    context::DriverContext,
    driver::Dialect,
    foreign,
    memory::Leaving,
    native::{memory, pool::DriverPool},
};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};
use ur_adapter::error::Result;
use ur_core::over_driver::usm_pool::{self, HasUsm, OWN_DEVICE};
use ur_hal::{Address, Allocates, KnownMemory, MemoryRequest, Range};
use ur_lock::locked;

/// What `ur_usm_pool_handle_t` points at.
pub type UsmPool<D> = usm_pool::UsmPool<Family<D>>;

/// The driver pools for allocations in stream order, by the number of the device.
pub type DriverPools<D> = Mutex<HashMap<i32, Ordered<D>>>;
/// A driver pool that is recorded as belonging to this adapter while this lives.
#[derive(Debug)]
pub struct Ordered<D: Dialect>(Arc<DriverPool<D>>);
impl<D: Dialect> Ordered<D> {
    fn new(pool: DriverPool<D>) -> Self {
        locked(&D::statics().memory.get().pools).insert(pool.raw());
        Self(Arc::new(pool))
    }
}
impl<D: Dialect> Drop for Ordered<D> {
    fn drop(&mut self) {
        locked(&D::statics().memory.get().pools).remove(&self.0.raw());
    }
}
/// The driver pool for allocations in stream order on `device`; created at first use. `None` if the device
/// has no pools that can be shared.
///
/// # Errors
/// Returns the driver's error.
pub(super) fn ordered<D: Dialect>(
    pools: &DriverPools<D>,
    device: &Arc<DriverDevice<D>>,
    devices: &[Arc<DriverDevice<D>>],
) -> Result<Option<Arc<DriverPool<D>>>> {
    if let Some(known) = locked(pools).get(&device.number()) {
        return Ok(Some(Arc::clone(&known.0)));
    }
    if !DriverPool::is_supported(device)? {
        return Ok(None);
    }
    let fresh = DriverPool::create(device, OWN_DEVICE.keep as u64)?;
    let reaching = reaching(device, devices)?;
    let mut all = locked(pools);
    let unused = match all.get(&device.number()) {
        Some(_) => Some(fresh), // another thread was faster
        None => {
            all.insert(device.number(), Ordered::new(fresh));
            None
        }
    };
    let chosen = all.get(&device.number()).map(|one| Arc::clone(&one.0));
    drop(all);
    let is_new = unused.is_none();
    drop(unused); // outside the lock
    if let (true, Some(pool)) = (is_new, &chosen) {
        D::statics().memory.get().peers.enter_pool(device, pool, reaching)?;
    }
    Ok(chosen)
}

impl<D: Dialect> Allocates for Family<D> {
    const LARGEST_ALIGNMENT: usize = ALIGNMENT;
    const ROW: usize = 512;
    /// The driver guarantees at least this.
    fn natural_alignment(_: usize) -> usize {
        256
    }
    fn memory_size(device: &Arc<DriverDevice<D>>) -> ur_hal::Result<usize> {
        device.memory()
    }
    fn allocate(
        context: &DriverContext<D>,
        device: &Arc<DriverDevice<D>>,
        MemoryRequest { kind, bytes, align, .. }: MemoryRequest,
    ) -> ur_hal::Result<Chunk<D>> {
        Chunk::take(kind, device, context.devices(), bytes, align)
    }
    fn recognise(
        context: &DriverContext<D>,
        at: Address,
    ) -> ur_hal::Result<Option<KnownMemory<Arc<DriverDevice<D>>>>> {
        Ok(foreign::recognise(context, at.into())?)
    }
    fn zero(
        _: &DriverContext<D>,
        device: &Arc<DriverDevice<D>>,
        range: Range,
    ) -> ur_hal::Result<()> {
        memory::zero(device, range.start().get() as u64, range.bytes())
    }
    fn copy(
        context: &DriverContext<D>,
        to: Address,
        from: Address,
        bytes: usize,
    ) -> ur_hal::Result<()> {
        memory::copy(&context.devices()[0], to.get() as u64, from.get() as u64, bytes)
    }
    fn returned(chunk: Arc<Chunk<D>>) -> impl Send + 'static {
        Leaving::new(chunk)
    }
}
impl<D: Dialect> HasUsm for Family<D> {
    type DriverPools = DriverPools<D>;
}
