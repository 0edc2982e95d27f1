//! USM allocations: whose they are, how often they are open in this process, and how they are freed. What one
//! consists of is each backend's ([`Memory`]); which address belongs to which is `allocations.rs`'s, when
//! memory goes back `waiting.rs`'s.
use super::{
    allocations::{self, Allocated, Allocations, Entries, enter, write},
    objects::{next_object, number_of},
    totals::Totals,
    waiting::{DeferredFree, Moment, is_for_room},
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
use ur_hal::{Access, MemoryKind, Range};
use ur_ipc::Kind;
use ur_sys::ur_usm_type_t;

/// The three kinds of USM.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Usm {
    /// The host's.
    Host,
    /// The device's; the only one that can be shared.
    Device,
    /// Memory that moves between the two.
    Shared,
}
impl Usm {
    /// What callers know it as.
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
    /// Which other processes may open it.
    pub access: ur_ipc::Access,
}

/// What the allocations of a backend consist of: memory of its own, or of another process. Dropped, it is free.
pub trait Memory: fmt::Debug + Send + Sync + Sized + 'static {
    /// Whose it is.
    const BACKEND: Backend;
    /// Where its pools get their chunks.
    type Source: Counted;
    /// What commands were submitted before something was freed.
    type Moment: Moment + Send + 'static;
    /// All allocations of this process.
    fn allocations() -> &'static Allocations<Allocation<Self>>;
    /// What waits in this process for commands and for other processes.
    fn deferred() -> &'static DeferredFree<Self::Moment, DeferredItem<Self>>;
    /// What was submitted so far to queues of the context with this handle; 0: of all contexts.
    fn submitted(context: usize) -> Vec<Self::Moment>;
    /// A part of a pool.
    fn pooled(part: Pooled<Self::Source>) -> Self;
    /// Whether another process made it.
    fn is_opened(&self) -> bool;
    /// Whether what is freed is used for other allocations, so that it must stay while others have it open.
    fn is_reused(&self) -> bool {
        !self.is_opened()
    }
    /// Whether a command allocates it in a queue's order. Any other is there before the commands that use it.
    fn is_ordered(&self) -> bool {
        false
    }
    /// Whether it was made for callers to export, and is freed as such.
    fn is_exportable(&self) -> bool {
        false
    }
    /// Whether this process may only read it: another process made it so.
    fn is_read_only(&self) -> bool {
        false
    }
    /// # Errors
    /// Those of commands that use `range`, which touches no allocation, as `needs` says: as far as the backend knows what
    /// is there.
    fn check_elsewhere(_range: Range, _needs: Access) -> Result<()> {
        Ok(())
    }
}
/// Where pools get their chunks, whose blocks are counted.
pub trait Counted: pool::Source + fmt::Debug + 'static {
    /// What is counted for all pools behind one handle.
    fn totals(&self) -> &Arc<Totals>;
    /// Fills a block with zeros, if C wants that of the pool.
    ///
    /// # Errors
    /// The driver's own.
    fn prepare(&self, at: UsmPtr, bytes: usize) -> Result<()>;
}
/// A part of a pool, counted as used by its totals while this lives.
#[derive(Debug)]
pub struct Pooled<S: Counted>(pool::Block<S>);
impl<S: Counted> Pooled<S> {
    fn new(block: pool::Block<S>) -> Self {
        block.pool().source().totals().take(block.bytes());
        Self(block)
    }
    /// Where it is.
    pub fn block(&self) -> &pool::Block<S> {
        &self.0
    }
}
impl<S: Counted> Drop for Pooled<S> {
    fn drop(&mut self) {
        self.0.pool().source().totals().put(self.0.bytes());
    }
}

/// One allocation, or the whole of an object that was opened.
#[derive(Debug)]
pub struct Allocation<M: Memory> {
    base: UsmPtr,
    bytes: usize,
    usm: Usm,
    home: Home,
    object: u64,
    exported: AtomicBool,
    freed: AtomicBool,
    /// How often it is open in this process. Changes only under the registry's lock.
    holds: AtomicU64,
    /// Taken by drop.
    memory: Option<M>,
}
impl<M: Memory> Allocation<M> {
    /// Enters `memory` at `base`, of which C asked for `bytes`.
    pub fn enter(base: UsmPtr, bytes: usize, usm: Usm, home: Home, memory: M) -> Arc<Self> {
        let (exported, freed) = (AtomicBool::new(false), AtomicBool::new(false));
        let (object, holds) = (next_object(M::BACKEND), AtomicU64::new(0));
        let memory = Some(memory);
        enter(Self { base, bytes, usm, home, object, exported, freed, holds, memory })
    }
    /// Allocates `bytes`, at least one, at a multiple of `align`, from `pool`.
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
        M::deferred().sweep();
        let block = pool.take(bytes, align).or_else(|error| match is_for_room(&error) {
            true => {
                M::deferred().sweep_all();
                pool.take(bytes, align)
            }
            false => Err(error),
        })?;
        let base = block.base()?;
        pool.source().prepare(base, block.bytes())?;
        Ok(Self::enter(base, bytes, usm, home, M::pooled(Pooled::new(block))).base)
    }
    /// The one that has the byte at `at`, opened ones and such as are freed and open included.
    pub fn find(at: UsmPtr) -> Option<Arc<Self>> {
        allocations::find(at)
    }
    /// Whether the one called `object` is there and not freed.
    pub fn is_live(object: u64) -> bool {
        allocations::is_live::<Self>(object)
    }
    /// Whether `[at, at + bytes)` shares a byte with one.
    pub fn touches(at: UsmPtr, bytes: usize) -> bool {
        allocations::touches::<Self>(at, bytes)
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
    /// Commands that were begun before there was an object with this number do not know it.
    pub fn since(&self) -> u64 {
        let is_ordered = self.memory.as_ref().is_some_and(M::is_ordered);
        // What a stream allocates is known to the command that does.
        if is_ordered { 0 } else { number_of(self.object) }
    }
    /// What it consists of; nothing is left only while it is dropped.
    pub fn memory(&self) -> Option<&M> {
        self.memory.as_ref()
    }
    /// Whether another process made it.
    pub fn is_opened(&self) -> bool {
        self.memory.as_ref().is_some_and(M::is_opened)
    }
    /// Whether C freed it, so that only opens of it keep it.
    pub fn is_freed(&self) -> bool {
        self.freed.load(SeqCst) // see `expose`
    }
    /// How many bytes there are from `at` to its end.
    pub fn bytes_from(&self, at: UsmPtr) -> usize {
        self.bytes.saturating_sub(at.addr().saturating_sub(self.base.addr()))
    }
    /// What others can open, of which it is told here that they may: from now on a free is announced
    /// to them. Whoever exports it looks at `is_freed` afterwards: with both in one order, either they
    /// see the free or the free sees them.
    pub fn expose(&self) -> Option<&M> {
        self.exported.store(true, SeqCst);
        self.memory.as_ref()
    }
    /// Tells whoever was told of the memory that it is free.
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
            M::deferred().when_unleased((self.object, Kind::Memory), memory, unleased::<M>);
        }
    }
}
impl<M: Memory> Allocated for Allocation<M> {
    const BACKEND: Backend = M::BACKEND;
    fn all() -> &'static Allocations<Self> {
        M::allocations()
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

/// The last lease of an object has ended.
pub(super) fn unleased<M: Memory>(object: u64, kind: Kind) {
    M::deferred().release(object, kind);
}
/// What is dropped once the commands before have ended.
#[derive(Debug)]
pub enum DeferredItem<M: Memory> {
    /// A freed allocation.
    Allocation(Arc<Allocation<M>>),
    /// Anything else that commands may use.
    Other(Box<dyn Any + Send>),
}

/// Frees the allocation that starts at `at`. Its memory is used again when the commands that were enqueued in
/// the context so far have ended, when it is closed wherever this process opened it, and, if it was shared and
/// is used for others, when no other process has it open. `before` says which commands may know an allocation
/// that was made since the object with the given number.
///
/// # Errors
/// `INVALID_MEM_OBJECT`, with the reason.
pub fn free<M: Memory>(
    context: usize,
    at: UsmPtr,
    before: impl FnOnce(u64) -> Vec<M::Moment>,
) -> Result<()> {
    Freeing::<M>::begin(context, at)?.finish(before);
    Ok(())
}

/// An allocation that C may not name any more, and whose memory is in use until a command has run.
/// Dropped, its memory is free.
#[derive(Debug)]
pub struct Freeing<M: Memory>(Arc<Allocation<M>>);
impl<M: Memory> Freeing<M> {
    /// Takes the allocation that starts at `at` out of C's hands.
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
    /// The same for memory that `check` has nothing against.
    ///
    /// # Errors
    /// `INVALID_MEM_OBJECT`, with the reason.
    pub fn begin_if(
        context: usize,
        at: UsmPtr,
        check: impl FnOnce(&M) -> std::result::Result<(), String>,
    ) -> Result<Self> {
        let refused = |why: String| Err(Error::new(ErrorCode::InvalidMemObject, why));
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
            found.freed.store(true, SeqCst); // see `expose`
            let found = Arc::clone(found);
            all.forget_name(&found);
            if found.holds.load(Relaxed) == 0 {
                all.remove(at);
            }
            Ok(Self(found))
        })
    }
    /// What is freed.
    pub fn allocation(&self) -> &Allocation<M> {
        &self.0
    }
    /// Whether anybody else knows it: another process, or another open of it in this one.
    pub fn is_shared(&self) -> bool {
        self.0.exported.load(SeqCst) || self.0.holds.load(Relaxed) > 0
    }
    /// Another view of the same, so that one can be undone when the other was given away.
    #[must_use]
    pub fn again(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
    /// The command is on its way: importers are told.
    pub fn announce(&self) {
        self.0.announce();
    }
    /// Importers are told, and the memory goes when all commands are over that `before` says.
    pub fn finish(self, before: impl FnOnce(u64) -> Vec<M::Moment>) {
        // After it left the registry: a command that found it there is older than this.
        let before = before(self.0.since());
        self.announce();
        M::deferred().after(before, DeferredItem::Allocation(self.0));
    }
    /// Nothing was enqueued: the allocation is C's as before.
    pub fn undo(self) {
        write(|all: &mut Entries<Allocation<M>>| {
            all.enter(&self.0);
            self.0.freed.store(false, SeqCst);
        });
    }
}

/// One open of an allocation in the process that made it: keeps its memory, freed or not.
#[derive(Debug)]
pub struct Hold<M: Memory>(Arc<Allocation<M>>);
impl<M: Memory> Hold<M> {
    /// The live allocation that is called `object`.
    pub fn of(object: u64) -> Option<Self> {
        write(|all: &mut Entries<Allocation<M>>| {
            let found = all.named(object)?;
            found.holds.fetch_add(1, Relaxed); // under the lock
            Some(Self(Arc::clone(found)))
        })
    }
    /// What it holds.
    pub fn allocation(&self) -> &Allocation<M> {
        &self.0
    }
}
impl<M: Memory> Drop for Hold<M> {
    fn drop(&mut self) {
        let last = write(|all: &mut Entries<Allocation<M>>| {
            let others = self.0.holds.fetch_sub(1, Relaxed) - 1; // under the lock
            let gone = others == 0 && self.0.is_freed();
            gone.then(|| all.remove(self.0.base))
        });
        drop(last);
    }
}
