//! Imports and exports of memory, as requested by the chains of structures: descriptors, and memory of the
//! caller.
use crate::{
    allocations::{self, Allocation, Origin},
    backing::{self, Backing, PAGE},
    inject::{self, Answer},
    raw, taken_fd, virtual_memory,
};
use std::{ffi::c_void, os::fd::IntoRawFd as _, sync::Arc};
use ze_sys::*;

/// The supported kinds of descriptors; each is the memory's file.
pub fn kinds() -> ze_external_memory_type_flags_t {
    match inject::lacks("descriptors") {
        true => 0,
        false => ZE_EXTERNAL_MEMORY_TYPE_FLAG_DMA_BUF | ZE_EXTERNAL_MEMORY_TYPE_FLAG_OPAQUE_FD,
    }
}

/// Checks that it is exactly one kind, and a supported one.
fn one_kind(flags: ze_external_memory_type_flags_t) -> Answer {
    match flags.count_ones() {
        1 if flags & kinds() != 0 => Ok(()),
        1 => Err(ZE_RESULT_ERROR_UNSUPPORTED_ENUMERATION),
        _ => Err(ZE_RESULT_ERROR_INVALID_ENUMERATION),
    }
}
/// The memory of a descriptor in the chain.
pub fn imported(chain: *const c_void) -> Answer<Option<Arc<Backing>>> {
    let stype = ZE_STRUCTURE_TYPE_EXTERNAL_MEMORY_IMPORT_FD;
    let Some(at) = raw::find::<ze_external_memory_import_fd_t>(chain, stype) else {
        return Ok(None);
    };
    let import = raw::get(at)?;
    one_kind(import.flags)?;
    if taken_fd::is_on() {
        taken_fd::check_closed()?;
    }
    Backing::of(backing::borrow(import.fd)?).map(Some)
}
/// Completes an import: the driver may take ownership of the descriptor.
///
/// # Errors
/// Returns an error if the file cannot be queried.
pub fn keep(backing: &Backing, chain: *const c_void) -> Answer {
    let stype = ZE_STRUCTURE_TYPE_EXTERNAL_MEMORY_IMPORT_FD;
    match raw::find::<ze_external_memory_import_fd_t>(chain, stype) {
        Some(at) if taken_fd::is_on() => backing.take(raw::get(at)?.fd),
        _ => Ok(()),
    }
}
/// The kinds as which the chain requests the memory to be exportable.
pub fn exports(chain: *const c_void) -> Answer<ze_external_memory_type_flags_t> {
    let stype = ZE_STRUCTURE_TYPE_EXTERNAL_MEMORY_EXPORT_DESC;
    let Some(at) = raw::find::<ze_external_memory_export_desc_t>(chain, stype) else {
        return Ok(0);
    };
    let flags = raw::get(at)?.flags;
    if flags == 0 || flags & !kinds() != 0 {
        return Err(ZE_RESULT_ERROR_UNSUPPORTED_ENUMERATION);
    }
    Ok(flags)
}
/// Writes a new descriptor, which the caller must close, if the chain requests one.
pub fn export(
    backing: &Backing,
    allowed: ze_external_memory_type_flags_t,
    chain: *const c_void,
) -> Answer {
    let stype = ZE_STRUCTURE_TYPE_EXTERNAL_MEMORY_EXPORT_FD;
    let Some(at) = raw::find::<ze_external_memory_export_fd_t>(chain, stype) else {
        return Ok(());
    };
    raw::amend(at, |export| {
        one_kind(export.flags)?;
        if export.flags & allowed == 0 {
            return Err(ZE_RESULT_ERROR_UNSUPPORTED_FEATURE); // it was not created for that
        }
        export.fd = backing.export()?.into_raw_fd();
        Ok(())
    })
}
/// As [`export`], for the memory that contains `address`.
pub fn export_from(address: usize, chain: *const c_void) -> Answer {
    if let Some(one) = allocations::find(address)
        && let Some(backing) = &one.backing
    {
        return export(backing, one.exports, chain);
    }
    virtual_memory::physical(address)
        .map_or(Ok(()), |physical| export(&physical.backing, physical.exports, chain))
}
/// The address and the size of the caller's memory that the chain requests to be registered.
pub fn system_memory(chain: *const c_void) -> Answer<Option<(usize, usize)>> {
    let stype = ZE_STRUCTURE_TYPE_EXTERNAL_MEMMAP_SYSMEM_EXT_DESC;
    let Some(at) = raw::find::<ze_external_memmap_sysmem_ext_desc_t>(chain, stype) else {
        return Ok(None);
    };
    let desc = raw::get(at)?;
    let (base, size) = (desc.pSystemMemory.expose_provenance(), desc.size as usize);
    if base == 0 {
        return Err(ZE_RESULT_ERROR_INVALID_NULL_POINTER);
    }
    if !base.is_multiple_of(PAGE) {
        return Err(ZE_RESULT_ERROR_UNSUPPORTED_ALIGNMENT);
    }
    if size == 0 || !size.is_multiple_of(PAGE) {
        return Err(ZE_RESULT_ERROR_UNSUPPORTED_SIZE);
    }
    Ok(Some((base, size)))
}
/// An allocation for the caller's memory.
pub fn own_memory(base: usize, size: usize, context: usize) -> Allocation {
    Allocation {
        base,
        size,
        offset: 0,
        kind: ZE_MEMORY_TYPE_HOST_IMPORTED,
        origin: Origin::Caller,
        device: None,
        context,
        id: allocations::next_id(),
        exports: 0,
        backing: None,
        _mapping: None,
        _taken: None,
    }
}
/// Registers the caller's memory as an allocation at its own address.
pub fn adopt((base, size): (usize, usize), context: usize, to: *mut *mut c_void) -> Answer {
    raw::put(to, std::ptr::with_exposed_provenance_mut(base))?;
    allocations::add(own_memory(base, size, context))
}
