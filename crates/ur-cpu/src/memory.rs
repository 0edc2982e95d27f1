//! What the CPU's allocations consist of, and what other processes need to open them. `ur-core` keeps and
//! frees allocations; memory is allocated in `ur-system/src/backing.rs` and exported in `share.rs`.
use super::{
    Cpu,
    backing::{Behind, Block},
    engine::{Moment, all_queues_sync_point},
    mapping::{Side, Writers},
};
use std::sync::Arc;
use ur_adapter::{error::Result, memory::UsmPtr, object::Backend};
use ur_core::memory::{
    allocation::{self, DeferredItem, Home, Pooled, Usm},
    allocations::Allocations,
    deferred_free::{self, DeferredFree},
};
use ur_core::over_driver::{physical_mem, usm_pool};
use ur_hal::{Access, MemoryKind, Range};
use ur_mapping::PerProcess;
use ur_system::opened::Mapped;

/// The source of the chunks of pools.
type Chunks = usm_pool::Chunks<Cpu>;
/// One allocation, or the whole of an imported object.
pub type Allocation = allocation::Allocation<Memory>;

/// What an allocation consists of.
#[derive(Debug)]
pub enum Memory {
    /// A block of the process's store.
    Block(Block),
    /// A part of a chunk of a pool.
    Pooled(Pooled<Chunks>),
    /// Memory with a descriptor of its own, which the application may export.
    Exportable(Block),
    /// Memory that was opened from another process.
    Opened {
        /// Its mapping.
        mapping: Mapped,
    },
}
impl allocation::Memory for Memory {
    const BACKEND: Backend = Backend::Cpu;
    type Source = Chunks;
    type Moment = Moment;
    fn allocations() -> &'static Allocations<Allocation> {
        static ALL: PerProcess<Allocations<Allocation>> = PerProcess::new();
        ALL.get()
    }
    fn deferred() -> &'static DeferredFree<Moment, DeferredItem<Self>> {
        static ALL: PerProcess<DeferredFree<Moment, DeferredItem<Memory>>> = PerProcess::new();
        ALL.get()
    }
    fn submitted(context: usize) -> Vec<Moment> {
        all_queues_sync_point(context).into_moments()
    }
    fn pooled(part: Pooled<Chunks>) -> Self {
        Self::Pooled(part)
    }
    fn is_opened(&self) -> bool {
        matches!(self, Self::Opened { .. })
    }
    fn is_reused(&self) -> bool {
        match self {
            Self::Block(block) | Self::Exportable(block) => block.is_recycled(),
            Self::Pooled(_) => true,
            Self::Opened { .. } => false,
        }
    }
    fn check_elsewhere(range: Range, needs: Access) -> Result<()> {
        physical_mem::reserved::<Cpu>().check_mapped(range, needs)
    }
    fn is_read_only(&self) -> bool {
        matches!(self, Self::Opened { mapping } if mapping.is_read_only())
    }
    fn is_exportable(&self) -> bool {
        matches!(self, Self::Exportable(_))
    }
}
/// How other processes open an allocation. Marks it as shared.
pub(super) fn exposed(found: &Allocation) -> Option<Behind> {
    match found.expose()? {
        Memory::Block(block) | Memory::Exportable(block) => block.behind(),
        Memory::Pooled(part) => {
            let block = part.block();
            block.chunk().behind().map(|behind| behind.offset(block.offset()))
        }
        Memory::Opened { .. } => None,
    }
}
/// Allocates `bytes`, at least one, at a multiple of `align`, from the process's store.
///
/// # Errors
/// As for [`Block::take`].
pub(super) fn allocate(usm: Usm, home: Home, bytes: usize, align: usize) -> Result<UsmPtr> {
    deferred_free::sweep::<Memory>();
    let block = Block::take(Side::from(MemoryKind::from(usm)), bytes, align)?;
    Ok(Allocation::enter(block.base(), bytes, usm, home, Memory::Block(block)).base())
}
/// Allocates device memory with a descriptor of its own; `writers` are the processes that may write it.
///
/// # Errors
/// As for [`Block::alone`].
pub(super) fn allocate_alone(
    home: Home,
    bytes: usize,
    align: usize,
    writers: Writers,
) -> Result<UsmPtr> {
    deferred_free::sweep::<Memory>();
    let block = Block::alone(bytes, align, writers)?;
    let (base, memory) = (block.base(), Memory::Block(block));
    Ok(Allocation::enter(base, bytes, Usm::Device, home, memory).base())
}
/// Allocates device memory with a descriptor of its own, for export by the application.
///
/// # Errors
/// As for [`Block::alone`].
pub(super) fn allocate_exportable(home: Home, bytes: usize, align: usize) -> Result<UsmPtr> {
    deferred_free::sweep::<Memory>();
    let block = Block::alone(bytes, align, Writers::Everyone)?;
    let (base, memory) = (block.base(), Memory::Exportable(block));
    Ok(Allocation::enter(base, bytes, Usm::Device, home, memory).base())
}
/// Frees deferred memory whose commands are complete.
pub fn sweep() {
    deferred_free::sweep_all::<Memory>();
}

/// The registration of imported memory; dropping it ends the registration.
#[derive(Debug)]
pub struct OpenedMemory(Arc<Allocation>);
impl OpenedMemory {
    /// Registers `bytes` at `offset` bytes in `mapping`.
    ///
    /// # Errors
    /// `INVALID_SIZE` on address overflow.
    pub(super) fn new(mapping: Mapped, offset: usize, bytes: usize, device: usize) -> Result<Self> {
        let base = mapping.base().offset(offset)?;
        let home = Home { device, ..Home::default() };
        let memory = Memory::Opened { mapping };
        Ok(Self(Allocation::enter(base, bytes, Usm::Device, home, memory)))
    }
    /// The whole of the object.
    pub fn allocation(&self) -> &Allocation {
        &self.0
    }
}
impl Drop for OpenedMemory {
    fn drop(&mut self) {
        ur_core::memory::allocations::leave(&self.0);
    }
}

#[cfg(test)]
mod tests;
