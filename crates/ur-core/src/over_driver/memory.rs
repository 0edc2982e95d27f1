//! What the allocations of a driver consist of. `memory/allocation.rs` keeps and frees them.
use super::{
    physical_mem::{HasPhysicalMemory, reserved},
    usm_pool::{Chunks, HasUsm},
};
use crate::memory::{
    allocation::{self, OfProcess, Pooled},
    ordered::Ordered,
};
use ur_adapter::{error::Result, object::Backend};
use ur_hal::{Access, Range};

/// What an allocation consists of.
#[derive(Debug)]
pub enum Memory<D: HasUsm> {
    /// A block of a chunk of a pool.
    Pooled(Pooled<Chunks<D>>),
    /// Memory of its own.
    Whole(D::Allocation),
    /// Memory of its own that callers may export to other APIs.
    Exportable(D::Allocation),
    /// Memory that a stream allocated in its order.
    Ordered(Ordered<D::Allocation>),
    /// Memory of another process.
    Opened(D::Opened),
}
/// A driver whose allocations consist of this.
pub trait HasMemory: HasPhysicalMemory {
    /// The memory of this process, in a static that a forked child does not inherit.
    fn memory() -> &'static OfProcess<Memory<Self>>;
}
impl<D: HasMemory> allocation::Memory for Memory<D> {
    const BACKEND: Backend = D::BACKEND;
    type Source = Chunks<D>;
    type Moment = D::Moment;
    type Opened = D::Opened;
    fn of_process() -> &'static OfProcess<Self> {
        D::memory()
    }
    fn submitted(context: usize, since: u64) -> Vec<D::Moment> {
        D::moments(context, since)
    }
    fn is_of_parent() -> bool {
        D::check_fork().is_err()
    }
    fn pooled(part: Pooled<Chunks<D>>) -> Self {
        Self::Pooled(part)
    }
    fn whole(memory: D::Allocation, is_exportable: bool) -> Self {
        if is_exportable { Self::Exportable(memory) } else { Self::Whole(memory) }
    }
    fn opened(memory: D::Opened) -> Self {
        Self::Opened(memory)
    }
    fn ordered(memory: Ordered<D::Allocation>) -> Self {
        Self::Ordered(memory)
    }
    fn within(&self) -> Option<(&D::Allocation, usize)> {
        match self {
            Self::Pooled(part) => Some((part.block().chunk(), part.block().offset())),
            Self::Whole(memory) | Self::Exportable(memory) => Some((memory, 0)),
            Self::Ordered(_) | Self::Opened(_) => None,
        }
    }
    fn as_opened(&self) -> Option<&D::Opened> {
        match self {
            Self::Opened(opened) => Some(opened),
            _ => None,
        }
    }
    fn as_ordered(&self) -> Option<&Ordered<D::Allocation>> {
        match self {
            Self::Ordered(memory) => Some(memory),
            _ => None,
        }
    }
    fn is_reused(&self) -> bool {
        match self {
            Self::Whole(memory) | Self::Exportable(memory) => D::is_reused(memory),
            Self::Pooled(_) | Self::Ordered(_) => true,
            Self::Opened(_) => false,
        }
    }
    fn is_exportable(&self) -> bool {
        matches!(self, Self::Exportable(_))
    }
    fn is_read_only(&self) -> bool {
        self.as_opened().is_some_and(D::is_read_only)
    }
    fn check_elsewhere(range: Range, needs: Access) -> Result<()> {
        reserved::<D>().check_mapped(range, needs)
    }
}
