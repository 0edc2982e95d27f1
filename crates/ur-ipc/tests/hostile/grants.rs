//! Grants that are not read, not acknowledged, or read late by an importer that was stopped.
use super::*;

#[test]
fn a_grant_that_is_not_acknowledged_in_time_is_taken_back_alone() {
    let (place, mut exporter, kept) = exporter();
    let late = exporter.ask("export late 2 same");
    let socket = connect(&place.socket()).unwrap();
    say(&socket, &request(FETCH, 1, 0, 0, &unhex(&kept)));
    let (_, nonce, _) = answer(&socket).unwrap();
    say(&socket, &request(READ, 0, nonce, 0, &[]));
    say(&socket, &request(FETCH, 2, 0, 0, &unhex(&late)));
    eventually("it is granted", || exporter.ask("leased 2") == "true");
    eventually("it is taken back", || exporter.ask("leased 2") == "false");
    assert_eq!(exporter.ask("leased 1"), "true", "what was acknowledged stands");
    is_served(&place, &kept);
    // It reads the answer after all, asks whether it still stands, and repeats the request.
    let (verdict, nonce, rights) = answer(&socket).unwrap();
    assert_eq!((verdict, rights), (1, 2));
    say(&socket, &request(READ, 0, nonce, 0, &[]));
    say(&socket, &request(CONFIRM, 3, nonce, 0, &[]));
    assert_eq!(answer(&socket), Some((LAPSED, 0, 0)));
    say(&socket, &request(FETCH, 4, 0, 0, &unhex(&late)));
    let (verdict, nonce, _) = answer(&socket).unwrap();
    say(&socket, &request(READ, 0, nonce, 0, &[]));
    say(&socket, &request(CONFIRM, 5, nonce, 0, &[]));
    assert_eq!((verdict, answer(&socket)), (1, Some((1, 0, 0))));
    assert_eq!(
        (exporter.ask("leased 1"), exporter.ask("leased 2")),
        ("true".into(), "true".into())
    );
    // What it gives back by its nonce ends once, and nothing else ends.
    say(&socket, &request(GIVE_BACK, 0, nonce, 0, &[]));
    say(&socket, &request(GIVE_BACK, 0, nonce, 0, &[]));
    eventually("it is given back", || exporter.ask("leased 2") == "false");
    assert_eq!(exporter.ask("leased 1"), "true");
    drop(socket);
    eventually("a lease ends with its connection", || exporter.ask("leased 1") == "false");
}
#[test]
fn a_lease_is_given_back_by_one_that_owes_an_acknowledgement() {
    let (place, mut exporter, first) = exporter();
    let late = exporter.ask("export late 2 same");
    let socket = connect(&place.socket()).unwrap();
    say(&socket, &request(FETCH, 1, 0, 0, &unhex(&first)));
    let (_, nonce, _) = answer(&socket).unwrap();
    say(&socket, &request(READ, 0, nonce, 0, &[]));
    say(&socket, &request(FETCH, 2, 0, 0, &unhex(&late)));
    eventually("it is granted", || exporter.ask("leased 2") == "true");
    eventually("it is taken back", || exporter.ask("leased 2") == "false");
    say(&socket, &closed(1));
    eventually("it is heard", || exporter.ask("leased 1") == "false");
    let (_, nonce, _) = answer(&socket).unwrap();
    // But a request is not answered before it has read the previous answer.
    say(&socket, &request(PING, 3, 0, 0, &[]));
    assert_eq!(answer(&socket), None);
    assert_ne!(nonce, 0);
}
/// It does not have to acknowledge: the kernel reports the receipt, and no further request is needed for that.
#[test]
fn a_grant_that_was_received_stands_although_nobody_says_so() {
    let (place, mut exporter, ticket) = exporter();
    let socket = connect(&place.socket()).unwrap();
    say(&socket, &request(FETCH, 1, 0, 0, &unhex(&ticket)));
    let (_, nonce, _) = answer(&socket).unwrap();
    let asked = Instant::now();
    eventually("longer than its patience", || {
        assert_eq!(exporter.ask("leased 1"), "true");
        asked.elapsed() > Duration::from_millis(1300)
    });
    say(&socket, &request(CONFIRM, 2, nonce, 0, &[]));
    assert_eq!(answer(&socket), Some((1, 0, 0)));
}
#[test]
fn what_was_closed_is_said_soon_although_nothing_else_is() {
    let (place, mut exporter, ticket) = exporter();
    let mut importer = Peer::at(&place.0);
    for _ in 0..3 {
        assert_eq!(importer.ask(&format!("open {ticket}")), "remote hello 16 32");
        assert_eq!(exporter.ask("leased 1"), "true");
        assert_eq!(importer.ask(&format!("close {ticket}")), "ok");
        let closed = Instant::now();
        eventually("the lease ends", || exporter.ask("leased 1") == "false");
        assert!(closed.elapsed() < Duration::from_secs(5), "{:?}", closed.elapsed());
    }
}
/// Stopped before or after reading the answer, and for longer than the exporter waits for that.
#[test]
fn an_importer_that_is_stopped_during_an_open_loses_nothing_that_it_had() {
    for (point, is_read) in [("fetch.before_answer:2", false), ("fetch.before_acknowledge:2", true)]
    {
        let (place, mut exporter, first) = exporter();
        let second = exporter.ask("export second 2 same");
        let mut importer = Peer::start(&place.0, |command| {
            command.env("CAUSEWAY_STOP_AT", point);
        });
        assert_eq!(importer.ask(&format!("open {first}")), "remote hello 16 32");
        importer.tell(&format!("open {second}"));
        eventually("it is granted", || exporter.ask("leased 2") == "true");
        importer.await_stop();
        if !is_read {
            eventually("it is taken back", || exporter.ask("leased 2") == "false");
        }
        assert_eq!(exporter.ask(&format!("put {first}")), "ok");
        assert_eq!(exporter.ask("free 1"), "ok");
        let stopped = Instant::now();
        eventually("longer than the exporter's patience", || {
            assert_eq!(
                exporter.ask("leased 1"),
                "true",
                "{point}: its memory is not given to others"
            );
            assert_eq!(exporter.ask("leased 2"), is_read.to_string(), "{point}");
            stopped.elapsed() > Duration::from_millis(1300)
        });
        importer.signal(rustix::process::Signal::CONT);
        assert_eq!(importer.hear(), "remote second 16 32", "{point}");
        assert_eq!(exporter.ask("leased 2"), "true", "{point}: open");
        assert_eq!(importer.ask(&format!("read {first}")), "hello");
        // No timeout applies once it is acknowledged.
        importer.signal(rustix::process::Signal::STOP);
        let stopped = Instant::now();
        eventually("longer than any patience", || {
            assert_eq!(exporter.ask("leased 1"), "true", "{point}");
            assert_eq!(exporter.ask("leased 2"), "true", "{point}");
            stopped.elapsed() > Duration::from_millis(1500)
        });
        importer.signal(rustix::process::Signal::CONT);
        assert_eq!(importer.ask(&format!("close {first}")), "ok");
        assert_eq!(exporter.hear(), "lease of 1 gone", "{point}");
        assert_eq!(exporter.ask("leased 2"), "true", "{point}");
    }
}
/// An importer was stopped while it opened an event: it stays in the arena, and can signal and wait there.
#[test]
fn an_importer_that_is_stopped_while_it_opens_keeps_its_place_in_the_arena() {
    let (place, mut exporter, _ticket) = exporter();
    for name in ["e", "f"] {
        exporter.ask(&format!("slot {name}"));
    }
    let (e, memory) = (exporter.ask("export-slot e"), exporter.ask("export second 2 same"));
    let f = exporter.ask("export-slot f");
    let mut importer = Peer::start(&place.0, |command| {
        command.env("CAUSEWAY_STOP_AT", "fetch.before_answer:3");
    });
    importer.ask(&format!("open-event {e}"));
    importer.ask(&format!("signal {e}"));
    importer.tell(&format!("open {memory}"));
    importer.await_stop();
    eventually("its grant is taken back", || exporter.ask("leased 2") == "false");
    assert_eq!(exporter.ask("wait e 10000"), "waiting");
    importer.signal(rustix::process::Signal::CONT);
    assert_eq!(importer.hear(), "remote second 16 32");
    importer.ask("complete");
    assert_eq!(exporter.hear(), "Complete", "what it owed, it paid");
    assert!(importer.ask(&format!("open-event {f}")).starts_with("event"));
    importer.ask(&format!("signal {f}"));
    importer.ask("complete");
    assert_eq!(exporter.ask("wait f 10000"), "complete at once");
}
#[test]
fn a_grant_that_is_read_in_time_is_kept() {
    let (place, mut exporter, ticket) = exporter();
    let socket = connect(&place.socket()).unwrap();
    say(&socket, &request(FETCH, 1, 0, 0, &unhex(&ticket)));
    let (_, nonce, _) = answer(&socket).unwrap();
    say(&socket, &request(READ, 0, nonce, 0, &[]));
    let asked = Instant::now();
    eventually("longer than its patience", || {
        assert_eq!(exporter.ask("leased 1"), "true");
        asked.elapsed() > Duration::from_millis(1300)
    });
    say(&socket, &closed(1));
    eventually("it is given back", || exporter.ask("leased 1") == "false");
}
#[test]
fn unread_grants_of_one_peer_block_nobody_for_long() {
    let (place, _exporter, ticket) = exporter();
    // Connections beyond this process's share are refused and cannot send requests.
    let sockets: Vec<_> = (0..60).map(|_| connect(&place.socket()).unwrap()).collect();
    for socket in &sockets {
        let bytes = request(FETCH, 1, 0, 0, &unhex(&ticket));
        let said = send(socket, &bytes, SendFlags::NOSIGNAL);
        assert!(matches!(said, Ok(_) | Err(Errno::PIPE)), "{said:?}");
    }
    is_served(&place, &ticket);
    drop(sockets);
    is_served(&place, &ticket);
}
/// The request is served when another peer reads its answer. A fault then ends the connection, over which the peer
/// could no longer be answered, and what the peer holds is kept for it.
#[test]
fn a_fault_in_a_request_that_waited_is_told_to_who_asked_and_takes_nothing_from_it() {
    let place = Place::new();
    let mut exporter = Peer::start(&place.0, |command| {
        command.env("CAUSEWAY_PANIC_AT", "broker.serve_waiting");
    });
    let ticket = exporter.ask("export hello 1 same");
    let other = exporter.ask("export other 2 same");
    assert_eq!(exporter.ask("limit-descriptors 64"), "ok");
    let fetch = |ticket: &str, number, session| {
        let socket = connect(&place.socket()).unwrap();
        say(&socket, &request(FETCH, number, session, 0, &unhex(ticket)));
        socket
    };
    let waits = fetch(&other, 1, 77);
    let (_, nonce, _) = answer(&waits).unwrap();
    say(&waits, &request(READ, 0, nonce, 0, &[]));
    // One process may have two unread answers; the third request waits for them.
    let unread = [fetch(&ticket, 1, 0), fetch(&ticket, 1, 0)];
    eventually("both are granted", || unread.each_ref().map(is_readable) == [true; 2]);
    say(&waits, &request(FETCH, 2, 77, 0, &unhex(&ticket)));
    // The broker has read the request, and has served another peer since.
    eventually("it is heard", || ur_mapping::unreceived(&waits).unwrap() == 0);
    let other = connect(&place.socket()).unwrap();
    say(&other, &request(PING, 1, 0, 0, &[]));
    assert_eq!(answer(&other), Some((1, 0, 0)));
    let nonces = unread.each_ref().map(|socket| answer(socket).unwrap().1);
    assert_eq!(answer(&waits), None, "it asks again over another connection");
    assert!(exporter.ask("notices").contains("a fault in the thread"));
    let told = Instant::now();
    eventually("longer than any patience", || {
        assert_eq!(exporter.ask("leased 2"), "true", "it may come back for that");
        told.elapsed() > Duration::from_millis(1300)
    });
    say(&unread[0], &request(CONFIRM, 2, nonces[0], 0, &[]));
    assert_eq!(answer(&unread[0]), Some((1, 0, 0)), "the fault was nobody else's");
    is_served(&place, &ticket);
    drop(waits);
    eventually("its lease ends with it", || exporter.ask("leased 2") == "false");
}
fn is_readable(socket: &OwnedFd) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut [PollFd::new(socket, PollFlags::IN)], Some(&at_once)).unwrap() == 1
}
#[test]
fn asking_again_before_reading_ends_the_connection() {
    let (place, mut exporter, ticket) = exporter();
    let socket = connect(&place.socket()).unwrap();
    say(&socket, &request(FETCH, 1, 0, 0, &unhex(&ticket)));
    say(&socket, &request(FETCH, 2, 0, 0, &unhex(&ticket)));
    assert_eq!(answer(&socket).unwrap().0, 1);
    assert_eq!(answer(&socket), None);
    eventually("its lease went with it", || exporter.ask("leased 1") == "false");
}
