//! Pools of USM: what `ur_usm_pool_handle_t` points at, what is counted of one, and which pool a device
//! of a context uses. How blocks are cut is `ur_adapter::pool`'s, what C asks of a pool and allocates
//! from it `usm.rs`'s.
use super::{
    Context, Device,
    backing::Chunk,
    driver::RawDevice,
    memory::{Allocation, Memory},
    native::{self, aside::Aside, context::NativeContext, list::List},
    options,
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
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, atomic::Ordering::*},
};
use ur_adapter::{
    error::Result,
    memory::UsmPtr,
    object::{Borrowed, Object, Owned},
    pool::{self, Limits, Pool, Source},
};
use ur_sys::{ur_usm_pool_desc_t, ur_usm_pool_flags_t, ur_usm_pool_info_t};

/// Where pools get their chunks: memory of one kind, which no other pool has.
#[derive(Debug)]
pub struct Chunks {
    usm: Usm,
    /// Whose memory it is, or who works on the host's.
    pub(super) device: Owned<Device>,
    /// The driver's context that it is allocated in.
    context: Arc<NativeContext>,
    /// The devices of the context: those that can reach the memory have access.
    devices: Vec<Owned<Device>>,
    /// What works on memory beside all queues.
    pub(super) asides: Arc<Asides>,
    /// Whether every block is to be filled with zeros.
    pub(super) zeroed: bool,
    /// What is counted for all pools behind one handle.
    pub(super) totals: Arc<Totals>,
}
impl Source for Chunks {
    type Chunk = Chunk;
    type Passed = Ticket;
    fn chunk(&self, bytes: usize, align: usize) -> Result<Chunk> {
        let whole = bytes.max(1);
        self.totals.claim(whole)?;
        let taken = Chunk::take(self.usm, &self.context, &self.device, &self.devices, whole, align);
        match &taken {
            // Which the driver may have put on top.
            Ok(chunk) => self.totals.reserved.add(pool::Chunk::bytes(chunk) - whole),
            Err(_) => self.totals.unclaim(whole),
        }
        taken
    }
    fn give_back(&self, chunk: Arc<Chunk>, after: Vec<Ticket>) {
        self.totals.unclaim(pool::Chunk::bytes(&*chunk));
        let after = after.into_iter().flat_map(Ticket::into_moments).collect();
        deferred_free::after::<Memory>(after, chunk);
    }
}
impl Counted for Chunks {
    fn totals(&self) -> &Arc<Totals> {
        &self.totals
    }
    fn prepare(&self, at: UsmPtr, bytes: usize) -> Result<()> {
        match self.zeroed {
            true => self.asides.with(&self.device, |list| list.fill(at.addr(), &[0], bytes)),
            false => Ok(()),
        }
    }
}
impl pool::Passed for Ticket {
    fn passed(&self) -> bool {
        self.is_over()
    }
}
/// A pool of this adapter's.
pub(super) type UsmBlocks = Pool<Chunks>;

/// Lists for work beside all queues, those that nobody uses at the moment.
#[derive(Debug)]
pub(super) struct Asides {
    context: Arc<NativeContext>,
    idle: Mutex<HashMap<(RawDevice, u32), Vec<Aside>>>,
}
impl Asides {
    /// Works on memory, for `device`, beside all queues; it is done when this returns.
    ///
    /// # Errors
    /// Those of `work`; the driver's own.
    pub(super) fn with<R>(
        &self,
        device: &Device,
        work: impl FnOnce(&List<'_>) -> Result<R>,
    ) -> Result<R> {
        let group = device.compute()?;
        let key = (device.raw(), group.ordinal);
        let idle = locked(&self.idle).get_mut(&key).and_then(Vec::pop);
        let aside = match idle {
            Some(aside) => aside,
            None => Aside::create(&self.context, device, group)?,
        };
        let done = work(&aside.list())?; // of one that fails nobody knows what it is good for
        locked(&self.idle).entry(key).or_default().push(aside);
        Ok(done)
    }
}

/// What `ur_usm_pool_handle_t` points at: a pool for each kind of USM and each device, made when it is
/// first asked for. Memory of one is in use until its blocks are freed, whatever becomes of the handle.
#[derive(Debug)]
pub struct UsmPool {
    identity: Identity<Context, Device>,
    native: Arc<NativeContext>,
    asides: Arc<Asides>,
    /// Those of the context.
    devices: Vec<Owned<Device>>,
    zeroed: bool,
    parts: Mutex<Parts>,
    totals: Arc<Totals>,
}
#[derive(Debug)]
struct Parts {
    made: Vec<Part>,
    /// What parts for device memory are like, and those for memory of other kinds.
    limits: [Limits; 2],
}
#[derive(Debug)]
struct Part {
    usm: Usm,
    /// The handle of its device; the host's memory is any device's.
    device: usize,
    blocks: Arc<UsmBlocks>,
}

/// What a context's own memory is cut from, where C names no pool.
const OWN_DEVICE: Limits = Limits {
    grain: 256,
    poolable: 16 << 20,
    chunk: 32 << 20,
    keep: 256 << 20,
    maximum: usize::MAX,
};
const OWN_OTHERS: Limits =
    Limits { grain: 64, poolable: 1 << 20, chunk: 2 << 20, keep: 32 << 20, maximum: usize::MAX };
/// What the environment makes of that: without pools the driver allocates each time.
fn own_limits() -> [Limits; 2] {
    let own = [OWN_DEVICE, OWN_OTHERS];
    match options().pools {
        true => own,
        false => own.map(|limits| Limits { poolable: 0, keep: 0, ..limits }),
    }
}

impl UsmPool {
    /// A pool as C describes it, for all devices of `context` or for one.
    ///
    /// # Errors
    /// `INVALID_DEVICE` where the device is none of the context's; `INVALID_VALUE` for a chain of
    /// descriptors that does not end.
    pub(super) fn create(
        context: Borrowed<'_, Context>,
        device: Option<Borrowed<'_, Device>>,
        desc: &ur_usm_pool_desc_t,
    ) -> Result<Owned<Self>> {
        device.map_or(Ok(()), |device| context.check(device))?;
        let limits = limits(desc)?;
        let mut pool = Self::new(context, [limits; 2]);
        pool.zeroed = desc.flags.contains(ur_usm_pool_flags_t::ZERO_INITIALIZE_BLOCK);
        pool.identity = Identity::of_pool(context, device)?;
        Ok(Owned::new(pool))
    }
    fn new(context: Borrowed<'_, Context>, limits: [Limits; 2]) -> Self {
        Self {
            identity: Identity::of_context(handle(&context)),
            native: Arc::clone(context.native()),
            asides: context.pools().asides(context),
            devices: context.devices().to_vec(),
            zeroed: false,
            parts: Mutex::new(Parts { made: vec![], limits }),
            totals: Totals::new(),
        }
    }
    /// The pool that a device starts out with.
    ///
    /// # Errors
    /// None: it has no parts yet.
    pub(super) fn initial(context: Borrowed<'_, Context>) -> Result<Self> {
        let pool = Self::new(context, [Limits::default(); 2]);
        Ok(Self { identity: Identity::of_default(handle(&context)), ..pool })
    }
    /// The part of it that has memory of one kind for a device.
    fn of(&self, usm: Usm, device: &Owned<Device>) -> Result<Arc<UsmBlocks>> {
        let handle = handle(device);
        let mut parts = locked(&self.parts);
        let is_it = |part: &&Part| part.usm == usm && (usm == Usm::Host || part.device == handle);
        if let Some(part) = parts.made.iter().find(is_it) {
            return Ok(Arc::clone(&part.blocks));
        }
        let source = Chunks {
            usm,
            device: device.clone(),
            context: Arc::clone(&self.native),
            devices: self.devices.clone(),
            asides: Arc::clone(&self.asides),
            zeroed: self.zeroed,
            totals: Arc::clone(&self.totals),
        };
        let blocks = Pool::new(source, parts.limits[usize::from(usm != Usm::Device)])?;
        parts.made.push(Part { usm, device: handle, blocks: Arc::clone(&blocks) });
        Ok(blocks)
    }
    /// All parts, to be worked on without the lock.
    fn parts(&self) -> Vec<Arc<UsmBlocks>> {
        locked(&self.parts).made.iter().map(|part| Arc::clone(&part.blocks)).collect()
    }
    /// Keeps so much unused memory, from now on.
    fn set_keep(&self, bytes: usize) {
        locked(&self.parts).limits.iter_mut().for_each(|limits| limits.keep = bytes);
        self.parts().iter().for_each(|blocks| blocks.set_keep(bytes));
    }
    /// Gives unused memory back as long as `keep` bytes stay.
    pub(super) fn trim_to(&self, keep: usize) {
        deferred_free::sweep_all::<Memory>();
        for blocks in self.parts() {
            // Other threads may be at it: as good as it gets.
            let all = self.totals.reserved.current.load(Relaxed);
            let others = all.saturating_sub(blocks.statistics().reserved);
            blocks.trim_to(keep.saturating_sub(others));
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
        device: &Owned<Device>,
        home: Home,
        size: usize,
        align: usize,
    ) -> Result<UsmPtr> {
        let part = self.of(usm, device)?;
        let allocate = || Allocation::take(usm, home, size, align, &part);
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
    pub(super) fn check(
        &self,
        context: Borrowed<'_, Context>,
        device: Borrowed<'_, Device>,
    ) -> Result<()> {
        context.check(device)?;
        self.identity.check(context, device)
    }
    /// What a property is, if it is a size.
    ///
    /// # Errors
    /// The driver's own.
    pub(super) fn size(&self, name: ur_usm_pool_info_t) -> Result<Option<usize>> {
        use ur_usm_pool_info_t as I;
        // What commands were done with meanwhile is not used any more.
        deferred_free::sweep_all::<Memory>();
        Ok(match name {
            I::RELEASE_THRESHOLD_EXP => Some(locked(&self.parts).limits[0].keep),
            I::MAXIMUM_SIZE_EXP => {
                let device = self.identity.device().unwrap_or(&self.devices[0]);
                let memories = native::device::memories(device.raw())?;
                let most = memories.iter().map(|memory| memory.totalSize as usize).sum();
                Some(self.totals.maximum.load(Relaxed).min(most))
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
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the devices of one context allocate from when C names no pool.
#[derive(Debug, Default)]
pub struct DevicePools {
    asides: OnceLock<Arc<Asides>>,
    /// Under `urUSM*Alloc`: a pool that C has no handle of.
    own: OnceLock<Arc<UsmPool>>,
    /// What C can ask for and change.
    devices: ByDevice<UsmPool>,
}
impl DevicePools {
    /// What works on the context's memory beside all queues.
    pub(super) fn asides(&self, context: Borrowed<'_, Context>) -> Arc<Asides> {
        let make = || {
            let (context, idle) = (Arc::clone(context.native()), Mutex::default());
            Arc::new(Asides { context, idle })
        };
        Arc::clone(self.asides.get_or_init(make))
    }
    /// The pool under allocations for which C names none.
    pub(super) fn own(&self, context: Borrowed<'_, Context>) -> &Arc<UsmPool> {
        self.own.get_or_init(|| Arc::new(UsmPool::new(context, own_limits())))
    }
    /// What C can ask for and change.
    pub(super) fn by_device(&self) -> &ByDevice<UsmPool> {
        &self.devices
    }
}
impl Identified for UsmPool {
    type Context = Context;
    type Device = Device;
    fn identity(&self) -> &Identity<Context, Device> {
        &self.identity
    }
}
impl Drop for DevicePools {
    /// A handle of a default pool that C still has must not hold memory.
    fn drop(&mut self) {
        for one in self.devices.defaults() {
            one.set_keep(0);
        }
    }
}
