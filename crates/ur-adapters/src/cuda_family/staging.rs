//! Copies between a device and memory of C's that the driver does not know, and from host memory to
//! host memory. The driver would have the calling thread wait until the stream gets to such a copy; so, where the stream has something else
//! to do first, they go through a pinned piece, and a host function copies between that and C's
//! memory, in the stream's order. Nothing here waits.
use super::{
    Device,
    allocation::{self, Usm},
    driver::{Dialect, layout::Copy3d},
    native::{
        memory::{Piece, Sort},
        staging::{Place, Rows, copy_rows, place_of},
        stream::Stream,
    },
};
use std::{
    mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use ur_adapter::{error::Result, memory::UsmPtr};

/// The sizes of pieces.
const SIZES: [usize; 2] = [64 << 10, 4 << 20];
/// How many pieces of each size there are at most; then the driver does it in its own way.
const MOST: [usize; 2] = [256, 16];
/// `CU_MEMORYTYPE_UNIFIED`: an end of a copy that is told by its address.
const BY_ADDRESS: i32 = 4;

/// The pieces of this process.
#[derive(Debug)]
pub struct Pool<D: Dialect>(Mutex<[Shelf<D>; 2]>);
/// Those of one size.
#[derive(Debug)]
struct Shelf<D: Dialect> {
    idle: Vec<Piece<D>>,
    made: usize,
}
impl<D: Dialect> Pool<D> {
    pub(super) const fn new() -> Self {
        Self(Mutex::new([const { Shelf { idle: Vec::new(), made: 0 } }; 2]))
    }
    fn shelves(&self) -> MutexGuard<'_, [Shelf<D>; 2]> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
/// A piece that one copy has for itself; it goes back without a call of the driver's, for a host
/// function may be the last to have it.
struct Lent<D: Dialect> {
    piece: Option<Piece<D>>,
    size: usize,
}
impl<D: Dialect> Lent<D> {
    /// One for `bytes`, which may be less than all of them; `None` if there are enough in use.
    fn take(device: &Device<D>, bytes: usize) -> Result<Option<Arc<Self>>> {
        let (pool, size) = (&D::statics().staging, usize::from(bytes > SIZES[0]));
        let lent = |piece| Ok(Some(Arc::new(Self { piece: Some(piece), size })));
        let mut shelves = pool.shelves();
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
}
impl<D: Dialect> Drop for Lent<D> {
    fn drop(&mut self) {
        D::statics().staging.shelves()[self.size].idle.extend(self.piece.take());
    }
}

/// Which ends of a copy host functions have to see to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unknown {
    To,
    From,
    Both,
}
/// `None`: the driver can do it without waiting. It waits for ends that it does not know, and for
/// copies from host memory to host memory, known or not.
///
/// # Errors
/// The driver's own.
fn unknown<D: Dialect>(
    device: &Device<D>,
    to: Option<u64>,
    from: Option<u64>,
) -> Result<Option<Unknown>> {
    let (to, from) = (place(device, to)?, place(device, from)?);
    Ok(match (to, from) {
        (Place::Device, Place::Pageable) => Some(Unknown::From),
        (Place::Pageable, Place::Device) => Some(Unknown::To),
        (Place::Device, _) | (_, Place::Device) => None,
        _ => Some(Unknown::Both),
    })
}
/// What is at one end; `None` is an array. Of our own memory nobody is asked.
fn place<D: Dialect>(device: &Device<D>, end: Option<u64>) -> Result<Place> {
    let Some(at) = end else { return Ok(Place::Device) };
    let ours = UsmPtr::from_addr(at as usize).and_then(allocation::find::<D>);
    Ok(match ours.map(|found| found.usm()) {
        Some(Usm::Host) => Place::Pinned,
        Some(Usm::Device | Usm::Shared) => Place::Device,
        None => place_of(&device.enter()?, at),
    })
}

/// Copies bytes behind what `stream` has to do yet. Whether it did: if not, the driver can do it.
///
/// # Errors
/// The driver's own.
pub(super) fn copy<D: Dialect>(
    device: &Device<D>,
    stream: &Stream<D>,
    (to, from): (u64, u64),
    bytes: usize,
) -> Result<bool> {
    let by = |at| End { address: at, pitch: bytes, rows: 1, x: 0, y: 0, z: 0 };
    let what = Copy3d { width: bytes, height: 1, depth: 1, ..between(by(to), by(from)) };
    copy_3d(device, stream, &what)
}
/// One end in memory.
struct End {
    address: u64,
    pitch: usize,
    rows: usize,
    x: usize,
    y: usize,
    z: usize,
}
fn between(to: End, from: End) -> Copy3d {
    Copy3d {
        src_type: BY_ADDRESS,
        src_device: from.address,
        src_pitch: from.pitch,
        src_height: from.rows,
        src_x: from.x,
        src_y: from.y,
        src_z: from.z,
        dst_type: BY_ADDRESS,
        dst_device: to.address,
        dst_pitch: to.pitch,
        dst_height: to.rows,
        dst_x: to.x,
        dst_y: to.y,
        dst_z: to.z,
        ..Copy3d::default()
    }
}
/// The same for rows.
///
/// # Errors
/// The driver's own.
pub(super) fn copy_2d<D: Dialect>(
    device: &Device<D>,
    stream: &Stream<D>,
    (to, from): (Rows, Rows),
    (width, height): (usize, usize),
) -> Result<bool> {
    let by = |(address, pitch)| End { address, pitch, rows: height, x: 0, y: 0, z: 0 };
    copy_3d(device, stream, &Copy3d { width, height, depth: 1, ..between(by(to), by(from)) })
}
/// The same for a box.
///
/// # Errors
/// The driver's own.
pub(super) fn copy_3d<D: Dialect>(
    device: &Device<D>,
    stream: &Stream<D>,
    what: &Copy3d,
) -> Result<bool> {
    let address = |sort, at| (sort == BY_ADDRESS).then_some(at);
    let ends = (address(what.dst_type, what.dst_device), address(what.src_type, what.src_device));
    let Some(unknown) = unknown(device, ends.0, ends.1)? else { return Ok(false) };
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
    let last = Arc::clone(&lent);
    let outcome = outcome.and_then(|()| stream.host_fn(move || drop(last)));
    if outcome.is_err() {
        mem::forget(lent); // what is in the stream may use it yet
    }
    outcome.map(|()| true)
}
/// What fits into `room` at once, in order.
fn parts(what: &Copy3d, room: usize) -> impl Iterator<Item = Copy3d> {
    let what = *what;
    let across = what.width.min(room);
    let rows = (room / across.max(1)).clamp(1, what.height.max(1));
    let xs = move || (0..what.width).step_by(across.max(1));
    let ys = move || (0..what.height).step_by(rows);
    let starts =
        (0..what.depth).flat_map(move |z| ys().flat_map(move |y| xs().map(move |x| (x, y, z))));
    starts.map(move |(x, y, z)| {
        let mut part = what;
        (part.src_x, part.src_y, part.src_z) = (what.src_x + x, what.src_y + y, what.src_z + z);
        (part.dst_x, part.dst_y, part.dst_z) = (what.dst_x + x, what.dst_y + y, what.dst_z + z);
        part.width = across.min(what.width - x);
        (part.height, part.depth) = (rows.min(what.height - y), 1);
        part
    })
}
/// Where the rows of a part begin in memory.
fn source(part: &Copy3d) -> Rows {
    let row = part.src_z * part.src_height + part.src_y;
    (part.src_device + (row * part.src_pitch + part.src_x) as u64, part.src_pitch)
}
fn target(part: &Copy3d) -> Rows {
    let row = part.dst_z * part.dst_height + part.dst_y;
    (part.dst_device + (row * part.dst_pitch + part.dst_x) as u64, part.dst_pitch)
}
/// With its ends in memory beginning where they begin: pitches of long rows are more than drivers take.
fn folded(part: &Copy3d) -> Copy3d {
    let mut folded = *part;
    let pitch = |pitch| if part.height == 1 { part.width } else { pitch };
    if part.src_type == BY_ADDRESS {
        (folded.src_device, folded.src_pitch) = (source(part).0, pitch(part.src_pitch));
        (folded.src_x, folded.src_y, folded.src_z, folded.src_height) = (0, 0, 0, part.height);
    }
    if part.dst_type == BY_ADDRESS {
        (folded.dst_device, folded.dst_pitch) = (target(part).0, pitch(part.dst_pitch));
        (folded.dst_x, folded.dst_y, folded.dst_z, folded.dst_height) = (0, 0, 0, part.height);
    }
    folded
}
fn upload<D: Dialect>(stream: &Stream<D>, lent: &Arc<Lent<D>>, part: &Copy3d) -> Result<()> {
    let (size, from, keep) = ((part.width, part.height), source(part), Arc::clone(lent));
    stream.host_fn(move || copy_rows((keep.at(), size.0), from, size))?;
    let mut rest = folded(part);
    (rest.src_device, rest.src_pitch) = (lent.at(), size.0);
    stream.copy_3d_now(&rest)
}
fn download<D: Dialect>(stream: &Stream<D>, lent: &Arc<Lent<D>>, part: &Copy3d) -> Result<()> {
    let (size, to, keep) = ((part.width, part.height), target(part), Arc::clone(lent));
    let mut rest = folded(part);
    (rest.dst_device, rest.dst_pitch) = (lent.at(), size.0);
    stream.copy_3d_now(&rest)?;
    stream.host_fn(move || copy_rows(to, (keep.at(), size.0), size))
}
/// Copies bytes that the caller does not keep. Whether it did.
///
/// # Errors
/// The driver's own.
pub(super) fn upload_copy_of<D: Dialect>(
    device: &Device<D>,
    stream: &Stream<D>,
    to: u64,
    bytes: &[u8],
) -> Result<bool> {
    let lent = match bytes.len() <= SIZES[1] {
        true => Lent::take(device, bytes.len())?,
        false => None,
    };
    let Some(lent) = lent else { return Ok(false) };
    let (from, size) = (bytes.as_ptr().expose_provenance() as u64, (bytes.len(), 1));
    copy_rows((lent.at(), size.0), (from, size.0), size);
    let by = |address| End { address, pitch: size.0, rows: 1, x: 0, y: 0, z: 0 };
    let what = Copy3d { width: size.0, height: 1, depth: 1, ..between(by(to), by(lent.at())) };
    let last = Arc::clone(&lent);
    let outcome = stream.copy_3d_now(&what).and_then(|()| stream.host_fn(move || drop(last)));
    if outcome.is_err() {
        mem::forget(lent); // what is in the stream may use it yet
    }
    outcome.map(|()| true)
}
/// From C's memory to C's memory.
fn by_host<D: Dialect>(stream: &Stream<D>, what: &Copy3d) -> Result<()> {
    let parts: Vec<_> = parts(what, usize::MAX).collect();
    stream.host_fn(move || {
        for part in &parts {
            copy_rows(target(part), source(part), (part.width, part.height));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tiles(width: usize, height: usize, depth: usize, room: usize) -> Vec<[usize; 5]> {
        let what = Copy3d { width, height, depth, dst_x: 1, ..Copy3d::default() };
        let tile = |p: Copy3d| [p.src_x, p.src_y, p.src_z, p.width, p.height];
        assert!(parts(&what, room).all(|p| p.dst_x == p.src_x + 1 && p.width * p.height <= room));
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
        let what = Copy3d {
            src_device: 1000,
            src_pitch: 10,
            src_height: 3,
            src_x: 1,
            src_y: 2,
            src_z: 4,
            ..Copy3d::default()
        };
        assert_eq!(source(&what), (1000 + 14 * 10 + 1, 10));
    }
}
