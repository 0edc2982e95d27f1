//! What physical memory is on this driver.
use super::{
    Context, Device, LevelZero, TABLE,
    native::physical_memory::{self, Physical},
    registry::registry,
    virtual_mem::granule,
};
use crate::over_driver::physical_mem::{self, HasPhysicalMemory};
use std::{os::fd::OwnedFd, sync::Arc};
use ur_adapter::{
    error::{Error, Result},
    object::{Borrowed, Slab},
};

/// What `ur_physical_mem_handle_t` points at.
pub type PhysicalMem = physical_mem::PhysicalMem<LevelZero>;
/// Those that have a handle.
pub(super) type Names = physical_mem::Names<LevelZero>;

impl HasPhysicalMemory for LevelZero {
    type Physical = Physical;
    fn physical_mems() -> &'static Slab<PhysicalMem> {
        static SLAB: Slab<PhysicalMem> = Slab::new(&TABLE);
        &SLAB
    }
    fn names() -> &'static Names {
        &registry().get().names
    }
    fn granularity(context: Borrowed<'_, Context>, device: &Device, bytes: usize) -> Result<usize> {
        granule(context, device, bytes)
    }
    fn create(
        context: Borrowed<'_, Context>,
        device: &Device,
        bytes: usize,
        is_shareable: bool,
    ) -> Result<Physical> {
        if is_shareable && !physical_memory::has_descriptors(device)? {
            return Error::unsupported(
                "urPhysicalMemCreate with ENABLE_IPC: this device gives no descriptors of its memory",
            );
        }
        Physical::create(context.native(), device, bytes, is_shareable)
    }
    fn bytes(memory: &Physical) -> usize {
        memory.bytes()
    }
    fn export(memory: &Physical, _device: &Device) -> Result<Arc<OwnedFd>> {
        memory.export()
    }
}
