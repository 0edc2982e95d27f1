//! Rows of bytes at a fixed distance (pitch) from each other.
use crate::{Address, Error, ErrorKind, Range, Result};

/// Rows: where the first one begins, and the distance from the start of one to that of the next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rows {
    /// The first byte of the first row.
    pub start: Address,
    /// Bytes from the start of one row to that of the next.
    pub pitch: usize,
}
impl Rows {
    /// The bytes from the first to the last byte of `height` rows of `width` bytes. Nothing after the last row is
    /// included, because the rows may be part of a larger rectangle that ends there.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidSize`] for no rows, for empty rows, for rows longer than their pitch, and where `height`
    /// whole pitches exceed the address space.
    pub fn span(self, width: usize, height: usize) -> Result<Range> {
        let refused = |why: String| Err(Error::new(ErrorKind::InvalidSize, why));
        let pitch = self.pitch;
        if width == 0 {
            return refused("rows of 0 bytes are no memory".into());
        }
        if pitch < width {
            return refused(format!("rows of {width} bytes do not fit a pitch of {pitch}"));
        }
        match pitch.checked_mul(height).filter(|&all| all > 0) {
            Some(all) => Range::new(self.start, all - pitch + width),
            None => {
                refused(format!("{height} rows, {pitch} bytes apart, exceed the address space"))
            }
        }
    }
    /// The bytes of row `row`, which is `width` bytes long.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidSize`] where it exceeds the address space.
    pub fn row(self, row: usize, width: usize) -> Result<Range> {
        let before = row.checked_mul(self.pitch).ok_or(ErrorKind::InvalidSize)?;
        Range::new(self.start.offset(before)?, width)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rows(start: usize, pitch: usize) -> Rows {
        Rows { start: Address::new(start).unwrap(), pitch }
    }

    #[test]
    fn rows_reach_from_the_first_byte_of_the_first_to_the_last_of_the_last() {
        let span = rows(1000, 16).span(10, 3).unwrap();
        assert_eq!((span.start().get(), span.bytes()), (1000, 42));
        assert_eq!(rows(1000, 16).row(2, 10).unwrap().end(), span.end());
    }
    #[test]
    fn rows_that_no_memory_has_are_refused() {
        for (pitch, width, height) in [
            (8, 9, 1),
            (8, 8, 0),
            (8, 0, 1),
            (8, 0, 3),
            (0, 0, 4),
            (usize::MAX, 1, 2),
            (1 << 62, 1, 4),
        ] {
            let refused = rows(64, pitch).span(width, height).map_err(|error| error.kind());
            assert_eq!(refused, Err(ErrorKind::InvalidSize), "{pitch} {width} {height}");
        }
        assert!(rows(usize::MAX - 4, 8).span(8, 1).is_err(), "it wraps around");
        assert!(rows(64, usize::MAX).row(2, 1).is_err());
    }
    /// Small numbers, and numbers just below a power of two.
    fn any_number() -> impl Strategy<Value = usize> {
        let near = |(power, off): (u32, usize)| (1_usize << power).wrapping_sub(off);
        prop_oneof![
            0..5_usize,
            0..40_usize,
            (0..usize::BITS, 0..9_usize).prop_map(near),
            any::<usize>()
        ]
    }
    proptest! {
        #[test]
        fn a_span_is_what_endless_numbers_say_or_none(
            start in any_number(),
            pitch in any_number(),
            width in any_number(),
            height in any_number(),
        ) {
            prop_assume!(start != 0);
            let span = rows(start, pitch).span(width, height);
            let [at, by, row, count] = [start, pitch, width, height].map(|n| n as u128);
            let most = usize::MAX as u128;
            let expected = (row > 0 && row <= by && count > 0 && by.checked_mul(count) <= Some(most))
                .then(|| by * (count - 1) + row)
                .filter(|bytes| at + bytes <= most);
            match (span, expected) {
                (Ok(span), Some(bytes)) => {
                    prop_assert_eq!((span.start().get(), span.bytes() as u128), (start, bytes));
                    let last = rows(start, pitch).row(height - 1, width).unwrap();
                    prop_assert_eq!(last.end(), span.end());
                }
                (span, expected) => prop_assert_eq!(span.is_ok(), expected.is_some()),
            }
        }
    }
}
