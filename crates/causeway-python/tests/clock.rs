//! What is given back when its time is over, and what is not.
#![allow(unreachable_pub, missing_docs, reason = "the module is the crate's own")]
#[path = "../src/clock.rs"]
mod clock;

use clock::Clock;
use std::{
    sync::{Arc, Mutex},
    thread::sleep,
    time::{Duration, Instant},
};

fn clock() -> &'static Clock<Vec<u8>> {
    Box::leak(Box::default())
}
fn given() -> Arc<Mutex<Vec<u8>>> {
    Arc::new(Mutex::new(vec![1]))
}
fn inside(act: &mut dyn FnMut()) {
    act();
}
fn is_back(what: &Arc<Mutex<Vec<u8>>>) -> bool {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !what.lock().unwrap().is_empty() {
        if Instant::now() > deadline {
            return false;
        }
        sleep(Duration::from_millis(1));
    }
    true
}

#[test]
fn all_is_given_back_in_the_order_of_the_times_and_later_what_comes_later() {
    let (clock, all) = (clock(), [given(), given(), given()]);
    let never = given();
    for (what, seconds) in [(&never, 3600), (&never, u64::MAX)] {
        clock.give_back_after(Duration::from_secs(seconds), what, inside).unwrap();
    }
    for (what, milliseconds) in all.iter().zip([30, 1, 10]) {
        clock.give_back_after(Duration::from_millis(milliseconds), what, inside).unwrap();
    }
    assert!(
        is_back(&all[0]) && [&all[1], &all[2]].iter().all(|what| what.lock().unwrap().is_empty())
    );
    assert_eq!(*never.lock().unwrap(), [1]);
    assert_eq!(clock.entries(), 1);
    let later = given();
    clock.give_back_after(Duration::ZERO, &later, inside).unwrap();
    assert!(is_back(&later));
}
#[test]
fn a_thread_that_has_nothing_more_to_do_is_followed_by_another() {
    let clock = clock();
    for _ in 0..50 {
        let what = given();
        clock.give_back_after(Duration::ZERO, &what, inside).unwrap();
        assert!(is_back(&what));
    }
}
#[test]
fn what_is_gone_before_its_time_leaves_nothing() {
    let clock = clock();
    for _ in 0..5000 {
        clock.give_back_after(Duration::from_secs(3600), &given(), inside).unwrap();
    }
    assert!(clock.entries() <= 1024, "{}", clock.entries());
}
#[test]
fn after_the_end_nothing_is_given_back() {
    let (clock, what, late) = (clock(), given(), given());
    clock.give_back_after(Duration::from_millis(20), &what, inside).unwrap();
    clock.end();
    clock.give_back_after(Duration::ZERO, &late, inside).unwrap();
    sleep(Duration::from_millis(60));
    assert_eq!([&what, &late].map(|what| what.lock().unwrap().len()), [1, 1]);
}
