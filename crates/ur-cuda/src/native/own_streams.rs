//! Streams for work of the adapter itself, apart from the queues' streams: one for each key, created at first
//! use and kept.
use super::{
    super::driver::{Dialect, RawContext},
    context::Entered,
    stream::Stream,
};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use ur_hal::Result;

/// Streams by key.
#[derive(Debug)]
pub struct OwnStreams<K, D: Dialect>(Mutex<Vec<(K, Arc<Stream<D>>)>>);
/// The streams of other devices that execute commands of one stream, by the device's number. They are ordered
/// by that stream, and are dropped with it.
pub type PeerStreams<D> = OwnStreams<i32, D>;
/// Streams for filling memory with zeros, for blocking copies and for frees to driver pools, by context.
/// Their commands are not ordered with the default stream: they neither wait for it nor make streams of other
/// code wait, which would invalidate captures.
pub type UtilityStreams<D> = OwnStreams<RawContext, D>;

impl<K: PartialEq, D: Dialect> OwnStreams<K, D> {
    /// Without streams.
    pub const fn new() -> Self {
        Self(Mutex::new(Vec::new()))
    }
    fn all(&self) -> MutexGuard<'_, Vec<(K, Arc<Stream<D>>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// The stream of `key`; calls `create` if there is none.
    ///
    /// # Errors
    /// Those of `create`.
    pub fn get(
        &self,
        key: K,
        create: impl FnOnce() -> Result<Stream<D>>,
    ) -> Result<Arc<Stream<D>>> {
        let find = |all: &[(K, Arc<Stream<D>>)]| {
            let found = all.iter().find(|(of, _)| *of == key);
            found.map(|(_, stream)| Arc::clone(stream))
        };
        if let Some(stream) = find(&self.all()) {
            return Ok(stream);
        }
        let fresh = Arc::new(create()?); // the lock is not held during driver calls
        let mut all = self.all();
        let faster = find(&all); // if another thread was faster, the new stream is dropped after the lock
        if faster.is_none() {
            all.push((key, Arc::clone(&fresh)));
        }
        drop(all);
        Ok(faster.unwrap_or(fresh))
    }
}
impl<D: Dialect> UtilityStreams<D> {
    /// The stream of `context`, which is current.
    ///
    /// # Errors
    /// Returns the driver's error, if the stream must be created.
    pub fn of(&self, on: &Entered<D>, context: RawContext) -> Result<Arc<Stream<D>>> {
        self.get(context, || Stream::create(on, 0))
    }
}
impl<K: PartialEq, D: Dialect> Default for OwnStreams<K, D> {
    fn default() -> Self {
        Self::new()
    }
}
