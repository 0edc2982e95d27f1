//! Memfds, mappings and reservations, each owned by a value that releases it. `backing.rs` and the core decide who owns
//! which bytes.
#![expect(unsafe_code, reason = "maps and unmaps memory")]
use crate::host::free_memory;
use rustix::{
    fs::{FallocateFlags, SealFlags, fallocate, fcntl_add_seals, fstat, ftruncate},
    io::{Errno, retry_on_intr},
    mm::{
        Advice, MapFlags, MprotectFlags, ProtFlags, madvise, mmap, mmap_anonymous, mprotect, munmap,
    },
};
use std::{
    os::fd::{AsFd, OwnedFd},
    ptr::{null_mut, with_exposed_provenance_mut},
    sync::{Arc, LazyLock},
};
use ur_adapter::{
    error::{Error, ErrorCode, Result},
    memory::UsmPtr,
};
use ur_hal::{Access, Memory, MemoryKind, Range};
use ur_ipc::SharedMemory;
use ur_mapping::{fork_count, mappings_exhausted};

/// The page size in bytes, of which every offset and length of a mapping is a multiple.
pub fn page() -> usize {
    static PAGE: LazyLock<usize> = LazyLock::new(rustix::param::page_size);
    *PAGE
}

/// Opened memory of this size and above is mapped with its pages, in chunks of `POPULATE_CHUNK`: one fault per page
/// would cost more, and one long call would keep the address space locked. This is done only while it allocates no new
/// memory: an exporter may claim any size for a memfd without pages, for which this process would then pay. It pays for
/// at most one chunk before it notices.
pub const POPULATE_FROM: usize = 2 << 20;
const POPULATE_CHUNK: usize = 32 << 20;
/// A commit is split into calls of this size, so that a signal interrupts only one of them.
const COMMIT_CHUNK: usize = 256 << 20;
/// Older kernels end the call at any signal without having done anything. Where signals are frequent, the calls shrink,
/// down to this size, until one completes between two signals.
const COMMIT_AT_LEAST: usize = 64 << 10;
/// The kernel commits a memfd page by page and refuses none: when memory runs out, it kills a process instead. Commits
/// of this size and above are therefore first compared with the free memory, less `SPARE`.
const ASK_FROM: usize = 16 << 20;
const SPARE: usize = 64 << 20;
const COMMITTING: &str = "get memory for device memory";

/// Which memory runs out: it determines the error code.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Side {
    /// Memfds, which device USM and physical memory consist of; the only kind that can be shared.
    Device,
    /// Anonymous memory, which host and shared USM consist of.
    Host,
}
impl From<MemoryKind> for Side {
    fn from(kind: MemoryKind) -> Self {
        match kind {
            MemoryKind::Device => Self::Device,
            MemoryKind::Host | MemoryKind::Managed => Self::Host,
        }
    }
}
impl Side {
    fn exhausted(self) -> ErrorCode {
        match self {
            Self::Device => ErrorCode::OutOfDeviceMemory,
            Self::Host => ErrorCode::OutOfHostMemory,
        }
    }
}

/// The protection of a new mapping.
fn protection(access: Access) -> ProtFlags {
    match access {
        Access::None => ProtFlags::empty(),
        Access::Read => ProtFlags::READ,
        Access::ReadWrite => ProtFlags::READ | ProtFlags::WRITE,
    }
}
/// The protection when an existing mapping is changed.
fn changed(access: Access) -> MprotectFlags {
    match access {
        Access::None => MprotectFlags::empty(),
        Access::Read => MprotectFlags::READ,
        Access::ReadWrite => MprotectFlags::READ | MprotectFlags::WRITE,
    }
}

/// The error for a refused request; it distinguishes the limits of this process from a lack of memory.
fn refused(doing: &str, errno: Errno, side: Side) -> Error {
    let (code, advice) = match errno {
        Errno::MFILE => (
            ErrorCode::OutOfResources,
            "this process has reached its limit of open descriptors: raise it with `ulimit -n`, or free memory",
        ),
        Errno::NFILE => (
            ErrorCode::OutOfResources,
            "the system has reached its limit of open files: raise fs.file-max",
        ),
        Errno::NOMEM | Errno::AGAIN if mappings_exhausted() => (
            ErrorCode::OutOfResources,
            "this process has reached the limit on mappings: raise vm.max_map_count, or share fewer and larger allocations",
        ),
        Errno::NOMEM | Errno::NOSPC | Errno::AGAIN => (
            side.exhausted(),
            "memory is short, or a limit on it (a cgroup's, or `ulimit -v`) is reached: free some, or raise the limit",
        ),
        Errno::NOSYS => (
            ErrorCode::UnsupportedFeature,
            "this kernel, or its seccomp filter, lacks the call: allow memfd_create and fallocate",
        ),
        Errno::PERM | Errno::ACCESS => (
            ErrorCode::InvalidValue,
            "the kernel or a security policy denied it: allow memfd_create, mmap and their seals",
        ),
        _ => (ErrorCode::InvalidValue, "the kernel did not accept the request"),
    };
    Error::new(code, format!("could not {doing}: {errno}; {advice}")).native(errno.raw_os_error())
}

/// Who may write a memfd once it is sealed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Writers {
    /// Every holder of a descriptor.
    Everyone,
    /// Only mappings that exist at that time. A read-only descriptor would not suffice, because it can be reopened for
    /// writing.
    MappedAlready,
}

/// Memory with a descriptor. Its size is fixed, because it is sealed against shrinking and growing.
#[derive(Clone, Debug)]
pub struct Memfd {
    fd: Arc<OwnedFd>,
    bytes: usize,
}

impl Memfd {
    /// Makes a memfd of `bytes` zero bytes, without memory yet. [`Memfd::seal`] it before another process gets its
    /// descriptor.
    ///
    /// # Errors
    /// `OUT_OF_RESOURCES` without descriptors, `OUT_OF_DEVICE_MEMORY` without memory.
    pub fn create(bytes: usize) -> Result<Self> {
        ur_ipc::file_size::may_have(bytes as u64)
            .map_err(|e| Error::from(e).with_code(ErrorCode::OutOfDeviceMemory))?;
        let doing = "create a memfd";
        let fd = ur_ipc::memfd("causeway").map_err(|e| refused(doing, e, Side::Device))?;
        let sized = ftruncate(&fd, bytes as u64).map_err(|e| match e {
            Errno::INVAL | Errno::FBIG => Errno::NOMEM, // more than any file may have
            e => e,
        });
        sized.map_err(|e| refused("size a memfd", e, Side::Device))?;
        Ok(Self { fd: Arc::new(fd), bytes })
    }
    /// Fixes the size for good, and who may write; no seal can be added later.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn seal(&self, writers: Writers) -> Result<()> {
        let fixed = SealFlags::SHRINK | SealFlags::GROW;
        let seals = match writers {
            Writers::Everyone => fixed | SealFlags::SEAL,
            Writers::MappedAlready => {
                // Before SEAL, after which no seal can be added.
                fcntl_add_seals(&*self.fd, SealFlags::FUTURE_WRITE)
                    .map_err(|e| refused("seal a memfd against writers", e, Side::Device))?;
                fixed | SealFlags::SEAL
            }
        };
        fcntl_add_seals(&*self.fd, seals).map_err(|e| refused("seal a memfd", e, Side::Device))
    }
    /// Wraps a memfd of another process, which cannot shrink (or an access could kill this process). Whether it may be
    /// written is left for the caller to check.
    ///
    /// # Errors
    /// `INVALID_VALUE` if it is not a memfd.
    pub fn adopt(memory: &SharedMemory) -> Result<Self> {
        let hostile = |why| {
            let text = format!("the descriptor that came with the ticket is refused: {why}");
            Error::new(ErrorCode::InvalidValue, text)
        };
        if !memory.is_memfd() {
            return Err(hostile("it is not a memfd"));
        }
        let bytes = usize::try_from(memory.bytes()).map_err(|_| hostile("it is too large"))?;
        Ok(Self { fd: Arc::clone(memory.fd()), bytes })
    }
    /// Allocates the memory of `[from, from + bytes)` now, so that a lack of memory is an error here and not a fault
    /// later.
    ///
    /// # Errors
    /// `OUT_OF_DEVICE_MEMORY`; what was committed until then is released.
    pub fn commit(&self, from: usize, bytes: usize) -> Result<()> {
        let (mut done, mut most) = (0, COMMIT_CHUNK);
        while done < bytes {
            let now = (bytes - done).min(most);
            let at = (from + done) as u64;
            if now >= ASK_FROM
                && free_memory().is_some_and(|free| free < (bytes - done + SPARE) as u64)
            {
                let _ = self.discard(from, done); // may fail, see below
                return Err(refused(COMMITTING, Errno::NOMEM, Side::Device));
            }
            match fallocate(&*self.fd, FallocateFlags::empty(), at, now as u64) {
                Ok(()) => done += now,
                Err(Errno::INTR) => most = (now / 2).max(COMMIT_AT_LEAST),
                Err(errno) => {
                    // If this fails too, the memory is released with the memfd.
                    let _ = self.discard(from, done);
                    return Err(refused(COMMITTING, errno, Side::Device));
                }
            }
        }
        Ok(())
    }
    /// Releases the memory of `[from, from + bytes)`, which reads as zeros from then on.
    ///
    /// # Errors
    /// The kernel's error; the memory then stays.
    pub fn discard(&self, from: usize, bytes: usize) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        retry_on_intr(|| fallocate(&*self.fd, flags, from as u64, bytes as u64))
            .map_err(|e| refused("give memory back", e, Side::Device))
    }
    /// How many of its bytes have memory; 0 if the kernel does not tell.
    fn pages(&self) -> u64 {
        fstat(&*self.fd).map_or(0, |stat| u64::try_from(stat.st_blocks).unwrap_or(0) * 512)
    }
    /// The size in bytes that its descriptor exposes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
    /// Its descriptor, for an offer.
    pub fn fd(&self) -> &Arc<OwnedFd> {
        &self.fd
    }
}

/// A range of addresses that this process owns, unmapped on drop. In a forked child the parent's addresses may be
/// anything, so the child leaves them alone.
#[derive(Debug)]
pub struct Mapping {
    base: UsmPtr,
    bytes: usize,
    fork: u64,
}

impl Mapping {
    /// Maps `bytes` of `memfd` starting at `from`, at a multiple of `align`. The mapping is shared with all others of
    /// the memfd, and forked children do not inherit it.
    ///
    /// # Errors
    /// `OUT_OF_RESOURCES` at the limit on mappings, `OUT_OF_DEVICE_MEMORY`.
    pub fn shared(memfd: &Memfd, from: usize, bytes: usize, align: usize) -> Result<Self> {
        let mapping = Self::reserve(None, bytes, align, Side::Device)?;
        mapping.place(0, memfd, from, bytes, Access::ReadWrite, MapFlags::empty())?;
        mapping.keep_from_children()?;
        Ok(mapping)
    }
    /// Maps part of another process's memfd, page-aligned, for the given access. With `is_populated`, large parts are
    /// mapped with their pages.
    ///
    /// # Errors
    /// As for [`Mapping::shared`]; `INVALID_VALUE` for a memfd that may not be mapped with this access.
    pub fn opened(
        memfd: &Memfd,
        (from, bytes): (usize, usize),
        access: Access,
        is_populated: bool,
    ) -> Result<Self> {
        let mapping = match bytes < POPULATE_FROM || !is_populated {
            true => Self::anywhere(memfd, from, bytes, access)?,
            false => Self::populated(memfd, from, bytes, access)?,
        };
        mapping.keep_from_children()?;
        Ok(mapping)
    }
    /// Maps in one call, without the pages.
    fn anywhere(memfd: &Memfd, from: usize, bytes: usize, access: Access) -> Result<Self> {
        let fails = |errno| refused("map device memory", errno, Side::Device);
        let bytes = bytes.checked_next_multiple_of(page()).ok_or_else(|| fails(Errno::NOMEM))?;
        let (at, access) = (null_mut(), protection(access));
        // SAFETY: without FIXED the kernel chooses addresses that are free.
        let start =
            unsafe { mmap(at, bytes, access, MapFlags::SHARED, memfd.fd.as_fd(), from as u64) }
                .map_err(fails)?;
        Ok(Self { base: UsmPtr::new(start)?, bytes, fork: fork_count() })
    }
    /// Maps with the pages that exist, a chunk at a time, because the kernel holds the lock of the address space during
    /// each call. The rest is mapped without pages, which are allocated as they are touched.
    fn populated(memfd: &Memfd, from: usize, bytes: usize, access: Access) -> Result<Self> {
        let mapping = Self::reserve(None, bytes, page(), Side::Device)?;
        let place = |at, now, flags| mapping.place(at, memfd, from + at, now, access, flags);
        let (mut at, mut has) = (0, memfd.pages());
        if has < bytes as u64 {
            has = 0; // it has less memory than is claimed, and mapping with pages would allocate the rest
        }
        while at < bytes && has > 0 {
            let now = (bytes - at).min(POPULATE_CHUNK);
            place(at, now, MapFlags::POPULATE)?;
            at += now;
            if memfd.pages() > has {
                break; // this allocated pages: the exporter has released some, or its pages are elsewhere in the memfd
            }
        }
        if at < bytes {
            place(at, bytes - at, MapFlags::empty())?;
        }
        Ok(mapping)
    }
    /// Maps `bytes` of anonymous memory; forked children get a copy.
    ///
    /// # Errors
    /// `OUT_OF_RESOURCES` at the limit on mappings, `OUT_OF_HOST_MEMORY`.
    pub fn anonymous(bytes: usize, align: usize) -> Result<Self> {
        let mapping = Self::reserve(None, bytes, align, Side::Host)?;
        let (at, flags) = (mapping.base.as_ptr(), MapFlags::PRIVATE | MapFlags::FIXED);
        // SAFETY: `reserve` just made the range, and nothing is mapped in it yet.
        unsafe { mmap_anonymous(at, mapping.bytes, protection(Access::ReadWrite), flags) }
            .map_err(|e| refused("map host memory", e, Side::Host))?;
        Ok(mapping)
    }
    /// Its start address.
    pub fn base(&self) -> UsmPtr {
        self.base
    }
    /// Its length in bytes.
    #[cfg(test)]
    pub fn bytes(&self) -> usize {
        self.bytes
    }
    /// Whether this process made it; a forked child only inherited it.
    pub fn is_ours(&self) -> bool {
        self.fork == fork_count()
    }

    /// Reserves addresses without memory at a multiple of `align`, at `hint` if that is free.
    fn reserve(hint: Option<UsmPtr>, bytes: usize, align: usize, side: Side) -> Result<Self> {
        let surplus = if align > page() { align } else { 0 };
        let fails = |errno| refused("reserve addresses", errno, side);
        let bytes = bytes.checked_next_multiple_of(page()).ok_or_else(|| fails(Errno::NOMEM))?;
        let asked = bytes.checked_add(surplus).ok_or_else(|| fails(Errno::NOMEM))?;
        let at = with_exposed_provenance_mut(hint.map_or(0, UsmPtr::addr));
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: without FIXED the kernel chooses addresses that are free.
        let start =
            unsafe { mmap_anonymous(at, asked, ProtFlags::empty(), flags) }.map_err(fails)?;
        let mut whole = Self { base: UsmPtr::new(start)?, bytes: asked, fork: fork_count() };
        if surplus == 0 {
            return Ok(whole);
        }
        // Cut it to its aligned middle.
        let lead = whole.base.addr().next_multiple_of(align) - whole.base.addr();
        let fork = whole.fork;
        let middle = Self { base: whole.base.offset(lead)?, bytes, fork };
        let tail = Self { base: middle.base.offset(bytes)?, bytes: surplus - lead, fork };
        whole.bytes = lead;
        drop((whole, tail));
        Ok(middle)
    }
    /// Maps `bytes` of `memfd` at offset `at` of this range, in place of what was there.
    fn place(
        &self,
        at: usize,
        memfd: &Memfd,
        from: usize,
        bytes: usize,
        access: Access,
        flags: MapFlags,
    ) -> Result<()> {
        let to = self.part(at, bytes)?.as_ptr();
        let flags = MapFlags::SHARED | MapFlags::FIXED | flags;
        // SAFETY: the range belongs to this value; the API obliges the caller not to use what was mapped there.
        unsafe { mmap(to, bytes, protection(access), flags, memfd.fd.as_fd(), from as u64) }
            .map(drop)
            .map_err(|e| refused("map device memory", e, Side::Device))
    }
    /// Turns part of this range into addresses without memory again.
    fn clear(&self, at: usize, bytes: usize) -> Result<()> {
        let to = self.part(at, bytes)?.as_ptr();
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE | MapFlags::FIXED;
        // SAFETY: as in `place`.
        unsafe { mmap_anonymous(to, bytes, ProtFlags::empty(), flags) }
            .map(drop)
            .map_err(|e| refused("unmap device memory", e, Side::Device))
    }
    /// Keeps forked children from inheriting device memory: they would share the parent's stores.
    fn keep_from_children(&self) -> Result<()> {
        self.advise(0, self.bytes, Advice::LinuxDontFork)
    }
    fn advise(&self, at: usize, bytes: usize, advice: Advice) -> Result<()> {
        let start = self.part(at, bytes)?.as_ptr();
        // SAFETY: the range belongs to this value, and the advice does not change its contents in this process.
        unsafe { madvise(start, bytes, advice) }
            .map_err(|e| refused("keep device memory from forked children", e, Side::Device))
    }
    /// The address of `[at, at + bytes)` if that lies within the range.
    fn part(&self, at: usize, bytes: usize) -> Result<UsmPtr> {
        match at.checked_add(bytes) {
            _ if !self.is_ours() => Err(Error::new(
                ErrorCode::Uninitialized,
                "the memory belongs to the process that this one was forked from",
            )),
            Some(end) if bytes > 0 && end <= self.bytes => self.base.offset(at),
            _ => Err(Error::new(
                ErrorCode::InvalidValue,
                format!("{bytes} bytes at offset {at} leave a range of {} bytes", self.bytes),
            )),
        }
    }
}
impl Drop for Mapping {
    fn drop(&mut self) {
        if self.bytes == 0 || !self.is_ours() {
            return; // an empty remainder of `reserve`, or a range of the parent process
        }
        // SAFETY: the range belongs to this value, which is being dropped. The kernel refuses only at its limit on
        // mappings, because a hole needs one more; the addresses then stay reserved, which does no harm.
        let _ = unsafe { munmap(self.base.as_ptr(), self.bytes) };
    }
}

/// Reserved addresses, into parts of which physical memory is mapped.
#[derive(Debug)]
pub struct Reservation(Mapping);

impl Reservation {
    /// Reserves `bytes` of addresses, a multiple of the page size, at `hint` if that is free.
    ///
    /// # Errors
    /// `OUT_OF_RESOURCES` at the limit on mappings, `OUT_OF_HOST_MEMORY`.
    pub fn new(hint: Option<UsmPtr>, bytes: usize) -> Result<Self> {
        Mapping::reserve(hint, bytes, page(), Side::Host).map(Self)
    }
    /// Its start address.
    pub fn base(&self) -> UsmPtr {
        self.0.base
    }
    /// The offset of `part` from the start, and its length.
    pub fn place(&self, part: Range) -> (usize, usize) {
        (part.start().get().wrapping_sub(self.0.base.addr()), part.bytes())
    }
    /// Maps `bytes` of `memfd`, starting at its offset `from`, at offset `at` of the reservation.
    ///
    /// # Errors
    /// `INVALID_VALUE` outside the reservation; else as for [`Mapping::shared`].
    pub fn map(
        &self,
        at: usize,
        memfd: &Memfd,
        from: usize,
        bytes: usize,
        access: Access,
    ) -> Result<()> {
        self.0.place(at, memfd, from, bytes, access, MapFlags::empty())?;
        self.0.advise(at, bytes, Advice::LinuxDontFork)
    }
    /// Unmaps part of the reservation; the addresses stay reserved.
    ///
    /// # Errors
    /// `INVALID_VALUE` outside the reservation; else as for [`Mapping::shared`].
    pub fn unmap(&self, at: usize, bytes: usize) -> Result<()> {
        self.0.clear(at, bytes)
    }
    /// Changes the access to part of the reservation.
    ///
    /// # Errors
    /// `INVALID_VALUE` outside the reservation; else as for [`Mapping::shared`].
    pub fn protect(&self, at: usize, bytes: usize, access: Access) -> Result<()> {
        let start = self.0.part(at, bytes)?.as_ptr();
        // SAFETY: the range belongs to this value; the caller requested the change of access.
        unsafe { mprotect(start, bytes, changed(access)) }
            .map_err(|e| refused("change the access to mapped memory", e, Side::Device))
    }
}
impl Memory for Reservation {
    fn range(&self) -> Range {
        Range::new(self.0.base.into(), self.0.bytes)
            .expect("what the kernel reserved has addresses")
    }
}

#[cfg(test)]
mod tests;
