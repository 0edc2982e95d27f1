//! Commands on buffers: checks the ranges and boxes that the caller passes, and resolves buffers to addresses.
use super::ready::{Ready, Room, TakesCommands, Usage, Used, check_same_context};
use crate::{
    memory::ranges::{check_range, pattern_of},
    over_driver::mem::{BufferBackend, Mapping, Mem},
    program::Placed,
};
use std::ops;
use ur_adapter::{
    api::Objects,
    command::{CompletionRequest, Enqueued},
    error::{Error, ErrorCode, Result},
    memory::{HostBytes, UsmPtr},
    object::{Borrowed, Owned},
};
use ur_hal::{Access, Address, BoxCopy, BoxPlace, BoxSpan, Command, Range, share_bytes};
use ur_sys::*;

pub(super) fn overlapping<T>() -> Result<T> {
    let why = "source and target share bytes: copy by way of another buffer";
    Error::refuse(ErrorCode::OverlappingRegions, why)
}
/// The host's side of a transfer: where the host memory is, a parameter of the transfer, and the direction: `true`
/// writes host memory into the buffer, `false` reads the buffer into host memory.
pub(super) type Host<P> = (Address, P, bool);
/// The access that a transfer in this direction needs to host memory.
pub(super) fn of_host(writes: bool) -> Access {
    if writes { Access::Read } else { Access::ReadWrite }
}
/// A box in the terms of UR's entries: its origin and its pitches in bytes.
pub(super) fn place(origin: ur_rect_offset_t, row: usize, slice: usize) -> BoxPlace {
    BoxPlace::new([origin.x, origin.y, origin.z], row, slice)
}
fn extent(region: ur_rect_region_t) -> Result<[usize; 3]> {
    let number = |n: u64| usize::try_from(n).map_err(|_| ErrorCode::InvalidSize);
    Ok([number(region.width)?, number(region.height)?, number(region.depth)?])
}
/// The bytes that a box covers; checks that all of them are inside the buffer.
fn span<D: BufferBackend>(buffer: &Mem<D>, place: BoxPlace, region: [usize; 3]) -> Result<BoxSpan> {
    let span = place.span(region)?;
    buffer.check_range(span.start, span.bytes)?;
    Ok(span)
}
/// A memory object and the bytes of it that a command uses.
type Part<'a, D> = (Borrowed<'a, Mem<D>>, ops::Range<usize>);
fn bytes_of(span: BoxSpan) -> ops::Range<usize> {
    span.start..span.start + span.bytes
}

impl<'a, D: TakesCommands> Ready<'a, D> {
    pub(super) fn with(
        mut self,
        one: Option<Part<'a, D>>,
        written: Option<(Part<'a, D>, Usage)>,
    ) -> Self {
        let used = |((buffer, bytes), usage)| Used::Buffer { buffer, bytes, usage };
        self.uses = [one.map(|part| used((part, Usage::Reads))), written.map(used)];
        self
    }
    /// `written`: how the command writes the bytes, if it does.
    pub(super) fn beside(self, part: Part<'a, D>, written: Option<Usage>) -> Self {
        match written {
            Some(usage) => self.with(None, Some((part, usage))),
            None => self.with(Some(part), None),
        }
    }
    /// A copy between a buffer and the host.
    pub(super) fn transfer(
        device: &Owned<<D as Objects>::Device>,
        buffer: Borrowed<'a, Mem<D>>,
        (offset, bytes): (usize, usize),
        (host, name, writes): Host<ur_command_t>,
    ) -> Result<Self> {
        buffer.check_range(offset, bytes)?;
        check_range::<D::Known>(host, bytes, of_host(writes))?;
        if writes {
            buffer.check_write::<D::Known>(offset, bytes)?;
        }
        let inside = buffer.at(device)?.offset(offset)?;
        let (to, from) = if writes { (inside, host) } else { (host, inside) };
        let part = (buffer, offset..offset + bytes);
        let written = writes.then_some(Usage::Overwrites);
        Ok(Self::new(name, Command::Copy { to, from, bytes }).beside(part, written))
    }
    /// Like [`transfer`](Self::transfer), for a box.
    pub(super) fn transfer_box(
        device: &Owned<<D as Objects>::Device>,
        (buffer, inside): (Borrowed<'a, Mem<D>>, BoxPlace),
        region: ur_rect_region_t,
        (host, outside, writes): Host<BoxPlace>,
        room: &'a Room<'a, D>,
    ) -> Result<Self> {
        let region = extent(region)?;
        let (inside, outside) = (span(&buffer, inside, region)?, outside.span(region)?);
        // `host` is where the origin is measured from, so the range begins there and not at the box.
        check_range::<D::Known>(host, outside.start + outside.bytes, of_host(writes))?;
        if writes {
            buffer.check_write::<D::Known>(inside.start, inside.bytes)?;
        }
        let part = (buffer, bytes_of(inside));
        let inside = (buffer.at(device)?, inside);
        let (to, from, name) = match writes {
            true => (inside, (host, outside), ur_command_t::MEM_BUFFER_WRITE_RECT),
            false => ((host, outside), inside, ur_command_t::MEM_BUFFER_READ_RECT),
        };
        let copy = room.bytes.get_or_init(|| BoxCopy { to, from, region });
        Ok(Self::new(name, Command::Copy3d(copy)).beside(part, writes.then_some(Usage::Changes)))
    }
    /// A copy from buffer to buffer.
    pub(super) fn copy(
        device: &Owned<<D as Objects>::Device>,
        (from, out): (Borrowed<'a, Mem<D>>, usize),
        (to, into): (Borrowed<'a, Mem<D>>, usize),
        bytes: usize,
    ) -> Result<Self> {
        from.check_range(out, bytes)?;
        to.check_range(into, bytes)?;
        let (source, target) = (from.identity(), to.identity());
        if source.0 == target.0 && (source.1 + out).abs_diff(target.1 + into) < bytes {
            return overlapping();
        }
        to.check_write::<D::Known>(into, bytes)?;
        let command = Command::Copy {
            from: from.at(device)?.offset(out)?,
            to: to.at(device)?.offset(into)?,
            bytes,
        };
        let written = ((to, into..into + bytes), Usage::Overwrites);
        let ready = Self::new(ur_command_t::MEM_BUFFER_COPY, command);
        Ok(ready.with(Some((from, out..out + bytes)), Some(written)))
    }
    /// Like [`copy`](Self::copy), for a box.
    pub(super) fn copy_box(
        device: &Owned<<D as Objects>::Device>,
        (from, source): (Borrowed<'a, Mem<D>>, BoxPlace),
        (to, target): (Borrowed<'a, Mem<D>>, BoxPlace),
        region: ur_rect_region_t,
        room: &'a Room<'a, D>,
    ) -> Result<Self> {
        let region = extent(region)?;
        let (out, into) = (span(&from, source, region)?, span(&to, target, region)?);
        let within = |origin: (usize, usize), span: BoxSpan| BoxSpan {
            start: span.start + origin.1,
            ..span
        };
        let (source, target) = (from.identity(), to.identity());
        if source.0 == target.0 && share_bytes(within(source, out), within(target, into), region) {
            return overlapping();
        }
        to.check_write::<D::Known>(into.start, into.bytes)?;
        let ends = (from.at(device)?, to.at(device)?);
        let copy =
            room.bytes.get_or_init(|| BoxCopy { to: (ends.1, into), from: (ends.0, out), region });
        let ready = Self::new(ur_command_t::MEM_BUFFER_COPY_RECT, Command::Copy3d(copy));
        let written = ((to, bytes_of(into)), Usage::Changes);
        Ok(ready.with(Some((from, bytes_of(out))), Some(written)))
    }
    /// Fills a range of a buffer.
    pub(super) fn fill(
        device: &Owned<<D as Objects>::Device>,
        buffer: Borrowed<'a, Mem<D>>,
        pattern: HostBytes<'a>,
        (offset, bytes): (usize, usize),
    ) -> Result<Self> {
        buffer.check_range(offset, bytes)?;
        if !pattern.len().is_power_of_two() {
            let why =
                format!("a pattern of {} bytes: the length must be a power of two", pattern.len());
            return Error::refuse(ErrorCode::InvalidSize, why);
        }
        let pattern = pattern_of(pattern, bytes)?;
        buffer.check_write::<D::Known>(offset, bytes)?;
        let to = Range::new(buffer.at(device)?.offset(offset)?, bytes)?;
        let ready = Self::new(ur_command_t::MEM_BUFFER_FILL, Command::Fill { to, pattern });
        Ok(ready.beside((buffer, offset..offset + bytes), Some(Usage::Overwrites)))
    }
}

/// `urEnqueueMemBufferMap`: enqueues a copy of the buffer's bytes to where the host accesses them. It is only a barrier
/// if the bytes are there already, or if the caller passes `WRITE_INVALIDATE_REGION`.
///
/// # Errors
/// As `urEnqueueMemBufferMap` documents them.
pub(super) fn map<D: TakesCommands>(
    queue: Borrowed<'_, D::Queue>,
    buffer: Borrowed<'_, Mem<D>>,
    flags: ur_map_flags_t,
    (offset, size): (usize, usize),
    events: &[Borrowed<'_, D::Event>],
    report: CompletionRequest,
) -> Result<(Option<Owned<D::Event>>, UsmPtr)> {
    use ur_map_flags_t as F;
    if flags.contains(F::WRITE_INVALIDATE_REGION) && flags.intersects(F::READ | F::WRITE) {
        return Error::refuse(
            ErrorCode::InvalidValue,
            "WRITE_INVALIDATE_REGION discards the contents: combine it with neither READ nor WRITE",
        );
    }
    check_same_context(buffer, queue.place().0)?;
    let mapping = buffer.mapping(flags, offset, size)?;
    let (name, at) = (ur_command_t::MEM_BUFFER_MAP, mapping.at);
    let brings = !flags.contains(F::WRITE_INVALIDATE_REGION);
    let made = bring(queue, buffer, (&mapping, brings), (name, false), events, report)?;
    buffer.map(mapping)?;
    Ok((made, at))
}
/// `urEnqueueMemUnmap`: enqueues a copy that writes back what the caller may have written.
///
/// # Errors
/// As `urEnqueueMemUnmap` documents them.
pub(super) fn unmap<D: TakesCommands>(
    queue: Borrowed<'_, D::Queue>,
    mem: Borrowed<'_, Mem<D>>,
    at: UsmPtr,
    events: &[Borrowed<'_, D::Event>],
    report: CompletionRequest,
) -> Enqueued<D> {
    use ur_map_flags_t as F;
    check_same_context(mem, queue.place().0)?;
    let mapping = mem.unmap(at)?;
    let name = ur_command_t::MEM_UNMAP;
    let brings = mapping.flags.intersects(F::WRITE | F::WRITE_INVALIDATE_REGION);
    let made = bring(queue, mem, (&mapping, brings), (name, true), events, report);
    if made.is_err() {
        mem.map(mapping)?; // not enqueued: it stays mapped
    }
    made
}
/// Copies the mapped range from the buffer, or to it if `writes`. Enqueues only a barrier if not `brings`, or if the
/// mapped address is the buffer's own memory.
fn bring<D: TakesCommands>(
    queue: Borrowed<'_, D::Queue>,
    buffer: Borrowed<'_, Mem<D>>,
    (mapping, brings): (&Mapping<D>, bool),
    (name, writes): (ur_command_t, bool),
    events: &[Borrowed<'_, D::Event>],
    report: CompletionRequest,
) -> Enqueued<D> {
    let Mapping { at, offset, size, is_own, .. } = *mapping;
    if !is_own && D::is_for_graph(queue, events)? {
        return Error::refuse(
            ErrorCode::GraphCaptureUnsupported,
            "a graph may run again when what it maps is mapped no longer: leave the mapping out of the capture, or read or \
             write the buffer",
        );
    }
    let ready = match brings && !is_own {
        true => {
            let host = (at.into(), name, writes);
            Ready::transfer(queue.place().1, buffer, (offset, size), host)?
        }
        false => Ready::barrier(name, ur_hal::Order::Free),
    };
    D::submit(queue, &ready, events, report)
}
