//! The CPU's memory is the system's.
use super::{
    Cpu,
    backing::{ALIGNMENT, Block},
    bytes,
    device::{DriverContext, DriverDevice},
    engine::{Moment, all_queues_sync_point},
    host::host,
};
use std::sync::Arc;
use ur_hal::{Address, Allocates, MemoryRequest, Range, Result};
use ur_system::usm::{self, OverSystem};

/// What an allocation consists of.
pub type Memory = usm::Memory<Cpu>;

ur_system::system_memory!(Cpu);
impl OverSystem for Cpu {
    type Moment = Moment;
    fn moments(context: usize) -> Vec<Moment> {
        all_queues_sync_point(context).into_moments()
    }
    fn block(chunk: &Block) -> Option<&Block> {
        Some(chunk)
    }
}
impl Allocates for Cpu {
    const LARGEST_ALIGNMENT: usize = ALIGNMENT;
    fn memory_size(_: &Arc<DriverDevice>) -> Result<usize> {
        Ok(usize::try_from(host().memory).unwrap_or(usize::MAX))
    }
    fn allocate(_: &DriverContext, _: &Arc<DriverDevice>, request: MemoryRequest) -> Result<Block> {
        Ok(Block::of_request(request)?)
    }
    fn zero(_: &DriverContext, _: &Arc<DriverDevice>, range: Range) -> Result<()> {
        bytes::fill(range.start(), &[0], range.bytes());
        Ok(())
    }
    fn copy(_: &DriverContext, to: Address, from: Address, bytes: usize) -> Result<()> {
        bytes::copy(to, from, bytes);
        Ok(())
    }
}
/// Frees deferred memory whose commands are complete.
pub fn sweep() {
    usm::sweep::<Cpu>();
}

#[cfg(test)]
mod tests;
