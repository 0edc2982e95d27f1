//! Copies: checked when they are submitted and again when their turn comes.
#![expect(unsafe_code, reason = "exports symbols of the driver")]
use crate::{
    array::{self, Array},
    code::{Answer, INVALID_VALUE},
    context,
    layout::{Copy2d, Copy3d, Side2d, Side3d},
    ranges::{self, Who},
    raw::{self, get},
    space, stream,
};
use std::sync::Arc;

/// How much is copied before others may change the table.
const PIECE: u64 = 4 << 20;

/// Pageable memory of the host is read when the call is made if it is no more than this; else, and if
/// such memory is written, the call lasts until the stream has come to it: as real drivers do.
const STAGED: u64 = 64 << 10;

fn is_pageable(at: u64) -> bool {
    !space::is_device(at) && ranges::table().find(at).is_none()
}
/// Both ranges, if that device may copy between them.
fn check(to: u64, from: u64, bytes: u64, device: i32) -> Answer {
    let table = ranges::table();
    table.check(from, bytes, device, Who::Copy, false, false)?;
    table.check(to, bytes, device, Who::Copy, true, false)
}
fn copy(to: u64, from: u64, bytes: u64, device: i32) -> Answer {
    // Downwards where the end of the source lies in the target.
    let pieces = bytes.div_ceil(PIECE);
    for i in 0..pieces {
        let i = if from < to { pieces - 1 - i } else { i };
        let (at, long) = (i * PIECE, PIECE.min(bytes - i * PIECE));
        let table = ranges::table();
        let source = table.reach(from + at, long, device, Who::Copy, false)?;
        let target = table.reach(to + at, long, device, Who::Copy, true)?;
        raw::copy(target, source, long as usize);
    }
    Ok(())
}
/// One end of a copy in three dimensions.
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
    /// Where a row begins, and what must stay while it is used.
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
fn copy_3d(what: &Copy3d, stream: u64) -> Answer {
    let stream = stream::of(stream)?;
    let size = [what.width as u64, what.height as u64, what.depth as u64];
    let from = End::of(&what.from, size[0], size[1])?;
    let to = End::of(&what.to, size[0], size[1])?;
    if size.contains(&0) {
        return Ok(());
    }
    let (device, lasts) = (stream.device, from.is_pageable() || to.is_pageable());
    from.check(size, device, false, false)?;
    to.check(size, device, true, false)?;
    let ticket = stream.submit(move || {
        from.check(size, device, false, true).map_err(|_| crate::code::ILLEGAL_ADDRESS)?;
        to.check(size, device, true, true).map_err(|_| crate::code::ILLEGAL_ADDRESS)?;
        let mut rows = (0..size[2]).flat_map(|z| (0..size[1]).map(move |y| (y, z)));
        rows.try_for_each(|(y, z)| copy(to.row(y, z), from.row(y, z), size[0], device))
    })?;
    if lasts {
        ticket.wait();
    }
    Ok(())
}

entries! {
    fn cuMemcpyAsync(to: u64, from: u64, bytes: usize, stream: u64) {
        let stream = stream::of(stream)?;
        let (bytes, device) = (bytes as u64, stream.device);
        if bytes == 0 {
            return Ok(());
        }
        if to == 0 || from == 0 {
            return Err(INVALID_VALUE);
        }
        check(to, from, bytes, device)?;
        if is_pageable(from) && !is_pageable(to) && bytes <= STAGED {
            let mut staged = vec![0_u8; bytes as usize];
            raw::copy(staged.as_mut_ptr(), space::reach(from), staged.len());
            stream.submit(move || copy(to, staged.as_ptr().expose_provenance() as u64, bytes, device))?;
            return Ok(());
        }
        let ticket = stream.submit(move || copy(to, from, bytes, device))?;
        if is_pageable(from) || is_pageable(to) {
            ticket.wait();
        }
        Ok(())
    }
    fn cuMemcpy3DAsync_v2(what: *const Copy3d, stream: u64) {
        copy_3d(&get(what)?, stream)
    }
    fn cuMemcpy3DPeerAsync(what: *const Copy3d, stream: u64) {
        let what = get(what)?;
        // The contexts of both ends are where the other form has reserved words.
        context::of(what.from.reserved as u64)?;
        context::of(what.to.reserved as u64)?;
        copy_3d(&what, stream)
    }
    fn cuMemcpy2DAsync_v2(what: *const Copy2d, stream: u64) {
        let flat = get(what)?;
        let side = |s: Side2d| {
            let (z, lod, reserved, height) = (0, 0, 0, 0);
            let Side2d { x, y, kind, host, device, array, pitch } = s;
            Side3d { x, y, z, lod, kind, host, device, array, reserved, pitch, height }
        };
        let (width, height) = (flat.width, flat.height);
        copy_3d(&Copy3d { from: side(flat.from), to: side(flat.to), width, height, depth: 1 }, stream)
    }
}
