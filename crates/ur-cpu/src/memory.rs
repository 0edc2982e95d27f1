//! The CPU's memory is the system's.
use super::{
    Cpu,
    backing::{ALIGNMENT, Block},
    bytes,
    device::{DriverContext, DriverDevice},
    host::host,
};
use std::sync::Arc;
use ur_hal::{Address, Allocates, MemoryRequest, Range, Result};
use ur_system::usm::OverSystem;

ur_system::system_memory!(Cpu);
impl OverSystem for Cpu {
    fn block_of(block: &Block) -> Option<&Block> {
        Some(block)
    }
}
impl Allocates for Cpu {
    ur_system::takes_from_store!();
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

#[cfg(test)]
mod tests;
