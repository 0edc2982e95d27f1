//! The commands on buffers: what C says of ranges and rectangles is checked here and put into the
//! stream. Where the bytes are is `storage.rs`'s to say.
use super::{
    Event, Mem, Queue,
    driver::Dialect,
    memory::check_range,
    native::{array::End, stream::Stream},
    storage::Found,
    submission::{Made, submit},
};
use crate::memory::ranges::pattern_of;
use std::sync::Arc;
use ur_adapter::{
    command::Report,
    error::{Error, ErrorCode, Result},
    memory::{HostBytes, UsmPtr},
    object::{Borrowed, Owned},
    region::{Place, Span, extent, share_bytes},
};
use ur_sys::{ur_command_t, ur_map_flags_t, ur_rect_region_t};

/// Where a buffer begins on the queue's device, up to date in `stream`.
fn base<D: Dialect>(
    queue: &Queue<D>,
    stream: &Stream<D>,
    buffer: &Mem<D>,
    writes: bool,
) -> Result<u64> {
    match buffer.storage().at(queue.device(), stream, writes)? {
        Found::At(at) => Ok(at + buffer.origin() as u64),
        Found::Array(_) => Err(ErrorCode::InvalidMemObject.into()), // no buffer has one
    }
}
pub(super) fn overlapping() -> Error {
    Error::new(
        ErrorCode::OverlappingRegions,
        "source and target share bytes: copy by way of another buffer",
    )
}

/// `urEnqueueMemBufferRead`
///
/// # Errors
/// As `submit`; `INVALID_SIZE`, `INVALID_MEM_OBJECT`
pub(super) fn mem_buffer_read<D: Dialect>(
    queue: Borrowed<'_, Queue<D>>,
    buffer: Borrowed<'_, Mem<D>>,
    (offset, size): (usize, usize),
    to: UsmPtr,
    waits: &[Borrowed<'_, Event<D>>],
    report: Report,
) -> Made<D> {
    buffer.check_range(offset, size)?;
    check_range::<D>(to, size)?;
    submit(queue, ur_command_t::MEM_BUFFER_READ, waits, report, |stream| {
        let from = base(&queue, stream, &buffer, false)? + offset as u64;
        stream.copy(to.addr() as u64, from, size)
    })
}
/// `urEnqueueMemBufferWrite`
///
/// # Errors
/// As for `mem_buffer_read`.
pub(super) fn mem_buffer_write<D: Dialect>(
    queue: Borrowed<'_, Queue<D>>,
    buffer: Borrowed<'_, Mem<D>>,
    (offset, size): (usize, usize),
    from: UsmPtr,
    waits: &[Borrowed<'_, Event<D>>],
    report: Report,
) -> Made<D> {
    buffer.check_range(offset, size)?;
    check_range::<D>(from, size)?;
    submit(queue, ur_command_t::MEM_BUFFER_WRITE, waits, report, |stream| {
        let to = base(&queue, stream, &buffer, true)? + offset as u64;
        stream.copy(to, from.addr() as u64, size)
    })
}
/// `urEnqueueMemBufferCopy`
///
/// # Errors
/// As for `mem_buffer_read`; `OVERLAPPING_REGIONS` within one buffer.
pub(super) fn mem_buffer_copy<D: Dialect>(
    queue: Borrowed<'_, Queue<D>>,
    (from, to): (Borrowed<'_, Mem<D>>, Borrowed<'_, Mem<D>>),
    (from_offset, to_offset): (usize, usize),
    size: usize,
    waits: &[Borrowed<'_, Event<D>>],
    want_event: bool,
) -> Made<D> {
    from.check_range(from_offset, size)?;
    to.check_range(to_offset, size)?;
    let (out, into) = (from.origin() + from_offset, to.origin() + to_offset);
    if Arc::ptr_eq(from.storage(), to.storage()) && out.abs_diff(into) < size {
        return Err(overlapping());
    }
    let report = Report::event(want_event);
    submit(queue, ur_command_t::MEM_BUFFER_COPY, waits, report, |stream| {
        let source = base(&queue, stream, &from, false)? + from_offset as u64;
        stream.copy(base(&queue, stream, &to, true)? + to_offset as u64, source, size)
    })
}
/// `urEnqueueMemBufferFill`
///
/// # Errors
/// As for `mem_buffer_read`; `INVALID_SIZE` for a pattern whose length is no power of two, or does
/// not divide `size`.
pub(super) fn mem_buffer_fill<D: Dialect>(
    queue: Borrowed<'_, Queue<D>>,
    buffer: Borrowed<'_, Mem<D>>,
    pattern: HostBytes<'_>,
    (offset, size): (usize, usize),
    waits: &[Borrowed<'_, Event<D>>],
    want_event: bool,
) -> Made<D> {
    buffer.check_range(offset, size)?;
    if !pattern.len().is_power_of_two() {
        return Err(Error::new(
            ErrorCode::InvalidSize,
            format!("a pattern of {} bytes: a buffer's has a power of two", pattern.len()),
        ));
    }
    let pattern = pattern_of(pattern, size)?.bytes();
    let report = Report::event(want_event);
    submit(queue, ur_command_t::MEM_BUFFER_FILL, waits, report, |stream| {
        stream.fill(base(&queue, stream, &buffer, true)? + offset as u64, pattern, size)
    })
}

/// The box as the driver describes it, in memory that begins at `base`.
fn end(span: Span, base: u64) -> End {
    End::Memory(base + span.start as u64, span.row, span.slice / span.row)
}
/// A box within a buffer.
///
/// # Errors
/// As for `Place::span`, and `INVALID_SIZE` where the buffer ends before.
fn in_buffer<D: Dialect>(place: Place, buffer: &Mem<D>, region: [usize; 3]) -> Result<Span> {
    buffer.check_buffer()?;
    let span = place.span(region)?;
    buffer.check_range(span.start, span.bytes)?;
    Ok(span)
}
/// A box in host memory, or USM.
///
/// # Errors
/// As for `Place::span`, and `INVALID_SIZE` where its allocation ends before.
fn on_host<D: Dialect>(place: Place, base: UsmPtr, region: [usize; 3]) -> Result<Span> {
    let span = place.span(region)?;
    base.offset(span.start + span.bytes)?;
    check_range::<D>(base, span.start + span.bytes)?; // from where C says that the memory begins
    Ok(span)
}

/// `urEnqueueMemBufferReadRect`
///
/// # Errors
/// As for `mem_buffer_read`.
pub(super) fn mem_buffer_read_rect<D: Dialect>(
    queue: Borrowed<'_, Queue<D>>,
    (buffer, inside): (Borrowed<'_, Mem<D>>, Place),
    (to, host): (UsmPtr, Place),
    region: ur_rect_region_t,
    waits: &[Borrowed<'_, Event<D>>],
    report: Report,
) -> Made<D> {
    let region = extent(region)?;
    let (out, into) = (in_buffer(inside, &buffer, region)?, on_host::<D>(host, to, region)?);
    submit(queue, ur_command_t::MEM_BUFFER_READ_RECT, waits, report, |stream| {
        let from = end(out, base(&queue, stream, &buffer, false)?);
        stream.copy_box(end(into, to.addr() as u64), from, region)
    })
}
/// `urEnqueueMemBufferWriteRect`
///
/// # Errors
/// As for `mem_buffer_read`.
pub(super) fn mem_buffer_write_rect<D: Dialect>(
    queue: Borrowed<'_, Queue<D>>,
    (buffer, inside): (Borrowed<'_, Mem<D>>, Place),
    (from, host): (UsmPtr, Place),
    region: ur_rect_region_t,
    waits: &[Borrowed<'_, Event<D>>],
    report: Report,
) -> Made<D> {
    let region = extent(region)?;
    let (into, out) = (in_buffer(inside, &buffer, region)?, on_host::<D>(host, from, region)?);
    submit(queue, ur_command_t::MEM_BUFFER_WRITE_RECT, waits, report, |stream| {
        let to = end(into, base(&queue, stream, &buffer, true)?);
        stream.copy_box(to, end(out, from.addr() as u64), region)
    })
}
/// `urEnqueueMemBufferCopyRect`
///
/// # Errors
/// As for `mem_buffer_read`; `OVERLAPPING_REGIONS` for boxes of one memory that share bytes.
pub(super) fn mem_buffer_copy_rect<D: Dialect>(
    queue: Borrowed<'_, Queue<D>>,
    (from, source): (Borrowed<'_, Mem<D>>, Place),
    (to, target): (Borrowed<'_, Mem<D>>, Place),
    region: ur_rect_region_t,
    waits: &[Borrowed<'_, Event<D>>],
    want_event: bool,
) -> Made<D> {
    let region = extent(region)?;
    let (out, into) = (in_buffer(source, &from, region)?, in_buffer(target, &to, region)?);
    let within = |mem: &Mem<D>, span: Span| Span { start: span.start + mem.origin(), ..span };
    if Arc::ptr_eq(from.storage(), to.storage())
        && share_bytes(within(&from, out), within(&to, into), region)
    {
        return Err(overlapping());
    }
    let report = Report::event(want_event);
    submit(queue, ur_command_t::MEM_BUFFER_COPY_RECT, waits, report, |stream| {
        let from = end(out, base(&queue, stream, &from, false)?);
        stream.copy_box(end(into, base(&queue, stream, &to, true)?), from, region)
    })
}
/// `urEnqueueMemBufferMap`: the command brings the bytes where the host can reach them, unless they
/// are there already or C gives them up.
///
/// # Errors
/// As for `mem_buffer_read`; `INVALID_VALUE` for flags that contradict each other.
pub(super) fn mem_buffer_map<D: Dialect>(
    queue: Borrowed<'_, Queue<D>>,
    buffer: Borrowed<'_, Mem<D>>,
    flags: ur_map_flags_t,
    (offset, size): (usize, usize),
    waits: &[Borrowed<'_, Event<D>>],
    report: Report,
) -> Result<(Option<Owned<Event<D>>>, UsmPtr)> {
    use ur_map_flags_t as F;
    if flags.contains(F::WRITE_INVALIDATE_REGION) && flags.intersects(F::READ | F::WRITE) {
        return Err(Error::new(
            ErrorCode::InvalidValue,
            "WRITE_INVALIDATE_REGION gives up what is there: it goes with neither READ nor WRITE",
        ));
    }
    let mapping = buffer.mapping(flags, offset, size)?;
    let (at, brings) = (mapping.at, !mapping.is_own && !flags.contains(F::WRITE_INVALIDATE_REGION));
    let made = submit(queue, ur_command_t::MEM_BUFFER_MAP, waits, report, |stream| match brings {
        true => {
            let from = base(&queue, stream, &buffer, false)? + offset as u64;
            stream.copy(at.addr() as u64, from, size)
        }
        false => Ok(()),
    })?;
    buffer.map(mapping);
    Ok((made, at))
}
/// `urEnqueueMemUnmap`: the command brings back what C may have written.
///
/// # Errors
/// As `submit`; `INVALID_VALUE` for what is not mapped.
pub(super) fn mem_unmap<D: Dialect>(
    queue: Borrowed<'_, Queue<D>>,
    mem: Borrowed<'_, Mem<D>>,
    at: UsmPtr,
    waits: &[Borrowed<'_, Event<D>>],
    want_event: bool,
) -> Made<D> {
    use ur_map_flags_t as F;
    let mapping = mem.unmap(at)?;
    let brings = !mapping.is_own && mapping.flags.intersects(F::WRITE | F::WRITE_INVALIDATE_REGION);
    let report = Report::event(want_event);
    let made = submit(queue, ur_command_t::MEM_UNMAP, waits, report, |stream| match brings {
        true => {
            let to = base(&queue, stream, &mem, true)? + mapping.offset as u64;
            stream.copy(to, at.addr() as u64, mapping.size)
        }
        false => Ok(()),
    });
    if made.is_err() {
        mem.map(mapping); // it stays mapped
    }
    made
}
