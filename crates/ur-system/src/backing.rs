//! The memory of USM and physical memory objects: mappings of their own, segments that large blocks share when
//! descriptors are scarce, and slabs of small blocks of one size. The core decides who owns a block and when it may be
//! reused.
use crate::mapping::{Mapping, Memfd, Side, Writers, page};
use rustix::io::{Errno, fcntl_dupfd_cloexec};
use std::{
    collections::BTreeMap,
    os::fd::{AsRawFd, OwnedFd},
    sync::{Arc, Mutex},
};
use ur_adapter::{
    error::{Error, ErrorCode, Result},
    memory::UsmPtr,
};
use ur_hal::{Memory, MemoryRequest, Range};
use ur_lock::locked;
use ur_mapping::PerProcess;

/// Blocks of this size in bytes and above have a mapping of their own or a part of a segment.
pub const LARGE: usize = 1 << 20;
/// The size in bytes of a slab, from which small blocks of one size are cut; it is aligned to its size.
const SLAB: usize = 2 << 20;
/// The size in bytes of a segment, in which large blocks share a descriptor.
const SEGMENT: usize = 64 << 20;
/// The smallest block in bytes: a cache line, so that no two owners write the same line.
const SMALLEST: usize = 64;
/// Sizes of small blocks: 64, 96, 128, 192, 256, … up to and including `LARGE`.
const CLASSES: usize = 29;
/// The largest supported alignment in bytes.
pub const ALIGNMENT: usize = SLAB;

/// The size of the blocks of a class; their addresses are multiples of its lowest set bit.
fn class_bytes(class: usize) -> usize {
    (SMALLEST + SMALLEST / 2 * (class % 2)) << (class / 2)
}
/// The class whose blocks fit best; `None` for large blocks.
fn class_of(bytes: usize, align: usize) -> Option<usize> {
    let fits = |&class: &usize| {
        let size = class_bytes(class);
        size >= bytes && 1 << size.trailing_zeros() >= align
    };
    if bytes >= LARGE { None } else { (0..CLASSES).find(fits) }
}

/// Memory lent to one owner. Once dropped, it can be lent again.
#[derive(Debug)]
pub struct Block {
    base: UsmPtr,
    bytes: usize,
    place: Place,
}
#[derive(Debug)]
enum Place {
    Own { mapping: Mapping, memfd: Option<Memfd> },
    Segment { segment: Arc<Segment>, offset: usize },
    Slab { slab: Arc<Slab>, index: u32 },
}

/// The descriptor of a block of device memory.
#[derive(Clone, Debug)]
pub struct Behind {
    /// The whole memfd.
    pub memfd: Memfd,
    /// Where the block starts in it, in bytes.
    pub base: usize,
}
impl Behind {
    /// What an offer of it needs: the descriptor, where the object starts, and how many bytes are exposed.
    pub fn payload(&self) -> (Arc<OwnedFd>, u64, u64) {
        (Arc::clone(self.memfd.fd()), self.base as u64, self.memfd.bytes() as u64)
    }
    /// One more descriptor of the whole memfd, for callers to own; never 0 to 2, which mean something to others.
    ///
    /// # Errors
    /// `OUT_OF_RESOURCES` without descriptors, `OUT_OF_HOST_MEMORY`.
    pub fn descriptor(&self) -> Result<OwnedFd> {
        fcntl_dupfd_cloexec(self.memfd.fd(), 3).map_err(|errno| {
            let code = match errno {
                Errno::MFILE | Errno::NFILE => ErrorCode::OutOfResources,
                _ => ErrorCode::OutOfHostMemory,
            };
            let why = format!("could not make a descriptor of exportable memory: {errno}");
            Error::new(code, why)
        })
    }
    /// Moves the start by `bytes`.
    #[must_use]
    pub fn offset(mut self, bytes: usize) -> Self {
        self.base += bytes;
        self
    }
}

impl Block {
    /// The block for a driver's memory request: whole pages, so that no two pools share one.
    ///
    /// # Errors
    /// As for [`Block::take`].
    pub fn of_request(MemoryRequest { kind, bytes, align, .. }: MemoryRequest) -> Result<Self> {
        let whole = if bytes < LARGE { bytes.next_power_of_two().max(page()) } else { bytes };
        Self::take(kind.into(), whole, align.max(page()))
    }
    /// A block of at least `bytes`, at a multiple of `align`, a power of two.
    ///
    /// # Errors
    /// `OUT_OF_RESOURCES` without descriptors or mappings, `OUT_OF_DEVICE_MEMORY`, `OUT_OF_HOST_MEMORY`;
    /// `INVALID_VALUE` for an alignment beyond `ALIGNMENT`.
    pub fn take(side: Side, bytes: usize, align: usize) -> Result<Self> {
        if align > ALIGNMENT || !align.is_power_of_two() {
            let why = format!("{align} is no power of two up to {ALIGNMENT}: align to one");
            return Err(Error::new(ErrorCode::InvalidValue, why));
        }
        match class_of(bytes, align) {
            Some(class) => small(side, class),
            None => large(side, bytes, align, descriptors_are_scarce),
        }
    }
    /// Device memory with a descriptor of its own, which no other block uses or ever used. `writers` says whether
    /// processes that open it may write it.
    ///
    /// # Errors
    /// As for [`Block::take`].
    pub fn alone(bytes: usize, align: usize, writers: Writers) -> Result<Self> {
        if align > ALIGNMENT || !align.is_power_of_two() {
            let why = format!("{align} is no power of two up to {ALIGNMENT}: align to one");
            return Err(Error::new(ErrorCode::InvalidValue, why));
        }
        own(&Memfd::create(whole_pages(bytes)?)?, whole_pages(bytes)?, align, writers)
    }
    /// Its address.
    pub fn base(&self) -> UsmPtr {
        self.base
    }
    /// Its length in bytes: the requested size, rounded up.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
    /// The descriptor by which other processes can open it; device memory has one.
    pub fn behind(&self) -> Option<Behind> {
        match &self.place {
            Place::Own { memfd, .. } => Some(Behind { memfd: memfd.clone()?, base: 0 }),
            Place::Segment { segment, offset } => {
                Some(Behind { memfd: segment.memfd.clone(), base: *offset })
            }
            Place::Slab { slab, .. } => {
                let offset = self.base.addr() - slab.block.base.addr();
                slab.block.behind().map(|behind| behind.offset(offset))
            }
        }
    }
    /// Whether the memory is lent to others after this block, so that no process may keep access to it.
    pub fn is_recycled(&self) -> bool {
        !matches!(self.place, Place::Own { .. })
    }
    /// Whether this process took it; a forked child only inherited it.
    fn is_ours(&self) -> bool {
        match &self.place {
            Place::Own { mapping, .. } => mapping.is_ours(),
            Place::Segment { segment, .. } => segment.mapping.is_ours(),
            Place::Slab { slab, .. } => slab.block.is_ours(),
        }
    }
}
impl Memory for Block {
    fn range(&self) -> Range {
        Range::new(self.base.into(), self.bytes).expect("a block has bytes, and addresses for them")
    }
}
impl Drop for Block {
    fn drop(&mut self) {
        if !self.is_ours() {
            return; // it belongs to the parent, which still uses it
        }
        match &self.place {
            Place::Own { .. } => {}
            Place::Segment { segment, offset } => segment.put(*offset, self.bytes),
            Place::Slab { slab, index } => slab.put(*index),
        }
    }
}

/// The slabs and segments from which blocks are taken.
#[derive(Default)]
struct Store {
    device: [Shelf; CLASSES],
    host: [Shelf; CLASSES],
    segments: Mutex<Vec<Arc<Segment>>>,
}
static STORE: PerProcess<Store> = PerProcess::new();

/// The slabs of one class that have free blocks.
type Shelf = Mutex<Vec<Arc<Slab>>>;
fn shelf(side: Side, class: usize) -> &'static Shelf {
    match side {
        Side::Device => &STORE.get().device[class],
        Side::Host => &STORE.get().host[class],
    }
}

#[derive(Debug)]
struct Slab {
    block: Block,
    side: Side,
    class: usize,
    /// Lock order: after the shelf.
    room: Mutex<Room>,
}
/// The free blocks of a slab: those returned, and those never lent.
#[derive(Debug)]
struct Room {
    returned: Vec<u32>,
    fresh: u32,
    blocks: u32,
}
impl Room {
    fn take(&mut self) -> Option<u32> {
        self.returned.pop().or_else(|| {
            self.fresh += 1;
            (self.fresh <= self.blocks).then(|| self.fresh - 1).or_else(|| {
                self.fresh = self.blocks;
                None
            })
        })
    }
    fn is_full(&self) -> bool {
        self.returned.is_empty() && self.fresh == self.blocks
    }
    fn is_empty(&self) -> bool {
        self.returned.len() == self.fresh as usize
    }
}

fn small(side: Side, class: usize) -> Result<Block> {
    let shelf = shelf(side, class);
    let cut = || {
        let mut slabs = locked(shelf);
        let slab = Arc::clone(slabs.last()?);
        let mut room = locked(&slab.room);
        let index = room.take().expect("slabs without room are off the shelf");
        if room.is_full() {
            slabs.pop();
        }
        drop(room);
        Some((slab, index))
    };
    let (slab, index) = loop {
        if let Some(cut) = cut() {
            break cut;
        }
        let block = large(side, SLAB, SLAB, descriptors_are_scarce)?;
        let blocks = (SLAB / class_bytes(class)) as u32;
        let room = Mutex::new(Room { returned: Vec::new(), fresh: 0, blocks });
        locked(shelf).push(Arc::new(Slab { block, side, class, room }));
    };
    let bytes = class_bytes(class);
    let base = slab.block.base.offset(bytes * index as usize)?;
    Ok(Block { base, bytes, place: Place::Slab { slab, index } })
}
impl Slab {
    /// Takes a block back. A slab without blocks in use is dropped, unless it is the last on its shelf.
    fn put(self: &Arc<Self>, index: u32) {
        let mut slabs = locked(shelf(self.side, self.class));
        let mut room = locked(&self.room);
        let was_full = room.is_full();
        room.returned.push(index);
        if was_full {
            slabs.push(Arc::clone(self));
        }
        if room.is_empty() && slabs.len() > 1 {
            slabs.retain(|slab| !Arc::ptr_eq(slab, self)); // the returning block drops the last reference
        }
    }
}

/// Whether a quarter of the descriptors that this process may have is in use, judged by the number of `memfd`, which
/// was just made: the kernel always assigns the lowest free number.
fn descriptors_are_scarce(memfd: &Memfd) -> bool {
    let limit = ur_mapping::descriptor_limit();
    u64::try_from(memfd.fd().as_raw_fd()).is_ok_and(|number| number >= limit / 4)
}

fn whole_pages(bytes: usize) -> Result<usize> {
    let too_large = || Error::new(ErrorCode::InvalidUsmSize, "no memory has as many bytes");
    bytes.max(1).checked_next_multiple_of(page()).ok_or_else(too_large)
}
/// A whole memfd as one block.
fn own(memfd: &Memfd, bytes: usize, align: usize, writers: Writers) -> Result<Block> {
    memfd.commit(0, bytes)?;
    let mapping = Mapping::shared(memfd, 0, bytes, align)?;
    memfd.seal(writers)?;
    let base = mapping.base();
    Ok(Block { base, bytes, place: Place::Own { mapping, memfd: Some(memfd.clone()) } })
}

fn large(
    side: Side,
    bytes: usize,
    align: usize,
    is_scarce: impl Fn(&Memfd) -> bool,
) -> Result<Block> {
    let bytes = whole_pages(bytes)?;
    if side == Side::Host {
        let mapping = Mapping::anonymous(bytes, align)?;
        return Ok(Block {
            base: mapping.base(),
            bytes,
            place: Place::Own { mapping, memfd: None },
        });
    }
    match Memfd::create(bytes) {
        Ok(memfd) if bytes > SEGMENT || !is_scarce(&memfd) => {
            own(&memfd, bytes, align, Writers::Everyone)
        }
        Ok(scarce) => {
            drop(scarce); // first, or there may be no descriptor for a segment
            from_segment(bytes, align)
        }
        Err(none_left) if none_left.code() == ErrorCode::OutOfResources && bytes <= SEGMENT => {
            from_segment(bytes, align)
        }
        Err(error) => Err(error),
    }
}

/// Device memory for several large blocks. Only the parts in use have memory.
#[derive(Debug)]
struct Segment {
    mapping: Mapping,
    memfd: Memfd,
    /// Offset and length of each free part; adjacent parts are merged. Lock order: after the list of segments.
    free: Mutex<BTreeMap<usize, usize>>,
}

fn from_segment(bytes: usize, align: usize) -> Result<Block> {
    let segments = &STORE.get().segments;
    let cut = || {
        let all = locked(segments);
        all.iter().find_map(|one| Some((Arc::clone(one), one.cut(bytes, align)?)))
    };
    let (segment, offset) = loop {
        if let Some(cut) = cut() {
            break cut;
        }
        let memfd = Memfd::create(SEGMENT)?;
        let mapping = Mapping::shared(&memfd, 0, SEGMENT, ALIGNMENT)?;
        memfd.seal(Writers::Everyone)?;
        let free = Mutex::new(BTreeMap::from([(0, SEGMENT)]));
        locked(segments).push(Arc::new(Segment { mapping, memfd, free }));
    };
    let base = segment.mapping.base().offset(offset)?;
    let committed = segment.memfd.commit(offset, bytes);
    // Made before the result is checked: if the commit failed, dropping the block returns the part.
    let block = Block { base, bytes, place: Place::Segment { segment, offset } };
    committed.map(|()| block)
}
impl Segment {
    /// Takes the first free part with `bytes` at a multiple of `align`. The segment itself is aligned, so offsets are
    /// aligned like addresses.
    fn cut(&self, bytes: usize, align: usize) -> Option<usize> {
        let mut free = locked(&self.free);
        let (start, length) = free
            .iter()
            .map(|(&start, &length)| (start, length))
            .find(|(start, length)| start.next_multiple_of(align) - start + bytes <= *length)?;
        let offset = start.next_multiple_of(align);
        free.remove(&start);
        if offset > start {
            free.insert(start, offset - start);
        }
        if offset + bytes < start + length {
            free.insert(offset + bytes, start + length - offset - bytes);
        }
        Some(offset)
    }
    /// Takes a part back and releases its memory. A segment without parts in use is dropped, unless it is the last.
    fn put(self: &Arc<Self>, mut offset: usize, mut bytes: usize) {
        if self.memfd.discard(offset, bytes).is_err() {
            return; // it would not read as zeros, so it is never reused
        }
        let mut all = locked(&STORE.get().segments);
        let mut free = locked(&self.free);
        if let Some(length) = free.remove(&(offset + bytes)) {
            bytes += length;
        }
        let before = free.range(..offset).next_back().map(|(&start, &length)| (start, length));
        if let Some((start, length)) = before.filter(|(start, length)| start + length == offset) {
            (offset, bytes) = (start, bytes + length);
        }
        free.insert(offset, bytes);
        if bytes == SEGMENT && all.len() > 1 {
            all.retain(|segment| !Arc::ptr_eq(segment, self)); // the block drops the last reference
        }
    }
}

#[cfg(test)]
mod tests;
