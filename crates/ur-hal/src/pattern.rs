//! Fill patterns: which are valid, and how a pattern continues over several rows.
use crate::{Error, ErrorKind, Result};

/// The bytes that a fill writes repeatedly; at least one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pattern<'a>(&'a [u8]);
impl<'a> Pattern<'a> {
    /// A pattern that fills `total` bytes.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidSize`] unless its length is at least 1 and divides `total`.
    pub fn new(bytes: &'a [u8], total: usize) -> Result<Self> {
        PatternLength::new(bytes.len(), total).map(|length| length.of(bytes))
    }
    /// Its bytes.
    pub const fn bytes(self) -> &'a [u8] {
        self.0
    }
    /// The shortest pattern of 1, 2, 4, 8, … bytes with the same effect, for which drivers have calls; or the pattern
    /// itself if there is none.
    #[must_use]
    pub fn shortest(self) -> Self {
        let Self(bytes) = self;
        let whole = bytes.len();
        let repeats = |length: &usize| bytes[*length..] == bytes[..whole - length];
        let divides = |length: &usize| *length < whole && whole.is_multiple_of(*length);
        let lengths = (0..usize::BITS).map(|power| 1 << power);
        let found = lengths.take_while(divides).find(repeats);
        Self(found.map_or(bytes, |length| &bytes[..length]))
    }
}

/// An owned pattern.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeptPattern(Box<[u8]>);
impl KeptPattern {
    /// The pattern, borrowed.
    pub const fn pattern(&self) -> Pattern<'_> {
        Pattern(&self.0)
    }
}
impl From<Pattern<'_>> for KeptPattern {
    fn from(pattern: Pattern<'_>) -> Self {
        Self(pattern.0.into())
    }
}

/// The length of a pattern, checked before its bytes are read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PatternLength(usize);
impl PatternLength {
    /// The length of a pattern that fills `total` bytes.
    ///
    /// # Errors
    /// As for [`Pattern::new`].
    #[inline]
    pub fn new(length: usize, total: usize) -> Result<Self> {
        match length != 0 && length <= total && total.is_multiple_of(length) {
            true => Ok(Self(length)),
            false => Err(no_multiple(length, total)),
        }
    }
    /// The pattern with these bytes.
    ///
    /// # Panics
    /// If their number is not this length.
    pub fn of(self, bytes: &[u8]) -> Pattern<'_> {
        assert_eq!(bytes.len(), self.0, "another length was judged");
        Pattern(bytes)
    }
}
#[cold]
fn no_multiple(length: usize, total: usize) -> Error {
    let why = format!("{total} bytes are not a multiple of a pattern of {length}");
    Error::new(ErrorKind::InvalidSize, why)
}

/// A pattern over rows of `width` bytes, which continues from each row to the next.
#[derive(Clone, Copy, Debug)]
pub struct RowPattern<'a> {
    pattern: &'a [u8],
    width: usize,
}
impl<'a> RowPattern<'a> {
    /// `width` must not be 0.
    pub fn new(pattern: Pattern<'a>, width: usize) -> Self {
        Self { pattern: pattern.0, width }
    }
    /// After how many rows a row begins with the start of the pattern again, so that copies of these rows continue the
    /// pattern.
    pub fn period(self) -> usize {
        self.pattern.len() / greatest_common_divisor(self.pattern.len(), self.width)
    }
    /// The pattern, rotated to where it stands at the start of row `row`.
    pub fn turned_to(self, row: usize) -> Vec<u8> {
        let length = self.pattern.len();
        // The remainders first: the product of row and width may overflow.
        let start = (row % length) as u128 * (self.width % length) as u128 % length as u128;
        let (head, tail) = self.pattern.split_at(start as usize);
        [tail, head].concat()
    }
    /// The bytes of `rows` rows starting at row `row`, without the gaps between them in memory.
    pub fn bytes(self, row: usize, rows: usize) -> Vec<u8> {
        let turned = self.turned_to(row);
        turned.iter().copied().cycle().take(rows * self.width).collect()
    }
}
/// Makes `whole` of what has been written `done` by copies of what is there, twice as much each time. `copy` gets where
/// each goes, and how much it is.
///
/// # Errors
/// Those of `copy`.
pub fn doubled(
    mut done: usize,
    whole: usize,
    mut copy: impl FnMut(usize, usize) -> Result<()>,
) -> Result<()> {
    while done < whole {
        let more = done.min(whole - done);
        copy(done, more)?;
        done += more;
    }
    Ok(())
}
/// The greatest common divisor of two numbers, neither of which is 0.
pub fn greatest_common_divisor(one: usize, other: usize) -> usize {
    let (mut divisor, mut rest) = (one, other);
    while rest != 0 {
        (divisor, rest) = (rest, divisor % rest);
    }
    divisor
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_fills_a_multiple_of_its_length() {
        assert_eq!(Pattern::new(&[1, 2, 3], 9).unwrap().bytes(), [1, 2, 3]);
        for (bytes, total) in [(&[][..], 8), (&[1, 2, 3], 8), (&[1, 2], 1), (&[1], 0)] {
            assert_eq!(Pattern::new(bytes, total).unwrap_err().kind(), ErrorKind::InvalidSize);
        }
    }
    #[test]
    fn what_is_there_is_copied_twice_as_much_each_time() {
        let mut copies = vec![];
        let copy = |to, more| {
            copies.push((to, more));
            Ok(())
        };
        doubled(3, 17, copy).unwrap();
        assert_eq!(copies, [(3, 3), (6, 6), (12, 5)]);
        assert!(doubled(4, 4, |_, _| Err(ErrorKind::Unknown.into())).is_ok());
    }
    #[test]
    fn a_pattern_that_repeats_within_is_the_shorter_one() {
        let shortest = |bytes: &'static [u8]| Pattern::new(bytes, bytes.len()).unwrap().shortest();
        assert_eq!(shortest(&[5; 16]).bytes(), [5]);
        assert_eq!(shortest(&[5, 5, 6]).bytes(), [5, 5, 6]);
        assert_eq!(shortest(&[7]).bytes(), [7]);
        assert_eq!(shortest(&[1, 2, 3, 4, 1, 2, 3, 4]).bytes(), [1, 2, 3, 4]);
        assert_eq!(shortest(&[1, 2, 1, 2, 1, 2]).bytes(), [1, 2]);
        assert_eq!(shortest(&[1, 2, 1, 3]).bytes(), [1, 2, 1, 3]);
        assert_eq!(shortest(&[1, 2, 3, 1, 2, 3]).bytes(), [1, 2, 3, 1, 2, 3]);
    }
    #[test]
    fn a_pattern_runs_on_turned_to_to_row_and_comes_round() {
        for (length, width) in [(1, 5), (4, 8), (4, 6), (24, 16), (65_536, 256), (7, 3)] {
            let pattern: Vec<u8> = (0..length).map(|n| (n * 7 % 251) as u8).collect();
            let rows = RowPattern::new(Pattern::new(&pattern, length).unwrap(), width);
            let period = rows.period();
            let all: Vec<_> = pattern.iter().cycle().take(width * period * 2).copied().collect();
            assert_eq!(rows.bytes(0, period * 2), all, "{length} {width}");
            for row in 0..period * 2 {
                assert_eq!(
                    rows.bytes(row, 1),
                    all[row * width..][..width],
                    "{length} {width} {row}"
                );
            }
            assert_eq!(rows.turned_to(period), pattern);
            assert!((1..period).all(|row| row * width % length != 0), "no sooner");
        }
    }
    #[test]
    fn a_row_far_down_is_found_without_overflow() {
        let rows = RowPattern::new(Pattern::new(&[1, 2, 3], 3).unwrap(), usize::MAX);
        assert_eq!(rows.turned_to(usize::MAX - 1).len(), 3);
    }
}
