//! Which addresses are USM, and whose: one registry for the process, since pointers are the process's.
//! Any address inside an allocation finds it. Where memory comes from is `backing.rs`'s, when it goes
//! back `limbo.rs`'s, what other processes see of it `share.rs`'s.
use super::{
    Context, LevelZero,
    backing::Chunk,
    limbo::{self, Kept, Spent},
    native::ipc::{Handle, OpenedHandle},
    registry::registry,
    usm_pool::{Chunks, UsmBlocks},
};
pub(super) use crate::memory::allocations::{enter, leave};
use crate::memory::{
    allocations::{self, Allocated, Allocations, Entries, write},
    limbo::is_for_room,
};
pub(super) use crate::over_driver::next_object;
use crate::over_driver::number_of;
use std::sync::{
    Arc,
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
    /// The host's.
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
pub(super) enum Memory {
    /// Cut from a pool of ours.
    Pooled(Pooled),
    /// A chunk of its own, made to be exported to other APIs.
    Exportable(Chunk),
    /// Another process's.
    Opened(#[expect(dead_code, reason = "held to be dropped")] OpenedHandle),
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
/// How other processes open the memory of an allocation.
#[derive(Debug)]
pub(super) struct Exposed {
    /// How to open the chunk that it is a part of.
    pub(super) behind: Arc<Handle>,
    /// Where in the chunk the allocation starts.
    pub(super) base: usize,
    /// How long what is opened is.
    pub(super) exposes: usize,
    /// The UUID of its device.
    pub(super) device: [u8; 16],
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
    /// Taken by drop.
    memory: Option<Memory>,
}
impl Allocation {
    pub(super) fn new(base: UsmPtr, bytes: usize, usm: Usm, home: Home, memory: Memory) -> Self {
        let (exported, freed) = (AtomicBool::new(false), AtomicBool::new(false));
        let (object, holds) = (next_object::<LevelZero>(), AtomicU64::new(0));
        let memory = Some(memory);
        Self { base, bytes, usm, home, object, exported, freed, holds, memory }
    }
    /// The number of the object before whose time no command knew it.
    pub fn since(&self) -> u64 {
        number_of(self.object)
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
        matches!(self.memory, Some(Memory::Opened(_)))
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
    /// As for [`Chunk::behind`].
    pub(super) fn expose(&self) -> Result<Exposed> {
        self.exported.store(true, SeqCst);
        let shared;
        let (chunk, base) = match &self.memory {
            Some(Memory::Pooled(Pooled(block))) => {
                shared = block.shared_chunk();
                (&*shared, block.offset())
            }
            Some(Memory::Exportable(chunk)) => (chunk, 0),
            Some(Memory::Opened(_)) | None => {
                let why = "memory that was opened is shared by its exporter";
                return Err(Error::new(ErrorCode::InvalidValue, why));
            }
        };
        let (behind, before) = chunk.behind()?;
        let (base, exposes) = (before + base, before + pool::Chunk::bytes(chunk));
        Ok(Exposed { behind, base, exposes, device: chunk.device().uuid() })
    }
    /// The chunk of memory that was made to be exported.
    pub(super) fn exportable(&self) -> Option<&Chunk> {
        match &self.memory {
            Some(Memory::Exportable(chunk)) => Some(chunk),
            _ => None,
        }
    }
}
impl Drop for Allocation {
    fn drop(&mut self) {
        let Some(memory) = self.memory.take() else { return };
        if self.exported.load(SeqCst) && !matches!(memory, Memory::Opened(_)) {
            limbo::when_unleased(self.object, Kind::Memory, Kept::Memory(memory));
        }
    }
}

impl Allocated for Allocation {
    const BACKEND: Backend = Backend::LevelZero;
    fn all() -> &'static Allocations<Self> {
        &registry().get().ranges
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
        registry().get().reserved.check_mapped(range)
    }
}
/// The allocations of this process.
type Ranges = Entries<Allocation>;

/// Allocates `bytes`, at least one, at a multiple of `align`, from `pool`.
///
/// # Errors
/// As for [`Pool::take`](pool::Pool::take).
pub(super) fn allocate(
    usm: Usm,
    home: Home,
    bytes: usize,
    align: usize,
    pool: &Arc<UsmBlocks>,
) -> Result<UsmPtr> {
    limbo::sweep();
    let block = pool.take(bytes, align).or_else(|error| match is_for_room(&error) {
        true => {
            limbo::sweep_all();
            pool.take(bytes, align)
        }
        false => Err(error),
    })?;
    let base = block.base()?;
    if pool.source().zeroed {
        let source = pool.source();
        source.asides.with(&source.device, |list| list.fill(base.addr(), &[0], block.bytes()))?;
    }
    let memory = Memory::Pooled(Pooled::new(block));
    Ok(enter(Allocation::new(base, bytes, usm, home, memory)).base)
}
/// Enters device memory that other APIs can be given.
pub(super) fn adopt(home: Home, bytes: usize, chunk: Chunk) -> UsmPtr {
    let base = pool::Chunk::base(&chunk);
    enter(Allocation::new(base, bytes, Usm::Device, home, Memory::Exportable(chunk))).base
}

/// Frees the allocation that starts at `at`. Its memory is used again when the commands enqueued in
/// `context` so far have ended, when it is closed wherever this process opened it, and, if it was
/// shared, when no other process has it open.
///
/// # Errors
/// `INVALID_MEM_OBJECT`, with the reason.
pub fn free(context: &Object<Context>, at: UsmPtr) -> Result<()> {
    Freeing::begin(context, at)?.finish(context);
    Ok(())
}
/// Tells whoever was told of the memory that it is free.
fn announce(freed: &Allocation) {
    if freed.exported.load(SeqCst) {
        ur_adapter::share::freed(freed.object, Kind::Memory);
    }
}

/// An allocation that C may not name any more, and whose memory is in use until a command has run.
/// Dropped, its memory is free.
#[derive(Debug)]
pub struct Freeing(Arc<Allocation>);
impl Freeing {
    /// Takes the allocation that starts at `at` out of C's hands.
    ///
    /// # Errors
    /// `INVALID_MEM_OBJECT`, with the reason.
    pub fn begin(context: &Object<Context>, at: UsmPtr) -> Result<Self> {
        begin_free(context.as_handle().addr(), at).map(Self)
    }
    /// What is freed.
    pub fn allocation(&self) -> &Allocation {
        &self.0
    }
    /// Importers are told, and the memory goes when all commands of the context are over that were
    /// submitted so far, since it was allocated.
    pub fn finish(self, context: &Context) {
        // After it left the registry: a command that found it there is older than this.
        let before = context.queues().ticket(self.0.since());
        announce(&self.0);
        limbo::after(before, Spent::Allocation(self.0));
    }
    /// Nothing was enqueued: the allocation is C's as before.
    pub fn undo(self) {
        write(|ranges: &mut Ranges| {
            ranges.enter(&self.0);
            self.0.freed.store(false, SeqCst);
        });
    }
}

fn begin_free(context: usize, at: UsmPtr) -> Result<Arc<Allocation>> {
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
