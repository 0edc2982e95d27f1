//! What becomes of commands that threads of ours carry out. The driver sees such a command end, however it ended: its event
//! and its queue learn here whether it failed.
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use ur_adapter::{
    error::{Error, Result},
    log,
    object::Backend,
};
use ur_sys::ur_logger_level_t;

/// What became of a command that a thread of ours carries out, which the driver knows nothing of.
#[derive(Debug, Default)]
pub(super) struct Fate(OnceLock<Error>);
impl Fate {
    /// Remembers how it ended: before the driver is told that it has.
    pub(super) fn note(&self, outcome: Result<()>) {
        if let Err(error) = outcome {
            log::say(Backend::LevelZero, ur_logger_level_t::ERROR, &error);
            let _first = self.0.set(error);
        }
    }
    pub(super) fn has_failed(&self) -> bool {
        self.0.get().is_some()
    }
    /// # Errors
    /// What it failed with; nothing, as long as it is under way.
    pub(super) fn check(&self) -> Result<()> {
        let Some(error) = self.0.get() else { return Ok(()) };
        let same = Error::new(error.code(), error.to_string());
        Err(match error.native_status() {
            Some(status) => same.native(status),
            None => same,
        })
    }
}

/// Those of a queue's commands that nobody has been told of.
#[derive(Debug, Default)]
pub(super) struct Fates(Mutex<Vec<Arc<Fate>>>);
impl Fates {
    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Fate>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Who next finishes the queue is to be told of this one, if it fails.
    pub(super) fn add(&self, fate: &Arc<Fate>) {
        let mut all = self.lock();
        all.retain(|known| Arc::strong_count(known) > 1 || known.has_failed());
        all.push(Arc::clone(fate));
    }
    /// # Errors
    /// What one of them failed with, once.
    pub(super) fn tell(&self) -> Result<()> {
        let failed = self.lock().extract_if(.., |fate| fate.has_failed()).next();
        failed.map_or(Ok(()), |fate| fate.check())
    }
}
