//! The kernel's side of memory: memfds, mappings and reservations, each owned by a value that
//! gives it back. Which bytes belong to whom is `backing.rs`'s and the core's.
#![expect(unsafe_code, reason = "maps and unmaps memory")]
use crate::host::free_memory;
use rustix::{
    fs::{
        FallocateFlags, MemfdFlags, SealFlags, fallocate, fcntl_add_seals, fstat, ftruncate,
        memfd_create,
    },
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

/// The page: what every offset and length of a mapping is a multiple of, in bytes.
pub fn page() -> usize {
    static PAGE: LazyLock<usize> = LazyLock::new(rustix::param::page_size);
    *PAGE
}

/// Opened memory of this size and more is mapped with its pages, in chunks of `POPULATE_CHUNK`:
/// a fault a page would cost more, and one long call would keep the address space locked. Only
/// while that takes no new memory: an exporter may claim any size for a memfd without pages, which
/// this process would then pay for. It pays for one chunk at most before it notices.
pub const POPULATE_FROM: usize = 2 << 20;
const POPULATE_CHUNK: usize = 32 << 20;
/// A commit is cut into calls of this size, so that a signal costs one of them and not all.
const COMMIT_CHUNK: usize = 256 << 20;
/// Older kernels end the call at any signal, and then it has done nothing: where signals come often the calls shrink until
/// one fits between two of them.
const COMMIT_AT_LEAST: usize = 64 << 10;
/// The kernel commits a memfd page by page and refuses none of them: at the end of memory it ends
/// a process instead. So commits from this size on are first held against what is free, less
/// `SPARE`.
const ASK_FROM: usize = 16 << 20;
const SPARE: usize = 64 << 20;
const COMMITTING: &str = "get memory for device memory";

/// Whose memory runs out: it decides the code of the error.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Side {
    /// Memfds: what device USM and physical memory are made of, and the only kind to be shared.
    Device,
    /// Anonymous memory: what host and shared USM are made of.
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

/// What may be done through a new mapping.
fn protection(access: Access) -> ProtFlags {
    match access {
        Access::None => ProtFlags::empty(),
        Access::Read => ProtFlags::READ,
        Access::ReadWrite => ProtFlags::READ | ProtFlags::WRITE,
    }
}
/// What may be done from now on.
fn changed(access: Access) -> MprotectFlags {
    match access {
        Access::None => MprotectFlags::empty(),
        Access::Read => MprotectFlags::READ,
        Access::ReadWrite => MprotectFlags::READ | MprotectFlags::WRITE,
    }
}

/// Why the kernel refused, told apart: limits of this process, or memory itself.
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
    /// Whoever holds a descriptor.
    Everyone,
    /// Only mappings that exist by then. A read-only descriptor would not do: it reopens read-write.
    MappedAlready,
}

/// Memory with a descriptor: of a fixed size, for it is sealed against shrinking and growing.
#[derive(Clone, Debug)]
pub struct Memfd {
    fd: Arc<OwnedFd>,
    bytes: usize,
}

impl Memfd {
    /// A new one of `bytes` zero bytes, none of which has memory yet; [`Memfd::seal`] it before
    /// anyone gets its descriptor.
    ///
    /// # Errors
    /// `OUT_OF_RESOURCES` without descriptors, `OUT_OF_DEVICE_MEMORY` without memory.
    pub fn create(bytes: usize) -> Result<Self> {
        ur_ipc::file_size::may_have(bytes as u64)
            .map_err(|e| Error::from(e).with_code(ErrorCode::OutOfDeviceMemory))?;
        let doing = "create a memfd";
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let made = match memfd_create("causeway", flags | MemfdFlags::NOEXEC_SEAL) {
            Err(Errno::INVAL) => memfd_create("causeway", flags), // before Linux 6.3
            made => made,
        };
        let fd = made.map_err(|e| refused(doing, e, Side::Device))?;
        let sized = ftruncate(&fd, bytes as u64).map_err(|e| match e {
            Errno::INVAL | Errno::FBIG => Errno::NOMEM, // more than any file may have
            e => e,
        });
        sized.map_err(|e| refused("size a memfd", e, Side::Device))?;
        Ok(Self { fd: Arc::new(fd), bytes })
    }
    /// Fixes the size for good, and with it who may write; no seal can be added later.
    ///
    /// # Errors
    /// Whatever the kernel says.
    pub fn seal(&self, writers: Writers) -> Result<()> {
        let fixed = SealFlags::SHRINK | SealFlags::GROW;
        let seals = match writers {
            Writers::Everyone => fixed | SealFlags::SEAL,
            Writers::MappedAlready => {
                // Before SEAL: after it, nothing can be added.
                fcntl_add_seals(&*self.fd, SealFlags::FUTURE_WRITE)
                    .map_err(|e| refused("seal a memfd against writers", e, Side::Device))?;
                fixed | SealFlags::SEAL
            }
        };
        fcntl_add_seals(&*self.fd, seals).map_err(|e| refused("seal a memfd", e, Side::Device))
    }
    /// One that another process made. It cannot shrink (a touch would kill us); whether it may be written is the caller's to
    /// ask.
    ///
    /// # Errors
    /// `INVALID_VALUE`, if it can.
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
    /// Gives `[from, from + bytes)` its memory now, so that a lack of it is an error here and
    /// not a fault later.
    ///
    /// # Errors
    /// `OUT_OF_DEVICE_MEMORY`; what was committed on the way is given back.
    pub fn commit(&self, from: usize, bytes: usize) -> Result<()> {
        let (mut done, mut most) = (0, COMMIT_CHUNK);
        while done < bytes {
            let now = (bytes - done).min(most);
            let at = (from + done) as u64;
            if now >= ASK_FROM && free_memory() < (bytes - done + SPARE) as u64 {
                let _ = self.discard(from, done); // as below
                return Err(refused(COMMITTING, Errno::NOMEM, Side::Device));
            }
            match fallocate(&*self.fd, FallocateFlags::empty(), at, now as u64) {
                Ok(()) => done += now,
                Err(Errno::INTR) => most = (now / 2).max(COMMIT_AT_LEAST),
                Err(errno) => {
                    // Should this fail too, the memory goes with the memfd.
                    let _ = self.discard(from, done);
                    return Err(refused(COMMITTING, errno, Side::Device));
                }
            }
        }
        Ok(())
    }
    /// Gives the memory of `[from, from + bytes)` back; it reads as zeros from then on.
    ///
    /// # Errors
    /// Whatever the kernel says; the memory then stays.
    pub fn discard(&self, from: usize, bytes: usize) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        retry_on_intr(|| fallocate(&*self.fd, flags, from as u64, bytes as u64))
            .map_err(|e| refused("give memory back", e, Side::Device))
    }
    /// How many of its bytes have memory; none if the kernel does not say.
    fn pages(&self) -> u64 {
        fstat(&*self.fd).map_or(0, |stat| u64::try_from(stat.st_blocks).unwrap_or(0) * 512)
    }
    /// How many bytes its descriptor opens.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
    /// Its descriptor, for an offer.
    pub fn fd(&self) -> &Arc<OwnedFd> {
        &self.fd
    }
}

/// A range of this process's addresses that is ours, unmapped on drop. A forked child has none of
/// its parent's: there the same addresses may be anything, and are left alone.
#[derive(Debug)]
pub struct Mapping {
    base: UsmPtr,
    bytes: usize,
    fork: u64,
}

impl Mapping {
    /// `bytes` of `memfd` from `from` on, at an address that is a multiple of `align`, shared with
    /// everyone who maps it, and not inherited by forked children.
    ///
    /// # Errors
    /// `OUT_OF_RESOURCES` at the limit on mappings, `OUT_OF_DEVICE_MEMORY`.
    pub fn shared(memfd: &Memfd, from: usize, bytes: usize, align: usize) -> Result<Self> {
        let mapping = Self::reserve(None, bytes, align, Side::Device)?;
        mapping.place(0, memfd, from, bytes, Access::ReadWrite, MapFlags::empty())?;
        mapping.keep_from_children()?;
        Ok(mapping)
    }
    /// The same of another process's memfd, page-aligned, and to be used as `access` says. Large ones come with their pages
    /// if that is asked for.
    ///
    /// # Errors
    /// As for `shared`; `INVALID_VALUE` for a memfd that may not be used so.
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
    /// In one call, without its pages.
    fn anywhere(memfd: &Memfd, from: usize, bytes: usize, access: Access) -> Result<Self> {
        let fails = |errno| refused("map device memory", errno, Side::Device);
        let bytes = bytes.checked_next_multiple_of(page()).ok_or_else(|| fails(Errno::NOMEM))?;
        let (at, access) = (null_mut(), protection(access));
        // SAFETY: without FIXED the kernel takes addresses that nothing else has.
        let start =
            unsafe { mmap(at, bytes, access, MapFlags::SHARED, memfd.fd.as_fd(), from as u64) }
                .map_err(fails)?;
        Ok(Self { base: UsmPtr::new(start)?, bytes, fork: fork_count() })
    }
    /// With its pages as far as they are there, a chunk at a time: the kernel holds its lock on the
    /// addresses meanwhile. The rest is mapped without, and costs what is touched of it.
    fn populated(memfd: &Memfd, from: usize, bytes: usize, access: Access) -> Result<Self> {
        let mapping = Self::reserve(None, bytes, page(), Side::Device)?;
        let place = |at, now, flags| mapping.place(at, memfd, from + at, now, access, flags);
        let (mut at, mut has) = (0, memfd.pages());
        if has < bytes as u64 {
            has = 0; // less memory than is claimed: some of it would have to be made
        }
        while at < bytes && has > 0 {
            let now = (bytes - at).min(POPULATE_CHUNK);
            place(at, now, MapFlags::POPULATE)?;
            at += now;
            if memfd.pages() > has {
                break; // that made some: the exporter took pages away, or has others than these
            }
        }
        if at < bytes {
            place(at, bytes - at, MapFlags::empty())?;
        }
        Ok(mapping)
    }
    /// `bytes` of memory without a descriptor; forked children get a copy.
    ///
    /// # Errors
    /// `OUT_OF_RESOURCES` at the limit on mappings, `OUT_OF_HOST_MEMORY`.
    pub fn anonymous(bytes: usize, align: usize) -> Result<Self> {
        let mapping = Self::reserve(None, bytes, align, Side::Host)?;
        let (at, flags) = (mapping.base.as_ptr(), MapFlags::PRIVATE | MapFlags::FIXED);
        // SAFETY: the range is ours and nothing lives in it yet.
        unsafe { mmap_anonymous(at, mapping.bytes, protection(Access::ReadWrite), flags) }
            .map_err(|e| refused("map host memory", e, Side::Host))?;
        Ok(mapping)
    }
    /// Where it starts.
    pub fn base(&self) -> UsmPtr {
        self.base
    }
    /// How long it is.
    #[cfg(test)]
    pub fn bytes(&self) -> usize {
        self.bytes
    }
    /// Whether this process made it; a forked child did not.
    pub fn is_ours(&self) -> bool {
        self.fork == fork_count()
    }

    /// Addresses without memory, at a multiple of `align`, near `hint` if that is free.
    fn reserve(hint: Option<UsmPtr>, bytes: usize, align: usize, side: Side) -> Result<Self> {
        let surplus = if align > page() { align } else { 0 };
        let fails = |errno| refused("reserve addresses", errno, side);
        let bytes = bytes.checked_next_multiple_of(page()).ok_or_else(|| fails(Errno::NOMEM))?;
        let asked = bytes.checked_add(surplus).ok_or_else(|| fails(Errno::NOMEM))?;
        let at = with_exposed_provenance_mut(hint.map_or(0, UsmPtr::addr));
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: without FIXED the kernel takes addresses that nothing else has.
        let start =
            unsafe { mmap_anonymous(at, asked, ProtFlags::empty(), flags) }.map_err(fails)?;
        let mut whole = Self { base: UsmPtr::new(start)?, bytes: asked, fork: fork_count() };
        if surplus == 0 {
            return Ok(whole);
        }
        // Cut to the aligned middle.
        let lead = whole.base.addr().next_multiple_of(align) - whole.base.addr();
        let fork = whole.fork;
        let middle = Self { base: whole.base.offset(lead)?, bytes, fork };
        let tail = Self { base: middle.base.offset(bytes)?, bytes: surplus - lead, fork };
        whole.bytes = lead;
        drop((whole, tail));
        Ok(middle)
    }
    /// Puts `bytes` of `memfd` at `at` bytes into this range, in place of what was there.
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
        // SAFETY: the range is ours; whoever still uses what was there was told by the ABI not to.
        unsafe { mmap(to, bytes, protection(access), flags, memfd.fd.as_fd(), from as u64) }
            .map(drop)
            .map_err(|e| refused("map device memory", e, Side::Device))
    }
    /// Makes part of this range addresses without memory again.
    fn clear(&self, at: usize, bytes: usize) -> Result<()> {
        let to = self.part(at, bytes)?.as_ptr();
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE | MapFlags::FIXED;
        // SAFETY: as in `place`.
        unsafe { mmap_anonymous(to, bytes, ProtFlags::empty(), flags) }
            .map(drop)
            .map_err(|e| refused("unmap device memory", e, Side::Device))
    }
    /// Device memory stays with the process that has it: a child would share its stores.
    fn keep_from_children(&self) -> Result<()> {
        self.advise(0, self.bytes, Advice::LinuxDontFork)
    }
    fn advise(&self, at: usize, bytes: usize, advice: Advice) -> Result<()> {
        let start = self.part(at, bytes)?.as_ptr();
        // SAFETY: the range is ours, and the advice does not change what it holds here.
        unsafe { madvise(start, bytes, advice) }
            .map_err(|e| refused("keep device memory from forked children", e, Side::Device))
    }
    /// The address of `[at, at + bytes)` if that lies inside.
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
            return; // nothing, for it is what `reserve` cut a whole to; or nothing of ours
        }
        // SAFETY: the range is ours, and its owner goes. The kernel refuses only at its limit on
        // mappings (a hole takes one more); the addresses then stay taken, which is no harm.
        let _ = unsafe { munmap(self.base.as_ptr(), self.bytes) };
    }
}

/// Addresses set aside: physical memory is mapped into parts of it.
#[derive(Debug)]
pub struct Reservation(Mapping);

impl Reservation {
    /// `bytes` of addresses, a multiple of the page, at `hint` if that is free.
    ///
    /// # Errors
    /// `OUT_OF_RESOURCES` at the limit on mappings, `OUT_OF_HOST_MEMORY`.
    pub fn new(hint: Option<UsmPtr>, bytes: usize) -> Result<Self> {
        Mapping::reserve(hint, bytes, page(), Side::Host).map(Self)
    }
    /// Where it starts.
    pub fn base(&self) -> UsmPtr {
        self.0.base
    }
    /// How far behind its start a part of it begins, and how long that is.
    pub fn place(&self, part: Range) -> (usize, usize) {
        (part.start().get().wrapping_sub(self.0.base.addr()), part.bytes())
    }
    /// Puts `bytes` of `memfd` from `from` on at `at` bytes into the reservation.
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
    /// Takes what is mapped there out again; the addresses stay reserved.
    ///
    /// # Errors
    /// `INVALID_VALUE` outside the reservation; else as for [`Mapping::shared`].
    pub fn unmap(&self, at: usize, bytes: usize) -> Result<()> {
        self.0.clear(at, bytes)
    }
    /// Changes what may be done there.
    ///
    /// # Errors
    /// `INVALID_VALUE` outside the reservation; else as for [`Mapping::shared`].
    pub fn protect(&self, at: usize, bytes: usize, access: Access) -> Result<()> {
        let start = self.0.part(at, bytes)?.as_ptr();
        // SAFETY: the range is ours; losing a right is what the caller asked for.
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
