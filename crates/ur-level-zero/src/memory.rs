//! What the allocations of this driver consist of, and how others open them. Whose they are and how they are freed is
//! the core's, where memory comes from `backing.rs`'s, what other processes see of it `share.rs`'s.
use super::{
    DriverDevice, LevelZero,
    backing::Chunk,
    native::ipc::Handle,
    opened::Whole,
    registry::registry,
    sync_point::{self, Moment},
};
use std::sync::Arc;
use ur_adapter::{
    error::{Error, ErrorCode, Result},
    memory::UsmPtr,
    object::Backend,
    pool,
};
use ur_core::memory::{
    allocation::{self, DeferredItem, Home, Pooled, Usm},
    allocations::Allocations,
    deferred_free::DeferredFree,
};
use ur_core::over_driver::usm_pool::Chunks;
use ur_hal::{Access, Range};

/// One allocation, or the whole of an object that was opened.
pub type Allocation = allocation::Allocation<Memory>;
/// What waits for commands and for other processes.
pub(super) type Deferred = DeferredFree<Moment, DeferredItem<Memory>>;

/// What an allocation consists of.
#[derive(Debug)]
pub enum Memory {
    /// Cut from a pool of ours.
    Pooled(Pooled<Chunks<LevelZero>>),
    /// A chunk of its own, made to be exported to other APIs.
    Exportable(Chunk),
    /// Another process's.
    Opened(Arc<Whole>),
}
impl Memory {
    /// The device that has it, of which C need not hold a reference; of what was opened, only its handle is known.
    pub(super) fn device(&self) -> Option<&Arc<DriverDevice>> {
        match self {
            Self::Pooled(part) => Some(part.block().chunk().device()),
            Self::Exportable(chunk) => Some(chunk.device()),
            Self::Opened(_) => None,
        }
    }
    /// The chunk of memory that was made to be exported.
    pub(super) fn exportable(&self) -> Option<&Chunk> {
        match self {
            Self::Exportable(chunk) => Some(chunk),
            _ => None,
        }
    }
}
impl allocation::Memory for Memory {
    const BACKEND: Backend = Backend::LevelZero;
    type Source = Chunks<LevelZero>;
    type Moment = Moment;
    fn allocations() -> &'static Allocations<Allocation> {
        &registry().get().ranges
    }
    fn deferred() -> &'static Deferred {
        &registry().get().deferred
    }
    fn submitted(context: usize) -> Vec<Moment> {
        sync_point::submitted(context, 0)
    }
    fn pooled(part: Pooled<Chunks<LevelZero>>) -> Self {
        Self::Pooled(part)
    }
    fn is_opened(&self) -> bool {
        matches!(self, Self::Opened(_))
    }
    fn is_exportable(&self) -> bool {
        self.exportable().is_some()
    }
    fn check_elsewhere(range: Range, needs: Access) -> Result<()> {
        ur_core::over_driver::physical_mem::reserved::<LevelZero>().check_mapped(range, needs)
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
/// How others can open it, of which it is told here that they may.
///
/// # Errors
/// As for [`Chunk::behind`].
pub(super) fn exposed(found: &Allocation) -> Result<Exposed> {
    let (chunk, base) = match found.expose() {
        Some(Memory::Pooled(part)) => (part.block().chunk(), part.block().offset()),
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
/// Enters device memory that other APIs can be given.
pub(super) fn adopt(home: Home, bytes: usize, chunk: Chunk) -> UsmPtr {
    let base = pool::Chunk::base(&chunk);
    Allocation::enter(base, bytes, Usm::Device, home, Memory::Exportable(chunk)).base()
}
