//! Which addresses are USM, and whose: one registry for the process, since pointers are the process's.
//! Any address inside an allocation finds it. Where memory comes from is `backing.rs`'s, when it goes
//! back `limbo.rs`'s, what other processes see of it `share.rs`'s, memory of others `foreign.rs`'s.
use super::{
    Context, Family,
    backing::Behind,
    driver::Dialect,
    limbo::{self, Kept, Spent},
    native::{
        memory,
        pool::{DriverPool, FromPool},
    },
    opened::Opened,
    usm_pool::{Chunks, UsmBlocks},
};
pub(super) use crate::memory::allocations::{enter, leave};
use crate::memory::{
    allocations::{self, Allocated, Allocations, Entries, write},
    limbo::is_for_room,
    totals::Totals,
};
pub(super) use crate::over_driver::next_object;
use crate::over_driver::number_of;
use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicBool, AtomicU64, Ordering::*},
};
use ur_adapter::{
    error::{Error, ErrorCode, Result},
    memory::UsmPtr,
    object::{Backend, Object},
    pool,
};
use ur_hal::Range;
use ur_ipc::Kind;
use ur_sys::ur_usm_type_t;

/// The three kinds of USM.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Usm {
    /// The host's, pinned.
    Host,
    /// The device's; the only one that can be shared.
    Device,
    /// Memory that moves between the two.
    Shared,
}
impl Usm {
    /// What C calls it.
    pub fn for_c(self) -> ur_usm_type_t {
        match self {
            Self::Host => ur_usm_type_t::HOST,
            Self::Device => ur_usm_type_t::DEVICE,
            Self::Shared => ur_usm_type_t::SHARED,
        }
    }
}

/// Whose an allocation is, as the addresses of C's handles; 0 for none. Only ever compared, and given
/// back to C: an allocation keeps none of them alive.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Home {
    /// `ur_context_handle_t`; 0 belongs to every context.
    pub context: usize,
    /// `ur_device_handle_t`
    pub device: usize,
    /// `ur_usm_pool_handle_t`
    pub pool: usize,
}

/// What an allocation consists of.
#[derive(Debug)]
pub(super) enum Memory<D: Dialect> {
    /// Cut from a pool of ours.
    Pooled(Pooled<D>),
    /// From the driver's pool, in a stream's order.
    Ordered(Ordered<D>),
    /// Another process's.
    Opened(#[expect(dead_code, reason = "held to be dropped")] Opened<D>),
}
/// A part of a pool, counted as used by its totals while this lives.
#[derive(Debug)]
pub(super) struct Pooled<D: Dialect>(pool::Block<Chunks<D>>);
impl<D: Dialect> Pooled<D> {
    fn new(block: pool::Block<Chunks<D>>) -> Self {
        block.pool().source().totals.take(block.bytes());
        Self(block)
    }
}
impl<D: Dialect> Drop for Pooled<D> {
    fn drop(&mut self) {
        self.0.pool().source().totals.put(self.0.bytes());
    }
}
/// Memory of a driver's pool, counted by the pool that C sees.
#[derive(Debug)]
pub(super) struct Ordered<D: Dialect> {
    memory: Option<FromPool<D>>,
    bytes: usize,
    totals: Arc<Totals>,
}
impl<D: Dialect> Ordered<D> {
    /// # Errors
    /// `OUT_OF_RESOURCES` beyond the maximum of `totals`; then the memory goes.
    pub(super) fn new(memory: FromPool<D>, bytes: usize, totals: Arc<Totals>) -> Result<Self> {
        totals.claim(bytes)?;
        totals.take(bytes);
        Ok(Self { memory: Some(memory), bytes, totals })
    }
    pub(super) fn memory(&self) -> Option<&FromPool<D>> {
        self.memory.as_ref()
    }
}
impl<D: Dialect> Drop for Ordered<D> {
    fn drop(&mut self) {
        self.totals.put(self.bytes);
        self.totals.unclaim(self.bytes);
    }
}

/// How other processes open the memory of an allocation.
#[derive(Debug)]
pub(super) enum Exposed<D: Dialect> {
    /// As a part of a chunk, from `base` bytes on, of `exposes`.
    Chunk {
        /// How to open the chunk.
        behind: Behind,
        /// Where in it the allocation starts.
        base: usize,
        /// How long what is opened is.
        exposes: usize,
        /// The UUID of its device.
        device: [u8; 16],
    },
    /// As an allocation of a driver's pool.
    Pool(Arc<DriverPool<D>>),
}

/// One allocation, or the whole of an object that was opened.
#[derive(Debug)]
pub struct Allocation<D: Dialect> {
    base: UsmPtr,
    bytes: usize,
    usm: Usm,
    home: Home,
    object: u64,
    /// Commands that were begun before there was an object with this number do not know it.
    since: u64,
    exported: AtomicBool,
    freed: AtomicBool,
    /// How often it is open in this process. Changes only under the registry's lock.
    holds: AtomicU64,
    /// Taken by drop, and by a free in a stream's order.
    memory: Mutex<Option<Memory<D>>>,
}
impl<D: Dialect> Allocation<D> {
    pub(super) fn new(base: UsmPtr, bytes: usize, usm: Usm, home: Home, memory: Memory<D>) -> Self {
        let (exported, freed) = (AtomicBool::new(false), AtomicBool::new(false));
        let (object, holds) = (next_object::<Family<D>>(), AtomicU64::new(0));
        // What a stream allocates is known to the command that does.
        let since = if let Memory::Ordered(_) = memory { 0 } else { number_of(object) };
        let memory = Mutex::new(Some(memory));
        Self { base, bytes, usm, home, object, since, exported, freed, holds, memory }
    }
    /// Its first byte.
    pub fn base(&self) -> UsmPtr {
        self.base
    }
    /// How many bytes C asked for.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
    /// Its kind.
    pub fn usm(&self) -> Usm {
        self.usm
    }
    /// Whose it is.
    pub fn home(&self) -> Home {
        self.home
    }
    /// Whether it belongs to the context with this handle.
    pub fn is_of(&self, context: usize) -> bool {
        self.home.context == 0 || self.home.context == context
    }
    /// Its name among the objects of this process, never used again.
    pub fn object(&self) -> u64 {
        self.object
    }
    /// The number of the object before whose time no command knew it.
    pub fn since(&self) -> u64 {
        self.since
    }
    /// Whether another process made it.
    pub fn is_opened(&self) -> bool {
        matches!(*locked(&self.memory), Some(Memory::Opened(_)))
    }
    /// Whether C freed it, so that only opens of it keep it.
    pub fn is_freed(&self) -> bool {
        self.freed.load(SeqCst) // see `expose`
    }
    /// How many bytes there are from `at` to its end.
    pub fn bytes_from(&self, at: UsmPtr) -> usize {
        self.bytes.saturating_sub(at.addr().saturating_sub(self.base.addr()))
    }
    /// How others can open it, of which it is told here that they may: from now on a free is announced
    /// to them. Whoever exports it looks at `is_freed` afterwards: with both in one order, either they
    /// see the free or the free sees them.
    ///
    /// # Errors
    /// As for [`Chunk::behind`](super::backing::Chunk::behind).
    pub(super) fn expose(&self) -> Result<Exposed<D>> {
        self.exported.store(true, SeqCst);
        let gone = || Error::new(ErrorCode::InvalidValue, format!("{:?} was freed", self.base));
        let (chunk, offset) = match locked(&self.memory).as_ref().ok_or_else(gone)? {
            Memory::Pooled(Pooled(block)) => (block.shared_chunk(), block.offset()),
            Memory::Ordered(ordered) => {
                let memory = ordered.memory().ok_or_else(gone)?;
                return Ok(Exposed::Pool(Arc::clone(memory.pool())));
            }
            Memory::Opened(_) => {
                let why = "memory that was opened is shared by its exporter";
                return Err(Error::new(ErrorCode::InvalidValue, why));
            }
        };
        let (behind, before) = chunk.behind()?; // not under the lock: it calls the driver
        let (base, exposes) = (before + offset, before + pool::Chunk::bytes(&*chunk));
        Ok(Exposed::Chunk { behind, base, exposes, device: chunk.device().uuid() })
    }
    /// Whether the memory is still there: a free in a stream's order takes it.
    pub fn has_memory(&self) -> bool {
        match &*locked(&self.memory) {
            Some(Memory::Ordered(ordered)) => ordered.memory.is_some(),
            memory => memory.is_some(),
        }
    }
}
impl<D: Dialect> Drop for Allocation<D> {
    fn drop(&mut self) {
        let memory = self.memory.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        let Some(memory) = memory else { return };
        if self.exported.load(SeqCst) && !matches!(memory, Memory::Opened(_)) {
            limbo::when_unleased(self.object, Kind::Memory, Kept::Memory(memory));
        }
    }
}

impl<D: Dialect> Allocated for Allocation<D> {
    const BACKEND: Backend = D::BACKEND;
    fn all() -> &'static Allocations<Self> {
        &D::statics().memory.get().ranges
    }
    fn base(&self) -> UsmPtr {
        self.base
    }
    fn bytes(&self) -> usize {
        self.bytes
    }
    fn object(&self) -> u64 {
        self.object
    }
    fn check_elsewhere(range: Range) -> Result<()> {
        D::statics().memory.get().reserved.check_mapped(range)
    }
}
/// The allocations of this process.
type Ranges<D> = Entries<Allocation<D>>;
pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
/// Allocates `bytes`, at least one, at a multiple of `align`, from `pool`.
///
/// # Errors
/// As for [`Pool::take`](pool::Pool::take).
pub(super) fn allocate<D: Dialect>(
    usm: Usm,
    home: Home,
    bytes: usize,
    align: usize,
    pool: &Arc<UsmBlocks<D>>,
) -> Result<UsmPtr> {
    limbo::sweep::<D>();
    let block = pool.take(bytes, align).or_else(|error| match is_for_room(&error) {
        true => {
            limbo::sweep_all::<D>();
            pool.take(bytes, align)
        }
        false => Err(error),
    })?;
    let base = block.base()?;
    if pool.source().zeroed {
        memory::zero(&pool.source().device, base.addr() as u64, block.bytes())?;
    }
    let memory = Memory::Pooled(Pooled::new(block));
    Ok(enter(Allocation::<D>::new(base, bytes, usm, home, memory)).base)
}
/// Enters device memory that a driver's pool gave in a stream's order.
///
/// # Errors
/// `INVALID_VALUE` for memory at no address.
pub(super) fn adopt<D: Dialect>(home: Home, bytes: usize, memory: Ordered<D>) -> Result<UsmPtr> {
    let at = memory.memory().map_or(0, FromPool::at);
    let null = || Error::new(ErrorCode::Unknown, "the driver gave a null address");
    let base = UsmPtr::from_addr(at as usize).ok_or_else(null)?;
    Ok(enter(Allocation::new(base, bytes, Usm::Device, home, Memory::Ordered(memory))).base)
}

/// Frees the allocation that starts at `at`. Its memory is used again when the commands enqueued in
/// `context` so far have ended, when it is closed wherever this process opened it, and, if it was
/// shared, when no other process has it open.
///
/// # Errors
/// `INVALID_MEM_OBJECT`, with the reason.
pub fn free<D: Dialect>(context: &Object<Context<D>>, at: UsmPtr) -> Result<()> {
    Freeing::begin(context, at)?.finish(context);
    Ok(())
}
/// Tells whoever was told of the memory that it is free.
fn announce<D: Dialect>(freed: &Allocation<D>) {
    if freed.exported.load(SeqCst) {
        ur_adapter::share::freed(freed.object, Kind::Memory);
    }
}

/// An allocation that C may not name any more, and whose memory is in use until a command has run.
/// Dropped, its memory is free.
#[derive(Debug)]
pub struct Freeing<D: Dialect>(Arc<Allocation<D>>);
impl<D: Dialect> Freeing<D> {
    /// Takes the allocation that starts at `at` out of C's hands.
    ///
    /// # Errors
    /// `INVALID_MEM_OBJECT`, with the reason.
    pub fn begin(context: &Object<Context<D>>, at: UsmPtr) -> Result<Self> {
        begin_free(context.as_handle().addr(), at).map(Self)
    }
    /// What is freed.
    pub fn allocation(&self) -> &Allocation<D> {
        &self.0
    }
    /// The memory, for the driver to take back in the order of a stream, if that is how it was allocated
    /// and nobody else has it open. To be called once.
    pub(super) fn take_ordered(&self) -> Option<FromPool<D>> {
        let shared = self.0.exported.load(SeqCst) || self.0.holds.load(Relaxed) > 0;
        match locked(&self.0.memory).as_mut()? {
            Memory::Ordered(ordered) if !shared => ordered.memory.take(),
            _ => None,
        }
    }
    /// Importers are told, and the memory goes when all commands of the context are over that were
    /// submitted so far, since it was allocated.
    pub fn finish(self, context: &Context<D>) {
        // After it left the registry: a command that found it there is older than this.
        let before = context.queues().ticket(self.0.since);
        announce(&self.0);
        limbo::after(before, Spent::Allocation(self.0));
    }
    /// Nothing was enqueued: the allocation is C's as before.
    pub fn undo(self) {
        write(|ranges: &mut Ranges<D>| {
            ranges.enter(&self.0);
            self.0.freed.store(false, SeqCst);
        });
    }
}

fn begin_free<D: Dialect>(context: usize, at: UsmPtr) -> Result<Arc<Allocation<D>>> {
    let refused = |why: String| Err(Error::new(ErrorCode::InvalidMemObject, why));
    write(|ranges: &mut Ranges<D>| {
        let Some(found) = ranges.starting_at(at).filter(|a| !a.is_freed()) else {
            return refused(format!(
                "{at:?} is not the start of an allocation, or it is free already"
            ));
        };
        if found.is_opened() {
            return refused(format!("{at:?} was opened, not allocated: close it instead"));
        }
        if !found.is_of(context) {
            return refused(format!("{at:?} was allocated in another context: free it there"));
        }
        found.freed.store(true, SeqCst); // see `expose`
        let found = Arc::clone(found);
        ranges.forget_name(&found);
        if found.holds.load(Relaxed) == 0 {
            ranges.remove(at);
        }
        Ok(found)
    })
}

/// One open of an allocation in the process that made it: keeps its memory, freed or not.
#[derive(Debug)]
pub struct Hold<D: Dialect>(Arc<Allocation<D>>);
impl<D: Dialect> Hold<D> {
    /// The live allocation that is called `object`.
    pub fn of(object: u64) -> Option<Self> {
        write(|ranges: &mut Ranges<D>| {
            let found = ranges.named(object)?;
            found.holds.fetch_add(1, Relaxed); // under the lock
            Some(Self(Arc::clone(found)))
        })
    }
    /// What it holds.
    pub fn allocation(&self) -> &Allocation<D> {
        &self.0
    }
}
impl<D: Dialect> Drop for Hold<D> {
    fn drop(&mut self) {
        let last = write(|ranges: &mut Ranges<D>| {
            let others = self.0.holds.fetch_sub(1, Relaxed) - 1; // under the lock
            let gone = others == 0 && self.0.is_freed();
            gone.then(|| ranges.remove(self.0.base))
        });
        drop(last);
    }
}

/// The allocation that has the byte at `at`, opened ones and such as are freed and open included.
pub fn find<D: Dialect>(at: UsmPtr) -> Option<Arc<Allocation<D>>> {
    allocations::find(at)
}
/// Whether the allocation called `object` is there and not freed.
pub fn is_live<D: Dialect>(object: u64) -> bool {
    allocations::is_live::<Allocation<D>>(object)
}
/// Whether `[at, at + bytes)` shares a byte with an allocation.
pub fn touches<D: Dialect>(at: UsmPtr, bytes: usize) -> bool {
    allocations::touches::<Allocation<D>>(at, bytes)
}
