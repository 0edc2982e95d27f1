//! Pages of this process's own: what is in them can be given back to the system while their addresses stay taken.
#![expect(unsafe_code, reason = "maps memory and writes it")]
use rustix::{
    mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap},
    param::page_size,
};
use std::{
    io,
    ptr::{NonNull, copy_nonoverlapping, null_mut},
};

/// Private memory that starts as zeros, unmapped on drop. Others may read it by its address at any time; it is written
/// by whoever has it.
#[derive(Debug)]
pub struct Pages {
    first: NonNull<u8>,
    bytes: usize,
}
// SAFETY: memory that is bound to no thread, and which only `&mut self` changes.
unsafe impl Send for Pages {}

impl Pages {
    /// So many bytes, rounded up to whole pages. What is never written costs addresses only.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn new(bytes: usize) -> io::Result<Self> {
        let bytes = bytes.next_multiple_of(page_size());
        let (rights, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
        // SAFETY: a new mapping at an address of the kernel's choice.
        let at = unsafe { mmap_anonymous(null_mut(), bytes, rights, flags) }?;
        let first = NonNull::new(at.cast()).ok_or(io::ErrorKind::AddrNotAvailable)?;
        Ok(Self { first, bytes })
    }
    /// Where they begin.
    pub fn address(&self) -> *const u8 {
        self.first.as_ptr()
    }
    /// The place of `[from, from + bytes)`.
    fn part(&self, from: usize, bytes: usize) -> *mut u8 {
        assert!(from.checked_add(bytes).is_some_and(|end| end <= self.bytes), "within the pages");
        self.first.as_ptr().wrapping_add(from)
    }
    /// Writes `bytes` from `to` on. Nobody may read there meanwhile.
    ///
    /// # Panics
    /// If they do not end within.
    pub fn write(&mut self, to: usize, bytes: &[u8]) {
        let place = self.part(to, bytes.len());
        // SAFETY: mapped until `drop`, of that length, and no slice of Rust's.
        unsafe { copy_nonoverlapping(bytes.as_ptr(), place, bytes.len()) };
    }
    /// Gives the memory of `[from, from + bytes)`, whole pages, back to the system: it reads as zeros from here on.
    ///
    /// # Panics
    /// If that is not within.
    pub fn discard(&mut self, from: usize, bytes: usize) {
        let place = self.part(from, bytes);
        // SAFETY: ours, and reading it stays allowed.
        let discarded = unsafe { madvise(place.cast(), bytes, Advice::LinuxDontNeed) };
        let _ = discarded; // refused for what is locked (mlockall), which then simply stays
    }
}
impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: ours alone.
        let unmapped = unsafe { munmap(self.first.as_ptr().cast(), self.bytes) };
        debug_assert!(unmapped.is_ok()); // fails for addresses that were never mapped only
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pages: &Pages, at: usize) -> u8 {
        // SAFETY: within, and nobody writes.
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
