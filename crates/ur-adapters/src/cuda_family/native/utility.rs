//! Streams for what this adapter itself has the device do beside all queues: memory filled with zeros, copies that
//! the caller waits for, memory given back to a driver's pool. One for each context, made when it is first needed and
//! kept: what uses it is ordered with nothing but itself, so that it neither waits for the default stream nor orders
//! streams of others with it, which would break their captures.
use super::{
    super::driver::{Dialect, RawContext},
    context::Entered,
    stream::Stream,
};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use ur_adapter::error::Result;

/// The utility streams of this process, by their contexts.
#[derive(Debug)]
pub struct UtilityStreams<D: Dialect>(Mutex<Vec<(RawContext, Arc<Stream<D>>)>>);
impl<D: Dialect> UtilityStreams<D> {
    /// None yet.
    pub const fn new() -> Self {
        Self(Mutex::new(Vec::new()))
    }
    fn all(&self) -> MutexGuard<'_, Vec<(RawContext, Arc<Stream<D>>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
    fn known(&self, context: RawContext) -> Option<Arc<Stream<D>>> {
        let all = self.all();
        all.iter().find(|(of, _)| *of == context).map(|(_, stream)| Arc::clone(stream))
    }
    /// That of `context`, which is current.
    ///
    /// # Errors
    /// The driver's own, where it has to be made.
    pub fn of(&self, on: &Entered<D>, context: RawContext) -> Result<Arc<Stream<D>>> {
        if let Some(known) = self.known(context) {
            return Ok(known);
        }
        let fresh = Arc::new(Stream::create(on, 0)?); // no lock while the driver is called
        let mut all = self.all();
        let chosen = match all.iter().find(|(of, _)| *of == context) {
            Some((_, faster)) => Arc::clone(faster),
            None => {
                all.push((context, Arc::clone(&fresh)));
                Arc::clone(&fresh)
            }
        };
        drop(all);
        Ok(chosen) // if another thread was faster, the fresh one goes here
    }
}
impl<D: Dialect> Default for UtilityStreams<D> {
    fn default() -> Self {
        Self::new()
    }
}
