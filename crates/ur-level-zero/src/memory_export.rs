//! Device memory that can be exported to other programs and APIs as a file descriptor. Each such allocation
//! has a chunk of its own.
use super::{
    DriverDevice, LevelZero,
    backing::Chunk,
    context::DriverContext,
    native::{device as native, ipc, memory::Sort},
};
use std::{os::fd::OwnedFd, sync::Arc};
use ur_hal::{DescriptorKind, ExportsMemory, Result};
use ze_sys::{ZE_EXTERNAL_MEMORY_TYPE_FLAG_DMA_BUF, ZE_EXTERNAL_MEMORY_TYPE_FLAG_OPAQUE_FD};

/// The driver's flag for a kind of descriptor.
fn flag(kind: DescriptorKind) -> u32 {
    match kind {
        DescriptorKind::Opaque => ZE_EXTERNAL_MEMORY_TYPE_FLAG_OPAQUE_FD,
        DescriptorKind::DmaBuf => ZE_EXTERNAL_MEMORY_TYPE_FLAG_DMA_BUF,
    }
}
impl ExportsMemory for LevelZero {
    type Exportable = Chunk;
    fn descriptor_kinds(device: &Arc<DriverDevice>) -> Result<Vec<DescriptorKind>> {
        let offered = native::external(device.raw())?.memoryAllocationExportTypes;
        let all = [DescriptorKind::Opaque, DescriptorKind::DmaBuf];
        Ok(all.into_iter().filter(|kind| flag(*kind) & offered != 0).collect())
    }
    fn exportable(
        context: &DriverContext,
        device: &Arc<DriverDevice>,
        kind: DescriptorKind,
        bytes: usize,
        align: usize,
    ) -> Result<Chunk> {
        Chunk::of_sort(Sort::Exportable(flag(kind)), context.native(), device, bytes, align)
    }
    fn descriptor(memory: &Chunk, kind: DescriptorKind) -> Result<OwnedFd> {
        ipc::exported(memory.piece(), flag(kind))
    }
}
