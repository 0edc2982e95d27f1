//! The pending signals of other processes that a queue's command lists wait for and that may never come.
//! Threads that wait for the queue or submit to it check whether one of them is lost.
use super::{
    reusable::{PendingSignal, Progress},
    work::QueueState,
};
use std::{
    collections::VecDeque,
    sync::{Arc, MutexGuard, atomic::Ordering::*},
};
use ur_lock::locked;

impl QueueState {
    /// Whether its lists wait for signals that may never come.
    pub(super) fn has_debts(&self) -> bool {
        self.has_debts.load(Acquire)
    }
    /// Records that one of its lists waits for a signal.
    pub(super) fn owe(&self, debt: Arc<PendingSignal>) {
        // The oldest usually come first, so checking that one keeps the list short.
        let oldest = self.open().front().cloned();
        let paid = oldest.filter(|oldest| oldest.progress() == Progress::Paid);
        let mut open = self.open();
        if let (Some(paid), Some(oldest)) = (&paid, open.front())
            && Arc::ptr_eq(paid, oldest)
        {
            open.pop_front();
        }
        // Queues that wait for each other again and again would give each other the same ones.
        if !open.iter().any(|known| Arc::ptr_eq(known, &debt)) {
            open.push_back(debt);
        }
        self.has_debts.store(true, Release);
    }
    /// The signals that its lists wait for.
    pub(super) fn debts(&self) -> Vec<Arc<PendingSignal>> {
        match self.has_debts() {
            true => self.open().iter().cloned().collect(),
            false => vec![],
        }
    }
    fn open(&self) -> MutexGuard<'_, VecDeque<Arc<PendingSignal>>> {
        locked(&self.debts)
    }
    /// Whether a signal that one of its lists waits for will never come.
    pub(super) fn is_lost(&self) -> bool {
        if !self.has_debts() || self.is_lost.load(Acquire) {
            return self.is_lost.load(Acquire);
        }
        let (mut paid, mut is_lost) = (vec![], false);
        for debt in self.debts() {
            match debt.progress() {
                Progress::Pending => {}
                Progress::Paid => paid.push(debt),
                Progress::Lost => is_lost = true,
            }
        }
        self.is_lost.fetch_or(is_lost, AcqRel);
        let mut debts = self.open();
        let is_paid = |debt: &Arc<PendingSignal>| paid.iter().any(|one| Arc::ptr_eq(one, debt));
        debts.retain(|debt| !is_paid(debt)); // `paid` still holds references
        self.has_debts.store(!debts.is_empty(), Release);
        drop(debts);
        drop(paid); // outside the lock
        is_lost
    }
}
