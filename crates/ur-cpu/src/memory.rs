//! The CPU's memory is the system's.
use super::{
    Cpu,
    backing::Block,
    device::{DriverContext, DriverDevice},
};
use std::sync::Arc;
use ur_hal::{Allocates, MemoryRequest};
use ur_system::usm::OverSystem;

ur_system::system_memory!(Cpu);
impl OverSystem for Cpu {
    fn block_of(block: &Block) -> Option<&Block> {
        Some(block)
    }
}
impl Allocates for Cpu {
    ur_system::takes_from_store!();
    fn allocate(
        _: &DriverContext,
        _: &Arc<DriverDevice>,
        request: MemoryRequest,
    ) -> ur_hal::Result<Block> {
        Ok(Block::of_request(request)?)
    }
}

#[cfg(test)]
mod tests;
