//! Memory that another process may write at any time. It is accessed as atomic words, never as plain bytes.
#![expect(unsafe_code, reason = "maps memory that processes share")]
use rustix::{
    fs::{SealFlags, fcntl_get_seals, fstat},
    mm::{MapFlags, ProtFlags, mmap, munmap},
};
use std::{
    io,
    os::fd::BorrowedFd,
    ptr::NonNull,
    sync::atomic::{AtomicU32, AtomicU64, Ordering::*},
};

const WORD: usize = size_of::<AtomicU64>();

/// The index of the low half of a word.
const LOW_HALF: usize = if cfg!(target_endian = "little") { 0 } else { 1 };

/// Checks that `bytes` of a memfd can be mapped and can never fault.
///
/// # Errors
/// `InvalidData` if it could shrink or is shorter; else the kernel's error.
pub(crate) fn check_memfd(fd: BorrowedFd<'_>, bytes: usize) -> io::Result<()> {
    // In this order: once the memfd cannot shrink, a sufficient size stays sufficient.
    if !fcntl_get_seals(fd)?.contains(SealFlags::SHRINK) {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "the descriptor is not sealed against shrinking",
        ));
    }
    let size = usize::try_from(fstat(fd)?.st_size).unwrap_or(0);
    if size < bytes {
        let why = format!("the descriptor has {size} bytes where {bytes} are needed");
        return Err(io::Error::new(io::ErrorKind::InvalidData, why));
    }
    Ok(())
}

/// A mapping of a sealed memfd, unmapped on drop.
struct Mapping {
    first: NonNull<AtomicU64>,
    words: usize,
}
// SAFETY: atomics, which any thread may use; the mapping is not bound to a thread.
unsafe impl Send for Mapping {}
// SAFETY: as above; it only gives out shared references to atomics.
unsafe impl Sync for Mapping {}

impl Mapping {
    fn new(fd: BorrowedFd<'_>, bytes: usize, rights: ProtFlags) -> io::Result<Self> {
        if bytes == 0 || !bytes.is_multiple_of(WORD) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "no whole number of words"));
        }
        check_memfd(fd, bytes)?;
        // SAFETY: creates a new mapping at an address that the kernel chooses.
        let at = unsafe { mmap(std::ptr::null_mut(), bytes, rights, MapFlags::SHARED, fd, 0) }?;
        let first = NonNull::new(at.cast()).ok_or(io::ErrorKind::AddrNotAvailable)?;
        Ok(Self { first, words: bytes / WORD })
    }
    /// The words; if they are mapped read-only, the caller may only load them.
    fn words(&self) -> &[AtomicU64] {
        // SAFETY: this many words are mapped until `drop`, page-aligned, and any bytes are valid atomics.
        unsafe { std::slice::from_raw_parts(self.first.as_ptr(), self.words) }
    }
}
impl Drop for Mapping {
    fn drop(&mut self) {
        let bytes = self.words * WORD;
        // SAFETY: only this value unmaps the range, and no reference into it outlives `self`.
        let unmapped = unsafe { munmap(self.first.as_ptr().cast(), bytes) };
        debug_assert!(unmapped.is_ok()); // fails only for addresses that were never mapped
    }
}

/// A shared mapping of a sealed memfd that this process may write; other processes may write it at any time.
pub struct SharedWords(Mapping);

impl SharedWords {
    /// Maps the first `bytes` bytes, a multiple of 8.
    ///
    /// # Errors
    /// `InvalidData` if the descriptor could shrink (no `F_SEAL_SHRINK`) or is shorter; `InvalidInput` for an invalid
    /// length; else the kernel's error.
    pub fn map(fd: BorrowedFd<'_>, bytes: usize) -> io::Result<Self> {
        Mapping::new(fd, bytes, ProtFlags::READ | ProtFlags::WRITE).map(Self)
    }
    /// All words.
    pub fn words(&self) -> &[AtomicU64] {
        self.0.words()
    }
    /// One word.
    ///
    /// # Panics
    /// If the index is out of range: check indexes from other processes first.
    #[inline]
    pub fn word(&self, index: usize) -> &AtomicU64 {
        &self.words()[index]
    }
    /// The half of a word that a futex watches: its low 32 bits. Only to be passed to the kernel; loads and stores use
    /// the whole word.
    ///
    /// # Panics
    /// If the index is out of range.
    #[inline]
    pub fn low_half(&self, index: usize) -> &AtomicU32 {
        let half = std::ptr::from_ref(self.word(index)).cast::<u32>().cast_mut();
        // SAFETY: a word has two halves.
        let half = unsafe { half.add(LOW_HALF) };
        // SAFETY: aligned, mapped while `self` is borrowed, and only accessed atomically.
        unsafe { AtomicU32::from_ptr(half) }
    }
}

/// A shared mapping of a sealed memfd that this process can only read; other processes may write it at any time.
pub struct ReadOnlyWords(Mapping);

impl ReadOnlyWords {
    /// Maps the first `bytes` bytes, a multiple of 8.
    ///
    /// # Errors
    /// As [`SharedWords::map`].
    pub fn map(fd: BorrowedFd<'_>, bytes: usize) -> io::Result<Self> {
        Mapping::new(fd, bytes, ProtFlags::READ).map(Self)
    }
    /// Loads a word with Acquire: what was written before the word was published is visible.
    ///
    /// # Panics
    /// If the index is out of range: check indexes from other processes first.
    #[inline]
    pub fn load_acquire(&self, index: usize) -> u64 {
        self.0.words()[index].load(Acquire)
    }
    /// Loads a word without ordering.
    ///
    /// # Panics
    /// If the index is out of range.
    #[inline]
    pub fn load_relaxed(&self, index: usize) -> u64 {
        self.0.words()[index].load(Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{MemfdFlags, fcntl_add_seals, ftruncate, memfd_create};
    use std::os::fd::{AsFd, OwnedFd};

    fn memfd(bytes: u64, seals: SealFlags) -> OwnedFd {
        let fd = memfd_create("words", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap();
        ftruncate(&fd, bytes).unwrap();
        fcntl_add_seals(&fd, seals).unwrap();
        fd
    }
    fn refusal(fd: &OwnedFd, bytes: usize) -> io::ErrorKind {
        SharedWords::map(fd.as_fd(), bytes).err().expect("it must be refused").kind()
    }

    #[test]
    fn two_mappings_show_the_same_words() {
        let fd = memfd(8192, SealFlags::SHRINK);
        let ours = SharedWords::map(fd.as_fd(), 8192).unwrap();
        let theirs = ReadOnlyWords::map(fd.as_fd(), 8192).unwrap();
        assert_eq!(ours.words().len(), 1024);
        ours.word(1023).store(u64::MAX - 1, Release);
        assert_eq!(theirs.load_acquire(1023), u64::MAX - 1);
        assert_eq!(theirs.load_relaxed(0), 0);
    }
    #[test]
    fn the_low_half_is_what_counts_first() {
        let fd = memfd(4096, SealFlags::SHRINK);
        let words = SharedWords::map(fd.as_fd(), 4096).unwrap();
        words.word(3).store(7 << 32 | 5, Release);
        assert_eq!(words.low_half(3).load(Acquire), 5);
    }
    #[test]
    fn a_descriptor_that_could_shrink_is_refused() {
        assert_eq!(refusal(&memfd(4096, SealFlags::GROW), 4096), io::ErrorKind::InvalidData);
    }
    #[test]
    fn a_descriptor_that_is_too_short_is_refused() {
        assert_eq!(refusal(&memfd(4095, SealFlags::SHRINK), 4096), io::ErrorKind::InvalidData);
    }
    #[test]
    fn a_length_of_no_whole_words_is_refused() {
        let fd = memfd(4096, SealFlags::SHRINK);
        assert_eq!(refusal(&fd, 0), io::ErrorKind::InvalidInput);
        assert_eq!(refusal(&fd, 12), io::ErrorKind::InvalidInput);
    }
    #[test]
    fn what_is_no_memfd_is_refused() {
        let pipe = rustix::pipe::pipe().unwrap().0;
        assert!(SharedWords::map(pipe.as_fd(), 4096).is_err());
        assert!(ReadOnlyWords::map(pipe.as_fd(), 4096).is_err());
    }
    #[test]
    #[should_panic(expected = "out of bounds")]
    fn an_index_out_of_range_is_never_followed() {
        let fd = memfd(4096, SealFlags::SHRINK);
        SharedWords::map(fd.as_fd(), 4096).unwrap().word(512);
    }
}
