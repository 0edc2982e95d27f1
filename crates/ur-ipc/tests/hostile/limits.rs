//! Shares and limits of connections, descriptors and time.
use super::*;

/// The exporter watches for the end of the process, which could write its counters until then, with a single
/// descriptor.
#[test]
fn a_process_that_comes_and_goes_with_counters_costs_its_exporter_no_descriptors() {
    let place = Place::new();
    let mut exporter = Peer::at(&place.0);
    exporter.ask("slot e");
    let ticket = unhex(&exporter.ask("export-slot e"));
    let visit = |participant: u32| {
        let socket = connect(&place.socket()).unwrap();
        say(&socket, &request(FETCH, 1, 0, 0, &ticket));
        let (verdict, nonce, _) = answer(&socket).unwrap();
        assert_eq!(verdict, 1);
        say(&socket, &request(READ, 0, nonce, 0, &[]));
        let mut take = request(TAKE_COUNTER, 2, 0, 0, &[]);
        take[40..44].copy_from_slice(&participant.to_le_bytes());
        say(&socket, &take);
        assert_eq!(answer(&socket), Some((1, 0, 0)));
    };
    visit(1);
    let before: usize = exporter.ask("descriptors").parse().unwrap();
    (2..100).for_each(visit);
    eventually("it has as many as before", || {
        exporter.ask("descriptors").parse::<usize>().unwrap() <= before
    });
}
#[test]
fn a_process_beyond_its_share_is_told_so_and_no_other_is() {
    let place = Place::new();
    let mut exporter = small(&place, "64");
    let ticket = exporter.ask("export hello 1 same");
    let take = || {
        let socket = connect(&place.socket()).unwrap();
        let said = send(&socket, &request(FETCH, 1, 0, 0, &unhex(&ticket)), SendFlags::NOSIGNAL);
        assert!(matches!(said, Ok(_) | Err(Errno::PIPE)), "{said:?}");
        let (verdict, nonce, _) = answer(&socket).unwrap();
        if verdict == 1 {
            say(&socket, &request(READ, 0, nonce, 0, &[]));
        }
        (socket, verdict)
    };
    let (sockets, verdicts): (Vec<_>, Vec<_>) = (0..5).map(|_| take()).unzip();
    assert_eq!(verdicts, [1, 1, 1, 1, FULL], "a sixteenth of 64");
    is_served(&place, &ticket);
    drop(sockets);
    eventually("there is room again", || take().1 == 1);
}
/// An exporter that keeps at most this many connections.
fn small(place: &Place, importers: &str) -> Peer {
    Peer::start(&place.0, |command| {
        command.env("CAUSEWAY_MAX_IMPORTERS", importers);
    })
}
#[test]
fn a_peer_beyond_the_limit_is_told_so() {
    let place = Place::new();
    let mut exporter = small(&place, "8");
    let ticket = exporter.ask("export hello 1 same");
    let open = format!("open {ticket}");
    let mut importers: Vec<_> = (0..8).map(|_| Peer::at(&place.0)).collect();
    for importer in &mut importers {
        assert_eq!(importer.ask(&open), "remote hello 16 32");
    }
    let mut late = Peer::at(&place.0);
    let answer = late.ask(&open);
    assert!(answer.starts_with("Full:"), "{answer}");
    assert!(answer.contains("CAUSEWAY_MAX_IMPORTERS"), "{answer}");
    // An importer that has closed what it had is idle: its connection makes way, and it connects again when it needs
    // to.
    importers[3].ask(&format!("close {ticket}"));
    eventually("there is room again", || late.ask(&open).starts_with("remote"));
    importers[4].ask(&format!("close {ticket}"));
    eventually("there is room again", || importers[3].ask(&open).starts_with("remote"));
}
#[test]
fn silent_processes_lock_nobody_out() {
    let place = Place::new();
    let mut exporter = small(&place, "32");
    let ticket = exporter.ask("export hello 1 same");
    let path = place.socket().display().to_string();
    let mut silent: Vec<_> = (0..16).map(|_| Peer::at(&place.0)).collect();
    let mut importers: Vec<_> = (0..8).map(|_| Peer::at(&place.0)).collect();
    for (at, importer) in importers.iter_mut().enumerate() {
        silent[2 * at].ask(&format!("connect-silently {path} 4"));
        silent[2 * at + 1].ask(&format!("connect-silently {path} 4"));
        assert_eq!(importer.ask(&format!("open {ticket}")), "remote hello 16 32");
    }
    for importer in &mut importers {
        assert_eq!(importer.ask(&format!("current {ticket}")), "current");
    }
}
/// As many as one machine runs for one user, with the default limit on descriptors.
#[test]
fn two_hundred_and_fifty_six_importers_hold_memory_and_an_event_at_once() {
    const IMPORTERS: usize = 256;
    let place = Place::new();
    let mut exporter = Peer::at(&place.0);
    assert_eq!(exporter.ask("limit-descriptors 1024"), "ok");
    let memory = exporter.ask("export hello 1 same");
    exporter.ask("slot e");
    let event = exporter.ask("export-slot e");
    let mut importers: Vec<_> = (0..IMPORTERS).map(|_| Peer::at(&place.0)).collect();
    for importer in &mut importers {
        importer.tell(&format!("open {memory}"));
        importer.tell(&format!("open-event {event}"));
    }
    for importer in &mut importers {
        assert_eq!(importer.hear(), "remote hello 16 32");
        let answer = importer.hear();
        assert!(answer.starts_with("event"), "{answer}");
    }
    for importer in &mut importers {
        assert_eq!(importer.ask(&format!("current {memory}")), "current");
    }
    let descriptors: usize = exporter.ask("descriptors").parse().unwrap();
    assert!(descriptors <= 1024 - 256, "a quarter is left to the program: {descriptors}");
    drop(importers);
    eventually("all leases end", || exporter.ask("leased 1") == "false");
}
#[test]
fn an_exporter_without_descriptors_says_so_and_recovers() {
    let (place, mut exporter, ticket) = exporter();
    settled(&place, &mut exporter, &ticket);
    let mut importer = Peer::at(&place.0);
    assert_eq!(exporter.ask("exhaust 0"), "ok");
    let answer = importer.ask(&format!("open {ticket}"));
    assert!(answer.starts_with("TooManyDescriptors"), "{answer}");
    assert!(answer.contains("exporter"), "{answer}");
    assert_eq!(exporter.ask("recover"), "ok");
    assert_eq!(importer.ask(&format!("open {ticket}")), "remote hello 16 32");
}
#[test]
fn a_stopped_exporter_costs_two_seconds_and_no_more_and_recovers() {
    let (place, mut exporter, ticket) = exporter();
    let mut importer = Peer::at(&place.0);
    let other = exporter.ask("export other 2 same");
    importer.ask(&format!("open {other}"));
    exporter.signal(rustix::process::Signal::STOP);
    let asked = Instant::now();
    let answer = importer.ask(&format!("open {ticket}"));
    let took = asked.elapsed();
    exporter.signal(rustix::process::Signal::CONT);
    assert!(answer.starts_with("TimedOut"), "{answer}");
    assert!(took > Duration::from_millis(1500) && took < Duration::from_secs(8), "{took:?}");
    // The late answer is received, its lease given back, and the connection continues.
    eventually("the late lease is given back", || exporter.ask("leased 1") == "false");
    assert_eq!(importer.ask(&format!("current {other}")), "current");
    assert_eq!(importer.ask(&format!("open {ticket}")), "remote hello 16 32");
    let stays = Instant::now();
    eventually("longer than the broker's patience", || {
        assert_eq!(importer.ask(&format!("current {other}")), "current");
        stays.elapsed() > Duration::from_millis(1300)
    });
}
