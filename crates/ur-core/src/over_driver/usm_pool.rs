//! Pools of USM: what `ur_usm_pool_handle_t` points at, what is counted of one, and which pool a device of a context uses.
//! How blocks are cut is `ur_adapter::pool`'s, what callers request of a pool `usm.rs`'s; what a driver is asked for both is here.
pub(super) use super::objects::{Context, Device};
use super::{DriverContext, DriverDevice, usm_host::HostRegistration};
use crate::memory::{
    allocation::{Allocation, Counted, Home, Memory, Usm},
    deferred_free::{self, is_for_room},
    pools::{ByDevice, Identified, Identity},
    totals::Totals,
    usm::limits,
};
use std::{
    fmt,
    sync::{Arc, Mutex, OnceLock, atomic::Ordering::*},
};
use ur_adapter::{
    api::Objects,
    error::{Error, ErrorCode, Result},
    memory::UsmPtr,
    object::{Body, Borrowed, Kind, Object, Owned, Slab, Tag},
    pool::{self, Limits, Pool, Source},
};
use ur_hal::{Allocates, MemoryRequest, Types};
use ur_lock::locked;
use ur_sys::{ur_usm_pool_desc_t, ur_usm_pool_flags_t, ur_usm_pool_info_t};

/// A driver whose memory is the core's. What is asked here beside [`Allocates`] goes when contexts and streams are the
/// core's too.
pub trait HasUsm:
    HostRegistration<Memory: Memory<Source = Chunks<Self>>>
    + Objects<UsmPool = UsmPool<Self>>
    + Allocates
{
    /// What memory is aligned to at most.
    const LARGEST_ALIGNMENT: usize;
    /// What rows of pitched memory start at multiples of.
    const ROW: usize;
    /// What is kept for each pool where the driver itself has pools.
    type DriverPools: Default + fmt::Debug + Send + Sync;

    /// # Errors
    /// `INVALID_USM_SIZE` for no bytes, and for more than one allocation of the device may have.
    fn check_size(device: &DriverDevice<Self>, bytes: usize) -> Result<()>;
    /// What memory of so many bytes is aligned to where callers say nothing.
    fn natural_alignment(bytes: usize) -> usize;
    /// How pools are to cut memory of devices and other memory for which callers name none.
    fn own_limits() -> [Limits; 2] {
        [OWN_DEVICE, OWN_OTHERS]
    }
    /// Allocates where callers name no pool.
    ///
    /// # Errors
    /// As for [`UsmPool::allocate`].
    fn take(
        context: Borrowed<'_, Context<Self>>,
        usm: Usm,
        device: Borrowed<'_, Device<Self>>,
        request: (Home, usize, usize),
    ) -> Result<UsmPtr> {
        context.pools().own(context).allocate(usm, device, request)
    }
    /// Allocates device memory that is behind a descriptor of its own, which only this process writes if `is_read_only`.
    ///
    /// # Errors
    /// `UNSUPPORTED_FEATURE` where the driver cannot hold other processes to that; the driver's own.
    fn take_alone(
        device: Borrowed<'_, Device<Self>>,
        request: (Home, usize, usize),
        is_read_only: bool,
    ) -> Result<UsmPtr> {
        let _ = (device, request, is_read_only);
        let why = "who opens this device's memory has the driver's own descriptor of it, by which it can be written and passed on: it can be shared with processes of the same user only, and for reading and writing";
        Err(Error::new(ErrorCode::UnsupportedFeature, why))
    }
    /// How much memory a device has.
    ///
    /// # Errors
    /// Returns the driver's error.
    fn memory_size(device: &DriverDevice<Self>) -> Result<usize>;
    /// What waits in place of a chunk that pools give back.
    fn leaving(chunk: Arc<<Self as Types>::Allocation>) -> impl Send + 'static {
        chunk
    }
    /// What commands of a context may use memory that was allocated when there was the object with this number.
    fn submitted(
        context: &Object<Context<Self>>,
        since: u64,
    ) -> Vec<<Self::Memory as Memory>::Moment>;
    /// Fills memory with zeros, and waits until it is.
    ///
    /// # Errors
    /// Returns the driver's error.
    fn zero(
        context: &DriverContext<Self>,
        device: &DriverDevice<Self>,
        at: UsmPtr,
        bytes: usize,
    ) -> Result<()>;
    /// Copies memory, which no command uses, and waits until it is.
    ///
    /// # Errors
    /// Returns the driver's error.
    fn copy(
        context: Borrowed<'_, Context<Self>>,
        to: UsmPtr,
        from: UsmPtr,
        bytes: usize,
    ) -> Result<()>;
}
/// What a context's own memory of devices is cut from.
pub const OWN_DEVICE: Limits = Limits {
    grain: 256,
    poolable: 16 << 20,
    chunk: 32 << 20,
    keep: 256 << 20,
    maximum: usize::MAX,
};
/// What its other memory is cut from.
pub const OWN_OTHERS: Limits =
    Limits { grain: 64, poolable: 1 << 20, chunk: 2 << 20, keep: 32 << 20, maximum: usize::MAX };

/// Where pools get their chunks: memory of one kind, which no other pool has.
#[derive(Debug)]
pub struct Chunks<D: HasUsm> {
    usm: Usm,
    /// Whose memory it is, or who works on the host's.
    device: DriverDevice<D>,
    context: Arc<DriverContext<D>>,
    /// Whether every block is to be filled with zeros.
    zeroed: bool,
    /// What is counted for all pools behind one handle.
    totals: Arc<Totals>,
}
impl<D: HasUsm> Source for Chunks<D> {
    type Chunk = <D as Types>::Allocation;
    fn chunk(&self, bytes: usize, align: usize) -> Result<Self::Chunk> {
        let whole = bytes.max(1);
        self.totals.claim(whole)?;
        let (kind, is_shareable) = (self.usm.into(), self.usm == Usm::Device);
        let request = MemoryRequest { kind, bytes: whole, align, is_shareable };
        let taken = D::allocate(&self.context, &self.device, request);
        match &taken {
            // Which the driver may have put on top.
            Ok(chunk) => self.totals.reserved.add(pool::Chunk::bytes(chunk) - whole),
            Err(_) => self.totals.unclaim(whole),
        }
        Ok(taken?)
    }
    fn give_back(&self, chunk: Arc<Self::Chunk>) {
        self.totals.unclaim(pool::Chunk::bytes(&*chunk));
        deferred_free::after::<D::Memory>(vec![], D::leaving(chunk));
    }
}
impl<D: HasUsm> Counted for Chunks<D> {
    fn totals(&self) -> &Arc<Totals> {
        &self.totals
    }
    fn prepare(&self, at: UsmPtr, bytes: usize) -> Result<()> {
        match self.zeroed {
            true => D::zero(&self.context, &self.device, at, bytes),
            false => Ok(()),
        }
    }
}

/// What `ur_usm_pool_handle_t` points at: a pool for each kind of USM and each device, made when it is
/// first asked for. Memory of one is in use until its blocks are freed, whatever becomes of the handle.
#[derive(Debug)]
pub struct UsmPool<D: HasUsm> {
    identity: Identity<Context<D>, Device<D>>,
    context: Arc<DriverContext<D>>,
    /// The device whose memory there is at most, where the pool is for all of a context.
    first: Owned<Device<D>>,
    zeroed: bool,
    parts: Mutex<Parts<D>>,
    totals: Arc<Totals>,
    /// The driver's own pools behind it.
    pub driver: D::DriverPools,
}
#[derive(Debug)]
struct Parts<D: HasUsm> {
    made: Vec<Part<D>>,
    /// What parts for device memory are like, and those for memory of other kinds.
    limits: [Limits; 2],
}
type Blocks<D> = Arc<Pool<Chunks<D>>>;
#[derive(Debug)]
struct Part<D: HasUsm> {
    usm: Usm,
    /// The handle of its device; the host's memory is any device's.
    device: usize,
    blocks: Blocks<D>,
}
impl<D: HasUsm> Body for UsmPool<D> {
    const TAG: Tag = Tag::new(D::BACKEND, Kind::UsmPool);
    const INVALID: ErrorCode = ErrorCode::InvalidValue;
    fn slab() -> &'static Slab<Self> {
        D::statics().slab()
    }
}

impl<D: HasUsm> UsmPool<D> {
    /// A pool as callers describe it, for all devices of `context` or for one.
    ///
    /// # Errors
    /// `INVALID_DEVICE` where the device is none of the context's; `INVALID_VALUE` for a chain of
    /// descriptors that does not end.
    pub fn create(
        context: Borrowed<'_, Context<D>>,
        device: Option<Borrowed<'_, Device<D>>>,
        desc: &ur_usm_pool_desc_t,
    ) -> Result<Owned<Self>> {
        device.map_or(Ok(()), |device| context.check(device))?;
        let limits = limits(desc)?;
        let mut pool = Self::new(context, [limits; 2]);
        pool.zeroed = desc.flags.contains(ur_usm_pool_flags_t::ZERO_INITIALIZE_BLOCK);
        pool.identity = Identity::of_pool(context, device)?;
        Ok(Owned::new(pool))
    }
    fn new(context: Borrowed<'_, Context<D>>, limits: [Limits; 2]) -> Self {
        Self {
            identity: Identity::of_context(handle(&context)),
            context: Arc::clone(context.driver()),
            first: context.devices()[0].clone(),
            zeroed: false,
            parts: Mutex::new(Parts { made: vec![], limits }),
            totals: Totals::new(),
            driver: D::DriverPools::default(),
        }
    }
    /// The pool that a device starts out with.
    pub fn initial(context: Borrowed<'_, Context<D>>) -> Self {
        let pool = Self::new(context, [Limits::default(); 2]);
        Self { identity: Identity::of_default(handle(&context)), ..pool }
    }
    /// The pool that a device uses where callers name none.
    ///
    /// # Errors
    /// None: a pool has no memory at first.
    pub fn current(
        context: Borrowed<'_, Context<D>>,
        device: Borrowed<'_, Device<D>>,
    ) -> Result<Owned<Self>> {
        context.pools().by_device().current_of(device, || Ok(Self::initial(context)))
    }
    /// What is counted of it.
    pub fn totals(&self) -> &Arc<Totals> {
        &self.totals
    }
    /// The part of it that has memory of one kind for a device.
    fn of(&self, usm: Usm, device: Borrowed<'_, Device<D>>) -> Result<Blocks<D>> {
        let handle = handle(&device);
        let mut parts = locked(&self.parts);
        let is_it =
            |part: &&Part<D>| part.usm == usm && (usm == Usm::Host || part.device == handle);
        if let Some(part) = parts.made.iter().find(is_it) {
            return Ok(Arc::clone(&part.blocks));
        }
        let source = Chunks {
            usm,
            device: device.driver().clone(),
            context: Arc::clone(&self.context),
            zeroed: self.zeroed,
            totals: Arc::clone(&self.totals),
        };
        let blocks = Pool::new(source, parts.limits[usize::from(usm != Usm::Device)])?;
        parts.made.push(Part { usm, device: handle, blocks: Arc::clone(&blocks) });
        Ok(blocks)
    }
    /// All parts, to be worked on without the lock.
    fn parts(&self) -> Vec<Blocks<D>> {
        locked(&self.parts).made.iter().map(|part| Arc::clone(&part.blocks)).collect()
    }
    /// Keeps so much unused memory, from now on.
    fn set_keep(&self, bytes: usize) {
        locked(&self.parts).limits.iter_mut().for_each(|limits| limits.keep = bytes);
        self.parts().iter().for_each(|blocks| blocks.set_keep(bytes));
    }
    /// Gives unused memory back as long as `keep` bytes stay.
    pub fn trim_to(&self, keep: usize) {
        deferred_free::sweep_all::<D::Memory>();
        for blocks in self.parts() {
            // Other threads may be at it: as good as it gets.
            let all = self.totals.reserved.current.load(Relaxed);
            let others = all.saturating_sub(blocks.statistics().reserved);
            blocks.trim_to(keep.saturating_sub(others));
        }
    }
    /// Allocates so many bytes at such an alignment from it. What parts for other kinds of memory do not use is given back
    /// if there is no room otherwise.
    ///
    /// # Errors
    /// As for [`Allocation::take`].
    pub fn allocate(
        &self,
        usm: Usm,
        device: Borrowed<'_, Device<D>>,
        (home, size, align): (Home, usize, usize),
    ) -> Result<UsmPtr> {
        let part = self.of(usm, device)?;
        let allocate = || Allocation::<D::Memory>::take(usm, home, size, align, &part);
        allocate().or_else(|error| match is_for_room(&error) {
            true => {
                self.trim_to(0);
                allocate()
            }
            false => Err(error),
        })
    }
    /// # Errors
    /// `INVALID_DEVICE` for a device of another context; `INVALID_VALUE` for a pool of another, or for a
    /// device that the pool was not made for.
    pub fn check(
        &self,
        context: Borrowed<'_, Context<D>>,
        device: Borrowed<'_, Device<D>>,
    ) -> Result<()> {
        context.check(device)?;
        self.identity.check(context, device)
    }
    /// What a property is that is a size.
    ///
    /// # Errors
    /// `UNSUPPORTED_ENUMERATION` for one that is none; the driver's own.
    pub fn size(&self, name: ur_usm_pool_info_t) -> Result<usize> {
        use ur_usm_pool_info_t as I;
        // What commands were done with meanwhile is not used any more.
        deferred_free::sweep_all::<D::Memory>();
        match name {
            I::CONTEXT => Ok(self.identity.context()),
            I::RELEASE_THRESHOLD_EXP => Ok(locked(&self.parts).limits[0].keep),
            I::MAXIMUM_SIZE_EXP => {
                let most = D::memory_size(self.identity.device().unwrap_or(&self.first))?;
                Ok(self.totals.maximum.load(Relaxed).min(most))
            }
            name => self.totals.size(name).ok_or(ErrorCode::UnsupportedEnumeration.into()),
        }
    }
    /// Changes a property.
    ///
    /// # Errors
    /// `INVALID_VALUE` for a high mark that is not set to 0, `UNSUPPORTED_ENUMERATION` for what is only
    /// read.
    pub fn set(&self, name: ur_usm_pool_info_t, number: usize) -> Result<()> {
        match name {
            ur_usm_pool_info_t::RELEASE_THRESHOLD_EXP => {
                self.set_keep(number);
                Ok(())
            }
            name => self.totals.set(name, number),
        }
    }
}

fn handle<T>(object: &Object<T>) -> usize {
    object.as_handle().addr()
}

/// What the devices of one context allocate from where callers name no pool.
#[derive(Debug)]
pub struct DevicePools<D: HasUsm> {
    /// Under `urUSM*Alloc`: a pool that nobody has a handle of.
    own: OnceLock<Arc<UsmPool<D>>>,
    /// What can be asked for and changed.
    devices: ByDevice<UsmPool<D>>,
}
impl<D: HasUsm> Default for DevicePools<D> {
    fn default() -> Self {
        Self { own: OnceLock::new(), devices: ByDevice::default() }
    }
}
impl<D: HasUsm> DevicePools<D> {
    /// The pool under allocations for which callers name none.
    pub fn own(&self, context: Borrowed<'_, Context<D>>) -> &Arc<UsmPool<D>> {
        self.own.get_or_init(|| Arc::new(UsmPool::new(context, D::own_limits())))
    }
    /// What can be asked for and changed.
    pub fn by_device(&self) -> &ByDevice<UsmPool<D>> {
        &self.devices
    }
}
impl<D: HasUsm> Identified for UsmPool<D> {
    type Context = Context<D>;
    type Device = Device<D>;
    fn identity(&self) -> &Identity<Context<D>, Device<D>> {
        &self.identity
    }
}
impl<D: HasUsm> Drop for DevicePools<D> {
    /// A handle of a default pool that callers still have must not hold memory.
    fn drop(&mut self) {
        for one in self.devices.defaults() {
            one.set_keep(0);
        }
    }
}
impl<D: HasUsm> Context<D> {
    /// What its devices allocate from where callers name no pool.
    pub fn pools(&self) -> &DevicePools<D> {
        self.kept().get()
    }
}
/// Drops all that was freed and no command uses any more, and what the context's own pool keeps for later: where memory
/// has run out.
pub fn make_room<D: HasUsm>(context: Borrowed<'_, Context<D>>) {
    deferred_free::sweep_all::<D::Memory>();
    if let Some(own) = context.pools().own.get() {
        own.trim_to(0);
    }
}
