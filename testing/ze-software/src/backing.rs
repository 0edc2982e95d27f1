//! Memory that can be shared: anonymous files and their mappings. A file represents a dma-buf: its descriptor
//! is exported and imported.
#![expect(unsafe_code, reason = "maps files")]
use crate::{inject::Answer, knob, taken_fd::TakenFd};
use rustix::{
    fs::{MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, fstat, ftruncate, memfd_create},
    io::{Errno, fcntl_dupfd_cloexec},
    mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, mprotect, munmap},
    process::{Resource, Rlimit, getrlimit, setrlimit},
};
use std::{
    ffi::c_void,
    ops::Range,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::{Arc, LazyLock, Once, OnceLock},
};
use ze_sys::*;

/// The page size of the host.
pub const PAGE: usize = 4096;
/// The page size of devices.
pub const DEVICE_PAGE: usize = 64 << 10;

/// The addresses of device memory if host accesses to it must fault (`ZE_SOFTWARE_HOST_FAULT`): nothing is
/// mapped there, and Linux places neither programs nor mappings there by itself.
const TRAPS: Range<usize> = 0x3800_0000_0000..0x5000_0000_0000;
/// The distance from such an address to the driver's own mapping of the memory.
const APART: usize = 0x3000_0000_0000;
/// Whether host accesses to device memory fault.
fn host_faults() -> bool {
    static FAULTS: LazyLock<bool> = LazyLock::new(|| knob::is("HOST_FAULT", "1"));
    *FAULTS
}
/// The address at which the driver itself accesses the memory of a command.
pub fn reached_at(address: usize) -> usize {
    if TRAPS.contains(&address) && host_faults() { address + APART } else { address }
}

/// The bytes of an allocation or of a physical memory; kept by all that map it.
pub struct Backing {
    file: OwnedFd,
    /// Bytes of the file that may be mapped.
    pub size: usize,
    /// The caller's descriptor, if the driver took ownership of it.
    taken: OnceLock<TakenFd>,
}
fn failed(errno: Errno) -> ze_result_t {
    match errno {
        Errno::NOMEM | Errno::MFILE | Errno::NFILE => ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY,
        _ => ZE_RESULT_ERROR_INVALID_ARGUMENT,
    }
}
/// Raises the limit of descriptors as far as the system permits, because each allocation has one.
fn raise_limit() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let limit = getrlimit(Resource::Nofile);
        // If it cannot be raised, an allocation fails when descriptors run out.
        let _raised =
            setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
    });
}
impl Backing {
    /// New zeroed memory of `size` bytes; the host's memory is used as pages are touched.
    pub fn new(size: usize) -> Answer<Arc<Self>> {
        raise_limit();
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = memfd_create("ze-software", flags).map_err(failed)?;
        ftruncate(&file, size as u64).map_err(failed)?;
        // A receiver of the descriptor cannot shrink the memory, as with a dma-buf.
        let seals = SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL;
        fcntl_add_seals(&file, seals).map_err(failed)?;
        Ok(Arc::new(Self { file, size, taken: OnceLock::new() }))
    }
    /// Imports memory by a descriptor, which stays the caller's.
    pub fn of(descriptor: BorrowedFd<'_>) -> Answer<Arc<Self>> {
        Self::owned(fcntl_dupfd_cloexec(descriptor, 0).map_err(failed)?)
    }
    /// Takes over a descriptor. It must be of whole pages, and sealed against shrinking, as a dma-buf is;
    /// files on a disk are not.
    pub fn owned(file: OwnedFd) -> Answer<Arc<Self>> {
        let seals = fcntl_get_seals(&file).map_err(failed)?;
        let size = usize::try_from(fstat(&file).map_err(failed)?.st_size);
        match size {
            Ok(size)
                if size > 0
                    && size.is_multiple_of(PAGE)
                    && seals.contains(SealFlags::GROW | SealFlags::SHRINK) =>
            {
                Ok(Arc::new(Self { file, size, taken: OnceLock::new() }))
            }
            _ => Err(ZE_RESULT_ERROR_INVALID_ARGUMENT),
        }
    }
    /// Makes the driver the owner of the descriptor `number` of an import; it is closed with the memory.
    ///
    /// # Errors
    /// Returns an error if the file cannot be queried.
    pub fn take(&self, number: i32) -> Answer {
        let taken = TakenFd { number, file: self.id()? };
        self.taken.set(taken).map_err(|_| ZE_RESULT_ERROR_INVALID_ARGUMENT)
    }
    /// A new descriptor for an export.
    pub fn export(&self) -> Answer<OwnedFd> {
        fcntl_dupfd_cloexec(self.file.as_fd(), 0).map_err(failed)
    }
    /// The number of the file, which is the same in every process.
    pub fn id(&self) -> Answer<u64> {
        Ok(fstat(&self.file).map_err(failed)?.st_ino)
    }
}
/// Borrows a descriptor of the caller.
pub fn borrow(raw: i32) -> Answer<BorrowedFd<'static>> {
    if raw < 0 {
        return Err(ZE_RESULT_ERROR_INVALID_ARGUMENT);
    }
    // SAFETY: the caller keeps the descriptor open during the call, in which it is duplicated; an operation
    // on one that is not open only fails.
    Ok(unsafe { BorrowedFd::borrow_raw(raw) })
}
/// An exclusively owned range of addresses.
pub struct Mapping {
    pub base: usize,
    pub size: usize,
}
impl Mapping {
    /// Reserves addresses without memory, at a multiple of `alignment` (a power of two); `is_devices`: host
    /// accesses may have to fault.
    pub fn reserve(size: usize, alignment: usize, is_devices: bool) -> Answer<Self> {
        let more = size.checked_add(alignment).ok_or(ZE_RESULT_ERROR_UNSUPPORTED_SIZE)?;
        let start = nothing(0, more, MapFlags::empty())?;
        let base = start.next_multiple_of(alignment);
        unmap(start, base - start);
        unmap(base + size, start + more - base - size);
        let there = Self { base, size };
        if !(is_devices && host_faults()) {
            return Ok(there);
        }
        let base = base.checked_sub(APART).filter(|base| TRAPS.contains(base));
        let base = base.ok_or(ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY)?;
        nothing(base, size, MapFlags::FIXED_NOREPLACE)?;
        std::mem::forget(there); // this mapping unmaps both
        Ok(Self { base, size })
    }
    /// Maps the whole of `backing`, at a multiple of `alignment`.
    pub fn of(backing: &Backing, size: usize, alignment: usize, is_devices: bool) -> Answer<Self> {
        let mapping = Self::reserve(size, alignment, is_devices)?;
        let access = ProtFlags::READ | ProtFlags::WRITE;
        map(reached_at(mapping.base), size, backing, 0, access)?;
        Ok(mapping)
    }
}
impl Drop for Mapping {
    fn drop(&mut self) {
        unmap(self.base, self.size);
        if reached_at(self.base) != self.base {
            unmap(reached_at(self.base), self.size);
        }
    }
}
/// Maps inaccessible addresses at `base`, or anywhere if that is 0.
fn nothing(base: usize, size: usize, flags: MapFlags) -> Answer<usize> {
    let flags = flags | MapFlags::PRIVATE | MapFlags::NORESERVE;
    // SAFETY: a new range, or one that the caller knows to be this driver's.
    let start = unsafe { mmap_anonymous(at(base), size, ProtFlags::empty(), flags) };
    start.map(<*mut c_void>::expose_provenance).map_err(failed)
}
fn at(address: usize) -> *mut c_void {
    std::ptr::with_exposed_provenance_mut(address)
}
fn unmap(base: usize, size: usize) {
    if size != 0 {
        // SAFETY: the driver reserved the range, and its owner does not use it any more.
        if let Err(errno) = unsafe { munmap(at(base), size) } {
            eprintln!("ze-software: {size} bytes at {base:#x} stay mapped: {errno}");
        }
    }
}
/// Maps a part of `backing` at reserved addresses.
pub fn map(base: usize, size: usize, of: &Backing, offset: usize, access: ProtFlags) -> Answer {
    if offset.checked_add(size).is_none_or(|end| end > of.size) {
        return Err(ZE_RESULT_ERROR_INVALID_ARGUMENT);
    }
    let flags = MapFlags::SHARED | MapFlags::FIXED;
    // SAFETY: the driver reserved the addresses; the file is long enough.
    let mapped = unsafe { mmap(at(base), size, access, flags, &of.file, offset as u64) };
    mapped.map(drop).map_err(failed)
}
/// Removes the memory from reserved addresses.
pub fn clear(base: usize, size: usize) -> Answer {
    nothing(base, size, MapFlags::FIXED).map(drop)
}
/// Changes the access to reserved addresses.
pub fn protect(base: usize, size: usize, access: ProtFlags) -> Answer {
    let flags = rustix::mm::MprotectFlags::from_bits_retain(access.bits());
    // SAFETY: the driver reserved the addresses.
    unsafe { mprotect(at(base), size, flags) }.map_err(failed)
}
