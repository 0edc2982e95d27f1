//! What the living see when a process that they share with dies: requirement E9, kills at named points and at
//! random moments.
mod common;
use common::*;
use std::time::{Duration, Instant};

#[test]
fn role() {
    common::role();
}
/// How soon a death has to be known, in the middle of several tries: a loaded machine may be late now and then.
const SOON: Duration = Duration::from_millis(100);
const TRIES: usize = 5;
const KILLS: usize = 50;

#[track_caller]
fn in_time(mut took: Vec<Duration>) {
    took.sort();
    assert!(took[took.len() / 2] < SOON, "{took:?}");
}
fn dead() -> String {
    "!UR_RESULT_ERROR_IN_EVENT_LIST_EXEC_STATUS".into()
}
fn code(answer: &str) -> String {
    answer.split(' ').next().unwrap().into()
}
/// The exporter owes a signal of `e`, which the importer has open.
fn debt() -> (Place, Peer, Peer) {
    let (place, mut exporter, mut importer) = Place::pair();
    exporter.must("event e");
    let ticket = exporter.must("get event e");
    importer.must(&format!("open event e {ticket}"));
    exporter.must("gate q g");
    exporter.must("signal q e");
    (place, exporter, importer)
}

/// E9
#[test]
fn a_host_wait_for_a_killed_exporter_ends_in_time_and_the_event_is_an_error() {
    in_time(
        (0..TRIES)
            .map(|_| {
                let (_place, mut exporter, mut importer) = debt();
                importer.begin("wait e");
                let killed = Instant::now();
                exporter.kill_unreaped();
                let answer = importer.hear();
                let took = killed.elapsed();
                assert_eq!(code(&answer), dead());
                assert!(answer.len() > 60, "the reason is said: {answer}");
                assert_eq!(importer.must("status e"), "ERROR");
                importer.refused("wait e", "IN_EVENT_LIST_EXEC_STATUS");
                importer.must("release e");
                took
            })
            .collect(),
    );
}
/// E9
#[test]
fn a_queue_that_waits_for_a_killed_exporter_fails_in_time_with_all_that_is_behind() {
    in_time(
        (0..TRIES)
            .map(|_| {
                let (_place, mut exporter, mut importer) = debt();
                importer.must("alloc a 100");
                importer.must("alloc b 100");
                importer.must("fill a 0 100 1");
                importer.must("fill b 0 100 2");
                importer.must("follow q first e");
                importer.must("copy q a b 100");
                importer.must("follow q last");
                importer.must("follow ooo other e");
                importer.begin("finish q");
                let killed = Instant::now();
                exporter.kill_unreaped();
                assert_eq!(code(&importer.hear()), dead());
                let took = killed.elapsed();
                for event in ["e", "first", "last", "other"] {
                    eventually("it has failed", || {
                        importer.must(&format!("status {event}")) == "ERROR"
                    });
                    importer.refused(&format!("wait {event}"), "IN_EVENT_LIST_EXEC_STATUS");
                }
                assert_eq!(
                    importer.must("all a 0 100 1"),
                    "true",
                    "what depends on it does not run"
                );
                took
            })
            .collect(),
    );
}
/// E9, the other way round and between two importers.
#[test]
fn who_waits_for_a_killed_importer_is_told_in_time() {
    let mut all = Vec::new();
    for _ in 0..TRIES {
        let (place, mut exporter, mut importer) = Place::pair();
        let mut third = place.peer();
        exporter.must("event e");
        let ticket = exporter.must("get event e");
        importer.must(&format!("open event e {ticket}"));
        third.must(&format!("open event e {ticket}"));
        importer.must("gate q g");
        importer.must("signal q e");
        exporter.begin("wait e");
        third.begin("wait e");
        let killed = Instant::now();
        importer.kill_unreaped();
        assert_eq!((code(&exporter.hear()), code(&third.hear())), (dead(), dead()));
        all.push(killed.elapsed());
        assert_eq!(third.must("status e"), "ERROR");
        // The event is not lost with it: whoever signals next has it.
        third.must("signal q e");
        exporter.must("wait e");
        assert_eq!(exporter.must("status e"), "COMPLETE");
    }
    in_time(all);
}
/// E9: what was signalled and complete before the death stays complete. Whoever has signalled before goes on;
/// whoever has not cannot begin, and is told why.
#[test]
fn a_death_changes_nothing_about_signals_that_were_complete() {
    for has_signalled in [true, false] {
        let (_place, mut exporter, mut importer) = debt();
        exporter.must("ungate g");
        exporter.must("finish q");
        if has_signalled {
            importer.must("signal q e");
            importer.must("wait e");
        }
        exporter.kill();
        importer.must("wait e");
        assert_eq!(importer.must("status e"), "COMPLETE");
        if has_signalled {
            importer.must("signal q e");
        } else {
            let why = importer.refused("signal q e", "INVALID_VALUE");
            assert!(why.contains("gone"), "{why}");
        }
        importer.must("wait e");
        assert_eq!(importer.must("status e"), "COMPLETE");
    }
}
/// The points of the protocol at which a death does most harm: between reserving and publishing a signal, ...
#[test]
fn an_exporter_killed_before_it_publishes_a_signal_leaves_the_event_as_it_was() {
    let place = Place::new();
    let mut exporter = place.peer_with("CAUSEWAY_KILL_AT", "publish.before:2");
    let mut importer = place.peer();
    exporter.must("event e");
    let ticket = exporter.must("get event e");
    importer.must(&format!("open event e {ticket}"));
    exporter.must("signal q e");
    exporter.must("wait e");
    exporter.must("gate q g");
    exporter.tell("signal q e");
    exporter.dies();
    importer.must("wait e");
    assert_eq!(importer.must("status e"), "COMPLETE");
}
/// ... and between completing it and waking those who wait, each of whom sees a complete signal in time.
#[test]
fn an_exporter_killed_before_it_wakes_anybody_leaves_nobody_waiting() {
    for nth in [1, 2] {
        let place = Place::new();
        let mut exporter =
            place.peer_with("CAUSEWAY_KILL_AT", &format!("complete.before_wake:{nth}"));
        let mut waiters = [place.peer(), place.peer()];
        exporter.must("event e");
        let ticket = exporter.must("get event e");
        for (waiter, queue) in waiters.iter_mut().zip(["q", "r"]) {
            waiter.must(&format!("open event e {ticket}"));
            exporter.must(&format!("gate {queue} {queue}"));
            exporter.must(&format!("signal {queue} e"));
            waiter.begin("wait e");
        }
        exporter.tell("ungate q");
        if nth == 2 {
            assert_eq!(waiters[0].hear(), "ok");
            exporter.tell("ungate r");
        }
        exporter.dies();
        let [first, second] = &mut waiters;
        match nth {
            1 => assert_eq!((first.hear(), code(&second.hear())), ("ok".into(), dead())),
            _ => assert_eq!(second.hear(), "ok"),
        }
    }
}
/// The same for whoever waits, opens or maps.
#[test]
fn an_importer_killed_at_any_point_leaves_the_exporter_as_it_was() {
    let place = Place::new();
    let mut exporter = place.peer();
    exporter.must("alloc a 8192");
    exporter.must("event e");
    let memory = exporter.must("get memory a");
    let event = exporter.must("get event e");
    let mut settled = settle(&place, &mut exporter, &memory);
    for point in ["fetch.after_connect", "import.before_map", "wait.after_waiters_bit"] {
        let mut importer = place.peer_with("CAUSEWAY_KILL_AT", point);
        exporter.must("gate q g");
        exporter.must("signal q e");
        if point.starts_with("wait") {
            importer.must(&format!("open event e {event}"));
            importer.tell("wait e");
        } else {
            importer.tell(&format!("open memory a {memory}"));
        }
        importer.dies();
        exporter.must("ungate g");
        exporter.must("wait e");
        let after = settle(&place, &mut exporter, &memory);
        settled.1 = settled.1.max(after.1); // its own queue's counters, once
        assert_eq!(after, settled, "{point}");
    }
}
/// Descriptors and memfd mappings of an exporter once its latest importer is gone.
fn settle(place: &Place, exporter: &mut Peer, ticket: &str) -> (usize, usize) {
    let mut last = place.peer();
    last.must(&format!("open memory x {ticket}"));
    last.kill();
    let mut least = (exporter.number("descriptors"), exporter.number("memfds"));
    // What the broker holds for the one that is gone, it lets go of in its own time.
    let deadline = Instant::now() + Duration::from_millis(300);
    while Instant::now() < deadline {
        let now = (exporter.number("descriptors"), exporter.number("memfds"));
        least = (least.0.min(now.0), least.1.min(now.1));
    }
    least
}

#[test]
fn an_exporter_survives_importers_killed_at_random_moments() {
    let place = Place::new();
    let (mut exporter, mut dice) = (place.peer(), Dice::new(1));
    exporter.must("alloc a 8192");
    exporter.must("event e");
    let (memory, event) = (exporter.must("get memory a"), exporter.must("get event e"));
    let before = settle(&place, &mut exporter, &memory);
    for _ in 0..KILLS {
        let mut importer = place.peer();
        importer.tell(&format!("churn {memory} {event}"));
        assert_eq!(importer.hear(), "churning");
        let answer = importer.heard(Duration::from_micros(dice.below(4000)));
        assert_eq!(answer, None, "it only ends when it is killed");
        importer.kill();
        // Whoever's signal was the latest: complete, or an error, but not for ever submitted.
        eventually("the event is nobody's debt", || exporter.must("status e") != "SUBMITTED");
        exporter.must("signal q e");
        exporter.must("wait e");
    }
    let after = settle(&place, &mut exporter, &memory);
    assert!(after <= before, "{after:?} {before:?}");
}
#[test]
fn importers_killed_while_they_signal_leave_waiters_that_are_told() {
    let place = Place::new();
    let (mut exporter, mut third, mut dice) = (place.peer(), place.peer(), Dice::new(2));
    exporter.must("event e");
    let ticket = exporter.must("get event e");
    third.must(&format!("open event e {ticket}"));
    for _ in 0..KILLS {
        let mut importer = place.peer();
        importer.must(&format!("open event e {ticket}"));
        importer.must("gate q g");
        importer.must("signal q e");
        third.begin("wait e");
        exporter.begin("wait e");
        importer.tell("ungate g");
        let _ = importer.heard(Duration::from_micros(dice.below(200)));
        importer.kill();
        for answer in [third.hear(), exporter.hear()] {
            assert!(answer == "ok" || code(&answer) == dead(), "{answer}");
        }
    }
    assert!(third.number("descriptors") < 40, "{}", third.number("descriptors"));
}
#[test]
fn an_importer_survives_exporters_killed_at_random_moments() {
    survive_exporters(3, 5000);
}
#[test]
fn an_importer_survives_exporters_killed_as_soon_as_they_share() {
    survive_exporters(4, 300);
}
/// Exporters that share, signal, put and free for ever are killed while an importer opens what they say.
fn survive_exporters(seed: u64, microseconds: u64) {
    let place = Place::new();
    let (mut importer, mut dice) = (place.peer(), Dice::new(seed));
    // Once without a death: what is made at first use is there then.
    let mut first = place.peer();
    first.must("alloc a 100");
    first.must("event e");
    let (memory, event) = (first.must("get memory a"), first.must("get event e"));
    importer.must(&format!("open memory a {memory}"));
    importer.must(&format!("open event e {event}"));
    first.must("gate q g");
    first.must("signal q e");
    importer.begin("wait e");
    first.must("ungate g");
    assert_eq!(importer.hear(), "ok");
    let quiet = (importer.number("descriptors"), importer.number("memfds"));
    importer.must("release e");
    importer.must("close memory a");
    for round in 0..KILLS {
        let mut exporter = place.peer();
        exporter.tell("churn");
        assert_eq!(exporter.hear(), "churning");
        let tickets = exporter.hear();
        let (memory, event) = tickets.split_once(' ').unwrap();
        let moment = Instant::now() + Duration::from_micros(dice.below(microseconds));
        importer.tell(&format!("open memory a{round} {memory}"));
        importer.tell(&format!("open event e{round} {event}"));
        while let Some(left) = moment.checked_duration_since(Instant::now())
            && exporter.heard(left).is_some()
        {}
        exporter.kill();
        let (memory, event) = (importer.hear(), importer.hear());
        if memory == "ok" {
            importer.must(&format!("read a{round} 0 100"));
            importer.must(&format!("close memory a{round}"));
        } else {
            assert_eq!(code(&memory), "!UR_RESULT_ERROR_INVALID_VALUE", "{memory}");
        }
        if event == "ok" {
            let end = importer.ask(&format!("wait e{round}"));
            assert!(end == "ok" || code(&end) == dead(), "{end}");
            importer.must(&format!("release e{round}"));
        } else {
            assert_eq!(code(&event), "!UR_RESULT_ERROR_INVALID_VALUE", "{event}");
        }
    }
    first.kill();
    eventually("nothing of the dead is left", || {
        importer.number("descriptors") <= quiet.0 && importer.number("memfds") <= quiet.1
    });
    // A live exporter's sockets and locks are all that may lie there: the next one sweeps the others away.
    let mut last = place.peer();
    last.must("alloc a 100");
    last.must("get memory a");
    assert!(place.names().len() <= 2 * KILLS + 2);
}
