//! Which queues there are, what those that C released have still to do, and what was submitted up to a
//! moment: memory and objects that commands may use wait for that.
use super::{Device, native::event::EventKind, work::Work};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::Ordering::*};
use ur_adapter::{error::Result, log};
use ur_sys::ur_logger_level_t;

impl Work {
    /// The queue is gone; its lists stay until they are idle.
    pub(super) fn leave(&self) {
        if let Err(error) = self.flush() {
            log::say(ur_logger_level_t::ERROR, &error);
        }
        self.is_over.store(true, Release);
        EVERYONE.sweep();
    }
    fn is_done(&self) -> bool {
        self.is_over.load(Acquire) && self.is_idle().unwrap_or(true)
    }
    /// What it takes to know when everything submitted so far is done.
    fn note(self: &Arc<Self>, into: &mut Vec<(Arc<Self>, EventKind)>) -> Result<()> {
        self.flush()?;
        let turn = self.turn();
        for lane in turn.lanes() {
            if !lane.list().wait(0)? {
                let mark = self.cache().take(false)?;
                lane.turn().signal(mark.raw())?;
                into.push((Arc::clone(self), mark));
            }
        }
        Ok(())
    }
}

/// From now on it is one of them.
pub(super) fn enter(work: &Arc<Work>) {
    EVERYONE.add(work);
}

/// The queues of this process, and what released ones have still to do.
#[derive(Debug)]
struct Everyone(Mutex<Vec<Arc<Work>>>);
static EVERYONE: Everyone = Everyone(Mutex::new(Vec::new()));
impl Everyone {
    fn all(&self) -> MutexGuard<'_, Vec<Arc<Work>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
    fn add(&self, work: &Arc<Work>) {
        self.sweep();
        self.all().push(Arc::clone(work));
    }
    /// Lets go of what is over and idle; the driver is not asked under the lock.
    fn sweep(&self) {
        let over: Vec<_> = self.all().iter().filter(|w| w.is_over.load(Acquire)).cloned().collect();
        let gone: Vec<_> = over.into_iter().filter(|w| w.is_done()).collect();
        let mut all = self.all();
        let is_gone = |w: &Arc<Work>| gone.iter().any(|g| Arc::ptr_eq(g, w));
        let taken: Vec<_> = all.extract_if(.., |w| is_gone(w)).collect();
        drop(all);
        drop(taken);
    }
    fn of(&self, is_meant: impl Fn(&Work) -> bool) -> Vec<Arc<Work>> {
        self.all().iter().filter(|work| is_meant(work)).cloned().collect()
    }
}

/// Everything submitted up to a moment.
#[derive(Debug)]
pub(super) struct Ticket(Vec<(Arc<Work>, EventKind)>);
impl Ticket {
    /// Whether it is done; what failed is done.
    pub(super) fn is_over(&self) -> bool {
        self.0.iter().all(|(work, mark)| mark.is_complete().unwrap_or(true) || work.is_lost())
    }
    /// Waits until it is done; how commands ended is for their queues and events to tell.
    pub(super) fn wait(&self) {
        self.0.iter().for_each(|(work, mark)| drop(work.wait_for(mark)));
    }
}
impl Drop for Ticket {
    fn drop(&mut self) {
        for (work, mark) in self.0.drain(..) {
            work.cache().give(mark, false);
        }
    }
}
/// What was submitted so far to queues of the context with this handle; 0: of all contexts.
/// A queue whose driver is gone has nothing to wait for.
pub(super) fn ticket(context: usize) -> Ticket {
    let mut marks = vec![];
    for work in EVERYONE.of(|work| context == 0 || work.context == context) {
        let _ = work.note(&mut marks);
    }
    Ticket(marks)
}
/// Waits for all commands submitted so far to queues of `device`.
///
/// # Errors
/// As for [`Work::finish`].
pub(super) fn wait_for_device(device: &Device) -> Result<()> {
    let meant = EVERYONE.of(|work| work.device.is(device));
    // All have ended when this returns, failures or not.
    let mut done = Ok(());
    for work in meant {
        done = done.and(work.finish());
    }
    done
}
