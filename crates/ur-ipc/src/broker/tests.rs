//! A broker by itself, driven step by step into states that no peer could bring about at a given moment from outside.
use super::*;
use crate::{
    Access, Kind, Offer, Payload,
    export::export,
    protocol::{ANSWER_LEN, decode_answer, encode_message, encode_request},
};
use rustix::net::{AddressFamily, SocketType, socketpair};

const SESSION: u64 = 77;
fn unread() -> usize {
    Limits::now().unread
}

/// The peer's end of a connection.
struct Us(u64, OwnedFd);
impl Us {
    fn new(broker: &mut Broker) -> Self {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let (us, theirs) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap();
        let id = broker.next;
        crate::watcher::be_ready();
        broker.welcome(theirs);
        assert!(broker.connections.contains_key(&id));
        Self(id, us)
    }
    fn say(&self, broker: &mut Broker, read: u64, request: &Request) {
        send(&self.1, &encode_request(7, read, request), &[]).unwrap();
        broker.hear(self.0, EventFlags::IN);
    }
    /// Verdict and nonce of an answer that has arrived.
    fn heard(&self) -> Option<(Verdict, u64)> {
        let mut bytes = [0; ANSWER_LEN];
        let got = receive(&self.1, &mut bytes).ok()?;
        let (number, answer) = decode_answer(bytes.get(..got.length)?)?;
        assert_eq!(number, 7);
        Some((answer.verdict, answer.nonce))
    }
    fn connection<'a>(&self, broker: &'a Broker) -> Option<&'a Connection> {
        broker.connections.get(&self.0)
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
    let (has_ledger, lacks_memory, participant, part) = (false, false, 0, 0);
    let session = SESSION;
    (export, Request::Fetch { session, ticket, has_ledger, lacks_memory, participant, part })
}
/// Whether the deadline leaves the whole time from `since` on.
fn has_time(deadline: Option<Instant>, since: Instant) -> bool {
    deadline.is_some_and(|at| at >= since + PATIENCE)
}

#[test]
fn while_too_many_grants_are_unread_others_wait_and_go_on_one_by_one() {
    let (_export, fetch) = exported(801);
    let mut broker = Broker::new();
    let [one, two, three] = [(); 3].map(|()| Us::new(&mut broker));
    broker.unread = unread() - 1;
    one.say(&mut broker, 0, &fetch);
    for waits in [&two, &three] {
        let asked = Instant::now();
        waits.say(&mut broker, 0, &fetch);
        assert_eq!(waits.heard(), None);
        let connection = waits.connection(&broker).unwrap();
        assert!(
            matches!(connection.doing, Doing::Waiting(..)) && has_time(connection.deadline, asked)
        );
    }
    let (verdict, first) = one.heard().unwrap();
    assert!(verdict == Verdict::Granted && first != 0);
    one.say(&mut broker, first, &Request::Read);
    let (verdict, second) = two.heard().unwrap();
    assert_eq!(verdict, Verdict::Granted);
    assert!(second != 0 && second != first, "no nonce is given twice");
    assert_eq!((three.heard(), broker.unread), (None, unread()), "there was room for one");
    // A connection that ends makes room as well.
    broker.part(two.0);
    assert_eq!(three.heard().map(|(verdict, _)| verdict), Some(Verdict::Granted));
    broker.part(three.0);
    broker.part(one.0);
    assert_eq!(broker.unread, unread() - 1);
}
#[test]
fn who_waits_goes_on_soon_after_others_have_received_theirs_although_they_say_nothing() {
    let (_export, fetch) = exported(814);
    let mut broker = Broker::new();
    let [one, two] = [(); 2].map(|()| Us::new(&mut broker));
    broker.unread = unread() - 1;
    one.say(&mut broker, 0, &fetch);
    two.say(&mut broker, 0, &fetch);
    let look = broker.look_again.expect("it is looked at again");
    assert!(broker.deadline().is_some_and(|at| at <= look));
    broker.expire(look);
    assert_eq!(two.heard(), None, "nothing was received");
    let (_, nonce) = one.heard().unwrap();
    broker.expire(broker.look_again.expect("and again"));
    assert_eq!(two.heard().map(|(verdict, _)| verdict), Some(Verdict::Granted));
    assert_eq!((broker.look_again, broker.unread), (None, unread()));
    // A later acknowledgement of this answer changes nothing; of any other answer it violates the protocol.
    one.say(&mut broker, nonce, &Request::Ping);
    assert_eq!(one.heard(), Some((Verdict::Granted, 0)));
    one.say(&mut broker, nonce + 1, &Request::Ping);
    assert!(one.connection(&broker).is_none());
    broker.part(two.0);
}
#[test]
fn where_the_kernel_does_not_tell_what_was_received_it_is_to_be_said_at_once() {
    let (_export, fetch) = exported(815);
    let mut broker = Broker::new();
    broker.sees_receipt = false;
    let us = Us::new(&mut broker);
    us.say(&mut broker, 0, &fetch);
    let mut bytes = [0; ANSWER_LEN];
    receive(&us.1, &mut bytes).unwrap();
    assert!(decode_answer(&bytes).unwrap().1.is_urgent);
    broker.expire(us.connection(&broker).unwrap().deadline.unwrap());
    assert!(us.connection(&broker).unwrap().is_expired() && !crate::leased(815, Kind::Memory));
    broker.part(us.0);
}
#[test]
fn what_was_received_in_time_stands_although_nothing_was_said() {
    let (_export, fetch) = exported(816);
    let mut broker = Broker::new();
    let us = Us::new(&mut broker);
    us.say(&mut broker, 0, &fetch);
    us.heard().unwrap();
    broker.expire(us.connection(&broker).unwrap().deadline.unwrap());
    assert!(matches!(us.connection(&broker).unwrap().doing, Doing::Listening));
    assert!(crate::leased(816, Kind::Memory) && broker.unread == 0);
    broker.part(us.0);
}
/// The descriptor of memory that holds many objects is sent once and then only its number, unless the peer has not kept
/// it.
#[test]
fn the_descriptor_of_memory_with_many_objects_is_sent_once() {
    use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let fd = memfd_create("pool", flags).unwrap();
    ftruncate(&fd, 4 * 4096).unwrap();
    fcntl_add_seals(&fd, SealFlags::SHRINK | SealFlags::GROW).unwrap();
    let fd = Arc::new(fd);
    let mut broker = Broker::new();
    let us = Us::new(&mut broker);
    let mut ask = |at: u64, lacks_memory| {
        let export = export(Offer {
            kind: Kind::Memory,
            backend: 7,
            device: [1; 16],
            object: 820 + at,
            offset: 0,
            length: 8,
            size: 8,
            payload: Payload::Fd { fd: fd.clone(), base: at * 64, exposes: 4 * 4096 },
            access: Access::SameUser,
        })
        .unwrap();
        let ticket = Box::new(*export.bytes());
        let (has_ledger, participant, part) = (true, 0, 0);
        let session = SESSION;
        let fetch = Request::Fetch { session, ticket, has_ledger, lacks_memory, participant, part };
        us.say(&mut broker, 0, &fetch);
        let mut bytes = [0; ANSWER_LEN];
        let came = receive(&us.1, &mut bytes).unwrap().rights.len();
        let (_, answer) = decode_answer(&bytes).unwrap();
        us.say(&mut broker, answer.nonce, &Request::Read);
        assert_eq!(answer.verdict, Verdict::Granted);
        (answer.memory, answer.base, came, answer.nonce != 0)
    };
    let (number, ..) = ask(0, false);
    assert_ne!(number, 0);
    assert_eq!(ask(1, false), (number, 64, 0, false), "nothing came, and nothing is to be read");
    assert_eq!(ask(2, true), (number, 128, 1, true));
    assert_eq!(ask(3, false), (number, 192, 0, false));
    broker.part(us.0);
}
#[test]
fn what_is_not_read_in_time_is_no_longer_counted_and_its_reader_stays() {
    let (_export, fetch) = exported(802);
    let mut broker = Broker::new();
    let [slow, waits] = [(); 2].map(|()| Us::new(&mut broker));
    broker.unread = unread() - 1;
    slow.say(&mut broker, 0, &fetch);
    waits.say(&mut broker, 0, &fetch);
    assert_eq!(waits.heard(), None);
    let deadline = slow.connection(&broker).unwrap().deadline.unwrap();
    broker.expire(deadline - PATIENCE / 2);
    assert_eq!(broker.unread, unread(), "there is time yet");
    broker.connections.get_mut(&waits.0).unwrap().deadline = None; // its own timeout is not tested here
    broker.expire(deadline);
    assert!(matches!(slow.connection(&broker).unwrap().doing, Doing::Lapsed(_)));
    assert_eq!(waits.heard().map(|(verdict, _)| verdict), Some(Verdict::Granted));
    assert_eq!(broker.unread, unread());
    for us in [slow, waits] {
        broker.part(us.0);
    }
    assert_eq!(broker.unread, unread() - 1, "the one that lapsed does not count twice");
}
#[test]
fn an_unread_grant_goes_with_its_reader() {
    let (_export, fetch) = exported(803);
    let mut broker = Broker::new();
    let us = Us::new(&mut broker);
    us.say(&mut broker, 0, &fetch);
    assert_eq!(broker.unread, 1);
    broker.part(us.0);
    assert_eq!((broker.unread, broker.connections.len()), (0, 0));
}
#[test]
fn who_waits_is_parted_with_when_it_hangs_up_and_not_before() {
    let (_export, fetch) = exported(804);
    for end in [EventFlags::HUP, EventFlags::ERR, EventFlags::HUP | EventFlags::ERR] {
        let mut broker = Broker::new();
        let us = Us::new(&mut broker);
        broker.unread = unread();
        us.say(&mut broker, 0, &fetch);
        broker.hear(us.0, EventFlags::OUT);
        assert!(us.connection(&broker).is_some(), "nothing happened that concerns it");
        broker.hear(us.0, end);
        assert!(us.connection(&broker).is_none(), "{end:?}");
    }
}
#[test]
fn an_answer_for_which_there_is_no_room_is_sent_when_there_is() {
    let mut broker = Broker::new();
    let us = Us::new(&mut broker);
    let (mut asked, mut last) = (0, Instant::now());
    while !us.connection(&broker).is_some_and(|v| matches!(v.doing, Doing::Sending(_))) {
        last = Instant::now();
        us.say(&mut broker, 0, &Request::Ping);
        asked += 1;
        assert!(asked < 100_000, "there is always room");
    }
    assert!(has_time(us.connection(&broker).unwrap().deadline, last), "but not for ever");
    let heard = std::iter::from_fn(|| us.heard()).count();
    assert_eq!(heard, asked - 1);
    broker.hear(us.0, EventFlags::OUT);
    assert_eq!(us.heard(), Some((Verdict::Granted, 0)));
    assert!(matches!(us.connection(&broker).unwrap().doing, Doing::Listening));
    broker.part(us.0);
}
#[test]
fn a_door_that_is_shut_for_want_of_descriptors_opens_again_soon() {
    let (_export, _) = exported(805);
    let mut broker = Broker::new();
    let before = Instant::now();
    broker.pause(SocketScope::Private);
    let (scope, until) = broker.paused.expect("the export has opened the scope");
    assert!(scope == SocketScope::Private && until >= before + PAUSE);
    assert_eq!(broker.deadline(), Some(until), "it is looked at in time");
    broker.expire(until - PAUSE / 2);
    assert!(broker.paused.is_some());
    broker.expire(until);
    assert!(broker.paused.is_none());
}
#[test]
fn one_that_never_read_makes_way_for_one_that_may() {
    let (_export, fetch) = exported(811);
    let mut broker = Broker::new();
    let held = Us::new(&mut broker);
    held.say(&mut broker, 0, &fetch);
    let (_, nonce) = held.heard().unwrap();
    held.say(&mut broker, nonce, &Request::Read);
    let mut lapsed = Vec::new();
    while lapsed.len() + 1 < broker.limits.of_process {
        let us = Us::new(&mut broker);
        us.say(&mut broker, 0, &fetch);
        broker.expire(us.connection(&broker).unwrap().deadline.unwrap());
        lapsed.push(us);
    }
    assert!(lapsed.iter().all(|us| us.connection(&broker).unwrap().is_expired()));
    let next = Us::new(&mut broker); // it would not be admitted if no other connection were closed
    assert!(lapsed[0].connection(&broker).is_none() && held.connection(&broker).is_some());
    for us in lapsed.into_iter().chain([held, next]) {
        broker.part(us.0);
    }
}
#[test]
fn a_process_that_reads_nothing_makes_nobody_else_wait() {
    let (_export, fetch) = exported(812);
    let mut broker = Broker::new();
    let share = broker.limits.unread_of_process;
    let all: Vec<_> = (0..=share).map(|_| Us::new(&mut broker)).collect();
    for us in &all {
        us.say(&mut broker, 0, &fetch);
    }
    let waits = all[share].connection(&broker).unwrap();
    assert!(matches!(waits.doing, Doing::Waiting(..)), "it has its share of unread answers");
    assert!(broker.unread == share && share < broker.limits.unread, "and there is room for others");
    let (_, nonce) = all[0].heard().unwrap();
    all[0].say(&mut broker, nonce, &Request::Read);
    assert!(all[share].heard().is_some(), "it goes on when its process has read one");
    for us in all {
        broker.part(us.0);
    }
}
#[test]
fn an_acknowledgement_counts_however_much_was_said_before_it() {
    /// More than the broker reads from one peer before it serves others.
    const CLOSES: usize = 3 * AT_ONCE;
    let (_export, fetch) = exported(813);
    let mut broker = Broker::new();
    let us = Us::new(&mut broker);
    for _ in 0..CLOSES {
        us.say(&mut broker, 0, &fetch);
        let (_, nonce) = us.heard().unwrap();
        us.say(&mut broker, nonce, &Request::Read);
    }
    us.say(&mut broker, 0, &fetch);
    let (_, nonce) = us.heard().unwrap();
    // While the broker is stopped, the peer's other threads close what they had open, and then it acknowledges.
    let say = |read, ends: &[_]| {
        send(&us.1, &encode_message(7, read, ends, &Request::Read), &[]).unwrap();
    };
    for _ in 0..CLOSES {
        say(0, &[(Kind::Memory, 813)]);
    }
    say(nonce, &[]);
    let deadline = us.connection(&broker).unwrap().deadline.unwrap();
    for _ in 0..CLOSES {
        broker.expire(deadline);
    }
    let connection = us.connection(&broker).expect("it has done nothing wrong");
    assert!(matches!(connection.doing, Doing::Listening));
    assert_eq!(
        connection.leases.get(&(Kind::Memory, 813)),
        Some(&1),
        "what it acknowledged it has"
    );
    broker.part(us.0);
}

/// The objects that the registered function was told of.
static GONE: std::sync::Mutex<Vec<u64>> = std::sync::Mutex::new(Vec::new());
#[test]
fn who_asks_is_answered_before_an_adapter_hears_of_a_lease_that_ended_with_the_question() {
    crate::on_leases_gone(|object, _| locked(&GONE).push(object)).unwrap();
    let told = || locked(&GONE).contains(&814);
    let ((freed, first), (_export, second)) = (exported(814), exported(815));
    let mut broker = Broker::new();
    let us = Us::new(&mut broker);
    us.say(&mut broker, 0, &first);
    let (_, nonce) = us.heard().unwrap();
    drop(freed);
    crate::freed(814, Kind::Memory);
    let message = encode_message(7, nonce, &[(Kind::Memory, 814)], &second);
    send(&us.1, &message, &[]).unwrap();
    broker.hear(us.0, EventFlags::IN);
    assert_eq!(us.heard().map(|(verdict, _)| verdict), Some(Verdict::Granted));
    assert!(!crate::leased(814, Kind::Memory) && !told());
    crate::exports::tell_gone();
    let deadline = Instant::now() + Duration::from_secs(20);
    while !told() {
        assert!(Instant::now() < deadline, "nobody tells the adapter");
        std::thread::yield_now();
    }
    broker.part(us.0);
}

/// Another connection of the same peer, and the answer to its request to resume that session.
fn resume(broker: &mut Broker, session: u64, nonce: u64) -> (Us, Option<Verdict>) {
    let us = Us::new(broker);
    us.say(broker, 0, &Request::Resume { session, nonce });
    let verdict = us.heard().map(|(verdict, _)| verdict);
    (us, verdict)
}
fn leases(us: &Us, broker: &Broker) -> usize {
    us.connection(broker).map_or(0, |connection| connection.leases.values().sum())
}
#[test]
fn after_a_fault_what_was_held_is_kept_for_the_one_who_comes_back_and_knows_the_session() {
    let (_export, fetch) = exported(811);
    let mut broker = Broker::new();
    let us = Us::new(&mut broker);
    us.say(&mut broker, 0, &fetch);
    let (_, nonce) = us.heard().unwrap();
    us.say(&mut broker, nonce, &fetch);
    let (_, unread) = us.heard().unwrap();
    broker.give_up(us.0);
    assert_eq!((broker.unread, us.heard()), (0, None), "nothing more is said to it");
    assert!(crate::leased(811, Kind::Memory));
    for session in [0, SESSION + 1] {
        let (stranger, verdict) = resume(&mut broker, session, unread);
        assert_eq!((verdict, leases(&stranger, &broker)), (Some(Verdict::Unknown), 0));
        broker.part(stranger.0);
    }
    let (back, verdict) = resume(&mut broker, SESSION, unread);
    assert_eq!((verdict, leases(&back, &broker)), (Some(Verdict::Granted), 2));
    assert!(us.connection(&broker).is_none());
    let (late, verdict) = resume(&mut broker, SESSION, unread);
    assert_eq!(verdict, Some(Verdict::Granted), "it may lose that one too");
    assert_eq!((leases(&late, &broker), back.connection(&broker).is_none()), (2, true));
    broker.part(late.0);
    assert!(!crate::leased(811, Kind::Memory));
}
#[test]
fn what_a_lost_connection_granted_unread_is_taken_back_and_what_was_said_over_it_counts() {
    let (_export, fetch) = exported(812);
    let mut broker = Broker::new();
    let us = Us::new(&mut broker);
    let end = [(Kind::Memory, 812)];
    let mut read = 0;
    for _ in 0..3 {
        us.say(&mut broker, read, &fetch);
        read = us.heard().unwrap().1;
    }
    broker.give_up(us.0);
    send(&us.1, &encode_message(7, 0, &end, &Request::Ping), &[]).unwrap(); // before it notices
    let (back, verdict) = resume(&mut broker, SESSION, 0);
    assert_eq!(verdict, Some(Verdict::Granted));
    assert_eq!(leases(&back, &broker), 1, "of three one was never read and one was closed");
    assert_eq!(back.heard(), None, "a question is asked again by whoever asked it");
    broker.part(back.0);
}
#[test]
fn who_hangs_up_a_lost_connection_does_not_come_back_for_it() {
    let (_export, fetch) = exported(813);
    let mut broker = Broker::new();
    let us = Us::new(&mut broker);
    let id = us.0;
    us.say(&mut broker, 0, &fetch);
    broker.give_up(id);
    assert!(crate::leased(813, Kind::Memory));
    drop(us);
    broker.hear(id, EventFlags::HUP);
    assert!(!crate::leased(813, Kind::Memory) && broker.connections.is_empty());
    assert_eq!(resume(&mut broker, SESSION, 0).1, Some(Verdict::Unknown));
}
