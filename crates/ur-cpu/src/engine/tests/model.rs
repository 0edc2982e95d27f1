//! `gate.rs` with loom's atomics and locks: every interleaving of a sleeping and a ringing thread.
mod sync {
    pub(super) use loom::sync::{
        Condvar, Mutex, MutexGuard,
        atomic::{AtomicU32, AtomicU64, Ordering, fence},
    };
    pub(super) use std::sync::PoisonError;

    pub(super) fn locked<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
        lock.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
#[expect(clippy::duplicate_mod, reason = "once over the standard library, once over loom")]
#[path = "../gate.rs"]
mod gate;

use gate::{Gate, Odometer, Stored};
use loom::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::*},
    },
    thread,
};

fn model(run: impl Fn() + Send + Sync + 'static) {
    let mut bounded = loom::model::Builder::new();
    bounded.preemption_bound = Some(3); // a greater bound takes minutes and has found nothing more
    bounded.check(run);
}

#[test]
fn no_sleeper_misses_a_ring() {
    model(|| {
        let shared = Arc::new((Gate::default(), AtomicBool::new(false)));
        let sleepers: Vec<_> = (0..2)
            .map(|_| {
                let shared = Arc::clone(&shared);
                thread::spawn(move || shared.0.wait_until(|| shared.1.load(Acquire)))
            })
            .collect();
        shared.1.store(true, Release);
        shared.0.ring(Stored::now());
        sleepers.into_iter().for_each(|sleeper| sleeper.join().unwrap());
    });
}

#[test]
fn two_ringers_wake_the_one_who_waits_for_both() {
    model(|| {
        let shared = Arc::new((Gate::default(), [AtomicBool::new(false), AtomicBool::new(false)]));
        let ringers: Vec<_> = (0..2)
            .map(|i| {
                let shared = Arc::clone(&shared);
                thread::spawn(move || {
                    shared.1[i].store(true, Release);
                    shared.0.ring(Stored::now());
                })
            })
            .collect();
        shared.0.wait_until(|| shared.1.iter().all(|flag| flag.load(Acquire)));
        ringers.into_iter().for_each(|ringer| ringer.join().unwrap());
    });
}

#[test]
fn sleepers_for_different_values_are_all_woken_by_theirs() {
    model(|| {
        let odometer = Arc::new(Odometer::new());
        let sleepers: Vec<_> = [1, 2]
            .into_iter()
            .map(|value| {
                let odometer = Arc::clone(&odometer);
                thread::spawn(move || {
                    odometer.wait_for(value);
                    assert!(odometer.reached() >= value);
                })
            })
            .collect();
        for value in [1, 2] {
            odometer.reach(value);
            odometer.ring(Stored::now());
        }
        sleepers.into_iter().for_each(|sleeper| sleeper.join().unwrap());
    });
}
