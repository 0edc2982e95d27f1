//! What the allocations of this backend consist of, what other processes need to open them, and what is freed
//! deferred. `ur-core` keeps and frees allocations; memory is allocated in `backing.rs` and exported in
//! `share.rs`; memory that other code allocated is in `foreign.rs`.
use super::{
    Family,
    backing::{Behind, Chunk},
    driver::Dialect,
    native::pool::DriverPool,
    opened::Opened,
    work::{self, Moment},
};
use std::sync::{Arc, atomic::Ordering::*};
use ur_adapter::{
    error::{Error, ErrorCode, Result},
    object::Backend,
    pool,
};
use ur_core::memory::{
    allocation::{self, InOrder, OfProcess, Pooled},
    deferred_free,
};
use ur_core::over_driver::{Contexts, physical_mem, usm_pool::Chunks};
use ur_hal::{Access, Range};

/// One allocation, or the whole of an imported object.
pub type Allocation<D> = allocation::Allocation<Memory<D>>;

/// What an allocation consists of.
#[derive(Debug)]
pub enum Memory<D: Dialect> {
    /// A part of a chunk of a pool of this adapter.
    Pooled(Pooled<Chunks<Family<D>>>),
    /// An allocation of a driver's pool, made in stream order.
    Ordered(InOrder<Self>),
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
    fn ordered(memory: InOrder<Self>) -> Option<Self> {
        Some(Self::Ordered(memory))
    }
    fn as_ordered(&self) -> Option<&InOrder<Self>> {
        match self {
            Self::Ordered(memory) => Some(memory),
            Self::Pooled(_) | Self::Opened(_) => None,
        }
    }
    fn check_elsewhere(range: Range, needs: Access) -> Result<()> {
        physical_mem::reserved::<Family<D>>().check_mapped(range, needs)
    }
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
    let freed = || refused(format!("{:?} was freed", found.base()));
    let part = match found.expose() {
        Some(Memory::Pooled(part)) => part,
        Some(Memory::Ordered(ordered)) => {
            let from = ordered.memory().as_ref().and_then(Chunk::pool).cloned();
            return from.map_or_else(freed, |from| Ok(Exposed::Pool(from)));
        }
        Some(Memory::Opened(_)) => {
            return refused("memory that was opened is shared by its exporter".to_owned());
        }
        None => return freed(),
    };
    let (chunk, offset) = (part.block().chunk(), part.block().offset());
    let (behind, before) = chunk.behind()?;
    let (base, exposes) = (before + offset, before + pool::Chunk::bytes(chunk));
    Ok(Exposed::Chunk { behind, base, exposes, device: chunk.device().uuid() })
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
