//! What the allocations of this driver consist of, how others open them, and what waits before it goes back. Whose
//! they are and how they are freed is the core's; where memory comes from is `backing.rs`'s, what other processes see
//! of it `share.rs`'s, memory of others `foreign.rs`'s.
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
    allocation::{self, DeferredItem, Home, Pooled, Usm},
    allocations::Allocations,
    deferred_free::{self, DeferredFree},
    totals::Totals,
};
use ur_core::over_driver::physical_mem;
use ur_core::over_driver::usm_pool::Chunks;
use ur_hal::{Access, Range};
use ur_lock::locked;

/// One allocation, or the whole of an object that was opened.
pub type Allocation<D> = allocation::Allocation<Memory<D>>;
/// An allocation on its way back.
pub type Freeing<D> = allocation::Freeing<Memory<D>>;
/// What waits for commands and for other processes.
pub(super) type Deferred<D> = DeferredFree<Moment<D>, DeferredItem<Memory<D>>>;

/// What an allocation consists of.
#[derive(Debug)]
pub enum Memory<D: Dialect> {
    /// Cut from a pool of ours.
    Pooled(Pooled<Chunks<Family<D>>>),
    /// From the driver's pool, in a stream's order.
    Ordered(Ordered<D>),
    /// Another process's.
    Opened(Opened<D>),
}
impl<D: Dialect> allocation::Memory for Memory<D> {
    const BACKEND: Backend = D::BACKEND;
    type Source = Chunks<Family<D>>;
    type Moment = Moment<D>;
    fn allocations() -> &'static Allocations<Allocation<D>> {
        &D::statics().memory.get().ranges
    }
    fn deferred() -> &'static Deferred<D> {
        &D::statics().memory.get().deferred
    }
    fn submitted(context: usize) -> Vec<Moment<D>> {
        work::ticket::<D>(context).into_moments()
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
/// Memory of a driver's pool, counted by the pool that C sees.
#[derive(Debug)]
pub struct Ordered<D: Dialect> {
    /// Taken by a free in a stream's order.
    memory: Mutex<Option<FromPool<D>>>,
    from: Arc<DriverPool<D>>,
    bytes: usize,
    totals: Arc<Totals>,
}
impl<D: Dialect> Ordered<D> {
    /// # Errors
    /// `OUT_OF_RESOURCES` beyond the maximum of `totals`; then the memory goes.
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
/// Whether the memory is still there: a free in a stream's order takes it.
pub(super) fn has_memory<D: Dialect>(of: &Allocation<D>) -> bool {
    ordered(of).is_none_or(|ordered| locked(&ordered.memory).is_some())
}
/// Whether the stream itself allocated it.
pub(super) fn is_ordered<D: Dialect>(freeing: &Freeing<D>) -> bool {
    ordered(freeing.allocation()).is_some()
}
/// The memory, for the driver to take back in the order of a stream, if that is how it was allocated
/// and nobody else has it open. To be called once.
pub(super) fn take_ordered<D: Dialect>(freeing: &Freeing<D>) -> Option<FromPool<D>> {
    let ordered = ordered(freeing.allocation()).filter(|_| !freeing.is_shared())?;
    locked(&ordered.memory).take()
}

/// How other processes open the memory of an allocation.
#[derive(Debug)]
pub(super) enum Exposed<D: Dialect> {
    /// As a part of a chunk, from `base` bytes on, of `exposes`.
    Chunk {
        /// How to open the chunk.
        behind: Behind,
        /// Where in it the allocation starts.
        base: usize,
        /// How long what is opened is.
        exposes: usize,
        /// The UUID of its device.
        device: [u8; 16],
    },
    /// As an allocation of a driver's pool.
    Pool(Arc<DriverPool<D>>),
}
/// How others can open it, of which it is told here that they may.
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
/// Enters device memory that a driver's pool gave in a stream's order.
///
/// # Errors
/// `UNKNOWN` for memory at no address.
pub(super) fn adopt<D: Dialect>(home: Home, bytes: usize, memory: Ordered<D>) -> Result<UsmPtr> {
    let at = locked(&memory.memory).as_ref().map_or(0, FromPool::at);
    let null = || Error::new(ErrorCode::Unknown, "the driver gave a null address");
    let base = UsmPtr::from_addr(at as usize).ok_or_else(null)?;
    Ok(Allocation::enter(base, bytes, Usm::Device, home, Memory::Ordered(memory)).base())
}

/// A chunk on its way back to the driver. The driver takes pinned, managed and legacy device memory back only when
/// its context is idle, and has the caller wait for that: in the worst case for a command that waits for this very
/// thread. So the chunk stays while any queue of the process has commands, as long as [`MOST`] bytes stay so.
#[derive(Debug)]
pub(super) struct Leaving<D: Dialect>(Option<Arc<Chunk<D>>>);
/// How many bytes are kept from the driver while queues are busy; what is more is given back at once, as C's own
/// call of the driver would: programs whose queues are never idle must not run out of memory.
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
        let now = D::statics().queues_now.ticket(0);
        // The sum is a limit and orders nothing.
        if store.leaving.load(Relaxed) <= MOST && !now.is_over() {
            deferred_free::later::<Memory<D>>(now.into_moments(), Self(Some(chunk)));
        } else {
            store.leaving.fetch_sub(bytes, Relaxed);
        }
    }
}
