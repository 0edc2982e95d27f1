//! Memory whose descriptor another process sent. Its descriptor is verified once, for all objects in it that are
//! opened. The adapter maps it.
use crate::{Error, ErrorKind, Result};
use rustix::{
    fs::{FileType, MemfdFlags, SealFlags, fcntl_get_seals, fstat, memfd_create},
    io::{Errno, fcntl_dupfd_cloexec},
};
use std::{
    os::fd::{AsFd, AsRawFd, OwnedFd},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

/// Makes a memfd without contents, which can be sealed.
///
/// # Errors
/// The kernel's.
pub fn memfd(name: &str) -> rustix::io::Result<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    beyond_standard(match memfd_create(name, flags | MemfdFlags::NOEXEC_SEAL) {
        Err(Errno::INVAL) => memfd_create(name, flags)?, // before Linux 6.3
        made => made?,
    })
}
/// Gives memory a number that no standard stream has: a program that has closed one may write there all the same.
pub(crate) fn beyond_standard(fd: OwnedFd) -> rustix::io::Result<OwnedFd> {
    const FIRST: i32 = 3;
    if fd.as_raw_fd() >= FIRST { Ok(fd) } else { fcntl_dupfd_cloexec(&fd, FIRST) }
}

/// A verified descriptor: either a memfd that cannot shrink while it is mapped, or a descriptor that is not a memfd.
#[derive(Debug)]
pub struct SharedMemory {
    id: u64,
    fd: Arc<OwnedFd>,
    bytes: u64,
    /// The memfd's seals; `None` if the descriptor is not a memfd.
    seals: Option<SealFlags>,
    /// Whether other objects may lie in it too.
    is_pooled: bool,
}

impl SharedMemory {
    /// Verifies a descriptor that, according to its sender, exposes `exposes` bytes.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] if its size differs, or if it can be truncated.
    pub(crate) fn verify(
        fd: impl Into<Arc<OwnedFd>>,
        exposes: u64,
        is_pooled: bool,
    ) -> Result<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let fd = fd.into();
        let seals = verify_descriptor(&fd, exposes)?;
        let id = NEXT.fetch_add(1, Relaxed); // a number, nothing more
        Ok(Self { id, fd, bytes: exposes, seals, is_pooled })
    }
    /// The descriptor, which is close-on-exec.
    pub fn fd(&self) -> &Arc<OwnedFd> {
        &self.fd
    }
    /// The size in bytes, which does not shrink.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
    /// A number that no other `SharedMemory` of this process has.
    pub fn id(&self) -> u64 {
        self.id
    }
    /// Whether it is a memfd, whose size is sealed. A driver's descriptor is not.
    pub fn is_memfd(&self) -> bool {
        self.seals.is_some()
    }
    /// Whether it is a memfd that this process may write: its exporter may have sealed it against writing.
    pub fn is_writable(&self) -> bool {
        let denied = SealFlags::WRITE | SealFlags::FUTURE_WRITE;
        self.seals.is_some_and(|seals| !seals.intersects(denied))
    }
    /// Whether other objects may lie in it too. While this process holds it, the exporter does not send it again for
    /// them.
    pub fn is_pooled(&self) -> bool {
        self.is_pooled
    }
    /// Whether an object of `size` bytes at `base` lies within it.
    pub(crate) fn has(&self, base: u64, size: u64) -> bool {
        is_inside(base, size, self.bytes)
    }
}

/// Whether an object of `size` bytes at `base` lies within the `exposes` bytes of a descriptor.
pub(crate) fn is_inside(base: u64, size: u64, exposes: u64) -> bool {
    base.checked_add(size).is_some_and(|end| end <= exposes)
}
/// Whether the descriptor exposes the object and nothing else, up to a whole page.
pub(crate) fn is_alone(base: u64, size: u64, exposes: u64) -> bool {
    let page = rustix::param::page_size() as u64;
    base == 0 && size.checked_next_multiple_of(page).is_some_and(|rounded| exposes <= rounded)
}

/// Verifies that a memfd has the size that its sender states and cannot shrink while it is mapped; returns its seals,
/// or `None` for a descriptor that is neither a memfd nor a regular file.
pub(crate) fn verify_descriptor(fd: &impl AsFd, exposes: u64) -> Result<Option<SealFlags>> {
    let refuse = |why: &'static str| Err(Error::new(ErrorKind::Unsupported, why));
    let stat = fstat(fd).map_err(|e| Error::system("look at the descriptor", e))?;
    match fcntl_get_seals(fd) {
        Ok(seals) if !seals.contains(SealFlags::SHRINK) => {
            refuse("the memory behind the descriptor is not sealed against shrinking")
        }
        Ok(_) if u64::try_from(stat.st_size) != Ok(exposes) => {
            refuse("the memory behind the descriptor has another size than was said")
        }
        Ok(seals) => Ok(Some(seals)),
        // Not a memfd. The driver judges its own descriptors, but a regular file can be truncated at any time.
        Err(Errno::INVAL) if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile => {
            refuse("the descriptor is a file's, and files can be cut under those who map them")
        }
        Err(Errno::INVAL) => Ok(None),
        Err(e) => Err(Error::system("read the descriptor's seals", e)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{MemfdFlags, fcntl_add_seals, ftruncate, memfd_create};

    fn memfd(seals: SealFlags) -> OwnedFd {
        let fd = memfd_create("m", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap();
        ftruncate(&fd, 4096).unwrap();
        fcntl_add_seals(&fd, seals).unwrap();
        fd
    }
    #[test]
    fn a_descriptor_that_is_not_what_was_said_is_refused() {
        let refused = |fd: OwnedFd, exposes: u64, why: &str| {
            let error = SharedMemory::verify(fd, exposes, false).unwrap_err();
            assert!(error.to_string().contains(why), "{error}");
        };
        refused(memfd(SealFlags::GROW), 4096, "shrinking");
        refused(memfd(SealFlags::SHRINK), 4097, "another size");
        refused(memfd(SealFlags::SHRINK), 4095, "another size");
        refused(std::fs::File::open("/proc/self/exe").unwrap().into(), 4096, "can be cut");
        let sound = SharedMemory::verify(memfd(SealFlags::SHRINK), 4096, true).unwrap();
        assert!(sound.is_writable() && sound.is_pooled() && sound.bytes() == 4096);
        assert!(sound.has(0, 4096) && sound.has(4096, 0) && !sound.has(1, 4096));
        assert!(!sound.has(u64::MAX, 2));
        let other = SharedMemory::verify(memfd(SealFlags::SHRINK), 4096, true).unwrap();
        assert_ne!(sound.id(), other.id());
    }
    #[test]
    fn what_cannot_be_written_or_has_no_seals_is_no_device_memory() {
        let fixed = SealFlags::SHRINK | SealFlags::GROW;
        for denied in [SealFlags::WRITE, SealFlags::FUTURE_WRITE] {
            let memory = SharedMemory::verify(memfd(fixed | denied), 4096, false).unwrap();
            assert!(!memory.is_writable(), "{denied:?}");
        }
        let drivers = std::fs::File::open("/dev/zero").unwrap();
        assert!(!SharedMemory::verify(OwnedFd::from(drivers), 0, false).unwrap().is_writable());
    }
}
