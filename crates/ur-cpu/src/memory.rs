//! The CPU's memory is the system's.
use super::{
    Cpu,
    backing::Block,
    device::{DriverContext, DriverDevice},
    engine::{Moment, all_queues_sync_point},
};
use std::sync::Arc;
use ur_hal::{Allocates, MemoryRequest};
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
    fn allocate(
        _: &DriverContext,
        _: &Arc<DriverDevice>,
        request: MemoryRequest,
    ) -> ur_hal::Result<Block> {
        Ok(Block::of_request(request)?)
    }
}
/// Frees deferred memory whose commands are complete.
pub fn sweep() {
    usm::sweep::<Cpu>();
}

#[cfg(test)]
mod tests;
