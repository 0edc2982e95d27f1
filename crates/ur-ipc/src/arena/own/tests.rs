//! The numbers of counters and slots, and the identity of arenas.
use super::*;
use crate::{
    Access, ErrorKind,
    arena::{Arena, Counter, Link, Slot, pool::Line, pool::from_own, slot},
};
use rustix::{
    fd::AsFd,
    process::{PidfdFlags, getpid, pidfd_open},
};
use std::{
    cell::Cell,
    collections::HashSet,
    hash::{BuildHasher, RandomState},
    sync::Arc,
};

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
    let hasher = RandomState::new();
    assert_ne!(hasher.hash_one(&one), hasher.hash_one(&other), "tables find it quickly");
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

/// A link that is never used.
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
        let (counter, start) = own.take_counter(&arena.0.words).unwrap();
        assert!(start > 0, "nobody was ever given this value");
        if has_failed {
            protocol::fail(&arena.0.counter(counter));
        }
        own.release_counter(&arena.0.words, EXPORTER, counter).unwrap();
        assert_eq!(own.arena_state().counters.free.contains(&counter), !has_failed);
    }
}
/// Makes an arena look as a forked child of this process would see it.
fn inherit(arena: &mut Arena) {
    let core = Arc::get_mut(&mut arena.0).expect("nobody else has it yet");
    core.fork = core.fork.wrapping_add(1);
}
#[test]
fn what_a_child_inherits_is_refused_there_and_stays_its_parents() {
    let mut arena = Arena::make(Access::SameUser, 0).unwrap();
    let own = arena.own().unwrap();
    let (slot, slots) = own.new_slot(&arena.0.words).unwrap();
    let (index, generation) = own.new_line(7, 3).unwrap();
    let (counter, start) = own.take_counter(&arena.0.words).unwrap();
    let (dead, _, _) = own.grant(&arena.0.words, EXPORTER).unwrap();
    own.ledger.hand_over(dead, Some(EXPORTER + 1));
    inherit(&mut arena);

    let forked = |result: Result<()>| assert_eq!(result.unwrap_err().kind(), ErrorKind::Forked);
    forked(arena.take_counter().map(drop));
    forked(arena.line(7, 3).map(drop));
    let event = Slot::new(arena.clone(), slot, slots);
    forked(event.capture().map(drop));
    drop(event);
    let owing = Counter::new(arena.clone(), counter, start);
    owing.reserve();
    drop(owing);
    let line = || Line { arena: arena.clone(), index, generation, last: State::Withdrawn };
    line().end_freed();
    assert_eq!(arena.check(index, 7, generation), State::Live);
    drop(line());
    arena.process_died(EXPORTER + 1);

    assert!(arena.own().unwrap().has(slot));
    assert_eq!(arena.check(index, 7, generation), State::Live);
    for counter in [counter, dead] {
        assert_eq!(arena.0.counter(counter).mark() & DEAD, 0);
    }
}
#[test]
fn what_a_child_inherits_of_a_joined_arena_says_nothing_to_the_exporter() {
    let own = Arena::make(Access::SameUser, 0).unwrap();
    let (arena, ledger) = own.descriptors().unwrap();
    let (index, generation) = own.own().unwrap().new_slot(&own.0.words).unwrap();
    let (instance, number, link) = (own.instance(), own.number(), Arc::new(Untrodden));
    let mut joined = Arena::joined(&arena, &ledger, instance, number, EXPORTER + 1, link).unwrap();
    inherit(&mut joined);
    let forked = |result: Result<()>| assert_eq!(result.unwrap_err().kind(), ErrorKind::Forked);
    forked(joined.take_counter().map(drop));
    forked(joined.open_slot(index, generation).map(drop));
    drop(Slot::new(joined.clone(), index, generation));
    joined.process_died(EXPORTER);
    assert!(!joined.is_orphaned(), "that is for the child's own arenas to hear");
}
#[test]
fn an_export_offers_its_descriptor_and_an_event_none() {
    let arena = Arena::make(Access::SameUser, 0).unwrap();
    let (slot, _) = arena.own().unwrap().new_slot(&arena.0.words).unwrap();
    let line = arena.line(7, 3).unwrap();
    let (_, fd) = arena.descriptors().unwrap();
    let ledger = ledger::Reader::of(fd.as_fd(), arena.instance(), arena.number()).unwrap();
    assert_eq!(ledger.descriptor(slot), None);
    assert_eq!(ledger.descriptor(line.index()), Some(3));
}
#[test]
fn an_event_is_itself_alone() {
    let make = || Arena::make(Access::SameUser, 0).unwrap();
    let event = |arena: &Arena| {
        let (index, generation) = arena.own().unwrap().new_slot(&arena.0.words).unwrap();
        Slot::new(arena.clone(), index, generation)
    };
    let (arena, elsewhere) = (make(), make());
    let one = event(&arena);
    assert!(
        one.same(&one.clone())
            && one.same(&Slot::new(arena.clone(), one.index(), one.generation()))
    );
    let (neighbour, namesake) = (event(&arena), event(&elsewhere));
    assert_eq!((namesake.index(), namesake.generation()), (one.index(), one.generation()));
    let successor = Slot::new(arena.clone(), one.index(), one.generation() + 1);
    for other in [neighbour, namesake, successor] {
        assert!(!one.same(&other), "{other:?}");
    }
}
#[test]
fn a_line_begun_again_is_of_another_generation() {
    let arena = Arena::make(Access::SameUser, 0).unwrap();
    arena.own().unwrap().arena_state().slots = Numbers::new(0, 1);
    let first = arena.line(7, 3).unwrap();
    let (index, generation) = (first.index(), first.generation());
    drop(first);
    let again = arena.line(7, 3).unwrap();
    assert_eq!((again.index(), again.generation()), (index, generation + 1));
    assert_eq!(arena.check(index, 7, generation), State::Forgotten);
    assert_eq!(arena.check(index, 7, again.generation()), State::Live);
}
#[test]
fn numbers_of_processes_begin_again_and_none_is_given_twice_at_a_time() {
    let arena = Arena::make(Access::SameUser, 0).unwrap();
    let join = || arena.join(pidfd_open(getpid(), PidfdFlags::empty()).unwrap()).unwrap();
    assert_eq!([join(), join()], [1, 2]);
    arena.participant_left(1);
    arena.own().unwrap().arena_state().next_participant = u32::MAX - 2;
    // Neither the exporter's number nor the reserved one is given out.
    assert_eq!([join(), join(), join()], [u32::MAX - 2, 1, 3]);
}
#[test]
fn what_is_wrong_with_an_arena_is_told_and_not_tried_in_the_next() {
    let access = Access::User(4_000_000_003); // a policy that only this test uses
    let kept = slot(access).unwrap();
    let asked = Cell::new(0);
    let refused = from_own(access, |arena| -> Result<()> {
        asked.set(asked.get() + 1);
        assert!(arena == kept.arena());
        Err(nonsense("it is only a test"))
    });
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::PeerNonsense);
    assert_eq!(asked.get(), 1);
}
#[test]
fn an_arena_that_only_the_pool_has_makes_room_for_another() {
    let access = Access::User(4_000_000_004); // a policy that only this test uses
    let kept = slot(access).unwrap();
    // The first arena that is not among these, which are reported to the pool as full.
    let beside = |those: &[u64]| {
        from_own(access, |arena| match those.contains(&arena.id()) {
            true => Err(full("tests")),
            false => Ok((arena.id(), arena.downgrade())),
        })
        .unwrap()
    };
    let ours = kept.arena().id();
    let (unused, weak) = beside(&[ours]);
    let (third, _) = beside(&[ours, unused]);
    assert!(weak.is_gone() && third != unused);
    let still_there = from_own(access, |arena| match arena.id() == ours {
        true => Ok(()),
        false => Err(full("tests")),
    });
    still_there.expect("who has an event keeps its arena in the pool");
}
