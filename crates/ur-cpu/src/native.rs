//! The bytes themselves: copies and fills of what C's addresses name. Raw copies and nothing else:
//! other threads, and other processes, may write the same memory meanwhile. When to run them is
//! the engine's; whether the addresses are good is the caller's promise to the ABI.
#![expect(unsafe_code, reason = "copies between addresses that C gave")]
use super::engine::workers::for_each_piece;
use std::ptr;
use ur_hal::{Address, BoxSpan, Rows};

/// Less than this is not worth the hand-over to other threads.
const PARALLEL_FROM: usize = 4 << 20;
/// A fill doubles what it wrote until it is this long: what the first level of cache holds.
const TILE: usize = 16 << 10;

fn bytes_at(base: Address, offset: usize) -> *mut u8 {
    ptr::with_exposed_provenance_mut::<u8>(base.get()).wrapping_add(offset)
}
/// Whether `bytes` from one address on and `bytes` from the other on have one in common.
fn overlap(one: Address, other: Address, bytes: usize) -> bool {
    one.get().abs_diff(other.get()) < bytes
}

/// Runs `work` over the whole of `total` bytes, in pieces on several threads if that pays.
fn in_pieces(total: usize, work: impl Fn(usize, usize) + Sync) {
    match total < PARALLEL_FROM {
        true => work(0, total),
        false => for_each_piece(total, work),
    }
}

/// Copies `bytes` from `from` to `to`; the two may overlap.
pub fn copy(to: impl Into<Address>, from: impl Into<Address>, bytes: usize) {
    let (to, from) = (to.into(), from.into());
    if to == from || bytes == 0 {
        return;
    }
    if overlap(to, from, bytes) {
        // SAFETY: C names `bytes` readable and writable bytes at each.
        return unsafe { ptr::copy(bytes_at(from, 0), bytes_at(to, 0), bytes) };
    }
    in_pieces(bytes, |at, len| {
        // SAFETY: likewise, and they share none.
        unsafe { ptr::copy_nonoverlapping(bytes_at(from, at), bytes_at(to, at), len) };
    });
}

/// Writes `pattern` over and over, `bytes` in all; a last one that does not fit is cut.
/// An empty pattern writes nothing.
pub fn fill(to: impl Into<Address>, pattern: &[u8], bytes: usize) {
    let to = to.into();
    in_pieces(bytes, |at, len| fill_piece(bytes_at(to, at), pattern, at, len));
}

/// `len` bytes of a pattern that began `phase` bytes earlier.
fn fill_piece(to: *mut u8, pattern: &[u8], phase: usize, len: usize) {
    let (period, first) = match pattern {
        [] => return,
        &[first] => (1, first),
        &[first, ..] => (pattern.len(), first),
    };
    if pattern.iter().all(|&b| b == first) {
        // SAFETY: C names `len` writable bytes here.
        return unsafe { ptr::write_bytes(to, first, len) };
    }
    let (tail, head) = pattern.split_at(phase % period);
    let mut done = 0;
    for part in [head, tail] {
        let now = part.len().min(len - done);
        // SAFETY: likewise; the pattern is ours, so it does not overlap them.
        unsafe { ptr::copy_nonoverlapping(part.as_ptr(), to.wrapping_add(done), now) };
        done += now;
    }
    // What is written is whole periods, so copies of it go on seamlessly; up to a tile it doubles.
    let mut tile = done;
    while done < len {
        let now = tile.min(len - done);
        // SAFETY: `tile <= done`, so source and target are two parts of what C named.
        unsafe { ptr::copy_nonoverlapping(to, to.wrapping_add(done), now) };
        done += now;
        if tile < TILE {
            tile = done;
        }
    }
}

/// The first byte of a row.
fn row_at(rows: Rows, row: usize) -> *mut u8 {
    bytes_at(rows.start, rows.pitch.wrapping_mul(row))
}

/// Copies `height` rows of `width` bytes; the two rectangles may overlap if their pitches agree.
pub fn copy_2d(to: Rows, from: Rows, width: usize, height: usize) {
    if width == 0 || height == 0 {
        return;
    }
    if to.pitch == width && from.pitch == width {
        return copy(to.start, from.start, width * height);
    }
    let span = to.pitch.max(from.pitch).saturating_mul(height - 1).saturating_add(width);
    if overlap(to.start, from.start, span) {
        let copy_row = |row| {
            // SAFETY: C names `width` readable and writable bytes in each row.
            unsafe { ptr::copy(row_at(from, row), row_at(to, row), width) };
        };
        // Away from what is still to be read.
        return match to.start < from.start {
            true => (0..height).for_each(copy_row),
            false => (0..height).rev().for_each(copy_row),
        };
    }
    in_rows(width, height, |row, at, len| {
        let (from, to) = (row_at(from, row).wrapping_add(at), row_at(to, row).wrapping_add(at));
        // SAFETY: likewise, and the rectangles share none.
        unsafe { ptr::copy_nonoverlapping(from, to, len) };
    });
}

/// A box of bytes: planes of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Planes {
    /// Its first byte.
    pub base: Address,
    /// Bytes from the start of one row to the start of the next; at least the width.
    pub pitch: usize,
    /// Bytes from the start of one plane to the start of the next.
    pub slice: usize,
}
impl Planes {
    /// A box in memory that begins at this address.
    ///
    /// # Errors
    /// `InvalidSize` for what wraps around.
    pub fn of((base, span): (Address, BoxSpan)) -> ur_hal::Result<Self> {
        Ok(Self { base: base.offset(span.start)?, pitch: span.row, slice: span.slice })
    }
    /// The rows of its first plane.
    pub fn rows(self) -> Rows {
        Rows { start: self.base, pitch: self.pitch }
    }
    /// The first byte of row number `row`, counted over all planes of `height` rows each.
    fn row(self, row: usize, height: usize) -> *mut u8 {
        row_at(self.rows(), row % height).wrapping_add(self.slice.wrapping_mul(row / height))
    }
    /// How many bytes there are from its first to its last; `usize::MAX` if more than fit.
    fn span(self, width: usize, height: usize, depth: usize) -> usize {
        let planes = self.slice.saturating_mul(depth - 1);
        planes.saturating_add(self.pitch.saturating_mul(height - 1)).saturating_add(width)
    }
}

/// Copies `depth` planes of `height` rows of `width` bytes; the two boxes may overlap if their
/// pitches and slices agree.
pub fn copy_3d(to: Planes, from: Planes, width: usize, height: usize, depth: usize) {
    if width == 0 || height == 0 || depth == 0 {
        return;
    }
    let is_dense = |one: Planes| one.slice == one.pitch.wrapping_mul(height);
    if depth == 1 || (is_dense(to) && is_dense(from)) {
        return copy_2d(to.rows(), from.rows(), width, height * depth);
    }
    let span = to.span(width, height, depth).max(from.span(width, height, depth));
    if overlap(to.base, from.base, span) {
        let copy_row = |row| {
            // SAFETY: C names `width` readable and writable bytes in each row.
            unsafe { ptr::copy(from.row(row, height), to.row(row, height), width) };
        };
        // Away from what is still to be read.
        return match to.base < from.base {
            true => (0..height * depth).for_each(copy_row),
            false => (0..height * depth).rev().for_each(copy_row),
        };
    }
    in_rows(width, height * depth, |row, at, len| {
        let (from, to) = (from.row(row, height), to.row(row, height));
        // SAFETY: likewise, and the boxes share none.
        unsafe { ptr::copy_nonoverlapping(from.wrapping_add(at), to.wrapping_add(at), len) };
    });
}

/// Fills `height` rows of `width` bytes; the pattern runs on from each row to the next.
pub fn fill_2d(to: Rows, pattern: &[u8], width: usize, height: usize) {
    if width == 0 || height == 0 || pattern.is_empty() {
        return;
    }
    if to.pitch == width {
        return fill(to.start, pattern, width * height);
    }
    in_rows(width, height, |row, at, len| {
        fill_piece(row_at(to, row).wrapping_add(at), pattern, row * width + at, len);
    });
}

/// Cuts `height` rows of `width` bytes into pieces, none of which leaves its row: row, first
/// byte, length.
fn in_rows(width: usize, height: usize, work: impl Fn(usize, usize, usize) + Sync) {
    in_pieces(width * height, |start, len| {
        let (mut at, end) = (start, start + len);
        while at < end {
            let (row, column) = (at / width, at % width);
            let now = (width - column).min(end - at);
            work(row, column, now);
            at += now;
        }
    });
}

#[cfg(test)]
mod tests;
