//! USM: chunks for the core's pools, and the driver pools for allocations in stream order.
use super::DriverDevice;
use super::{
    Context, Family,
    backing::{ALIGNMENT, Chunk, reaching},
    context::DriverContext,
    driver::Dialect,
    foreign,
    memory::Leaving,
    native::{device as native, memory, pool::DriverPool},
    work::{Moment, ticket_of},
};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};
use ur_adapter::{
    error::{Error, ErrorCode, Result},
    memory::UsmPtr,
    object::{Borrowed, Object},
};
use ur_core::over_driver::usm_pool::{self, HasUsm, OWN_DEVICE};
use ur_hal::{Address, Allocates, KnownMemory, MemoryRequest};
use ur_lock::locked;

/// What `ur_usm_pool_handle_t` points at.
pub type UsmPool<D> = usm_pool::UsmPool<Family<D>>;

/// The alignment in bytes of allocations without a requested one; the driver guarantees at least this.
const NATURAL: usize = 256;
/// Up to this size in bytes the device's memory size is not queried to check an allocation.
const SMALL: usize = 64 << 20;

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
    type Ordered = super::memory::Ordered<D>;
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
        foreign::recognise(context, at)
    }
}
impl<D: Dialect> HasUsm for Family<D> {
    const LARGEST_ALIGNMENT: usize = ALIGNMENT;
    const ROW: usize = 512;
    type DriverPools = DriverPools<D>;

    fn check_size(device: &Arc<DriverDevice<D>>, bytes: usize) -> Result<()> {
        let most = if bytes <= SMALL { SMALL } else { native::memory::<D>(device.number())? };
        match bytes > 0 && bytes <= most {
            true => Ok(()),
            false => Err(Error::new(
                ErrorCode::InvalidUsmSize,
                format!("{bytes} bytes are none, or more than the {most} there are"),
            )),
        }
    }
    fn natural_alignment(_bytes: usize) -> usize {
        NATURAL
    }
    fn memory_size(device: &Arc<DriverDevice<D>>) -> Result<usize> {
        Ok(native::memory::<D>(device.number())?)
    }
    fn leaving(chunk: Arc<Chunk<D>>) -> impl Send + 'static {
        Leaving::new(chunk)
    }
    fn submitted(context: &Object<Context<D>>, since: u64) -> Vec<Moment<D>> {
        ticket_of(context.queues(), since).into_moments()
    }
    fn zero(
        _: &DriverContext<D>,
        device: &Arc<DriverDevice<D>>,
        at: UsmPtr,
        bytes: usize,
    ) -> Result<()> {
        Ok(memory::zero(device, at.addr() as u64, bytes)?)
    }
    fn copy(
        context: Borrowed<'_, Context<D>>,
        to: UsmPtr,
        from: UsmPtr,
        bytes: usize,
    ) -> Result<()> {
        Ok(memory::copy(&context.devices()[0], to.addr() as u64, from.addr() as u64, bytes)?)
    }
}
