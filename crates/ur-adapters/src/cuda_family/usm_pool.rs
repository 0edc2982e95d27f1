//! Pools of USM: what `ur_usm_pool_handle_t` points at, what is counted of one, and which pool a device
//! of a context uses. How blocks are cut is `ur_adapter::pool`'s, what C asks of a pool and allocates
//! from it `usm.rs`'s.
use super::{
    Context, Device,
    backing::Chunk,
    driver::Dialect,
    memory::{Allocation, Leaving, Memory},
    native::{device as native, memory, pool::DriverPool},
    queue::Ticket,
};
use crate::memory::{
    allocation::{Counted, Home, Usm},
    deferred_free::{self, is_for_room},
    pools::{ByDevice, Identified, Identity},
    totals::Totals,
    usm::limits,
};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::Ordering::*},
};
use ur_adapter::{
    error::{Error, ErrorCode, Result},
    memory::UsmPtr,
    object::{Borrowed, Object, Owned},
    pool::{self, Limits, Pool, Source},
};
use ur_sys::{ur_usm_pool_desc_t, ur_usm_pool_flags_t, ur_usm_pool_info_t};

/// Where pools get their chunks: memory of one kind, which no other pool has.
#[derive(Debug)]
pub struct Chunks<D: Dialect> {
    usm: Usm,
    /// Whose memory it is, or who works on the host's.
    pub(super) device: Owned<Device<D>>,
    /// The devices of the context: those that can reach the memory have access.
    devices: Vec<Owned<Device<D>>>,
    /// Whether every block is to be filled with zeros.
    pub(super) zeroed: bool,
    /// What is counted for all pools behind one handle.
    pub(super) totals: Arc<Totals>,
}
impl<D: Dialect> Source for Chunks<D> {
    type Chunk = Chunk<D>;
    type Passed = Ticket<D>;
    fn chunk(&self, bytes: usize, align: usize) -> Result<Chunk<D>> {
        let whole = bytes.max(1);
        self.totals.claim(whole)?;
        let taken = Chunk::take(self.usm, &self.device, &self.devices, whole, align);
        match &taken {
            // Which the driver may have put on top.
            Ok(chunk) => self.totals.reserved.add(pool::Chunk::bytes(chunk) - whole),
            Err(_) => self.totals.unclaim(whole),
        }
        taken
    }
    fn give_back(&self, chunk: Arc<Chunk<D>>, after: Vec<Ticket<D>>) {
        self.totals.unclaim(pool::Chunk::bytes(&*chunk));
        let after = after.into_iter().flat_map(Ticket::into_moments).collect();
        deferred_free::after::<Memory<D>>(after, Leaving::new(chunk));
    }
}
impl<D: Dialect> Counted for Chunks<D> {
    fn totals(&self) -> &Arc<Totals> {
        &self.totals
    }
    fn prepare(&self, at: UsmPtr, bytes: usize) -> Result<()> {
        match self.zeroed {
            true => memory::zero(&self.device, at.addr() as u64, bytes),
            false => Ok(()),
        }
    }
}
impl<D: Dialect> pool::Passed for Ticket<D> {
    fn passed(&self) -> bool {
        self.is_over()
    }
}
/// A pool of this adapter's.
pub(super) type UsmBlocks<D> = Pool<Chunks<D>>;

/// What `ur_usm_pool_handle_t` points at: a pool for each kind of USM and each device. Memory of one is
/// in use until its blocks are freed, whatever becomes of the handle.
#[derive(Debug)]
pub struct UsmPool<D: Dialect> {
    identity: Identity<Context<D>, Device<D>>,
    parts: Vec<Part<D>>,
    totals: Arc<Totals>,
    /// The driver's pools that memory in a stream's order comes from, by the number of the device.
    ordered: Mutex<HashMap<i32, Ordered<D>>>,
}
/// A pool of the driver's that is known as ours while this lives.
#[derive(Debug)]
struct Ordered<D: Dialect>(Arc<DriverPool<D>>);
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
#[derive(Debug)]
struct Part<D: Dialect> {
    usm: Usm,
    /// The handle of its device; the host's memory is any device's.
    device: usize,
    blocks: Arc<UsmBlocks<D>>,
}

/// What a context's own memory is cut from, where C names no pool.
const OWN_DEVICE: Limits = Limits {
    grain: 256,
    poolable: 16 << 20,
    chunk: 32 << 20,
    keep: 256 << 20,
    maximum: usize::MAX,
};
const OWN_HOST: Limits =
    Limits { grain: 64, poolable: 1 << 20, chunk: 2 << 20, keep: 32 << 20, maximum: usize::MAX };

impl<D: Dialect> UsmPool<D> {
    /// A pool as C describes it, for all devices of `context` or for one.
    ///
    /// # Errors
    /// `INVALID_DEVICE` where the device is none of the context's; `INVALID_VALUE` for a chain of
    /// descriptors that does not end.
    pub(super) fn create(
        context: Borrowed<'_, Context<D>>,
        device: Option<Borrowed<'_, Device<D>>>,
        desc: &ur_usm_pool_desc_t,
    ) -> Result<Owned<Self>> {
        device.map_or(Ok(()), |device| context.check(device))?;
        let limits = limits(desc)?;
        let zeroed = desc.flags.contains(ur_usm_pool_flags_t::ZERO_INITIALIZE_BLOCK);
        let mut pool = Self::new(handle(&context), context.devices(), |_| limits, zeroed)?;
        pool.identity = Identity::of_pool(context, device)?;
        Ok(Owned::new(pool))
    }
    fn new(
        context: usize,
        devices: &[Owned<Device<D>>],
        limits: impl Fn(Usm) -> Limits,
        zeroed: bool,
    ) -> Result<Self> {
        let (totals, mut parts) = (Totals::new(), Vec::new());
        for (index, device) in devices.iter().enumerate() {
            for usm in [Usm::Device, Usm::Shared, Usm::Host] {
                if usm == Usm::Host && index > 0 {
                    continue; // there is one host
                }
                let (totals, devices) = (Arc::clone(&totals), devices.to_vec());
                let source = Chunks { usm, device: device.clone(), devices, zeroed, totals };
                let blocks = Pool::new(source, limits(usm))?;
                parts.push(Part { usm, device: handle(device), blocks });
            }
        }
        let (identity, ordered) = (Identity::of_context(context), Mutex::default());
        Ok(Self { identity, parts, totals, ordered })
    }
    /// The pool that a device starts out with.
    ///
    /// # Errors
    /// As for [`Pool::new`].
    pub(super) fn initial(context: Borrowed<'_, Context<D>>) -> Result<Self> {
        let pool = Self::new(handle(&context), context.devices(), |_| Limits::default(), false)?;
        Ok(Self { identity: Identity::of_default(handle(&context)), ..pool })
    }
    /// What is counted of it.
    pub(super) fn totals(&self) -> &Arc<Totals> {
        &self.totals
    }
    /// The part of it that has memory of one kind for the device with this handle.
    fn of(&self, usm: Usm, device: usize) -> Result<&Arc<UsmBlocks<D>>> {
        let is_it =
            |part: &&Part<D>| part.usm == usm && (usm == Usm::Host || part.device == device);
        self.parts.iter().find(is_it).map(|part| &part.blocks).ok_or_else(|| {
            Error::new(ErrorCode::InvalidDevice, "the pool has no memory of this device")
        })
    }
    /// Gives unused memory back as long as `keep` bytes stay.
    pub(super) fn trim_to(&self, keep: usize) {
        deferred_free::sweep_all::<Memory<D>>();
        for part in &self.parts {
            // Other threads may be at it: as good as it gets.
            let all = self.totals.reserved.current.load(Relaxed);
            let others = all.saturating_sub(part.blocks.statistics().reserved);
            part.blocks.trim_to(keep.saturating_sub(others));
        }
    }
    /// Allocates from it. What parts for other kinds of memory do not use is given back if there is no
    /// room otherwise.
    ///
    /// # Errors
    /// As for [`Allocation::take`].
    pub(super) fn allocate(
        &self,
        usm: Usm,
        home: Home,
        size: usize,
        align: usize,
    ) -> Result<UsmPtr> {
        let part = self.of(usm, home.device)?;
        let allocate = || Allocation::take(usm, home, size, align, part);
        allocate().or_else(|error| match is_for_room(&error) {
            true => {
                self.trim_to(0);
                allocate()
            }
            false => Err(error),
        })
    }
    /// The driver's pool for memory in a stream's order on `device`; `None` where the device has none
    /// that could be shared.
    ///
    /// # Errors
    /// The driver's own.
    pub(super) fn ordered(
        &self,
        device: &Owned<Device<D>>,
        devices: &[Owned<Device<D>>],
    ) -> Result<Option<Arc<DriverPool<D>>>> {
        if let Some(known) = locked(&self.ordered).get(&device.number()) {
            return Ok(Some(Arc::clone(&known.0)));
        }
        if !DriverPool::is_supported(device)? {
            return Ok(None);
        }
        let fresh = DriverPool::create(device, OWN_DEVICE.keep as u64)?;
        let reaching = super::backing::reaching(device, devices)?;
        let mut all = locked(&self.ordered);
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
        drop(unused); // not under the lock
        if let (true, Some(pool)) = (is_new, &chosen) {
            D::statics().memory.get().peers.enter_pool(device, pool, reaching)?;
        }
        Ok(chosen)
    }
    /// # Errors
    /// `INVALID_DEVICE` for a device of another context; `INVALID_VALUE` for a pool of another, or for a
    /// device that the pool was not made for.
    pub(super) fn check(
        &self,
        context: Borrowed<'_, Context<D>>,
        device: Borrowed<'_, Device<D>>,
    ) -> Result<()> {
        context.check(device)?;
        self.identity.check(context, device)
    }
    fn limits(&self) -> Limits {
        self.parts.first().map_or_else(Limits::default, |part| part.blocks.limits())
    }
    /// What a property is, if it is a size.
    ///
    /// # Errors
    /// The driver's own.
    pub(super) fn size(&self, name: ur_usm_pool_info_t) -> Result<Option<usize>> {
        use ur_usm_pool_info_t as I;
        // What commands were done with meanwhile is not used any more.
        deferred_free::sweep_all::<Memory<D>>();
        Ok(match name {
            I::RELEASE_THRESHOLD_EXP => Some(self.limits().keep),
            I::MAXIMUM_SIZE_EXP => {
                let device = self.parts.first().map(|part| &part.blocks.source().device);
                let most = device.map(|device| native::memory::<D>(device.number())).transpose()?;
                Some(self.totals.maximum.load(Relaxed).min(most.unwrap_or(usize::MAX)))
            }
            name => self.totals.size(name),
        })
    }
    /// Changes a property.
    ///
    /// # Errors
    /// `INVALID_VALUE` for a high mark that is not set to 0, `UNSUPPORTED_ENUMERATION` for what is only
    /// read.
    pub(super) fn set(&self, name: ur_usm_pool_info_t, number: usize) -> Result<()> {
        match name {
            ur_usm_pool_info_t::RELEASE_THRESHOLD_EXP => {
                self.parts.iter().for_each(|part| part.blocks.set_keep(number));
                Ok(())
            }
            name => self.totals.set(name, number),
        }
    }
}

fn handle<T>(object: &Object<T>) -> usize {
    object.as_handle().addr()
}
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the devices of one context allocate from when C names no pool.
#[derive(Debug)]
pub struct DevicePools<D: Dialect> {
    /// Under `urUSM*Alloc`: a pool that C has no handle of.
    own: Mutex<Option<Arc<UsmPool<D>>>>,
    /// What C can ask for and change.
    devices: ByDevice<UsmPool<D>>,
}
impl<D: Dialect> Default for DevicePools<D> {
    fn default() -> Self {
        Self { own: Mutex::default(), devices: ByDevice::default() }
    }
}
impl<D: Dialect> DevicePools<D> {
    /// The pool under allocations for which C names none.
    ///
    /// # Errors
    /// As for [`Pool::new`].
    pub(super) fn own(&self, context: Borrowed<'_, Context<D>>) -> Result<Arc<UsmPool<D>>> {
        let mut own = locked(&self.own);
        if let Some(own) = &*own {
            return Ok(Arc::clone(own));
        }
        let limits = |usm| if usm == Usm::Device { OWN_DEVICE } else { OWN_HOST };
        let pool = UsmPool::new(handle(&context), context.devices(), limits, false)?;
        Ok(Arc::clone(own.insert(Arc::new(pool))))
    }
    /// What C can ask for and change.
    pub(super) fn by_device(&self) -> &ByDevice<UsmPool<D>> {
        &self.devices
    }
}
impl<D: Dialect> Identified for UsmPool<D> {
    type Context = Context<D>;
    type Device = Device<D>;
    fn identity(&self) -> &Identity<Context<D>, Device<D>> {
        &self.identity
    }
}
impl<D: Dialect> Drop for DevicePools<D> {
    /// A handle of a default pool that C still has must not hold memory.
    fn drop(&mut self) {
        for one in self.devices.defaults() {
            one.parts.iter().for_each(|part| part.blocks.set_keep(0));
        }
    }
}
