//! Addresses, and ranges of them: arithmetic that never wraps around.
use crate::{Error, ErrorKind, Result};
use std::{fmt, num::NonZeroUsize};

/// An address that the device, the host or both can access. Never 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address(NonZeroUsize);
impl Address {
    /// `None` for 0.
    pub const fn new(address: usize) -> Option<Self> {
        match NonZeroUsize::new(address) {
            Some(address) => Some(Self(address)),
            None => None,
        }
    }
    /// The address as a number.
    pub const fn get(self) -> usize {
        self.0.get()
    }
    /// The address plus `bytes`; `None` if that wraps around.
    pub const fn checked_add(self, bytes: usize) -> Option<Self> {
        match self.0.checked_add(bytes) {
            Some(address) => Some(Self(address)),
            None => None,
        }
    }
    /// The address plus `bytes`.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidSize`] if that wraps around.
    pub fn offset(self, bytes: usize) -> Result<Self> {
        self.checked_add(bytes).ok_or_else(|| wraps(self, bytes))
    }
    /// Whether it is a multiple of `alignment`.
    pub const fn is_aligned_to(self, alignment: usize) -> bool {
        self.0.get().is_multiple_of(alignment)
    }
}
impl From<NonZeroUsize> for Address {
    fn from(address: NonZeroUsize) -> Self {
        Self(address)
    }
}
impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}
#[cold]
fn wraps(at: Address, bytes: usize) -> Error {
    let why = format!("{bytes} bytes from {at:?} on leave the address space");
    Error::new(ErrorKind::InvalidSize, why)
}

/// At least one byte of memory, all within the address space.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Range {
    start: Address,
    bytes: NonZeroUsize,
}
impl Range {
    /// The range of `bytes` bytes that begins at `start`.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidSize`] for 0 bytes, and if the range would exceed the address space.
    #[inline]
    pub fn new(start: Address, bytes: usize) -> Result<Self> {
        match (NonZeroUsize::new(bytes), start.checked_add(bytes)) {
            (Some(bytes), Some(_)) => Ok(Self { start, bytes }),
            (None, _) => Err(empty()),
            (Some(_), None) => Err(wraps(start, bytes)),
        }
    }
    /// Its first byte.
    pub const fn start(self) -> Address {
        self.start
    }
    /// How many bytes it has; at least 1.
    pub const fn bytes(self) -> usize {
        self.bytes.get()
    }
    /// The address after its last byte.
    pub const fn end(self) -> usize {
        self.start.get() + self.bytes.get() // `new` checked that this does not wrap around
    }
    /// Whether `at` is one of its bytes.
    pub const fn has(self, at: Address) -> bool {
        self.start.get() <= at.get() && at.get() < self.end()
    }
    /// Whether every byte of `other` is also one of this range's.
    pub const fn contains(self, other: Self) -> bool {
        self.start.get() <= other.start.get() && other.end() <= self.end()
    }
    /// Whether the two have a byte in common.
    pub const fn overlaps(self, other: Self) -> bool {
        self.start.get() < other.end() && other.start.get() < self.end()
    }
    /// The `bytes` bytes of it that begin at `offset`.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidSize`] for 0 bytes, and for bytes that are not all within it.
    pub fn part(self, offset: usize, bytes: usize) -> Result<Self> {
        let is_within = offset.checked_add(bytes).is_some_and(|end| end <= self.bytes());
        match is_within {
            true => Self::new(self.start.offset(offset)?, bytes),
            false => {
                let has = self.bytes();
                let why = format!("{bytes} bytes from {offset} on are not within {has} bytes");
                Err(Error::new(ErrorKind::InvalidSize, why))
            }
        }
    }
}
impl fmt::Debug for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}..{:#x}", self.start.get(), self.end())
    }
}
#[cold]
fn empty() -> Error {
    Error::new(ErrorKind::InvalidSize, "0 bytes are no range of memory")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(address: usize) -> Address {
        Address::new(address).unwrap()
    }
    fn range(start: usize, bytes: usize) -> Range {
        Range::new(at(start), bytes).unwrap()
    }
    fn kind<T: fmt::Debug>(result: Result<T>) -> ErrorKind {
        result.unwrap_err().kind()
    }

    #[test]
    fn a_range_has_a_byte_and_does_not_wrap_around() {
        assert_eq!(Address::new(0), None);
        assert_eq!(kind(Range::new(at(8), 0)), ErrorKind::InvalidSize);
        assert_eq!(kind(Range::new(at(usize::MAX), 1)), ErrorKind::InvalidSize);
        assert_eq!(range(usize::MAX - 1, 1).end(), usize::MAX);
        assert_eq!(kind(at(usize::MAX).offset(1)), ErrorKind::InvalidSize);
        assert!(at(64).is_aligned_to(32) && !at(72).is_aligned_to(32));
    }
    #[test]
    fn ranges_that_touch_share_no_byte() {
        let (one, next) = (range(100, 10), range(110, 10));
        assert!(!one.overlaps(next) && !next.overlaps(one));
        assert!(one.overlaps(range(109, 2)) && range(90, 30).overlaps(one));
        assert!(one.contains(range(100, 10)) && !one.contains(range(105, 6)));
        assert!(one.has(at(109)) && !one.has(at(110)) && !one.has(at(99)));
    }
    #[test]
    fn a_part_is_within_the_whole() {
        let whole = range(1000, 64);
        assert_eq!(whole.part(60, 4).unwrap(), range(1060, 4));
        for (offset, bytes) in [(0, 0), (60, 5), (64, 1), (usize::MAX, 2), (1, usize::MAX)] {
            assert_eq!(kind(whole.part(offset, bytes)), ErrorKind::InvalidSize, "{offset} {bytes}");
        }
    }
}
