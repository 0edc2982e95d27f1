//! Memory on its way back: freed or closed here, but perhaps still used by commands enqueued before, or
//! still open in another process. Nothing here waits; it is looked at again whenever memory is asked
//! for or given up, and when the last lease of a freed object ends.
use crate::linger::Ticket;
use std::{
    collections::{HashMap, VecDeque},
    sync::{Mutex, MutexGuard, OnceLock, PoisonError},
};
use ur_ipc::Kind;

/// What waits, in the order of the frees.
type Waiting<T, S> = VecDeque<(Vec<T>, S)>;
/// All that waits in a process: `S` for commands before, `K` for other processes.
pub(crate) struct Limbo<T, S, K> {
    waiting: Mutex<Waiting<T, S>>,
    /// Freed memory that others have open, by object; its like is lent again.
    leased: Mutex<HashMap<(u64, Kind), K>>,
    listening: OnceLock<()>,
}
impl<T, S, K> Default for Limbo<T, S, K> {
    fn default() -> Self {
        let (waiting, leased) = (Mutex::default(), Mutex::default());
        Self { waiting, leased, listening: OnceLock::new() }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<T: Ticket, S, K> Limbo<T, S, K> {
    /// Drops `spent` as soon as all of `moments` have passed.
    pub(crate) fn after(&self, mut moments: Vec<T>, spent: S) {
        moments.retain(|moment| !moment.is_over());
        match moments.is_empty() {
            true => drop(spent),
            false => locked(&self.waiting).push_back((moments, spent)),
        }
        self.sweep();
    }
    /// Drops what no command uses any more, the oldest first, up to the first that is in use: asking
    /// costs a call of the driver each.
    pub(crate) fn sweep(&self) {
        loop {
            // Taken out: nothing is asked of the driver under the lock.
            let Some((moments, spent)) = locked(&self.waiting).pop_front() else { return };
            if !moments.iter().all(Ticket::is_over) {
                return locked(&self.waiting).push_front((moments, spent));
            }
            drop(spent); // which may come here again
        }
    }
    /// Drops all that no command uses any more: where memory has run out.
    pub(crate) fn sweep_all(&self) {
        let all: Waiting<T, S> = std::mem::take(&mut *locked(&self.waiting));
        let is_over = |(moments, _): &(Vec<T>, S)| moments.iter().all(Ticket::is_over);
        let (over, rest): (Waiting<T, S>, Waiting<T, S>) = all.into_iter().partition(is_over);
        locked(&self.waiting).extend(rest);
        drop(over);
    }
    /// Takes the memory of an object that was exported and is no more. It goes back for others to have
    /// when no other process has the object open: `release` is told, which says so here.
    pub(crate) fn when_unleased(
        &self,
        (object, kind): (u64, Kind),
        kept: K,
        release: fn(u64, Kind),
    ) {
        self.listening.get_or_init(|| {
            ur_ipc::on_leases_gone(release).expect("an adapter asks for one function, and 32 may");
        });
        locked(&self.leased).insert((object, kind), kept);
        // In this order: a lease that ends in between finds the memory here.
        if !ur_ipc::leased(object, kind) {
            release(object, kind);
        }
    }
    /// On whatever thread saw the last lease end.
    pub(crate) fn release(&self, object: u64, kind: Kind) {
        let kept = locked(&self.leased).remove(&(object, kind));
        drop(kept); // not under the lock: it calls the driver
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{cell::Cell, rc::Rc};

    /// Over once its cell says so.
    #[derive(Clone, Default)]
    struct Moment(Rc<Cell<bool>>);
    impl Ticket for Moment {
        fn is_over(&self) -> bool {
            self.0.get()
        }
    }

    #[test]
    fn what_commands_may_use_stays_and_the_oldest_of_it_is_asked_first() {
        let limbo = Limbo::<Moment, Rc<()>, ()>::default();
        let (one, other, memory) = (Moment::default(), Moment::default(), Rc::new(()));
        let kept = || Rc::strong_count(&memory) - 1;
        limbo.after(vec![], Rc::clone(&memory));
        assert_eq!(kept(), 0, "nothing came before");
        limbo.after(vec![one.clone()], Rc::clone(&memory));
        limbo.after(vec![one.clone(), other.clone()], Rc::clone(&memory));
        limbo.after(vec![other.clone()], Rc::clone(&memory));
        assert_eq!(kept(), 3);
        other.0.set(true);
        limbo.sweep();
        assert_eq!(kept(), 3, "the oldest is in use");
        limbo.sweep_all();
        assert_eq!(kept(), 2);
        one.0.set(true);
        limbo.sweep();
        assert_eq!(kept(), 0);
    }
}
