//! The effects of a process's death on the processes that share with it, in every way and at every point.
mod common;
use common::*;
use std::time::{Duration, Instant};

#[test]
fn role() {
    common::role();
}
use common::{no_clone as cloned, no_fork as forked};

/// How soon a death must be noticed.
const SOON: Duration = Duration::from_millis(100);

/// The number of descriptors of an exporter that has served a process which is gone.
fn settled(place: &Place, exporter: &mut Peer, ticket: &str) -> String {
    Peer::at(&place.0).ask(&format!("open {ticket}"));
    eventually("all is quiet", || exporter.ask("leased 1") == "false");
    // The lease ends slightly before its connection is closed.
    let (mut count, mut since) = (exporter.ask("descriptors"), Instant::now());
    eventually("the count stays", || {
        let now = exporter.ask("descriptors");
        if std::mem::replace(&mut count, now.clone()) != now {
            since = Instant::now();
        }
        since.elapsed() > SOON
    });
    count
}

#[test]
fn a_killed_exporter_is_known_to_be_gone_at_once_warm_and_cold() {
    let place = Place::new();
    let (mut exporter, mut importer) = (Peer::at(&place.0), Peer::at(&place.0));
    let ticket = exporter.ask("export hello 1 same");
    let unopened = exporter.ask("export hello 2 same");
    importer.ask(&format!("open {ticket}"));
    exporter.kill_unreaped();
    let killed = Instant::now();
    eventually("its death is known", || {
        importer.ask(&format!("current {ticket}")).starts_with("ExporterGone")
    });
    assert!(killed.elapsed() < SOON, "{:?}", killed.elapsed());
    exporter.kill();
    assert!(importer.ask(&format!("open {ticket}")).starts_with("ExporterGone"));
    assert!(importer.ask(&format!("open {unopened}")).starts_with("ExporterGone"));
    assert_eq!(importer.ask(&format!("read {ticket}")), "hello", "what is open stays");
    importer.ask(&format!("close {ticket}"));
    assert!(importer.ask(&format!("open {ticket}")).starts_with("ExporterGone"));
    eventually("nothing is watched any more", || importer.ask("watchers") == "0");
}
#[test]
fn whoever_waits_for_a_dead_exporter_is_told_in_time() {
    let place = Place::new();
    let (mut exporter, mut importer) = (Peer::at(&place.0), Peer::at(&place.0));
    exporter.ask("slot e");
    let ticket = exporter.ask("export-slot e");
    importer.ask(&format!("open-event {ticket}"));
    exporter.ask("signal e");
    assert_eq!(importer.ask(&format!("wait {ticket} 15000")), "waiting");
    exporter.kill_unreaped();
    let killed = Instant::now();
    assert_eq!(importer.hear(), "Failed");
    assert!(killed.elapsed() < SOON, "{:?}", killed.elapsed());
}
#[test]
fn whoever_waits_for_a_dead_importer_is_told_in_time() {
    let place = Place::new();
    let mut exporter = Peer::at(&place.0);
    let (mut debtor, mut waiter) = (Peer::at(&place.0), Peer::at(&place.0));
    exporter.ask("slot e");
    let ticket = exporter.ask("export-slot e");
    debtor.ask(&format!("open-event {ticket}"));
    waiter.ask(&format!("open-event {ticket}"));
    debtor.ask(&format!("signal {ticket}"));
    assert_eq!(exporter.ask("wait e 15000"), "waiting");
    assert_eq!(waiter.ask(&format!("wait {ticket} 15000")), "waiting");
    debtor.kill_unreaped();
    let killed = Instant::now();
    assert_eq!(exporter.hear(), "Failed");
    assert_eq!(waiter.hear(), "Failed");
    assert!(killed.elapsed() < SOON, "{:?}", killed.elapsed());
}
#[test]
fn a_debtor_that_outlives_the_exporter_is_still_watched() {
    let place = Place::new();
    let mut exporter = Peer::at(&place.0);
    let (mut debtor, mut waiter) = (Peer::at(&place.0), Peer::at(&place.0));
    exporter.ask("slot e");
    let ticket = exporter.ask("export-slot e");
    debtor.ask(&format!("open-event {ticket}"));
    waiter.ask(&format!("open-event {ticket}"));
    debtor.ask(&format!("signal {ticket}"));
    assert_eq!(waiter.ask(&format!("wait {ticket} 15000")), "waiting");
    exporter.kill();
    debtor.kill_unreaped();
    let killed = Instant::now();
    assert_eq!(waiter.hear(), "Failed");
    assert!(killed.elapsed() < SOON, "{:?}", killed.elapsed());
}
#[test]
fn an_importer_killed_at_any_point_of_an_open_leaves_nothing_behind() {
    let place = Place::new();
    let mut exporter = Peer::at(&place.0);
    let ticket = exporter.ask("export hello 1 same");
    let before = settled(&place, &mut exporter, &ticket);
    for point in ["fetch.after_connect", "import.before_map"] {
        let mut importer = Peer::start(&place.0, |command| {
            command.env("CAUSEWAY_KILL_AT", point);
        });
        importer.tell(&format!("open {ticket}"));
        let died = importer.child.wait().unwrap();
        assert_eq!(std::os::unix::process::ExitStatusExt::signal(&died), Some(9), "{point}");
        eventually("its lease ended", || exporter.ask("leased 1") == "false");
        eventually("nothing is left", || exporter.ask("descriptors") == before);
    }
}
/// One after another they take more counters than there are, and each time an event names one of them.
#[test]
fn counters_of_killed_importers_come_back() {
    const EACH: usize = 5000;
    let place = Place::new();
    let mut exporter = Peer::at(&place.0);
    exporter.ask("slot e");
    let event = exporter.ask("export-slot e");
    for round in 0..15 {
        let mut importer = Peer::at(&place.0);
        assert!(importer.ask(&format!("open-event {event}")).starts_with("event"), "{round}");
        assert_eq!(importer.take_counters(&event, EACH), (EACH, String::new()), "{round}");
        assert_eq!(importer.ask(&format!("signal {event}")), "ok");
        assert_eq!(exporter.ask("wait e 15000"), "waiting");
        importer.kill();
        assert_eq!(exporter.hear(), "Failed");
    }
    assert_eq!(exporter.ask("signal e"), "ok");
    assert_eq!(exporter.ask("complete"), "ok");
}
#[test]
fn an_importer_killed_at_random_moments_leaves_nothing_behind() {
    let place = Place::new();
    let mut exporter = Peer::at(&place.0);
    let ticket = exporter.ask("export hello 1 same");
    exporter.ask("slot e");
    let event = exporter.ask("export-slot e");
    let before = settled(&place, &mut exporter, &ticket);
    for round in 0..40 {
        let mut importer = Peer::at(&place.0);
        assert_eq!(importer.ask("idle"), "ok");
        for _ in 0..4 {
            importer.tell(&format!("open {ticket}"));
            importer.tell(&format!("open-event {event}"));
            importer.tell(&format!("signal {event}"));
            importer.tell(&format!("close {ticket}"));
            importer.tell(&format!("close-event {event}"));
        }
        let until = Instant::now() + Duration::from_micros(round * 61 % 1500);
        while Instant::now() < until {
            std::hint::spin_loop();
        }
        importer.kill();
        // Its pending signal has failed, or was never submitted.
        let ended = match exporter.ask("wait e 10000") {
            waiting if waiting == "waiting" => exporter.hear(),
            at_once => at_once,
        };
        assert!(["Failed", "complete at once"].contains(&&*ended), "{ended}");
        eventually("its lease ended", || exporter.ask("leased 1") == "false");
    }
    eventually("nothing is left", || exporter.ask("descriptors") == before);
}
#[test]
fn an_exporter_killed_during_opens_hangs_no_importer() {
    let place = Place::new();
    let mut importer = Peer::at(&place.0);
    let before = importer.ask("descriptors");
    for round in 0..40 {
        let mut exporter = Peer::at(&place.0);
        let ticket = exporter.ask("export hello 1 same");
        for _ in 0..4 {
            importer.tell(&format!("open {ticket}"));
            importer.tell(&format!("close {ticket}"));
        }
        let until = Instant::now() + Duration::from_micros(round * 61 % 1500);
        while Instant::now() < until {
            std::hint::spin_loop();
        }
        exporter.kill();
        for _ in 0..4 {
            let answer = importer.hear();
            assert!(answer.starts_with("remote") || answer.starts_with("ExporterGone"), "{answer}");
            importer.hear();
        }
    }
    eventually("nothing is left", || importer.ask("descriptors") == before);
}
