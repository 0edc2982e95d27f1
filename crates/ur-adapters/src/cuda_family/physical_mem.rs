//! What physical memory is on this driver.
use super::{
    Context, Device, Family,
    backing::granule,
    driver::Dialect,
    native::virtual_memory::{self, Physical},
};
use crate::over_driver::physical_mem::{self, HasPhysicalMemory};
use std::{os::fd::OwnedFd, sync::Arc};
use ur_adapter::{
    error::{Error, Result},
    object::{Borrowed, Slab},
};

/// What `ur_physical_mem_handle_t` points at.
pub type PhysicalMem<D> = physical_mem::PhysicalMem<Family<D>>;
/// Those of this process that have a handle.
pub(super) type Names<D> = physical_mem::Names<Family<D>>;

impl<D: Dialect> HasPhysicalMemory for Family<D> {
    type Physical = Physical<D>;
    fn physical_mems() -> &'static Slab<PhysicalMem<D>> {
        &D::statics().physical_mems
    }
    fn names() -> &'static Names<D> {
        &D::statics().memory.get().names
    }
    fn granularity(_: Borrowed<'_, Context<D>>, device: &Device<D>, _: usize) -> Result<usize> {
        match virtual_memory::is_supported(device)? {
            true => granule(device),
            false => Error::unsupported("urPhysicalMemCreate: this device has no virtual memory"),
        }
    }
    /// Others can open all of it, where the driver has descriptors.
    fn create(
        _: Borrowed<'_, Context<D>>,
        device: &Device<D>,
        bytes: usize,
        is_shareable: bool,
    ) -> Result<Physical<D>> {
        if is_shareable && !virtual_memory::has_descriptors(device)? {
            return Error::unsupported(
                "urPhysicalMemCreate with ENABLE_IPC: this device gives no descriptors of its memory",
            );
        }
        Physical::create(device, bytes)
    }
    fn bytes(memory: &Physical<D>) -> usize {
        memory.bytes()
    }
    fn export(memory: &Physical<D>, device: &Device<D>) -> Result<Arc<OwnedFd>> {
        memory.export(device)
    }
}
