//! What the allocations of this backend consist of, what other processes need to open them, and what is freed
//! deferred. `ur-core` keeps and frees allocations; memory is allocated in `backing.rs` and exported in
//! `share.rs`; memory that other code allocated is in `foreign.rs`.
use super::{
    Family,
    backing::Chunk,
    device::DriverDevice,
    driver::Dialect,
    native::pool::{DriverPool, FromPool},
    work,
};
use std::sync::{Arc, Mutex, atomic::Ordering::*};
use ur_adapter::{
    error::{Error, ErrorCode, Result},
    memory::UsmPtr,
    pool,
};
use ur_core::memory::{
    allocation::{self, Home, Usm},
    deferred_free,
    totals::Totals,
};
use ur_hal::MemoryKind;
use ur_lock::locked;

/// What an allocation consists of.
pub type Memory<D> = ur_core::over_driver::memory::Memory<Family<D>>;
/// One allocation, or the whole of an imported object.
pub type Allocation<D> = allocation::Allocation<Memory<D>>;
/// An allocation that is being freed.
pub type Freeing<D> = allocation::Freeing<Memory<D>>;

/// Memory of a driver's pool, counted in the pool object that the application sees.
#[derive(Debug)]
pub struct Ordered<D: Dialect> {
    /// `None` after a free in stream order.
    memory: Mutex<Option<FromPool<D>>>,
    from: Arc<DriverPool<D>>,
    device: Arc<DriverDevice<D>>,
    bytes: usize,
    totals: Arc<Totals>,
}
impl<D: Dialect> Ordered<D> {
    /// The device whose memory it is.
    pub(super) fn device(&self) -> &DriverDevice<D> {
        &self.device
    }
    /// Its size in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
    /// The pool that it is from, and its address; `None` after a free in stream order.
    pub(super) fn place(&self) -> Option<(Arc<DriverPool<D>>, u64)> {
        let at = locked(&self.memory).as_ref().map(FromPool::at)?;
        Some((Arc::clone(&self.from), at))
    }
    /// # Errors
    /// `OUT_OF_RESOURCES` beyond the maximum of `totals`; the memory is freed then.
    pub(super) fn new(
        device: &Arc<DriverDevice<D>>,
        memory: FromPool<D>,
        bytes: usize,
        totals: Arc<Totals>,
    ) -> Result<Self> {
        totals.claim(bytes)?;
        totals.take(bytes);
        let from = Arc::clone(memory.pool());
        let place = Some((MemoryKind::Device, device.number()));
        D::statics().memory.get().claims.claim(memory.at() as usize, bytes, place);
        let (memory, device) = (Mutex::new(Some(memory)), Arc::clone(device));
        Ok(Self { memory, from, device, bytes, totals })
    }
}
impl<D: Dialect> Drop for Ordered<D> {
    fn drop(&mut self) {
        locked(&self.memory).iter().for_each(give_up);
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
    let taken = locked(&ordered.memory).take();
    taken.iter().for_each(give_up);
    taken
}
fn give_up<D: Dialect>(memory: &FromPool<D>) {
    D::statics().memory.get().claims.give_up(memory.at() as usize);
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
        let now = work::ticket_of(&D::statics().queues_now, 0);
        // A limit only, so relaxed loads suffice.
        if store.leaving.load(Relaxed) <= MOST && !now.is_over() {
            deferred_free::later::<Memory<D>>(now.into_moments(), Self(Some(chunk)));
        } else {
            store.leaving.fetch_sub(bytes, Relaxed);
        }
    }
}
