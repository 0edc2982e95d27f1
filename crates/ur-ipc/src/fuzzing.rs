//! Doors for the fuzzers, and for nobody else: what reads the bytes of other processes.
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

/// The number that a broker gives its first visitor.
const FIRST: u64 = 1;
/// What a request begins with: the magic number and the version.
const HEAD: usize = 6;

/// Reads a ticket: what is read says the same when it is written and read again.
pub fn envelope(bytes: &[u8]) {
    const KEY: [u8; 16] = [7; 16];
    let Ok(read) = Envelope::parse(bytes) else { return };
    let written = read.seal(&KEY);
    let again = Envelope::parse(&written).expect("what was written can be read");
    assert_eq!(again.seal(&KEY), written);
    assert_eq!(again.tag(), read.tag());
}

/// Gives `bytes`, if they are as long as a ticket, the checksum that a ticket has: past it the fields are read.
pub fn with_checksum(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    if bytes.len() == ENVELOPE_LEN {
        bytes[..MAGIC.len()].copy_from_slice(&MAGIC);
        let sum = hash(SUM_KEY, &bytes[..SUMMED]).to_le_bytes();
        bytes[SUMMED..].copy_from_slice(&sum);
    }
    bytes
}

/// Reads a request and an answer: what is read says the same when it is written and read again.
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

/// Somebody who is connected to a broker and says whatever comes to mind.
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
    /// Says `bytes`, with as many descriptors of this very socket along as `rights` says, and hears what comes back:
    /// the nonce of an answer that brought descriptors, else 0; `None` if the broker has hung up.
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
    /// As [`Visit::say`], of a request that is written as one: `fields` are what follows the magic number and version.
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
