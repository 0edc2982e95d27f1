//! Device addresses: a stretch of the process's addresses that the host cannot touch, and behind it,
//! at a fixed distance, a second one through which the driver reaches what is mapped at the first.
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

/// Bytes of device addresses.
const SIZE: u64 = 4 << 40;
/// Pages of devices.
pub const GRANULE: u64 = 2 << 20;

struct Space {
    base: u64,
    /// Taken stretches, and where the next search begins: what was freed is not soon used again.
    taken: Mutex<(BTreeMap<u64, u64>, u64)>,
}
fn space() -> Answer<&'static Space> {
    static SPACE: OnceLock<Option<Space>> = OnceLock::new();
    let make = || {
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        let bytes = (2 * SIZE + GRANULE) as usize;
        // SAFETY: a new mapping at an address of the kernel's choice.
        let at = unsafe { mmap_anonymous(null_mut(), bytes, ProtFlags::empty(), flags) }.ok()?;
        let base = (at.expose_provenance() as u64).next_multiple_of(GRANULE);
        Some(Space { base, taken: Mutex::new((BTreeMap::new(), base)) })
    };
    SPACE.get_or_init(make).as_ref().ok_or(OUT_OF_MEMORY)
}
/// Whether it is an address of devices, mapped or not.
pub fn is_device(at: u64) -> bool {
    space().is_ok_and(|s| (s.base..s.base + SIZE).contains(&at))
}
/// Where the driver reaches what devices see at `at`.
pub fn reach(at: u64) -> *mut u8 {
    with_exposed_provenance_mut(at.wrapping_add(if is_device(at) { SIZE } else { 0 }) as usize)
}
/// Takes `bytes` of addresses, multiples of `align`; at `hint` if that is free.
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
    // A page between neighbours: running over the end of one is not running into the next.
    map.insert(at, bytes);
    *cursor = at + bytes + GRANULE;
    Ok(at)
}
/// Gives back what [`take`] took.
pub fn give(at: u64) {
    if let Ok(space) = space() {
        locked(&space.taken).0.remove(&at);
    }
}
/// Maps a file's bytes for devices at `at`.
pub fn map(at: u64, bytes: u64, file: BorrowedFd<'_>, offset: u64) -> Answer {
    let flags = MapFlags::SHARED | MapFlags::FIXED;
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: the second stretch belongs to this file of the driver; `at` was taken.
    let mapped = unsafe { mmap(reach(at).cast(), bytes as usize, protection, flags, file, offset) };
    mapped.map(drop).map_err(|_| OPERATING_SYSTEM)
}
/// Maps a file somewhere, to map it again when it is closed.
pub fn park(bytes: u64, file: BorrowedFd<'_>) -> Answer<u64> {
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a new mapping at an address of the kernel's choice.
    let at = unsafe { mmap(null_mut(), bytes as usize, protection, MapFlags::SHARED, file, 0) };
    at.map(|at| at.expose_provenance() as u64).map_err(|_| OPERATING_SYSTEM)
}
/// Maps what is parked for devices at `at`: moving nothing of a shared mapping copies it.
pub fn again(parked: u64, at: u64, bytes: u64) -> Answer {
    let (from, to) = (reach(parked).cast(), reach(at).cast());
    // SAFETY: as for `map`; the parked mapping stays as it is.
    let mapped = unsafe { mremap_fixed(from, 0, bytes as usize, MremapFlags::MAYMOVE, to) };
    mapped.map(drop).map_err(|_| OPERATING_SYSTEM)
}
/// Undoes [`map`].
pub fn unmap(at: u64, bytes: u64) {
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE | MapFlags::FIXED;
    // SAFETY: as for `map`; nothing reaches it any more: the range left the table first.
    let mapped =
        unsafe { mmap_anonymous(reach(at).cast(), bytes as usize, ProtFlags::empty(), flags) };
    mapped.expect("the kernel replaces one mapping by another");
}
/// Memory that both the host and devices reach, by the same address.
pub fn host(bytes: u64) -> Answer<u64> {
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a new mapping at an address of the kernel's choice.
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
    // SAFETY: mapped by `host` with this length, and out of the table of ranges.
    let gone = unsafe { munmap(reach(at).cast(), bytes as usize) };
    gone.expect("the mapping is this driver's own");
}
