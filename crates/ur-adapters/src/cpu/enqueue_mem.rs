//! The commands on buffers: what C says of ranges and rectangles is checked here and made into
//! work, which command buffers record as well as queues run it.
use super::{
    Mem,
    engine::Work,
    enqueue::{check_range, pattern_of},
    native::{self, Planes, Rows},
};
use std::{any::Any, sync::Arc};
use ur_adapter::{
    error::{Error, ErrorCode, Result},
    memory::{HostBytes, UsmPtr},
    object::Borrowed,
};
use ur_sys::{ur_map_flags_t, ur_rect_offset_t, ur_rect_region_t};

/// `work`, with the bytes of `mem` where they are until it is done.
pub(super) fn keeping(work: Work, mem: &Mem) -> Work {
    let kept: Arc<dyn Any + Send + Sync> = mem.storage().clone();
    Work::Keeping(Box::new(work), kept)
}

/// Reads `size` bytes of a buffer from `offset` on.
///
/// # Errors
/// `INVALID_SIZE`, `INVALID_MEM_OBJECT`
pub(super) fn buffer_read_work(
    buffer: Borrowed<'_, Mem>,
    offset: usize,
    size: usize,
    to: UsmPtr,
) -> Result<Work> {
    let from = buffer.range(offset, size)?;
    check_range(to, size)?;
    Ok(keeping(Work::Copy { to, from, bytes: size }, &buffer))
}
/// Writes `size` bytes of a buffer from `offset` on.
///
/// # Errors
/// `INVALID_SIZE`, `INVALID_MEM_OBJECT`
pub(super) fn buffer_write_work(
    buffer: Borrowed<'_, Mem>,
    offset: usize,
    size: usize,
    from: UsmPtr,
) -> Result<Work> {
    let to = buffer.range(offset, size)?;
    check_range(from, size)?;
    Ok(keeping(Work::Copy { to, from, bytes: size }, &buffer))
}
/// Copies from buffer to buffer.
///
/// # Errors
/// `INVALID_SIZE`, `INVALID_MEM_OBJECT`; `OVERLAPPING_REGIONS` within one buffer.
pub(super) fn buffer_copy_work(
    from: Borrowed<'_, Mem>,
    to: Borrowed<'_, Mem>,
    from_offset: usize,
    to_offset: usize,
    size: usize,
) -> Result<Work> {
    let (source, target) = (from.range(from_offset, size)?, to.range(to_offset, size)?);
    if source.overlaps(target, size) {
        return Err(overlapping());
    }
    let work = Work::Copy { to: target, from: source, bytes: size };
    Ok(keeping(keeping(work, &from), &to))
}
pub(super) fn overlapping() -> Error {
    Error::new(
        ErrorCode::OverlappingRegions,
        "source and target share bytes: copy by way of another buffer",
    )
}
/// Fills `size` bytes of a buffer from `offset` on.
///
/// # Errors
/// `INVALID_SIZE`, `INVALID_MEM_OBJECT`
pub(super) fn buffer_fill_work(
    buffer: Borrowed<'_, Mem>,
    pattern: HostBytes<'_>,
    offset: usize,
    size: usize,
) -> Result<Work> {
    let to = buffer.range(offset, size)?;
    if !pattern.len().is_power_of_two() {
        return Err(Error::new(
            ErrorCode::InvalidSize,
            format!("a pattern of {} bytes: a buffer's has a power of two", pattern.len()),
        ));
    }
    let pattern = pattern_of(pattern, size)?;
    Ok(keeping(Work::Fill { to, pattern, bytes: size }, &buffer))
}

/// A box of bytes within memory, as C describes it: 0 for a pitch means that nothing is between.
#[derive(Clone, Copy)]
pub(super) struct Place {
    /// Its first byte in a row, its first row, its first slice.
    origin: ur_rect_offset_t,
    /// Bytes from row to row.
    row: usize,
    /// Bytes from slice to slice.
    slice: usize,
}
/// Where a box starts, and how many bytes there are from there to behind its last.
struct Span {
    planes: Planes,
    start: usize,
    bytes: usize,
}
impl Place {
    pub(super) fn new(origin: ur_rect_offset_t, row: usize, slice: usize) -> Self {
        Self { origin, row, slice }
    }
    /// # Errors
    /// `INVALID_SIZE` for a region of nothing, for pitches that do not fit it and for what wraps
    /// around.
    fn span(self, base: UsmPtr, region: [usize; 3]) -> Result<Span> {
        let refused = |why: String| Error::new(ErrorCode::InvalidSize, why);
        let wraps = || refused("origin, region and pitches leave all memory there can be".into());
        let [width, height, depth] = region;
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
        let start = at(self.origin.x, self.origin.y, self.origin.z).ok_or_else(wraps)?;
        let last = at(width as u64, height as u64 - 1, depth as u64 - 1).ok_or_else(wraps)?;
        start.checked_add(last).filter(|&end| end <= isize::MAX as usize).ok_or_else(wraps)?;
        let planes = Planes { base: base.offset(start)?, pitch: row, slice };
        Ok(Span { planes, start, bytes: last })
    }
    /// Within a buffer.
    ///
    /// # Errors
    /// As for `span`, and `INVALID_SIZE` where the buffer ends before.
    fn in_buffer(self, buffer: &Mem, region: [usize; 3]) -> Result<Planes> {
        buffer.check_buffer()?;
        let span = self.span(buffer.address(), region)?;
        buffer.range(span.start, span.bytes)?;
        Ok(span.planes)
    }
    /// In host memory, or USM.
    ///
    /// # Errors
    /// As for `span`, and `INVALID_SIZE` where its allocation ends before.
    fn on_host(self, base: UsmPtr, region: [usize; 3]) -> Result<Planes> {
        let span = self.span(base, region)?;
        check_range(base, span.start + span.bytes)?; // from where C says that the memory begins
        Ok(span.planes)
    }
}

/// # Errors
/// `INVALID_SIZE` for what no memory can hold.
fn extent(region: ur_rect_region_t) -> Result<[usize; 3]> {
    let number = |n: u64| usize::try_from(n).map_err(|_| ErrorCode::InvalidSize);
    Ok([number(region.width)?, number(region.height)?, number(region.depth)?])
}

/// A copy of boxes; flat ones are copies of rows, which take no allocation.
pub(super) fn box_work(to: Planes, from: Planes, [width, height, depth]: [usize; 3]) -> Work {
    if depth == 1 {
        let (to, from) =
            (Rows { base: to.base, pitch: to.pitch }, Rows { base: from.base, pitch: from.pitch });
        return Work::Copy2d { to, from, width, height };
    }
    Work::Run(Arc::new(move || {
        native::copy_3d(to, from, width, height, depth);
        Ok(())
    }))
}

/// Reads a box of a buffer.
///
/// # Errors
/// `INVALID_SIZE`, `INVALID_MEM_OBJECT`
pub(super) fn buffer_read_rect_work(
    buffer: Borrowed<'_, Mem>,
    inside: Place,
    host: Place,
    region: ur_rect_region_t,
    to: UsmPtr,
) -> Result<Work> {
    let region = extent(region)?;
    let (from, to) = (inside.in_buffer(&buffer, region)?, host.on_host(to, region)?);
    Ok(keeping(box_work(to, from, region), &buffer))
}
/// Writes a box of a buffer.
///
/// # Errors
/// `INVALID_SIZE`, `INVALID_MEM_OBJECT`
pub(super) fn buffer_write_rect_work(
    buffer: Borrowed<'_, Mem>,
    inside: Place,
    host: Place,
    region: ur_rect_region_t,
    from: UsmPtr,
) -> Result<Work> {
    let region = extent(region)?;
    let (to, from) = (inside.in_buffer(&buffer, region)?, host.on_host(from, region)?);
    Ok(keeping(box_work(to, from, region), &buffer))
}
/// Copies a box from buffer to buffer.
///
/// # Errors
/// `INVALID_SIZE`, `INVALID_MEM_OBJECT`; `OVERLAPPING_REGIONS` for boxes of one memory that share
/// bytes.
pub(super) fn buffer_copy_rect_work(
    from: Borrowed<'_, Mem>,
    to: Borrowed<'_, Mem>,
    source: Place,
    target: Place,
    region: ur_rect_region_t,
) -> Result<Work> {
    let region = extent(region)?;
    let (out, into) = (source.in_buffer(&from, region)?, target.in_buffer(&to, region)?);
    if Arc::ptr_eq(from.storage(), to.storage()) && share_bytes(out, into, region) {
        return Err(overlapping());
    }
    Ok(keeping(keeping(box_work(into, out, region), &from), &to))
}

/// Whether two boxes of one memory have a byte in common. Exact where their pitches agree; where
/// they do not, what lies between the first byte and the last counts as the box's.
fn share_bytes(one: Planes, other: Planes, [width, height, depth]: [usize; 3]) -> bool {
    let (low, high) = if one.base <= other.base { (one, other) } else { (other, one) };
    let span = (depth - 1) * low.slice + (height - 1) * low.pitch + width;
    let apart = high.base.addr() - low.base.addr();
    if apart >= span {
        return false;
    }
    if one.pitch != other.pitch || one.slice != other.slice {
        return true;
    }
    // A row of `high` begins k slices, i rows and some bytes behind one of `low`: they share bytes
    // if those are fewer than a row's. i is negative where it begins further left.
    let [apart, pitch, slice] = [apart, low.pitch, low.slice].map(|n| n as i128);
    let [width, height, depth] = [width, height, depth].map(|n| n as i128);
    let near = |n: i128, step: i128| [n.div_euclid(step), n.div_euclid(step) + 1];
    near(apart, slice).into_iter().any(|k| {
        let rest = apart - k * slice;
        let row = |i: i128| i.abs() < height && (rest - i * pitch).abs() < width;
        k < depth && near(rest, pitch).into_iter().any(row)
    })
}

/// Where a mapping is: the buffer is where the host can reach it already, so that of mapping it
/// only the place in the order counts.
///
/// # Errors
/// `INVALID_SIZE`, `INVALID_MEM_OBJECT`; `INVALID_VALUE` for flags that contradict each other.
pub(super) fn mapping(
    buffer: Borrowed<'_, Mem>,
    flags: ur_map_flags_t,
    offset: usize,
    size: usize,
) -> Result<UsmPtr> {
    use ur_map_flags_t as F;
    if flags.contains(F::WRITE_INVALIDATE_REGION) && flags.intersects(F::READ | F::WRITE) {
        return Err(Error::new(
            ErrorCode::InvalidValue,
            "WRITE_INVALIDATE_REGION gives up what is there: it goes with neither READ nor WRITE",
        ));
    }
    buffer.range(offset, size)
}
