//! Slots and counters: which may be named, when they are reused, and full arenas.
use super::*;

#[test]
fn a_place_is_used_again_only_when_nobody_has_it_open() {
    let exporter = exporter();
    let (importer, link) = importer(&exporter);
    let slot = slot_of(&exporter);
    let (index, generation) = (slot.index(), slot.generation());
    let opened = open(&importer, &link, &slot);
    let status = || exporter.own().unwrap().ledger().status(index);
    drop(slot);
    assert_eq!(status(), crate::ledger::live(generation));
    assert!(opened.capture().is_ok());
    let again = opened.clone();
    drop(opened);
    assert!(again.capture().is_ok());
    drop(again);
    assert_ne!(status(), crate::ledger::live(generation));
    let stale = importer.open_slot(index, generation).unwrap_err();
    assert_eq!(stale.kind(), ErrorKind::Freed);
}
#[test]
fn a_place_used_again_is_another_generation() {
    let exporter = exporter();
    let (importer, link) = importer(&exporter);
    let first = slot_of(&exporter);
    let (index, generation) = (first.index(), first.generation());
    let stale = open(&importer, &link, &first);
    exporter.slot_closed(link.participant, index, generation).unwrap(); // the importer reports this falsely
    drop(first);
    // Slots are reused late; take them all until this one returns.
    let mut held = Vec::new();
    let again = loop {
        let slot = slot_of(&exporter);
        if slot.index() == index {
            break slot;
        }
        held.push(slot);
    };
    assert_ne!(again.generation(), generation);
    assert!(matches!(again.capture().unwrap(), Captured::Complete));
    assert_eq!(stale.capture().unwrap_err().kind(), ErrorKind::Freed);
}
#[test]
fn what_peers_ask_is_checked() {
    let exporter = exporter();
    let (importer, _link) = importer(&exporter);
    let us = importer.participant();
    let nonsense = |result: Result<()>| {
        assert_eq!(result.unwrap_err().kind(), ErrorKind::PeerNonsense);
    };
    let slot = slot_of(&exporter);
    let (index, generation) = (slot.index(), slot.generation());
    nonsense(exporter.slot_closed(us, index, generation));
    nonsense(exporter.slot_opened(us, index, generation + 1));
    nonsense(exporter.slot_opened(us, u16::MAX, 0));
    nonsense(exporter.slot_opened(us + 1, index, generation));
    let ours = exporter.take_counter().unwrap();
    nonsense(exporter.release_counter(us, ours.index()));
    nonsense(exporter.release_counter(us, 0));
    nonsense(exporter.release_counter(us, u16::MAX));
    nonsense(exporter.grant_counter(us + 1).map(drop));
    nonsense(exporter.debtor(0).map(drop));
    nonsense(exporter.debtor(u16::MAX).map(drop));
    nonsense(importer.open_slot(u16::MAX, 0).map(drop));
    assert_eq!(importer.descriptors().unwrap_err().kind(), ErrorKind::Unsupported);
}
#[test]
fn a_pair_of_nonsense_is_an_error_and_never_followed() {
    let exporter = exporter();
    let slot = slot_of(&exporter);
    let scribble = |word: u64| exporter.0.words.word(slot_word(slot.index())).store(word, Release);
    for (word, found) in [
        (u64::MAX, Err(ErrorKind::PeerNonsense)), // no counter has this number
        (0x4000 << 48 | 9, Err(ErrorKind::PeerNonsense)), // no process has this counter
        (9, Ok(())),                              // counter 0 is "complete", whatever the value
    ] {
        scribble(word);
        let captured = slot.capture();
        assert_eq!(captured.map(drop).map_err(|e| e.kind()), found, "{word:#x}");
    }
}
#[test]
fn a_counter_overwritten_by_a_peer_is_never_granted() {
    let exporter = exporter();
    let (_importer, link) = importer(&exporter);
    // The next three: dead, at the end of its values, and usable.
    let first = exporter.take_counter().unwrap().index() + 1;
    exporter.0.words.word(layout::mark_word(first)).store(protocol::DEAD, Release);
    exporter.0.words.word(layout::counter_word(first + 1)).store(!protocol::ENDED, Release);
    assert_eq!(link.take_counter().unwrap().0, first + 2);
}
#[test]
fn a_full_arena_says_so_and_room_comes_back() {
    let exporter = exporter();
    let mut slots: Vec<_> = (0..layout::SLOTS).map(|_| slot_of(&exporter)).collect();
    let full = exporter.own().unwrap().new_slot(&exporter.0.words).unwrap_err();
    assert_eq!(full.kind(), ErrorKind::Full);
    assert_eq!(exporter.line(1, -1).unwrap_err().kind(), ErrorKind::Full);
    slots.pop();
    let line = exporter.line(1, -1).unwrap();
    drop(line);
    slot_of(&exporter);
    let counters: Vec<_> = (1..layout::COUNTERS).map(|_| exporter.take_counter()).collect();
    assert!(counters.iter().all(Result::is_ok));
    assert_eq!(exporter.take_counter().unwrap_err().kind(), ErrorKind::Full);
}
#[test]
fn a_full_arena_is_followed_by_another() {
    let access = Access::User(4_000_000_001); // a policy that only this test uses
    let first = slot(access).unwrap();
    let mut slots = Vec::new();
    let next = loop {
        let slot = slot(access).unwrap();
        if slot.arena() != first.arena() {
            break slot;
        }
        slots.push(slot);
    };
    assert_eq!(slots.len() + 1, usize::from(layout::SLOTS));
    assert_ne!(next.arena().number(), first.arena().number());
    assert!(slot(Access::User(4_000_000_002)).unwrap().arena() != next.arena());
}
#[test]
fn a_line_says_how_it_ended_until_it_is_another_exports() {
    let exporter = exporter();
    let (importer, _link) = importer(&exporter);
    let line = exporter.line(77, 5).unwrap();
    let (index, generation) = (line.index(), line.generation());
    let seen = || (importer.check(index, 77, generation), exporter.check(index, 77, generation));
    assert_eq!(seen(), (State::Live, State::Live));
    assert_eq!(importer.check(index, 78, generation), State::Withdrawn);
    assert_eq!(exporter.check(u16::MAX, 77, generation), State::Withdrawn);
    line.end_freed();
    assert_eq!(seen(), (State::Freed, State::Freed));
    let line = exporter.line(79, 5).unwrap();
    let (index, generation) = (line.index(), line.generation());
    drop(line);
    assert_eq!(importer.check(index, 79, generation), State::Withdrawn);
    assert_eq!(importer.check(index, 79, generation + 1), State::Forgotten);
}
#[test]
#[should_panic(expected = "its own arena only")]
fn a_counter_of_another_arena_is_never_published() {
    let slot = slot_of(&exporter());
    let counter = exporter().take_counter().unwrap();
    let value = counter.reserve();
    slot.publish(&counter, value);
}
