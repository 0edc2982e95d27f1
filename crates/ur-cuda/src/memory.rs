//! What the allocations of this backend consist of, what other processes need to open them, and what is freed
//! deferred. `ur-core` keeps and frees allocations; memory is allocated in `backing.rs` and exported in
//! `share.rs`; memory that other code allocated is in `foreign.rs`.
use super::{
    Family,
    backing::{Behind, Chunk},
    driver::Dialect,
    native::pool::{DriverPool, FromPool},
    opened::Opened,
    work::{self, Moment},
};
use std::sync::{Arc, Mutex, atomic::Ordering::*};
use ur_adapter::{
    error::{Error, ErrorCode, Result},
    memory::UsmPtr,
    object::Backend,
    pool,
};
use ur_core::memory::{
    allocation::{self, Home, OfProcess, Pooled, Usm},
    deferred_free,
    totals::Totals,
};
use ur_core::over_driver::{Contexts, physical_mem, usm_pool::Chunks};
use ur_hal::{Access, Range};
use ur_lock::locked;

/// One allocation, or the whole of an imported object.
pub type Allocation<D> = allocation::Allocation<Memory<D>>;
/// An allocation that is being freed.
pub type Freeing<D> = allocation::Freeing<Memory<D>>;

/// What an allocation consists of.
#[derive(Debug)]
pub enum Memory<D: Dialect> {
    /// A part of a chunk of a pool of this adapter.
    Pooled(Pooled<Chunks<Family<D>>>),
    /// An allocation of a driver's pool, made in stream order.
    Ordered(Ordered<D>),
    /// Memory that was opened from another process.
    Opened(Opened<D>),
}
impl<D: Dialect> allocation::Memory for Memory<D> {
    const BACKEND: Backend = <Family<D> as Contexts>::BACKEND;
    type Source = Chunks<Family<D>>;
    type Moment = Moment<D>;
    fn of_process() -> &'static OfProcess<Self> {
        D::statics().allocations.get()
    }
    fn submitted(context: usize, since: u64) -> Vec<Moment<D>> {
        work::ticket::<D>(context, since).into_moments()
    }
    fn is_of_parent() -> bool {
        super::device::check_fork::<D>().is_err()
    }
    fn pooled(part: Pooled<Chunks<Family<D>>>) -> Self {
        Self::Pooled(part)
    }
    fn is_opened(&self) -> bool {
        matches!(self, Self::Opened(_))
    }
    fn is_ordered(&self) -> bool {
        matches!(self, Self::Ordered(_))
    }
    fn check_elsewhere(range: Range, needs: Access) -> Result<()> {
        physical_mem::reserved::<Family<D>>().check_mapped(range, needs)
    }
}
/// Memory of a driver's pool, counted in the pool object that the application sees.
#[derive(Debug)]
pub struct Ordered<D: Dialect> {
    /// `None` after a free in stream order.
    memory: Mutex<Option<FromPool<D>>>,
    from: Arc<DriverPool<D>>,
    bytes: usize,
    totals: Arc<Totals>,
}
impl<D: Dialect> Ordered<D> {
    /// # Errors
    /// `OUT_OF_RESOURCES` beyond the maximum of `totals`; the memory is freed then.
    pub(super) fn new(memory: FromPool<D>, bytes: usize, totals: Arc<Totals>) -> Result<Self> {
        totals.claim(bytes)?;
        totals.take(bytes);
        let from = Arc::clone(memory.pool());
        Ok(Self { memory: Mutex::new(Some(memory)), from, bytes, totals })
    }
}
impl<D: Dialect> Drop for Ordered<D> {
    fn drop(&mut self) {
        self.totals.put(self.bytes);
        self.totals.unclaim(self.bytes);
    }
}
fn ordered<D: Dialect>(of: &Allocation<D>) -> Option<&Ordered<D>> {
    match of.memory() {
        Some(Memory::Ordered(ordered)) => Some(ordered),
        _ => None,
    }
}
/// Whether it still has its memory; `false` after a free in stream order.
pub(super) fn has_memory<D: Dialect>(of: &Allocation<D>) -> bool {
    ordered(of).is_none_or(|ordered| locked(&ordered.memory).is_some())
}
/// Whether it was allocated in stream order.
pub(super) fn is_ordered<D: Dialect>(freeing: &Freeing<D>) -> bool {
    ordered(freeing.allocation()).is_some()
}
/// Takes the memory of an allocation that was made in stream order, for a free in stream order; `None` for
/// other allocations, and if other processes have it open. To be called once.
pub(super) fn take_ordered<D: Dialect>(freeing: &Freeing<D>) -> Option<FromPool<D>> {
    let ordered = ordered(freeing.allocation()).filter(|_| !freeing.is_shared())?;
    locked(&ordered.memory).take()
}

/// How other processes open the memory of an allocation.
#[derive(Debug)]
pub(super) enum Exposed<D: Dialect> {
    /// As a part of a chunk.
    Chunk {
        /// What is needed to open the chunk.
        behind: Behind,
        /// The offset in bytes of the allocation in the memory that is opened.
        base: usize,
        /// The bytes of the memory that is opened.
        exposes: usize,
        /// The UUID of its device.
        device: [u8; 16],
    },
    /// As an allocation of a driver's pool.
    Pool(Arc<DriverPool<D>>),
}
/// How other processes open the allocation. Marks it as shared.
///
/// # Errors
/// As for [`Chunk::behind`].
pub(super) fn exposed<D: Dialect>(found: &Allocation<D>) -> Result<Exposed<D>> {
    let refused = |why: String| Err(Error::new(ErrorCode::InvalidValue, why));
    let part = match found.expose() {
        Some(Memory::Pooled(part)) => part,
        Some(Memory::Ordered(ordered)) if has_memory(found) => {
            return Ok(Exposed::Pool(Arc::clone(&ordered.from)));
        }
        Some(Memory::Opened(_)) => {
            return refused("memory that was opened is shared by its exporter".to_owned());
        }
        _ => return refused(format!("{:?} was freed", found.base())),
    };
    let (chunk, offset) = (part.block().chunk(), part.block().offset());
    let (behind, before) = chunk.behind()?;
    let (base, exposes) = (before + offset, before + pool::Chunk::bytes(chunk));
    Ok(Exposed::Chunk { behind, base, exposes, device: chunk.device().uuid() })
}
/// Registers device memory that was allocated in stream order.
///
/// # Errors
/// `UNKNOWN` if the driver returned a null address.
pub(super) fn adopt<D: Dialect>(home: Home, bytes: usize, memory: Ordered<D>) -> Result<UsmPtr> {
    let at = locked(&memory.memory).as_ref().map_or(0, FromPool::at);
    let null = || Error::new(ErrorCode::Unknown, "the driver gave a null address");
    let base = UsmPtr::from_addr(at as usize).ok_or_else(null)?;
    Ok(Allocation::enter(base, bytes, Usm::Device, home, Memory::Ordered(memory)).base())
}

/// A chunk to be freed. When the driver frees pinned, managed or classic device memory, the call blocks until
/// the context is idle: in the worst case until a command is complete that waits for the calling thread. So
/// the chunk is kept while any queue of the process is busy, up to [`MOST`] bytes in total.
#[derive(Debug)]
pub(super) struct Leaving<D: Dialect>(Option<Arc<Chunk<D>>>);
/// Total bytes that are kept while queues are busy. Beyond this chunks are freed at once, with the blocking
/// of a direct driver call: programs whose queues are never idle must not run out of memory.
const MOST: usize = 256 << 20;
impl<D: Dialect> Leaving<D> {
    pub(super) fn new(chunk: Arc<Chunk<D>>) -> Self {
        if chunk.goes_when_idle() {
            D::statics().memory.get().leaving.fetch_add(pool::Chunk::bytes(&*chunk), Relaxed);
        }
        Self(Some(chunk))
    }
}
impl<D: Dialect> Drop for Leaving<D> {
    fn drop(&mut self) {
        let Some(chunk) = self.0.take().filter(|chunk| chunk.goes_when_idle()) else { return };
        let (store, bytes) = (D::statics().memory.get(), pool::Chunk::bytes(&*chunk));
        let now = work::ticket::<D>(0, 0);
        // A limit only, so relaxed loads suffice.
        if store.leaving.load(Relaxed) <= MOST && !now.is_over() {
            deferred_free::later::<Memory<D>>(now.into_moments(), Self(Some(chunk)));
        } else {
            store.leaving.fetch_sub(bytes, Relaxed);
        }
    }
}
