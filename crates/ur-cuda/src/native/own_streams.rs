//! Streams for what the adapter has a device do beside the queues' own streams: one for each key, created when it is
//! first needed and kept.
use super::{
    super::driver::{Dialect, RawContext},
    context::Entered,
    stream::Stream,
};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use ur_adapter::error::Result;

/// Streams by their keys.
#[derive(Debug)]
pub struct OwnStreams<K, D: Dialect>(Mutex<Vec<(K, Arc<Stream<D>>)>>);
/// The streams of other devices in which commands of one stream run, by the devices' numbers. All that is in them is in
/// the order of that stream, with which they go.
pub type PeerStreams<D> = OwnStreams<i32, D>;
/// Streams for memory that is filled with zeros, copies that the caller waits for, and memory given back to a driver's
/// pool, by context. What uses one is ordered with nothing but itself, so that it neither waits for the default stream
/// nor orders streams of others with it, which would break their captures.
pub type UtilityStreams<D> = OwnStreams<RawContext, D>;

impl<K: PartialEq, D: Dialect> OwnStreams<K, D> {
    /// None yet.
    pub const fn new() -> Self {
        Self(Mutex::new(Vec::new()))
    }
    fn all(&self) -> MutexGuard<'_, Vec<(K, Arc<Stream<D>>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// The stream of `key`; `create` is called where there is none.
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
        let fresh = Arc::new(create()?); // the lock is not held while the driver is called
        let mut all = self.all();
        let faster = find(&all); // another thread's; then the fresh one goes after the lock
        if faster.is_none() {
            all.push((key, Arc::clone(&fresh)));
        }
        drop(all);
        Ok(faster.unwrap_or(fresh))
    }
}
impl<D: Dialect> UtilityStreams<D> {
    /// That of `context`, which is current.
    ///
    /// # Errors
    /// The driver's own, where it has to be created.
    pub fn of(&self, on: &Entered<D>, context: RawContext) -> Result<Arc<Stream<D>>> {
        self.get(context, || Stream::create(on, 0))
    }
}
impl<K: PartialEq, D: Dialect> Default for OwnStreams<K, D> {
    fn default() -> Self {
        Self::new()
    }
}
