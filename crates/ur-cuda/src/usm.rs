//! USM: chunks for the core's pools, and host memory that the application registers.
use super::{
    DriverDevice, Family,
    backing::{ALIGNMENT, Chunk},
    context::DriverContext,
    driver::Dialect,
    foreign,
    native::memory::{self, Registered},
};
use std::sync::Arc;
use ur_hal::{Access, Address, Allocates, KnownMemory, MemoryRequest, Pins, Range, Result};

impl<D: Dialect> Allocates for Family<D> {
    const LARGEST_ALIGNMENT: usize = ALIGNMENT;
    const ROW: usize = 512;
    /// The driver guarantees at least this.
    fn natural_alignment(_: usize) -> usize {
        256
    }
    fn memory_size(device: &Arc<DriverDevice<D>>) -> Result<usize> {
        device.memory()
    }
    fn allocate(
        context: &DriverContext<D>,
        device: &Arc<DriverDevice<D>>,
        MemoryRequest { kind, bytes, align, .. }: MemoryRequest,
    ) -> Result<Chunk<D>> {
        Chunk::take(kind, device, context.devices(), bytes, align)
    }
    fn recognise(
        context: &DriverContext<D>,
        at: Address,
    ) -> Result<Option<KnownMemory<Arc<DriverDevice<D>>>>> {
        foreign::recognise(context, at)
    }
    fn zero(_: &DriverContext<D>, device: &Arc<DriverDevice<D>>, range: Range) -> Result<()> {
        memory::zero(device, range.start().get() as u64, range.bytes())
    }
    fn copy(context: &DriverContext<D>, to: Address, from: Address, bytes: usize) -> Result<()> {
        memory::copy(&context.devices()[0], to.get() as u64, from.get() as u64, bytes)
    }
    /// Of pinned, managed and classic device memory the driver waits for the context.
    fn waits_when_freed(chunk: &Chunk<D>) -> bool {
        chunk.goes_when_idle()
    }
}
/// Host memory that the application allocated is pinned and mapped for all devices.
impl<D: Dialect> Pins for Family<D> {
    type Pinned = Registered<D>;
    fn pin(context: &DriverContext<D>, host: Range, access: Access) -> Result<Registered<D>> {
        let (at, is_read_only) = (host.start().get() as u64, access == Access::Read);
        Registered::new(&context.devices()[0], at, host.bytes(), is_read_only)
    }
}
