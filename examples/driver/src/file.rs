//! The driver of this device, which is the kernel: files without a name, mapped into this process. What a real backend has
//! in `driver.rs` and `native/` is here, and no unsafe code is anywhere else.
#![expect(unsafe_code, reason = "maps files; copies between addresses that C gave")]
use rustix::{
    fs::{
        FallocateFlags, MemfdFlags, SealFlags, fallocate, fcntl_add_seals, ftruncate, memfd_create,
    },
    io::Errno,
    mm::{Advice, MapFlags, ProtFlags, madvise, mmap, munmap},
};
use std::{
    os::fd::OwnedFd,
    ptr::{copy_nonoverlapping, null_mut, with_exposed_provenance_mut},
    sync::Arc,
};
use ur_hal::{Address, Error, ErrorKind, Memory, Range, Result};
use ur_mapping::{fork_count, mappings_exhausted};

/// What the kernel said, as what it means here.
fn failed(errno: Errno) -> Error {
    let kind = match errno {
        Errno::MFILE | Errno::NFILE => ErrorKind::OutOfResources,
        Errno::NOMEM if mappings_exhausted() => ErrorKind::OutOfResources,
        _ => ErrorKind::OutOfDeviceMemory,
    };
    let why = "the kernel has no memory for the device: free some, or raise the limit";
    Error::new(kind, why).with_status(errno.raw_os_error())
}
/// The page: what lengths and offsets of mappings are multiples of, in bytes.
pub fn page() -> usize {
    rustix::param::page_size()
}

/// A file, or a part of one, at an address. Dropped, it is unmapped; the file goes with the last who has it.
#[derive(Debug)]
pub struct Mapped {
    fd: Arc<OwnedFd>,
    /// Where in the file it begins.
    from: usize,
    range: Range,
    /// The process that mapped it: a forked child did not.
    fork: u64,
}
impl Mapped {
    /// A new file of so many zeros. Its size is sealed: who is sent the descriptor cannot cut it under us.
    pub fn create(bytes: usize) -> Result<Self> {
        let whole = bytes.checked_next_multiple_of(page()).ok_or(ErrorKind::OutOfDeviceMemory)?;
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let fd = memfd_create("example", flags).map_err(failed)?;
        ftruncate(&fd, whole as u64).map_err(failed)?;
        fcntl_add_seals(&fd, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)
            .map_err(failed)?;
        // Now, so that a lack of memory is an error here and not a fault later.
        fallocate(&fd, FallocateFlags::empty(), 0, whole as u64).map_err(failed)?;
        Self::map(Arc::new(fd), 0, whole)
    }
    /// `bytes` of a file from a page's begin on.
    pub fn map(fd: Arc<OwnedFd>, from: usize, bytes: usize) -> Result<Self> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: without FIXED the kernel takes addresses that nothing else has.
        let at = unsafe { mmap(null_mut(), bytes, access, MapFlags::SHARED, &fd, from as u64) };
        let at = at.map_err(failed)?;
        let start = Address::new(at.expose_provenance()).ok_or(ErrorKind::Unknown)?;
        let mapped = Self { fd, from, range: Range::new(start, bytes)?, fork: fork_count() };
        // SAFETY: the range is this mapping. A child of a fork is not to have the device's memory.
        unsafe { madvise(at, bytes, Advice::LinuxDontFork) }.map_err(failed)?;
        Ok(mapped)
    }
    /// Its file, and where in that it begins.
    pub fn file(&self) -> (&Arc<OwnedFd>, usize) {
        (&self.fd, self.from)
    }
}
impl Memory for Mapped {
    fn range(&self) -> Range {
        self.range
    }
}
impl Drop for Mapped {
    fn drop(&mut self) {
        if self.fork == fork_count() {
            let at = with_exposed_provenance_mut(self.range.start().get());
            // SAFETY: the range is ours, and the core drops memory only when nothing uses it any more.
            let _ = unsafe { munmap(at, self.range.bytes()) };
        }
    }
}

/// What is at an address.
pub fn read(from: Address, bytes: usize) -> Vec<u8> {
    let mut out = vec![0; bytes];
    let from = with_exposed_provenance_mut::<u8>(from.get());
    // SAFETY: the caller of the entry promised `bytes` readable ones there; the vector is ours.
    unsafe { copy_nonoverlapping(from, out.as_mut_ptr(), bytes) };
    out
}
/// Puts bytes at an address.
pub fn write(to: Address, what: &[u8]) {
    let to = with_exposed_provenance_mut::<u8>(to.get());
    // SAFETY: the caller of the entry promised as many writable ones there.
    unsafe { copy_nonoverlapping(what.as_ptr(), to, what.len()) };
}
