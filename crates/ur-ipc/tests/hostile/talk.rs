//! The protocol's messages, written from its description and not with its code.
use super::*;

pub fn connect(path: &Path) -> Result<OwnedFd, Errno> {
    let socket =
        socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
    sockopt::set_socket_timeout(&socket, sockopt::Timeout::Recv, Some(Duration::from_secs(10)))?;
    rustix::net::connect(&socket, &SocketAddrUnix::new(path)?)?;
    Ok(socket)
}
pub fn exporter() -> (Place, Peer, String) {
    let place = Place::new();
    let mut exporter = Peer::at(&place.0);
    let ticket = exporter.ask("export hello 1 same");
    (place, exporter, ticket)
}
/// Opens the ticket in a new process, sooner than any timeout could end.
#[track_caller]
pub fn is_served(place: &Place, ticket: &str) {
    let mut importer = Peer::at(&place.0);
    importer.ask("idle");
    let asked = Instant::now();
    assert_eq!(importer.ask(&format!("open {ticket}")), "remote hello 16 32");
    assert!(asked.elapsed() < Duration::from_millis(1500), "{:?}", asked.elapsed());
}
/// The number of descriptors of an exporter that has served a process which is gone.
pub fn settled(place: &Place, exporter: &mut Peer, ticket: &str) -> String {
    is_served(place, ticket);
    eventually("all is quiet", || exporter.ask("leased 1") == "false");
    exporter.ask("descriptors")
}
/// A request in this protocol's layout: magic, version, what, number, read, key, ledger, generation, participant,
/// index, ticket.
pub fn request(what: u16, number: u64, key: u64, index: u16, ticket: &[u8]) -> Vec<u8> {
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
/// Reports that an open of a memory object has ended, and nothing else.
pub fn closed(object: u64) -> Vec<u8> {
    let mut bytes = request(READ, 0, 0, 0, &[]);
    bytes.extend(object.to_le_bytes());
    bytes.push(1);
    bytes
}
pub const FETCH: u16 = 1;
pub const READ: u16 = 2;
pub const TAKE_COUNTER: u16 = 4;
pub const PING: u16 = 8;
pub const CONFIRM: u16 = 10;
pub const GIVE_BACK: u16 = 11;
pub const LAPSED: u16 = 9;
pub const FULL: u16 = 6;
/// Verdict and nonce of the next answer, and how many descriptors came with it; `None` at the end.
pub fn answer(socket: &OwnedFd) -> Option<(u16, u64, usize)> {
    let mut bytes = [0; 512];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut into = [rustix::io::IoSliceMut::new(&mut bytes)];
    let mut received = recvmsg(socket, &mut into, &mut control, RecvFlags::CMSG_CLOEXEC);
    // A reset is reported before the data that was sent ahead of it.
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
pub fn say(socket: &OwnedFd, bytes: &[u8]) {
    send(socket, bytes, SendFlags::NOSIGNAL).unwrap();
}
