//! Memory. The core has pools, limits, queries, deferred free, buffers and all entries; `ur-system` has the system's memory,
//! how it is mapped at reserved addresses, and how processes share it. Here is what neither can know.
use super::Example;
use std::convert::Infallible;
use ur_hal::{
    Address, Allocates, MakesBuffers, MakesImages, MakesSamplers, MemoryRequest, Modules, Range,
    Result,
};
use ur_system::{
    backing::{ALIGNMENT, Block},
    bytes,
    usm::OverSystem,
};

/// How much memory the device says that it has, in bytes.
const TOTAL: usize = 1 << 30;

// Sharing, virtual memory, exports to other APIs.
ur_system::system_memory!(Example);
impl OverSystem for Example {
    fn block_of(chunk: &Block) -> Option<&Block> {
        Some(chunk)
    }
}
/// The driver's verbs.
impl Allocates for Example {
    const LARGEST_ALIGNMENT: usize = ALIGNMENT;
    fn memory_size((): &()) -> Result<usize> {
        Ok(TOTAL)
    }
    fn allocate((): &(), (): &(), request: MemoryRequest) -> Result<Block> {
        Ok(Block::of_request(request)?)
    }
    fn zero((): &(), (): &(), range: Range) -> Result<()> {
        bytes::fill(range.start(), &[0], range.bytes());
        Ok(())
    }
    fn copy((): &(), to: Address, from: Address, bytes: usize) -> Result<()> {
        bytes::copy(to, from, bytes);
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
}
