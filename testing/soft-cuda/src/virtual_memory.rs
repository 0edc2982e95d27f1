//! Virtual memory: reservations, physical memory, mappings, access rights, and descriptors for other
//! processes.
#![expect(unsafe_code, reason = "exports symbols of the driver; descriptors that C hands over")]
use crate::{
    attributes::{self, Feature},
    backing::{Backing, Kind},
    code::{Answer, INVALID_DEVICE, INVALID_VALUE, NOT_SUPPORTED, UNKNOWN},
    device,
    layout::{AccessDesc, AllocationProp, Location},
    ranges::{self, Range, What, bits, whole},
    raw::{get, list, put},
    space::{self, GRANULE},
    state,
};
use rustix::io::fcntl_dupfd_cloexec;
use std::{
    collections::{BTreeMap, HashMap},
    os::fd::{BorrowedFd, IntoRawFd as _, OwnedFd},
    sync::{
        Arc, LazyLock, Mutex, MutexGuard,
        atomic::{AtomicU32, Ordering},
    },
};
use ur_lock::locked;

/// Physical memory behind a handle, and the handle's reference count.
#[derive(Clone)]
struct Physical {
    backing: Arc<Backing>,
    handle_types: i32,
    count: usize,
}
#[derive(Default)]
struct Virtual {
    physical: HashMap<u64, Physical>,
    reserved: BTreeMap<u64, u64>,
}
static VIRTUAL: LazyLock<Mutex<Virtual>> = LazyLock::new(Mutex::default);
fn state() -> MutexGuard<'static, Virtual> {
    locked(&VIRTUAL)
}
/// Returns the device of a location; other locations are not supported.
pub fn location(location: Location) -> Answer<i32> {
    if location.kind != 1 {
        return Err(INVALID_VALUE);
    }
    device::of(location.id).map(|_| location.id)
}
/// Checks the properties of an allocation; returns the device and the handle types.
fn properties(from: *const AllocationProp) -> Answer<(i32, i32)> {
    attributes::check(Feature::VirtualMemory)?;
    let p = get(from)?;
    let plain = p.kind == 1 && p.compression == 0 && p.usage & !2 == 0;
    if !plain || !matches!(p.handle_types, 0 | 1) || p.rdma > 1 {
        return Err(INVALID_VALUE);
    }
    if p.handle_types != 0 {
        attributes::check(Feature::Descriptors)?;
    }
    Ok((location(p.location)?, p.handle_types))
}
fn granular(at: u64, bytes: u64) -> Answer {
    let right = at.is_multiple_of(GRANULE) && bytes.is_multiple_of(GRANULE) && bytes != 0;
    if right { Ok(()) } else { Err(INVALID_VALUE) }
}
/// Duplicates a descriptor of the caller.
pub fn duplicate(fd: i32) -> Answer<OwnedFd> {
    if fd < 0 {
        return Err(INVALID_VALUE);
    }
    // SAFETY: the descriptor is only duplicated, which fails for one that is not open.
    let theirs = unsafe { BorrowedFd::borrow_raw(fd) };
    fcntl_dupfd_cloexec(theirs, 0).map_err(|_| UNKNOWN)
}

entries! {
    fn cuMemAddressReserve(to: *mut u64, bytes: usize, alignment: usize, hint: u64, flags: u64) {
        attributes::check(Feature::VirtualMemory)?;
        granular(0, bytes as u64)?;
        let right = alignment == 0 || alignment.is_power_of_two();
        if !right || flags != 0 || to.is_null() {
            return Err(INVALID_VALUE);
        }
        let at = space::take(bytes as u64, GRANULE.max(alignment as u64), hint)?;
        state().reserved.insert(at, bytes as u64);
        put(to, at)
    }
    fn cuMemAddressFree(at: u64, bytes: usize) {
        let mut state = state();
        if state.reserved.get(&at) != Some(&(bytes as u64)) || bytes == 0 {
            return Err(INVALID_VALUE);
        }
        if ranges::table().within(at, bytes as u64).next().is_some() {
            return Err(INVALID_VALUE); // memory is still mapped there
        }
        state.reserved.remove(&at);
        space::give(at);
        Ok(())
    }
    fn cuMemCreate(to: *mut u64, bytes: usize, wanted: *const AllocationProp, flags: u64) {
        let (device, handle_types) = properties(wanted)?;
        granular(0, bytes as u64)?;
        if flags != 0 || to.is_null() {
            return Err(INVALID_VALUE);
        }
        let backing = Arc::new(Backing::new(Kind::Physical, device, bytes as u64, true)?);
        let id = state::handle(0x0a);
        state().physical.insert(id, Physical { backing, handle_types, count: 1 });
        put(to, id)
    }
    fn cuMemRelease(memory: u64) {
        let mut state = state();
        let physical = state.physical.get_mut(&memory).ok_or(INVALID_VALUE)?;
        physical.count -= 1;
        if physical.count == 0 {
            state.physical.remove(&memory);
        }
        Ok(())
    }
    fn cuMemMap(at: u64, bytes: usize, offset: usize, memory: u64, flags: u64) {
        let bytes = bytes as u64;
        granular(at, bytes)?;
        let state = state();
        let physical = state.physical.get(&memory).ok_or(INVALID_VALUE)?;
        let reserved = state.reserved.range(..=at).next_back();
        let inside = reserved.is_some_and(|(b, n)| at.checked_add(bytes).is_some_and(|end| end <= b + n));
        if !inside || flags != 0 {
            return Err(INVALID_VALUE);
        }
        if offset != 0 || bytes != physical.backing.bytes {
            return Err(NOT_SUPPORTED); // as measured on real drivers
        }
        let mut table = ranges::change();
        if table.within(at, bytes).next().is_some() {
            return Err(INVALID_VALUE);
        }
        physical.backing.map(at)?;
        let range = Range::new(What::Virtual, at, bytes, physical.backing.device);
        let (backing, access) = (Some(physical.backing.clone()), Arc::new(AtomicU32::new(0)));
        table.insert(Range { backing, access, extra: memory | (physical.handle_types as u64) << 63, ..range });
        Ok(())
    }
    fn cuMemUnmap(at: u64, bytes: usize) {
        granular(at, bytes as u64)?;
        let mut table = ranges::change();
        for range in whole(&table, at, bytes as u64, What::Virtual)? {
            table.remove(range.base);
            space::unmap(range.base, range.bytes);
        }
        Ok(())
    }
    fn cuMemSetAccess(at: u64, bytes: usize, wanted: *const AccessDesc, count: usize) {
        granular(at, bytes as u64)?;
        let table = ranges::table();
        let found = whole(&table, at, bytes as u64, What::Virtual)?;
        if count == 0 {
            return Err(INVALID_VALUE);
        }
        let wanted = list(wanted, count)?;
        for one in &wanted {
            let device = location(one.location)?;
            if !matches!(one.flags, 0 | 1 | 3) {
                return Err(INVALID_VALUE);
            }
            if found.iter().any(|r| !device::reaches(device, r.device)) {
                return Err(INVALID_DEVICE);
            }
        }
        for (range, one) in found.iter().flat_map(|r| wanted.iter().map(move |w| (r, w))) {
            range.access.fetch_and(!bits(one.location.id, 3), Ordering::AcqRel);
            range.access.fetch_or(bits(one.location.id, one.flags as u32), Ordering::AcqRel);
        }
        Ok(())
    }
    fn cuMemGetAccess(to: *mut u64, place: *const Location, at: u64) {
        let device = location(get(place)?)?;
        let table = ranges::table();
        let range = table.find(at).filter(|r| r.what == What::Virtual).ok_or(INVALID_VALUE)?;
        put(to, u64::from(range.access.load(Ordering::Acquire) >> (2 * device) & 3))
    }
    fn cuMemGetAllocationGranularity(to: *mut usize, wanted: *const AllocationProp, kind: i32) {
        properties(wanted)?;
        if !matches!(kind, 0 | 1) {
            return Err(INVALID_VALUE);
        }
        put(to, GRANULE as usize)
    }
    fn cuMemExportToShareableHandle(to: *mut i32, memory: u64, kind: i32, flags: u64) {
        let state = state();
        let physical = state.physical.get(&memory).ok_or(INVALID_VALUE)?;
        if kind != 1 || flags != 0 || physical.handle_types & kind == 0 || to.is_null() {
            return Err(INVALID_VALUE);
        }
        // Imported memory is parked and cannot be exported again, as with real drivers.
        let copy = fcntl_dupfd_cloexec(physical.backing.file()?, 0).map_err(|_| crate::code::OPERATING_SYSTEM)?;
        put(to, copy.into_raw_fd())
    }
    fn cuMemImportFromShareableHandle(to: *mut u64, handle: usize, kind: i32) {
        attributes::check(Feature::Descriptors)?;
        if kind != 1 || to.is_null() {
            return Err(INVALID_VALUE);
        }
        let file = duplicate(i32::try_from(handle).map_err(|_| INVALID_VALUE)?)?;
        let backing = Arc::new(Backing::of(Kind::Physical, file)?.park()?);
        let id = state::handle(0x0a);
        state().physical.insert(id, Physical { backing, handle_types: 1, count: 1 });
        put(to, id)
    }
    fn cuMemRetainAllocationHandle(to: *mut u64, at: u64) {
        let range = ranges::table().find(at).filter(|r| r.what == What::Virtual).cloned().ok_or(INVALID_VALUE)?;
        let backing = range.backing.clone().ok_or(INVALID_VALUE)?;
        let (id, handle_types) = (range.extra & !(1 << 63), (range.extra >> 63) as i32);
        put(to, id)?;
        let fresh = Physical { backing, handle_types, count: 0 };
        state().physical.entry(id).or_insert(fresh).count += 1;
        Ok(())
    }
    fn cuMemGetAllocationPropertiesFromHandle(to: *mut AllocationProp, memory: u64) {
        let state = state();
        let physical = state.physical.get(&memory).ok_or(INVALID_VALUE)?;
        let location = Location { kind: 1, id: physical.backing.device };
        let handle_types = physical.handle_types;
        let (win32, compression, rdma, usage, reserved) = (0, 0, 0, 0, [0; 4]);
        put(to, AllocationProp { kind: 1, handle_types, location, win32, compression, rdma, usage, reserved })
    }
}
