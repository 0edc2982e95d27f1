//! Reserved address ranges and the physical memory that is mapped there.
#![expect(unsafe_code, reason = "exports symbols of the driver")]
use crate::{
    backing::{self, DEVICE_PAGE, Mapping},
    context, device,
    handle::{self, raw},
    inject::Answer,
    knob,
    memory::Found,
    physical_memory::Physical,
    raw,
};
use rustix::mm::ProtFlags;
use std::{
    collections::BTreeMap,
    ffi::c_void,
    sync::{Arc, LazyLock, Mutex, MutexGuard},
};
use ur_lock::locked;
use ze_sys::*;

/// Whether mappings always begin at the start of the physical memory, whatever offset the caller passes, and
/// physical memory cannot be exported, as in older drivers (`ZE_SOFTWARE_VM=neo-old`).
pub fn is_old() -> bool {
    static OLD: LazyLock<bool> = LazyLock::new(|| knob::is("VM", "neo-old"));
    *OLD
}
/// Whether the driver behaves as from 26.27 on (`ZE_SOFTWARE_VM=neo-new`): a physical memory can be mapped at
/// one place only; changing the access applies to a whole reservation, and maps what is in it again from the
/// start of its physical memory.
fn is_new() -> bool {
    static NEW: LazyLock<bool> = LazyLock::new(|| knob::is("VM", "neo-new"));
    *NEW
}
/// The alignment of large reservations.
const LARGE_PAGE: usize = 2 << 20;

/// A mapped part of a physical memory.
struct Piece {
    size: usize,
    physical: Arc<Physical>,
    access: ze_memory_access_attribute_t,
}
#[derive(Default)]
struct Space {
    reserved: BTreeMap<usize, Mapping>,
    pieces: BTreeMap<usize, Piece>,
}
static SPACE: Mutex<Space> =
    Mutex::new(Space { reserved: BTreeMap::new(), pieces: BTreeMap::new() });

fn space() -> MutexGuard<'static, Space> {
    locked(&SPACE)
}
impl Space {
    fn reservation(&self, base: usize, size: usize) -> Option<&Mapping> {
        let (_, one) = self.reserved.range(..=base).next_back()?;
        (base.checked_add(size)? <= one.base + one.size).then_some(one)
    }
    fn piece(&self, address: usize) -> Option<(usize, &Piece)> {
        let (base, piece) = self.pieces.range(..=address).next_back()?;
        (address < base + piece.size).then_some((*base, piece))
    }
    /// The addresses and sizes of the pieces that overlap a range.
    fn touching(&self, base: usize, size: usize) -> Vec<(usize, usize)> {
        let before = self.pieces.range(..base + size);
        let touching = before.filter(|(at, piece)| **at + piece.size > base);
        touching.map(|(at, piece)| (*at, piece.size)).collect()
    }
    /// The addresses and sizes of the pieces in a range; an error if the range contains only a part of one.
    fn covered(&self, base: usize, size: usize) -> Answer<Vec<(usize, usize)>> {
        let all = self.touching(base, size);
        let whole = |(at, length): &(usize, usize)| *at >= base && at + length <= base + size;
        if all.iter().all(whole) { Ok(all) } else { Err(ZE_RESULT_ERROR_INVALID_ARGUMENT) }
    }
}
/// The properties of what is mapped at `address`.
pub fn find(address: usize) -> Option<Found> {
    let space = space();
    if let Some((base, piece)) = space.piece(address) {
        let device = piece.physical.device.clone();
        let kind = if device.is_some() { ZE_MEMORY_TYPE_DEVICE } else { ZE_MEMORY_TYPE_HOST };
        return Some(Found { base, size: piece.size, kind, device, id: piece.physical.id });
    }
    None
}
/// The physical memory that is mapped at `address`.
pub fn physical(address: usize) -> Option<Arc<Physical>> {
    space().piece(address).map(|(_, piece)| Arc::clone(&piece.physical))
}
fn flags(access: ze_memory_access_attribute_t) -> Answer<ProtFlags> {
    match access {
        ZE_MEMORY_ACCESS_ATTRIBUTE_NONE => Ok(ProtFlags::empty()),
        ZE_MEMORY_ACCESS_ATTRIBUTE_READWRITE => Ok(ProtFlags::READ | ProtFlags::WRITE),
        ZE_MEMORY_ACCESS_ATTRIBUTE_READONLY => Ok(ProtFlags::READ),
        _ => Err(ZE_RESULT_ERROR_INVALID_ENUMERATION),
    }
}
/// Checks a range, which must consist of whole pages, and returns its address.
fn range(at: *const c_void, size: usize) -> Answer<usize> {
    if at.is_null() {
        return Err(ZE_RESULT_ERROR_INVALID_NULL_POINTER);
    }
    let base = at.expose_provenance();
    if size == 0 || !size.is_multiple_of(DEVICE_PAGE) {
        return Err(ZE_RESULT_ERROR_UNSUPPORTED_SIZE);
    }
    if !base.is_multiple_of(DEVICE_PAGE) {
        return Err(ZE_RESULT_ERROR_UNSUPPORTED_ALIGNMENT);
    }
    Ok(base)
}

entries! {
    fn zeVirtualMemReserve(
        context: ze_context_handle_t,
        _start: *const c_void,
        size: usize,
        to: *mut *mut c_void,
    ) {
        context::get(context)?;
        if to.is_null() {
            return Err(ZE_RESULT_ERROR_INVALID_NULL_POINTER);
        }
        if size == 0 || !size.is_multiple_of(DEVICE_PAGE) {
            return Err(ZE_RESULT_ERROR_UNSUPPORTED_SIZE);
        }
        // The address that the caller prefers is only a hint, which this driver ignores.
        let alignment = if size < LARGE_PAGE { DEVICE_PAGE } else { LARGE_PAGE };
        let mapping = Mapping::reserve(size, alignment, true)?;
        let base = mapping.base;
        space().reserved.insert(base, mapping);
        raw::put(to, std::ptr::with_exposed_provenance_mut(base))
    }
    fn zeVirtualMemFree(context: ze_context_handle_t, at: *const c_void, size: usize) {
        context::get(context)?;
        let base = range(at, size)?;
        let mut space = space();
        if space.reserved.get(&base).is_none_or(|one| one.size != size)
            || !space.touching(base, size).is_empty()
        {
            return Err(ZE_RESULT_ERROR_INVALID_ARGUMENT);
        }
        drop(space.reserved.remove(&base));
        Ok(())
    }
    fn zeVirtualMemQueryPageSize(
        context: ze_context_handle_t,
        device: ze_device_handle_t,
        size: usize,
        to: *mut usize,
    ) {
        context::get(context)?;
        device::get(device)?;
        if size == 0 {
            return Err(ZE_RESULT_ERROR_UNSUPPORTED_SIZE);
        }
        raw::put(to, DEVICE_PAGE)
    }
    fn zeVirtualMemMap(
        context: ze_context_handle_t,
        at: *const c_void,
        size: usize,
        physical: ze_physical_mem_handle_t,
        offset: usize,
        access: ze_memory_access_attribute_t,
    ) {
        context::get(context)?;
        let physical = handle::get::<Physical>(raw!(physical))?;
        let (base, flags) = (range(at, size)?, flags(access)?);
        if !offset.is_multiple_of(DEVICE_PAGE) {
            return Err(ZE_RESULT_ERROR_UNSUPPORTED_ALIGNMENT);
        }
        if offset.checked_add(size).is_none_or(|end| end > physical.size) {
            return Err(ZE_RESULT_ERROR_INVALID_ARGUMENT);
        }
        let mut space = space();
        if space.reservation(base, size).is_none() || !space.touching(base, size).is_empty() {
            return Err(ZE_RESULT_ERROR_INVALID_ARGUMENT);
        }
        if is_new() && space.pieces.values().any(|piece| Arc::ptr_eq(&piece.physical, &physical)) {
            eprintln!("ze-software: a physical memory is mapped once at a time");
            return Err(ZE_RESULT_ERROR_INVALID_ARGUMENT);
        }
        let offset = if is_old() { 0 } else { offset };
        physical.map(base, size, offset, flags)?;
        space.pieces.insert(base, Piece { size, physical, access });
        Ok(())
    }
    fn zeVirtualMemUnmap(context: ze_context_handle_t, at: *const c_void, size: usize) {
        context::get(context)?;
        let base = range(at, size)?;
        let mut space = space();
        let pieces = space.covered(base, size)?;
        if pieces.is_empty() {
            return Err(ZE_RESULT_ERROR_INVALID_ARGUMENT);
        }
        for (at, length) in pieces {
            space.pieces[&at].physical.places(at).try_for_each(|at| backing::clear(at, length))?;
            space.pieces.remove(&at);
        }
        Ok(())
    }
    fn zeVirtualMemSetAccessAttribute(
        context: ze_context_handle_t,
        at: *const c_void,
        size: usize,
        access: ze_memory_access_attribute_t,
    ) {
        context::get(context)?;
        let (base, flags) = (range(at, size)?, flags(access)?);
        let mut space = space();
        if is_new() {
            let whole = space.reservation(base, size).ok_or(ZE_RESULT_ERROR_INVALID_ARGUMENT)?;
            let (start, length) = (whole.base, whole.size);
            for (at, length) in space.touching(start, length) {
                let piece = space.pieces.get_mut(&at).expect("found under this lock");
                piece.physical.map(at, length, 0, flags)?;
                piece.access = access;
            }
            return Ok(());
        }
        let pieces = space.covered(base, size)?;
        if pieces.iter().map(|(_, length)| length).sum::<usize>() != size {
            return Err(ZE_RESULT_ERROR_INVALID_ARGUMENT); // not all of the range is mapped
        }
        for (at, length) in pieces {
            let piece = space.pieces.get_mut(&at).expect("found under this lock");
            piece.physical.places(at).try_for_each(|at| backing::protect(at, length, flags))?;
            piece.access = access;
        }
        Ok(())
    }
    fn zeVirtualMemGetAccessAttribute(
        context: ze_context_handle_t,
        at: *const c_void,
        size: usize,
        access: *mut ze_memory_access_attribute_t,
        same: *mut usize,
    ) {
        context::get(context)?;
        let base = range(at, size)?;
        let space = space();
        let reserved = space.reservation(base, DEVICE_PAGE);
        let end = reserved.map(|one| one.base + one.size).ok_or(ZE_RESULT_ERROR_INVALID_ARGUMENT)?;
        let of = |address| {
            space.piece(address).map_or(ZE_MEMORY_ACCESS_ATTRIBUTE_NONE, |(_, piece)| piece.access)
        };
        let (first, end) = (of(base), end.min(base + size));
        let pages = (base..end).step_by(DEVICE_PAGE).take_while(|address| of(*address) == first);
        raw::put(same, pages.count() * DEVICE_PAGE)?;
        raw::put(access, first)
    }
}
