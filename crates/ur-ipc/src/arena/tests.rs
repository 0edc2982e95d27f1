//! Two mappings of the same memfds stand for two processes here; across real ones it is `tests/arena_processes.rs`.
use super::{layout::slot_word, shared::IDLE, *};
use crate::{Access, Error, ErrorKind, Result, ledger::State};
use rustix::process::{PidfdFlags, getpid, pidfd_open};
use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering::*},
    },
    thread,
    time::{Duration, Instant},
};

/// Asks the exporter's arena directly, where the broker would stand between.
pub(super) struct Direct {
    exporter: Arena,
    pub participant: u32,
    watched: Mutex<Vec<u32>>,
    lives: AtomicBool,
}
impl Link for Direct {
    fn take_counter(&self) -> Result<(u16, u32)> {
        self.exporter.grant_counter(self.participant)
    }
    fn release_counter(&self, counter: u16) {
        // A death may have taken it already.
        let _ = self.exporter.release_counter(self.participant, counter);
    }
    fn slot_closed(&self, slot: u16, generation: u32) {
        // A death may have closed it already.
        let _ = self.exporter.slot_closed(self.participant, slot, generation);
    }
    fn watch(&self, counter: u16, participant: u32) -> Result<bool> {
        self.watched.lock().unwrap().push(participant);
        let debtor = self.exporter.debtor(counter)?;
        assert!(matches!(debtor, Debtor::Participant(number, _) if number == participant));
        Ok(self.lives.load(Relaxed))
    }
}

/// An own arena outside the pool, so that tests do not meet in one.
pub(super) fn exporter() -> Arena {
    Arena::make(Access::SameUser, 0).unwrap()
}
pub(super) fn slot_of(arena: &Arena) -> Slot {
    let (index, generation) = arena.own().unwrap().new_slot(&arena.0.words).unwrap();
    Slot::new(arena.clone(), index, generation)
}
pub(super) fn importer(exporter: &Arena) -> (Arena, Arc<Direct>) {
    let participant = exporter.join(pidfd_open(getpid(), PidfdFlags::empty()).unwrap()).unwrap();
    let (arena, ledger) = exporter.descriptors().unwrap();
    let link = Arc::new(Direct {
        exporter: exporter.clone(),
        participant,
        watched: Mutex::default(),
        lives: AtomicBool::new(true),
    });
    let (instance, number) = (exporter.instance(), exporter.number());
    let joined =
        Arena::joined(&arena, &ledger, instance, number, participant, link.clone()).unwrap();
    (joined, link)
}
pub(super) fn open(importer: &Arena, link: &Direct, slot: &Slot) -> Slot {
    link.exporter.slot_opened(link.participant, slot.index(), slot.generation()).unwrap();
    importer.open_slot(slot.index(), slot.generation()).unwrap()
}
pub(super) fn debt(slot: &Slot) -> Debt {
    match slot.capture().unwrap() {
        Captured::Debt(debt) => debt,
        Captured::Complete => panic!("something was submitted and not done"),
    }
}
pub(super) fn soon() -> Option<Instant> {
    Some(Instant::now() + Duration::from_secs(10))
}

#[test]
fn a_fresh_event_is_complete_on_both_sides() {
    let exporter = exporter();
    let (importer, link) = importer(&exporter);
    let slot = slot_of(&exporter);
    let opened = open(&importer, &link, &slot);
    assert!(matches!(slot.capture().unwrap(), Captured::Complete));
    assert!(matches!(opened.capture().unwrap(), Captured::Complete));
}
#[test]
fn a_signal_from_either_side_is_seen_from_the_other() {
    let exporter = exporter();
    let (importer, link) = importer(&exporter);
    let slot = slot_of(&exporter);
    let opened = open(&importer, &link, &slot);
    for (from, to) in [(&slot, &opened), (&opened, &slot)] {
        let counter = from.arena().take_counter().unwrap();
        let value = counter.reserve();
        from.publish(&counter, value);
        let debt = debt(to);
        assert_eq!(debt.progress(), Progress::Pending);
        assert_eq!(debt.wait(Some(Instant::now())), Progress::Pending);
        counter.complete(value);
        assert_eq!(debt.progress(), Progress::Complete);
        assert!(matches!(to.capture().unwrap(), Captured::Complete));
    }
}
#[test]
fn a_later_signal_neither_delays_nor_releases_an_earlier_wait() {
    let exporter = exporter();
    let slot = slot_of(&exporter);
    let first = exporter.take_counter().unwrap();
    let second = exporter.take_counter().unwrap();
    let (v1, v2) = (first.reserve(), second.reserve());
    slot.publish(&first, v1);
    let earlier = debt(&slot);
    slot.publish(&second, v2);
    let later = debt(&slot);
    second.complete(v2);
    assert_eq!((earlier.progress(), later.progress()), (Progress::Pending, Progress::Complete));
    first.complete(v1);
    assert_eq!(earlier.progress(), Progress::Complete);
}
#[test]
fn a_sleeper_wakes_when_its_debt_is_paid() {
    let exporter = exporter();
    let (importer, link) = importer(&exporter);
    let slot = slot_of(&exporter);
    let opened = open(&importer, &link, &slot);
    let counter = exporter.take_counter().unwrap();
    let value = counter.reserve();
    slot.publish(&counter, value);
    let debt = debt(&opened);
    thread::scope(|scope| {
        let sleeper = scope.spawn(|| debt.wait(soon()));
        while !counter.is_waited_for() {
            thread::yield_now();
        }
        counter.complete(value);
        assert_eq!(sleeper.join().unwrap(), Progress::Complete);
    });
}
#[test]
fn a_failed_command_fails_what_is_not_reached_and_only_that() {
    let exporter = exporter();
    let slot = slot_of(&exporter);
    let counter = exporter.take_counter().unwrap();
    let (v1, v2) = (counter.reserve(), counter.reserve());
    slot.publish(&counter, v1);
    let paid = debt(&slot);
    slot.publish(&counter, v2);
    let owed = debt(&slot);
    counter.complete(v1);
    counter.fail();
    counter.complete(v2); // too late: a failure is not taken back
    assert_eq!((paid.wait(soon()), owed.wait(soon())), (Progress::Complete, Progress::Failed));
    assert!(counter.is_retired());
    assert_eq!(debt(&slot).progress(), Progress::Failed);
}
#[test]
fn a_counter_dropped_while_it_owes_fails_its_debts() {
    let exporter = exporter();
    let slot = slot_of(&exporter);
    let counter = exporter.take_counter().unwrap();
    let value = counter.reserve();
    slot.publish(&counter, value);
    let debt = debt(&slot);
    drop(counter);
    assert_eq!(debt.wait(soon()), Progress::Failed);
}
#[test]
fn a_counter_that_owes_nothing_is_used_again_and_goes_on() {
    let exporter = exporter();
    let counter = exporter.take_counter().unwrap();
    let (index, value) = (counter.index(), counter.reserve());
    counter.complete(value);
    drop(counter);
    let again = exporter.take_counter().unwrap();
    assert_eq!((again.index(), again.reserve()), (index, value + 1));
}
#[test]
fn an_importers_counters_go_back_when_it_has_many() {
    let exporter = exporter();
    let (importer, _link) = importer(&exporter);
    let many: Vec<_> = (0..IDLE + 3).map(|_| importer.take_counter().unwrap()).collect();
    let indexes: Vec<_> = many.iter().map(Counter::index).collect();
    drop(many);
    let free = |index: &&u16| exporter.0.holder(**index).participant.is_none();
    assert_eq!(indexes.iter().filter(free).count(), 3);
}
#[test]
fn a_death_fails_what_the_dead_owe_and_nothing_else() {
    let exporter = exporter();
    let (dying, link) = importer(&exporter);
    let (witness, other) = importer(&exporter);
    let slots = [slot_of(&exporter), slot_of(&exporter)];
    let [doomed, spared] = [open(&dying, &link, &slots[0]), open(&witness, &other, &slots[1])];
    let (theirs, ours) = (dying.take_counter().unwrap(), witness.take_counter().unwrap());
    let (v1, v2) = (theirs.reserve(), ours.reserve());
    doomed.publish(&theirs, v1);
    spared.publish(&ours, v2);
    let (lost, kept) = (debt(&slots[0]), debt(&slots[1]));
    thread::scope(|scope| {
        let sleeper = scope.spawn(|| lost.wait(soon()));
        while !theirs.is_waited_for() {
            thread::yield_now();
        }
        exporter.participant_died(dying.participant());
        assert_eq!(sleeper.join().unwrap(), Progress::Failed);
    });
    assert_eq!(kept.progress(), Progress::Pending);
    ours.complete(v2);
    assert_eq!(kept.progress(), Progress::Complete);
    // Nothing more is granted to the dead, and what was theirs stays dead.
    assert_eq!(dying.take_counter().unwrap_err().kind(), ErrorKind::PeerNonsense);
    assert_eq!(debt(&slots[0]).progress(), Progress::Failed);
}
#[test]
fn who_is_taken_for_dead_and_lives_pays_and_goes_on_with_a_fresh_counter() {
    let exporter = exporter();
    let (importer, link) = importer(&exporter);
    let slot = slot_of(&exporter);
    let opened = open(&importer, &link, &slot);
    let counter = exporter.take_counter().unwrap();
    let value = counter.reserve();
    slot.publish(&counter, value);
    let debt = debt(&opened);
    importer.process_died(EXPORTER);
    assert_eq!(debt.progress(), Progress::Failed);
    assert!(!counter.is_retired());
    counter.complete(value);
    assert_eq!(debt.progress(), Progress::Complete);
    assert!(counter.is_retired());
}
#[test]
fn an_idle_counter_that_somebody_failed_is_not_used_again() {
    let exporter = exporter();
    let (importer, _link) = importer(&exporter);
    let index = exporter.take_counter().unwrap().index();
    importer.process_died(EXPORTER);
    assert_ne!(exporter.take_counter().unwrap().index(), index);
}
#[test]
fn a_debtor_is_watched_once_from_the_first_debt_on() {
    let exporter = exporter();
    let (debtor, debtor_link) = importer(&exporter);
    let (waiter, waiter_link) = importer(&exporter);
    let slot = slot_of(&exporter);
    let (signalled, waited) =
        (open(&debtor, &debtor_link, &slot), open(&waiter, &waiter_link, &slot));
    let counter = debtor.take_counter().unwrap();
    assert!(waiter_link.watched.lock().unwrap().is_empty());
    for _ in 0..3 {
        let value = counter.reserve();
        signalled.publish(&counter, value);
        debt(&waited);
        counter.complete(value);
    }
    assert_eq!(*waiter_link.watched.lock().unwrap(), [debtor.participant()]);
}
#[test]
fn a_debtor_that_is_gone_when_it_should_be_watched_fails_at_once() {
    let exporter = exporter();
    let (debtor, debtor_link) = importer(&exporter);
    let (waiter, waiter_link) = importer(&exporter);
    let slot = slot_of(&exporter);
    let (signalled, waited) =
        (open(&debtor, &debtor_link, &slot), open(&waiter, &waiter_link, &slot));
    let counter = debtor.take_counter().unwrap();
    signalled.publish(&counter, counter.reserve());
    waiter_link.lives.store(false, Relaxed);
    assert_eq!(debt(&waited).progress(), Progress::Failed);
}
/// Does something else first when it is to watch for the first time, and then fails.
struct Failing {
    direct: Arc<Direct>,
    first: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}
impl Link for Failing {
    fn take_counter(&self) -> Result<(u16, u32)> {
        self.direct.take_counter()
    }
    fn release_counter(&self, counter: u16) {
        self.direct.release_counter(counter);
    }
    fn slot_closed(&self, slot: u16, generation: u32) {
        self.direct.slot_closed(slot, generation);
    }
    fn watch(&self, counter: u16, participant: u32) -> Result<bool> {
        let Some(act) = self.first.lock().unwrap().take() else {
            return self.direct.watch(counter, participant);
        };
        act();
        Err(Error::new(ErrorKind::TimedOut, "the exporter was stopped meanwhile"))
    }
}
#[test]
fn a_watch_that_fails_in_one_thread_takes_no_others_away() {
    let exporter = exporter();
    let (debtor, debtor_link) = importer(&exporter);
    let (_, direct) = importer(&exporter);
    let failing = Arc::new(Failing { direct: direct.clone(), first: Mutex::default() });
    let (arena, ledger) = exporter.descriptors().unwrap();
    let (instance, number) = (exporter.instance(), exporter.number());
    let link: Arc<dyn Link> = failing.clone();
    let waiter =
        Arena::joined(&arena, &ledger, instance, number, direct.participant, link).unwrap();
    let slot = slot_of(&exporter);
    let (signalled, waited) = (open(&debtor, &debtor_link, &slot), open(&waiter, &direct, &slot));
    let counter = debtor.take_counter().unwrap();
    signalled.publish(&counter, counter.reserve());
    // Another thread captures the same debt, and is told that the debtor is watched, while this one waits to be told.
    let (owed, others) = std::sync::mpsc::channel();
    let also = waited.clone();
    *failing.first.lock().unwrap() = Some(Box::new(move || owed.send(debt(&also)).unwrap()));
    assert_eq!(waited.capture().unwrap_err().kind(), ErrorKind::TimedOut);
    let other = others.recv().unwrap();
    waiter.process_died(debtor.participant()); // its exporter, which would say so too, may be dead
    assert_eq!(other.progress(), Progress::Failed);
}
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
fn a_death_closes_what_the_dead_had_open() {
    let exporter = exporter();
    let (importer, link) = importer(&exporter);
    let slot = slot_of(&exporter);
    let index = slot.index();
    let opened = open(&importer, &link, &slot);
    drop(slot);
    exporter.participant_died(importer.participant());
    // Whoever is wrongly dead finds the event gone, and harms nobody who has the place now.
    assert_eq!(opened.capture().unwrap_err().kind(), ErrorKind::Freed);
    assert!(!exporter.own().unwrap().has(index));
}
#[test]
fn a_place_used_again_is_another_generation() {
    let exporter = exporter();
    let (importer, link) = importer(&exporter);
    let first = slot_of(&exporter);
    let (index, generation) = (first.index(), first.generation());
    let stale = open(&importer, &link, &first);
    exporter.slot_closed(link.participant, index, generation).unwrap(); // a lie of the importer's
    drop(first);
    // Places come back late; take them all until this one does.
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
        (0x4000 << 48 | 9, Err(ErrorKind::PeerNonsense)), // nobody has this counter
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
    // The next three: dead, at the end of all values, and sound.
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
    let access = Access::User(4_000_000_001); // a policy of this test's own
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
fn one_thread_waits_for_many_debts() {
    let exporter = exporter();
    let (importer, link) = importer(&exporter);
    // More than the kernel takes in one call.
    let owed: Vec<_> = (0..200)
        .map(|_| {
            let slot = slot_of(&exporter);
            let opened = open(&importer, &link, &slot);
            let counter = exporter.take_counter().unwrap();
            let value = counter.reserve();
            slot.publish(&counter, value);
            (debt(&opened), counter, value)
        })
        .collect();
    let debts: Vec<_> = owed.iter().map(|(debt, ..)| debt).collect();
    let wake = LocalWake::new();
    // In falling order: what is complete already would be reported before.
    for (range, paid) in [(0..200, 199), (0..127, 126), (10..110, 57), (0..4, 2)] {
        let (_, counter, value) = &owed[paid];
        let index = paid - range.start;
        thread::scope(|scope| {
            let waiter = scope.spawn(|| wait_any(&debts[range], &wake, soon()));
            while paid < 127 && !counter.is_waited_for() {
                thread::yield_now();
            }
            counter.complete(*value);
            assert_eq!(waiter.join().unwrap(), Any::Ready(index));
        });
    }
}
#[test]
fn a_waiter_for_many_can_be_called_away_before_and_while_it_sleeps() {
    let exporter = exporter();
    let slot = slot_of(&exporter);
    let counter = exporter.take_counter().unwrap();
    slot.publish(&counter, counter.reserve());
    let debts = [debt(&slot)];
    let wake = LocalWake::new();
    wake.signal();
    assert_eq!(wait_any(&debts, &wake, soon()), Any::Woken);
    thread::scope(|scope| {
        let waiter = scope.spawn(|| wait_any(&debts, &wake, soon()));
        while !counter.is_waited_for() {
            thread::yield_now();
        }
        wake.signal();
        assert_eq!(waiter.join().unwrap(), Any::Woken);
    });
    assert_eq!(wait_any::<Debt>(&[], &wake, Some(Instant::now())), Any::TimedOut);
    let soon = Instant::now() + Duration::from_millis(20);
    assert_eq!(wait_any(&debts, &wake, Some(soon)), Any::TimedOut);
    assert!(Instant::now() >= soon);
}
#[test]
fn a_wait_ends_at_its_deadline() {
    let exporter = exporter();
    let slot = slot_of(&exporter);
    let counter = exporter.take_counter().unwrap();
    slot.publish(&counter, counter.reserve());
    let deadline = Instant::now() + Duration::from_millis(20);
    assert_eq!(debt(&slot).wait(Some(deadline)), Progress::Pending);
    assert!(Instant::now() >= deadline);
}
#[test]
#[should_panic(expected = "its own arena only")]
fn a_counter_of_another_arena_is_never_published() {
    let slot = slot_of(&exporter());
    let counter = exporter().take_counter().unwrap();
    let value = counter.reserve();
    slot.publish(&counter, value);
}

#[test]
fn a_word_that_a_device_writes_is_looked_at_and_never_slept_on() {
    let slot = slot(Access::SameUser).unwrap();
    let counter = slot.arena().take_counter().unwrap();
    counter.hand_to_device();
    let value = counter.reserve();
    slot.publish(&counter, value);
    let Captured::Debt(debt) = slot.capture().unwrap() else { panic!("it is not complete") };
    assert_eq!(debt.value(), value);
    assert_eq!(debt.word_address(), counter.word_address());
    let (base, bytes) = debt.arena().memory();
    assert!((base..base + bytes).contains(&debt.word_address()));
    assert!(!counter.is_settled());
    let wake = LocalWake::new();
    let word = slot.arena().0.words.word(layout::counter_word(counter.index()));
    std::thread::scope(|scope| {
        let both = scope.spawn(|| (debt.wait(None), wait_any(&[&debt], &wake, None)));
        std::thread::sleep(Duration::from_millis(5)); // long past any spinning
        word.store(protocol::word_of(value), Release); // as a device does: nobody is woken
        let before = Instant::now();
        assert_eq!(both.join().unwrap(), (Progress::Complete, Any::Ready(0)));
        assert!(before.elapsed() < Duration::from_millis(900), "it slept");
    });
    assert!(counter.is_settled());
}
#[test]
fn a_buried_counter_releases_devices_and_tells_hosts_the_truth() {
    let slot = slot(Access::SameUser).unwrap();
    let counter = slot.arena().take_counter().unwrap();
    counter.hand_to_device();
    let (first, second) = (counter.reserve(), counter.reserve());
    slot.publish(&counter, second);
    let Captured::Debt(debt) = slot.capture().unwrap() else { panic!("it is not complete") };
    let word = slot.arena().0.words.word(layout::counter_word(counter.index()));
    word.store(protocol::word_of(first), Release);
    assert_eq!(debt.progress(), Progress::Pending);
    counter.fail();
    let seen = word.load(Acquire);
    // What a stream compares: at least, in signed arithmetic.
    assert!(seen.wrapping_sub(protocol::word_of(layout::MAX_VALUE)).cast_signed() >= 0);
    assert_eq!(protocol::value_of(seen), first);
    assert_eq!(debt.progress(), Progress::Failed);
}
#[test]
fn a_joined_arena_is_anothers_and_knows_whose_death_it_is_told_of() {
    let exporter = exporter();
    let (importer, link) = importer(&exporter);
    assert!(exporter.is_own() && !importer.is_own());
    assert_eq!(importer.participant(), link.participant);
    let counter = importer.take_counter().unwrap();
    let value = counter.reserve();
    importer.process_died(link.participant); // it lives: whoever says so is wrong
    counter.complete(value);
    assert!(!counter.is_retired() && !importer.is_orphaned());
    importer.process_died(EXPORTER);
    assert!(importer.is_orphaned() && !exporter.is_orphaned());
}
