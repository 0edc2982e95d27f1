//! Memory that can be given to others: anonymous files and where they are mapped. A file stands for a
//! dma-buf: its descriptor is what is exported and imported.
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

/// What the host's pages have.
pub const PAGE: usize = 4096;
/// What a device's pages have.
pub const DEVICE_PAGE: usize = 64 << 10;

/// Where a device's addresses are if the host is not to touch what is there (`ZE_SOFTWARE_HOST_FAULT`): nothing is mapped
/// there for it, and Linux puts neither programs nor mappings there unless it is asked to.
const TRAPS: Range<usize> = 0x3800_0000_0000..0x5000_0000_0000;
/// How far above such an address the driver has the memory for itself.
const APART: usize = 0x3000_0000_0000;
/// Whether a host that touches memory of a device faults.
fn host_faults() -> bool {
    static FAULTS: LazyLock<bool> = LazyLock::new(|| knob::is("HOST_FAULT", "1"));
    *FAULTS
}
/// Where the driver itself finds what is at an address that a command goes to.
pub fn reached_at(address: usize) -> usize {
    if TRAPS.contains(&address) && host_faults() { address + APART } else { address }
}

/// The bytes of an allocation or of a physical memory; kept by all that map it.
pub struct Backing {
    file: OwnedFd,
    /// Bytes of the file that may be mapped.
    pub size: usize,
    /// The caller's descriptor that became the driver's.
    taken: OnceLock<TakenFd>,
}
fn failed(errno: Errno) -> ze_result_t {
    match errno {
        Errno::NOMEM | Errno::MFILE | Errno::NFILE => ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY,
        _ => ZE_RESULT_ERROR_INVALID_ARGUMENT,
    }
}
/// Each allocation has its descriptor: as many as the system lets this process have.
fn raise_limit() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let limit = getrlimit(Resource::Nofile);
        // A limit that cannot be raised is met when descriptors run out, with an error then.
        let _raised =
            setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
    });
}
impl Backing {
    /// New memory of `size` bytes, all zero, which takes the host's memory as it is touched.
    pub fn new(size: usize) -> Answer<Arc<Self>> {
        raise_limit();
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = memfd_create("ze-software", flags).map_err(failed)?;
        ftruncate(&file, size as u64).map_err(failed)?;
        // Whoever gets the descriptor cannot take the bytes from under others, as with a dma-buf.
        let seals = SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL;
        fcntl_add_seals(&file, seals).map_err(failed)?;
        Ok(Arc::new(Self { file, size, taken: OnceLock::new() }))
    }
    /// Memory that came as a descriptor, which stays the caller's.
    pub fn of(descriptor: BorrowedFd<'_>) -> Answer<Arc<Self>> {
        Self::owned(fcntl_dupfd_cloexec(descriptor, 0).map_err(failed)?)
    }
    /// Memory that came as a descriptor: whole pages that nobody can shorten, as a dma-buf is. A file on a disk is none.
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
    /// From now on the descriptor `number` that it came by is the driver's, which closes it with the memory.
    ///
    /// # Errors
    /// When the system does not answer.
    pub fn take(&self, number: i32) -> Answer {
        let taken = TakenFd { number, file: self.id()? };
        self.taken.set(taken).map_err(|_| ZE_RESULT_ERROR_INVALID_ARGUMENT)
    }
    /// A descriptor of its own for somebody else.
    pub fn export(&self) -> Answer<OwnedFd> {
        fcntl_dupfd_cloexec(self.file.as_fd(), 0).map_err(failed)
    }
    /// The number of the file, the same in every process.
    pub fn id(&self) -> Answer<u64> {
        Ok(fstat(&self.file).map_err(failed)?.st_ino)
    }
}
/// A descriptor of the caller's.
pub fn borrow(raw: i32) -> Answer<BorrowedFd<'static>> {
    if raw < 0 {
        return Err(ZE_RESULT_ERROR_INVALID_ARGUMENT);
    }
    // SAFETY: the descriptor is the caller's for the time of the call; it is duplicated before the
    // call returns, and one that is not open only fails.
    Ok(unsafe { BorrowedFd::borrow_raw(raw) })
}
/// A range of addresses that is this one's alone.
pub struct Mapping {
    pub base: usize,
    pub size: usize,
}
impl Mapping {
    /// Addresses without memory, at a multiple of `alignment` (a power of two): a device's, or the host's too.
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
        std::mem::forget(there); // both are unmapped with this one
        Ok(Self { base, size })
    }
    /// The whole of `backing`, at a multiple of `alignment`.
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
/// Addresses that nobody may touch: at `base`, or wherever the system likes.
fn nothing(base: usize, size: usize, flags: MapFlags) -> Answer<usize> {
    let flags = flags | MapFlags::PRIVATE | MapFlags::NORESERVE;
    // SAFETY: a range that is fresh, or that the caller says is this driver's.
    let start = unsafe { mmap_anonymous(at(base), size, ProtFlags::empty(), flags) };
    start.map(<*mut c_void>::expose_provenance).map_err(failed)
}
fn at(address: usize) -> *mut c_void {
    std::ptr::with_exposed_provenance_mut(address)
}
fn unmap(base: usize, size: usize) {
    if size != 0 {
        // SAFETY: the range was reserved by this driver, whose client said that it is done with it.
        if let Err(errno) = unsafe { munmap(at(base), size) } {
            eprintln!("ze-software: {size} bytes at {base:#x} stay mapped: {errno}");
        }
    }
}
/// Maps part of `backing` over reserved addresses.
pub fn map(base: usize, size: usize, of: &Backing, offset: usize, access: ProtFlags) -> Answer {
    if offset.checked_add(size).is_none_or(|end| end > of.size) {
        return Err(ZE_RESULT_ERROR_INVALID_ARGUMENT);
    }
    let flags = MapFlags::SHARED | MapFlags::FIXED;
    // SAFETY: the addresses are reserved by this driver; the file is long enough.
    let mapped = unsafe { mmap(at(base), size, access, flags, &of.file, offset as u64) };
    mapped.map(drop).map_err(failed)
}
/// Takes the memory from reserved addresses.
pub fn clear(base: usize, size: usize) -> Answer {
    nothing(base, size, MapFlags::FIXED).map(drop)
}
/// Changes how reserved addresses may be touched.
pub fn protect(base: usize, size: usize, access: ProtFlags) -> Answer {
    let flags = rustix::mm::MprotectFlags::from_bits_retain(access.bits());
    // SAFETY: the addresses are reserved by this driver.
    unsafe { mprotect(at(base), size, flags) }.map_err(failed)
}
