//! Memory: where devices reach the system's it is mappings of ours, which processes share, else the driver's. What is freed
//! when, pools and all entries are the core's.
use super::{
    Context, DriverDevice, OpenCl,
    context::DriverContext,
    native::{
        memory::{self as native, Given, Reach},
        queue::{Linked, NativeQueue, QueueKind},
    },
};
use std::sync::Arc;
use ur_adapter::{
    error::{Error, ErrorCode, Result},
    memory::UsmPtr,
    object::Borrowed,
};
use ur_core::over_driver::usm_pool::HasUsm;
use ur_hal::{Address, Allocates, KnownMemory, MemoryRequest, Range};
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
/// What an allocation consists of.
pub type Memory = ur_core::over_driver::memory::Memory<OpenCl>;

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
    fn allocate(
        context: &DriverContext,
        device: &Arc<DriverDevice>,
        request: MemoryRequest,
    ) -> ur_hal::Result<Chunk> {
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
    ) -> ur_hal::Result<Option<KnownMemory<Arc<DriverDevice>>>> {
        let known = native::recognise(context.extensions(), context.native().raw(), at);
        Ok(known.map(|KnownMemory { range, kind, .. }| KnownMemory { range, kind, device: None }))
    }
}
impl HasUsm for OpenCl {
    const LARGEST_ALIGNMENT: usize = ALIGNMENT;
    type DriverPools = ();
    fn check_size(device: &Arc<DriverDevice>, bytes: usize) -> Result<()> {
        check_size(device, bytes, ErrorCode::InvalidUsmSize)
    }
    fn memory_size(device: &Arc<DriverDevice>) -> Result<usize> {
        Ok(usize::try_from(device.facts().memory[0]).unwrap_or(usize::MAX))
    }
    fn zero(
        context: &DriverContext,
        device: &Arc<DriverDevice>,
        at: UsmPtr,
        bytes: usize,
    ) -> Result<()> {
        aside(context, device, |queue| queue.fill((at.into(), &[0], bytes), Linked::default()))
    }
    fn copy(context: Borrowed<'_, Context>, to: UsmPtr, from: UsmPtr, bytes: usize) -> Result<()> {
        copy(context.driver(), to, from, bytes)
    }
}
/// Copies memory beside all queues, and waits until it is done.
///
/// # Errors
/// The driver's own.
pub(super) fn copy(context: &DriverContext, to: UsmPtr, from: UsmPtr, bytes: usize) -> Result<()> {
    if to == from || bytes == 0 {
        return Ok(());
    }
    aside(context, &context.devices()[0], |queue| {
        queue.copy((to.into(), from.into(), bytes), Linked::default())
    })
}
/// Has a queue of its own do something, and waits until it is done.
///
/// # Errors
/// The driver's own.
pub(super) fn aside(
    context: &DriverContext,
    device: &DriverDevice,
    what: impl FnOnce(&NativeQueue) -> Result<()>,
) -> Result<()> {
    let kind = QueueKind { is_in_order: true, has_times: false };
    let queue = NativeQueue::new(context.native().raw(), device.raw(), kind, context.extensions())?;
    what(&queue)?;
    queue.finish()
}
/// # Errors
/// `code` for no bytes, and for more than an allocation of the device may have.
pub(super) fn check_size(device: &DriverDevice, bytes: usize, code: ErrorCode) -> Result<()> {
    let most = device.facts().memory[1];
    match bytes > 0 && bytes as u64 <= most {
        true => Ok(()),
        false => {
            let why = format!("{bytes} bytes are none, or more than the {most} there can be");
            Err(Error::new(code, why))
        }
    }
}
