//! USM allocations: which context, device and pool they belong to, how often they are open in this process, and how
//! they are freed. What an allocation consists of is up to each backend ([`Memory`]); `allocations.rs` finds
//! allocations by address, and `waiting.rs` delays the reuse of freed memory until it is no longer in use.
use super::{
    allocations::{self, Allocated, Allocations, Entries, enter, write},
    objects::{next_object, number_of},
    ordered::Ordered,
    totals::Totals,
    waiting::{DeferredFree, is_for_room},
};
use std::{
    any::Any,
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::*},
    },
};
use ur_adapter::{
    error::{Error, ErrorCode, Result},
    memory::UsmPtr,
    object::Backend,
    pool::{self, Pool},
};
use ur_hal::{Access, MemoryKind, Moment, Range};
use ur_ipc::Kind;
use ur_sys::ur_usm_type_t;

/// The three kinds of USM.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Usm {
    /// Memory of the host.
    Host,
    /// Memory of the device; the only kind that can be shared between processes.
    Device,
    /// Memory that migrates between host and device.
    Shared,
}
impl Usm {
    /// The kind in UR's enumeration.
    pub fn for_c(self) -> ur_usm_type_t {
        match self {
            Self::Host => ur_usm_type_t::HOST,
            Self::Device => ur_usm_type_t::DEVICE,
            Self::Shared => ur_usm_type_t::SHARED,
        }
    }
}

impl From<MemoryKind> for Usm {
    fn from(kind: MemoryKind) -> Self {
        match kind {
            MemoryKind::Device => Self::Device,
            MemoryKind::Host => Self::Host,
            MemoryKind::Managed => Self::Shared,
        }
    }
}
impl From<Usm> for MemoryKind {
    fn from(usm: Usm) -> Self {
        match usm {
            Usm::Device => Self::Device,
            Usm::Host => Self::Host,
            Usm::Shared => Self::Managed,
        }
    }
}

/// What an allocation belongs to, as the addresses of UR handles; 0 for none. The addresses are only compared and
/// returned to the caller: an allocation keeps none of these objects alive.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Home {
    /// `ur_context_handle_t`; 0 if it belongs to every context.
    pub context: usize,
    /// `ur_device_handle_t`
    pub device: usize,
    /// `ur_usm_pool_handle_t`
    pub pool: usize,
    /// Which other processes may open it.
    pub access: ur_ipc::Access,
}

/// What the allocations of a backend consist of: memory of this process, or memory imported from another one. Dropping
/// it frees the memory.
pub trait Memory: fmt::Debug + Send + Sync + Sized + 'static {
    /// The backend.
    const BACKEND: Backend;
    /// The type from which its pools get their chunks.
    type Source: Counted;
    /// A point in a queue's commands; freed memory waits for such points before it is reused.
    type Moment: Moment + Send + 'static;
    /// The memory of this process, in a static that a forked child does not inherit.
    fn of_process() -> &'static OfProcess<Self>;
    /// The points that will have passed when all commands submitted so far are complete: to queues of the context with
    /// this handle, or of all contexts if it is 0. May leave out commands that use no memory as old as the object with
    /// the number `since`.
    fn submitted(context: usize, since: u64) -> Vec<Self::Moment>;
    /// Whether this process is a forked child of one whose driver works in that process alone: what the child has is the
    /// parent's, whose threads may have held locks of queues at the fork.
    fn is_of_parent() -> bool;
    /// Memory of another process.
    type Opened;
    /// Makes memory of a block of a pool.
    fn pooled(part: Pooled<Self::Source>) -> Self;
    /// Makes memory of an allocation of the driver, which may be exportable to other APIs.
    fn whole(memory: Chunk<Self>, is_exportable: bool) -> Self;
    /// Makes memory of what was imported from another process.
    fn opened(memory: Self::Opened) -> Self;
    /// The allocation of the driver that it is, or is a part of, and its offset in that in bytes; `None` for memory that a
    /// queue allocated, and for imported memory.
    fn within(&self) -> Option<(&Chunk<Self>, usize)>;
    /// The memory, if it is imported from another process.
    fn as_opened(&self) -> Option<&Self::Opened>;
    /// Makes memory of what a queue allocates in its order.
    fn ordered(memory: InOrder<Self>) -> Self;
    /// Whether it is imported from another process.
    fn is_opened(&self) -> bool {
        self.as_opened().is_some()
    }
    /// Whether freed memory is reused for other allocations. It is then kept as long as other processes have it open.
    fn is_reused(&self) -> bool;
    /// The memory that a queue allocated in its order. Any other memory exists before the commands that use it are enqueued.
    fn as_ordered(&self) -> Option<&InOrder<Self>>;
    /// Whether it was allocated as exportable memory, and has to be freed by the entry for that.
    fn is_exportable(&self) -> bool;
    /// Whether this process may only read it, because the exporter said so.
    fn is_read_only(&self) -> bool;
    /// Checks whether a command may access `range`, which overlaps no allocation, as far as the backend knows what is
    /// there.
    ///
    /// # Errors
    /// Those of a command that accesses `range` as `needs` states.
    fn check_elsewhere(range: Range, needs: Access) -> Result<()>;
}
/// An allocation of the driver.
pub type Chunk<M> = <<M as Memory>::Source as pool::Source>::Chunk;
/// Memory that a queue allocated in its order.
pub type InOrder<M> = Ordered<Chunk<M>>;
/// The memory of a process.
pub struct OfProcess<M: Memory> {
    /// All allocations.
    allocations: Allocations<Allocation<M>>,
    /// What waits for commands or for other processes before it is reused.
    pub(super) deferred: DeferredFree<M::Moment, DeferredItem<M>>,
}
impl<M: Memory> Default for OfProcess<M> {
    fn default() -> Self {
        Self { allocations: Allocations::default(), deferred: DeferredFree::default() }
    }
}
/// A source of chunks for pools; the blocks that are cut from them are counted.
pub trait Counted: pool::Source + fmt::Debug + 'static {
    /// The counters of all pools behind one handle.
    fn totals(&self) -> &Arc<Totals>;
    /// Fills a block with zeros, if the pool was created with that flag.
    ///
    /// # Errors
    /// Returns the driver's error, mapped as in `error.rs`.
    fn prepare(&self, at: UsmPtr, bytes: usize) -> Result<()>;
}
/// A block of a pool, which its totals count as used while this exists.
#[derive(Debug)]
pub struct Pooled<S: Counted>(pool::Block<S>);
impl<S: Counted> Pooled<S> {
    fn new(block: pool::Block<S>) -> Self {
        block.pool().source().totals().take(block.bytes());
        Self(block)
    }
    /// The block.
    pub fn block(&self) -> &pool::Block<S> {
        &self.0
    }
}
impl<S: Counted> Drop for Pooled<S> {
    fn drop(&mut self) {
        self.0.pool().source().totals().put(self.0.bytes());
    }
}

/// One allocation, or the whole of an imported object.
#[derive(Debug)]
pub struct Allocation<M: Memory> {
    base: UsmPtr,
    bytes: usize,
    usm: Usm,
    home: Home,
    object: u64,
    exported: AtomicBool,
    freed: AtomicBool,
    /// How often it is open in this process. Changed only under the registry's lock.
    holds: AtomicU64,
    /// Taken by `drop`.
    memory: Option<M>,
}
impl<M: Memory> Allocation<M> {
    /// Registers `memory` at `base`; `bytes` is the size that the caller requested.
    pub fn enter(base: UsmPtr, bytes: usize, usm: Usm, home: Home, memory: M) -> Arc<Self> {
        let (exported, freed) = (AtomicBool::new(false), AtomicBool::new(false));
        let (object, holds) = (next_object(M::BACKEND), AtomicU64::new(0));
        let memory = Some(memory);
        enter(Self { base, bytes, usm, home, object, exported, freed, holds, memory })
    }
    /// Allocates `bytes`, at least one, at a multiple of `align`, from `pool`. If memory has run out, frees deferred
    /// memory and tries again.
    ///
    /// # Errors
    /// As for [`Pool::take`].
    pub fn take(
        usm: Usm,
        home: Home,
        bytes: usize,
        align: usize,
        pool: &Arc<Pool<M::Source>>,
    ) -> Result<UsmPtr> {
        M::of_process().deferred.sweep();
        let block = pool.take(bytes, align).or_else(|error| match is_for_room(&error) {
            true => {
                M::of_process().deferred.sweep_all();
                pool.take(bytes, align)
            }
            false => Err(error),
        })?;
        let base = block.base()?;
        pool.source().prepare(base, block.bytes())?;
        Ok(Self::enter(base, bytes, usm, home, M::pooled(Pooled::new(block))).base)
    }
    /// The allocation that contains the byte at `at`, including imported ones, and freed ones that are still open.
    pub fn find(at: UsmPtr) -> Option<Arc<Self>> {
        allocations::find(at)
    }
    /// Whether the allocation with the number `object` exists and is not freed.
    pub fn is_live(object: u64) -> bool {
        allocations::is_live::<Self>(object)
    }
    /// Whether `[at, at + bytes)` overlaps an allocation.
    pub fn touches(at: UsmPtr, bytes: usize) -> bool {
        allocations::touches::<Self>(at, bytes)
    }
    /// Its first byte.
    pub fn base(&self) -> UsmPtr {
        self.base
    }
    /// The size in bytes that the caller requested.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
    /// Its kind.
    pub fn usm(&self) -> Usm {
        self.usm
    }
    /// What it belongs to.
    pub fn home(&self) -> Home {
        self.home
    }
    /// Whether it belongs to the context with this handle.
    pub fn is_of(&self, context: usize) -> bool {
        self.home.context == 0 || self.home.context == context
    }
    /// Its number among the objects of this process, which is never reused.
    pub fn object(&self) -> u64 {
        self.object
    }
    /// Its object number. Commands that were submitted before an object had this number cannot use the allocation.
    pub fn since(&self) -> u64 {
        let is_ordered = self.memory.as_ref().is_some_and(|memory| memory.as_ordered().is_some());
        // Memory allocated in queue order may be used by the very command that allocates it.
        if is_ordered { 0 } else { number_of(self.object) }
    }
    /// What it consists of; `None` only while it is being dropped.
    pub fn memory(&self) -> Option<&M> {
        self.memory.as_ref()
    }
    /// Whether it is imported from another process.
    pub fn is_opened(&self) -> bool {
        self.memory.as_ref().is_some_and(M::is_opened)
    }
    /// Whether it has been freed, and exists only because it is still open.
    pub fn is_freed(&self) -> bool {
        self.freed.load(SeqCst) // ordered with `expose`
    }
    /// The number of bytes from `at` to its end.
    pub fn bytes_from(&self, at: UsmPtr) -> usize {
        self.bytes.saturating_sub(at.addr().saturating_sub(self.base.addr()))
    }
    /// Marks it as exported, so that freeing it is announced to importers, and returns its memory. The exporting thread
    /// must check `is_freed` afterwards: both flags are sequentially consistent, so either the exporter sees the free,
    /// or the free sees the export and is announced.
    pub fn expose(&self) -> Option<&M> {
        self.exported.store(true, SeqCst);
        self.memory.as_ref()
    }
    /// Announces to importers that the memory is freed, if it was exported.
    fn announce(&self) {
        if self.exported.load(SeqCst) {
            ur_adapter::share::freed(self.object, Kind::Memory);
        }
    }
}
impl<M: Memory> Drop for Allocation<M> {
    fn drop(&mut self) {
        let Some(memory) = self.memory.take() else { return };
        if self.exported.load(SeqCst) && memory.is_reused() {
            M::of_process().deferred.when_unleased(
                (self.object, Kind::Memory),
                memory,
                unleased::<M>,
            );
        }
    }
}
impl<M: Memory> Allocated for Allocation<M> {
    const BACKEND: Backend = M::BACKEND;
    fn all() -> &'static Allocations<Self> {
        &M::of_process().allocations
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
    fn is_read_only(&self) -> bool {
        self.memory.as_ref().is_some_and(M::is_read_only)
    }
    fn check_elsewhere(range: Range, needs: Access) -> Result<()> {
        M::check_elsewhere(range, needs)
    }
}

/// Memory of another process, registered as long as this exists.
#[derive(Debug)]
pub struct Registered<M: Memory>(Arc<Allocation<M>>);
impl<M: Memory> Registered<M> {
    /// Registers `bytes` of `memory` from `base` on as memory of the device with this handle.
    pub fn new(base: UsmPtr, bytes: usize, device: usize, memory: M) -> Self {
        let home = Home { device, ..Home::default() };
        Self(Allocation::enter(base, bytes, Usm::Device, home, memory))
    }
    /// The whole of the object.
    pub fn allocation(&self) -> &Allocation<M> {
        &self.0
    }
}
impl<M: Memory> Drop for Registered<M> {
    fn drop(&mut self) {
        allocations::leave(&self.0);
    }
}

/// Called when the last lease of an object has ended.
pub(super) fn unleased<M: Memory>(object: u64, kind: Kind) {
    M::of_process().deferred.release(object, kind);
}
/// What is dropped when the commands submitted before are complete.
#[derive(Debug)]
pub enum DeferredItem<M: Memory> {
    /// A freed allocation.
    Allocation(Arc<Allocation<M>>),
    /// Any other object that commands may use.
    Other(Box<dyn Any + Send>),
}

/// Frees the allocation that starts at `at`. Its memory is reused when the commands enqueued so far in the context are
/// complete, when this process has closed all opens of it, and, if it was exported and its memory is reusable, when no
/// other process has it open.
///
/// # Errors
/// `INVALID_MEM_OBJECT`, with the reason.
pub fn free<M: Memory>(context: usize, at: UsmPtr) -> Result<()> {
    Freeing::<M>::begin(context, at)?.finish(context);
    Ok(())
}

/// An allocation that the caller has freed, and whose memory may be in use until a command has run. Dropping it makes
/// the memory free.
#[derive(Debug)]
pub struct Freeing<M: Memory>(Arc<Allocation<M>>);
impl<M: Memory> Freeing<M> {
    /// Frees the allocation that starts at `at` as far as the caller is concerned: its address is no longer valid in
    /// any entry.
    ///
    /// # Errors
    /// `INVALID_MEM_OBJECT`, with the reason.
    pub fn begin(context: usize, at: UsmPtr) -> Result<Self> {
        Self::begin_if(context, at, |memory| match memory.is_exportable() {
            true => Err(format!(
                "{at:?} is exportable: free it with urMemoryExportFreeExportableMemoryExp"
            )),
            false => Ok(()),
        })
    }
    /// Like [`begin`](Self::begin), for memory that `check` accepts.
    ///
    /// # Errors
    /// `INVALID_MEM_OBJECT`, with the reason.
    pub fn begin_if(
        context: usize,
        at: UsmPtr,
        check: impl FnOnce(&M) -> std::result::Result<(), String>,
    ) -> Result<Self> {
        let refused = |why: String| Error::refuse(ErrorCode::InvalidMemObject, why);
        write(|all: &mut Entries<Allocation<M>>| {
            let Some(found) = all.starting_at(at).filter(|a| !a.is_freed()) else {
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
            if let Err(why) = found.memory.as_ref().map_or(Ok(()), check) {
                return refused(why);
            }
            found.freed.store(true, SeqCst); // ordered with `expose`
            let found = Arc::clone(found);
            all.forget_name(&found);
            if found.holds.load(Relaxed) == 0 {
                all.remove(&found);
            }
            Ok(Self(found))
        })
    }
    /// The allocation.
    pub fn allocation(&self) -> &Allocation<M> {
        &self.0
    }
    /// Whether another process may have it open, or this process has opened it again.
    pub fn is_shared(&self) -> bool {
        self.0.exported.load(SeqCst) || self.0.holds.load(Relaxed) > 0
    }
    /// A second value for the same allocation, so that [`undo`](Self::undo) is possible after the first was passed to a
    /// command.
    #[must_use]
    pub fn again(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
    /// Announces the free to importers; called when the command that frees the memory has been enqueued.
    pub fn announce(&self) {
        self.0.announce();
    }
    /// Announces the free to importers, and drops the memory when the commands submitted so far in the context are
    /// complete.
    pub fn finish(self, context: usize) {
        // Only now, after it has left the registry: no command submitted from here on can have found it there.
        let before = M::submitted(context, self.0.since());
        self.announce();
        M::of_process().deferred.after(before, DeferredItem::Allocation(self.0));
    }
    /// Restores the allocation, because no command was enqueued.
    pub fn undo(self) {
        write(|all: &mut Entries<Allocation<M>>| {
            all.enter(&self.0);
            self.0.freed.store(false, SeqCst);
        });
    }
}

/// One open of an allocation in the process that allocated it. Keeps its memory alive, whether freed or not.
#[derive(Debug)]
pub struct Hold<M: Memory>(Arc<Allocation<M>>);
impl<M: Memory> Hold<M> {
    /// Opens the allocation with the number `object`, unless it is freed.
    pub fn of(object: u64) -> Option<Self> {
        write(|all: &mut Entries<Allocation<M>>| {
            let found = all.named(object)?;
            found.holds.fetch_add(1, Relaxed); // under the lock
            Some(Self(Arc::clone(found)))
        })
    }
    /// The allocation.
    pub fn allocation(&self) -> &Allocation<M> {
        &self.0
    }
}
impl<M: Memory> Drop for Hold<M> {
    fn drop(&mut self) {
        let last = write(|all: &mut Entries<Allocation<M>>| {
            let others = self.0.holds.fetch_sub(1, Relaxed) - 1; // under the lock
            let gone = others == 0 && self.0.is_freed();
            gone.then(|| all.remove(&self.0))
        });
        drop(last);
    }
}
