//! USM pools: what `ur_usm_pool_handle_t` points at, and which pool a device of a context uses. Blocks are cut by
//! `ur_adapter::pool`, and requests of callers are checked in `usm.rs`.
pub(super) use super::objects::{Context, Device};
use super::{
    DriverContext, DriverDevice, leaving::Leaving, objects::handle, usm_host::HostRegistration,
};
use crate::{
    memory::{
        allocation::{Allocation, Counted, Home, Memory, Usm},
        deferred_free::{self, is_for_room},
        totals::Totals,
        usm::limits,
    },
    process_mutex::ProcessMutex,
};
use std::{
    collections::HashMap,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering::*},
    },
};
use ur_adapter::{
    api::Objects,
    error::{Error, ErrorCode, Result},
    memory::UsmPtr,
    object::{Borrowed, Owned},
    pool::{self, Limits, Pool, Source},
};
use ur_hal::{Allocates, Memory as _, MemoryRequest, Range, Shares, Types};
use ur_sys::{ur_usm_pool_desc_t, ur_usm_pool_flags_t, ur_usm_pool_info_t};

/// A driver over which the core implements USM.
pub trait HasUsm:
    HostRegistration<Memory: Memory<Source = Chunks<Self>, Opened = <Self as Shares>::Opened>>
    + Objects<UsmPool = UsmPool<Self>>
    + Shares
{
}
impl<D> HasUsm for D where
    D: HostRegistration<Memory: Memory<Source = Chunks<D>, Opened = <D as Shares>::Opened>>
        + Objects<UsmPool = UsmPool<D>>
        + Shares
{
}
/// Checks the size of an allocation.
///
/// # Errors
/// `code` for 0 bytes, and for more than the device allows in one allocation.
pub fn check_size<D: Allocates>(
    device: &DriverDevice<D>,
    bytes: usize,
    code: ErrorCode,
) -> Result<()> {
    let most = D::largest_allocation(device)?;
    Error::unless((1..=most).contains(&bytes), code, || {
        let hint = D::SIZE_HINT;
        format!(
            "{bytes} bytes are none, or more than the {most} that one allocation may have{hint}"
        )
    })
}
/// How a context's own pool cuts device memory.
const OWN_DEVICE: Limits = Limits {
    grain: 256,
    poolable: 16 << 20,
    chunk: 32 << 20,
    keep: 256 << 20,
    maximum: usize::MAX,
};
/// How it cuts other memory.
const OWN_OTHERS: Limits =
    Limits { grain: 64, poolable: 1 << 20, chunk: 2 << 20, keep: 32 << 20, maximum: usize::MAX };

/// The source of a pool's chunks: memory of one kind.
#[derive(Debug)]
pub struct Chunks<D: HasUsm> {
    usm: Usm,
    /// The device whose memory it is or, for host memory, that fills it with zeros.
    device: DriverDevice<D>,
    context: Arc<DriverContext<D>>,
    /// Whether every block is filled with zeros.
    zeroed: bool,
    /// The counters of all pools behind one handle.
    totals: Arc<Totals>,
}
impl<D: HasUsm> Source for Chunks<D> {
    type Chunk = <D as Types>::Allocation;
    fn chunk(&self, bytes: usize, align: usize) -> Result<Self::Chunk> {
        let whole = bytes.max(1);
        let claim = self.totals.claim(whole)?;
        let (kind, is_shareable) = (self.usm.into(), self.usm == Usm::Device);
        let request = MemoryRequest { kind, bytes: whole, align, is_shareable };
        let chunk = D::allocate(&self.context, &self.device, request)?;
        claim.made(pool::Chunk::bytes(&chunk)); // the driver may have allocated more than requested
        Ok(chunk)
    }
    fn give_back(&self, chunk: Arc<Self::Chunk>) {
        self.totals.unclaim(pool::Chunk::bytes(&*chunk));
        let waits = D::waits_when_freed(&chunk).then(|| pool::Chunk::bytes(&*chunk));
        deferred_free::after::<D::Memory>(vec![], Leaving::<D, _>::new(chunk, waits));
    }
}
impl<D: HasUsm> Counted for Chunks<D> {
    fn totals(&self) -> &Arc<Totals> {
        &self.totals
    }
    fn prepare(&self, at: UsmPtr, bytes: usize) -> Result<()> {
        match self.zeroed {
            true => Ok(D::zero(&self.context, &self.device, Range::new(at.into(), bytes)?)?),
            false => Ok(()),
        }
    }
}

/// What `ur_usm_pool_handle_t` points at: one pool for each kind of USM and each device, made on first use. A pool's
/// memory stays in use until its blocks are freed, even after the handle is released.
#[derive(Debug)]
pub struct UsmPool<D: HasUsm> {
    /// The address of its context's handle.
    handle: usize,
    /// Keeps the context alive; `None` for the context's own pools, which would otherwise keep it forever.
    _kept: Option<Owned<Context<D>>>,
    /// The device for which it was made; `None` for all devices of the context.
    device: Option<Owned<Device<D>>>,
    /// Its number among the pools of this process, which is never reused.
    number: u64,
    is_default: bool,
    context: Arc<DriverContext<D>>,
    /// The context's first device. Its memory size is the reported limit of a pool for all devices.
    first: Owned<Device<D>>,
    zeroed: bool,
    parts: ProcessMutex<Parts<D>>,
    totals: Arc<Totals>,
}
#[derive(Debug)]
struct Parts<D: HasUsm> {
    made: Vec<Part<D>>,
    /// How device memory is cut, and how other memory is cut.
    limits: [Limits; 2],
}
type Blocks<D> = Arc<Pool<Chunks<D>>>;
#[derive(Debug)]
struct Part<D: HasUsm> {
    usm: Usm,
    /// The address of its device's handle. Host memory is the same for all devices.
    device: usize,
    blocks: Blocks<D>,
}
body!(UsmPool: HasUsm, UsmPool, InvalidValue);

impl<D: HasUsm> UsmPool<D> {
    /// Creates a pool from a caller's descriptor, for one device or for all devices of `context`.
    ///
    /// # Errors
    /// `INVALID_DEVICE` for a device of another context; `INVALID_VALUE` for a chain of descriptors that does not end.
    pub fn create(
        context: Borrowed<'_, Context<D>>,
        device: Option<Borrowed<'_, Device<D>>>,
        desc: &ur_usm_pool_desc_t,
    ) -> Result<Owned<Self>> {
        device.map_or(Ok(()), |device| context.check(device))?;
        let limits = limits(desc)?;
        let mut pool = Self::new(context, [limits; 2]);
        pool.zeroed = desc.flags.contains(ur_usm_pool_flags_t::ZERO_INITIALIZE_BLOCK);
        pool._kept = Some(context.own()?);
        pool.device = device.map(Borrowed::own).transpose()?;
        Ok(Owned::new(pool))
    }
    fn new(context: Borrowed<'_, Context<D>>, limits: [Limits; 2]) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self {
            handle: handle(&context),
            _kept: None,
            device: None,
            number: NEXT.fetch_add(1, Relaxed), // only uniqueness matters, so any ordering will do
            is_default: false,
            context: Arc::clone(context.driver()),
            first: context.devices()[0].clone(),
            zeroed: false,
            parts: ProcessMutex::new(Parts { made: vec![], limits }),
            totals: Totals::new(),
        }
    }
    /// A default pool of a device.
    pub fn initial(context: Borrowed<'_, Context<D>>) -> Self {
        Self { is_default: true, ..Self::new(context, [Limits::default(); 2]) }
    }
    /// The default pool of a device.
    ///
    /// # Errors
    /// `UNINITIALIZED` in a forked child that inherited the context.
    pub fn default_of(
        context: Borrowed<'_, Context<D>>,
        device: Borrowed<'_, Device<D>>,
    ) -> Result<Owned<Self>> {
        DevicePool::of(context, device, |pools| pools.default.clone())
    }
    /// The pool that a device uses if the caller passes none: what the caller set, if that still exists; otherwise the
    /// default pool.
    ///
    /// # Errors
    /// As for [`default_of`](Self::default_of).
    pub fn current(
        context: Borrowed<'_, Context<D>>,
        device: Borrowed<'_, Device<D>>,
    ) -> Result<Owned<Self>> {
        let both = |pools: &mut DevicePool<D>| (pools.default.clone(), pools.chosen);
        let (default, chosen) = DevicePool::of(context, device, both)?;
        let found = chosen.and_then(|(handle, number)| {
            Owned::<Self>::find(handle).ok().filter(|pool| pool.number == number)
        });
        Ok(found.unwrap_or(default))
    }
    /// Makes a device use `pool` from now on.
    ///
    /// # Errors
    /// As for [`default_of`](Self::default_of).
    pub fn choose(
        context: Borrowed<'_, Context<D>>,
        device: Borrowed<'_, Device<D>>,
        pool: Borrowed<'_, Self>,
    ) -> Result<()> {
        let chosen = (!pool.is_default).then(|| (handle(&pool), pool.number));
        DevicePool::of(context, device, |pools| pools.chosen = chosen)
    }
    /// Whether it is a device's default pool.
    pub fn is_default(&self) -> bool {
        self.is_default
    }
    /// Its counters.
    pub fn totals(&self) -> &Arc<Totals> {
        &self.totals
    }
    /// The part of it with memory of one kind for a device.
    fn of(&self, usm: Usm, device: Borrowed<'_, Device<D>>) -> Result<Blocks<D>> {
        let handle = handle(&device);
        let mut parts = self.parts.lock()?;
        let is_it = |part: &Part<D>| part.usm == usm && (usm == Usm::Host || part.device == handle);
        let found = parts.made.iter().position(is_it);
        if let Some(part) = found.map(|at| &parts.made[at])
            && (usm == Usm::Host || part.blocks.source().device == *device.driver())
        {
            return Ok(Arc::clone(&part.blocks));
        }
        // The part of a sub-device that was released and whose handle another sub-device has now.
        let ended = found.map(|at| parts.made.swap_remove(at));
        let source = Chunks {
            usm,
            device: device.driver().clone(),
            context: Arc::clone(&self.context),
            zeroed: self.zeroed,
            totals: Arc::clone(&self.totals),
        };
        let blocks = Pool::new(source, parts.limits[usize::from(usm != Usm::Device)])?;
        parts.made.push(Part { usm, device: handle, blocks: Arc::clone(&blocks) });
        drop(parts); // before `ended`, whose memory the driver takes back
        drop(ended);
        Ok(blocks)
    }
    /// All parts, for use without the lock.
    fn parts(&self) -> Result<Vec<Blocks<D>>> {
        Ok(self.parts.lock()?.made.iter().map(|part| Arc::clone(&part.blocks)).collect())
    }
    /// Sets how many bytes of unused memory each part keeps.
    fn set_keep(&self, bytes: usize) -> Result<()> {
        self.parts.lock()?.limits.iter_mut().for_each(|limits| limits.keep = bytes);
        self.parts()?.iter().for_each(|blocks| blocks.set_keep(bytes));
        Ok(())
    }
    /// Returns unused memory to the driver, as long as `keep` bytes remain.
    ///
    /// # Errors
    /// `UNINITIALIZED` in a forked child that inherited the pool.
    pub fn trim_to(&self, keep: usize) -> Result<()> {
        deferred_free::sweep_all::<D::Memory>();
        for blocks in self.parts()? {
            // Approximate if other threads allocate or free at the same time.
            let all = self.totals.reserved.current.load(Relaxed);
            let others = all.saturating_sub(blocks.statistics().reserved);
            blocks.trim_to(keep.saturating_sub(others));
        }
        Ok(())
    }
    /// Allocates `size` bytes with the alignment `align`. If memory runs out, first returns the unused memory of all
    /// parts to the driver.
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
                self.trim_to(0)?;
                allocate()
            }
            false => Err(error),
        })
    }
    /// Checks that it may be used for a device of a context.
    ///
    /// # Errors
    /// `INVALID_DEVICE` for a device of another context; `INVALID_VALUE` for a pool of another context, or a pool made
    /// for another device.
    pub fn check(
        &self,
        context: Borrowed<'_, Context<D>>,
        device: Borrowed<'_, Device<D>>,
    ) -> Result<()> {
        context.check(device)?;
        self.check_context(context)?;
        let why = || "the pool was made for another device: name that one";
        let is_for = self.device.as_ref().is_none_or(|own| own.same(&device));
        Error::unless(is_for, ErrorCode::InvalidValue, why)
    }
    /// Checks that it belongs to a context.
    ///
    /// # Errors
    /// `INVALID_VALUE` for a pool of another context.
    pub fn check_context(&self, context: Borrowed<'_, Context<D>>) -> Result<()> {
        let why = || "the pool belongs to another context: make one in this context";
        Error::unless(self.handle == handle(&context), ErrorCode::InvalidValue, why)
    }
    /// The value of a property that is a size.
    ///
    /// # Errors
    /// `UNSUPPORTED_ENUMERATION` for other properties. Returns the driver's error, mapped as in `error.rs`.
    pub fn size(&self, name: ur_usm_pool_info_t) -> Result<usize> {
        use ur_usm_pool_info_t as I;
        // Memory is no longer in use once the commands that used it are complete.
        deferred_free::sweep_all::<D::Memory>();
        match name {
            I::CONTEXT => Ok(self.handle),
            I::RELEASE_THRESHOLD_EXP => Ok(self.parts.lock()?.limits[0].keep),
            I::MAXIMUM_SIZE_EXP => {
                let most = D::memory_size(self.device.as_ref().unwrap_or(&self.first))?;
                Ok(self.totals.maximum.load(Relaxed).min(most))
            }
            name => self.totals.size(name).ok_or(ErrorCode::UnsupportedEnumeration.into()),
        }
    }
    /// Sets a property.
    ///
    /// # Errors
    /// `INVALID_VALUE` for a high mark that is not set to 0; `UNSUPPORTED_ENUMERATION` for a property that cannot be
    /// set.
    pub fn set(&self, name: ur_usm_pool_info_t, number: usize) -> Result<()> {
        match name {
            ur_usm_pool_info_t::RELEASE_THRESHOLD_EXP => self.set_keep(number),
            name => self.totals.set(name, number),
        }
    }
}

/// The pools from which the devices of one context allocate if the caller passes none.
#[derive(Debug)]
pub struct DevicePools<D: HasUsm> {
    /// For `urUSM*Alloc`: a pool without a handle.
    own: OnceLock<Arc<UsmPool<D>>>,
    /// The devices' pools, which callers can query and set, by the address of the device's handle.
    devices: ProcessMutex<HashMap<usize, DevicePool<D>>>,
}
#[derive(Debug)]
struct DevicePool<D: HasUsm> {
    device: DriverDevice<D>,
    default: Owned<UsmPool<D>>,
    /// The pool that the caller set instead: the address of its handle, and its number. Not kept alive: the caller may
    /// destroy it.
    chosen: Option<(usize, u64)>,
}
impl<D: HasUsm> DevicePool<D> {
    /// Looks at the pools of a device.
    fn of<R>(
        context: Borrowed<'_, Context<D>>,
        device: Borrowed<'_, Device<D>>,
        look: impl FnOnce(&mut Self) -> R,
    ) -> Result<R> {
        let (handle, device) = (handle(&device), device.driver());
        let mut all = context.pools().devices.lock()?;
        // Nothing is known of it, or the pools of a sub-device that was released and whose handle this one has now.
        let is_new = all.get(&handle).is_none_or(|known| known.device != *device);
        let mut ended = None;
        if is_new {
            let default = Owned::new(UsmPool::initial(context));
            ended = all.insert(handle, Self { device: device.clone(), default, chosen: None });
        }
        let answer = look(all.get_mut(&handle).expect("it was inserted"));
        drop(all); // before `ended`, whose memory the driver takes back
        drop(ended);
        Ok(answer)
    }
}
impl<D: HasUsm> Default for DevicePools<D> {
    fn default() -> Self {
        Self { own: OnceLock::new(), devices: ProcessMutex::default() }
    }
}
impl<D: HasUsm> DevicePools<D> {
    /// The pool of allocations for which the caller passes none.
    pub fn own(&self, context: Borrowed<'_, Context<D>>) -> &Arc<UsmPool<D>> {
        let limits = [OWN_DEVICE, OWN_OTHERS].map(|limits| match D::is_pooled() {
            true => limits,
            false => Limits { poolable: 0, keep: 0, ..limits },
        });
        self.own.get_or_init(|| Arc::new(UsmPool::new(context, limits)))
    }
}
impl<D: HasUsm> Drop for DevicePools<D> {
    /// A handle of a default pool that a caller still holds must not keep memory alive.
    fn drop(&mut self) {
        for one in self.devices.get_mut().into_iter().flat_map(|pools| pools.values()) {
            let kept = one.default.set_keep(0);
            debug_assert!(kept.is_ok(), "a forked child lists no default pools");
        }
    }
}
impl<D: HasUsm> Context<D> {
    /// The pools from which its devices allocate if the caller passes none.
    pub fn pools(&self) -> &DevicePools<D> {
        self.kept().get()
    }
}
/// Returns freed memory early where it is the system's, which all processes share: called when commands have been waited
/// for.
pub fn sweep_after_wait<D: HasUsm>() {
    if D::IS_SYSTEMS {
        deferred_free::sweep_all::<D::Memory>();
    }
}
/// Registers an allocation of the driver, which may be exportable to other APIs; `bytes` is the size that the caller
/// requested.
pub fn enter<D: HasUsm>(
    memory: D::Allocation,
    usm: Usm,
    (home, bytes): (Home, usize),
    is_exportable: bool,
) -> UsmPtr {
    let base = memory.range().start().into();
    Allocation::enter(base, bytes, usm, home, D::Memory::whole(memory, is_exportable)).base()
}
/// Allocates memory if the caller passes no pool. `request`: what it belongs to, its size, and its alignment in bytes.
///
/// # Errors
/// As for [`UsmPool::allocate`].
pub fn take<D: HasUsm>(
    context: Borrowed<'_, Context<D>>,
    usm: Usm,
    device: Borrowed<'_, Device<D>>,
    (home, bytes, align): (Home, usize, usize),
) -> Result<UsmPtr> {
    if D::ALLOCATES_BLOCKS {
        deferred_free::sweep::<D::Memory>();
        let request =
            MemoryRequest { kind: usm.into(), bytes, align, is_shareable: usm == Usm::Device };
        if let Some(block) = D::block(context.driver(), request)? {
            return Ok(enter::<D>(block, usm, (home, bytes), false));
        }
    }
    context.pools().own(context).allocate(usm, device, (home, bytes, align))
}
/// Allocates device memory with its own descriptor, for memory with a policy. Other processes can only read it if
/// `is_read_only`.
///
/// # Errors
/// `UNSUPPORTED_FEATURE` if the driver cannot enforce a policy on other processes. Returns the driver's error, mapped as
/// in `error.rs`.
pub fn take_alone<D: HasUsm>(
    device: Borrowed<'_, Device<D>>,
    (home, bytes, align): (Home, usize, usize),
    is_read_only: bool,
) -> Result<UsmPtr> {
    let memory = D::allocate_guarded(device.driver(), (bytes, align), is_read_only)?;
    Ok(enter::<D>(memory, Usm::Device, (home, bytes), false))
}
/// Returns memory to the driver when it has run out: everything that was freed and is no longer in use, and the unused
/// memory of the context's own pool.
///
/// # Errors
/// As for [`UsmPool::trim_to`].
pub fn make_room<D: HasUsm>(context: Borrowed<'_, Context<D>>) -> Result<()> {
    deferred_free::sweep_all::<D::Memory>();
    context.pools().own.get().map_or(Ok(()), |own| own.trim_to(0))
}
