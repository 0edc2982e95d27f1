//! What the allocations of a driver consist of. `memory/allocation.rs` keeps and frees them.
use super::{
    physical_mem::reserved,
    usm_pool::{Chunks, HasUsm},
};
use crate::memory::{
    allocation::{self, Allocation, Home, OfProcess, Pooled, Usm},
    ordered::Ordered,
};
use ur_adapter::{error::Result, memory::UsmPtr, object::Backend};
use ur_hal::{Access, Export, Memory as _, Range, Travels};

/// What an allocation consists of.
#[derive(Debug)]
pub enum Memory<D: HasUsm> {
    /// A block of a chunk of a pool.
    Pooled(Pooled<Chunks<D>>),
    /// Memory of its own.
    Alone(D::Allocation),
    /// Memory of its own that callers may export to other APIs.
    Exportable(D::Allocation),
    /// Memory that a stream allocated in its order.
    Ordered(Ordered<D::Allocation>),
    /// Memory of another process.
    Opened(D::Opened),
}
impl<D: HasUsm> allocation::Memory for Memory<D> {
    const BACKEND: Backend = D::BACKEND;
    type Source = Chunks<D>;
    type Moment = D::Moment;
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
    fn is_opened(&self) -> bool {
        matches!(self, Self::Opened(_))
    }
    fn is_reused(&self) -> bool {
        match self {
            Self::Alone(memory) | Self::Exportable(memory) => D::is_reused(memory),
            Self::Pooled(_) | Self::Ordered(_) => true,
            Self::Opened(_) => false,
        }
    }
    fn ordered(memory: Ordered<D::Allocation>) -> Option<Self> {
        Some(Self::Ordered(memory))
    }
    fn as_ordered(&self) -> Option<&Ordered<D::Allocation>> {
        match self {
            Self::Ordered(memory) => Some(memory),
            _ => None,
        }
    }
    fn is_exportable(&self) -> bool {
        matches!(self, Self::Exportable(_))
    }
    fn is_read_only(&self) -> bool {
        matches!(self, Self::Opened(opened) if D::is_read_only(opened))
    }
    fn check_elsewhere(range: Range, needs: Access) -> Result<()> {
        reserved::<D>().check_mapped(range, needs)
    }
}
impl<D: HasUsm> Memory<D> {
    /// The allocation of the driver that it is, or is a part of, and its offset in that in bytes.
    pub fn within(&self) -> Option<(&D::Allocation, usize)> {
        match self {
            Self::Pooled(part) => Some((part.block().chunk(), part.block().offset())),
            Self::Alone(memory) | Self::Exportable(memory) => Some((memory, 0)),
            Self::Ordered(_) | Self::Opened(_) => None,
        }
    }
}
/// Marks an allocation as shared; returns what other processes need to open it.
///
/// # Errors
/// `INVALID_VALUE` for memory that cannot be shared. Returns the driver's error, mapped as in `error.rs`.
pub fn export<D: HasUsm>(found: &Allocation<Memory<D>>) -> Result<Travels> {
    let refused = |why| ur_hal::Error::new(ur_hal::ErrorKind::InvalidValue, why);
    let memory = found.expose();
    if let Some(Memory::Ordered(ordered)) = memory {
        let memory = ordered.memory();
        let memory = memory.as_ref().ok_or_else(|| refused("the memory was freed"))?;
        return Ok(D::export(Export::Memory(memory, 0))?);
    }
    let opened = || refused("memory that was opened is shared by its exporter");
    let (memory, offset) = memory.and_then(Memory::within).ok_or_else(opened)?;
    Ok(D::export(Export::Memory(memory, offset))?)
}
/// Registers memory of its own; `bytes` is the size that the caller requested.
pub fn enter<D: HasUsm>(
    memory: D::Allocation,
    usm: Usm,
    (home, bytes): (Home, usize),
    of: fn(D::Allocation) -> Memory<D>,
) -> UsmPtr {
    let base = memory.range().start().into();
    Allocation::enter(base, bytes, usm, home, of(memory)).base()
}
