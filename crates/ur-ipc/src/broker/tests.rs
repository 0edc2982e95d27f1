//! A broker by itself, heard step by step: what no peer could bring about at a given moment from outside.
use super::*;
use crate::{
    Access, Kind, Offer, Payload,
    exports::export,
    protocol::{ANSWER_LEN, decode_answer, encode_request},
};
use rustix::net::{AddressFamily, SocketType, socketpair};

/// The peer's end of a connection.
struct Us(u64, OwnedFd);
impl Us {
    fn new(broker: &mut Broker) -> Self {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let (us, theirs) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap();
        let id = broker.next;
        broker.welcome(theirs);
        assert!(broker.visitors.contains_key(&id));
        Self(id, us)
    }
    fn say(&self, broker: &mut Broker, read: u64, request: &Request) {
        send(&self.1, &encode_request(7, read, request), &[], SendFlags::DONTWAIT).unwrap();
        broker.hear(self.0, EventFlags::IN);
    }
    /// Verdict and nonce of an answer that is there.
    fn heard(&self) -> Option<(Verdict, u64)> {
        let mut bytes = [0; ANSWER_LEN];
        let got = receive(&self.1, &mut bytes, RecvFlags::DONTWAIT).ok()?;
        let (number, answer) = decode_answer(bytes.get(..got.length)?)?;
        assert_eq!(number, 7);
        Some((answer.verdict, answer.nonce))
    }
    fn visitor<'a>(&self, broker: &'a Broker) -> Option<&'a Visitor> {
        broker.visitors.get(&self.0)
    }
}
fn exported(object: u64) -> (crate::Export, Request) {
    let export = export(Offer {
        kind: Kind::Memory,
        backend: 7,
        device: [1; 16],
        object,
        offset: 0,
        length: 8,
        size: 8,
        payload: Payload::Bytes(b"whatever"[..].into()),
        access: Access::SameUser,
    });
    let export = export.unwrap();
    let ticket = Box::new(*export.bytes());
    (export, Request::Fetch { ticket, has_ledger: false, participant: 0 })
}
/// Whether it has the whole of its time from `since` on.
fn has_time(deadline: Option<Instant>, since: Instant) -> bool {
    deadline.is_some_and(|at| at >= since + PATIENCE)
}

#[test]
fn while_too_many_grants_are_unread_others_wait_and_go_on_one_by_one() {
    let (_export, fetch) = exported(801);
    let mut broker = Broker::new();
    let [one, two, three] = [(); 3].map(|()| Us::new(&mut broker));
    broker.unread = UNREAD - 1;
    one.say(&mut broker, 0, &fetch);
    let (verdict, first) = one.heard().unwrap();
    assert!(verdict == Verdict::Granted && first != 0);
    for waits in [&two, &three] {
        let asked = Instant::now();
        waits.say(&mut broker, 0, &fetch);
        assert_eq!(waits.heard(), None);
        let visitor = waits.visitor(&broker).unwrap();
        assert!(matches!(visitor.doing, Doing::Waiting(..)) && has_time(visitor.deadline, asked));
    }
    one.say(&mut broker, first, &Request::Read);
    let (verdict, second) = two.heard().unwrap();
    assert_eq!(verdict, Verdict::Granted);
    assert!(second != 0 && second != first, "no nonce is given twice");
    assert_eq!((three.heard(), broker.unread), (None, UNREAD), "there was room for one");
    // Who goes makes room as well.
    broker.part(two.0);
    assert_eq!(three.heard().map(|(verdict, _)| verdict), Some(Verdict::Granted));
    broker.part(three.0);
    broker.part(one.0);
    assert_eq!(broker.unread, UNREAD - 1);
}
#[test]
fn what_is_not_read_in_time_is_no_longer_counted_and_its_reader_stays() {
    let (_export, fetch) = exported(802);
    let mut broker = Broker::new();
    let [slow, waits] = [(); 2].map(|()| Us::new(&mut broker));
    broker.unread = UNREAD - 1;
    slow.say(&mut broker, 0, &fetch);
    waits.say(&mut broker, 0, &fetch);
    assert_eq!(waits.heard(), None);
    let deadline = slow.visitor(&broker).unwrap().deadline.unwrap();
    broker.expire(deadline - PATIENCE / 2);
    assert_eq!(broker.unread, UNREAD, "there is time yet");
    broker.visitors.get_mut(&waits.0).unwrap().deadline = None; // its own time is not what this is about
    broker.expire(deadline);
    assert!(matches!(slow.visitor(&broker).unwrap().doing, Doing::Lapsed));
    assert_eq!(waits.heard().map(|(verdict, _)| verdict), Some(Verdict::Granted));
    assert_eq!(broker.unread, UNREAD);
    for us in [slow, waits] {
        broker.part(us.0);
    }
    assert_eq!(broker.unread, UNREAD - 1, "the one that lapsed does not count twice");
}
#[test]
fn an_unread_grant_goes_with_its_reader() {
    let (_export, fetch) = exported(803);
    let mut broker = Broker::new();
    let us = Us::new(&mut broker);
    us.say(&mut broker, 0, &fetch);
    assert_eq!(broker.unread, 1);
    broker.part(us.0);
    assert_eq!((broker.unread, broker.visitors.len()), (0, 0));
}
#[test]
fn who_waits_is_parted_with_when_it_hangs_up_and_not_before() {
    let (_export, fetch) = exported(804);
    for end in [EventFlags::HUP, EventFlags::ERR, EventFlags::HUP | EventFlags::ERR] {
        let mut broker = Broker::new();
        let us = Us::new(&mut broker);
        broker.unread = UNREAD;
        us.say(&mut broker, 0, &fetch);
        broker.hear(us.0, EventFlags::OUT);
        assert!(us.visitor(&broker).is_some(), "nothing happened that concerns it");
        broker.hear(us.0, end);
        assert!(us.visitor(&broker).is_none(), "{end:?}");
    }
}
#[test]
fn an_answer_for_which_there_is_no_room_is_sent_when_there_is() {
    let mut broker = Broker::new();
    let us = Us::new(&mut broker);
    let (mut asked, mut last) = (0, Instant::now());
    while !us.visitor(&broker).is_some_and(|v| matches!(v.doing, Doing::Sending(_))) {
        last = Instant::now();
        us.say(&mut broker, 0, &Request::Ping);
        asked += 1;
        assert!(asked < 100_000, "there is always room");
    }
    assert!(has_time(us.visitor(&broker).unwrap().deadline, last), "but not for ever");
    let heard = std::iter::from_fn(|| us.heard()).count();
    assert_eq!(heard, asked - 1);
    broker.hear(us.0, EventFlags::OUT);
    assert_eq!(us.heard(), Some((Verdict::Granted, 0)));
    assert!(matches!(us.visitor(&broker).unwrap().doing, Doing::Listening));
    broker.part(us.0);
}
#[test]
fn a_door_that_is_shut_for_want_of_descriptors_opens_again_soon() {
    let (_export, _) = exported(805);
    let mut broker = Broker::new();
    let before = Instant::now();
    broker.pause(Door::Private);
    let (door, until) = broker.paused.expect("the export has opened the door");
    assert!(door == Door::Private && until >= before + PAUSE);
    assert_eq!(broker.deadline(), Some(until), "it is looked at in time");
    broker.expire(until - PAUSE / 2);
    assert!(broker.paused.is_some());
    broker.expire(until);
    assert!(broker.paused.is_none());
}
