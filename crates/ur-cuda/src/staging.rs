//! Copies between a device and host memory that the driver does not know (pageable memory), and from host
//! memory to host memory. For such a copy the driver would block the calling thread until the stream reaches
//! it. So if the stream is busy, the copy goes through a piece of pinned memory: a host function, in stream
//! order, copies between that and the pageable memory. Nothing here blocks. Memory that the device cannot
//! access is handled in `crossing.rs`.
use super::{
    DriverDevice, crossing,
    driver::{
        Dialect,
        layout::{Copy3d, CopyEnd},
    },
    native::{
        event::Pooled,
        memory::{Piece, Sort},
        staging::{Place, Rows, copy_rows, place_of},
        stream::Stream,
    },
    patience,
    work::is_done,
};
use std::{
    mem,
    sync::{Arc, Mutex, MutexGuard},
};
use ur_hal::{MemoryKind, Result};
use ur_lock::locked;

/// The sizes of pinned pieces in bytes.
const SIZES: [usize; 2] = [64 << 10, 4 << 20];
/// The largest number of pieces of each size. If all are in use, the driver makes the copy and may block.
const MOST: [usize; 2] = [256, 16];

/// The pinned pieces of this process.
#[derive(Debug)]
pub struct Pool<D: Dialect> {
    /// One for each size.
    shelves: Mutex<[Shelf<D>; 2]>,
    /// Those whose return the driver refused to enqueue.
    stranded: Mutex<Vec<Stranded<D>>>,
}
/// A piece, and an event behind the copy that uses it.
type Stranded<D> = (Arc<Lent<D>>, Pooled<D>);
/// The pieces of one size.
#[derive(Debug)]
struct Shelf<D: Dialect> {
    idle: Vec<Piece<D>>,
    made: usize,
}
impl<D: Dialect> Pool<D> {
    pub(super) const fn new() -> Self {
        let shelves = Mutex::new([const { Shelf { idle: Vec::new(), made: 0 } }; 2]);
        Self { shelves, stranded: Mutex::new(Vec::new()) }
    }
    fn shelves(&self) -> MutexGuard<'_, [Shelf<D>; 2]> {
        locked(&self.shelves)
    }
    /// Returns the stranded pieces whose copies are complete.
    fn recover(&self) {
        let is_over = |(_, mark): &mut (_, Pooled<D>)| is_done(mark.is_complete());
        let over: Vec<_> = locked(&self.stranded).extract_if(.., is_over).collect();
        drop(over); // outside the lock
    }
}
/// A piece in use by one copy. Its return to the pool calls no driver function, because the last reference
/// may be dropped in a host function.
#[derive(Debug)]
struct Lent<D: Dialect> {
    piece: Option<Piece<D>>,
    size: usize,
    /// Data that is larger than the piece, and passes through it in parts.
    waiting: Vec<u8>,
}
impl<D: Dialect> Lent<D> {
    /// Takes a piece for a copy of `bytes`; it may be smaller than that. `None` if all pieces are in use.
    fn take(device: &DriverDevice<D>, bytes: usize) -> Result<Option<Arc<Self>>> {
        let (pool, size) = (&D::statics().staging, usize::from(bytes > SIZES[0]));
        let lent =
            |piece| Ok(Some(Arc::new(Self { piece: Some(piece), size, waiting: Vec::new() })));
        let mut shelves = pool.shelves();
        if shelves[size].idle.is_empty() && shelves[size].made == MOST[size] {
            drop(shelves);
            pool.recover();
            shelves = pool.shelves();
        }
        if let Some(piece) = shelves[size].idle.pop() {
            return lent(piece);
        }
        if shelves[size].made == MOST[size] {
            return Ok(None);
        }
        shelves[size].made += 1;
        drop(shelves);
        let made = Piece::new(device, Sort::Host, SIZES[size]);
        lent(made.inspect_err(|_| pool.shelves()[size].made -= 1)?)
    }
    fn at(&self) -> u64 {
        self.piece.as_ref().expect("drop alone takes it").at()
    }
    fn bytes(&self) -> usize {
        SIZES[self.size]
    }
    /// Returns the piece when the stream has executed the copy. Also if a part of the copy failed: other
    /// parts may have been enqueued.
    fn go_back(
        self: Arc<Self>,
        device: &DriverDevice<D>,
        stream: &Stream<D>,
        copied: Result<()>,
    ) -> Result<bool> {
        let last = Arc::clone(&self);
        let goes = stream.host_fn(move || drop(last));
        if goes.is_err() {
            self.strand(device, stream);
        }
        copied.and(goes).map(|()| true)
    }
    /// Keeps the piece until an event says that enqueued commands use it no more; for ever if the driver has none.
    fn strand(self: Arc<Self>, device: &DriverDevice<D>, stream: &Stream<D>) {
        let mark = device.enter().and_then(|on| {
            let mark = device.events().take(&on, false)?;
            mark.record(stream).map(|()| mark)
        });
        match mark {
            Ok(mark) => locked(&D::statics().staging.stranded).push((self, mark)),
            Err(_) => mem::forget(self),
        }
    }
}
impl<D: Dialect> Drop for Lent<D> {
    fn drop(&mut self) {
        D::statics().staging.shelves()[self.size].idle.extend(self.piece.take());
    }
}

/// Which ends of a copy a host function must access.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unknown {
    To,
    From,
    Both,
}
/// `None` if the driver can make the copy without blocking. It blocks for pageable memory, and for copies
/// from host memory to host memory of any kind.
fn unknown(to: Place, from: Place) -> Option<Unknown> {
    match (to, from) {
        (Place::Device, Place::Pageable) => Some(Unknown::From),
        (Place::Pageable, Place::Device) => Some(Unknown::To),
        (Place::Device, _) | (_, Place::Device) => None,
        _ => Some(Unknown::Both),
    }
}
/// One end of a copy, as seen from a device.
enum End<D: Dialect> {
    /// Memory that the device can access.
    Within(Place),
    /// Memory of another device that the device cannot access.
    Beyond(&'static Arc<DriverDevice<D>>),
}
/// Classifies an end; `None` is an array. The driver is not queried for memory of this adapter on the same
/// device.
fn end_of<D: Dialect>(device: &Arc<DriverDevice<D>>, end: Option<u64>) -> Result<End<D>> {
    let Some(at) = end else { return Ok(End::Within(Place::Device)) };
    let place = match D::statics().memory.get().claims.find(at as usize).flatten() {
        Some((MemoryKind::Host, _)) => return Ok(End::Within(Place::Pinned)),
        Some((MemoryKind::Managed, _)) => return Ok(End::Within(Place::Device)),
        Some((_, home)) if home == device.number() => return Ok(End::Within(Place::Device)),
        Some(_) => Place::Device,
        None => place_of(&device.enter()?, at),
    };
    if place != Place::Device {
        return Ok(End::Within(place));
    }
    Ok(crossing::beyond(device, at)?.map_or(End::Within(place), End::Beyond))
}

/// The device whose memory is at `at`, if `device` cannot access it.
///
/// # Errors
/// Returns the driver's error.
pub(super) fn beyond<D: Dialect>(
    device: &Arc<DriverDevice<D>>,
    at: u64,
) -> Result<Option<&'static Arc<DriverDevice<D>>>> {
    match crossing::is_possible::<D>() {
        true => Ok(match end_of(device, Some(at))? {
            End::Beyond(home) => Some(home),
            End::Within(_) => None,
        }),
        false => Ok(None),
    }
}

/// Enqueues a copy of bytes, if the driver would block for it or cannot do it alone. Returns whether it did;
/// otherwise the caller should call the driver.
///
/// # Errors
/// Returns the driver's error.
pub(super) fn copy<D: Dialect>(
    device: &Arc<DriverDevice<D>>,
    stream: &Stream<D>,
    (to, from): (u64, u64),
    bytes: usize,
) -> Result<bool> {
    let end = |at| CopyEnd::memory(at, bytes, 1);
    copy_3d(device, stream, &Copy3d::new(end(to), end(from), [bytes, 1, 1]))
}
/// As [`copy`], for `height` rows of `width` bytes.
///
/// # Errors
/// Returns the driver's error.
pub(super) fn copy_2d<D: Dialect>(
    device: &Arc<DriverDevice<D>>,
    stream: &Stream<D>,
    (to, from): (Rows, Rows),
    (width, height): (usize, usize),
) -> Result<bool> {
    let end = |(at, pitch)| CopyEnd::memory(at, pitch, height);
    copy_3d(device, stream, &Copy3d::new(end(to), end(from), [width, height, 1]))
}
/// As [`copy`], for a box.
///
/// # Errors
/// Returns the driver's error.
pub(super) fn copy_3d<D: Dialect>(
    device: &Arc<DriverDevice<D>>,
    stream: &Stream<D>,
    what: &Copy3d,
) -> Result<bool> {
    let address = |end: &CopyEnd| (end.kind == CopyEnd::BY_ADDRESS).then_some(end.device);
    let ends = (address(&what.to), address(&what.from));
    let is_careful = stream.never_waits || stream.waits_before;
    if !is_careful && !crossing::is_possible::<D>() {
        return Ok(false);
    }
    let (to, from) = match (end_of(device, ends.0)?, end_of(device, ends.1)?) {
        (End::Within(to), End::Within(from)) => (to, from),
        (_, End::Beyond(home)) | (End::Beyond(home), _) => {
            return crossing::copy_3d(device, stream, what, home).map(|()| true);
        }
    };
    let Some(unknown) = unknown(to, from).filter(|_| is_careful) else {
        return Ok(false);
    };
    if stream.waits_before {
        patience::finish(stream, device)?;
        return Ok(false);
    }
    if stream.is_idle()? {
        return Ok(false);
    }
    if unknown == Unknown::Both {
        by_host(stream, what)?;
        return Ok(true);
    }
    let bytes = what.width * what.height * what.depth;
    let Some(lent) = Lent::take(device, bytes)? else { return Ok(false) };
    let outcome = parts(what, lent.bytes()).try_for_each(|part| match unknown {
        Unknown::From => upload(stream, &lent, &part),
        _ => download(stream, &lent, &part),
    });
    lent.go_back(device, stream, outcome)
}
/// Divides a copy into parts of at most `room` bytes, in order. A part lies in one slice.
fn parts(what: &Copy3d, room: usize) -> impl Iterator<Item = Copy3d> {
    let what = *what;
    let across = what.width.min(room);
    let rows = (room / across.max(1)).clamp(1, what.height.max(1));
    let xs = move || (0..what.width).step_by(across.max(1));
    let ys = move || (0..what.height).step_by(rows);
    let starts =
        (0..what.depth).flat_map(move |z| ys().flat_map(move |y| xs().map(move |x| (x, y, z))));
    starts.map(move |(x, y, z)| {
        let at = |end: CopyEnd| CopyEnd { x: end.x + x, y: end.y + y, z: end.z + z, ..end };
        let size = [across.min(what.width - x), rows.min(what.height - y), 1];
        Copy3d::new(at(what.to), at(what.from), size)
    })
}
/// The address and the pitch of the rows of a part in linear memory.
fn rows(end: &CopyEnd) -> Rows {
    (end.start(), end.pitch)
}
/// The same part with its memory ends given by start addresses instead of positions, and with a small pitch
/// for a single row: drivers limit the pitch.
fn folded(part: &Copy3d) -> Copy3d {
    let pitch = |end: CopyEnd| if part.height == 1 { part.width } else { end.pitch };
    let fold = |end: CopyEnd| match end.kind {
        CopyEnd::BY_ADDRESS => CopyEnd::memory(end.start(), pitch(end), part.height),
        _ => end,
    };
    Copy3d { from: fold(part.from), to: fold(part.to), ..*part }
}
fn upload<D: Dialect>(stream: &Stream<D>, lent: &Arc<Lent<D>>, part: &Copy3d) -> Result<()> {
    let (size, from, keep) = ((part.width, part.height), rows(&part.from), Arc::clone(lent));
    stream.host_fn(move || copy_rows((keep.at(), size.0), from, size))?;
    let piece = CopyEnd::memory(lent.at(), size.0, size.1);
    stream.copy_3d_now(&Copy3d { from: piece, ..folded(part) })
}
fn download<D: Dialect>(stream: &Stream<D>, lent: &Arc<Lent<D>>, part: &Copy3d) -> Result<()> {
    let (size, to, keep) = ((part.width, part.height), rows(&part.to), Arc::clone(lent));
    let piece = CopyEnd::memory(lent.at(), size.0, size.1);
    stream.copy_3d_now(&Copy3d { to: piece, ..folded(part) })?;
    stream.host_fn(move || copy_rows(to, (keep.at(), size.0), size))
}
/// Enqueues a copy of rows of `width` bytes from memory that the caller may change on return. Returns whether
/// it did; otherwise the caller should call the driver.
///
/// # Errors
/// Returns the driver's error.
pub(super) fn upload_copy_of<D: Dialect>(
    device: &Arc<DriverDevice<D>>,
    stream: &Stream<D>,
    to: Rows,
    bytes: &[u8],
    width: usize,
) -> Result<bool> {
    let size = (width, bytes.len() / width);
    let from = move |bytes: &[u8]| (bytes.as_ptr().expose_provenance() as u64, width);
    let end = |(at, pitch)| CopyEnd::memory(at, pitch, size.1);
    if let End::Within(Place::Pinned | Place::Pageable) = end_of(device, Some(to.0))? {
        let bytes = bytes.to_vec();
        stream.host_fn(move || copy_rows(to, from(&bytes), size))?;
        return Ok(true);
    }
    let Some(mut lent) = Lent::take(device, bytes.len())? else { return Ok(false) };
    let is_whole = bytes.len() <= lent.bytes();
    let source = match is_whole {
        true => {
            copy_rows((lent.at(), width), from(bytes), size);
            (lent.at(), width)
        }
        false => {
            let only = Arc::get_mut(&mut lent).expect("it was just taken");
            only.waiting = bytes.to_vec();
            from(&only.waiting)
        }
    };
    let what = Copy3d::new(end(to), end(source), [width, size.1, 1]);
    let copied = match is_whole {
        true => stream.copy_3d_now(&what),
        false => parts(&what, lent.bytes()).try_for_each(|part| upload(stream, &lent, &part)),
    };
    lent.go_back(device, stream, copied)
}
/// Copies from host memory to host memory in a host function.
fn by_host<D: Dialect>(stream: &Stream<D>, what: &Copy3d) -> Result<()> {
    let parts: Vec<_> = parts(what, usize::MAX).collect();
    stream.host_fn(move || {
        for part in &parts {
            copy_rows(rows(&part.to), rows(&part.from), (part.width, part.height));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tiles(width: usize, height: usize, depth: usize, room: usize) -> Vec<[usize; 5]> {
        let to = CopyEnd { x: 1, ..CopyEnd::default() };
        let what = Copy3d::new(to, CopyEnd::default(), [width, height, depth]);
        let tile = |p: Copy3d| [p.from.x, p.from.y, p.from.z, p.width, p.height];
        assert!(parts(&what, room).all(|p| p.to.x == p.from.x + 1 && p.width * p.height <= room));
        parts(&what, room).map(tile).collect()
    }

    #[test]
    fn a_box_is_taken_in_parts_that_fit() {
        assert_eq!(tiles(10, 1, 1, 4), [[0, 0, 0, 4, 1], [4, 0, 0, 4, 1], [8, 0, 0, 2, 1]]);
        assert_eq!(tiles(2, 5, 1, 4), [[0, 0, 0, 2, 2], [0, 2, 0, 2, 2], [0, 4, 0, 2, 1]]);
        assert_eq!(tiles(2, 1, 2, 100), [[0, 0, 0, 2, 1], [0, 0, 1, 2, 1]]);
        assert_eq!(tiles(0, 1, 1, 4), [[0; 5]; 0]);
    }
    #[test]
    fn rows_begin_where_pitches_and_offsets_say() {
        let end = CopyEnd { x: 1, y: 2, z: 4, ..CopyEnd::memory(1000, 10, 3) };
        assert_eq!(rows(&end), (1000 + 14 * 10 + 1, 10));
    }
}
