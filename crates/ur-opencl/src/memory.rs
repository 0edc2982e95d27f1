//! Memory: where devices reach the system's it is mappings of ours, which processes share, else the driver's. What is freed
//! when, pools and all entries are the core's.
use super::{
    DriverDevice, OpenCl,
    context::DriverContext,
    native::{
        memory::{self as native, Given, Reach},
        queue::{Linked, NativeQueue, QueueKind},
    },
};
use std::sync::Arc;
use ur_hal::{Address, Allocates, KnownMemory, MemoryRequest, Range, Result};
use ur_system::{
    backing::{ALIGNMENT, Block},
    usm::OverSystem,
};

/// Memory in one piece.
#[derive(Debug)]
pub enum Chunk {
    /// Ours.
    System(Block),
    /// The driver's.
    Given(Given),
}
impl ur_hal::Memory for Chunk {
    fn range(&self) -> Range {
        match self {
            Self::System(block) => block.range(),
            Self::Given(given) => given.range(),
        }
    }
}
impl From<Block> for Chunk {
    fn from(block: Block) -> Self {
        Self::System(block)
    }
}
ur_system::system_memory!(OpenCl);
impl OverSystem for OpenCl {
    fn block_of(chunk: &Chunk) -> Option<&Block> {
        match chunk {
            Chunk::System(block) => Some(block),
            Chunk::Given(_) => None,
        }
    }
    fn is_reached(device: &Arc<DriverDevice>) -> bool {
        device.facts().can.reach == Reach::System
    }
    fn is_reached_by_all(context: &DriverContext) -> bool {
        context.reach() == Reach::System
    }
}
impl Allocates for OpenCl {
    ur_system::takes_from_store!();
    const LARGEST_ALIGNMENT: usize = ALIGNMENT;
    fn memory_size(device: &Arc<DriverDevice>) -> Result<usize> {
        Ok(usize::try_from(device.facts().memory[0]).unwrap_or(usize::MAX))
    }
    fn largest_allocation(device: &Arc<DriverDevice>) -> Result<usize> {
        Ok(usize::try_from(device.facts().memory[1]).unwrap_or(usize::MAX))
    }
    fn allocate(
        context: &DriverContext,
        device: &Arc<DriverDevice>,
        request: MemoryRequest,
    ) -> Result<Chunk> {
        let (reach, raw) = (context.reach(), device.raw());
        Ok(match reach {
            Reach::System => Chunk::System(Block::of_request(request)?),
            _ => Chunk::Given(Given::new(
                reach,
                context.extensions(),
                context.native(),
                raw,
                request,
            )?),
        })
    }
    fn recognise(
        context: &DriverContext,
        at: Address,
    ) -> Result<Option<KnownMemory<Arc<DriverDevice>>>> {
        let known = native::recognise(context.extensions(), context.native().raw(), at);
        Ok(known.map(|KnownMemory { range, kind, .. }| KnownMemory { range, kind, device: None }))
    }
    fn zero(context: &DriverContext, device: &Arc<DriverDevice>, range: Range) -> Result<()> {
        let (at, bytes) = (range.start(), range.bytes());
        aside(context, device, |queue| queue.fill((at, &[0], bytes), Linked::default()))
    }
    fn copy(context: &DriverContext, to: Address, from: Address, bytes: usize) -> Result<()> {
        if to == from || bytes == 0 {
            return Ok(());
        }
        aside(context, &context.devices()[0], |queue| {
            queue.copy((to, from, bytes), Linked::default())
        })
    }
}
/// Has a queue of its own do something, and waits until it is done.
///
/// # Errors
/// The driver's own.
fn aside(
    context: &DriverContext,
    device: &DriverDevice,
    what: impl FnOnce(&NativeQueue) -> Result<()>,
) -> Result<()> {
    let kind = QueueKind { is_in_order: true, has_times: false };
    let queue = NativeQueue::new(context.native().raw(), device.raw(), kind, context.extensions())?;
    what(&queue)?;
    queue.finish()
}
