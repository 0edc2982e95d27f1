//! Silence, floods, garbage, forged tickets, descriptors that were not requested, and names left by dead exporters.
use super::*;

#[test]
fn silent_peers_stall_nobody_and_are_shown_out() {
    let (place, mut exporter, ticket) = exporter();
    let before = settled(&place, &mut exporter, &ticket);
    let silent: Vec<_> = (0..200).map(|_| connect(&place.socket()).unwrap()).collect();
    is_served(&place, &ticket);
    for socket in &silent {
        // Refused with an answer, or disconnected after its timeout.
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
    // A request about an arena that was never joined, or an unknown session, is answered with a refusal.
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
    // This is the end only if all copies are closed.
    assert_eq!(recv(&ours, &mut [0; 1][..], RecvFlags::empty()).unwrap().0, 0);
    drop(socket);
    eventually("nothing is left", || exporter.ask("descriptors") == before);
    is_served(&place, &ticket);
}
#[test]
fn a_forged_ticket_is_unknown_even_under_a_right_checksum() {
    let (place, _exporter, ticket) = exporter();
    let socket = connect(&place.socket()).unwrap();
    let mut bytes = unhex(&ticket);
    bytes[90] ^= 1; // in the secret; the checksum is then wrong, which violates the protocol
    say(&socket, &request(FETCH, 1, 0, 0, &bytes));
    let (verdict, nonce, rights) = answer(&socket).unwrap();
    assert!(verdict != 1 && nonce == 0 && rights == 0, "{verdict}");
}
/// A program that replaces the exporter has none of its connections, and no connection can make its broker wait.
#[test]
fn a_brokers_sockets_are_for_no_other_program_and_make_nobody_wait() {
    let (place, exporter, ticket) = exporter();
    let connections: Vec<_> = (0..3).map(|_| connect(&place.socket()).unwrap()).collect();
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
    assert!(sockets.len() > connections.len(), "{sockets:?}");
    for flags in sockets {
        let (cloexec, nonblock) = (0o2_000_000, 0o4000);
        assert_eq!(flags & (cloexec | nonblock), cloexec | nonblock, "{flags:o}");
    }
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
