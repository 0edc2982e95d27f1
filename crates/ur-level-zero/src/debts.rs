//! What the lists of a stream wait for that may never come: signals that other processes owe. Whether one of them is lost is asked
//! by whoever waits for the stream, or submits to it.
use super::{
    reusable::{PendingSignal, Progress},
    work::QueueState,
};
use std::{
    collections::VecDeque,
    sync::{Arc, MutexGuard, PoisonError, atomic::Ordering::*},
};

impl QueueState {
    /// Whether its lists wait for what may never come.
    pub(super) fn has_debts(&self) -> bool {
        self.has_debts.load(Acquire)
    }
    /// One of its lists waits for that.
    pub(super) fn owe(&self, debt: Arc<PendingSignal>) {
        // The oldest are paid first: what is kept is what is owed, and a little more.
        let oldest = self.open().front().cloned();
        let paid = oldest.filter(|oldest| oldest.progress() == Progress::Paid);
        let mut open = self.open();
        if let (Some(paid), Some(oldest)) = (&paid, open.front())
            && Arc::ptr_eq(paid, oldest)
        {
            open.pop_front();
        }
        open.push_back(debt);
        self.has_debts.store(true, Release);
    }
    /// What its lists wait for.
    pub(super) fn debts(&self) -> Vec<Arc<PendingSignal>> {
        match self.has_debts() {
            true => self.open().iter().cloned().collect(),
            false => vec![],
        }
    }
    fn open(&self) -> MutexGuard<'_, VecDeque<Arc<PendingSignal>>> {
        self.debts.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Whether one of its lists waits for what never comes.
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
        debts.retain(|debt| !is_paid(debt)); // `paid` still keeps what they keep
        self.has_debts.store(!debts.is_empty(), Release);
        drop(debts);
        drop(paid); // not under the lock
        is_lost
    }
}
