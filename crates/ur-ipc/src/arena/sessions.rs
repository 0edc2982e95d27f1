//! Sessions leave nothing behind, however they end. This is tested within one process; `tests/sessions.rs` uses many.
use super::layout::{COUNTERS, TIRED_VALUE};
use super::{tests::*, *};
use crate::ErrorKind;

/// More sessions than there are counters.
const SESSIONS: usize = 100_000;

fn left(arena: &Arena) -> usize {
    arena.own().unwrap().counters_left()
}
/// A session that signals once and ends in the given way.
fn session(exporter: &Arena, slot: &Slot, end: impl FnOnce(&Arena, Counter, u64)) {
    let (importer, link) = importer(exporter);
    let opened = open(&importer, &link, slot);
    let counter = importer.take_counter().unwrap();
    let value = counter.reserve();
    assert!(opened.publish(&counter, value));
    end(&importer, counter, value);
}

#[test]
fn counters_outlast_any_number_of_sessions_however_they_end() {
    let exporter = exporter();
    let slot = slot_of(&exporter);
    for number in 0..SESSIONS {
        session(&exporter, &slot, |importer, counter, value| {
            let us = importer.participant();
            match number % 3 {
                0 => {
                    counter.complete(value);
                    drop(counter);
                    exporter.participant_left(us);
                    assert!(matches!(slot.capture().unwrap(), Captured::Complete));
                }
                1 => {
                    counter.fail();
                    drop(counter);
                    exporter.participant_left(us);
                    assert_eq!(debt(&slot).progress(), Progress::Failed);
                }
                _ => {
                    drop(counter); // which fails its pending signal
                    exporter.participant_left(us);
                    assert_eq!(debt(&slot).progress(), Progress::Failed);
                }
            }
        });
    }
    assert!(left(&exporter) > usize::from(COUNTERS) - 500, "{}", left(&exporter));
    let held = exporter.own().unwrap().held_by_others();
    assert!(held < 500, "{held}");
}
#[test]
fn the_debt_of_one_that_is_gone_stays_failed_when_its_counter_is_used_again() {
    let exporter = exporter();
    let slots = [slot_of(&exporter), slot_of(&exporter)];
    let [mut lost, mut paid] = [None, None];
    let (importer, link) = importer(&exporter);
    let (one, other) = (open(&importer, &link, &slots[0]), open(&importer, &link, &slots[1]));
    let counter = importer.take_counter().unwrap();
    let index = counter.index();
    let (first, second) = (counter.reserve(), counter.reserve());
    one.publish(&counter, first);
    paid.replace(debt(&slots[0]));
    other.publish(&counter, second);
    lost.replace(debt(&slots[1]));
    counter.complete(first);
    drop(counter); // which fails the second
    exporter.participant_left(importer.participant());
    // Takes all free counters, including those that are revived.
    let all: Vec<_> = std::iter::from_fn(|| exporter.take_counter().ok()).collect();
    let again = all.iter().find(|counter| counter.index() == index).expect("it came back");
    again.complete(again.reserve());
    assert_eq!(paid.unwrap().progress(), Progress::Complete);
    assert_eq!(lost.unwrap().progress(), Progress::Failed);
    assert!(matches!(slots[0].capture().unwrap(), Captured::Complete));
    assert_eq!(debt(&slots[1]).progress(), Progress::Failed, "it names the counter no more");
    let value = again.reserve();
    assert!(value > protocol::STRIDE, "above all that was promised: {value}");
    slots[1].publish(again, value);
    again.complete(value);
    assert!(matches!(slots[1].capture().unwrap(), Captured::Complete));
}
#[test]
fn a_counter_may_die_more_often_than_its_lives_are_remembered() {
    let exporter = exporter();
    let index = exporter.take_counter().unwrap().index();
    let word = exporter.0.counter(index);
    let mut owed = Vec::new();
    for _ in 0..layout::LIVES + 2 {
        let start = protocol::value_of(protocol::Word::load(&word));
        let deaths = protocol::deaths_of(protocol::Word::mark(&word));
        protocol::complete(&word, start + 1);
        owed.push((start + 1, start + 2, deaths));
        protocol::fail(&word);
        assert!(protocol::revive(&word, TIRED_VALUE));
    }
    let look = |value, deaths| protocol::judge(&word, protocol::Word::load(&word), value, deaths);
    for (at, (paid, lost, deaths)) in owed.iter().rev().enumerate() {
        assert_eq!(look(*lost, *deaths), Progress::Failed);
        let expected = match at + 1 < layout::LIVES as usize {
            true => Progress::Complete,
            false => Progress::Failed, // nothing is known of that life any more, so it counts as failed
        };
        assert_eq!(look(*paid, *deaths), expected, "{at} lives ago");
    }
}
#[test]
fn whoever_takes_all_counters_it_can_leaves_half_of_them_to_others() {
    let exporter = exporter();
    let (hog, _link) = importer(&exporter);
    let mut taken = Vec::new();
    let refused = loop {
        match hog.take_counter() {
            Ok(counter) => taken.push(counter),
            Err(e) => break e,
        }
    };
    assert_eq!(refused.kind(), ErrorKind::Full);
    assert!(taken.len() > usize::from(COUNTERS) / 2 - 2, "{}", taken.len());
    // Under another participant number it is still the same process. The exporter itself is not limited.
    let (again, _link) = importer(&exporter);
    assert_eq!(again.take_counter().unwrap_err().kind(), ErrorKind::Full);
    let ours: Vec<_> = (0..1000).map(|_| exporter.take_counter().unwrap()).collect();
    drop(ours);
    drop(taken.split_off(taken.len() / 2));
    assert!(again.take_counter().is_ok(), "what it gives back it may have again");
}
#[test]
fn a_stale_holders_signal_does_not_reach_the_next_event() {
    let exporter = exporter();
    let (importer, link) = importer(&exporter);
    let first = slot_of(&exporter);
    let index = first.index();
    let stale = open(&importer, &link, &first);
    exporter.slot_closed(link.participant, index, first.generation()).unwrap(); // the importer reports this falsely
    drop(first);
    let mut held = Vec::new();
    let next = loop {
        let slot = slot_of(&exporter);
        if slot.index() == index {
            break slot;
        }
        held.push(slot);
    };
    let counter = importer.take_counter().unwrap();
    assert!(!stale.publish(&counter, counter.reserve()), "nobody has that event any more");
    assert!(matches!(next.capture().unwrap(), Captured::Complete));
}
#[test]
fn a_late_write_of_a_device_does_not_take_a_death_away() {
    let exporter = exporter();
    let (importer, link) = importer(&exporter);
    let slots = [slot_of(&exporter), slot_of(&exporter)];
    let opened = slots.each_ref().map(|slot| open(&importer, &link, slot));
    let counter = exporter.take_counter().unwrap();
    counter.hand_to_device();
    let values = [counter.reserve(), counter.reserve()];
    for (slot, value) in slots.iter().zip(values) {
        slot.publish(&counter, value);
    }
    let debts = opened.each_ref().map(debt);
    importer.process_died(EXPORTER);
    let word = importer.0.words.word(layout::counter_word(counter.index()));
    word.store(protocol::word_of(values[0]), std::sync::atomic::Ordering::Release);
    assert_eq!(debts[0].wait(soon()), Progress::Complete);
    assert_eq!(debts[1].wait(soon()), Progress::Failed);
}
