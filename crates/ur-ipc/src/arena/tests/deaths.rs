//! Counters whose owners died or failed, and the threads that wait for them.
use super::*;

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
    counter.complete(v2); // too late: a failure is final
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
    // A dead participant is granted nothing more, and its signals stay failed.
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
/// Runs `first` when it is first asked to watch a participant, and then fails.
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
    // While this thread waits for the answer, another thread captures the same signal and is told that the process is
    // watched.
    let (owed, others) = std::sync::mpsc::channel();
    let also = waited.clone();
    *failing.first.lock().unwrap() = Some(Box::new(move || owed.send(debt(&also)).unwrap()));
    assert_eq!(waited.capture().unwrap_err().kind(), ErrorKind::TimedOut);
    let other = others.recv().unwrap();
    waiter.process_died(debtor.participant()); // the exporter, which would mark it dead too, may be dead
    assert_eq!(other.progress(), Progress::Failed);
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
    // A process that was wrongly taken for dead finds the event gone, and does not affect the slot's new event.
    assert_eq!(opened.capture().unwrap_err().kind(), ErrorKind::Freed);
    assert!(!exporter.own().unwrap().has(index));
}
#[test]
fn a_buried_counter_releases_devices_and_tells_hosts_the_truth() {
    let slot = slot(Access::SameUser).unwrap();
    let counter = slot.arena().take_counter().unwrap();
    counter.hand_to_device();
    let (first, second) = (counter.reserve(), counter.reserve());
    slot.publish(&counter, second);
    let Captured::PendingSignal(debt) = slot.capture().unwrap() else {
        panic!("it is not complete")
    };
    let word = slot.arena().0.words.word(layout::counter_word(counter.index()));
    word.store(protocol::word_of(first), Release);
    assert_eq!(debt.progress(), Progress::Pending);
    counter.fail();
    let seen = word.load(Acquire);
    // A stream compares with "greater or equal" in signed arithmetic.
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
    importer.process_died(link.participant); // a wrong report: it is alive
    counter.complete(value);
    assert!(!counter.is_retired() && !importer.is_orphaned());
    importer.process_died(EXPORTER);
    assert!(importer.is_orphaned() && !exporter.is_orphaned());
}
