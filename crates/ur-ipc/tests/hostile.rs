//! Peers that keep silent, flood, send garbage or descriptors, or never read: none of them stalls another.
mod common;
use common::*;
use rustix::{
    fd::{AsFd, OwnedFd},
    io::{Errno, IoSlice},
    net::*,
};
use std::{
    mem::MaybeUninit,
    os::unix::fs::FileTypeExt,
    path::Path,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    time::{Duration, Instant},
};

#[test]
fn role() {
    common::role();
}
use common::{no_clone as cloned, no_fork as forked};

fn connect(path: &Path) -> Result<OwnedFd, Errno> {
    let socket =
        socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
    sockopt::set_socket_timeout(&socket, sockopt::Timeout::Recv, Some(Duration::from_secs(10)))?;
    rustix::net::connect(&socket, &SocketAddrUnix::new(path)?)?;
    Ok(socket)
}
fn exporter() -> (Place, Peer, String) {
    let place = Place::new();
    let mut exporter = Peer::at(&place.0);
    let ticket = exporter.ask("export hello 1 same");
    (place, exporter, ticket)
}
/// Opens the ticket in a process of its own, within half a second.
#[track_caller]
fn is_served(place: &Place, ticket: &str) {
    let mut importer = Peer::at(&place.0);
    importer.ask("idle");
    let asked = Instant::now();
    assert_eq!(importer.ask(&format!("open {ticket}")), "remote hello 16 32");
    assert!(asked.elapsed() < Duration::from_millis(500), "{:?}", asked.elapsed());
}
/// The descriptors of an exporter that has served somebody who is gone.
fn settled(place: &Place, exporter: &mut Peer, ticket: &str) -> String {
    is_served(place, ticket);
    eventually("all is quiet", || exporter.ask("leased 1") == "false");
    exporter.ask("descriptors")
}
/// A request as this protocol lays it out: magic, version, what, number, read, key, ledger, generation,
/// participant, index, ticket.
fn request(what: u16, number: u64, key: u64, index: u16, ticket: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend(0x6377_6970u32.to_le_bytes());
    bytes.extend(2u16.to_le_bytes());
    bytes.extend(what.to_le_bytes());
    bytes.extend(number.to_le_bytes());
    let (read, key) = if what == READ { (key, 0) } else { (0, key) };
    bytes.extend(read.to_le_bytes());
    bytes.extend(key.to_le_bytes());
    bytes.extend([0; 12]);
    bytes.extend(index.to_le_bytes());
    bytes.extend(ticket);
    bytes.resize(46 + ur_ipc::ENVELOPE_LEN, 0);
    bytes
}
/// That an open of a memory object was closed, and nothing else.
fn closed(object: u64) -> Vec<u8> {
    let mut bytes = request(READ, 0, 0, 0, &[]);
    bytes.extend(object.to_le_bytes());
    bytes.push(1);
    bytes
}
const FETCH: u16 = 1;
const READ: u16 = 2;
const TAKE_COUNTER: u16 = 4;
const PING: u16 = 8;
const CONFIRM: u16 = 10;
const GIVE_BACK: u16 = 11;
const LAPSED: u16 = 9;
const FULL: u16 = 6;
/// Verdict and nonce of the next answer, and how many descriptors came with it; `None` at the end.
fn answer(socket: &OwnedFd) -> Option<(u16, u64, usize)> {
    let mut bytes = [0; 512];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut into = [rustix::io::IoSliceMut::new(&mut bytes)];
    let mut received = recvmsg(socket, &mut into, &mut control, RecvFlags::CMSG_CLOEXEC);
    // A reset is told before what was said ahead of it.
    if matches!(received, Err(Errno::CONNRESET)) {
        received = recvmsg(socket, &mut into, &mut control, RecvFlags::CMSG_CLOEXEC);
    }
    let got = match received {
        Ok(got) => got.bytes,
        Err(Errno::CONNRESET) => return None,
        Err(e) => panic!("{e}"),
    };
    let rights = control.drain().map(|m| match m {
        RecvAncillaryMessage::ScmRights(fds) => fds.count(),
        _ => 0,
    });
    let rights = rights.sum();
    (got > 0).then(|| {
        let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
        ((word(0) >> 48) as u16, word(16), rights)
    })
}
fn say(socket: &OwnedFd, bytes: &[u8]) {
    send(socket, bytes, SendFlags::NOSIGNAL).unwrap();
}

#[test]
fn silent_peers_stall_nobody_and_are_shown_out() {
    let (place, mut exporter, ticket) = exporter();
    let before = settled(&place, &mut exporter, &ticket);
    let silent: Vec<_> = (0..200).map(|_| connect(&place.socket()).unwrap()).collect();
    is_served(&place, &ticket);
    for socket in &silent {
        // Turned away with a word, or its time was over.
        if let Some(said) = answer(socket) {
            assert_eq!((said, answer(socket)), ((FULL, 0, 0), None));
        }
    }
    eventually("they cost nothing any more", || exporter.ask("descriptors") == before);
}
#[test]
fn a_flood_of_connections_stalls_nobody() {
    let (place, _exporter, ticket) = exporter();
    let path = place.socket();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Relaxed) {
                let socket = connect(&path).unwrap();
                let _ = send(&socket, &request(PING, 1, 0, 0, &[]), SendFlags::NOSIGNAL);
            }
        });
        let _stopped = Stop(&stop);
        for _ in 0..5 {
            is_served(&place, &ticket);
        }
    });
}
struct Stop<'a>(&'a AtomicBool);
impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}
#[test]
fn garbage_ends_its_own_connection_only() {
    let (place, mut exporter, ticket) = exporter();
    let good = connect(&place.socket()).unwrap();
    let lengths = [1, 4, 45, 217, 218, 219, 227, 506, 4096, 60_000];
    for length in lengths {
        let socket = connect(&place.socket()).unwrap();
        say(&socket, &vec![0xa5; length]);
        assert_eq!(answer(&socket), None, "{length} bytes");
    }
    for what in [0, 9, CONFIRM, GIVE_BACK, 13, u16::MAX, READ, 3, 5, 6] {
        let socket = connect(&place.socket()).unwrap();
        say(&socket, &request(what, 1, 77, 1, &[]));
        assert_eq!(answer(&socket), None, "request {what}");
    }
    // A question about an arena that was never joined, or a session that is not known, is answered, with a refusal.
    for what in [4, 7, 12] {
        let socket = connect(&place.socket()).unwrap();
        say(&socket, &request(what, 1, 77, 1, &[]));
        assert_ne!(answer(&socket).unwrap().0, 1, "request {what}");
    }
    say(&good, &request(PING, 1, 0, 0, &[]));
    assert_eq!(answer(&good), Some((1, 0, 0)));
    is_served(&place, &ticket);
    assert_eq!(exporter.ask(&format!("standing {ticket}")), "stands");
}
#[test]
fn descriptors_that_nobody_asked_for_are_closed() {
    let (place, mut exporter, ticket) = exporter();
    let before = settled(&place, &mut exporter, &ticket);
    let (ours, theirs) =
        socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None).unwrap();
    sockopt::set_socket_timeout(&ours, sockopt::Timeout::Recv, Some(Duration::from_secs(10)))
        .unwrap();
    let socket = connect(&place.socket()).unwrap();
    for count in [1, 4, 5, 60] {
        let fds: Vec<_> = (0..count).map(|_| theirs.as_fd()).collect();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(60))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        assert!(control.push(SendAncillaryMessage::ScmRights(&fds)));
        let bytes = request(PING, 1, 0, 0, &[]);
        sendmsg(&socket, &[IoSlice::new(&bytes)], &mut control, SendFlags::empty()).unwrap();
        assert_eq!(answer(&socket), Some((1, 0, 0)));
    }
    drop(theirs);
    // Only when all copies are closed is this the end.
    assert_eq!(recv(&ours, &mut [0; 1][..], RecvFlags::empty()).unwrap().0, 0);
    drop(socket);
    eventually("nothing is left", || exporter.ask("descriptors") == before);
    is_served(&place, &ticket);
}
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
    // It reads the answer after all, asks whether it still counts, and asks anew.
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
    // What it gives back by its nonce ends once, and nothing else does.
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
    // But a question is not, before it has read what it was sent.
    say(&socket, &request(PING, 3, 0, 0, &[]));
    assert_eq!(answer(&socket), None);
    assert_ne!(nonce, 0);
}
/// It need not say so: the kernel does. Nor does it have to be asked anything more for that.
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
        assert!(closed.elapsed() < Duration::from_millis(500), "{:?}", closed.elapsed());
    }
}
/// At either side of reading the answer, and longer than the exporter waits for that.
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
        // Not by time, once it is acknowledged.
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
/// The open of an event that was stopped: the importer stays in the arena, and signals and waits there.
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
/// It is asked after until it ends, as it could write its counters until then; by one descriptor.
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
fn unread_grants_of_one_peer_block_nobody_for_long() {
    let (place, _exporter, ticket) = exporter();
    // Those beyond this process's share are turned away, and cannot be told anything.
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
/// It is served when somebody else reads. A fault then ends its connection, over which it would be told nothing, and what
/// it holds is kept for it.
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
    // Of one process two may be unread; the third waits for them.
    let unread = [fetch(&ticket, 1, 0), fetch(&ticket, 1, 0)];
    eventually("both are granted", || unread.each_ref().map(is_readable) == [true; 2]);
    say(&waits, &request(FETCH, 2, 77, 0, &unhex(&ticket)));
    // The broker has taken it in, and has come to another since.
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
#[test]
fn a_forged_ticket_is_unknown_even_under_a_right_checksum() {
    let (place, _exporter, ticket) = exporter();
    let socket = connect(&place.socket()).unwrap();
    let mut bytes = unhex(&ticket);
    bytes[90] ^= 1; // in the secret; the checksum is then wrong, which is nonsense
    say(&socket, &request(FETCH, 1, 0, 0, &bytes));
    let (verdict, nonce, rights) = answer(&socket).unwrap();
    assert!(verdict != 1 && nonce == 0 && rights == 0, "{verdict}");
}
/// A program that a process of ours becomes has none of its connections, and no connection makes its broker wait.
#[test]
fn a_brokers_sockets_are_for_no_other_program_and_make_nobody_wait() {
    let (place, exporter, ticket) = exporter();
    let visitors: Vec<_> = (0..3).map(|_| connect(&place.socket()).unwrap()).collect();
    is_served(&place, &ticket);
    let flags = |fd: &std::fs::DirEntry| {
        let fd = fd.file_name().into_string().unwrap();
        let info = std::fs::read_to_string(format!("/proc/{}/fdinfo/{fd}", exporter.pid())).ok()?;
        let flags = info.lines().find_map(|line| line.strip_prefix("flags:"))?;
        u32::from_str_radix(flags.trim(), 8).ok()
    };
    let all = std::fs::read_dir(format!("/proc/{}/fd", exporter.pid())).unwrap().flatten();
    let is_socket = |fd: &std::fs::DirEntry| {
        std::fs::read_link(fd.path()).is_ok_and(|to| to.to_string_lossy().starts_with("socket:"))
    };
    let sockets: Vec<_> = all.filter(is_socket).filter_map(|fd| flags(&fd)).collect();
    assert!(sockets.len() > visitors.len(), "{sockets:?}");
    for flags in sockets {
        let (cloexec, nonblock) = (0o2_000_000, 0o4000);
        assert_eq!(flags & (cloexec | nonblock), cloexec | nonblock, "{flags:o}");
    }
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
/// An exporter that keeps so many connections.
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
    // One that has closed what it had is silent: it makes way, and comes again when it needs to.
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
/// As many as one machine runs of one user's, under the limit on descriptors that processes have by default.
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
    assert!(took > Duration::from_millis(1500) && took < Duration::from_millis(3500), "{took:?}");
    // The late answer is taken in, its lease given back, and the connection goes on.
    eventually("the late lease is given back", || exporter.ask("leased 1") == "false");
    assert_eq!(importer.ask(&format!("current {other}")), "current");
    assert_eq!(importer.ask(&format!("open {ticket}")), "remote hello 16 32");
    let stays = Instant::now();
    eventually("longer than the broker's patience", || {
        assert_eq!(importer.ask(&format!("current {other}")), "current");
        stays.elapsed() > Duration::from_millis(1300)
    });
}
#[test]
fn what_the_dead_left_in_the_directory_is_swept_by_the_next_exporter() {
    let (place, mut exporter, ticket) = exporter();
    exporter.kill();
    assert_eq!(place.names().len(), 2);
    let mut next = Peer::at(&place.0);
    assert!(next.ask(&format!("open {ticket}")).starts_with("ExporterGone"));
    next.ask("export again 1 same");
    assert_eq!(place.names().len(), 2);
    assert!(place.socket().metadata().unwrap().file_type().is_socket());
}

/// An answer as this protocol lays it out, that claims to bring these descriptors.
fn answer_bytes(number: u64, verdict: u16, rights: u16) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend(0x6377_6970u32.to_le_bytes());
    bytes.extend(2u16.to_le_bytes());
    bytes.extend(verdict.to_le_bytes());
    bytes.extend(number.to_le_bytes());
    for word in [99u64, 1, 0, 4096] {
        bytes.extend(word.to_le_bytes()); // nonce, object, base, exposes
    }
    bytes.extend([0; 14]);
    bytes.extend(rights.to_le_bytes());
    bytes.resize(70 + 256, 0);
    bytes
}
/// Somebody of the same user who has taken a dead exporter's place, and what importers make of what he says.
#[track_caller]
fn impostor(says: impl Fn(&OwnedFd) + Sync) -> String {
    let (place, mut exporter, ticket) = exporter();
    let path = place.socket();
    exporter.kill();
    std::fs::remove_file(&path).unwrap();
    let flags = SocketFlags::CLOEXEC;
    let door = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap();
    bind(&door, &SocketAddrUnix::new(&path).unwrap()).unwrap();
    listen(&door, 16).unwrap();
    let mut importer = Peer::at(&place.0);
    let before = importer.ask("descriptors");
    let said = std::thread::scope(|scope| {
        scope.spawn(|| {
            while let Ok(socket) = accept(&door) {
                says(&socket);
            }
        });
        let said = importer.ask(&format!("open {ticket}"));
        shutdown(&door, Shutdown::Both).unwrap();
        said
    });
    eventually("nothing is left of it", || importer.ask("descriptors") == before);
    said
}
fn say_with(socket: &OwnedFd, bytes: &[u8], fds: &[rustix::fd::BorrowedFd<'_>]) {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    assert!(fds.is_empty() || control.push(SendAncillaryMessage::ScmRights(fds)));
    let _ = sendmsg(socket, &[IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL);
}

#[test]
fn an_impostor_who_talks_nonsense_is_not_listened_to() {
    for length in [1, 34, 325, 326, 327, 5000] {
        let said = impostor(|socket| {
            answer(socket);
            say_with(socket, &vec![0x5a; length], &[]);
        });
        assert!(said.starts_with("PeerNonsense"), "{length}: {said}");
    }
}
#[test]
fn an_impostor_who_hangs_up_is_an_exporter_that_is_gone() {
    let said = impostor(|_| {});
    assert!(said.starts_with("ExporterGone"), "{said}");
}
#[test]
fn an_impostor_who_grants_what_is_not_there_is_refused() {
    let unsealed = rustix::fs::memfd_create("m", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
    rustix::fs::ftruncate(&unsealed, 4096).unwrap();
    let sealed: OwnedFd = memory("m", 4096).into();
    let (unsealed, sealed) = (unsealed.as_fd(), sealed.as_fd());
    // Descriptors promised: payload 1, ledger 2. Neither of these is a ledger.
    let sent: [(u16, &[_]); 6] = [
        (0, &[]),
        (3, &[]),
        (3, &[sealed]),
        (3, &[unsealed, sealed]),
        (3, &[sealed, sealed]),
        (1, &[sealed, sealed, sealed]),
    ];
    for (at, (rights, fds)) in sent.into_iter().enumerate() {
        let said = impostor(|socket| {
            answer(socket);
            say_with(socket, &answer_bytes(1, 1, rights), fds);
            answer(socket); // until it says that it has read that, or hangs up
        });
        assert!(said.starts_with("PeerNonsense"), "{at}: {said}");
    }
}
/// One that answers as late as it may, and each time with a grant that it then says to have taken back.
#[test]
fn an_impostor_whose_grants_lapse_again_and_again_does_not_draw_an_open_out() {
    let opened = Instant::now();
    let said = impostor(|socket| {
        let mut bytes = [0; 512];
        let ends = sockopt::set_socket_timeout(
            socket,
            sockopt::Timeout::Recv,
            Some(Duration::from_secs(3)),
        );
        ends.unwrap(); // the importer keeps the connection
        while let Ok((46.., _)) = recv(socket, &mut bytes[..], RecvFlags::empty()) {
            let number = u64::from_le_bytes(bytes[8..16].try_into().unwrap());
            let verdict = match u16::from_le_bytes([bytes[6], bytes[7]]) {
                FETCH => {
                    std::thread::sleep(Duration::from_millis(1800)); // a slow peer, not a wait for one
                    1
                }
                CONFIRM => LAPSED,
                _ => continue,
            };
            say_with(socket, &answer_bytes(number, verdict, 0), &[]);
        }
    });
    assert!(said.starts_with("TimedOut"), "{said}");
    // With the answer that comes too late, and the three seconds after it.
    assert!(opened.elapsed() < Duration::from_secs(11), "{:?}", opened.elapsed());
}
