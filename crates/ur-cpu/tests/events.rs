//! Events between processes: requirements E1 to E8, E3a and E10. Death, E9, has a file of its own.
mod common;
use common::*;

#[test]
fn role() {
    common::role();
}
/// An event of the exporter's that the importer has opened, both called `e`.
fn shared() -> (Place, Peer, Peer) {
    let (place, mut exporter, mut importer) = Place::pair();
    exporter.must("event e");
    let ticket = exporter.must("get event e");
    importer.must(&format!("open event e {ticket}"));
    (place, exporter, importer)
}
#[track_caller]
fn all_see(peers: &mut [&mut Peer], status: &str) {
    for peer in peers {
        assert_eq!(peer.must("status e"), status);
    }
}

/// E1, E3: signalled again and again, with or without others.
#[test]
fn a_reusable_event_is_complete_at_first_and_signalled_again_and_again() {
    let (_place, mut exporter, _) = Place::pair();
    for make in ["event", "event-local", "event-profiled"] {
        exporter.must(&format!("{make} e"));
        assert_eq!(exporter.must("status e"), "COMPLETE");
        exporter.must("wait e");
        for _ in 0..20 {
            exporter.must("gate q g");
            exporter.must("signal q e");
            assert_eq!(exporter.must("status e"), "SUBMITTED");
            exporter.must("ungate g");
            exporter.must("wait e");
            assert_eq!(exporter.must("status e"), "COMPLETE");
        }
        exporter.must("release e");
    }
}
/// E2
#[test]
fn an_event_is_shared_or_timed_and_not_both() {
    let (_place, mut exporter, _) = Place::pair();
    let why = exporter.refused("event-both e", "INVALID_VALUE");
    assert!(why.contains("IPC_EXP") && why.contains("ENABLE_PROFILING"), "{why}");
}
/// E3
#[test]
fn a_fresh_event_may_be_shared_before_its_first_signal_and_counts_as_complete() {
    let (_place, mut exporter, mut importer) = shared();
    all_see(&mut [&mut exporter, &mut importer], "COMPLETE");
    importer.must("wait e");
    importer.must("follow q f e");
    importer.must("wait f");
}
/// E3
#[test]
fn a_signal_is_submitted_everywhere_at_once_and_complete_when_what_was_before_it_is() {
    let (_place, mut exporter, mut importer) = shared();
    exporter.must("gate q g");
    exporter.must("signal q e");
    all_see(&mut [&mut exporter, &mut importer], "SUBMITTED");
    importer.begin("wait e");
    exporter.must("ungate g");
    assert_eq!(importer.hear(), "ok");
    all_see(&mut [&mut exporter, &mut importer], "COMPLETE");
}
/// E3: wait lists of any command wait for it, and data follow the signal.
#[test]
fn a_command_of_another_process_waits_for_the_signal_and_finds_what_came_before_it() {
    let (_place, mut exporter, mut importer) = shared();
    exporter.must("alloc a 1000000");
    let ticket = exporter.must("get memory a");
    importer.must(&format!("open memory a {ticket}"));
    importer.must("alloc mine 1000000");
    exporter.must("alloc source 1000000");
    for (round, queue) in ["q", "ooo"].into_iter().enumerate() {
        exporter.must(&format!("fill source 0 1000000 {}", round + 1));
        exporter.must(&format!("gate {queue} g"));
        // A barrier, on an out-of-order queue also.
        exporter.must(&format!("signal {queue} e"));
        exporter.must(&format!("copy {queue} a source 1000000 e"));
        exporter.must(&format!("signal {queue} e"));
        importer.must(&format!("copy {queue} mine a 1000000 e"));
        importer.must(&format!("follow {queue} done"));
        assert_eq!(importer.must("status done"), "SUBMITTED");
        exporter.must("ungate g");
        importer.must(&format!("finish {queue}"));
        assert_eq!(importer.must(&format!("all mine 0 1000000 {}", round + 1)), "true");
        importer.must("release done");
    }
}
/// E3
#[test]
fn an_event_may_be_signalled_or_released_before_anybody_waited() {
    let (_place, mut exporter, mut importer) = shared();
    exporter.must("gate q g");
    for _ in 0..100 {
        exporter.must("signal q e");
    }
    exporter.must("release e");
    importer.begin("wait e");
    exporter.must("ungate g");
    assert_eq!(importer.hear(), "ok");
    assert_eq!(importer.must("status e"), "COMPLETE");
}
/// E3a: the dependency of a command.
#[test]
fn a_command_waits_for_the_signal_that_was_latest_when_it_was_submitted() {
    let (_place, mut exporter, mut importer) = shared();
    exporter.must("gate q g");
    exporter.must("signal q e");
    importer.must("follow q captured e");
    exporter.must("gate r h");
    exporter.must("signal r e");
    exporter.must("ungate g");
    importer.must("wait captured");
    all_see(&mut [&mut exporter, &mut importer], "SUBMITTED");
    exporter.must("ungate h");
    importer.must("wait e");
}
/// E3a: a later signal which is complete already does not release what waits for an earlier one.
#[test]
fn a_later_signal_does_not_release_who_waits_for_an_earlier_one() {
    let (_place, mut exporter, mut importer) = shared();
    exporter.must("gate q g");
    exporter.must("signal q e");
    importer.must("follow q captured e");
    importer.must("signal r e");
    importer.must("wait e");
    all_see(&mut [&mut exporter, &mut importer], "COMPLETE");
    assert_eq!(importer.must("status captured"), "SUBMITTED");
    exporter.must("ungate g");
    importer.must("wait captured");
}
/// E3a: the dependency of a host wait.
#[test]
fn a_host_wait_is_for_the_signal_that_was_latest_when_it_began() {
    let (_place, mut exporter, mut importer) = shared();
    exporter.must("gate q g");
    exporter.must("signal q e");
    importer.begin("wait e");
    exporter.must("gate r h");
    exporter.must("signal r e");
    exporter.must("ungate g");
    assert_eq!(importer.hear(), "ok");
    all_see(&mut [&mut exporter, &mut importer], "SUBMITTED");
    exporter.must("ungate h");
    exporter.must("wait e");
}
/// E4
#[test]
fn get_refuses_events_that_are_not_made_to_be_shared() {
    let (_place, mut exporter, mut importer) = shared();
    exporter.must("event-local local");
    exporter.must("event-profiled profiled");
    exporter.must("follow q commands");
    let why = exporter.refused("get event local", "INVALID_EVENT");
    assert!(why.contains("IPC_EXP"), "{why}");
    exporter.refused("get event commands", "INVALID_EVENT");
    exporter.refused("get event profiled", "UNSUPPORTED_FEATURE");
    let why = importer.refused("get event e", "INVALID_EVENT");
    assert!(why.contains("opened"), "{why}");
}
/// E4
#[test]
fn put_leaves_the_producer_and_what_is_open_alive() {
    let (_place, mut exporter, mut importer) = Place::pair();
    exporter.must("event e");
    let ticket = exporter.must("get event e");
    importer.must(&format!("open event e {ticket}"));
    exporter.refused(&format!("put memory {ticket}"), "INVALID_VALUE");
    exporter.must(&format!("put event {ticket}"));
    exporter.refused(&format!("put event {ticket}"), "INVALID_VALUE");
    importer.refused(&format!("open event again {ticket}"), "INVALID_VALUE");
    exporter.must("gate q g");
    exporter.must("signal q e");
    all_see(&mut [&mut exporter, &mut importer], "SUBMITTED");
    exporter.must("ungate g");
    importer.must("wait e");
}
/// E5
#[test]
fn state_goes_both_ways_and_to_third_parties_and_the_latest_signal_is_everyones() {
    let (place, mut exporter, mut importer) = Place::pair();
    let mut third = place.peer();
    exporter.must("event e");
    let ticket = exporter.must("get event e");
    importer.must(&format!("open event e {ticket}"));
    third.must(&format!("open event e {ticket}"));
    for _ in 0..5 {
        importer.must("gate q g");
        importer.must("signal q e");
        all_see(&mut [&mut exporter, &mut importer, &mut third], "SUBMITTED");
        third.begin("wait e");
        exporter.begin("wait e");
        importer.must("ungate g");
        assert_eq!((third.hear(), exporter.hear()), ("ok".into(), "ok".into()));
        // And now the third one is the latest.
        third.must("gate q g");
        third.must("signal q e");
        all_see(&mut [&mut exporter, &mut importer, &mut third], "SUBMITTED");
        third.must("ungate g");
        importer.must("wait e");
    }
    let mut late = place.peer();
    late.must(&format!("open event e {ticket}"));
    importer.must("gate q g");
    importer.must("signal q e");
    all_see(&mut [&mut late, &mut exporter], "SUBMITTED");
    importer.must("ungate g");
    late.must("wait e");
}
/// E6
#[test]
fn an_opened_event_is_an_ordinary_event_and_its_last_release_ends_it() {
    let (_place, mut exporter, mut importer) = Place::pair();
    exporter.must("event e");
    let ticket = exporter.must("get event e");
    importer.must(&format!("open event e {ticket}"));
    let quiet = (importer.number("descriptors"), importer.number("memfds"));
    importer.must("retain e");
    assert_eq!(importer.must("refs e"), "2");
    importer.must("follow q f e");
    importer.must("signal q e f");
    importer.must("wait e f");
    importer.must("alias twin e 0");
    importer.must("release e");
    assert_eq!(importer.must("status twin"), "COMPLETE");
    importer.must("release twin");
    importer.must("release f");
    for _ in 0..50 {
        importer.must(&format!("open event e {ticket}"));
        importer.must("signal q e");
        importer.must("release e");
    }
    let now = (importer.number("descriptors"), importer.number("memfds"));
    assert!(now <= quiet, "{now:?} {quiet:?}");
}
/// E7
#[test]
fn an_event_is_opened_many_times_also_at_home_each_its_own_handle_of_one_state() {
    let (_place, mut exporter, mut importer) = Place::pair();
    exporter.must("event e");
    let ticket = exporter.must("get event e");
    for peer in [&mut exporter, &mut importer] {
        peer.must(&format!("open event one {ticket}"));
        peer.must(&format!("open event two {ticket}"));
        assert_ne!(peer.must("at one"), peer.must("at two"));
        assert_eq!((peer.must("refs one"), peer.must("refs two")), ("1".into(), "1".into()));
        peer.refused("get event one", "INVALID_EVENT");
        peer.must("gate q g");
        peer.must("signal q one");
        assert_eq!(peer.must("status two"), "SUBMITTED");
        peer.must("release one");
        peer.must("ungate g");
        peer.must("wait two");
    }
    assert_eq!(exporter.must("status e"), "COMPLETE");
}
/// E8
#[test]
fn handles_of_wrong_size_or_bytes_are_invalid_values() {
    let (_place, mut exporter, mut importer) = Place::pair();
    exporter.must("event e");
    let ticket = exporter.must("get event e");
    let why = importer.refused(&format!("open event x {ticket}00"), "INVALID_VALUE");
    assert!(why.contains("bytes"), "{why}");
    importer.refused(&format!("open event x {}", &ticket[2..]), "INVALID_VALUE");
    importer.refused(&format!("open event x {}", "00".repeat(ticket.len() / 2)), "INVALID_VALUE");
    importer.must(&format!("open event e {ticket}"));
}
/// E10
#[test]
fn only_reusable_events_are_signalled_and_nothing_is_enqueued_for_others() {
    let (_place, mut exporter, _) = Place::pair();
    exporter.must("event e");
    exporter.must("follow q commands");
    exporter.must("event-local gone");
    exporter.must("alias stale gone 0");
    exporter.must("release gone");
    exporter.must("gate q g");
    exporter.must("alias memory commands 64");
    for wrong in ["commands", "stale", "memory"] {
        exporter.refused(&format!("signal q {wrong}"), "INVALID_EVENT");
    }
    exporter.must("follow q behind");
    exporter.must("ungate g");
    exporter.must("wait behind");
    exporter.must("finish q");
}
/// E10
#[test]
fn an_event_in_the_wait_list_of_its_own_signal_is_refused_and_stays_as_it_was() {
    let (_place, mut exporter, mut importer) = shared();
    for peer in [&mut exporter, &mut importer] {
        let why = peer.refused("signal q e e", "INVALID_EVENT_WAIT_LIST");
        assert!(why.contains("itself") || why.contains("own"), "{why}");
        assert_eq!(peer.must("status e"), "COMPLETE");
    }
}
/// A token goes back and forth between two queues of two processes, submitted while a gate holds it all.
#[test]
fn a_gated_chain_of_hops_runs_in_order_and_only_when_the_gate_opens() {
    const HOPS: usize = 100;
    let (_place, mut exporter, mut importer) = Place::pair();
    for name in ["ping", "pong"] {
        exporter.must(&format!("event {name}"));
        let ticket = exporter.must(&format!("get event {name}"));
        importer.must(&format!("open event {name} {ticket}"));
    }
    exporter.must("alloc trail 65536");
    exporter.must("fill trail 0 65536 0");
    exporter.must("write trail 0 5a");
    let ticket = exporter.must("get memory trail");
    importer.must(&format!("open memory trail {ticket}"));
    exporter.must("gate q g");
    for hop in 0..HOPS {
        let (peer, mine, theirs) = match hop % 2 {
            0 => (&mut exporter, "ping", "pong"),
            _ => (&mut importer, "pong", "ping"),
        };
        peer.must(&format!("alias from{hop} trail {hop}"));
        peer.must(&format!("alias to{hop} trail {}", hop + 1));
        peer.must(&format!("copy q to{hop} from{hop} 1 {theirs}"));
        peer.must(&format!("signal q {mine}"));
    }
    assert_eq!(exporter.must("status pong"), "SUBMITTED");
    assert_eq!(importer.must("all trail 1 200 0"), "true", "nothing ran before the gate opened");
    exporter.must("ungate g");
    importer.must("wait pong");
    assert_eq!(exporter.must(&format!("all trail 0 {} 90", HOPS + 1)), "true");
}
