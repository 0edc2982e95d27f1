//! Physical memory of a device or of the host: memory without an address, to be mapped into a reserved
//! address range.
#![expect(unsafe_code, reason = "exports symbols of the driver")]
use crate::{
    allocations::{self, Taken},
    backing::{self, Backing, DEVICE_PAGE},
    context,
    device::{self, Device},
    external,
    handle::{self, Object, raw},
    inject::Answer,
    raw, virtual_memory,
};
use rustix::mm::ProtFlags;
use std::sync::Arc;
use ze_sys::*;

/// A physical memory.
pub struct Physical {
    pub backing: Arc<Backing>,
    pub size: usize,
    /// `None` for host memory.
    pub device: Option<Arc<Device>>,
    pub id: u64,
    /// The descriptor types that it can be exported as.
    pub exports: ze_external_memory_type_flags_t,
    _taken: Option<Taken>,
}
impl Object for Physical {
    const TAG: u64 = 0x7a65_7068_7973_6d65;
}
impl Physical {
    /// The host addresses at which it is mapped if its device address is `base`. Host memory is also mapped
    /// at `base` itself.
    pub fn places(&self, base: usize) -> impl Iterator<Item = usize> {
        let there = backing::reached_at(base);
        let too = (self.device.is_none() && there != base).then_some(base);
        std::iter::once(there).chain(too)
    }
    /// Maps `size` bytes of it, starting at `offset`.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn map(&self, base: usize, size: usize, offset: usize, access: ProtFlags) -> Answer {
        self.places(base).try_for_each(|at| backing::map(at, size, &self.backing, offset, access))
    }
}
fn create(device: &Arc<Device>, desc: &ze_physical_mem_desc_t) -> Answer<Physical> {
    let both = ZE_PHYSICAL_MEM_FLAG_ALLOCATE_ON_DEVICE | ZE_PHYSICAL_MEM_FLAG_ALLOCATE_ON_HOST;
    if desc.flags & !both != 0 || desc.flags == both {
        return Err(ZE_RESULT_ERROR_INVALID_ENUMERATION);
    }
    if desc.size == 0 || !desc.size.is_multiple_of(DEVICE_PAGE) {
        return Err(ZE_RESULT_ERROR_UNSUPPORTED_SIZE);
    }
    let host = desc.flags == ZE_PHYSICAL_MEM_FLAG_ALLOCATE_ON_HOST;
    let (backing, taken) = match external::imported(desc.pNext)? {
        Some(backing) if backing.size < desc.size => return Err(ZE_RESULT_ERROR_INVALID_ARGUMENT),
        Some(backing) => (backing, None),
        None => {
            let taken = if host { None } else { Some(Taken::new(device, desc.size)?) };
            (Backing::new(desc.size)?, taken)
        }
    };
    let exports = external::exports(desc.pNext)?;
    external::keep(&backing, desc.pNext)?;
    Ok(Physical {
        backing,
        size: desc.size,
        device: (!host).then(|| Arc::clone(device)),
        id: allocations::next_id(),
        exports,
        _taken: taken,
    })
}

entries! {
    fn zePhysicalMemCreate(
        context: ze_context_handle_t,
        device: ze_device_handle_t,
        desc: *mut ze_physical_mem_desc_t,
        to: *mut ze_physical_mem_handle_t,
    ) {
        let (context, device) = (context::get(context)?, device::get(device)?);
        let desc = raw::get(desc)?;
        if to.is_null() {
            return Err(ZE_RESULT_ERROR_INVALID_NULL_POINTER);
        }
        if !context.has(&device) {
            return Err(ZE_RESULT_ERROR_INVALID_ARGUMENT);
        }
        raw::put(to, handle::make(create(&device, &desc)?).cast())
    }
    fn zePhysicalMemDestroy(context: ze_context_handle_t, physical: ze_physical_mem_handle_t) {
        context::get(context)?;
        // Existing mappings keep the memory until they are unmapped.
        handle::destroy::<Physical>(raw!(physical)).map(drop)
    }
    fn zePhysicalMemGetProperties(
        context: ze_context_handle_t,
        physical: ze_physical_mem_handle_t,
        to: *mut ze_physical_mem_properties_t,
    ) {
        context::get(context)?;
        let physical = handle::get::<Physical>(raw!(physical))?;
        if virtual_memory::is_old() {
            return Err(ZE_RESULT_ERROR_UNSUPPORTED_FEATURE);
        }
        raw::amend(to, |p| {
            (p.id, p.size) = (physical.id, physical.size as u64);
            external::export(&physical.backing, physical.exports, p.pNext)
        })
    }
}
