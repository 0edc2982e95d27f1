//! Copies, which are checked when they are submitted and again when they run.
#![expect(unsafe_code, reason = "exports symbols of the driver")]
use crate::{
    array::{self, Array},
    capture,
    code::{Answer, INVALID_VALUE},
    context,
    layout::{Copy2d, Copy3d, Side2d, Side3d},
    ranges::{self, Who},
    raw::{self, get},
    space,
    stream::{self, Stream},
};
use std::sync::Arc;

/// How much is copied before the lock on the table of ranges is released.
const PIECE: u64 = 4 << 20;

/// Pageable host memory up to this size is read during the call. For larger reads, and for all writes to
/// pageable memory, the call blocks until the stream has executed the copy, as with real drivers.
const STAGED: u64 = 64 << 10;

fn is_pageable(at: u64) -> bool {
    !space::is_device(at) && ranges::table().find(at).is_none()
}
/// Checks that the device may access both ranges.
fn check(to: u64, from: u64, bytes: u64, by: By) -> Answer {
    let table = ranges::table();
    table.check(from, bytes, by.from, Who::Copy, false, false)?;
    table.check(to, bytes, by.to, Who::Copy, true, false)
}
/// The devices through which the two ends of a copy are accessed: the stream's own, unless the caller names
/// contexts.
#[derive(Clone, Copy)]
struct By {
    to: i32,
    from: i32,
}
impl By {
    fn one(device: i32) -> Self {
        Self { to: device, from: device }
    }
    /// For a copy that names the contexts of both ends, on a stream of device `own`. A stream of a third
    /// device is refused, because its behaviour is not documented.
    fn named(to: u64, from: u64, own: i32) -> Answer<Self> {
        let (to, from) = (context::of(to)?.device, context::of(from)?.device);
        if own == to || own == from { Ok(Self { to, from }) } else { Err(INVALID_VALUE) }
    }
}
fn copy(to: u64, from: u64, bytes: u64, by: By) -> Answer {
    // From the end downwards if the target begins behind the source, as the ranges may overlap.
    let pieces = bytes.div_ceil(PIECE);
    for i in 0..pieces {
        let i = if from < to { pieces - 1 - i } else { i };
        let (at, long) = (i * PIECE, PIECE.min(bytes - i * PIECE));
        let table = ranges::table();
        let source = table.reach(from + at, long, by.from, Who::Copy, false)?;
        let target = table.reach(to + at, long, by.to, Who::Copy, true)?;
        raw::copy(target, source, long as usize);
    }
    Ok(())
}
/// One end of a 3D copy.
enum End {
    Line { at: u64, pitch: u64, slice: u64 },
    Array { array: Arc<Array>, at: u64 },
}
impl End {
    fn of(side: &Side3d, width: u64, height: u64) -> Answer<Self> {
        let (x, y, z) = (side.x as u64, side.y as u64, side.z as u64);
        let base = match side.kind {
            1 => side.host,
            2 | 4 => side.device,
            3 => {
                let array = array::of(side.array)?;
                array.fits([x, y, z])?;
                let at = array.offset([x, y, z]);
                return Ok(Self::Array { array, at });
            }
            _ => return Err(INVALID_VALUE),
        };
        let pitch = if side.pitch == 0 { x + width } else { side.pitch as u64 };
        let rows = if side.height == 0 { y + height } else { side.height as u64 };
        if base == 0 || pitch < x + width || rows < y + height {
            return Err(INVALID_VALUE);
        }
        let slice = pitch * rows;
        Ok(Self::Line { at: base + x + y * pitch + z * slice, pitch, slice })
    }
    fn is_pageable(&self) -> bool {
        matches!(self, Self::Line { at, .. } if is_pageable(*at))
    }
    /// Returns the address of a row.
    fn row(&self, y: u64, z: u64) -> u64 {
        match self {
            Self::Line { at, pitch, slice } => at + y * pitch + z * slice,
            Self::Array { array, at } => {
                array.address() + at + y * array.pitch() + z * array.slice()
            }
        }
    }
    fn check(&self, size: [u64; 3], device: i32, writes: bool, now: bool) -> Answer {
        match self {
            Self::Line { .. } => {
                let table = ranges::table();
                let mut rows = (0..size[2]).flat_map(|z| (0..size[1]).map(move |y| (y, z)));
                rows.try_for_each(|(y, z)| {
                    table.check(self.row(y, z), size[0], device, Who::Copy, writes, now)
                })
            }
            Self::Array { array, at } => array.holds(*at, size),
        }
    }
}
fn copy_3d(what: &Copy3d, stream: &Arc<Stream>, by: By) -> Answer {
    let size = [what.width as u64, what.height as u64, what.depth as u64];
    let from = End::of(&what.from, size[0], size[1])?;
    let to = End::of(&what.to, size[0], size[1])?;
    if size.contains(&0) {
        return Ok(());
    }
    let lasts = (from.is_pageable() || to.is_pageable()) && !capture::is_captured(stream.id);
    from.check(size, by.from, false, false)?;
    to.check(size, by.to, true, false)?;
    let ticket = stream.submit(move || {
        from.check(size, by.from, false, true).map_err(|_| crate::code::ILLEGAL_ADDRESS)?;
        to.check(size, by.to, true, true).map_err(|_| crate::code::ILLEGAL_ADDRESS)?;
        let mut rows = (0..size[2]).flat_map(|z| (0..size[1]).map(move |y| (y, z)));
        rows.try_for_each(|(y, z)| copy(to.row(y, z), from.row(y, z), size[0], by))
    })?;
    if lasts {
        ticket.spin();
    }
    Ok(())
}

entries! {
    fn cuMemcpyAsync(to: u64, from: u64, bytes: usize, stream: u64) {
        let stream = stream::of(stream)?;
        let (bytes, by) = (bytes as u64, By::one(stream.device));
        if bytes == 0 {
            return Ok(());
        }
        if to == 0 || from == 0 {
            return Err(INVALID_VALUE);
        }
        check(to, from, bytes, by)?;
        // A graph accesses the memory each time that it runs.
        let is_captured = capture::is_captured(stream.id);
        if is_pageable(from) && !is_pageable(to) && bytes <= STAGED && !is_captured {
            let mut staged = vec![0_u8; bytes as usize];
            raw::copy(staged.as_mut_ptr(), space::reach(from), staged.len());
            stream.submit(move || copy(to, staged.as_ptr().expose_provenance() as u64, bytes, by))?;
            return Ok(());
        }
        let ticket = stream.submit(move || copy(to, from, bytes, by))?;
        if (is_pageable(from) || is_pageable(to)) && !is_captured {
            ticket.spin();
        }
        Ok(())
    }
    fn cuMemcpyPeerAsync(to: u64, to_context: u64, from: u64, from_context: u64, bytes: usize, stream: u64) {
        let (stream, bytes) = (stream::of(stream)?, bytes as u64);
        let by = By::named(to_context, from_context, stream.device)?;
        if bytes == 0 {
            return Ok(());
        }
        if !space::is_device(to) || !space::is_device(from) {
            return Err(INVALID_VALUE);
        }
        check(to, from, bytes, by)?;
        stream.submit(move || copy(to, from, bytes, by))?;
        Ok(())
    }
    fn cuMemcpy3DAsync_v2(what: *const Copy3d, stream: u64) {
        let stream = stream::of(stream)?;
        copy_3d(&get(what)?, &stream, By::one(stream.device))
    }
    fn cuMemcpy3DPeerAsync(what: *const Copy3d, stream: u64) {
        let (what, stream) = (get(what)?, stream::of(stream)?);
        // The contexts of both ends are in the words that the other structure has reserved.
        let by = By::named(what.to.reserved as u64, what.from.reserved as u64, stream.device)?;
        let is_a_devices = |side: &Side3d| side.kind == 3 || space::is_device(side.device);
        if !is_a_devices(&what.to) || !is_a_devices(&what.from) {
            return Err(INVALID_VALUE);
        }
        copy_3d(&what, &stream, by)
    }
    fn cuMemcpy2DAsync_v2(what: *const Copy2d, stream: u64) {
        let flat = get(what)?;
        let side = |s: Side2d| {
            let (z, lod, reserved, height) = (0, 0, 0, 0);
            let Side2d { x, y, kind, host, device, array, pitch } = s;
            Side3d { x, y, z, lod, kind, host, device, array, reserved, pitch, height }
        };
        let (width, height) = (flat.width, flat.height);
        let stream = stream::of(stream)?;
        let what = Copy3d { from: side(flat.from), to: side(flat.to), width, height, depth: 1 };
        copy_3d(&what, &stream, By::one(stream.device))
    }
}
