//! What becomes of commands that threads of ours carry out. The driver sees such a command end, however it ended: its event
//! and its queue learn here whether it failed.
use crate::log::notice;
use std::sync::{
    Arc, Mutex, MutexGuard, OnceLock,
    atomic::{AtomicBool, Ordering::*},
};
use ur_hal::{Error, Result, Severity};
use ur_lock::locked;

/// What became of a command that a thread of ours carries out: the driver knows nothing of that, runs what is behind a command
/// that failed, and says that it is done.
#[derive(Debug, Default)]
pub(super) struct Fate {
    outcome: OnceLock<Result<()>>,
    /// What it is behind, until it has an outcome: with one of these it fails, too.
    before: Mutex<Option<Dependencies>>,
}
impl Fate {
    /// Of a command that a thread carries out.
    pub(super) fn by_thread() -> Arc<Self> {
        Arc::default()
    }
    /// It is behind these: before anybody carries it out.
    pub(super) fn follow(&self, before: Option<Dependencies>) {
        let old = std::mem::replace(&mut *locked(&self.before), before);
        drop(old); // not under the lock
    }
    /// Carries the command out, unless what it is behind has failed, and remembers how it ended: before the driver is told
    /// that it has. What it is behind is over by then.
    pub(super) fn meet(&self, work: impl FnOnce() -> Result<()>) {
        self.meet_part(work, true);
    }
    /// The same of one part of it; `is_last`: the others are done.
    pub(super) fn meet_part(&self, part: impl FnOnce() -> Result<()>, is_last: bool) {
        let before = locked(&self.before).clone();
        let outcome = match self.failure().or_else(|| before?.failure()) {
            Some(failure) => Err(failure),
            None => part().inspect_err(|e| notice(Severity::Error, e)),
        };
        if is_last || outcome.is_err() {
            let _first = self.outcome.set(outcome);
            self.follow(None);
        }
    }
    /// Whether it is known to have gone well: who is behind it need not look, and lets go of it.
    fn is_well(&self) -> bool {
        matches!(self.outcome.get(), Some(Ok(())))
    }
    pub(super) fn has_failed(&self) -> bool {
        matches!(self.outcome.get(), Some(Err(_)))
    }
    /// What it failed with, itself or because what it is behind has.
    fn failure(&self) -> Option<Error> {
        self.outcome.get()?.as_ref().err().cloned()
    }
    /// # Errors
    /// What it failed with; nothing, as long as it is under way.
    pub(super) fn check(&self) -> Result<()> {
        self.failure().map_or(Ok(()), Err)
    }
}

/// The commands of threads that another command is behind, by whatever ways: each is there once, and what it is behind itself is
/// not there. So what is asked of them does not grow with the number of ways.
#[derive(Clone, Debug)]
pub(super) struct Dependencies(Arc<[Arc<Fate>]>);
impl Dependencies {
    /// Of a command that a thread carries out.
    pub(super) fn of(fate: &Arc<Fate>) -> Self {
        Self(Arc::new([Arc::clone(fate)]))
    }
    /// Of a command that is behind all of these; `None`: none of them may fail yet, or has.
    pub(super) fn all(mut of: Vec<Self>) -> Option<Self> {
        of.retain(|one| !one.is_well());
        if of.len() < 2 {
            return of.pop();
        }
        let open = of.iter().flat_map(|one| one.0.iter()).filter(|fate| !fate.is_well());
        let mut fates: Vec<_> = open.collect();
        fates.sort_unstable_by_key(|fate| Arc::as_ptr(fate));
        fates.dedup_by(|one, other| Arc::ptr_eq(one, other));
        for later in fates.clone() {
            if let Some(before) = locked(&later.before).clone() {
                // One that has failed is kept: its queue may have been told, so that the later one is not behind it any more.
                fates.retain(|fate| fate.has_failed() || !before.contains(fate));
            }
        }
        let is_same = |one: &&Self| {
            fates.iter().map(|fate| Arc::as_ptr(fate)).eq(one.0.iter().map(Arc::as_ptr))
        };
        let same = of.iter().find(is_same).cloned();
        Some(same.unwrap_or_else(|| Self(fates.into_iter().cloned().collect())))
    }
    fn contains(&self, fate: &Arc<Fate>) -> bool {
        self.0.iter().any(|one| Arc::ptr_eq(one, fate))
    }
    /// Whether all are known to have gone well.
    pub(super) fn is_well(&self) -> bool {
        self.0.iter().all(|fate| fate.is_well())
    }
    pub(super) fn has_failed(&self) -> bool {
        self.0.iter().any(|fate| fate.has_failed())
    }
    /// What one of them failed with.
    pub(super) fn failure(&self) -> Option<Error> {
        self.0.iter().find_map(|fate| fate.failure())
    }
}

/// Those of a queue's commands that nobody has been told of.
#[derive(Debug, Default)]
pub(super) struct Fates {
    all: Mutex<Vec<Arc<Fate>>>,
    /// Whether there ever were some.
    has_any: AtomicBool,
    /// The last one, which all that follows is behind in a queue with an order.
    last: Mutex<Option<Dependencies>>,
    has_last: AtomicBool,
}
impl Fates {
    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Fate>>> {
        locked(&self.all)
    }
    /// Who next finishes the queue is to be told of this one, if it fails.
    pub(super) fn add(&self, fate: &Arc<Fate>) {
        let mut all = self.lock();
        all.retain(|known| Arc::strong_count(known) > 1 || known.has_failed());
        all.push(Arc::clone(fate));
        self.has_any.store(true, Release); // pairs with `open`
    }
    /// The next command is behind what depends on these.
    pub(super) fn follow(&self, dependencies: &Dependencies) {
        let mut last = locked(&self.last);
        let old = last.replace(dependencies.clone());
        self.has_last.store(true, Release); // pairs with `last`
        drop(last);
        drop(old); // not under the lock
    }
    /// All that may fail yet, or has.
    pub(super) fn open(&self) -> Vec<Dependencies> {
        if !self.has_any.load(Acquire) {
            return vec![];
        }
        self.lock().iter().filter(|fate| !fate.is_well()).map(Dependencies::of).collect()
    }
    /// What the next command is behind, if it may fail yet, or has.
    #[inline]
    pub(super) fn last(&self) -> Option<Dependencies> {
        if self.has_last.load(Acquire) { self.find_last() } else { None }
    }
    #[cold]
    fn find_last(&self) -> Option<Dependencies> {
        let mut last = locked(&self.last);
        let over = last.take_if(|last| last.is_well());
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
        let told = last.take_if(|last| last.has_failed());
        self.has_last.store(last.is_some(), Release);
        drop(last);
        drop(told); // not under the lock
        first.check()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ur_hal::ErrorKind;

    fn failed() -> Result<()> {
        Err(ErrorKind::DeviceLost.into())
    }
    #[test]
    fn commands_behind_one_of_a_thread_depend_on_it_once_by_however_many_ways() {
        let fate = Fate::by_thread();
        let mut pair = [Dependencies::of(&fate), Dependencies::of(&fate)];
        for _ in 0..1000 {
            pair = [(); 2].map(|()| Dependencies::all(pair.to_vec()).unwrap());
            assert!(pair.iter().all(|one| one.0.len() == 1));
        }
        assert_eq!(Arc::strong_count(&pair[0].0), 2, "they share what they depend on");
        fate.meet(failed);
        assert!(pair.iter().all(Dependencies::has_failed));
    }
    #[test]
    fn a_command_of_a_thread_stands_for_those_that_it_is_behind() {
        let mut pair = [Fate::by_thread(), Fate::by_thread()];
        let (mut all, mut before) = (pair.to_vec(), None);
        for _ in 0..1000 {
            let next = [Fate::by_thread(), Fate::by_thread()];
            for fate in &next {
                // Behind both of the pair before, and behind all that was before those.
                let known = pair.iter().map(Dependencies::of).chain(before.clone()).collect();
                let known = Dependencies::all(known).unwrap();
                assert_eq!(known.0.len(), 2);
                fate.follow(Some(known));
            }
            before = Dependencies::all(pair.iter().map(Dependencies::of).collect());
            all.extend(next.clone());
            pair = next;
        }
        all[0].meet(failed);
        let mut tried = 0;
        for fate in &all[1..] {
            fate.meet(|| {
                tried += 1;
                Ok(())
            });
        }
        assert_eq!(
            (tried, all.iter().filter(|fate| fate.has_failed()).count()),
            (1, all.len() - 1)
        );
    }
    #[test]
    fn a_command_of_a_thread_that_failed_is_not_forgotten_for_one_behind_it() {
        let [first, second] = [Fate::by_thread(), Fate::by_thread()];
        second.follow(Some(Dependencies::of(&first)));
        let both = || Dependencies::all([&first, &second].map(Dependencies::of).to_vec());
        assert_eq!(both().unwrap().0.len(), 1);
        first.meet(failed);
        assert!(both().unwrap().has_failed());
        second.meet(|| Ok(()));
        assert!(second.has_failed());
        let well = Fate::by_thread();
        well.meet(|| Ok(()));
        assert!(Dependencies::all(vec![Dependencies::of(&well)]).is_none());
    }
}
