//! When a queue should take another counter, and whether a thread sleeps on one.
use super::{super::Progress, *};
use crate::{Access, arena::Slot};
use std::{
    thread,
    time::{Duration, Instant},
};

const PATIENCE: Duration = Duration::from_secs(10);

/// An arena outside the pool, so that tests do not share it.
fn arena() -> Arena {
    Arena::make(Access::SameUser, 0).unwrap()
}

#[test]
fn a_counter_is_retired_when_it_is_tired_and_not_before() {
    let arena = arena();
    let index = arena.take_counter().unwrap().index();
    let counter = Counter::new(arena, index, TIRED_VALUE);
    assert!(!counter.is_retired());
    let value = counter.reserve();
    assert!(counter.is_retired(), "what is reserved next should come from another");
    counter.complete(value);
}
#[test]
fn a_counter_that_failed_is_retired() {
    let counter = arena().take_counter().unwrap();
    assert!(!counter.is_retired());
    counter.fail();
    assert!(counter.is_retired());
}
#[test]
fn a_counter_says_whether_somebody_sleeps_on_it() {
    let arena = arena();
    let (slot, generation) = arena.own().unwrap().new_slot(&arena.0.words).unwrap();
    let slot = Slot::new(arena.clone(), slot, generation);
    let counter = arena.take_counter().unwrap();
    assert!(!counter.is_waited_for());
    let value = counter.reserve();
    slot.publish(&counter, value);
    let super::super::Captured::PendingSignal(debt) = slot.capture().unwrap() else {
        panic!("nothing is complete yet")
    };
    thread::scope(|scope| {
        let waits = scope.spawn(|| debt.wait(Some(Instant::now() + PATIENCE)));
        let end = Instant::now() + PATIENCE;
        while !counter.is_waited_for() {
            assert!(Instant::now() < end, "nobody ever sleeps");
            thread::yield_now();
        }
        counter.complete(value);
        assert_eq!(waits.join().unwrap(), Progress::Complete);
    });
    assert!(!counter.is_waited_for());
}
