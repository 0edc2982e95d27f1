//! Entry points for the fuzzers to the code that reads other processes' bytes. Nothing else uses them.
use crate::{
    broker::Broker,
    envelope::{ENVELOPE_LEN, Envelope, MAGIC, SUM_KEY, SUMMED},
    identity::hash,
    protocol::{
        ANSWER_LEN, Message, REQUEST_LEN, Request, decode_answer, decode_message, encode_answer,
        encode_message, encode_request, receive, send,
    },
    watcher,
};
use rustix::{
    event::epoll::EventFlags,
    net::{AddressFamily, SocketFlags, SocketType, socketpair},
};
use std::os::fd::{AsFd, OwnedFd};

/// The number that a broker gives its first connection.
const FIRST: u64 = 1;
/// The bytes of the magic number and the version with which a request begins.
const HEAD: usize = 6;

/// Decodes a ticket, and checks that what was decoded encodes and decodes to the same contents.
pub fn envelope(bytes: &[u8]) {
    const KEY: [u8; 16] = [7; 16];
    let Ok(read) = Envelope::parse(bytes) else { return };
    let written = read.seal(&KEY);
    let again = Envelope::parse(&written).expect("what was written can be read");
    assert_eq!(again.seal(&KEY), written);
    assert_eq!(again.tag(), read.tag());
}

/// Gives `bytes`, if they are as long as a ticket, a valid magic number and checksum, so that the fields are decoded
/// too.
pub fn with_checksum(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    if bytes.len() == ENVELOPE_LEN {
        bytes[..MAGIC.len()].copy_from_slice(&MAGIC);
        let sum = hash(SUM_KEY, &bytes[..SUMMED]).to_le_bytes();
        bytes[SUMMED..].copy_from_slice(&sum);
    }
    bytes
}

/// Decodes a request and an answer, and checks that what was decoded encodes and decodes to the same contents.
pub fn messages(bytes: &[u8]) {
    let write = |m: &Message| encode_message(m.number, m.read, &m.ends, &m.request);
    if let Some(message) = decode_message(bytes) {
        let written = write(&message);
        assert_eq!(write(&decode_message(&written).expect("ours")), written);
    }
    if let Some((number, answer)) = decode_answer(bytes) {
        let written = encode_answer(number, &answer);
        let (number, answer) = decode_answer(&written).expect("ours");
        assert_eq!(encode_answer(number, &answer), written);
    }
}

/// A peer that is connected to a broker and sends arbitrary bytes.
pub struct Visit {
    broker: Broker,
    us: OwnedFd,
}
impl Visit {
    /// A new connection, if there are descriptors for it.
    pub fn new() -> Option<Self> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let (us, theirs) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).ok()?;
        watcher::be_ready();
        let mut broker = Broker::new();
        broker.welcome(theirs);
        Some(Self { broker, us })
    }
    /// Sends `bytes` with `rights` descriptors of this very socket, and receives the answer: returns the nonce if the
    /// answer brought descriptors, else 0; `None` if the broker has hung up.
    pub fn say(&mut self, bytes: &[u8], rights: usize) -> Option<u64> {
        let rights: Vec<_> = (0..rights).map(|_| self.us.as_fd()).collect();
        send(&self.us, bytes, &rights).ok()?;
        self.broker.hear(FIRST, EventFlags::IN);
        let mut answer = [0; ANSWER_LEN];
        match receive(&self.us, &mut answer) {
            Ok(got) if got.length == 0 => None,
            Ok(got) => decode_answer(answer.get(..got.length)?).map(|(_, answer)| answer.nonce),
            Err(rustix::io::Errno::AGAIN) => Some(0),
            Err(_) => None,
        }
    }
    /// Like [`Visit::say`], with a valid head: `fields` are the bytes that follow the magic number and the version.
    pub fn ask(&mut self, fields: &[u8], rights: usize) -> Option<u64> {
        let mut bytes = encode_request(0, 0, &Request::Ping);
        let most = fields.len().min(REQUEST_LEN - HEAD);
        bytes[HEAD..HEAD + most].copy_from_slice(&fields[..most]);
        self.say(&bytes, rights)
    }
}
impl Drop for Visit {
    fn drop(&mut self) {
        self.broker.part(FIRST);
    }
}
