//! Device memory that can be exported to other programs and APIs as a file descriptor. Each such allocation
//! has a chunk of its own.
use super::{
    DriverDevice, LevelZero,
    backing::Chunk,
    context::DriverContext,
    native::{device as native, ipc, memory::Sort},
};
use std::{os::fd::OwnedFd, sync::Arc};
use ur_hal::{ExportsMemory, ExternalForm, Result};
use ze_sys::{ZE_EXTERNAL_MEMORY_TYPE_FLAG_DMA_BUF, ZE_EXTERNAL_MEMORY_TYPE_FLAG_OPAQUE_FD};

/// The driver's flag for a form.
fn flag(form: ExternalForm) -> u32 {
    match form {
        ExternalForm::Opaque => ZE_EXTERNAL_MEMORY_TYPE_FLAG_OPAQUE_FD,
        ExternalForm::DmaBuf => ZE_EXTERNAL_MEMORY_TYPE_FLAG_DMA_BUF,
    }
}
impl ExportsMemory for LevelZero {
    fn exports(device: &Arc<DriverDevice>, form: ExternalForm) -> Result<bool> {
        Ok(native::external(device.raw())?.memoryAllocationExportTypes & flag(form) != 0)
    }
    fn allocate_exportable(
        context: &DriverContext,
        device: &Arc<DriverDevice>,
        form: ExternalForm,
        (bytes, align): (usize, usize),
    ) -> Result<Chunk> {
        Chunk::of_sort(Sort::Exportable(flag(form)), context.utility_lists(), device, bytes, align)
    }
    fn descriptor(chunk: &Chunk, form: ExternalForm) -> Result<OwnedFd> {
        ipc::exported(chunk.piece(), flag(form))
    }
}
