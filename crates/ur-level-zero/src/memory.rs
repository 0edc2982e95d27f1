//! What the allocations of this backend consist of, and what other processes need to open them. `ur-core`
//! keeps and frees allocations; memory is allocated in `backing.rs` and exported in `share.rs`.
use super::{
    DriverDevice, LevelZero,
    backing::Chunk,
    native::ipc::Handle,
    opened::Whole,
    sync_point::{self, Moment},
};
use std::sync::Arc;
use ur_adapter::{
    error::{Error, ErrorCode, Result},
    memory::UsmPtr,
    object::Backend,
    pool,
};
use ur_core::memory::allocation::{self, Home, OfProcess, Pooled, Usm};
use ur_core::over_driver::usm_pool::Chunks;
use ur_hal::{Access, Range};
use ur_mapping::PerProcess;

/// One allocation, or the whole of an imported object.
pub type Allocation = allocation::Allocation<Memory>;
/// Memory of another process. All devices that can access the exporter's device can use it without further calls.
pub type OpenedMemory = allocation::Registered<Memory>;

/// What an allocation consists of.
#[derive(Debug)]
pub enum Memory {
    /// A part of a chunk of a pool of this adapter.
    Pooled(Pooled<Chunks<LevelZero>>),
    /// A chunk of its own, allocated for export to other APIs.
    Exportable(Chunk),
    /// Memory that was opened from another process.
    Opened(Arc<Whole>),
}
impl Memory {
    /// The device that it was allocated on, even if the application released its handle; `None` for imported
    /// memory, of whose device only the handle is known.
    pub(super) fn device(&self) -> Option<&Arc<DriverDevice>> {
        match self {
            Self::Pooled(part) => Some(part.block().chunk().device()),
            Self::Exportable(chunk) => Some(chunk.device()),
            Self::Opened(_) => None,
        }
    }
    /// The chunk, if it was allocated for export.
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
    fn of_process() -> &'static OfProcess<Self> {
        static MEMORY: PerProcess<OfProcess<Memory>> = PerProcess::new();
        MEMORY.get()
    }
    fn submitted(context: usize, since: u64) -> Vec<Moment> {
        sync_point::submitted(context, since)
    }
    fn is_of_parent() -> bool {
        super::platform::check_fork().is_err()
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
    /// What is needed to open the chunk that it is a part of.
    pub(super) behind: Arc<Handle>,
    /// The offset in bytes of the allocation in the memory that is opened.
    pub(super) base: usize,
    /// The bytes of the memory that is opened.
    pub(super) exposes: usize,
    /// The UUID of its device.
    pub(super) device: [u8; 16],
}
/// How other processes open the allocation. Marks it as shared.
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
/// Registers device memory that was allocated for export to other APIs.
pub(super) fn adopt(home: Home, bytes: usize, chunk: Chunk) -> UsmPtr {
    let base = pool::Chunk::base(&chunk);
    Allocation::enter(base, bytes, Usm::Device, home, Memory::Exportable(chunk)).base()
}
