//! What two well-behaved processes exchange: descriptors, bytes, events; and the errors when that is not possible.
mod common;
use common::*;

#[test]
fn role() {
    common::role();
}
use common::{no_clone as cloned, no_fork as forked};

fn pair() -> (Place, Peer, Peer) {
    let place = Place::new();
    let (exporter, importer) = (Peer::at(&place.0), Peer::at(&place.0));
    (place, exporter, importer)
}

#[test]
fn a_descriptor_crosses_and_both_sides_see_what_either_writes() {
    let (_place, mut exporter, mut importer) = pair();
    let ticket = exporter.ask("export hello 1 same");
    assert_eq!(importer.ask(&format!("open {ticket}")), "remote hello 16 32");
    let mut third = Peer::at(&_place.0);
    assert_eq!(third.ask(&format!("open {ticket}")), "remote hello 16 32");
    assert_eq!(third.ask(&format!("write {ticket} HOWDY")), "ok");
    assert_eq!(importer.ask(&format!("read {ticket}")), "HOWDY");
}
#[test]
fn a_drivers_descriptor_crosses_with_its_bytes_and_is_the_drivers_to_judge() {
    let (_place, mut exporter, mut importer) = pair();
    let ticket = exporter.ask("export-driver 8192 65536");
    assert_eq!(importer.ask(&format!("open-driver {ticket}")), "driver 8192 65536 4096");
    assert_eq!(exporter.ask(&format!("open-driver {ticket}")), "local 4");
    assert!(exporter.ask("export-driver 65530 65536").starts_with("Unsupported"));
}
/// The exporter sends their descriptor once, and again after the importer has closed everything that it had open there.
#[test]
fn objects_in_one_memory_arrive_as_one_memory() {
    let (_place, mut exporter, mut importer) = pair();
    let tickets = exporter.ask("export-pooled 80");
    let before = importer.ask("descriptors");
    for _ in 0..2 {
        assert_eq!(importer.ask(&format!("open-pooled {tickets}")), "80 in 1");
        assert_eq!(exporter.ask("leased 900"), "true");
        assert_eq!(importer.ask("close-others"), "ok");
        eventually("all leases end", || {
            ["leased 900", "leased 941", "leased 979"].iter().all(|of| exporter.ask(of) == "false")
        });
    }
    // A connection, a mapped ledger, the watcher thread's two descriptors; but no memory.
    let (before, after) = (before.parse::<usize>(), importer.ask("descriptors").parse::<usize>());
    assert!(after.unwrap() <= before.unwrap() + 5);
}
/// One answer brings 64: a longer run comes in parts, each of them a lease that ends when all parts have come.
#[test]
fn a_run_of_a_drivers_descriptors_crosses_whole_and_in_order() {
    for count in [1, 2, 64, 65, 154, 700] {
        let (_place, mut exporter, mut importer) = pair();
        let ticket = exporter.ask(&format!("export-run {count}"));
        assert_eq!(importer.ask(&format!("open-run {ticket}")), format!("run {count} true"));
        let before = importer.ask("descriptors");
        assert_eq!(importer.ask(&format!("open-run {ticket}")), format!("run {count} true"));
        assert_eq!(importer.ask("descriptors"), before, "nothing stays open");
        eventually("all leases end", || exporter.ask("leased 5") == "false");
    }
}
#[test]
fn a_run_for_which_the_importer_lacks_descriptors_says_so_and_leaves_no_lease() {
    let (_place, mut exporter, mut importer) = pair();
    let ticket = exporter.ask("export-run 154");
    importer.ask("exhaust 100");
    assert!(importer.ask(&format!("open-run {ticket}")).starts_with("TooManyDescriptors"));
    eventually("all leases end", || exporter.ask("leased 5") == "false");
    importer.ask("recover");
    assert_eq!(importer.ask(&format!("open-run {ticket}")), "run 154 true");
}
#[test]
fn a_run_of_no_descriptors_or_of_too_many_is_refused_where_it_is_offered() {
    let (_place, mut exporter, _importer) = pair();
    assert!(exporter.ask("export-run 0").starts_with("Unsupported"));
}
#[test]
fn opening_in_the_exporting_process_is_local() {
    let place = Place::new();
    let mut exporter = Peer::at(&place.0);
    let ticket = exporter.ask("export hello 5 same");
    assert_eq!(exporter.ask(&format!("open {ticket}")), "local 5 16 32");
    assert_eq!(exporter.ask("free 5"), "ok");
    assert!(exporter.ask(&format!("open {ticket}")).starts_with("Freed"));
    assert_eq!(exporter.ask(&format!("put {ticket}")), "ok");
    assert!(exporter.ask(&format!("open {ticket}")).starts_with("Withdrawn"));
}
#[test]
fn opens_of_one_object_share_one_import() {
    let (_place, mut exporter, mut importer) = pair();
    let (one, other) = (exporter.ask("export hello 1 same"), exporter.ask("export hello 1 same"));
    assert_ne!(one, other);
    for ticket in [&one, &other, &one] {
        assert_eq!(importer.ask(&format!("open {ticket}")), "remote hello 16 32");
    }
    assert_eq!(importer.ask("imports"), "1");
    assert_eq!(importer.ask(&format!("same {one} {other}")), "true");
}
#[test]
fn what_was_opened_outlives_the_ticket_but_no_open_succeeds_after_put() {
    let (_place, mut exporter, mut importer) = pair();
    let ticket = exporter.ask("export hello 1 same");
    importer.ask(&format!("open {ticket}"));
    assert_eq!(importer.ask(&format!("current {ticket}")), "current");
    assert_eq!(exporter.ask(&format!("put {ticket}")), "ok");
    assert!(importer.ask(&format!("current {ticket}")).starts_with("Withdrawn"));
    assert!(importer.ask(&format!("open {ticket}")).starts_with("Withdrawn"), "warm");
    assert_eq!(importer.ask(&format!("read {ticket}")), "hello");
    importer.ask(&format!("close {ticket}"));
    assert!(importer.ask(&format!("open {ticket}")).starts_with("Withdrawn"), "cold");
}
#[test]
fn a_put_is_told_from_a_free_and_from_what_never_was() {
    let (_place, mut exporter, mut importer) = pair();
    let kept = exporter.ask("export kept 1 same");
    let put = exporter.ask("export put 2 same");
    let freed = exporter.ask("export freed 3 same");
    exporter.ask(&format!("put {put}"));
    exporter.ask("free 3");
    assert!(importer.ask(&format!("open {put}")).starts_with("Withdrawn"));
    assert!(importer.ask(&format!("open {freed}")).starts_with("Freed"));
    assert!(exporter.ask(&format!("standing {freed}")).starts_with("Freed"));
    // A free also affects a ticket that is open.
    importer.ask(&format!("open {kept}"));
    exporter.ask("free 1");
    assert!(importer.ask(&format!("open {kept}")).starts_with("Freed"));
}
#[test]
fn a_free_gives_back_what_was_kept_for_tickets_that_nobody_put() {
    let (place, mut exporter, mut importer) = pair();
    exporter.ask("slot warm-up");
    let before = exporter.ask("descriptors");
    let tickets: Vec<_> =
        (0..100).map(|object| exporter.ask(&format!("export hello {object} same"))).collect();
    let leased = exporter.ask("export leased 100 same");
    importer.ask(&format!("open {leased}"));
    for object in 0..=100 {
        exporter.ask(&format!("free {object}"));
    }
    assert_eq!(importer.ask(&format!("read {leased}")), "leased");
    assert!(importer.ask(&format!("open {leased}")).starts_with("Freed"), "warm");
    assert!(importer.ask(&format!("open {}", tickets[5])).starts_with("Freed"), "cold");
    importer.ask(&format!("close {leased}"));
    assert_eq!(exporter.hear(), "lease of 100 gone");
    eventually("the broker ends: nothing is shared any more", || place.names().is_empty());
    eventually("no descriptor is left", || exporter.ask("descriptors") == before);
    assert!(importer.ask(&format!("open {}", tickets[5])).contains("freed"), "nobody answers");
    for ticket in &tickets {
        assert!(exporter.ask(&format!("open {ticket}")).starts_with("Freed"));
        assert_eq!(exporter.ask(&format!("put {ticket}")), "ok");
        assert!(exporter.ask(&format!("open {ticket}")).starts_with("Withdrawn"));
    }
}
#[test]
fn why_a_ticket_opens_nothing_is_known_after_its_place_in_the_ledger_went_to_others() {
    let (_place, mut exporter, mut importer) = pair();
    let (freed, put) = (exporter.ask("export hello 1 same"), exporter.ask("export hello 2 same"));
    importer.ask(&format!("open {freed}"));
    importer.ask(&format!("open {put}"));
    exporter.ask("free 1");
    exporter.ask(&format!("put {put}"));
    let mut last = String::new();
    for object in 3..600 {
        last = exporter.ask(&format!("export hello {object} same"));
        exporter.ask(&format!("free {object}"));
    }
    let keep = exporter.ask("export keep 600 same");
    for ticket in [&freed, &last] {
        assert!(importer.ask(&format!("open {ticket}")).starts_with("Freed"));
    }
    assert!(importer.ask(&format!("open {put}")).starts_with("Withdrawn"));
    exporter.ask(&format!("put {freed}"));
    assert!(importer.ask(&format!("open {freed}")).starts_with("Withdrawn"));
    // Putting a ticket long after its line was reused does not affect the line's new export.
    assert_eq!(importer.ask(&format!("open {keep}")), "remote keep 16 32");
}
#[test]
fn a_changed_ticket_opens_nothing_cold_or_warm() {
    let (_place, mut exporter, mut importer) = pair();
    let ticket = exporter.ask("export hello 1 same");
    for round in ["cold", "warm"] {
        for at in (0..ticket.len()).step_by(7) {
            let mut bytes = ticket.clone().into_bytes();
            bytes[at] = if bytes[at] == b'0' { b'1' } else { b'0' };
            let changed = String::from_utf8(bytes).unwrap();
            let answer = importer.ask(&format!("open {changed}"));
            assert!(answer.starts_with("Damaged"), "{round} {at}: {answer}");
        }
        assert!(importer.ask(&format!("open {ticket}00")).starts_with("WrongSize"));
        assert!(importer.ask(&format!("open {}", &ticket[2..])).starts_with("WrongSize"));
        assert_eq!(importer.ask(&format!("open {ticket}")), "remote hello 16 32");
    }
}
#[test]
fn a_wrong_kind_backend_and_device_are_each_told() {
    let (_place, mut exporter, mut importer) = pair();
    let ticket = exporter.ask("export hello 1 same");
    let physical = exporter.ask("export-physical bulk");
    exporter.ask("slot e");
    let event = exporter.ask("export-slot e");
    let told = importer.ask(&format!("open {event}"));
    assert_eq!(told, "WrongKind: this ticket is an event; memory was asked for");
    assert!(importer.ask(&format!("open-physical {ticket}")).starts_with("WrongKind"));
    assert!(importer.ask(&format!("open-bytes {ticket}")).starts_with("WrongBackend"));
    assert!(importer.ask(&format!("open-elsewhere {ticket}")).starts_with("WrongDevice"));
    assert_eq!(importer.ask(&format!("open-physical {physical}")), "remote bulk 16 32");
    importer.ask(&format!("open {ticket}"));
    assert!(importer.ask(&format!("open-elsewhere {ticket}")).starts_with("WrongDevice"), "warm");
}
#[test]
fn bytes_cross_as_well() {
    let (_place, mut exporter, mut importer) = pair();
    let ticket = exporter.ask("export-bytes a-driver's-handle");
    assert_eq!(importer.ask(&format!("open-bytes {ticket}")), "bytes a-driver's-handle");
    let long = "x".repeat(257);
    assert!(exporter.ask(&format!("export-bytes {long}")).starts_with("Unsupported"));
}
#[test]
fn an_object_within_shared_memory_crosses_with_its_base() {
    let (_place, mut exporter, mut importer) = pair();
    let ticket = exporter.ask("export-part hello 4096");
    assert_eq!(importer.ask(&format!("open {ticket}")), "remote hello 16 32");
    assert!(exporter.ask("export-part hello 12000").starts_with("Unsupported"));
}
#[test]
fn an_event_is_waited_for_in_another_process() {
    let (_place, mut exporter, mut importer) = pair();
    exporter.ask("slot e");
    let ticket = exporter.ask("export-slot e");
    assert!(importer.ask(&format!("open-event {ticket}")).starts_with("event"));
    assert_eq!(importer.ask(&format!("wait {ticket} 1000")), "complete at once");
    exporter.ask("signal e");
    assert_eq!(importer.ask(&format!("wait {ticket} 15000")), "waiting");
    exporter.ask("complete");
    assert_eq!(importer.hear(), "Complete");
}
#[test]
fn an_importer_signals_what_the_exporter_and_a_third_process_wait_for() {
    let (place, mut exporter, mut importer) = pair();
    let mut third = Peer::at(&place.0);
    exporter.ask("slot e");
    let ticket = exporter.ask("export-slot e");
    importer.ask(&format!("open-event {ticket}"));
    third.ask(&format!("open-event {ticket}"));
    assert_eq!(importer.ask(&format!("signal {ticket}")), "ok");
    assert_eq!(exporter.ask("wait e 15000"), "waiting");
    assert_eq!(third.ask(&format!("wait {ticket} 15000")), "waiting");
    importer.ask("complete");
    assert_eq!(exporter.hear(), "Complete");
    assert_eq!(third.hear(), "Complete");
}
#[test]
fn leases_hold_what_the_owner_freed_until_the_last_is_gone() {
    let (_place, mut exporter, mut importer) = pair();
    let ticket = exporter.ask("export hello 9 same");
    assert_eq!(exporter.ask("leased 9"), "false");
    importer.ask(&format!("open {ticket}"));
    importer.ask(&format!("open {ticket}"));
    assert_eq!(exporter.ask("leased 9"), "true");
    exporter.ask("free 9");
    importer.ask(&format!("close {ticket}"));
    assert_eq!(exporter.ask("leased 9"), "true");
    importer.ask(&format!("close {ticket}"));
    assert_eq!(exporter.hear(), "lease of 9 gone");
    assert_eq!(exporter.ask("leased 9"), "false");
}
#[test]
fn an_adapter_that_takes_long_to_free_memory_makes_no_importer_wait() {
    let (place, mut exporter, mut importer) = pair();
    let mut other = Peer::at(&place.0);
    let [freed, second, kept] =
        [9, 10, 11].map(|object| exporter.ask(&format!("export hello {object} same")));
    for ticket in [&freed, &second] {
        importer.ask(&format!("open {ticket}"));
    }
    exporter.ask("slow-frees yes");
    exporter.ask("free 9");
    exporter.ask("free 10");
    importer.ask(&format!("close {freed}"));
    assert_eq!(exporter.hear(), "lease of 9 gone"); // the adapter is still processing this
    for importer in [&mut importer, &mut other] {
        assert_eq!(importer.ask(&format!("open {kept}")), "remote hello 16 32");
    }
    importer.ask(&format!("close {second}"));
    assert_eq!(exporter.ask("leased 11"), "true");
    eventually("it is known as closed", || exporter.ask("leased 10") == "false");
    exporter.tell("slow-frees no");
    let mut heard = [exporter.hear(), exporter.hear()];
    heard.sort();
    assert_eq!(heard, ["lease of 10 gone", "ok"]);
}
#[test]
fn a_lease_ends_with_the_importer() {
    let (_place, mut exporter, mut importer) = pair();
    let ticket = exporter.ask("export hello 9 same");
    importer.ask(&format!("open {ticket}"));
    exporter.ask("free 9");
    importer.kill();
    assert_eq!(exporter.hear(), "lease of 9 gone");
}
#[test]
fn broker_thread_and_socket_end_with_the_last_export_and_lease() {
    let (place, mut exporter, mut importer) = pair();
    exporter.ask("slot warm-up");
    let quiet = exporter.ask("descriptors");
    assert_eq!(exporter.ask("watchers"), "0");
    for _ in 0..3 {
        let ticket = exporter.ask("export hello 1 same");
        eventually("a watcher starts", || exporter.ask("watchers") == "1");
        assert_eq!(place.names().len(), 2);
        importer.ask(&format!("open {ticket}"));
        exporter.ask(&format!("put {ticket}"));
        // Only the lease keeps it.
        assert_eq!(exporter.ask("watchers"), "1");
        eventually("the importer has its own", || importer.ask("watchers") == "1");
        importer.ask(&format!("close {ticket}"));
        eventually("the broker ends", || place.names().is_empty());
        eventually("its thread too", || exporter.ask("watchers") == "0");
        eventually("the importer's too", || importer.ask("watchers") == "0");
        eventually("no descriptor is left", || exporter.ask("descriptors") == quiet);
    }
}
#[test]
fn an_importer_is_left_with_the_descriptors_it_had() {
    let (_place, mut exporter, mut importer) = pair();
    let ticket = exporter.ask("export hello 100 same");
    // The connection stays for the next open, and ends with the exporter's last export.
    let before = (importer.ask("descriptors"), importer.ask(&format!("open {ticket}"))).0;
    importer.ask(&format!("close {ticket}"));
    let idle = importer.ask("descriptors");
    assert_ne!(idle, before);
    let mut shared = vec![ticket];
    for object in 0..20 {
        let ticket = exporter.ask(&format!("export hello {object} same"));
        importer.ask(&format!("open {ticket}"));
        importer.ask(&format!("open {ticket}"));
        importer.ask(&format!("close {ticket}"));
        importer.ask(&format!("close {ticket}"));
        exporter.ask("slot e");
        let event = exporter.ask("export-slot e");
        importer.ask(&format!("open-event {event}"));
        importer.ask(&format!("close-event {event}"));
        assert_eq!(importer.ask("descriptors"), idle);
        shared.extend([ticket, event]);
    }
    for ticket in shared {
        exporter.ask(&format!("put {ticket}"));
    }
    eventually("all are closed", || importer.ask("descriptors") == before);
}
#[test]
fn a_warm_open_asks_nobody() {
    let (_place, mut exporter, mut importer) = pair();
    let ticket = exporter.ask("export hello 1 same");
    importer.ask(&format!("open {ticket}"));
    exporter.signal(rustix::process::Signal::STOP);
    let answer = importer.ask(&format!("open-for {ticket} 50"));
    exporter.signal(rustix::process::Signal::CONT);
    println!("{answer}");
    assert!(answer.starts_with("within"), "{answer}");
}
/// The second one needs a request whose answer brings no descriptor, and so brings the 63 behind it.
#[test]
fn tickets_that_are_opened_together_come_in_few_requests_and_others_only_when_they_are_opened() {
    let (_place, mut exporter, mut importer) = pair();
    let tickets = exporter.ask("export-numbers 100");
    let all: Vec<_> = tickets.split(' ').collect();
    importer.ask(&format!("ahead {tickets}"));
    for (n, ticket) in all[..2].iter().enumerate() {
        assert_eq!(importer.ask(&format!("open-bytes {ticket}")), format!("bytes {n}"));
    }
    exporter.signal(rustix::process::Signal::STOP);
    let told: Vec<_> =
        all[2..66].iter().map(|ticket| importer.ask(&format!("open-bytes {ticket}"))).collect();
    exporter.signal(rustix::process::Signal::CONT);
    let (last, others) = told.split_last().unwrap();
    assert!(others.iter().zip(2..).all(|(told, n)| *told == format!("bytes {n}")), "{told:?}");
    assert!(last.starts_with("TimedOut"), "{last}");
    for (ticket, n) in all[65..].iter().zip(65..) {
        assert_eq!(importer.ask(&format!("open-bytes {ticket}")), format!("bytes {n}"));
    }
    importer.ask("close-others");
    eventually("all leases end", || {
        (2000..2100).all(|object| exporter.ask(&format!("leased {object}")) == "false")
    });
}
#[test]
fn a_thread_beside_the_opens_asks_for_all_that_the_first_has_left() {
    let (_place, mut exporter, mut importer) = pair();
    let tickets = exporter.ask("export-numbers 300");
    importer.ask(&format!("ahead {tickets}"));
    let all: Vec<_> = tickets.split(' ').collect();
    assert_eq!(importer.ask(&format!("open-bytes {}", all[0])), "bytes 0");
    assert_eq!(exporter.ask("leased 2001"), "false");
    importer.ask("fetch-ahead");
    exporter.signal(rustix::process::Signal::STOP);
    let told: Vec<_> =
        all[1..].iter().map(|ticket| importer.ask(&format!("open-bytes {ticket}"))).collect();
    exporter.signal(rustix::process::Signal::CONT);
    assert!(told.iter().zip(1..).all(|(told, n)| *told == format!("bytes {n}")), "{told:?}");
}
#[test]
fn what_came_ahead_and_is_not_opened_is_given_back() {
    let (_place, mut exporter, mut importer) = pair();
    let tickets = exporter.ask("export-numbers 70");
    let all: Vec<_> = tickets.split(' ').collect();
    importer.ask(&format!("ahead {tickets}"));
    for ticket in &all[..2] {
        importer.ask(&format!("open-bytes {ticket}"));
    }
    assert_eq!(exporter.ask("leased 2064"), "true");
    assert_eq!(exporter.ask("leased 2065"), "false");
    importer.ask("not-ahead");
    eventually("what was not opened goes back", || exporter.ask("leased 2064") == "false");
    assert_eq!(exporter.ask("leased 2001"), "true");
    assert_eq!(importer.ask(&format!("open-bytes {}", all[64])), "bytes 64");
}
#[test]
fn what_is_withdrawn_before_or_after_it_came_ahead_says_so_where_it_is_opened() {
    let (_place, mut exporter, mut importer) = pair();
    let tickets = exporter.ask("export-numbers 40");
    let all: Vec<_> = tickets.split(' ').collect();
    exporter.ask(&format!("put {}", all[5]));
    importer.ask(&format!("ahead {tickets} {} 00", all[3]));
    for n in [0, 1] {
        assert_eq!(importer.ask(&format!("open-bytes {}", all[n])), format!("bytes {n}"));
    }
    exporter.ask(&format!("put {}", all[6]));
    exporter.ask("free 2007");
    for (n, kind) in [(5, "Withdrawn"), (6, "Withdrawn"), (7, "Freed")] {
        let told = importer.ask(&format!("open-bytes {}", all[n]));
        assert!(told.starts_with(kind), "{n}: {told}");
    }
    for (ticket, n) in all.iter().zip(0..).filter(|(_, n)| ![5, 6, 7].contains(n)) {
        assert_eq!(importer.ask(&format!("open-bytes {ticket}")), format!("bytes {n}"));
    }
    exporter.kill();
    let told = importer.ask(&format!("open-bytes {}", all[6]));
    assert!(told.starts_with("ExporterGone"), "{told}");
}
#[test]
fn many_threads_open_what_came_ahead_once_each() {
    let (_place, mut exporter, mut importer) = pair();
    let tickets = exporter.ask("export-numbers 300");
    importer.ask(&format!("ahead {tickets}"));
    assert_eq!(importer.ask(&format!("open-numbers {tickets}")), "300 right");
    importer.ask("not-ahead");
    importer.ask("close-others");
    eventually("all leases end", || {
        (2000..2300).all(|object| exporter.ask(&format!("leased {object}")) == "false")
    });
}
#[test]
fn a_used_up_descriptor_limit_is_told_and_passes() {
    let (_place, mut exporter, mut importer) = pair();
    let ticket = exporter.ask("export hello 1 same");
    for free in 0..2 {
        is_told(&mut importer, &ticket, free);
    }
    let other = exporter.ask("export other 2 same");
    assert_eq!(importer.ask(&format!("open {other}")), "remote other 16 32");
    // There is a connection now, and only the descriptor itself cannot be received.
    is_told(&mut importer, &ticket, 0);
    eventually("its lease went back", || exporter.ask("leased 1") == "false");
    assert_eq!(importer.ask(&format!("open {ticket}")), "remote hello 16 32");
    eventually("one lease is left", || exporter.ask("leased 1") == "true");
    importer.ask(&format!("close {ticket}"));
    eventually("none is left", || exporter.ask("leased 1") == "false");
}
#[test]
fn many_threads_open_and_close_at_once() {
    let (_place, mut exporter, mut importer) = pair();
    let tickets: Vec<_> =
        (0..3).map(|n| exporter.ask(&format!("export hello {} same", n % 2))).collect();
    importer.ask(&format!("open {}", tickets[0]));
    importer.ask(&format!("close {}", tickets[0]));
    let before = importer.ask("descriptors");
    assert_eq!(importer.ask(&format!("storm {}", tickets.join(" "))), "0 failed");
    eventually("no lease is left", || {
        exporter.ask("leased 0") == "false" && exporter.ask("leased 1") == "false"
    });
    eventually("no descriptor either", || importer.ask("descriptors") == before);
}
#[test]
fn a_put_among_many_opens_fails_them_and_breaks_nothing() {
    let (_place, mut exporter, mut importer) = pair();
    let (put, kept) = (exporter.ask("export put 1 same"), exporter.ask("export kept 2 same"));
    importer.tell(&format!("storm {put} {kept}"));
    exporter.ask(&format!("put {put}"));
    assert!(importer.hear().ends_with("failed"));
    assert!(importer.ask(&format!("open {put}")).starts_with("Withdrawn"));
    assert_eq!(importer.ask(&format!("open {kept}")), "remote kept 16 32");
}
#[test]
fn an_idle_connection_is_used_again_and_keeps_no_broker() {
    let (place, mut exporter, mut importer) = pair();
    let one = exporter.ask("export one 1 same");
    importer.ask(&format!("open {one}"));
    importer.ask(&format!("close {one}"));
    eventually("nothing is leased", || exporter.ask("leased 1") == "false");
    let connected = exporter.ask("descriptors");
    let idle = std::time::Instant::now();
    eventually("longer than strangers may stay", || {
        assert_eq!(exporter.ask("descriptors"), connected);
        idle.elapsed() > std::time::Duration::from_millis(1300)
    });
    importer.ask(&format!("open {one}"));
    assert_eq!(exporter.ask("descriptors"), connected);
    importer.ask(&format!("close {one}"));
    exporter.ask(&format!("put {one}"));
    eventually("the broker ends", || place.names().is_empty() && exporter.ask("watchers") == "0");
    eventually("the importer's watcher too", || importer.ask("watchers") == "0");
    let two = exporter.ask("export two 2 same");
    assert_eq!(importer.ask(&format!("open {two}")), "remote two 16 32");
}
fn is_told(importer: &mut Peer, ticket: &str, free: u32) {
    assert_eq!(importer.ask(&format!("exhaust {free}")), "ok");
    let answer = importer.ask(&format!("open {ticket}"));
    assert!(answer.starts_with("TooManyDescriptors"), "{free} are free: {answer}");
    assert!(answer.contains("ulimit -n"), "{answer}");
    assert_eq!(importer.ask("recover"), "ok");
}
#[test]
fn an_arena_is_left_with_its_last_event_and_joined_again() {
    let (place, mut exporter, mut importer) = pair();
    exporter.ask("slot e");
    let ticket = exporter.ask("export-slot e");
    let keep = exporter.ask("export keep 1 same");
    importer.ask(&format!("open {keep}"));
    for _ in 0..5 {
        assert!(importer.ask(&format!("open-event {ticket}")).starts_with("event"));
        assert_eq!(importer.ask(&format!("signal {ticket}")), "ok");
        assert_eq!(exporter.ask("wait e 15000"), "waiting");
        assert_eq!(importer.ask("complete"), "ok");
        assert_eq!(exporter.hear(), "Complete");
        assert_eq!(importer.ask(&format!("close-event {ticket}")), "1");
    }
    importer.ask(&format!("close {keep}"));
    exporter.ask(&format!("put {keep}"));
    exporter.ask(&format!("put {ticket}"));
    eventually("the broker ends although the connection was kept", || place.names().is_empty());
}
