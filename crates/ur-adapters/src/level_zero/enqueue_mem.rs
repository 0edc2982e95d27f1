//! The commands on buffers: what C says of ranges and rectangles is checked here and put into the
//! list. Where the bytes are is `storage.rs`'s to say.
use super::{
    Device, Event, Mem, Queue,
    enqueue::{Made, Report, submit},
    enqueue_usm::{check_range, pattern_of},
    native::list::Spot,
};
use std::sync::Arc;
use ur_adapter::{
    error::{Error, ErrorCode, Result},
    memory::{HostBytes, UsmPtr},
    object::{Borrowed, Owned},
};
use ur_sys::{ur_command_t, ur_map_flags_t, ur_rect_offset_t, ur_rect_region_t};

/// Where a buffer begins for commands of the queue.
pub(super) fn base_on(device: &Owned<Device>, buffer: &Mem) -> Result<usize> {
    Ok(buffer.storage().at(device)? as usize + buffer.origin())
}
fn base(queue: &Queue, buffer: &Mem) -> Result<usize> {
    base_on(queue.device(), buffer)
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
    submit(queue, ur_command_t::MEM_BUFFER_READ, waits, report, |list| {
        let from = base(&queue, &buffer)? + offset;
        list.copy(to.addr(), from, size)
    })
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
    submit(queue, ur_command_t::MEM_BUFFER_WRITE, waits, report, |list| {
        let to = base(&queue, &buffer)? + offset;
        list.copy(to, from.addr(), size)
    })
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
    let pattern = pattern_of(pattern, size)?;
    let report = Report::event(want_event);
    submit(queue, ur_command_t::MEM_BUFFER_FILL, waits, report, |list| {
        list.fill(base(&queue, &buffer)? + offset, pattern, size)
    })
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
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    start: usize,
    bytes: usize,
    row: usize,
    slice: usize,
}
impl Span {
    /// As a list is told of it, in memory that begins at `base`.
    pub(super) fn spot(self, base: usize) -> Spot {
        Spot { at: base + self.start, row_pitch: self.row, slice_pitch: self.slice }
    }
}
impl Place {
    pub(super) fn new(origin: ur_rect_offset_t, row: usize, slice: usize) -> Self {
        Self { origin, row, slice }
    }
    /// # Errors
    /// `INVALID_SIZE` for a region of nothing, for pitches that do not fit it and for what wraps
    /// around.
    fn span(self, [width, height, depth]: [usize; 3]) -> Result<Span> {
        let refused = |why: String| Error::new(ErrorCode::InvalidSize, why);
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
        let start = at(self.origin.x, self.origin.y, self.origin.z).ok_or_else(wraps)?;
        let bytes = at(width as u64, height as u64 - 1, depth as u64 - 1).ok_or_else(wraps)?;
        start.checked_add(bytes).filter(|&end| end <= isize::MAX as usize).ok_or_else(wraps)?;
        Ok(Span { start, bytes, row, slice })
    }
    /// Within a buffer.
    ///
    /// # Errors
    /// As for `span`, and `INVALID_SIZE` where the buffer ends before.
    pub(super) fn in_buffer(self, buffer: &Mem, region: [usize; 3]) -> Result<Span> {
        buffer.check_buffer()?;
        let span = self.span(region)?;
        buffer.check_range(span.start, span.bytes)?;
        Ok(span)
    }
    /// In host memory, or USM.
    ///
    /// # Errors
    /// As for `span`, and `INVALID_SIZE` where its allocation ends before.
    pub(super) fn on_host(self, base: UsmPtr, region: [usize; 3]) -> Result<Span> {
        let span = self.span(region)?;
        base.offset(span.start + span.bytes)?;
        check_range(base, span.start + span.bytes)?; // from where C says that the memory begins
        Ok(span)
    }
}
/// # Errors
/// `INVALID_SIZE` for what no memory can hold.
pub(super) fn extent(region: ur_rect_region_t) -> Result<[usize; 3]> {
    let number = |n: u64| usize::try_from(n).map_err(|_| ErrorCode::InvalidSize);
    Ok([number(region.width)?, number(region.height)?, number(region.depth)?])
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
    let (out, into) = (inside.in_buffer(&buffer, region)?, host.on_host(to, region)?);
    submit(queue, ur_command_t::MEM_BUFFER_READ_RECT, waits, report, |list| {
        let from = out.spot(base(&queue, &buffer)?);
        list.copy_region(into.spot(to.addr()), from, region.into())
    })
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
    let (into, out) = (inside.in_buffer(&buffer, region)?, host.on_host(from, region)?);
    submit(queue, ur_command_t::MEM_BUFFER_WRITE_RECT, waits, report, |list| {
        let to = into.spot(base(&queue, &buffer)?);
        list.copy_region(to, out.spot(from.addr()), region.into())
    })
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
    let (out, into) = (source.in_buffer(&from, region)?, target.in_buffer(&to, region)?);
    check_apart((&from, out), (&to, into), region)?;
    let report = Report::event(want_event);
    submit(queue, ur_command_t::MEM_BUFFER_COPY_RECT, waits, report, |list| {
        let from = out.spot(base(&queue, &from)?);
        list.copy_region(into.spot(base(&queue, &to)?), from, region.into())
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
/// Whether two boxes of one memory have a byte in common. Exact where their pitches agree; where
/// they do not, what lies between the first byte and the last counts as the box's.
fn share_bytes(one: Span, other: Span, [width, height, depth]: [usize; 3]) -> bool {
    let (low, high) = if one.start <= other.start { (one, other) } else { (other, one) };
    let apart = high.start - low.start;
    if apart >= low.bytes {
        return false;
    }
    if one.row != other.row || one.slice != other.slice {
        return true;
    }
    // A row of `high` begins k slices, i rows and some bytes behind one of `low`: they share bytes
    // if those are fewer than a row's. i is negative where it begins further left.
    let [apart, row, slice] = [apart, low.row, low.slice].map(|n| n as i128);
    let [width, height, depth] = [width, height, depth].map(|n| n as i128);
    let near = |n: i128, step: i128| [n.div_euclid(step), n.div_euclid(step) + 1];
    near(apart, slice).into_iter().any(|k| {
        let rest = apart - k * slice;
        let shares = |i: i128| i.abs() < height && (rest - i * row).abs() < width;
        k < depth && near(rest, row).into_iter().any(shares)
    })
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn place(at: [u64; 3], row: usize, slice: usize) -> Place {
        let [x, y, z] = at;
        Place::new(ur_rect_offset_t { x, y, z }, row, slice)
    }
    fn bytes(span: Span, [width, height, depth]: [usize; 3]) -> HashSet<usize> {
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
            let refused = place(at, row, slice).span(region).map_err(|error| error.code());
            assert_eq!(refused.map(|span| span.start), Err(ErrorCode::InvalidSize));
        }
    }
    #[test]
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
