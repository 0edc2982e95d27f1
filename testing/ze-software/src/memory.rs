//! Memory allocations: host, device and shared; the properties of pointers; freeing.
#![expect(unsafe_code, reason = "exports symbols of the driver")]
use crate::{
    allocations::{self, Allocation, Origin, Taken},
    backing::{Backing, DEVICE_PAGE, Mapping, PAGE},
    context,
    device::{self, Device},
    driver, external,
    inject::{self, Answer},
    knob, line, loader_face, properties, raw,
};
use std::{
    ffi::c_void,
    sync::{Arc, LazyLock},
};
use ze_sys::*;

/// The properties of an address.
pub struct Found {
    pub base: usize,
    pub size: usize,
    pub kind: ze_memory_type_t,
    pub device: Option<Arc<Device>>,
    pub id: u64,
}
/// The allocation or mapped physical memory that contains `address`.
pub fn find(address: usize) -> Option<Found> {
    if let Some(one) = allocations::find(address) {
        let device = one.device.clone();
        return Some(Found { base: one.base, size: one.size, kind: one.kind, device, id: one.id });
    }
    crate::virtual_memory::find(address)
}
/// For each address, the base address and the size of the allocation or mapping that contains it.
pub fn extents<const N: usize>(addresses: [usize; N]) -> [Option<(usize, usize)>; N] {
    let mut all = allocations::extents(addresses);
    for (extent, address) in all.iter_mut().zip(addresses) {
        let mapped = || crate::virtual_memory::find(address).map(|found| (found.base, found.size));
        *extent = extent.or_else(mapped);
    }
    all
}
fn aligned(alignment: usize, page: usize) -> Answer<usize> {
    match alignment {
        0 => Ok(page),
        a if a.is_power_of_two() && a <= 1 << 31 => Ok(a.max(page)),
        _ => Err(ZE_RESULT_ERROR_UNSUPPORTED_ALIGNMENT),
    }
}
struct Asked {
    context: ze_context_handle_t,
    kind: ze_memory_type_t,
    device: Option<Arc<Device>>,
    chain: *const c_void,
    size: usize,
    alignment: usize,
}
/// Whether the chain allows allocations larger than the device's limit.
fn relaxed(chain: *const c_void) -> bool {
    raw::chain(chain).any(|(stype, _)| {
        stype == ZE_STRUCTURE_TYPE_RELAXED_ALLOCATION_LIMITS_EXP_DESC
            || stype == ZE_STRUCTURE_TYPE_RELAXED_ALLOCATION_LIMITS_EXT_DESC
    })
}
/// Device allocations up to this size (`ZE_SOFTWARE_POOL`, in MiB) are placed inside larger memory; in bytes.
fn pooled() -> usize {
    static MOST: LazyLock<usize> = LazyLock::new(|| knob::mebibytes("POOL").unwrap_or(0));
    *MOST
}
fn allocate(asked: Asked, to: *mut *mut c_void) -> Answer {
    let context = context::get(asked.context)?;
    if to.is_null() {
        return Err(ZE_RESULT_ERROR_INVALID_NULL_POINTER);
    }
    if asked.size == 0 {
        return Err(ZE_RESULT_ERROR_UNSUPPORTED_SIZE);
    }
    if let Some(device) = &asked.device {
        if !context.has(device) {
            return Err(ZE_RESULT_ERROR_INVALID_ARGUMENT);
        }
        if asked.size as u64 > properties::largest(device) && !relaxed(asked.chain) {
            return Err(ZE_RESULT_ERROR_UNSUPPORTED_SIZE);
        }
    }
    let page = if asked.kind == ZE_MEMORY_TYPE_DEVICE { DEVICE_PAGE } else { PAGE };
    let alignment = aligned(asked.alignment, page)?;
    let whole =
        asked.size.checked_next_multiple_of(page).ok_or(ZE_RESULT_ERROR_UNSUPPORTED_SIZE)?;
    let (imported, exports) = (external::imported(asked.chain)?, external::exports(asked.chain)?);
    if imported.is_some() && inject::lacks("imports") {
        return Err(ZE_RESULT_ERROR_UNSUPPORTED_ENUMERATION);
    }
    let on_device = asked.kind == ZE_MEMORY_TYPE_DEVICE;
    // A small allocation does not begin where its memory does, as if another one came before it.
    let is_cut = on_device && imported.is_none() && exports == 0 && whole <= pooled();
    let offset = if is_cut { DEVICE_PAGE.max(alignment) } else { 0 };
    let (backing, taken) = match imported {
        // Imported memory does not count as memory of the device.
        Some(backing) if backing.size < asked.size => return Err(ZE_RESULT_ERROR_INVALID_ARGUMENT),
        Some(backing) => (backing, None),
        None => {
            let taken = asked.device.as_ref().map(|device| Taken::new(device, whole));
            (Backing::new(offset + whole)?, taken.transpose()?)
        }
    };
    let mapping = Mapping::of(&backing, (offset + whole).min(backing.size), alignment, on_device)?;
    let base = mapping.base + offset;
    external::keep(&backing, asked.chain)?;
    allocations::add(Allocation {
        base,
        size: asked.size,
        offset,
        kind: asked.kind,
        origin: Origin::Allocated,
        device: asked.device,
        context: asked.context.expose_provenance(),
        id: allocations::next_id(),
        exports,
        backing: Some(backing),
        _mapping: Some(mapping),
        _taken: taken,
    })?;
    raw::put(to, std::ptr::with_exposed_provenance_mut(base))
}
/// Frees the allocation that begins at `at`: at once, or, if `is_deferred`, when everything that is submitted
/// now has run. If the device is lost, memory is always freed the second way: the caller cannot wait, and the
/// last command may still be running.
fn free(context: ze_context_handle_t, at: *mut c_void, is_deferred: bool) -> Answer {
    context::get(context)?;
    if at.is_null() {
        return Err(ZE_RESULT_ERROR_INVALID_NULL_POINTER);
    }
    let base = at.expose_provenance();
    let one = allocations::find(base).filter(|one| one.base == base);
    let one = one.ok_or(ZE_RESULT_ERROR_INVALID_ARGUMENT)?;
    if one.context != context.expose_provenance() {
        eprintln!("ze-software: {at:p} is freed in another context than it was allocated in");
        return Err(ZE_RESULT_ERROR_INVALID_ARGUMENT);
    }
    let origin = if one.origin == Origin::Caller { Origin::Caller } else { Origin::Allocated };
    crate::ipc::forget(base);
    let gone = allocations::remove(base, origin).ok_or(ZE_RESULT_ERROR_INVALID_ARGUMENT)?;
    if is_deferred || device::check_lost().is_err() {
        line::keep(&gone);
    }
    Ok(())
}

entries! {
    fn zeMemAllocDevice(
        context: ze_context_handle_t,
        desc: *const ze_device_mem_alloc_desc_t,
        size: usize,
        alignment: usize,
        device: ze_device_handle_t,
        to: *mut *mut c_void,
    ) {
        let device = Some(device::get(device)?);
        let chain = raw::get(desc)?.pNext;
        let kind = ZE_MEMORY_TYPE_DEVICE;
        allocate(Asked { context, kind, device, chain, size, alignment }, to)
    }
    fn zeMemAllocHost(
        context: ze_context_handle_t,
        desc: *const ze_host_mem_alloc_desc_t,
        size: usize,
        alignment: usize,
        to: *mut *mut c_void,
    ) {
        let chain = raw::get(desc)?.pNext;
        if let Some(own) = external::system_memory(chain)? {
            context::get(context)?;
            return external::adopt(own, context.expose_provenance(), to);
        }
        let kind = ZE_MEMORY_TYPE_HOST;
        allocate(Asked { context, kind, device: None, chain, size, alignment }, to)
    }
    fn zeMemAllocShared(
        context: ze_context_handle_t,
        device_desc: *const ze_device_mem_alloc_desc_t,
        host_desc: *const ze_host_mem_alloc_desc_t,
        size: usize,
        alignment: usize,
        device: ze_device_handle_t,
        to: *mut *mut c_void,
    ) {
        raw::get(host_desc)?;
        let device = if device.is_null() { None } else { Some(device::get(device)?) };
        let chain = raw::get(device_desc)?.pNext;
        let kind = ZE_MEMORY_TYPE_SHARED;
        allocate(Asked { context, kind, device, chain, size, alignment }, to)
    }
    fn zeMemFree(context: ze_context_handle_t, at: *mut c_void) {
        free(context, at, false)
    }
    fn zeMemFreeExt(
        context: ze_context_handle_t,
        desc: *const ze_memory_free_ext_desc_t,
        at: *mut c_void,
    ) {
        let policy = raw::get(desc)?.freePolicy;
        if policy & !(ZE_DRIVER_MEMORY_FREE_POLICY_EXT_FLAG_BLOCKING_FREE
            | ZE_DRIVER_MEMORY_FREE_POLICY_EXT_FLAG_DEFER_FREE) != 0
        {
            return Err(ZE_RESULT_ERROR_UNSUPPORTED_ENUMERATION);
        }
        // Either policy only requires that the memory stays until the submitted commands have run; this call
        // never waits.
        free(context, at, policy != 0)
    }
    fn zeMemGetAllocProperties(
        context: ze_context_handle_t,
        at: *const c_void,
        to: *mut ze_memory_allocation_properties_t,
        device: *mut ze_device_handle_t,
    ) {
        context::get(context)?;
        if at.is_null() {
            return Err(ZE_RESULT_ERROR_INVALID_NULL_POINTER);
        }
        let found = find(at.expose_provenance());
        raw::amend(to, |p| {
            let on_device = |found: &Found| found.kind == ZE_MEMORY_TYPE_DEVICE;
            p.type_ = found.as_ref().map_or(ZE_MEMORY_TYPE_UNKNOWN, |found| found.kind);
            p.id = found.as_ref().map_or(0, |found| found.id);
            p.pageSize = match &found {
                Some(found) if on_device(found) => DEVICE_PAGE as u64,
                Some(_) => PAGE as u64,
                None => 0,
            };
            external::export_from(at.expose_provenance(), p.pNext)
        })?;
        let owner = found.and_then(|found| found.device);
        raw::put_maybe(device, owner.map_or(std::ptr::null_mut(), |device| device.raw()));
        Ok(())
    }
    fn zeMemGetAddressRange(
        context: ze_context_handle_t,
        at: *const c_void,
        base: *mut *mut c_void,
        size: *mut usize,
    ) {
        context::get(context)?;
        if at.is_null() {
            return Err(ZE_RESULT_ERROR_INVALID_NULL_POINTER);
        }
        let found = find(at.expose_provenance()).ok_or(ZE_RESULT_ERROR_ADDRESS_NOT_FOUND)?;
        raw::put_maybe(base, std::ptr::with_exposed_provenance_mut(found.base));
        raw::put_maybe(size, found.size);
        Ok(())
    }
    fn zeMemSetAtomicAccessAttributeExp(
        context: ze_context_handle_t,
        device: ze_device_handle_t,
        at: *const c_void,
        _size: usize,
        _attributes: ze_memory_atomic_attr_exp_flags_t,
    ) {
        context::get(context)?;
        device::get(device)?;
        find(at.expose_provenance()).map(drop).ok_or(ZE_RESULT_ERROR_INVALID_ARGUMENT)
    }
    fn zexDriverImportExternalPointer(driver: ze_driver_handle_t, at: *mut c_void, size: usize) {
        driver::check(loader_face::unwrapped(driver))?;
        if at.is_null() || size == 0 {
            return Err(ZE_RESULT_ERROR_INVALID_ARGUMENT);
        }
        allocations::add(external::own_memory(at.expose_provenance(), size, 0))
    }
    fn zexDriverReleaseImportedPointer(driver: ze_driver_handle_t, at: *mut c_void) {
        driver::check(loader_face::unwrapped(driver))?;
        let one = allocations::remove(at.expose_provenance(), Origin::Caller);
        one.map(drop).ok_or(ZE_RESULT_ERROR_INVALID_ARGUMENT)
    }
    fn zexDriverGetHostPointerBaseAddress(
        driver: ze_driver_handle_t,
        at: *mut c_void,
        to: *mut *mut c_void,
    ) {
        driver::check(loader_face::unwrapped(driver))?;
        let one = allocations::find(at.expose_provenance());
        let one = one.filter(|one| one.origin == Origin::Caller);
        let base = one.ok_or(ZE_RESULT_ERROR_INVALID_ARGUMENT)?.base;
        raw::put(to, std::ptr::with_exposed_provenance_mut(base))
    }
}
