//! Device memory that can be exported to other programs and APIs as a file descriptor. Each such allocation
//! has a chunk of its own.
use super::{
    Context, Device, LevelZero,
    backing::Chunk,
    memory::{self, Allocation},
    native::{device as native, ipc, memory::Sort},
};
use std::os::fd::OwnedFd;
use ur_adapter::{
    error::{Error, ErrorCode, Result},
    memory::UsmPtr,
    object::Borrowed,
};
use ur_core::{memory::allocation::Home, over_driver::memory_export::ExportsMemory};
use ur_sys::ur_exp_external_mem_type_t;
use ze_sys::{ZE_EXTERNAL_MEMORY_TYPE_FLAG_DMA_BUF, ZE_EXTERNAL_MEMORY_TYPE_FLAG_OPAQUE_FD};

impl ExportsMemory for LevelZero {
    /// The driver's flag for a kind of descriptor.
    type Form = u32;
    fn form(device: &Device, wished: ur_exp_external_mem_type_t) -> Result<u32> {
        let flag = match wished {
            ur_exp_external_mem_type_t::OPAQUE_FD => ZE_EXTERNAL_MEMORY_TYPE_FLAG_OPAQUE_FD,
            ur_exp_external_mem_type_t::DMA_BUF => ZE_EXTERNAL_MEMORY_TYPE_FLAG_DMA_BUF,
            _ => 0,
        };
        let offered = native::external(device.raw())?.memoryAllocationExportTypes;
        match flag & offered {
            0 => Err(Error::new(
                ErrorCode::UnsupportedEnumeration,
                format!("this device does not export its memory as {wished:?}"),
            )),
            flag => Ok(flag),
        }
    }
    fn allocate_exportable(
        context: Borrowed<'_, Context>,
        device: Borrowed<'_, Device>,
        flag: u32,
        (home, bytes, align): (Home, usize, usize),
    ) -> Result<UsmPtr> {
        let (native, device, sort) = (context.native(), device.own()?, Sort::Exportable(flag));
        Ok(memory::adopt(home, bytes, Chunk::of_sort(sort, native, &device, bytes, align)?))
    }
    fn descriptor(found: &Allocation, flag: u32) -> Result<OwnedFd> {
        match found.memory().and_then(memory::Memory::exportable) {
            Some(chunk) => Ok(ipc::exported(chunk.piece(), flag)?),
            None => Err(ErrorCode::InvalidValue.into()),
        }
    }
}
