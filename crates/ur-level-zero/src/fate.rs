//! What becomes of commands that threads of ours carry out. The driver sees such a command end, however it ended: its event
//! and its queue learn here whether it failed.
use std::sync::{
    Arc, Mutex, MutexGuard, OnceLock, PoisonError,
    atomic::{AtomicBool, Ordering::*},
};
use ur_adapter::{
    error::{Error, Result},
    log,
    object::Backend,
};
use ur_lock::locked;
use ur_sys::ur_logger_level_t;

/// What became of a command that a thread of ours carries out, or of one that is behind such: the driver knows nothing of
/// that, runs what is behind a command that failed, and says that it is done.
#[derive(Debug)]
pub(super) struct Fate {
    /// `None`: the driver carries it out, and it fails only with what it is behind.
    own: Option<OnceLock<Result<()>>>,
    /// What it is behind and has not gone well yet: with one of these it has failed, too. Each is older, so that locks are
    /// taken in one order.
    before: Mutex<Vec<Arc<Fate>>>,
}
impl Fate {
    /// Of a command that a thread carries out.
    pub(super) fn by_thread() -> Arc<Self> {
        Arc::new(Self { own: Some(OnceLock::new()), before: Mutex::default() })
    }
    /// Of a command of the driver's that is behind these; `None`: they are none.
    pub(super) fn behind(mut before: Vec<Arc<Fate>>) -> Option<Arc<Self>> {
        match before.len() {
            0 | 1 => before.pop(),
            _ => Some(Arc::new(Self { own: None, before: Mutex::new(before) })),
        }
    }
    /// It is behind these: before anybody carries it out.
    pub(super) fn follow(&self, before: Vec<Arc<Fate>>) {
        *locked(&self.before) = before;
    }
    /// Carries the command out, unless what it is behind has failed, and remembers how it ended: before the driver is told
    /// that it has.
    pub(super) fn meet(&self, work: impl FnOnce() -> Result<()>) {
        self.meet_part(work, true);
    }
    /// The same of one part of it; `is_last`: the others are done.
    pub(super) fn meet_part(&self, part: impl FnOnce() -> Result<()>, is_last: bool) {
        let outcome = if self.has_failed() { Ok(()) } else { part() };
        if let Err(error) = &outcome {
            log::say(Backend::LevelZero, ur_logger_level_t::ERROR, error);
        }
        if let Some(own) = self.own.as_ref().filter(|_| is_last || outcome.is_err()) {
            let _first = own.set(outcome);
        }
    }
    /// Whether it is known to have gone well: who is behind it need not look, and lets go of it.
    pub(super) fn is_well(&self) -> bool {
        let mut before = locked(&self.before);
        before.retain(|fate| !fate.is_well());
        let own = self.own.as_ref().is_none_or(|own| matches!(own.get(), Some(Ok(()))));
        own && before.is_empty()
    }
    /// What it failed with, or what it is behind.
    fn failure(&self) -> Option<Error> {
        let own = self.own.as_ref().and_then(|own| own.get()?.as_ref().err());
        let same = |error: &Error| {
            let same = Error::new(error.code(), error.to_string());
            match error.native_status() {
                Some(status) => same.native(status),
                None => same,
            }
        };
        own.map(same).or_else(|| locked(&self.before).iter().find_map(|fate| fate.failure()))
    }
    pub(super) fn has_failed(&self) -> bool {
        let own = self.own.as_ref().is_some_and(|own| matches!(own.get(), Some(Err(_))));
        own || locked(&self.before).iter().any(|fate| fate.has_failed())
    }
    /// # Errors
    /// What it failed with, or what it is behind; nothing, as long as it is under way.
    pub(super) fn check(&self) -> Result<()> {
        self.failure().map_or(Ok(()), Err)
    }
}

/// Those of a queue's commands that nobody has been told of.
#[derive(Debug, Default)]
pub(super) struct Fates {
    all: Mutex<Vec<Arc<Fate>>>,
    /// Whether there ever were some.
    has_any: AtomicBool,
    /// The last one, which all that follows is behind in a queue with an order.
    last: Mutex<Option<Arc<Fate>>>,
    has_last: AtomicBool,
}
impl Fates {
    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Fate>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Who next finishes the queue is to be told of this one, if it fails.
    pub(super) fn add(&self, fate: &Arc<Fate>) {
        let mut all = self.lock();
        all.retain(|known| Arc::strong_count(known) > 1 || known.has_failed());
        all.push(Arc::clone(fate));
        self.has_any.store(true, Release); // pairs with `open`
    }
    /// The next command is behind this one.
    pub(super) fn follow(&self, fate: &Arc<Fate>) {
        let mut last = locked(&self.last);
        let old = last.replace(Arc::clone(fate));
        self.has_last.store(true, Release); // pairs with `last`
        drop(last);
        drop(old); // not under the lock
    }
    /// All that may fail yet, or has.
    pub(super) fn open(&self) -> Vec<Arc<Fate>> {
        if !self.has_any.load(Acquire) {
            return vec![];
        }
        self.lock().iter().filter(|fate| !fate.is_well()).cloned().collect()
    }
    /// What the next command is behind, if it may fail yet, or has.
    #[inline]
    pub(super) fn last(&self) -> Option<Arc<Fate>> {
        if self.has_last.load(Acquire) { self.find_last() } else { None }
    }
    #[cold]
    fn find_last(&self) -> Option<Arc<Fate>> {
        let mut last = locked(&self.last);
        let over = last.take_if(|fate| fate.is_well());
        let found = last.clone();
        self.has_last.store(found.is_some(), Release);
        drop(last);
        drop(over); // not under the lock
        found
    }
    /// # Errors
    /// What one of them failed with, once.
    pub(super) fn tell(&self) -> Result<()> {
        let failed: Vec<_> = self.lock().extract_if(.., |fate| fate.has_failed()).collect();
        let Some(first) = failed.first() else { return Ok(()) };
        // Everything before is over, and who asked knows.
        let mut last = locked(&self.last);
        let told = last.take_if(|fate| fate.has_failed());
        self.has_last.store(last.is_some(), Release);
        drop(last);
        drop(told); // not under the lock
        first.check()
    }
}
