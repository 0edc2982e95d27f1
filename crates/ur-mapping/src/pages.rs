//! Private pages whose memory can be returned to the system while their addresses stay reserved.
#![expect(unsafe_code, reason = "maps memory and writes it")]
use rustix::{
    mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap},
    param::page_size,
};
use std::{
    io,
    ptr::{NonNull, copy_nonoverlapping, null_mut},
};

/// Private memory that starts as zeros and is unmapped on drop. It may be read through its address at any time; only
/// the owner of this value writes it.
#[derive(Debug)]
pub struct Pages {
    first: NonNull<u8>,
    bytes: usize,
}
// SAFETY: the memory is not bound to a thread, and only `&mut self` changes it.
unsafe impl Send for Pages {}

impl Pages {
    /// Maps `bytes`, rounded up to whole pages. Pages that are never written take only addresses.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn new(bytes: usize) -> io::Result<Self> {
        let bytes = bytes.next_multiple_of(page_size());
        let (rights, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
        // SAFETY: a new mapping at an address of the kernel's choice.
        let at = unsafe { mmap_anonymous(null_mut(), bytes, rights, flags) }?;
        let first = NonNull::new(at.cast()).ok_or(io::ErrorKind::AddrNotAvailable)?;
        Ok(Self { first, bytes })
    }
    /// The address of the first byte.
    pub fn address(&self) -> *const u8 {
        self.first.as_ptr()
    }
    /// The address of `[from, from + bytes)`.
    fn part(&self, from: usize, bytes: usize) -> *mut u8 {
        assert!(from.checked_add(bytes).is_some_and(|end| end <= self.bytes), "within the pages");
        self.first.as_ptr().wrapping_add(from)
    }
    /// Writes `bytes` at offset `to`. No thread may read that part meanwhile.
    ///
    /// # Panics
    /// If they do not fit.
    pub fn write(&mut self, to: usize, bytes: &[u8]) {
        let place = self.part(to, bytes.len());
        // SAFETY: `part` checks the bounds; the pages are mapped until `drop`, and no Rust reference points to them.
        unsafe { copy_nonoverlapping(bytes.as_ptr(), place, bytes.len()) };
    }
    /// Returns the memory of `[from, from + bytes)`, in whole pages, to the system; it reads as zeros from then on.
    ///
    /// # Panics
    /// If the range does not lie within the pages.
    pub fn discard(&mut self, from: usize, bytes: usize) {
        let place = self.part(from, bytes);
        // SAFETY: the pages belong to this value, and reading them stays allowed.
        let discarded = unsafe { madvise(place.cast(), bytes, Advice::LinuxDontNeed) };
        let _ = discarded; // refused for locked memory (mlockall), which then simply stays
    }
}
impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: only this value unmaps the pages, and no reference to them exists.
        let unmapped = unsafe { munmap(self.first.as_ptr().cast(), self.bytes) };
        debug_assert!(unmapped.is_ok()); // fails only for addresses that were never mapped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pages: &Pages, at: usize) -> u8 {
        // SAFETY: within the pages, and no thread writes them.
        unsafe { pages.part(at, 1).read() }
    }

    #[test]
    fn what_is_discarded_reads_as_zeros_and_the_rest_stays() {
        let mut pages = Pages::new(page_size() + 1).unwrap();
        let last = 2 * page_size() - 1;
        pages.write(0, &[1]);
        pages.write(last, &[2]);
        pages.discard(0, page_size());
        assert_eq!((read(&pages, 0), read(&pages, last)), (0, 2));
        pages.write(0, &[3]);
        assert_eq!(read(&pages, 0), 3);
    }
    #[test]
    #[should_panic(expected = "within the pages")]
    fn nothing_is_written_beyond_the_end() {
        Pages::new(1).unwrap().write(page_size(), &[1]);
    }
}
