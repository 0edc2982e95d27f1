//! Memory that goes back to the driver when that makes nobody wait.
use super::CoreBackend;
use crate::memory::{allocation::Memory, deferred_free};
use std::{
    marker::PhantomData,
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
};
use ur_hal::{Allocates, Moment as _};

/// A chunk to be freed, or an opened object to be closed. Where the driver would make the caller wait until the context is
/// idle ([`waits_when_freed`](ur_hal::Allocates::waits_when_freed),
/// [`waits_when_closed`](ur_hal::Shares::waits_when_closed)), in the worst case until a command is complete that waits
/// for the calling thread, it is kept while any queue of the process is busy, up to [`MOST`] bytes in total.
#[derive(Debug)]
pub(super) struct Leaving<D: CoreBackend + Allocates, T: Send + 'static> {
    /// `None` only while it is dropped.
    what: Option<T>,
    /// Its bytes if the driver would make the caller wait.
    waits: Option<usize>,
    _driver: PhantomData<fn() -> D>,
}
/// Total bytes that are kept while queues are busy. Beyond this memory goes at once, with the blocking of a direct
/// driver call: programs whose queues are never idle must not run out of memory.
const MOST: usize = 256 << 20;
/// The bytes that are kept.
#[derive(Default)]
struct Kept(AtomicUsize);
fn kept<D: CoreBackend + Allocates>() -> &'static AtomicUsize {
    &D::statics().of_process::<Kept>().0
}
impl<D: CoreBackend + Allocates, T: Send + 'static> Leaving<D, T> {
    /// `waits` are its bytes if the driver would make the caller wait.
    pub(super) fn new(what: T, waits: Option<usize>) -> Self {
        if let Some(bytes) = waits {
            kept::<D>().fetch_add(bytes, Relaxed);
        }
        Self { what: Some(what), waits, _driver: PhantomData }
    }
}
impl<D: CoreBackend + Allocates, T: Send + 'static> Drop for Leaving<D, T> {
    fn drop(&mut self) {
        let (Some(what), Some(bytes)) = (self.what.take(), self.waits) else { return };
        let kept = kept::<D>();
        let mut now = D::Memory::submitted(0, 0);
        now.retain(|moment| {
            if !moment.has_passed() {
                moment.ask(true);
            }
            !moment.has_passed()
        });
        // A limit only, so relaxed loads suffice.
        if kept.load(Relaxed) <= MOST && !now.is_empty() {
            let again = Self { what: Some(what), waits: self.waits, _driver: PhantomData };
            deferred_free::later::<D::Memory>(now, again);
        } else {
            kept.fetch_sub(bytes, Relaxed);
        }
    }
}
