//! Pools of USM: what `ur_usm_pool_handle_t` points at, what is counted of one, and which pool a device
//! of a context uses. How blocks are cut is `ur_adapter::pool`'s, what C asks of a pool and allocates
//! from it `usm.rs`'s.
use super::{
    Context, Device,
    allocation::{self, Home, Usm},
    backing::Chunk,
    driver::Dialect,
    limbo::{self, Spent},
    native::{device as native, pool::DriverPool},
    queue::Ticket,
};
use crate::memory::totals::{Gauge, Totals};
use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering::*},
    },
};
use ur_adapter::{
    chain,
    error::{Error, ErrorCode, Result},
    memory::UsmPtr,
    object::{Borrowed, Object, Owned},
    pool::{self, Limits, Pool, Source},
};
use ur_sys::{
    ur_usm_pool_desc_t, ur_usm_pool_flags_t, ur_usm_pool_info_t, ur_usm_pool_limits_desc_t,
};

/// Where pools get their chunks: memory of one kind, which no other pool has.
#[derive(Debug)]
pub(super) struct Chunks<D: Dialect> {
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
        limbo::after(after, Spent::Chunk(chunk));
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
    /// The handle of its context.
    context: usize,
    /// Keeps the context; a context's own pools do not.
    _kept: Option<Owned<Context<D>>>,
    /// The device it was made for, if for one.
    device: Option<Owned<Device<D>>>,
    /// Its number among the pools of this process, never used again.
    number: u64,
    is_default: bool,
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
        let mut limits = Limits::default();
        if let Some(wished) = chain::extension::<ur_usm_pool_limits_desc_t>(desc)? {
            limits.poolable = wished.maxPoolableSize;
            limits.chunk = wished.minDriverAllocSize.max(1);
        }
        let zeroed = desc.flags.contains(ur_usm_pool_flags_t::ZERO_INITIALIZE_BLOCK);
        let mut pool = Self::new(handle(&context), context.devices(), |_| limits, zeroed)?;
        pool._kept = Some(context.own()?);
        pool.device = device.map(Borrowed::own).transpose()?;
        Ok(Owned::new(pool))
    }
    fn new(
        context: usize,
        devices: &[Owned<Device<D>>],
        limits: impl Fn(Usm) -> Limits,
        zeroed: bool,
    ) -> Result<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
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
        let number = NEXT.fetch_add(1, Relaxed); // a number, nothing more
        let (_kept, device, ordered) = (None, None, Mutex::default());
        Ok(Self { context, _kept, device, number, is_default: false, parts, totals, ordered })
    }
    /// The handle of the context it belongs to.
    pub(super) fn context(&self) -> usize {
        self.context
    }
    /// The pool that a device starts out with, which C cannot destroy.
    pub(super) fn is_default(&self) -> bool {
        self.is_default
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
        limbo::sweep_all::<D>();
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
    /// As for [`allocation::allocate`].
    pub(super) fn allocate(
        &self,
        usm: Usm,
        home: Home,
        size: usize,
        align: usize,
    ) -> Result<UsmPtr> {
        let part = self.of(usm, home.device)?;
        let allocate = || allocation::allocate(usm, home, size, align, part);
        allocate().or_else(|error| match error.code() {
            ErrorCode::OutOfResources
            | ErrorCode::OutOfDeviceMemory
            | ErrorCode::OutOfHostMemory => {
                self.trim_to(0);
                allocate()
            }
            _ => Err(error),
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
        fresh.admit(device, &super::backing::reaching(device, devices)?)?;
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
        drop(unused); // not under the lock
        Ok(chosen)
    }
    /// # Errors
    /// `INVALID_VALUE` for a pool of another context.
    pub(super) fn check_context(&self, context: Borrowed<'_, Context<D>>) -> Result<()> {
        match self.context == handle(&context) {
            true => Ok(()),
            false => {
                let why = "the pool belongs to another context: make one in this context";
                Err(Error::new(ErrorCode::InvalidValue, why))
            }
        }
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
        self.check_context(context)?;
        match self.device.as_ref().is_none_or(|own| own.same(&device)) {
            true => Ok(()),
            false => {
                let why = "the pool was made for another device: name that one";
                Err(Error::new(ErrorCode::InvalidValue, why))
            }
        }
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
        limbo::sweep_all::<D>();
        let Totals { reserved, used, maximum } = &*self.totals;
        Ok(match name {
            I::RELEASE_THRESHOLD_EXP => Some(self.limits().keep),
            I::MAXIMUM_SIZE_EXP => {
                let device = self.parts.first().map(|part| &part.blocks.source().device);
                let most = device.map(|device| native::memory::<D>(device.number())).transpose()?;
                Some(maximum.load(Relaxed).min(most.unwrap_or(usize::MAX)))
            }
            I::RESERVED_CURRENT_EXP => Some(reserved.current.load(Relaxed)),
            I::RESERVED_HIGH_EXP => Some(reserved.high.load(Relaxed)),
            I::USED_CURRENT_EXP => Some(used.current.load(Relaxed)),
            I::USED_HIGH_EXP => Some(used.high.load(Relaxed)),
            _ => None,
        })
    }
    /// Changes a property.
    ///
    /// # Errors
    /// `INVALID_VALUE` for a high mark that is not set to 0, `UNSUPPORTED_ENUMERATION` for what is only
    /// read.
    pub(super) fn set(&self, name: ur_usm_pool_info_t, number: usize) -> Result<()> {
        use ur_usm_pool_info_t as I;
        let reset = |gauge: &Gauge| match number {
            0 => {
                gauge.reset();
                Ok(())
            }
            _ => Err(Error::new(
                ErrorCode::InvalidValue,
                format!("a high mark can only be reset, with 0, and {number} was given"),
            )),
        };
        match name {
            I::RELEASE_THRESHOLD_EXP => {
                self.parts.iter().for_each(|part| part.blocks.set_keep(number));
            }
            I::MAXIMUM_SIZE_EXP => {
                self.totals.maximum.store(if number == 0 { usize::MAX } else { number }, Relaxed);
            }
            I::RESERVED_HIGH_EXP => reset(&self.totals.reserved)?,
            I::USED_HIGH_EXP => reset(&self.totals.used)?,
            _ => {
                return Err(Error::new(
                    ErrorCode::UnsupportedEnumeration,
                    format!("{name:?} of a pool can be asked and not set"),
                ));
            }
        }
        Ok(())
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
    /// What C can ask for and change, by the device's handle.
    devices: Mutex<HashMap<usize, DevicePool<D>>>,
}
impl<D: Dialect> Default for DevicePools<D> {
    fn default() -> Self {
        Self { own: Mutex::default(), devices: Mutex::default() }
    }
}
#[derive(Debug)]
struct DevicePool<D: Dialect> {
    default: Owned<UsmPool<D>>,
    /// What C chose instead: the handle and its number. Not kept: C may destroy it.
    chosen: Option<(usize, u64)>,
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
    fn with<R>(
        &self,
        context: Borrowed<'_, Context<D>>,
        device: Borrowed<'_, Device<D>>,
        look: impl FnOnce(&mut DevicePool<D>) -> R,
    ) -> Result<R> {
        let mut all = locked(&self.devices);
        if let Some(one) = all.get_mut(&handle(&device)) {
            return Ok(look(one));
        }
        let pool = UsmPool::new(handle(&context), context.devices(), |_| Limits::default(), false)?;
        let default = Owned::new(UsmPool { is_default: true, ..pool });
        Ok(look(all.entry(handle(&device)).or_insert(DevicePool { default, chosen: None })))
    }
    /// The pool that `device` starts out with.
    ///
    /// # Errors
    /// As for [`Pool::new`].
    pub(super) fn default_of(
        &self,
        context: Borrowed<'_, Context<D>>,
        device: Borrowed<'_, Device<D>>,
    ) -> Result<Owned<UsmPool<D>>> {
        self.with(context, device, |pools| pools.default.clone())
    }
    /// The pool that C chose for `device`, while it lives; else the default one.
    ///
    /// # Errors
    /// As for [`Pool::new`].
    pub(super) fn current_of(
        &self,
        context: Borrowed<'_, Context<D>>,
        device: Borrowed<'_, Device<D>>,
    ) -> Result<Owned<UsmPool<D>>> {
        let (default, chosen) =
            self.with(context, device, |pools| (pools.default.clone(), pools.chosen))?;
        let found = chosen.and_then(|(handle, number)| {
            Owned::<UsmPool<D>>::find(handle).ok().filter(|pool| pool.number == number)
        });
        Ok(found.unwrap_or(default))
    }
    /// Has `device` use `pool` from now on.
    ///
    /// # Errors
    /// As for [`Pool::new`].
    pub(super) fn choose(
        &self,
        context: Borrowed<'_, Context<D>>,
        device: Borrowed<'_, Device<D>>,
        pool: Borrowed<'_, UsmPool<D>>,
    ) -> Result<()> {
        let chosen = (!pool.is_default).then_some((handle(&pool), pool.number));
        self.with(context, device, |pools| pools.chosen = chosen)
    }
}
impl<D: Dialect> Drop for DevicePools<D> {
    /// A handle of a default pool that C still has must not hold memory.
    fn drop(&mut self) {
        let pools = self.devices.get_mut().unwrap_or_else(PoisonError::into_inner);
        for one in pools.values() {
            one.default.parts.iter().for_each(|part| part.blocks.set_keep(0));
        }
    }
}
