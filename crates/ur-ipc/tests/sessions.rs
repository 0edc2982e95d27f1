//! Sessions across processes: however they end, none uses up what others need.
mod common;
use common::*;

#[test]
fn role() {
    common::role();
}
use common::{no_clone as cloned, no_fork as forked};

/// More than a hundred processes join, submit a signal, and are killed, exit, or leave. Each time the exporter learns
/// of it, and what the process had is free again.
#[test]
fn processes_that_owe_and_end_leave_nothing_behind() {
    let place = Place::new();
    let (mut exporter, mut witness) = (Peer::at(&place.0), Peer::at(&place.0));
    exporter.ask("slot e");
    exporter.ask("slot f");
    let (e, f) = (exporter.ask("export-slot e"), exporter.ask("export-slot f"));
    witness.ask(&format!("open-event {f}"));
    let before = exporter.ask("descriptors");
    for round in 0..120 {
        let mut importer = Peer::at(&place.0);
        importer.ask(&format!("open-event {e}"));
        importer.ask(&format!("signal {e}"));
        match round % 3 {
            0 => importer.kill(),
            1 => assert!(importer.exits().success(), "round {round}"), // with a signal pending, and without telling the exporter
            _ => {
                importer.ask("complete");
                importer.ask(&format!("close-event {e}"));
            }
        }
        let ended = match exporter.ask("wait e 10000") {
            waiting if waiting == "waiting" => exporter.hear(),
            at_once => at_once,
        };
        let expected = if round % 3 == 2 { "complete at once" } else { "Failed" };
        assert_eq!(ended, expected, "round {round}");
        // Another process signals all the time.
        witness.ask(&format!("signal {f}"));
        witness.ask("complete");
        assert_eq!(exporter.ask("wait f 10000"), "complete at once");
    }
    eventually("nothing of theirs is open", || exporter.ask("descriptors") == before);
}
/// A process takes all the counters that it can get, and keeps them. Processes that come later can still open and
/// signal, while it lives and after it is killed.
#[test]
fn a_process_that_takes_all_counters_it_can_keeps_nobody_else_from_signalling() {
    let place = Place::new();
    let mut exporter = Peer::at(&place.0);
    exporter.ask("slot e");
    let e = exporter.ask("export-slot e");
    let mut hog = Peer::at(&place.0);
    hog.ask(&format!("open-event {e}"));
    let (taken, refusal) = hog.take_counters(&e, usize::MAX);
    assert!(refusal.starts_with("Full"), "{refusal}");
    assert!(taken > 30_000, "all that it may have, and that is half of them: {taken}");
    let others_signal = |exporter: &mut Peer| {
        let mut other = Peer::at(&place.0);
        assert!(other.ask(&format!("open-event {e}")).starts_with("event"));
        for _ in 0..3 {
            assert_eq!(other.ask(&format!("signal {e}")), "ok");
            assert_eq!(exporter.ask("wait e 10000"), "waiting");
            assert_eq!(other.ask("complete"), "ok");
            assert_eq!(exporter.hear(), "Complete");
        }
        assert_eq!(exporter.ask("signal e"), "ok", "the exporter itself");
        assert_eq!(exporter.ask("complete"), "ok");
    };
    others_signal(&mut exporter);
    exporter.ask("slot f"); // in an arena with free counters
    others_signal(&mut exporter);
    hog.kill();
    let mut next = Peer::at(&place.0);
    next.ask(&format!("open-event {e}"));
    // Without the hog's counters it would get half of the remaining half.
    eventually("what it had comes back", || next.take_counters(&e, usize::MAX).0 > taken * 3 / 4);
    others_signal(&mut exporter);
}
