//! A process of the same user that listens in a dead exporter's place.
use super::*;

/// An answer in this protocol's layout that claims to bring these descriptors.
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
/// A process of the same user listens in a dead exporter's place and answers with `says`; returns what an importer
/// makes of it.
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
    // Descriptors announced: payload 1, ledger 2. Neither of these is a ledger.
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
            answer(socket); // until it acknowledges that, or hangs up
        });
        assert!(said.starts_with("PeerNonsense"), "{at}: {said}");
    }
}
/// It answers as late as it may, each time with a grant that it then claims to have taken back.
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
                    std::thread::sleep(Duration::from_millis(1800)); // simulates a slow peer
                    1
                }
                CONFIRM => LAPSED,
                _ => continue,
            };
            say_with(socket, &answer_bytes(number, verdict, 0), &[]);
        }
    });
    assert!(said.starts_with("TimedOut"), "{said}");
    // Eight seconds, including the answer that comes too late and the three seconds after it, and not thirty.
    assert!(opened.elapsed() < Duration::from_secs(20), "{:?}", opened.elapsed());
}
