//! Memory. The core has pools, limits, queries, deferred free, buffers and all entries; `ur-system` has the system's memory,
//! how it is mapped at reserved addresses, and how processes share it. Here is what neither can know.
use super::{Example, device::Context};
use std::convert::Infallible;
use ur_adapter::{error::Result, memory::UsmPtr, object::Borrowed};
use ur_core::{
    over_driver::usm_pool::HasUsm,
    program::{HasCode, RunsCode},
};
use ur_hal::{Allocates, MakesBuffers, MakesImages, MakesSamplers, MemoryRequest, Modules};
use ur_system::{
    backing::{ALIGNMENT, Block},
    bytes,
    usm::OverSystem,
};

/// How much memory the device says that it has, in bytes.
pub const TOTAL: usize = 1 << 30;

// Sharing, virtual memory, exports to other APIs.
ur_system::system_memory!(Example);
impl OverSystem for Example {
    fn block_of(chunk: &Block) -> Option<&Block> {
        Some(chunk)
    }
}
/// The driver's verb: memory in one piece.
impl Allocates for Example {
    type Ordered = Infallible;
    fn allocate((): &(), (): &(), request: MemoryRequest) -> ur_hal::Result<Block> {
        Ok(Block::of_request(request)?)
    }
}
impl HasUsm for Example {
    const LARGEST_ALIGNMENT: usize = ALIGNMENT;
    type DriverPools = ();
    fn memory_size((): &()) -> Result<usize> {
        Ok(TOTAL)
    }
    fn zero((): &(), (): &(), at: UsmPtr, size: usize) -> Result<()> {
        bytes::fill(at, &[0], size);
        Ok(())
    }
    fn copy(_: Borrowed<'_, Context>, to: UsmPtr, from: UsmPtr, size: usize) -> Result<()> {
        bytes::copy(to, from, size);
        Ok(())
    }
}
impl MakesBuffers for Example {
    type Buffer = Infallible;
}

// What the device does not have. The core asks for these traits all the same; their verbs refuse.
impl MakesImages for Example {}
impl MakesSamplers for Example {}
impl Modules for Example {
    type Code = Infallible;
    type Target = Infallible;
    type Module = Infallible;
    type Function = Infallible;
}
impl HasCode for Example {}
impl RunsCode for Example {}
