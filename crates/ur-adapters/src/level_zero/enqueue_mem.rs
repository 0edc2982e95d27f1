//! The commands on buffers: what C says of ranges and rectangles is checked here and put into the
//! list. Where the bytes are is `storage.rs`'s to say.
use super::{
    Device, Event, Mem, Queue,
    enqueue::{Made, put, submit},
    memory::check_range,
    native::list::Spot,
    submission::Submission,
};
use crate::memory::ranges::pattern_of;
use std::sync::Arc;
pub(super) use ur_adapter::region::{Place, extent};
use ur_adapter::{
    command::Report,
    error::{Error, ErrorCode, Result},
    memory::{HostBytes, UsmPtr},
    object::{Borrowed, Owned},
    region::{Span, share_bytes},
};
use ur_hal::{Address, BoxCopy, Command};
use ur_sys::{ur_command_t, ur_map_flags_t, ur_rect_region_t};

/// Where a buffer begins for commands of the queue.
pub(super) fn base_on(device: &Owned<Device>, buffer: &Mem) -> Result<usize> {
    Ok(buffer.storage().at(device)? as usize + buffer.origin())
}
fn base(queue: &Queue, buffer: &Mem) -> Result<usize> {
    base_on(queue.device(), buffer)
}
fn address(at: usize) -> Result<Address> {
    Address::new(at).ok_or_else(|| ErrorCode::InvalidMemObject.into())
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
pub(super) fn mem_buffer_read(
    queue: Borrowed<'_, Queue>,
    buffer: Borrowed<'_, Mem>,
    (offset, size): (usize, usize),
    to: UsmPtr,
    waits: &[Borrowed<'_, Event>],
    report: Report,
) -> Made {
    buffer.check_range(offset, size)?;
    check_range(to, size)?;
    let (to, from) = (to.into(), address(base(&queue, &buffer)? + offset)?);
    let submission = Submission::new(queue, ur_command_t::MEM_BUFFER_READ, report);
    put(queue, submission, waits, &Command::Copy { to, from, bytes: size })
}
/// `urEnqueueMemBufferWrite`
///
/// # Errors
/// As for `mem_buffer_read`.
pub(super) fn mem_buffer_write(
    queue: Borrowed<'_, Queue>,
    buffer: Borrowed<'_, Mem>,
    (offset, size): (usize, usize),
    from: UsmPtr,
    waits: &[Borrowed<'_, Event>],
    report: Report,
) -> Made {
    buffer.check_range(offset, size)?;
    check_range(from, size)?;
    let (to, from) = (address(base(&queue, &buffer)? + offset)?, from.into());
    let submission = Submission::new(queue, ur_command_t::MEM_BUFFER_WRITE, report);
    put(queue, submission, waits, &Command::Copy { to, from, bytes: size })
}
/// `urEnqueueMemBufferCopy`
///
/// # Errors
/// As for `mem_buffer_read`; `OVERLAPPING_REGIONS` within one buffer.
pub(super) fn mem_buffer_copy(
    queue: Borrowed<'_, Queue>,
    (from, to): (Borrowed<'_, Mem>, Borrowed<'_, Mem>),
    (from_offset, to_offset): (usize, usize),
    size: usize,
    waits: &[Borrowed<'_, Event>],
    want_event: bool,
) -> Made {
    from.check_range(from_offset, size)?;
    to.check_range(to_offset, size)?;
    let (out, into) = (from.origin() + from_offset, to.origin() + to_offset);
    if Arc::ptr_eq(from.storage(), to.storage()) && out.abs_diff(into) < size {
        return Err(overlapping());
    }
    let report = Report::event(want_event);
    submit(queue, ur_command_t::MEM_BUFFER_COPY, waits, report, |list| {
        let source = base(&queue, &from)? + from_offset;
        list.copy(base(&queue, &to)? + to_offset, source, size)
    })
}
/// `urEnqueueMemBufferFill`
///
/// # Errors
/// As for `mem_buffer_read`; `INVALID_SIZE` for a pattern whose length is no power of two, or does
/// not divide `size`.
pub(super) fn mem_buffer_fill(
    queue: Borrowed<'_, Queue>,
    buffer: Borrowed<'_, Mem>,
    pattern: HostBytes<'_>,
    (offset, size): (usize, usize),
    waits: &[Borrowed<'_, Event>],
    want_event: bool,
) -> Made {
    buffer.check_range(offset, size)?;
    if !pattern.len().is_power_of_two() {
        return Err(Error::new(
            ErrorCode::InvalidSize,
            format!("a pattern of {} bytes: a buffer's has a power of two", pattern.len()),
        ));
    }
    let pattern = pattern_of(pattern, size)?.bytes();
    let report = Report::event(want_event);
    submit(queue, ur_command_t::MEM_BUFFER_FILL, waits, report, |list| {
        list.fill(base(&queue, &buffer)? + offset, pattern, size)
    })
}

/// The box as a list is told of it, in memory that begins at `base`.
pub(super) fn spot(span: Span, base: usize) -> Spot {
    Spot { at: base + span.start, row_pitch: span.row, slice_pitch: span.slice }
}
/// A box within a buffer.
///
/// # Errors
/// As for `Place::span`, and `INVALID_SIZE` where the buffer ends before.
pub(super) fn in_buffer(place: Place, buffer: &Mem, region: [usize; 3]) -> Result<Span> {
    buffer.check_buffer()?;
    let span = place.span(region)?;
    buffer.check_range(span.start, span.bytes)?;
    Ok(span)
}
/// A box in host memory, or USM.
///
/// # Errors
/// As for `Place::span`, and `INVALID_SIZE` where its allocation ends before.
pub(super) fn on_host(place: Place, base: UsmPtr, region: [usize; 3]) -> Result<Span> {
    let span = place.span(region)?;
    base.offset(span.start + span.bytes)?;
    check_range(base, span.start + span.bytes)?; // from where C says that the memory begins
    Ok(span)
}

/// `urEnqueueMemBufferReadRect`
///
/// # Errors
/// As for `mem_buffer_read`.
pub(super) fn mem_buffer_read_rect(
    queue: Borrowed<'_, Queue>,
    (buffer, inside): (Borrowed<'_, Mem>, Place),
    (to, host): (UsmPtr, Place),
    region: ur_rect_region_t,
    waits: &[Borrowed<'_, Event>],
    report: Report,
) -> Made {
    let region = extent(region)?;
    let (out, into) = (in_buffer(inside, &buffer, region)?, on_host(host, to, region)?);
    let (to, from) = ((to.into(), into), (address(base(&queue, &buffer)?)?, out));
    let submission = Submission::new(queue, ur_command_t::MEM_BUFFER_READ_RECT, report);
    put(queue, submission, waits, &Command::Copy3d(&BoxCopy { to, from, region }))
}
/// `urEnqueueMemBufferWriteRect`
///
/// # Errors
/// As for `mem_buffer_read`.
pub(super) fn mem_buffer_write_rect(
    queue: Borrowed<'_, Queue>,
    (buffer, inside): (Borrowed<'_, Mem>, Place),
    (from, host): (UsmPtr, Place),
    region: ur_rect_region_t,
    waits: &[Borrowed<'_, Event>],
    report: Report,
) -> Made {
    let region = extent(region)?;
    let (into, out) = (in_buffer(inside, &buffer, region)?, on_host(host, from, region)?);
    let (to, from) = ((address(base(&queue, &buffer)?)?, into), (from.into(), out));
    let submission = Submission::new(queue, ur_command_t::MEM_BUFFER_WRITE_RECT, report);
    put(queue, submission, waits, &Command::Copy3d(&BoxCopy { to, from, region }))
}
/// `urEnqueueMemBufferCopyRect`
///
/// # Errors
/// As for `mem_buffer_read`; `OVERLAPPING_REGIONS` for boxes of one memory that share bytes.
pub(super) fn mem_buffer_copy_rect(
    queue: Borrowed<'_, Queue>,
    (from, source): (Borrowed<'_, Mem>, Place),
    (to, target): (Borrowed<'_, Mem>, Place),
    region: ur_rect_region_t,
    waits: &[Borrowed<'_, Event>],
    want_event: bool,
) -> Made {
    let region = extent(region)?;
    let (out, into) = (in_buffer(source, &from, region)?, in_buffer(target, &to, region)?);
    check_apart((&from, out), (&to, into), region)?;
    let report = Report::event(want_event);
    submit(queue, ur_command_t::MEM_BUFFER_COPY_RECT, waits, report, |list| {
        let from = spot(out, base(&queue, &from)?);
        list.copy_region(spot(into, base(&queue, &to)?), from, region.into())
    })
}
/// # Errors
/// `OVERLAPPING_REGIONS` for boxes of one memory that share bytes.
pub(super) fn check_apart(
    (from, out): (&Mem, Span),
    (to, into): (&Mem, Span),
    region: [usize; 3],
) -> Result<()> {
    let within = |mem: &Mem, span: Span| Span { start: span.start + mem.origin(), ..span };
    let is_one = Arc::ptr_eq(from.storage(), to.storage());
    match is_one && share_bytes(within(from, out), within(to, into), region) {
        true => Err(overlapping()),
        false => Ok(()),
    }
}
/// `urEnqueueMemBufferMap`: the command brings the bytes where the host can reach them, unless they
/// are there already or C gives them up.
///
/// # Errors
/// As for `mem_buffer_read`; `INVALID_VALUE` for flags that contradict each other.
pub(super) fn mem_buffer_map(
    queue: Borrowed<'_, Queue>,
    buffer: Borrowed<'_, Mem>,
    flags: ur_map_flags_t,
    (offset, size): (usize, usize),
    waits: &[Borrowed<'_, Event>],
    report: Report,
) -> Result<(Option<Owned<Event>>, UsmPtr)> {
    use ur_map_flags_t as F;
    if flags.contains(F::WRITE_INVALIDATE_REGION) && flags.intersects(F::READ | F::WRITE) {
        return Err(Error::new(
            ErrorCode::InvalidValue,
            "WRITE_INVALIDATE_REGION gives up what is there: it goes with neither READ nor WRITE",
        ));
    }
    let mapping = buffer.mapping(flags, offset, size)?;
    let (at, brings) = (mapping.at, !mapping.is_own && !flags.contains(F::WRITE_INVALIDATE_REGION));
    let made = submit(queue, ur_command_t::MEM_BUFFER_MAP, waits, report, |list| match brings {
        true => {
            let from = base(&queue, &buffer)? + offset;
            list.copy(at.addr(), from, size)
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
pub(super) fn mem_unmap(
    queue: Borrowed<'_, Queue>,
    mem: Borrowed<'_, Mem>,
    at: UsmPtr,
    waits: &[Borrowed<'_, Event>],
    want_event: bool,
) -> Made {
    use ur_map_flags_t as F;
    let mapping = mem.unmap(at)?;
    let brings = !mapping.is_own && mapping.flags.intersects(F::WRITE | F::WRITE_INVALIDATE_REGION);
    let report = Report::event(want_event);
    let made = submit(queue, ur_command_t::MEM_UNMAP, waits, report, |list| match brings {
        true => {
            let to = base(&queue, &mem)? + mapping.offset;
            list.copy(to, at.addr(), mapping.size)
        }
        false => Ok(()),
    });
    if made.is_err() {
        mem.map(mapping); // it stays mapped
    }
    made
}
