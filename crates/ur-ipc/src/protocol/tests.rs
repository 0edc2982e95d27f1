//! Everything that is encoded decodes to the same, and nothing else decodes; descriptors arrive or are closed.
use super::*;
use proptest::prelude::*;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

fn pair() -> (OwnedFd, OwnedFd) {
    socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap()
}
fn requests() -> Vec<Request> {
    vec![
        Request::Fetch {
            session: u64::MAX - 9,
            ticket: Box::new([7; ENVELOPE_LEN]),
            has_ledger: true,
            lacks_memory: true,
            participant: 9,
            part: 5,
        },
        Request::Read,
        Request::TakeCounter { ledger: 3, participant: 1 },
        Request::ReleaseCounter { ledger: 3, participant: 1, counter: 65535 },
        Request::SlotClosed { ledger: 3, participant: 1, slot: 4, generation: 5 },
        Request::Debtor { ledger: 1, participant: 7, counter: 2 },
        Request::Leave { ledger: 1, participant: 7 },
        Request::Ping,
        Request::Confirm { nonce: u64::MAX - 5 },
        Request::GiveBack { nonce: 7 },
        Request::Resume { session: 1 << 63, nonce: u64::MAX - 1 },
    ]
}

#[test]
fn every_request_reads_back() {
    for (number, request) in (1..).zip(requests()) {
        let bytes = encode_request(number, 77, &request);
        let message = Message { number, read: 77, ends: Vec::new(), request };
        assert_eq!(decode_message(&bytes).as_ref(), Some(&message));
        assert_eq!(decode_message(&bytes[1..]), None);
    }
}
#[test]
fn what_ended_is_said_along_with_any_request_and_reads_back_whole() {
    for (count, request) in [0, 1, ENDS].into_iter().zip(requests()) {
        let ends: Vec<_> =
            (0..count as u64).map(|n| (Kind::PhysicalMemory, u64::MAX - n)).collect();
        let bytes = encode_message(3, 4, &ends, &request);
        let message = Message { number: 3, read: 4, ends, request };
        assert_eq!(decode_message(&bytes).as_ref(), Some(&message));
        assert_eq!(decode_message(&bytes[..bytes.len() - 1]), None, "cut short");
        assert_eq!(decode_message(&[&bytes[..], &[1]].concat()), None, "not whole");
    }
    let many = [(Kind::Memory, 1); ENDS + 1];
    assert_eq!(decode_message(&encode_message(3, 4, &many, &Request::Ping)), None);
    let mut unknown = encode_message(3, 4, &many[..1], &Request::Ping);
    *unknown.last_mut().unwrap() = 77;
    assert_eq!(decode_message(&unknown), None, "a kind that is none");
}
#[test]
fn what_is_there_already_reads_back() {
    for (has_ledger, lacks_memory) in [(true, false), (false, true), (true, true)] {
        let ticket = Box::new([7; ENVELOPE_LEN]);
        let (session, participant, part) = (1, 0, 0);
        let request =
            Request::Fetch { session, ticket, has_ledger, lacks_memory, participant, part };
        let read = decode_message(&encode_request(1, 0, &request));
        assert_eq!(read.map(|message| message.request), Some(request));
    }
}
/// Fetch, TakeCounter, Debtor, Ping, Confirm and Resume have an answer; the other requests have none.
#[test]
fn who_waits_for_an_answer_gets_one() {
    let waits: Vec<_> = requests().iter().map(Request::wants_answer).collect();
    let yes = [0, 2, 5, 7, 8, 10];
    assert!(waits.iter().enumerate().all(|(at, waits)| *waits == yes.contains(&at)), "{waits:?}");
}
#[test]
fn another_magic_or_another_version_is_none() {
    let request = encode_request(1, 0, &Request::Ping);
    let answer = encode_answer(1, &Answer::of(Verdict::Granted));
    for at in 0..size_of_val(&MAGIC) + size_of_val(&VERSION) {
        let (mut request, mut answer) = (request, answer);
        request[at] ^= 1;
        answer[at] ^= 1;
        assert_eq!(decode_message(&request), None, "byte {at}");
        assert_eq!(decode_answer(&answer), None, "byte {at}");
    }
}
#[test]
fn each_set_of_descriptors_reads_back_and_there_are_no_others() {
    for bits in 0..16 {
        assert_eq!(Rights::from_bits(bits).map(Rights::bits), Some(bits));
    }
    // Further descriptors of a payload without its first; more than one answer brings.
    assert_eq!(Rights::from_bits(16), None);
    assert_eq!(Rights::from_bits((BATCH as u16) << 4 | 1), None);
    assert_eq!(Rights::from_bits(1 << 15), None);
}
#[test]
fn every_answer_reads_back() {
    let rights = Rights { payload: true, arena: true, more: 60, ..Rights::default() };
    let answer = Answer {
        nonce: 9,
        rights,
        object: 1,
        base: 2,
        exposes: 3,
        memory: 4,
        is_urgent: true,
        descriptors: 1536,
        participant: 7,
        counter: 8,
        epoch: 9,
        payload: vec![1; PAYLOAD],
        ..Answer::of(Verdict::Granted)
    };
    assert_eq!(decode_answer(&encode_answer(4, &answer)), Some((4, answer)));
    assert_eq!(rights.count(), 62);
}
#[test]
fn an_answer_that_claims_more_payload_than_fits_is_none() {
    let mut bytes = encode_answer(1, &Answer::of(Verdict::Granted));
    let at = ANSWER_LEN - PAYLOAD - 2;
    bytes[at..at + 2].copy_from_slice(&257u16.to_le_bytes());
    assert_eq!(decode_answer(&bytes), None);
}
#[test]
fn excess_descriptors_are_closed() {
    let (one, other) = pair();
    let fds: Vec<_> = (0..64).map(|_| one.as_fd()).collect();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(64))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    assert!(control.push(SendAncillaryMessage::ScmRights(&fds)));
    sendmsg(&one, &[IoSlice::new(b"x")], &mut control, SendFlags::empty()).unwrap();
    let got = receive(&other, &mut [0; 8]).unwrap();
    // The buffer's alignment leaves room for one or two more.
    assert!(got.rights_lost && got.rights.len() <= RIGHTS + 2, "{}", got.rights.len());
    drop((one, got));
    // If a copy of `one` had stayed open somewhere, this would not be the end.
    assert_eq!(receive(&other, &mut [0; 8]).unwrap().length, 0);
}
#[test]
fn descriptors_arrive_and_are_not_for_other_programs() {
    let (one, other) = pair();
    send(&one, b"x", &[one.as_fd(), other.as_fd()]).unwrap();
    let got = receive(&other, &mut [0; 8]).unwrap();
    assert_eq!((got.length, got.rights.len(), got.rights_lost), (1, 2, false));
    for fd in &got.rights {
        let flags = rustix::io::fcntl_getfd(fd).unwrap();
        assert!(flags.contains(rustix::io::FdFlags::CLOEXEC));
    }
}
#[test]
fn who_will_not_wait_is_told_that_there_is_nothing_or_no_room() {
    let (one, other) = pair();
    let got = receive(&other, &mut [0; 8]);
    assert_eq!(got.err(), Some(Errno::AGAIN));
    let full = std::iter::repeat_with(|| send(&one, &[0; 4096], &[]));
    let full = full.take(100_000).find_map(Result::err);
    assert_eq!(full, Some(Errno::AGAIN));
}
#[test]
fn a_datagram_that_is_too_long_says_so() {
    let (one, other) = pair();
    send(&one, &[0; 100], &[]).unwrap();
    assert_eq!(receive(&other, &mut [0; 8]).unwrap().length, 100);
}
proptest! {
    #[test]
    fn no_bytes_upset_the_decoders(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
        let _ = (decode_message(&bytes), decode_answer(&bytes));
    }
    #[test]
    fn a_changed_request_is_none_or_reads_back(at in 0..REQUEST_LEN, value in any::<u8>()) {
        for request in requests() {
            let mut bytes = encode_request(1, 0, &request);
            bytes[at] = value;
            if let Some(message) = decode_message(&bytes) {
                let again = encode_request(message.number, message.read, &message.request);
                prop_assert_eq!(decode_message(&again), Some(message));
            }
        }
    }
}
