//! The commands on buffers: what C says of ranges and rectangles is checked here and made into
//! work, which command buffers record as well as queues run it.
use super::{
    Cpu, Mem,
    engine::Work,
    enqueue::{check_range, pattern_of},
    mem::Placed,
    native::{self, Planes},
};
use crate::over_driver::mem::Mapping;
use std::{any::Any, sync::Arc};
use ur_adapter::{
    error::{Error, ErrorCode, Result},
    memory::{HostBytes, UsmPtr},
    object::Borrowed,
    region::{Place, Span, extent, share_bytes},
};
use ur_hal::Rows;
use ur_sys::{ur_map_flags_t, ur_rect_region_t};

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
    Ok(keeping(Work::Copy { to: to.into(), from: from.into(), bytes: size }, &buffer))
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
    Ok(keeping(Work::Copy { to: to.into(), from: from.into(), bytes: size }, &buffer))
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
    let work = Work::Copy { to: target.into(), from: source.into(), bytes: size };
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
    Ok(keeping(Work::Fill { to: to.into(), pattern, bytes: size }, &buffer))
}

/// The rows and slices of a box in memory that begins at `base`.
///
/// # Errors
/// `INVALID_SIZE` for what wraps around.
fn planes(span: Span, base: UsmPtr) -> Result<Planes> {
    Ok(Planes { base: base.offset(span.start)?.into(), pitch: span.row, slice: span.slice })
}
/// A box within a buffer.
///
/// # Errors
/// As for `Place::span`, and `INVALID_SIZE` where the buffer ends before.
fn in_buffer(place: Place, buffer: &Mem, region: [usize; 3]) -> Result<Span> {
    buffer.check_buffer()?;
    let span = place.span(region)?;
    buffer.range(span.start, span.bytes)?;
    Ok(span)
}
/// A box in host memory, or USM.
///
/// # Errors
/// As for `Place::span`, and `INVALID_SIZE` where its allocation ends before.
fn on_host(place: Place, base: UsmPtr, region: [usize; 3]) -> Result<Planes> {
    let span = place.span(region)?;
    check_range(base, span.start + span.bytes)?; // from where C says that the memory begins
    planes(span, base)
}

/// A copy of boxes; flat ones are copies of rows, which take no allocation.
pub(super) fn box_work(to: Planes, from: Planes, [width, height, depth]: [usize; 3]) -> Work {
    if depth == 1 {
        let (to, from) = (
            Rows { start: to.base, pitch: to.pitch },
            Rows { start: from.base, pitch: from.pitch },
        );
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
    let from = planes(in_buffer(inside, &buffer, region)?, buffer.address())?;
    let to = on_host(host, to, region)?;
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
    let to = planes(in_buffer(inside, &buffer, region)?, buffer.address())?;
    let from = on_host(host, from, region)?;
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
    let (out, into) = (in_buffer(source, &from, region)?, in_buffer(target, &to, region)?);
    let within = |mem: &Mem, span: Span| Span { start: span.start + mem.address().addr(), ..span };
    if Arc::ptr_eq(from.storage(), to.storage())
        && share_bytes(within(&from, out), within(&to, into), region)
    {
        return Err(overlapping());
    }
    let (out, into) = (planes(out, from.address())?, planes(into, to.address())?);
    Ok(keeping(keeping(box_work(into, out, region), &from), &to))
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
) -> Result<Mapping<Cpu>> {
    use ur_map_flags_t as F;
    if flags.contains(F::WRITE_INVALIDATE_REGION) && flags.intersects(F::READ | F::WRITE) {
        return Err(Error::new(
            ErrorCode::InvalidValue,
            "WRITE_INVALIDATE_REGION gives up what is there: it goes with neither READ nor WRITE",
        ));
    }
    buffer.mapping(flags, offset, size)
}
