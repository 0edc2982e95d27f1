//! USM: chunks for the core's pools, and host memory that the application registers.
use super::{
    DriverDevice, LevelZero,
    backing::{ALIGNMENT, Chunk},
    context::DriverContext,
    crossing::{Ends, line},
    foreign,
    native::{self, memory::Imported},
    options,
};
use std::sync::Arc;
use ur_hal::{Access, Address, Allocates, KnownMemory, MemoryRequest, Pins, Range, Result};

impl Allocates for LevelZero {
    const LARGEST_ALIGNMENT: usize = ALIGNMENT;
    const ROW: usize = 512;
    const SIZE_HINT: &str = " (UR_L0_ENABLE_RELAXED_ALLOCATION_LIMITS=1 lifts that limit)";
    /// Enough for every type of a kernel, and a cache line.
    fn natural_alignment(_: usize) -> usize {
        128
    }
    fn memory_size(device: &Arc<DriverDevice>) -> Result<usize> {
        let memories = native::device::memories(device.raw())?;
        Ok(memories.iter().map(|memory| memory.totalSize as usize).sum())
    }
    fn largest_allocation(device: &Arc<DriverDevice>) -> Result<usize> {
        Ok(match options().relaxed_limits {
            true => isize::MAX as usize, // the driver decides
            false => device.properties().maxMemAllocSize as usize,
        })
    }
    /// The environment can ask for an allocation of the driver each time.
    fn is_pooled() -> bool {
        options().pools
    }
    fn allocate(
        context: &DriverContext,
        device: &Arc<DriverDevice>,
        MemoryRequest { kind, bytes, align, .. }: MemoryRequest,
    ) -> Result<Chunk> {
        let (lists, devices) = (context.utility_lists(), context.devices());
        Chunk::take(kind, lists, device, devices, bytes, align)
    }
    fn recognise(
        context: &DriverContext,
        at: Address,
    ) -> Result<Option<KnownMemory<Arc<DriverDevice>>>> {
        foreign::recognise(context, at)
    }
    fn zero(context: &DriverContext, device: &Arc<DriverDevice>, range: Range) -> Result<()> {
        let (at, bytes) = (range.start().get(), range.bytes());
        context.utility_lists().with(device, |list| list.fill(at, &[0], bytes))
    }
    fn copy(context: &DriverContext, to: Address, from: Address, bytes: usize) -> Result<()> {
        let (device, ends) = (&context.devices()[0], (to.get(), from.get()));
        if let Some(ways) = Ends::beyond(context.utility_lists(), device, ends)? {
            return ways.copy((line(ends.0), line(ends.1)), (bytes, 1, 1));
        }
        context.utility_lists().with(device, |list| list.copy(ends.0, ends.1, bytes))
    }
}
/// Host memory that the application allocated is imported by the driver.
impl Pins for LevelZero {
    type Pinned = Imported;
    /// The driver has no read-only imports.
    fn pin(context: &DriverContext, host: Range, _: Access) -> Result<Imported> {
        let (platform, start) = (context.platform().raw(), host.start().get() as u64);
        Imported::new(platform, context.native(), start, host.bytes())
    }
}
