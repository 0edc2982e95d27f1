//! Lanes: the streams of a queue, with what is known of how far they are. Which command takes which
//! lane is `queue.rs`'s.
use super::{
    Device,
    driver::Dialect,
    native::{context::Entered, event::Pooled, stream::Stream},
};
use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicBool, AtomicU64, Ordering::*},
};
use ur_adapter::error::Result;

/// One stream of a queue.
#[derive(Debug)]
pub struct Lane<D: Dialect> {
    stream: Stream<D>,
    /// Commands that were begun to be put into it so far, and those that have been.
    begun: AtomicU64,
    put: AtomicU64,
    /// How many are known to be done: as many as had been put before the stream was seen idle.
    done: AtomicU64,
    /// Whether others may put something into it that is not counted here.
    is_lent: AtomicBool,
    /// The number of the last barrier that it waits for.
    fenced: AtomicU64,
    /// For a stream of C's, which may destroy it when the queue is gone: where its commands end, from
    /// then on. The stream is not touched again.
    end: OnceLock<Option<Arc<Pooled<D>>>>,
}
impl<D: Dialect> Lane<D> {
    pub(super) fn new(stream: Stream<D>) -> Self {
        let is_lent = AtomicBool::new(!stream.is_owned());
        let [begun, put, done, fenced] = [const { AtomicU64::new(0) }; 4];
        Self { stream, begun, put, done, is_lent, fenced, end: OnceLock::new() }
    }
    /// Its stream.
    pub fn stream(&self) -> &Stream<D> {
        &self.stream
    }
    /// One more command is about to be put into it, until what is returned is dropped.
    pub(super) fn begin(&self) -> Putting<'_, D> {
        self.begun.fetch_add(1, AcqRel); // read by tickets: a command they must not miss
        Putting(self)
    }
    /// Others may put something into it from now on.
    pub(super) fn lend(&self) {
        self.is_lent.store(true, Release);
    }
    /// Whether everything put into it is done. One that others put something into is always asked.
    pub(super) fn is_idle(&self) -> Result<bool> {
        if let Some(end) = self.end.get() {
            return end.as_ref().map_or(Ok(true), |end| end.is_complete());
        }
        // First what has been put: of commands that are being put now nothing can be told.
        let put = self.put.load(Acquire);
        if self.done.load(Acquire) == self.begun.load(Acquire) && !self.is_lent.load(Acquire) {
            return Ok(true);
        }
        let idle = self.stream.is_idle()?;
        if idle {
            self.done.fetch_max(put, AcqRel);
        }
        Ok(idle)
    }
    pub(super) fn synchronize(&self) -> Result<()> {
        let put = self.put.load(Acquire);
        self.stream.synchronize()?;
        self.done.fetch_max(put, AcqRel);
        Ok(())
    }
    /// Puts it behind the barrier with that number, unless it is.
    pub(super) fn fence(
        &self,
        number: u64,
        fence: impl FnOnce() -> Option<Arc<Pooled<D>>>,
    ) -> Result<()> {
        if self.fenced.load(Acquire) >= number {
            return Ok(());
        }
        if let Some(event) = fence() {
            self.stream.wait_for(&event)?;
        }
        self.fenced.fetch_max(number, AcqRel);
        Ok(())
    }
    /// An event that everything in it so far is before; `None` if there is nothing.
    pub(super) fn mark(
        &self,
        device: &Device<D>,
        on: &Entered<D>,
    ) -> Result<Option<Arc<Pooled<D>>>> {
        if self.is_idle()? {
            return Ok(None);
        }
        if let Some(end) = self.end.get() {
            return Ok(end.clone());
        }
        let event = device.events().take(on, false)?;
        event.record(&self.stream)?;
        Ok(Some(Arc::new(event)))
    }
    /// Marks where its commands end, if it is not ours to keep.
    pub(super) fn leave(&self, device: &Device<D>) {
        if self.stream.is_owned() || self.stream.raw().is_none() {
            return;
        }
        let end = device.enter().and_then(|on| {
            let end = device.events().take(&on, false)?;
            end.record(&self.stream)?;
            Ok(end)
        });
        // Without a driver there is nothing to wait for.
        let _ = self.end.set(end.ok().map(Arc::new));
    }
}
/// A command that is being put into a lane.
pub(super) struct Putting<'lane, D: Dialect>(&'lane Lane<D>);
impl<D: Dialect> Drop for Putting<'_, D> {
    fn drop(&mut self) {
        self.0.put.fetch_add(1, AcqRel);
    }
}
