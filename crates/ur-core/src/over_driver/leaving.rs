//! Chunks that pools give back to the driver.
use super::CoreBackend;
use crate::memory::{allocation::Memory, deferred_free};
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::Relaxed},
};
use ur_hal::{Allocates, Memory as _, Moment as _};

/// A chunk to be freed. Where the driver would make the caller wait until the context is idle
/// ([`waits_when_freed`](ur_hal::Allocates::waits_when_freed)), in the worst case until a command is complete that waits
/// for the calling thread, the chunk is kept while any queue of the process is busy, up to [`MOST`] bytes in total.
#[derive(Debug)]
pub(super) struct Leaving<D: CoreBackend + Allocates>(Option<Arc<D::Allocation>>);
/// Total bytes that are kept while queues are busy. Beyond this chunks are freed at once, with the blocking of a direct
/// driver call: programs whose queues are never idle must not run out of memory.
const MOST: usize = 256 << 20;
/// The bytes of the chunks that are kept.
#[derive(Default)]
struct Kept(AtomicUsize);
fn kept<D: CoreBackend + Allocates>() -> &'static AtomicUsize {
    &D::statics().of_process::<Kept>().0
}
impl<D: CoreBackend + Allocates> Leaving<D> {
    pub(super) fn new(chunk: Arc<D::Allocation>) -> Self {
        if D::waits_when_freed(&chunk) {
            kept::<D>().fetch_add(chunk.range().bytes(), Relaxed);
        }
        Self(Some(chunk))
    }
}
impl<D: CoreBackend + Allocates> Drop for Leaving<D> {
    fn drop(&mut self) {
        let Some(chunk) = self.0.take().filter(|chunk| D::waits_when_freed(chunk)) else { return };
        let (kept, bytes) = (kept::<D>(), chunk.range().bytes());
        let mut now = D::Memory::submitted(0, 0);
        now.retain(|moment| {
            if !moment.has_passed() {
                moment.ask(true);
            }
            !moment.has_passed()
        });
        // A limit only, so relaxed loads suffice.
        if kept.load(Relaxed) <= MOST && !now.is_empty() {
            deferred_free::later::<D::Memory>(now, Self(Some(chunk)));
        } else {
            kept.fetch_sub(bytes, Relaxed);
        }
    }
}
