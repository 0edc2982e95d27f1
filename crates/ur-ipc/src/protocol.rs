//! What importers and brokers say to each other: datagrams of one fixed size each way, over `SOCK_SEQPACKET`.
//! Both sides decode the other's words as hostile; who is let in, and when to give up, is the broker's and fetch's.
use crate::{ENVELOPE_LEN, Kind, waiting::uninterrupted};
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

/// How long a peer may take to ask, to read, or to acknowledge.
pub(crate) const PATIENCE: Duration = Duration::from_secs(1);
/// Payload bytes that fit into an answer.
pub(crate) const PAYLOAD: usize = 256;
/// The most descriptors of one request that are looked at.
const RIGHTS: usize = 4;
/// The most descriptors of one payload that one answer brings: well below the 253 that the kernel takes, so that many
/// answers can be on their way without reaching the user's limit of descriptors in flight.
pub(crate) const BATCH: usize = 64;
/// Those of a payload, and a ledger, an arena, a process.
const ANSWER_RIGHTS: usize = BATCH + 3;

const MAGIC: u32 = 0x6377_6970;
const VERSION: u16 = 1;

/// What an importer says. Those without an answer say so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Request {
    /// Let me open this. For an event, as that participant in its arena; as 0, joins it, and a pidfd of the asker comes
    /// along. Of a payload of many descriptors, `part` says which [`BATCH`] of them; each part is a lease of its own.
    /// By the `session`, a secret of the asker's, its connection can be told from others, if it is ever lost.
    Fetch {
        session: u64,
        ticket: Box<[u8; ENVELOPE_LEN]>,
        has_ledger: bool,
        participant: u32,
        part: u32,
    },
    /// Nothing but that an answer was read. No answer.
    Read,
    /// One open of the object was closed. No answer.
    LeaseEnd { kind: Kind, object: u64 },
    /// A counter in the arena that was joined.
    TakeCounter { ledger: u32, participant: u32 },
    /// Back with it. No answer.
    ReleaseCounter { ledger: u32, participant: u32, counter: u16 },
    /// The last hold on an opened slot is gone. No answer.
    SlotClosed { ledger: u32, participant: u32, slot: u16, generation: u32 },
    /// A pidfd of the process that owes this counter's values; granted without one if that is nobody any more.
    Debtor { ledger: u32, participant: u32, counter: u16 },
    /// The arena is not used any more, and no counter and slot of it. No answer.
    Leave { ledger: u32, participant: u32 },
    /// Are you there?
    Ping,
    /// Does what the answer with this nonce granted still stand? Asked by one who may have read it too late.
    Confirm { nonce: u64 },
    /// What the answer with this nonce granted is not wanted; it may have been taken back already. No answer.
    GiveBack { nonce: u64 },
    /// The connection of that session was lost; what is held over it, this one is to hold. The last answer that brought
    /// descriptors, and whose receipt was not acknowledged, had this nonce; 0 is none.
    Resume { session: u64, nonce: u64 },
}
impl Request {
    pub fn wants_answer(&self) -> bool {
        use Request::*;
        match self {
            Fetch { .. } | TakeCounter { .. } | Debtor { .. } | Ping | Confirm { .. } => true,
            Resume { .. } => true,
            Read | LeaseEnd { .. } | ReleaseCounter { .. } | SlotClosed { .. } => false,
            Leave { .. } | GiveBack { .. } => false,
        }
    }
}

/// How a broker decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub(crate) enum Verdict {
    Granted = 1,
    Withdrawn = 2,
    Freed = 3,
    /// Never existed, or not for you.
    Unknown = 4,
    /// Told only to the exporter's own user.
    Denied = 5,
    /// Connections, participants, counters: something of the broker's is used up.
    Full = 6,
    /// The exporter is out of descriptors, or the user has too many on their way.
    Descriptors = 7,
    /// The request makes no sense here.
    Nonsense = 8,
    /// What was granted was not acknowledged in time and has been taken back.
    Lapsed = 9,
}

/// A broker's answer; what of it has a meaning depends on the request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub verdict: Verdict,
    /// To be said back, with the next request or in time, if descriptors came along; else 0.
    pub nonce: u64,
    /// Which descriptors come along, in this order.
    pub rights: Rights,
    pub object: u64,
    pub base: u64,
    pub exposes: u64,
    /// How many descriptors the payload has in all its parts.
    pub descriptors: u16,
    /// Of the importer in the arena, or of the debtor.
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
            rights: Rights::default(),
            object: 0,
            base: 0,
            exposes: 0,
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
    /// Further descriptors of the payload, which come right behind its first.
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
    participant: U32,
    epoch: U32,
    counter: U16,
    rights: U16,
    descriptors: U16,
    length: U16,
    payload: [u8; PAYLOAD],
}

/// Size of every request.
pub(crate) const REQUEST_LEN: usize = size_of::<RequestLayout>();
/// Size of every answer.
pub(crate) const ANSWER_LEN: usize = size_of::<AnswerLayout>();

/// The request's bytes, under a number that its answer will carry. `read` is the nonce of an answer that was read,
/// descriptors and all, and has not been acknowledged yet; else 0.
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
        Request::Fetch { session, ref ticket, has_ledger, participant, part } => {
            place(part, participant, has_ledger.into());
            l.key = session.into();
            l.ticket = **ticket;
            1
        }
        Request::Read => 2,
        Request::LeaseEnd { kind, object } => {
            place(0, 0, kind as u16);
            l.key = object.into();
            3
        }
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

/// The number, the nonce of what was read and the request, or nothing if these bytes are none.
pub(crate) fn decode_request(bytes: &[u8]) -> Option<(u64, u64, Request)> {
    let l = RequestLayout::read_from_bytes(bytes).ok()?;
    if l.magic != MAGIC || l.version != VERSION {
        return None;
    }
    let (ledger, participant, index) = (l.ledger.get(), l.participant.get(), l.index.get());
    let request = match l.what.get() {
        1 => {
            let (ticket, has_ledger) = (Box::new(l.ticket), index & 1 != 0);
            let session = l.key.get();
            Request::Fetch { session, ticket, has_ledger, participant, part: ledger }
        }
        2 => Request::Read,
        3 => Request::LeaseEnd {
            kind: Kind::from_byte(u8::try_from(index).ok()?)?,
            object: l.key.get(),
        },
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
    Some((l.number.get(), l.read.get(), request))
}

/// The answer's bytes.
pub(crate) fn encode_answer(number: u64, answer: &Answer) -> [u8; ANSWER_LEN] {
    let mut payload = [0; PAYLOAD];
    let length = answer.payload.len().min(PAYLOAD); // an export of more was refused
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
        participant: answer.participant.into(),
        epoch: answer.epoch.into(),
        counter: answer.counter.into(),
        rights: answer.rights.bits().into(),
        descriptors: answer.descriptors.into(),
        length: (length as u16).into(),
        payload,
    })
}

/// The number and the answer, or nothing if these bytes are none.
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
        rights: Rights::from_bits(l.rights.get())?,
        object: l.object.get(),
        base: l.base.get(),
        exposes: l.exposes.get(),
        descriptors: l.descriptors.get(),
        participant: l.participant.get(),
        counter: l.counter.get(),
        epoch: l.epoch.get(),
        payload: l.payload.get(..usize::from(l.length.get()))?.to_vec(),
    };
    Some((l.number.get(), answer))
}

/// Sends one datagram, whole or not at all, and without waiting.
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

/// One datagram as it came.
pub(crate) struct Received {
    /// 0 is the end: no datagram of this protocol is empty.
    pub length: usize,
    pub rights: Vec<OwnedFd>,
    /// Descriptors came and could not all be taken: too many, or our limit is reached.
    pub rights_lost: bool,
}

/// Receives one request that is there, without waiting. Descriptors beyond the few that the protocol knows are closed.
pub(crate) fn receive(socket: &impl AsFd, into: &mut [u8]) -> Result<Received, Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(RIGHTS))];
    receive_in(socket, into, &mut space)
}
/// Receives one answer that is there, which may bring a part of a payload of many descriptors.
pub(crate) fn receive_answer(socket: &impl AsFd, into: &mut [u8]) -> Result<Received, Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(ANSWER_RIGHTS))];
    receive_in(socket, into, &mut space)
}
fn receive_in(
    socket: &impl AsFd,
    into: &mut [u8],
    space: &mut [MaybeUninit<u8>],
) -> Result<Received, Errno> {
    let mut control = RecvAncillaryBuffer::new(space);
    let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC | RecvFlags::TRUNC;
    let mut into = [IoSliceMut::new(into)];
    let message = uninterrupted(|| recvmsg(socket, &mut into, &mut control, flags))?;
    let mut rights = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(fds) = message {
            rights.extend(fds);
        }
    }
    let rights_lost = message.flags.contains(ReturnFlags::CTRUNC);
    Ok(Received { length: message.bytes, rights, rights_lost })
}

#[cfg(test)]
mod tests;
