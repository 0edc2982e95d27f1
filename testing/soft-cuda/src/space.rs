//! Device addresses: a region of the process's address space that the host cannot access. The memory mapped
//! at a device address is accessible to the driver in a second region, at a fixed distance behind the first.
#![expect(unsafe_code, reason = "maps memory")]
use crate::code::{Answer, OPERATING_SYSTEM, OUT_OF_MEMORY};
use rustix::mm::{MapFlags, MremapFlags, ProtFlags, mmap, mmap_anonymous, mremap_fixed, munmap};
use std::{
    collections::BTreeMap,
    os::fd::BorrowedFd,
    ptr::{null_mut, with_exposed_provenance_mut},
    sync::{Mutex, OnceLock},
};
use ur_lock::locked;

/// The size of the region of device addresses.
const SIZE: u64 = 4 << 40;
/// The size of the devices' pages.
pub const GRANULE: u64 = 2 << 20;

struct Space {
    base: u64,
    /// The ranges in use, and where the next search begins, so that addresses are not reused soon.
    taken: Mutex<(BTreeMap<u64, u64>, u64)>,
}
fn space() -> Answer<&'static Space> {
    static SPACE: OnceLock<Option<Space>> = OnceLock::new();
    let make = || {
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        let bytes = (2 * SIZE + GRANULE) as usize;
        // SAFETY: creates a new mapping, at an address that the kernel chooses.
        let at = unsafe { mmap_anonymous(null_mut(), bytes, ProtFlags::empty(), flags) }.ok()?;
        let base = (at.expose_provenance() as u64).next_multiple_of(GRANULE);
        Some(Space { base, taken: Mutex::new((BTreeMap::new(), base)) })
    };
    SPACE.get_or_init(make).as_ref().ok_or(OUT_OF_MEMORY)
}
/// Whether it is a device address, mapped or not.
pub fn is_device(at: u64) -> bool {
    space().is_ok_and(|s| (s.base..s.base + SIZE).contains(&at))
}
/// Returns the host address through which the driver accesses the memory at `at`.
pub fn reach(at: u64) -> *mut u8 {
    with_exposed_provenance_mut(at.wrapping_add(if is_device(at) { SIZE } else { 0 }) as usize)
}
/// Reserves `bytes` of addresses, aligned to `align`; at `hint` if that range is free.
pub fn take(bytes: u64, align: u64, hint: u64) -> Answer<u64> {
    let space = space()?;
    let (begin, end) = (space.base, space.base + SIZE);
    let mut taken = locked(&space.taken);
    let is_free = |map: &BTreeMap<u64, u64>, at: u64| {
        let stop = at.checked_add(bytes).filter(|stop| at >= begin && *stop <= end);
        stop.is_some_and(|stop| map.range(..stop).next_back().is_none_or(|(b, n)| b + n <= at))
    };
    let (map, cursor) = &mut *taken;
    let mut found = (hint.is_multiple_of(align) && is_free(map, hint)).then_some(hint);
    for from in [*cursor, begin] {
        let mut at = from.next_multiple_of(align);
        while found.is_none() && at < end {
            if is_free(map, at) {
                found = Some(at);
            }
            let after = at.saturating_add(bytes).min(end);
            let Some((b, n)) = map.range(..after).next_back() else { break };
            at = (b + n).max(at + 1).next_multiple_of(align);
        }
    }
    let at = found.ok_or(OUT_OF_MEMORY)?;
    // Leave an unused page between neighbours, so that an access past the end of one does not hit the next.
    map.insert(at, bytes);
    *cursor = at + bytes + GRANULE;
    Ok(at)
}
/// Releases a range that [`take`] reserved.
pub fn give(at: u64) {
    if let Ok(space) = space() {
        locked(&space.taken).0.remove(&at);
    }
}
/// Maps a file for devices at `at`.
pub fn map(at: u64, bytes: u64, file: BorrowedFd<'_>, offset: u64) -> Answer {
    let flags = MapFlags::SHARED | MapFlags::FIXED;
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: the second region belongs to this file, and `at` was reserved by `take`.
    let mapped = unsafe { mmap(reach(at).cast(), bytes as usize, protection, flags, file, offset) };
    mapped.map(drop).map_err(|_| OPERATING_SYSTEM)
}
/// Maps a file at any address, so that it can be mapped again after it was closed.
pub fn park(bytes: u64, file: BorrowedFd<'_>) -> Answer<u64> {
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: creates a new mapping, at an address that the kernel chooses.
    let at = unsafe { mmap(null_mut(), bytes as usize, protection, MapFlags::SHARED, file, 0) };
    at.map(|at| at.expose_provenance() as u64).map_err(|_| OPERATING_SYSTEM)
}
/// Maps a parked file for devices at `at`: `mremap` of a shared mapping with the old size 0 duplicates it.
pub fn again(parked: u64, at: u64, bytes: u64) -> Answer {
    let (from, to) = (reach(parked).cast(), reach(at).cast());
    // SAFETY: as in `map`; the parked mapping stays unchanged.
    let mapped = unsafe { mremap_fixed(from, 0, bytes as usize, MremapFlags::MAYMOVE, to) };
    mapped.map(drop).map_err(|_| OPERATING_SYSTEM)
}
/// Undoes [`map`].
pub fn unmap(at: u64, bytes: u64) {
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE | MapFlags::FIXED;
    // SAFETY: as in `map`; the range was removed from the table first, so the memory is not accessed any
    // more.
    let mapped =
        unsafe { mmap_anonymous(reach(at).cast(), bytes as usize, ProtFlags::empty(), flags) };
    mapped.expect("the kernel replaces one mapping by another");
}
/// Maps memory that both the host and devices access at the same address.
pub fn host(bytes: u64) -> Answer<u64> {
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: creates a new mapping, at an address that the kernel chooses.
    let at = unsafe {
        mmap_anonymous(
            null_mut(),
            bytes as usize,
            protection,
            MapFlags::PRIVATE | MapFlags::NORESERVE,
        )
    };
    at.map(|at| at.expose_provenance() as u64).map_err(|_| OUT_OF_MEMORY)
}
/// Undoes [`host`].
pub fn host_free(at: u64, bytes: u64) {
    // SAFETY: `host` mapped it with this length, and it was removed from the table of ranges.
    let gone = unsafe { munmap(reach(at).cast(), bytes as usize) };
    gone.expect("the mapping is this driver's own");
}
