//! Waiting for one signal or many, asleep or polling, and the deadlines.
use super::*;

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
    // In falling order: signals that are complete already would be reported first.
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
    assert_eq!(wait_any::<PendingSignal>(&[], &wake, Some(Instant::now())), Any::TimedOut);
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
fn a_word_that_a_device_writes_is_looked_at_and_never_slept_on() {
    let slot = slot(Access::SameUser).unwrap();
    let counter = slot.arena().take_counter().unwrap();
    counter.hand_to_device();
    let value = counter.reserve();
    slot.publish(&counter, value);
    let Captured::PendingSignal(debt) = slot.capture().unwrap() else {
        panic!("it is not complete")
    };
    assert_eq!(debt.value(), value);
    assert_eq!(debt.word_address(), counter.word_address());
    let (base, bytes) = debt.arena().memory();
    assert!((base..base + bytes).contains(&debt.word_address()));
    assert!(!counter.is_settled());
    let wake = LocalWake::new();
    let word = slot.arena().0.words.word(layout::counter_word(counter.index()));
    std::thread::scope(|scope| {
        let both = scope.spawn(|| (debt.wait(None), wait_any(&[&debt], &wake, None)));
        std::thread::sleep(Duration::from_millis(5)); // long after any spinning has ended
        word.store(protocol::word_of(value), Release); // as a device does, which wakes no thread 
        let before = Instant::now();
        assert_eq!(both.join().unwrap(), (Progress::Complete, Any::Ready(0)));
        assert!(before.elapsed() < Duration::from_millis(900), "it slept");
    });
    assert!(counter.is_settled());
}
