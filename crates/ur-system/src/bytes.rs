//! Commands on memory that this process executes itself: copies and fills at addresses of the application. They are raw
//! copies, because other threads and other processes may write the same memory concurrently. The backend decides when
//! they run; that the addresses are valid is the application's responsibility. Large ones run on several cores.
#![expect(unsafe_code, reason = "copies between addresses that C gave")]
use crate::host::cores;
use std::{
    ptr,
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
};
use ur_hal::{Address, BoxSpan, Command, Error, Result, Rows, Types};

/// Executes a command on memory. Barriers, signals, time stamps and hints do nothing: what is left of them is their
/// place in a stream.
///
/// # Errors
/// `Unsupported` for other commands; `InvalidSize` if a box leaves the address space.
pub fn execute<D: Types>(command: &Command<'_, D>) -> Result<()> {
    match *command {
        Command::Barrier | Command::Signal(_) | Command::Timestamp => {}
        Command::Prefetch { .. } | Command::Advise { .. } => {}
        Command::HostCall(call) => call.call(),
        Command::Copy { to, from, bytes } => copy(to, from, bytes),
        Command::Copy2d { to, from, width, height } => copy_2d(to, from, width, height),
        Command::Copy3d(boxes) => {
            let [width, height, depth] = boxes.region;
            copy_3d(Planes::of(boxes.to)?, Planes::of(boxes.from)?, width, height, depth);
        }
        Command::Fill { to, pattern } => fill(to.start(), pattern.bytes(), to.bytes()),
        Command::Fill2d { to, width, height, pattern } => {
            fill_2d(to, pattern.bytes(), width, height);
        }
        _ => return Error::unsupported("this kind of command"),
    }
    Ok(())
}

/// Smaller operations in bytes are not distributed to other threads.
const PARALLEL_FROM: usize = 4 << 20;
/// A fill doubles what it has written up to this many bytes, which fit in the first-level cache.
const TILE: usize = 16 << 10;

fn bytes_at(base: Address, offset: usize) -> *mut u8 {
    ptr::with_exposed_provenance_mut::<u8>(base.get()).wrapping_add(offset)
}
/// Whether ranges of `bytes` at these addresses overlap.
fn overlap(one: Address, other: Address, bytes: usize) -> bool {
    one.get().abs_diff(other.get()) < bytes
}

/// Calls `work` with offset and length for the whole of `total` bytes, in pieces on several threads if it is
/// large.
fn in_pieces(total: usize, work: impl Fn(usize, usize) + Sync) {
    match total < PARALLEL_FROM {
        true => work(0, total),
        false => for_each_piece(total, work),
    }
}

/// Copies `bytes` from `from` to `to`; the ranges may overlap.
pub fn copy(to: impl Into<Address>, from: impl Into<Address>, bytes: usize) {
    let (to, from) = (to.into(), from.into());
    if to == from || bytes == 0 {
        return;
    }
    if overlap(to, from, bytes) {
        // SAFETY: the application guarantees `bytes` readable and writable bytes at each.
        return unsafe { ptr::copy(bytes_at(from, 0), bytes_at(to, 0), bytes) };
    }
    in_pieces(bytes, |at, len| {
        // SAFETY: as above, and the ranges do not overlap.
        unsafe { ptr::copy_nonoverlapping(bytes_at(from, at), bytes_at(to, at), len) };
    });
}

/// Writes repetitions of `pattern`, `bytes` in total; the last one may be partial. An empty pattern writes
/// nothing.
pub fn fill(to: impl Into<Address>, pattern: &[u8], bytes: usize) {
    let to = to.into();
    in_pieces(bytes, |at, len| fill_piece(bytes_at(to, at), pattern, at, len));
}

/// Writes `len` bytes of a repeated pattern, starting `phase` bytes after the start of a repetition.
fn fill_piece(to: *mut u8, pattern: &[u8], phase: usize, len: usize) {
    let (period, first) = match pattern {
        [] => return,
        &[first] => (1, first),
        &[first, ..] => (pattern.len(), first),
    };
    if pattern.iter().all(|&b| b == first) {
        // SAFETY: the application guarantees `len` writable bytes here.
        return unsafe { ptr::write_bytes(to, first, len) };
    }
    let (tail, head) = pattern.split_at(phase % period);
    let mut done = 0;
    for part in [head, tail] {
        let now = part.len().min(len - done);
        // SAFETY: as above; the pattern is a private copy, so it does not overlap them.
        unsafe { ptr::copy_nonoverlapping(part.as_ptr(), to.wrapping_add(done), now) };
        done += now;
    }
    // What is written is whole periods, so copies of it continue the pattern; it doubles up to a tile.
    let mut tile = done;
    while done < len {
        let now = tile.min(len - done);
        // SAFETY: `tile <= done`, so source and target are disjoint parts of the application's range.
        unsafe { ptr::copy_nonoverlapping(to, to.wrapping_add(done), now) };
        done += now;
        if tile < TILE {
            tile = done;
        }
    }
}

/// The address of a row.
fn row_at(rows: Rows, row: usize) -> *mut u8 {
    bytes_at(rows.start, rows.pitch.wrapping_mul(row))
}

/// Copies `height` rows of `width` bytes; the rectangles may overlap if their pitches are equal.
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
            // SAFETY: the application guarantees `width` readable and writable bytes in each row.
            unsafe { ptr::copy(row_at(from, row), row_at(to, row), width) };
        };
        // In the order in which no row is overwritten before it is read.
        return match to.start < from.start {
            true => (0..height).for_each(copy_row),
            false => (0..height).rev().for_each(copy_row),
        };
    }
    in_rows(width, height, |row, at, len| {
        let (from, to) = (row_at(from, row).wrapping_add(at), row_at(to, row).wrapping_add(at));
        // SAFETY: as above, and the rectangles do not overlap.
        unsafe { ptr::copy_nonoverlapping(from, to, len) };
    });
}

/// A box of bytes in memory: planes of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Planes {
    /// The address of its first byte.
    pub base: Address,
    /// Bytes from the start of one row to the start of the next; at least the width.
    pub pitch: usize,
    /// Bytes from the start of one plane to the start of the next.
    pub slice: usize,
}
impl Planes {
    /// The box that starts at this address with this span.
    ///
    /// # Errors
    /// `InvalidSize` on address overflow.
    pub fn of((base, span): (Address, BoxSpan)) -> Result<Self> {
        Ok(Self { base: base.offset(span.start)?, pitch: span.row, slice: span.slice })
    }
    /// The rows of its first plane.
    pub fn rows(self) -> Rows {
        Rows { start: self.base, pitch: self.pitch }
    }
    /// The address of row number `row`, counted over all planes of `height` rows each.
    fn row(self, row: usize, height: usize) -> *mut u8 {
        row_at(self.rows(), row % height).wrapping_add(self.slice.wrapping_mul(row / height))
    }
    /// The bytes from its first to its last; `usize::MAX` on overflow.
    fn span(self, width: usize, height: usize, depth: usize) -> usize {
        let planes = self.slice.saturating_mul(depth - 1);
        planes.saturating_add(self.pitch.saturating_mul(height - 1)).saturating_add(width)
    }
}

/// Copies `depth` planes of `height` rows of `width` bytes; the boxes may overlap if their pitches and slices
/// are equal.
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
            // SAFETY: the application guarantees `width` readable and writable bytes in each row.
            unsafe { ptr::copy(from.row(row, height), to.row(row, height), width) };
        };
        // In the order in which no row is overwritten before it is read.
        return match to.base < from.base {
            true => (0..height * depth).for_each(copy_row),
            false => (0..height * depth).rev().for_each(copy_row),
        };
    }
    in_rows(width, height * depth, |row, at, len| {
        let (from, to) = (from.row(row, height), to.row(row, height));
        // SAFETY: as above, and the boxes do not overlap.
        unsafe { ptr::copy_nonoverlapping(from.wrapping_add(at), to.wrapping_add(at), len) };
    });
}

/// Fills `height` rows of `width` bytes; the pattern continues from each row to the next.
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

/// Divides `height` rows of `width` bytes into pieces within a row; calls `work` with row, first byte and
/// length.
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

/// The smallest share in bytes for which another core is used.
const LEAST_SHARE: usize = 2 << 20;
/// The number of pieces for each core. Several, so that a core that is busy otherwise takes fewer; not so
/// small that the C library would copy them through the cache.
const PIECES_A_CORE: usize = 4;

/// Calls `each` with offsets and lengths that cover `bytes`, for large amounts on several cores, and returns
/// when all are done. Pieces start at multiples of a page. The threads are started for this call only: such
/// amounts take much longer than that.
fn for_each_piece(bytes: usize, each: impl Fn(usize, usize) + Sync) {
    let shares = (bytes / LEAST_SHARE).min(cores());
    if shares < 2 {
        return each(0, bytes);
    }
    let piece = (bytes / (shares * PIECES_A_CORE)).max(LEAST_SHARE).next_multiple_of(4096);
    let next = AtomicUsize::new(0);
    let take_part = || {
        loop {
            let start = next.fetch_add(1, Relaxed).saturating_mul(piece);
            if start >= bytes {
                return;
            }
            each(start, piece.min(bytes - start));
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..shares {
            if ur_mapping::start_scoped_thread(scope, "ur-system-copy", take_part).is_err() {
                break; // fewer threads do the same pieces
            }
        }
        take_part();
    });
}

#[cfg(test)]
mod tests;
