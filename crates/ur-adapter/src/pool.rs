//! USM pools for any adapter: blocks are cut from chunks of a [`Source`], best fit first. Only addresses are handled;
//! the memory itself is never accessed. A freed block is reused at once: the adapter ensures that no command uses it
//! any more, and handles the memory's properties and sharing.
use crate::{
    error::{Error, ErrorCode, Result},
    memory::UsmPtr,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::{Arc, Mutex, MutexGuard},
};
use ur_lock::{locked, unpoisoned};

/// Memory in one piece, as the driver allocates it.
pub trait Chunk: Send + Sync {
    /// Its start address.
    fn base(&self) -> UsmPtr;
    /// Its length in bytes.
    fn bytes(&self) -> usize;
}

impl<M: ur_hal::Memory> Chunk for M {
    fn base(&self) -> UsmPtr {
        self.range().start().into()
    }
    fn bytes(&self) -> usize {
        self.range().bytes()
    }
}

/// Where a pool gets its chunks from and returns them to. Called without any lock of the pool held.
pub trait Source: Send + Sync {
    /// The type of its chunks.
    type Chunk: Chunk;
    /// Allocates a chunk of at least `bytes` at a multiple of `align`, a power of two.
    ///
    /// # Errors
    /// Returns the driver's error, mostly that memory is exhausted.
    fn chunk(&self, bytes: usize, align: usize) -> Result<Self::Chunk>;
    /// Takes a chunk back.
    fn give_back(&self, chunk: Arc<Self::Chunk>);
}

/// How a pool uses its source; all values are in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Addresses and sizes of blocks are multiples of this power of two.
    pub grain: usize,
    /// Larger blocks have a chunk of their own, which is returned to the source with them.
    pub poolable: usize,
    /// The smallest request to the source.
    pub chunk: usize,
    /// Up to this much memory in unused chunks is kept.
    pub keep: usize,
    /// The most memory that the pool may hold.
    pub maximum: usize,
}
impl Default for Limits {
    fn default() -> Self {
        Self { grain: 64, poolable: 1 << 20, chunk: 2 << 20, keep: 32 << 20, maximum: usize::MAX }
    }
}

/// The memory that a pool holds, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Statistics {
    /// Memory allocated from the source.
    pub reserved: usize,
    /// The highest value of `reserved` so far.
    pub reserved_high: usize,
    /// Memory in blocks, including freed ones that commands may still use.
    pub used: usize,
    /// The highest value of `used` so far.
    pub used_high: usize,
}
impl Statistics {
    fn reserve(&mut self, bytes: usize) {
        self.reserved += bytes;
        self.reserved_high = self.reserved_high.max(self.reserved);
    }
    fn take(&mut self, bytes: usize) {
        self.used += bytes;
        self.used_high = self.used_high.max(self.used);
    }
}

/// A part of a chunk.
#[derive(Clone, Copy, Debug)]
struct Place {
    chunk: u64,
    offset: usize,
    bytes: usize,
}

/// A chunk and its free parts (offset and length); adjacent free parts are merged.
struct Cut<C> {
    chunk: Arc<C>,
    free: BTreeMap<usize, usize>,
    /// Made for one block, and returned with it.
    alone: bool,
}
impl<C: Chunk> Cut<C> {
    fn is_unused(&self) -> bool {
        self.free.get(&0) == Some(&self.chunk.bytes())
    }
}

struct State<S: Source> {
    cuts: BTreeMap<u64, Cut<S::Chunk>>,
    /// The free parts of all chunks that are not `alone`, shortest first: length, chunk, offset.
    spans: BTreeSet<(usize, u64, usize)>,
    next: u64,
    limits: Limits,
    statistics: Statistics,
}

/// Chunks to be returned to the source once the pool's lock is released.
type Leaving<S> = Vec<Arc<<S as Source>::Chunk>>;

impl<S: Source> State<S> {
    /// Cuts `bytes` at a multiple of `align` from the shortest free part that is large enough.
    fn cut(&mut self, bytes: usize, align: usize) -> Option<(Arc<S::Chunk>, Place)> {
        let fits = |&&(length, chunk, offset): &&(usize, u64, usize)| {
            let start = self.cuts[&chunk].chunk.base().addr() + offset;
            start.next_multiple_of(align) - start + bytes <= length
        };
        let &(length, id, offset) = self.spans.range((bytes, 0, 0)..).find(fits)?;
        let chunk = Arc::clone(&self.cuts[&id].chunk);
        let start = chunk.base().addr() + offset;
        let lead = start.next_multiple_of(align) - start;
        self.remove(id, offset, length);
        self.insert(id, offset, lead);
        self.insert(id, offset + lead + bytes, length - lead - bytes);
        self.statistics.take(bytes);
        Some((chunk, Place { chunk: id, offset: offset + lead, bytes }))
    }
    fn insert(&mut self, id: u64, offset: usize, length: usize) {
        if length == 0 {
            return;
        }
        let cut = self.cuts.get_mut(&id).expect("a chunk stays while it has blocks");
        cut.free.insert(offset, length);
        if !cut.alone {
            self.spans.insert((length, id, offset));
        }
    }
    fn remove(&mut self, id: u64, offset: usize, length: usize) {
        let cut = self.cuts.get_mut(&id).expect("a chunk stays while it has blocks");
        cut.free.remove(&offset);
        self.spans.remove(&(length, id, offset));
    }
    /// Adds a chunk that is entirely free.
    fn adopt(&mut self, chunk: S::Chunk, alone: bool) -> u64 {
        let (id, bytes) = (self.next, chunk.bytes());
        self.next += 1;
        self.cuts.insert(id, Cut { chunk: Arc::new(chunk), free: BTreeMap::new(), alone });
        self.insert(id, 0, bytes);
        self.statistics.reserve(bytes);
        id
    }
    /// Merges a part with its free neighbours; an unused chunk is returned if it is not to be kept.
    fn put(&mut self, place: Place, leaving: &mut Leaving<S>) {
        let Place { chunk: id, mut offset, mut bytes } = place;
        self.statistics.used -= bytes;
        let cut = &self.cuts[&id];
        let before = cut.free.range(..offset).next_back().map(|(&o, &l)| (o, l));
        let after = cut.free.get(&(offset + bytes)).copied();
        if let Some(length) = after {
            self.remove(id, offset + bytes, length);
            bytes += length;
        }
        if let Some((start, length)) = before.filter(|(start, length)| start + length == offset) {
            self.remove(id, start, length);
            (offset, bytes) = (start, bytes + length);
        }
        self.insert(id, offset, bytes);
        let alone = self.cuts[&id].alone;
        if self.cuts[&id].is_unused() && (alone || self.statistics.reserved > self.limits.keep) {
            leaving.extend(self.release(id));
        }
    }
    /// Removes an unused chunk.
    fn release(&mut self, id: u64) -> Option<Arc<S::Chunk>> {
        let cut = self.cuts.remove(&id)?;
        let bytes = cut.chunk.bytes();
        self.spans.remove(&(bytes, id, 0));
        self.statistics.reserved -= bytes;
        Some(cut.chunk)
    }
    /// Removes unused chunks as long as at least `keep` bytes stay.
    fn trim(&mut self, keep: usize, leaving: &mut Leaving<S>) {
        let unused = self.cuts.iter().filter(|(_, cut)| cut.is_unused());
        let unused: Vec<_> = unused.map(|(&id, cut)| (id, cut.chunk.bytes())).collect();
        for (id, bytes) in unused {
            if self.statistics.reserved - bytes >= keep {
                leaving.extend(self.release(id));
            }
        }
    }
}

/// A pool of memory of one kind on one device, in blocks of any size.
pub struct Pool<S: Source> {
    source: S,
    state: Mutex<State<S>>,
}

impl<S: Source> Pool<S> {
    /// An empty pool that uses `source`.
    ///
    /// # Errors
    /// `INVALID_VALUE` for a grain that is not a power of two.
    pub fn new(source: S, limits: Limits) -> Result<Arc<Self>> {
        if !limits.grain.is_power_of_two() {
            return Err(Error::new(ErrorCode::InvalidValue, "a pool's grain is a power of two"));
        }
        let (cuts, spans) = (BTreeMap::new(), BTreeSet::new());
        let statistics = Statistics::default();
        let state = Mutex::new(State { cuts, spans, next: 0, limits, statistics });
        Ok(Arc::new(Self { source, state }))
    }
    fn state(&self) -> MutexGuard<'_, State<S>> {
        locked(&self.state)
    }
    /// Runs `work` under the lock, then returns the chunks that it removed to the source.
    fn with<R>(&self, work: impl FnOnce(&mut State<S>, &mut Leaving<S>) -> R) -> R {
        let mut leaving = Vec::new();
        let result = work(&mut self.state(), &mut leaving);
        for chunk in leaving {
            self.source.give_back(chunk);
        }
        result
    }

    /// A block of at least `bytes` (of one grain if 0) at a multiple of `align`, a power of two.
    ///
    /// # Errors
    /// `OUT_OF_RESOURCES` at the pool's maximum, otherwise the source's error.
    pub fn take(self: &Arc<Self>, bytes: usize, align: usize) -> Result<Block<S>> {
        let (limits, cut) = self.with(|state, _| {
            let limits = state.limits;
            let rounded = bytes.max(1).checked_next_multiple_of(limits.grain);
            let pooled = rounded.filter(|_| bytes <= limits.poolable);
            (limits, pooled.and_then(|bytes| state.cut(bytes, align.max(limits.grain))))
        });
        if let Some((chunk, place)) = cut {
            return Ok(self.block(chunk, place));
        }
        let too_large = || Error::new(ErrorCode::InvalidUsmSize, "no memory has as many bytes");
        let rounded = bytes.max(1).checked_next_multiple_of(limits.grain).ok_or_else(too_large)?;
        let align = align.max(limits.grain);
        let alone = bytes > limits.poolable;
        let fresh =
            self.chunk(if alone { rounded } else { rounded.max(limits.chunk) }, rounded, align)?;
        let cut = self.with(|state, leaving| {
            let fits =
                fresh.bytes() <= state.limits.maximum.saturating_sub(state.statistics.reserved);
            if !fits {
                leaving.push(Arc::new(fresh));
                return Err(full(state));
            }
            let id = state.adopt(fresh, alone);
            if alone {
                let chunk = Arc::clone(&state.cuts[&id].chunk);
                let bytes = chunk.bytes();
                state.remove(id, 0, bytes);
                state.statistics.take(bytes);
                return Ok((chunk, Place { chunk: id, offset: 0, bytes }));
            }
            state.cut(rounded, align).ok_or_else(|| {
                Error::new(ErrorCode::OutOfResources, "the source of a pool gave a chunk too small")
            })
        });
        cut.map(|(chunk, place)| self.block(chunk, place))
    }
    /// Allocates a chunk of `wished` bytes or, after returning unused chunks to the source, of `needed` bytes.
    fn chunk(&self, wished: usize, needed: usize, align: usize) -> Result<S::Chunk> {
        let room = self.with(|state, leaving| {
            let room =
                |state: &State<S>| state.limits.maximum.saturating_sub(state.statistics.reserved);
            if room(state) < wished {
                state.trim(0, leaving);
            }
            match room(state) {
                room if room < needed => Err(full(state)),
                room => Ok(room),
            }
        })?;
        self.source.chunk(wished.min(room), align).or_else(|_| {
            self.trim_to(0);
            self.source.chunk(needed, align)
        })
    }
    fn block(self: &Arc<Self>, chunk: Arc<S::Chunk>, place: Place) -> Block<S> {
        Block { held: Some(Held { pool: Arc::clone(self), chunk, place }) }
    }

    /// Returns unused chunks to the source as long as at least `keep` bytes stay in the pool.
    pub fn trim_to(&self, keep: usize) {
        self.with(|state, leaving| state.trim(keep, leaving));
    }
    /// The memory that the pool holds now.
    pub fn statistics(&self) -> Statistics {
        self.state().statistics
    }
    /// The limits now.
    pub fn limits(&self) -> Limits {
        self.state().limits
    }
    /// Sets how much unused memory is kept; what exceeds it is returned at once.
    pub fn set_keep(&self, keep: usize) {
        self.with(|state, leaving| {
            state.limits.keep = keep;
            state.trim(keep, leaving);
        });
    }
    /// Sets the most that the pool may hold; what it already holds stays.
    pub fn set_maximum(&self, maximum: usize) {
        self.state().limits.maximum = maximum;
    }
    /// The source of the chunks.
    pub fn source(&self) -> &S {
        &self.source
    }
}
fn full<S: Source>(state: &State<S>) -> Error {
    Error::new(
        ErrorCode::OutOfResources,
        format!(
            "the pool holds {} of at most {} bytes: free blocks of it, or raise its maximum",
            state.statistics.reserved, state.limits.maximum
        ),
    )
}
impl<S: Source> Drop for Pool<S> {
    /// No block exists any more, because each holds a reference to its pool.
    fn drop(&mut self) {
        let state = unpoisoned(self.state.get_mut());
        for cut in std::mem::take(&mut state.cuts).into_values() {
            self.source.give_back(cut.chunk);
        }
    }
}
impl<S: Source> fmt::Debug for Pool<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pool({:?})", self.state().statistics)
    }
}

/// A part of a chunk. Dropping it makes it available again.
pub struct Block<S: Source> {
    held: Option<Held<S>>,
}
struct Held<S: Source> {
    chunk: Arc<S::Chunk>,
    pool: Arc<Pool<S>>,
    place: Place,
}
impl<S: Source> Block<S> {
    fn held(&self) -> &Held<S> {
        self.held.as_ref().expect("only dropping takes it")
    }
    /// Its offset in its chunk.
    pub fn offset(&self) -> usize {
        self.held().place.offset
    }
    /// Its size in bytes: the requested size, rounded up.
    pub fn bytes(&self) -> usize {
        self.held().place.bytes
    }
    /// Its address.
    ///
    /// # Errors
    /// None if the chunk lies within the address space.
    pub fn base(&self) -> Result<UsmPtr> {
        let held = self.held();
        held.chunk.base().offset(held.place.offset)
    }
    /// The chunk it was cut from.
    pub fn chunk(&self) -> &S::Chunk {
        &self.held().chunk
    }
    /// Its pool.
    pub fn pool(&self) -> &Arc<Pool<S>> {
        &self.held().pool
    }
}
impl<S: Source> Drop for Block<S> {
    fn drop(&mut self) {
        if let Some(Held { chunk, pool, place }) = self.held.take() {
            drop(chunk); // so that a chunk that is removed has no other reference
            pool.with(|state, leaving| state.put(place, leaving));
        }
    }
}
impl<S: Source> fmt::Debug for Block<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Block({:?})", self.held().place)
    }
}

#[cfg(test)]
mod tests;
