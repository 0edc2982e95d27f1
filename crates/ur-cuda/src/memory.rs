//! What is freed deferred. `ur-core` keeps and frees allocations; memory is allocated in `backing.rs` and exported in
//! `share.rs`; memory that other code allocated is in `foreign.rs`.
use super::{Family, backing::Chunk, driver::Dialect, work};
use std::sync::{Arc, atomic::Ordering::*};
use ur_core::memory::deferred_free;
use ur_hal::Memory as _;

/// What an allocation consists of.
pub type Memory<D> = ur_core::over_driver::memory::Memory<Family<D>>;

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
            D::statics().memory.get().leaving.fetch_add(chunk.range().bytes(), Relaxed);
        }
        Self(Some(chunk))
    }
}
impl<D: Dialect> Drop for Leaving<D> {
    fn drop(&mut self) {
        let Some(chunk) = self.0.take().filter(|chunk| chunk.goes_when_idle()) else { return };
        let (store, bytes) = (D::statics().memory.get(), chunk.range().bytes());
        let now = work::ticket::<D>(0, 0);
        // A limit only, so relaxed loads suffice.
        if store.leaving.load(Relaxed) <= MOST && !now.is_over() {
            deferred_free::later::<Memory<D>>(now.into_moments(), Self(Some(chunk)));
        } else {
            store.leaving.fetch_sub(bytes, Relaxed);
        }
    }
}
