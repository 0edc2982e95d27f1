//! Boxes of bytes in memory, as rectangle commands describe them: their extent, and whether two of them overlap.
use crate::{Error, ErrorKind, Result};

/// Where a box of bytes begins in memory, and its pitches. A pitch of 0 means tightly packed.
#[derive(Clone, Copy, Debug)]
pub struct BoxPlace {
    /// The box's first byte in a row, its first row, its first slice.
    origin: [u64; 3],
    /// Bytes from one row to the next.
    row: usize,
    /// Bytes from one slice to the next.
    slice: usize,
}
/// The extent of a box in memory.
#[derive(Clone, Copy, Debug)]
pub struct BoxSpan {
    /// Bytes before the first byte of the box.
    pub start: usize,
    /// Bytes from its first byte to the end of its last byte.
    pub bytes: usize,
    /// Bytes from one row to the next; at least the width of a row.
    pub row: usize,
    /// Bytes from one slice to the next; a multiple of `row`.
    pub slice: usize,
}
impl BoxPlace {
    /// A box whose first byte is byte `origin[0]` of row `origin[1]` of slice `origin[2]`.
    pub fn new(origin: [u64; 3], row: usize, slice: usize) -> Self {
        Self { origin, row, slice }
    }
    /// The extent of a box of this size: width in bytes, rows, slices.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidSize`] for an empty region, for pitches that are too small for it, and where the result
    /// wraps around.
    pub fn span(self, [width, height, depth]: [usize; 3]) -> Result<BoxSpan> {
        let refused = |why: String| Error::new(ErrorKind::InvalidSize, why);
        let wraps = || refused("origin, region and pitches leave all memory there can be".into());
        if width == 0 || height == 0 || depth == 0 {
            return Err(refused(format!("{width} x {height} x {depth} bytes are no region")));
        }
        let row = if self.row == 0 { width } else { self.row };
        if row < width {
            return Err(refused(format!("rows of {width} bytes do not fit a pitch of {row}")));
        }
        let rows = row.checked_mul(height).ok_or_else(wraps)?;
        let slice = if self.slice == 0 { rows } else { self.slice };
        if slice < rows || !slice.is_multiple_of(row) {
            return Err(refused(format!(
                "a slice pitch of {slice} is not a multiple of the row pitch {row} that holds \
                 {height} rows"
            )));
        }
        let at = |x: u64, y: u64, z: u64| -> Option<usize> {
            let [x, y, z] = [x, y, z].map(usize::try_from);
            let rows = y.ok()?.checked_mul(row)?;
            z.ok()?.checked_mul(slice)?.checked_add(rows)?.checked_add(x.ok()?)
        };
        let [x, y, z] = self.origin;
        let start = at(x, y, z).ok_or_else(wraps)?;
        let bytes = at(width as u64, height as u64 - 1, depth as u64 - 1).ok_or_else(wraps)?;
        start.checked_add(bytes).filter(|&end| end <= isize::MAX as usize).ok_or_else(wraps)?;
        Ok(BoxSpan { start, bytes, row, slice })
    }
}
/// Whether two boxes of one memory share a byte. Exact if their pitches are equal; otherwise everything between a box's
/// first and last byte counts as part of it.
pub fn share_bytes(one: BoxSpan, other: BoxSpan, [width, height, depth]: [usize; 3]) -> bool {
    let (low, high) = if one.start <= other.start { (one, other) } else { (other, one) };
    let apart = high.start - low.start;
    if apart >= low.bytes {
        return false;
    }
    if one.row != other.row || one.slice != other.slice {
        return true;
    }
    // A row of `high` begins k slices, i rows and some bytes after a row of `low`: they share bytes if those bytes are
    // fewer than a row has. i is negative if the row of `high` begins further left.
    let [apart, row, slice] = [apart, low.row, low.slice].map(|n| n as i128);
    let [width, height, depth] = [width, height, depth].map(|n| n as i128);
    let near = |n: i128, step: i128| [n.div_euclid(step), n.div_euclid(step) + 1];
    near(apart, slice).into_iter().any(|k| {
        let rest = apart - k * slice;
        let shares = |i: i128| i.abs() < height && (rest - i * row).abs() < width;
        k < depth && near(rest, row).into_iter().any(shares)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn place(at: [u64; 3], row: usize, slice: usize) -> BoxPlace {
        BoxPlace::new(at, row, slice)
    }
    fn bytes(span: BoxSpan, [width, height, depth]: [usize; 3]) -> HashSet<usize> {
        let rows = |z| (0..height).map(move |y| (y, z));
        let starts = (0..depth).flat_map(rows);
        starts
            .flat_map(|(y, z)| {
                (0..width).map(move |x| span.start + x + y * span.row + z * span.slice)
            })
            .collect()
    }

    #[test]
    fn a_span_reaches_from_the_first_byte_of_its_box_to_the_last() {
        for (at, row, slice) in [([0, 0, 0], 0, 0), ([3, 1, 2], 16, 64), ([1, 0, 0], 7, 0)] {
            let span = place(at, row, slice).span([5, 3, 2]).unwrap();
            let all = bytes(span, [5, 3, 2]);
            assert_eq!(all.iter().min(), Some(&span.start));
            assert_eq!(all.iter().max(), Some(&(span.start + span.bytes - 1)));
        }
    }
    #[test]
    fn boxes_without_bytes_pitches_that_do_not_fit_and_what_wraps_around_are_no_spans() {
        for (at, row, slice, region) in [
            ([0; 3], 0, 0, [0, 1, 1]),
            ([0; 3], 4, 0, [5, 1, 1]),
            ([0; 3], 8, 15, [5, 2, 2]),
            ([0; 3], 8, 20, [5, 2, 2]),
            ([u64::MAX, 0, 0], 0, 0, [1, 1, 1]),
            ([0, u64::MAX, 0], 8, 0, [1, 1, 1]),
            ([0; 3], 0, 0, [usize::MAX, 2, 1]),
        ] {
            let refused = place(at, row, slice).span(region).map_err(|error| error.kind());
            assert_eq!(refused.map(|span| span.start), Err(ErrorKind::InvalidSize));
        }
    }
    #[test]
    #[cfg_attr(miri, ignore = "arithmetic alone, and hours of it")]
    fn boxes_share_bytes_exactly_where_they_do() {
        let region = [5, 3, 2];
        let origins =
            (0..3).flat_map(|z| (0..5).flat_map(move |y| (0..12).map(move |x| [x, y, z])));
        let all: Vec<_> = origins.map(|at| place(at, 12, 72).span(region).unwrap()).collect();
        for one in all.iter().step_by(3) {
            let there = bytes(*one, region);
            for other in &all {
                let expected = !there.is_disjoint(&bytes(*other, region));
                assert_eq!(share_bytes(*one, *other, region), expected, "{one:?} {other:?}");
            }
        }
    }
}
