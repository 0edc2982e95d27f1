//! Boxes of bytes as the rectangle commands describe them; `ur_hal` does the arithmetic.
use crate::error::{ErrorCode, Result};
pub use ur_hal::{BoxPlace as Place, BoxSpan as Span, share_bytes};
use ur_sys::{ur_rect_offset_t, ur_rect_region_t};

/// A box of bytes in memory that begins at `origin`. The pitches are in bytes; 0 means tightly packed.
pub fn place(origin: ur_rect_offset_t, row: usize, slice: usize) -> Place {
    Place::new([origin.x, origin.y, origin.z], row, slice)
}
/// The size of a box: width in bytes, rows, slices.
///
/// # Errors
/// `INVALID_SIZE` if a number exceeds the address space.
pub fn extent(region: ur_rect_region_t) -> Result<[usize; 3]> {
    let number = |n: u64| usize::try_from(n).map_err(|_| ErrorCode::InvalidSize);
    Ok([number(region.width)?, number(region.height)?, number(region.depth)?])
}
