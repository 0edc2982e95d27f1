//! The messages between importers and brokers, over `SOCK_SEQPACKET`. An answer is a datagram of fixed size; a request
//! is of fixed size too, and is followed by the opens that have ended since the previous request. Both sides treat the
//! other's bytes as hostile. Admission is left to `broker`, and timeouts are left to `broker` and `fetch`.
use crate::shared_memory::beyond_standard;
use crate::{ENVELOPE_LEN, Kind, Object, waiting::uninterrupted};
use rustix::{
    io::{Errno, IoSlice, IoSliceMut},
    net::{
        RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
        SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
    },
};
use std::{
    mem::MaybeUninit,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    time::Duration,
};
use zerocopy::{
    FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned,
    little_endian::{U16, U32, U64},
};

/// How long a peer may take to send a request, to read an answer, or to acknowledge one.
pub(crate) const PATIENCE: Duration = Duration::from_secs(1);
/// Payload bytes that fit into an answer.
pub(crate) const PAYLOAD: usize = 256;
/// The most descriptors of one request that are received; further ones are closed.
const RIGHTS: usize = 4;
/// The most descriptors of one payload that one answer brings. It is well below the kernel's limit of 253, so that many
/// answers can be in flight without reaching the user's limit of descriptors in flight.
pub(crate) const BATCH: usize = 64;
/// The payload's descriptors, and those of a ledger, an arena and a process.
const ANSWER_RIGHTS: usize = BATCH + 3;

/// The most ended opens that one request reports.
pub(crate) const ENDS: usize = 32;

const MAGIC: u32 = 0x6377_6970;
const VERSION: u16 = 2;

/// A request of an importer. Each has an answer unless its documentation says otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Request {
    /// Opens what the ticket names. An event is opened as `participant` of its arena; 0 joins the arena, and the
    /// request then brings a pidfd of the importer. `part` selects which [`BATCH`] descriptors of a large payload are
    /// sent; each part is a lease of its own. `session`, a secret of the importer, identifies its connection if it is
    /// ever lost. `lacks_memory` requests the descriptor even if it was sent before.
    Fetch {
        session: u64,
        ticket: Box<[u8; ENVELOPE_LEN]>,
        has_ledger: bool,
        lacks_memory: bool,
        participant: u32,
        part: u32,
    },
    /// Carries only what comes with any request: the acknowledgement of an answer and the ended opens. No answer.
    Read,
    /// Requests a counter in the joined arena.
    TakeCounter { ledger: u32, participant: u32 },
    /// Returns a counter. No answer.
    ReleaseCounter { ledger: u32, participant: u32, counter: u16 },
    /// The importer has closed its last open of a slot. No answer.
    SlotClosed { ledger: u32, participant: u32, slot: u16, generation: u32 },
    /// Requests a pidfd of the process that still has to advance this counter; the answer has none if there is no such
    /// process.
    Debtor { ledger: u32, participant: u32, counter: u16 },
    /// The importer has left the arena and uses none of its counters and slots any more. No answer.
    Leave { ledger: u32, participant: u32 },
    /// Checks that the broker still answers.
    Ping,
    /// Queries whether what the answer with this nonce granted still stands, because it may have been read too late.
    Confirm { nonce: u64 },
    /// Returns what the answer with this nonce granted; it may have been taken back already. No answer.
    GiveBack { nonce: u64 },
    /// The connection of this session was lost: this connection is to take over what it held. `nonce` is that of the
    /// last answer with descriptors whose receipt was not acknowledged; 0 if there is none.
    Resume { session: u64, nonce: u64 },
}
impl Request {
    pub fn wants_answer(&self) -> bool {
        use Request::*;
        match self {
            Fetch { .. } | TakeCounter { .. } | Debtor { .. } | Ping | Confirm { .. } => true,
            Resume { .. } => true,
            Read | ReleaseCounter { .. } | SlotClosed { .. } => false,
            Leave { .. } | GiveBack { .. } => false,
        }
    }
}

/// A request, with the acknowledgement and the ended opens that it carries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Message {
    /// The answer carries the same number.
    pub number: u64,
    /// The nonce of an answer that was received with its descriptors and not yet acknowledged; else 0.
    pub read: u64,
    /// The objects of which one open each has ended; at most [`ENDS`]. They are applied before the request.
    pub ends: Vec<Object>,
    pub request: Request,
}

/// The broker's decision on a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub(crate) enum Verdict {
    Granted = 1,
    Withdrawn = 2,
    Freed = 3,
    /// The export never existed, or this peer may not have it.
    Unknown = 4,
    /// The policy refuses this peer. Only peers of the exporter's own user are told so.
    Denied = 5,
    /// A table of the broker is full: connections, participants or counters, for example.
    Full = 6,
    /// The exporter has no descriptors left, or its user has too many in flight.
    Descriptors = 7,
    /// The request is not valid here.
    Nonsense = 8,
    /// What was granted was not acknowledged in time and has been taken back.
    Lapsed = 9,
}

/// A broker's answer. Which fields are used depends on the request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub verdict: Verdict,
    /// The nonce that the peer acknowledges with its next request, if descriptors came with the answer; else 0.
    pub nonce: u64,
    /// Whether the peer must acknowledge at once, because the broker cannot see from the kernel that the answer was
    /// received.
    pub is_urgent: bool,
    /// Which descriptors come with the answer, in this order.
    pub rights: Rights,
    pub object: u64,
    pub base: u64,
    pub exposes: u64,
    /// The number of the memory's descriptor, unique within the connection. If the descriptor does not come with this
    /// answer, it came with an earlier one. 0 is none.
    pub memory: u32,
    /// How many descriptors the payload has in all its parts together.
    pub descriptors: u16,
    /// The importer's participant number in the arena, or that of the process that still has to advance the counter.
    pub participant: u32,
    pub counter: u16,
    pub epoch: u32,
    pub payload: Vec<u8>,
}
impl Answer {
    pub fn of(verdict: Verdict) -> Self {
        Self {
            verdict,
            nonce: 0,
            is_urgent: false,
            rights: Rights::default(),
            object: 0,
            base: 0,
            exposes: 0,
            memory: 0,
            descriptors: 0,
            participant: 0,
            counter: 0,
            epoch: 0,
            payload: Vec::new(),
        }
    }
}

/// Which descriptors an answer brings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rights {
    pub payload: bool,
    pub ledger: bool,
    pub arena: bool,
    pub process: bool,
    /// How many further descriptors of the payload follow right after its first.
    pub more: u8,
}
impl Rights {
    fn bits(self) -> u16 {
        [self.payload, self.ledger, self.arena, self.process]
            .iter()
            .rev()
            .fold(self.more.into(), |bits, set| bits << 1 | u16::from(*set))
    }
    fn from_bits(bits: u16) -> Option<Self> {
        let bit = |n: u16| bits >> n & 1 == 1;
        let more = u8::try_from(bits >> 4).ok()?;
        let is_right = usize::from(more) < BATCH && (more == 0 || bit(0));
        is_right.then(|| Self {
            payload: bit(0),
            ledger: bit(1),
            arena: bit(2),
            process: bit(3),
            more,
        })
    }
    pub fn count(self) -> usize {
        (self.bits() & 15).count_ones() as usize + usize::from(self.more)
    }
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct RequestLayout {
    magic: U32,
    version: U16,
    what: U16,
    number: U64,
    read: U64,
    key: U64,
    ledger: U32,
    generation: U32,
    participant: U32,
    index: U16,
    ticket: [u8; ENVELOPE_LEN],
}
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct AnswerLayout {
    magic: U32,
    version: U16,
    verdict: U16,
    number: U64,
    nonce: U64,
    object: U64,
    base: U64,
    exposes: U64,
    memory: U32,
    participant: U32,
    epoch: U32,
    counter: U16,
    rights: U16,
    is_urgent: U16,
    descriptors: U16,
    length: U16,
    payload: [u8; PAYLOAD],
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct EndLayout {
    object: U64,
    kind: u8,
}

/// Size of every request, without the ended opens.
pub(crate) const REQUEST_LEN: usize = size_of::<RequestLayout>();
/// Size of the longest message.
pub(crate) const MESSAGE_LEN: usize = REQUEST_LEN + ENDS * size_of::<EndLayout>();
/// Size of every answer.
pub(crate) const ANSWER_LEN: usize = size_of::<AnswerLayout>();

/// Encodes a request without ended opens; see [`Message`].
pub(crate) fn encode_request(number: u64, read: u64, request: &Request) -> [u8; REQUEST_LEN] {
    let mut l = RequestLayout {
        magic: MAGIC.into(),
        version: VERSION.into(),
        what: 0.into(),
        number: number.into(),
        read: read.into(),
        key: 0.into(),
        ledger: 0.into(),
        index: 0.into(),
        generation: 0.into(),
        participant: 0.into(),
        ticket: [0; ENVELOPE_LEN],
    };
    let mut place = |ledger: u32, participant: u32, index: u16| {
        (l.ledger, l.participant, l.index) = (ledger.into(), participant.into(), index.into());
    };
    let what: u16 = match *request {
        Request::Fetch { session, ref ticket, has_ledger, lacks_memory, participant, part } => {
            place(part, participant, u16::from(has_ledger) | u16::from(lacks_memory) << 1);
            l.key = session.into();
            l.ticket = **ticket;
            1
        }
        Request::Read => 2,
        Request::TakeCounter { ledger, participant } => {
            place(ledger, participant, 0);
            4
        }
        Request::ReleaseCounter { ledger, participant, counter } => {
            place(ledger, participant, counter);
            5
        }
        Request::SlotClosed { ledger, participant, slot, generation } => {
            place(ledger, participant, slot);
            l.generation = generation.into();
            6
        }
        Request::Debtor { ledger, participant, counter } => {
            place(ledger, participant, counter);
            7
        }
        Request::Ping => 8,
        Request::Leave { ledger, participant } => {
            place(ledger, participant, 0);
            9
        }
        Request::Confirm { nonce } => {
            l.key = nonce.into();
            10
        }
        Request::GiveBack { nonce } => {
            l.key = nonce.into();
            11
        }
        Request::Resume { session, nonce } => {
            l.key = session.into();
            (l.ledger, l.generation) = ((nonce as u32).into(), ((nonce >> 32) as u32).into());
            12
        }
    };
    l.what = what.into();
    zerocopy::transmute!(l)
}

/// Encodes a request with the opens that ended, at most [`ENDS`].
pub(crate) fn encode_message(
    number: u64,
    read: u64,
    ends: &[Object],
    request: &Request,
) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(MESSAGE_LEN);
    bytes.extend_from_slice(&encode_request(number, read, request));
    for (kind, object) in ends {
        let end = EndLayout { object: (*object).into(), kind: *kind as u8 };
        bytes.extend_from_slice(end.as_bytes());
    }
    bytes
}

/// Decodes a message; `None` if the bytes are not a valid one.
pub(crate) fn decode_message(bytes: &[u8]) -> Option<Message> {
    let (l, ends) = RequestLayout::read_from_prefix(bytes).ok()?;
    let ends = <[EndLayout]>::ref_from_bytes(ends).ok().filter(|ends| ends.len() <= ENDS)?;
    if l.magic != MAGIC || l.version != VERSION {
        return None;
    }
    let (ledger, participant, index) = (l.ledger.get(), l.participant.get(), l.index.get());
    let request = match l.what.get() {
        1 => {
            let (session, ticket) = (l.key.get(), Box::new(l.ticket));
            let (has_ledger, lacks_memory) = (index & 1 != 0, index & 2 != 0);
            Request::Fetch { session, ticket, has_ledger, lacks_memory, participant, part: ledger }
        }
        2 => Request::Read,
        4 => Request::TakeCounter { ledger, participant },
        5 => Request::ReleaseCounter { ledger, participant, counter: index },
        6 => {
            let generation = l.generation.get();
            Request::SlotClosed { ledger, participant, slot: index, generation }
        }
        7 => Request::Debtor { ledger, participant, counter: index },
        8 => Request::Ping,
        9 => Request::Leave { ledger, participant },
        10 => Request::Confirm { nonce: l.key.get() },
        11 => Request::GiveBack { nonce: l.key.get() },
        12 => {
            let nonce = u64::from(l.generation.get()) << 32 | u64::from(ledger);
            Request::Resume { session: l.key.get(), nonce }
        }
        _ => return None,
    };
    let object = |end: &EndLayout| Some((Kind::from_byte(end.kind)?, end.object.get()));
    let ends = ends.iter().map(object).collect::<Option<_>>()?;
    Some(Message { number: l.number.get(), read: l.read.get(), ends, request })
}

/// Encodes an answer.
pub(crate) fn encode_answer(number: u64, answer: &Answer) -> [u8; ANSWER_LEN] {
    let mut payload = [0; PAYLOAD];
    let length = answer.payload.len().min(PAYLOAD); // an export with more bytes was refused
    payload[..length].copy_from_slice(&answer.payload[..length]);
    zerocopy::transmute!(AnswerLayout {
        magic: MAGIC.into(),
        version: VERSION.into(),
        verdict: (answer.verdict as u16).into(),
        number: number.into(),
        nonce: answer.nonce.into(),
        object: answer.object.into(),
        base: answer.base.into(),
        exposes: answer.exposes.into(),
        memory: answer.memory.into(),
        participant: answer.participant.into(),
        epoch: answer.epoch.into(),
        counter: answer.counter.into(),
        rights: answer.rights.bits().into(),
        is_urgent: u16::from(answer.is_urgent).into(),
        descriptors: answer.descriptors.into(),
        length: (length as u16).into(),
        payload,
    })
}

/// Decodes an answer and its number; `None` if the bytes are not a valid one.
pub(crate) fn decode_answer(bytes: &[u8]) -> Option<(u64, Answer)> {
    use Verdict::*;
    let l = AnswerLayout::read_from_bytes(bytes).ok()?;
    if l.magic != MAGIC || l.version != VERSION {
        return None;
    }
    let verdicts =
        [Granted, Withdrawn, Freed, Unknown, Denied, Full, Descriptors, Nonsense, Lapsed];
    let answer = Answer {
        verdict: verdicts.into_iter().find(|v| *v as u16 == l.verdict.get())?,
        nonce: l.nonce.get(),
        is_urgent: l.is_urgent.get() != 0,
        rights: Rights::from_bits(l.rights.get())?,
        object: l.object.get(),
        base: l.base.get(),
        exposes: l.exposes.get(),
        memory: l.memory.get(),
        descriptors: l.descriptors.get(),
        participant: l.participant.get(),
        counter: l.counter.get(),
        epoch: l.epoch.get(),
        payload: l.payload.get(..usize::from(l.length.get()))?.to_vec(),
    };
    Some((l.number.get(), answer))
}

/// Sends one datagram, whole or not at all, without waiting.
pub(crate) fn send(
    socket: &impl AsFd,
    bytes: &[u8],
    rights: &[BorrowedFd<'_>],
) -> Result<(), Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(ANSWER_RIGHTS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !rights.is_empty() && !control.push(SendAncillaryMessage::ScmRights(rights)) {
        return Err(Errno::INVAL);
    }
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    uninterrupted(|| sendmsg(socket, &[IoSlice::new(bytes)], &mut control, flags)).map(drop)
}

/// One datagram as received.
pub(crate) struct Received {
    /// 0 is the end of the connection: no datagram of this protocol is empty.
    pub length: usize,
    pub rights: Vec<OwnedFd>,
    /// Whether descriptors were lost: too many came, or this process has reached its limit.
    pub rights_lost: bool,
}

/// Receives a request that has arrived, without waiting. Descriptors beyond the few that the protocol defines are
/// closed.
pub(crate) fn receive(socket: &impl AsFd, into: &mut [u8]) -> Result<Received, Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(RIGHTS))];
    uninterrupted(|| receive_in(socket, into, &mut space, RecvFlags::DONTWAIT))
}
/// Receives an answer that has arrived, without waiting; it may bring part of a payload of many descriptors.
pub(crate) fn receive_answer(socket: &impl AsFd, into: &mut [u8]) -> Result<Received, Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(ANSWER_RIGHTS))];
    uninterrupted(|| receive_in(socket, into, &mut space, RecvFlags::DONTWAIT))
}
/// Receives an answer, waiting until the socket's own timeout or until a signal comes.
pub(crate) fn await_answer(socket: &impl AsFd, into: &mut [u8]) -> Result<Received, Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(ANSWER_RIGHTS))];
    receive_in(socket, into, &mut space, RecvFlags::empty())
}
fn receive_in(
    socket: &impl AsFd,
    into: &mut [u8],
    space: &mut [MaybeUninit<u8>],
    flags: RecvFlags,
) -> Result<Received, Errno> {
    let mut control = RecvAncillaryBuffer::new(space);
    let flags = flags | RecvFlags::CMSG_CLOEXEC | RecvFlags::TRUNC;
    let mut into = [IoSliceMut::new(into)];
    let message = recvmsg(socket, &mut into, &mut control, flags)?;
    let (mut rights, mut rights_lost) = (Vec::new(), message.flags.contains(ReturnFlags::CTRUNC));
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(fds) = message {
            for fd in fds {
                match beyond_standard(fd) {
                    Ok(fd) => rights.push(fd),
                    Err(_) => rights_lost = true,
                }
            }
        }
    }
    Ok(Received { length: message.bytes, rights, rights_lost })
}

#[cfg(test)]
mod tests;
