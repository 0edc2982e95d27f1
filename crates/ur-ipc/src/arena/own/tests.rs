//! Numbers of counters and slots, and what tells arenas apart.
use super::*;
use crate::{
    Access, ErrorKind,
    arena::{Arena, Link},
};
use std::{collections::HashSet, sync::Arc};

#[test]
fn numbers_stop_before_their_end() {
    let mut numbers = Numbers::new(1, 3);
    assert_eq!([(); 4].map(|()| numbers.take()), [Some(1), Some(2), None, None]);
    numbers.give(2);
    assert_eq!([(); 2].map(|()| numbers.take()), [Some(2), None]);
}
#[test]
fn numbers_are_used_again_late_and_in_order() {
    let end = u16::try_from(LATE).unwrap() + 10;
    let mut numbers = Numbers::new(0, end);
    let first: Vec<_> = (0..LATE).map(|_| numbers.take().unwrap()).collect();
    first.iter().for_each(|number| numbers.give(*number));
    assert_eq!(numbers.take(), Some(0), "as many as are to wait do");
    numbers.give(0);
    let fresh = u16::try_from(LATE).unwrap();
    numbers.free.pop_back();
    assert_eq!(numbers.take(), Some(fresh), "there are fresh ones while fewer wait");
}
#[test]
#[expect(clippy::mutable_key_type, reason = "what is hashed of it never changes")]
fn an_arena_is_itself_alone() {
    let make = || Arena::make(Access::SameUser, 0).unwrap();
    let (one, other) = (make(), make());
    assert!(one == one.clone() && one != other && one.id() != other.id());
    let all = HashSet::from([one.clone(), one.clone(), other.clone()]);
    assert_eq!(all.len(), 2);
    assert!(all.contains(&one) && one.is_own() && !one.is_orphaned());
    assert_eq!(one.participant(), 0, "the exporter's number");
}
#[test]
fn who_holds_an_arena_weakly_does_not_keep_it() {
    let arena = Arena::make(Access::SameUser, 0).unwrap();
    let weak = arena.downgrade();
    assert!(!weak.is_gone());
    assert!(weak.upgrade().is_some_and(|same| same == arena));
    drop(arena);
    assert!(weak.is_gone() && weak.upgrade().is_none());
}

/// A way to an exporter that is never gone.
struct Untrodden;
impl Link for Untrodden {
    fn take_counter(&self) -> Result<(u16, u32)> {
        unreachable!("nobody joined")
    }
    fn release_counter(&self, _: u16) {
        unreachable!("nobody joined")
    }
    fn slot_closed(&self, _: u16, _: u32) {
        unreachable!("nobody joined")
    }
    fn watch(&self, _: u16, _: u32) -> Result<bool> {
        unreachable!("nobody joined")
    }
}
#[test]
fn nobody_joins_under_the_exporters_number_or_under_none() {
    let own = Arena::make(Access::SameUser, 0).unwrap();
    let (arena, ledger) = own.descriptors().unwrap();
    for participant in [EXPORTER, u32::MAX] {
        let (instance, number, link) = (own.instance(), own.number(), Arc::new(Untrodden));
        let joined = Arena::joined(&arena, &ledger, instance, number, participant, link);
        assert_eq!(joined.err().map(|e| e.kind()), Some(ErrorKind::PeerNonsense));
    }
}
#[test]
fn a_counter_that_goes_back_is_used_again_unless_it_failed() {
    let arena = Arena::make(Access::SameUser, 0).unwrap();
    let own = arena.own().unwrap();
    for has_failed in [false, true] {
        let (counter, start) = own.take_counter(&arena.0).unwrap();
        assert!(start > 0, "nobody was ever given this value");
        if has_failed {
            protocol::fail(&arena.0.counter(counter));
        }
        own.release_counter(&arena.0, EXPORTER, counter).unwrap();
        assert_eq!(own.books().counters.free.contains(&counter), !has_failed);
    }
}
