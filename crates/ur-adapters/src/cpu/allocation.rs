//! Which addresses are USM, and whose: one registry for the process, since pointers are the
//! process's. Any address inside an allocation finds it. Where memory comes from is `backing.rs`'s,
//! when it goes back `limbo.rs`'s, what other processes see of it `share.rs`'s.
use super::{
    backing::{Behind, Block},
    engine::{Passed, all_queues_ticket},
    limbo::{self, Kept, Spent},
    mapping::{Mapping, Side},
    native,
    usm_pool::Chunks,
    virtual_mem,
};
use crate::memory::allocations::{self, Allocated, Allocations, Entries, enter, leave, write};
use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering::*},
};
use ur_adapter::{
    error::{Error, ErrorCode, Result},
    memory::UsmPtr,
    object::Backend,
    per_process::PerProcess,
    pool::{self, Pool},
};
use ur_hal::Range;
use ur_ipc::Kind;
use ur_sys::ur_usm_type_t;

/// The three kinds of USM.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Usm {
    /// The host's, in C's terms.
    Host,
    /// The device's; the only one that can be shared.
    Device,
    /// Both's.
    Shared,
}
impl Usm {
    /// What it is made of.
    pub fn side(self) -> Side {
        match self {
            Self::Device => Side::Device,
            Self::Host | Self::Shared => Side::Host,
        }
    }
    /// What C calls it.
    pub fn for_c(self) -> ur_usm_type_t {
        match self {
            Self::Host => ur_usm_type_t::HOST,
            Self::Device => ur_usm_type_t::DEVICE,
            Self::Shared => ur_usm_type_t::SHARED,
        }
    }
}

/// Whose an allocation is, as the addresses of C's handles; 0 for none. Only ever compared, and
/// given back to C: an allocation keeps none of them alive.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Home {
    /// `ur_context_handle_t`; 0 belongs to every context.
    pub context: usize,
    /// `ur_device_handle_t`
    pub device: usize,
    /// `ur_usm_pool_handle_t`
    pub pool: usize,
}

/// A pool of this adapter's.
pub(super) type UsmBlocks = Pool<Chunks>;

/// What an allocation consists of.
#[derive(Debug)]
pub(super) enum Memory {
    /// Taken from the process's store.
    Block(Block),
    /// Cut from a pool.
    Pooled(Pooled),
    /// Memory with a descriptor of its own, which C may have.
    Exportable(Block),
    /// Another process's.
    Opened {
        /// Where it is mapped.
        _mapping: Mapping,
    },
}
impl Memory {
    fn behind(&self) -> Option<Behind> {
        match self {
            Self::Block(block) | Self::Exportable(block) => block.behind(),
            Self::Pooled(Pooled(block)) => block.chunk().behind().map(|b| b.offset(block.offset())),
            Self::Opened { .. } => None,
        }
    }
    fn is_recycled(&self) -> bool {
        match self {
            Self::Block(block) | Self::Exportable(block) => block.is_recycled(),
            Self::Pooled(_) => true,
            Self::Opened { .. } => false,
        }
    }
}

/// A part of a pool, counted as used by its totals while this lives.
#[derive(Debug)]
pub(super) struct Pooled(pool::Block<Chunks>);
impl Pooled {
    fn new(block: pool::Block<Chunks>) -> Self {
        block.pool().source().totals.take(block.bytes());
        Self(block)
    }
}
impl Drop for Pooled {
    fn drop(&mut self) {
        self.0.pool().source().totals.put(self.0.bytes());
    }
}

/// One allocation, or the whole of an object that was opened.
#[derive(Debug)]
pub struct Allocation {
    base: UsmPtr,
    bytes: usize,
    usm: Usm,
    home: Home,
    object: u64,
    exported: AtomicBool,
    freed: AtomicBool,
    /// How often it is open in this process. Changes only under the registry's lock.
    holds: AtomicU64,
    /// Taken by drop only.
    memory: Option<Memory>,
}

impl Allocation {
    fn new(base: UsmPtr, bytes: usize, usm: Usm, home: Home, memory: Memory) -> Self {
        let (exported, freed) = (AtomicBool::new(false), AtomicBool::new(false));
        let (object, holds, memory) = (next_object(), AtomicU64::new(0), Some(memory));
        Self { base, bytes, usm, home, object, exported, freed, holds, memory }
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
    /// Whether another process made it.
    pub fn is_opened(&self) -> bool {
        matches!(self.memory, Some(Memory::Opened { .. }))
    }
    /// Whether it was made for C to export.
    pub fn is_exportable(&self) -> bool {
        matches!(self.memory, Some(Memory::Exportable(_)))
    }
    /// Whether C freed it, so that only opens of it keep it.
    pub fn is_freed(&self) -> bool {
        self.freed.load(SeqCst) // see `expose`
    }
    /// How many bytes there are from `at` to its end.
    pub fn bytes_from(&self, at: UsmPtr) -> usize {
        self.bytes.saturating_sub(at.addr().saturating_sub(self.base.addr()))
    }
    /// The descriptor that others can open it by, of which it is told here that they may: from
    /// now on a free is announced to them. Whoever exports it looks at `is_freed` afterwards:
    /// with both in one order, either they see the free or the free sees them.
    pub fn expose(&self) -> Option<Behind> {
        self.exported.store(true, SeqCst);
        self.memory.as_ref()?.behind()
    }
}
impl Drop for Allocation {
    fn drop(&mut self) {
        let Some(memory) = self.memory.take() else { return };
        if self.exported.load(SeqCst) && memory.is_recycled() {
            limbo::when_unleased(self.object, Kind::Memory, Kept::Memory(memory));
        }
    }
}

/// A name for an object of this process, memory or physical memory.
pub fn next_object() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Relaxed) // a number, nothing more
}

impl Allocated for Allocation {
    const BACKEND: Backend = Backend::Cpu;
    fn all() -> &'static Allocations<Self> {
        static ALL: PerProcess<Allocations<Allocation>> = PerProcess::new();
        ALL.get()
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
        virtual_mem::check_mapped(range)
    }
}
/// The allocations of this process.
type Ranges = Entries<Allocation>;

/// Allocates `bytes`, at least one, at a multiple of `align`, from `pool` or else the store.
///
/// # Errors
/// As for [`Block::take`] and [`Pool::take`].
pub(super) fn allocate(
    usm: Usm,
    home: Home,
    bytes: usize,
    align: usize,
    pool: Option<&Arc<UsmBlocks>>,
) -> Result<UsmPtr> {
    limbo::sweep();
    let (base, memory) = match pool {
        Some(pool) => {
            let block = pool.take(bytes, align)?;
            let base = block.base()?;
            if pool.source().zeroed {
                native::fill(base, &[0], block.bytes());
            }
            (base, Memory::Pooled(Pooled::new(block)))
        }
        None => {
            let block = Block::take(usm.side(), bytes, align)?;
            (block.base(), Memory::Block(block))
        }
    };
    Ok(enter(Allocation::new(base, bytes, usm, home, memory)).base)
}

/// Allocates device memory with a descriptor that no other allocation has.
///
/// # Errors
/// As for [`Block::alone`].
pub(super) fn allocate_exportable(home: Home, bytes: usize, align: usize) -> Result<UsmPtr> {
    limbo::sweep();
    let block = Block::alone(bytes, align)?;
    let (base, memory) = (block.base(), Memory::Exportable(block));
    Ok(enter(Allocation::new(base, bytes, Usm::Device, home, memory)).base)
}

/// Frees the allocation that starts at `at`. Its memory is used again when the commands enqueued
/// in `context` so far have ended, when it is closed wherever this process opened it, and, if it
/// shares a descriptor with others, when no other process has it open.
///
/// # Errors
/// `INVALID_MEM_OBJECT`, with the reason.
pub fn free(context: usize, at: UsmPtr) -> Result<()> {
    let before = all_queues_ticket(context);
    let freed = begin_free(context, at, false)?;
    announce(&freed);
    limbo::after(vec![before], Spent::Allocation(freed));
    Ok(())
}
/// The same for memory that C could export.
///
/// # Errors
/// `INVALID_MEM_OBJECT`, with the reason.
pub fn free_exportable(context: usize, at: UsmPtr) -> Result<()> {
    let before = all_queues_ticket(context);
    let freed = begin_free(context, at, true)?;
    announce(&freed);
    limbo::after(vec![before], Spent::Allocation(freed));
    Ok(())
}
/// Tells whoever was told of the memory that it is free.
fn announce(freed: &Allocation) {
    if freed.exported.load(SeqCst) {
        ur_adapter::share::freed(freed.object, Kind::Memory);
    }
}

/// An allocation that C may not name any more, and whose memory is in use until a command has
/// run. Dropped, its memory is free.
#[derive(Debug)]
pub struct Freeing(Arc<Allocation>);
impl Freeing {
    /// Takes the allocation that starts at `at` out of C's hands.
    ///
    /// # Errors
    /// `INVALID_MEM_OBJECT`, with the reason.
    pub fn begin(context: usize, at: UsmPtr) -> Result<Self> {
        begin_free(context, at, false).map(Self)
    }
    /// What is freed.
    pub fn allocation(&self) -> &Allocation {
        &self.0
    }
    /// Another view of the same, so that one can be undone when the other was given away.
    #[must_use]
    pub fn again(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
    /// The command is on its way: importers are told.
    pub fn announce(&self) {
        announce(&self.0);
    }
    /// Nothing was enqueued: the allocation is C's as before.
    pub fn undo(self) {
        write(|ranges: &mut Ranges| {
            ranges.enter(&self.0);
            self.0.freed.store(false, SeqCst);
        });
    }
}

fn begin_free(context: usize, at: UsmPtr, exportable: bool) -> Result<Arc<Allocation>> {
    let refused = |why: String| Err(Error::new(ErrorCode::InvalidMemObject, why));
    write(|ranges: &mut Ranges| {
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
        match (found.is_exportable(), exportable) {
            (true, false) => {
                return refused(format!(
                    "{at:?} is exportable: free it with urMemoryExportFreeExportableMemoryExp"
                ));
            }
            (false, true) => {
                return refused(format!("{at:?} is not exportable: free it with urUSMFree"));
            }
            _ => {}
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

/// One open of an allocation in the process that made it: keeps its pages, freed or not.
#[derive(Debug)]
pub struct Hold(Arc<Allocation>);
impl Hold {
    /// The live allocation that is called `object`.
    pub fn of(object: u64) -> Option<Self> {
        write(|ranges: &mut Ranges| {
            let found = ranges.named(object)?;
            found.holds.fetch_add(1, Relaxed); // under the lock
            Some(Self(Arc::clone(found)))
        })
    }
    /// What it holds.
    pub fn allocation(&self) -> &Allocation {
        &self.0
    }
}
impl Drop for Hold {
    fn drop(&mut self) {
        let last = write(|ranges: &mut Ranges| {
            let others = self.0.holds.fetch_sub(1, Relaxed) - 1; // under the lock
            let gone = others == 0 && self.0.is_freed();
            gone.then(|| ranges.remove(self.0.base))
        });
        drop(last);
    }
}

/// Another process's memory in this one's registry, for as long as this lives.
#[derive(Debug)]
pub struct OpenedMemory(Arc<Allocation>);
impl OpenedMemory {
    /// Enters `bytes` at `offset` bytes into `mapping`.
    ///
    /// # Errors
    /// `INVALID_SIZE` where that leaves the address space.
    pub fn new(mapping: Mapping, offset: usize, bytes: usize, device: usize) -> Result<Self> {
        let base = mapping.base().offset(offset)?;
        let home = Home { device, ..Home::default() };
        let memory = Memory::Opened { _mapping: mapping };
        Ok(Self(enter(Allocation::new(base, bytes, Usm::Device, home, memory))))
    }
    /// The whole of the object.
    pub fn allocation(&self) -> &Allocation {
        &self.0
    }
}
impl Drop for OpenedMemory {
    fn drop(&mut self) {
        leave(&self.0);
    }
}

impl pool::Passed for Passed {
    fn passed(&self) -> bool {
        self.has_passed()
    }
}

/// The allocation that has the byte at `at`, opened ones and such as are freed and open included.
pub fn find(at: UsmPtr) -> Option<Arc<Allocation>> {
    allocations::find(at)
}
/// Whether the allocation called `object` is there and not freed.
pub fn is_live(object: u64) -> bool {
    allocations::is_live::<Allocation>(object)
}
/// Whether `[at, at + bytes)` shares a byte with an allocation.
pub fn touches(at: UsmPtr, bytes: usize) -> bool {
    allocations::touches::<Allocation>(at, bytes)
}
/// Gives back the memory that was freed while commands used it, if they have ended.
pub fn sweep() {
    limbo::sweep();
}

#[cfg(test)]
mod tests;
