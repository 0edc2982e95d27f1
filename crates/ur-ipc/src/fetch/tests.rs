//! Both ends of a connection in one process: cases that only the importer's side can bring about.
use super::*;
use crate::{
    Access, ENVELOPE_LEN, Export, Kind, Object, Offer, Payload,
    arena::{self, Captured, Progress},
    deadline::Deadline,
    export::export,
    fetch::many::Wanted,
    hosts,
    protocol::{Answer, ENDS, MESSAGE_LEN, Request, Verdict, decode_message, encode_answer, send},
    standing::{Fetched, Standing},
    waiting::AT_A_TIME,
};
use rustix::net::{
    AddressFamily, RecvFlags, SocketFlags, SocketType, recv, socketpair,
    sockopt::{Timeout, set_socket_send_buffer_size, set_socket_timeout},
};
use std::time::Duration;

/// All tests use one connection, from this process to itself, and end it; so they run one at a time.
static CONNECTION: Mutex<()> = Mutex::new(());

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(20)
}
fn exported(slot: &arena::Slot) -> (Export, Envelope, [u8; ENVELOPE_LEN]) {
    let export = export(Offer {
        kind: Kind::Event,
        backend: 7,
        device: [1; 16],
        object: slot.index().into(),
        offset: 0,
        length: 0,
        size: 0,
        payload: Payload::Event(slot.clone()),
        access: Access::SameUser,
    });
    let export = export.unwrap();
    let bytes = *export.bytes();
    (export, Envelope::parse(&bytes).unwrap(), bytes)
}
/// Tries again if an earlier test's connection was found, which ends when nothing is shared any more.
fn fetched(envelope: &Envelope, bytes: &[u8; ENVELOPE_LEN]) -> (Arc<Host>, Fetched) {
    let end = soon();
    loop {
        let deadline = Deadline::new();
        let Ok(host) = hosts::to(envelope, deadline.at()) else { panic!("it listens") };
        match host.fetch(envelope, bytes, &deadline) {
            Ok(fetched) => return (host, fetched),
            Err(e) => assert!(host.is_gone() && Instant::now() < end, "{e}"),
        }
    }
}
#[track_caller]
fn eventually(is_so: impl Fn() -> bool) {
    let deadline = soon();
    while !is_so() {
        assert!(Instant::now() < deadline, "never");
        std::thread::yield_now();
    }
}

#[test]
fn a_warm_open_sees_in_the_ledger_that_its_exporter_lives_and_asks_nobody() {
    let _alone = locked(&CONNECTION);
    let slot = arena::slot(Access::SameUser).unwrap();
    let (export, envelope, bytes) = exported(&slot);
    let (_host, theirs) = fetched(&envelope, &bytes);
    let Standing::Connected(_, ledger) = &theirs.standing else { panic!("there is a broker") };
    eventually(|| ledger.tells_of_life());
    let check = || theirs.standing.check(envelope.index, envelope.tag(), envelope.generation);
    assert!(check().is_ok());
    drop(export);
    assert_eq!(check().unwrap_err().kind(), ErrorKind::Withdrawn);
}
/// The exporter takes back everything that a peer held which violates the protocol, and may grant it to others.
#[test]
fn what_an_exporter_did_not_keep_is_stale_and_what_it_owes_is_still_waited_for() {
    let _alone = locked(&CONNECTION);
    let slot = arena::slot(Access::SameUser).unwrap();
    let (_export, envelope, bytes) = exported(&slot);
    let (host, theirs) = fetched(&envelope, &bytes);
    let crate::ArrivedPayload::Event(event) = &theirs.payload else { panic!("an event") };
    let counter = slot.arena().take_counter().unwrap();
    let value = counter.reserve();
    slot.publish(&counter, value);
    let Ok(Captured::PendingSignal(debt)) = event.capture() else { panic!("it is owed") };
    assert!(host.check().is_ok());
    send(&*host.socket(), b"nonsense", &[]).unwrap();
    eventually(|| host.check().is_err());
    let stale = host.check().unwrap_err();
    assert!(stale.kind() == ErrorKind::Freed && stale.to_string().contains("anew"), "{stale}");
    eventually(|| event.arena().is_orphaned()); // no more counters are requested
    assert_eq!(event.arena().take_counter().unwrap_err().kind(), ErrorKind::Freed);
    // Meanwhile it is checked whether the process is still the same exporter, which changes nothing.
    assert_eq!(debt.progress(), Progress::Pending);
    counter.complete(value);
    assert_eq!(debt.wait(Some(soon())), Progress::Complete);
    assert!(!counter.is_retired(), "nobody took the exporter for dead");
    let (again, anew) = fetched(&envelope, &bytes);
    assert!(again.check().is_ok() && anew.lease.is_some() && again.id() != host.id());
}
/// As after a fault in this process: both sides still have the connection.
#[test]
fn a_connection_that_this_side_gives_up_is_replaced_as_well() {
    let _alone = locked(&CONNECTION);
    let slot = arena::slot(Access::SameUser).unwrap();
    let (_export, envelope, bytes) = exported(&slot);
    let (host, theirs) = fetched(&envelope, &bytes);
    let crate::ArrivedPayload::Event(event) = &theirs.payload else { panic!("an event") };
    let before = Arc::downgrade(&host.socket());
    host.ended();
    eventually(|| host.state() == State::Connected);
    eventually(|| before.upgrade().is_none());
    let counter = event.arena().take_counter().unwrap();
    let value = counter.reserve();
    event.publish(&counter, value);
    let Ok(Captured::PendingSignal(debt)) = slot.capture() else { panic!("it is owed") };
    counter.complete(value);
    assert_eq!(debt.wait(Some(soon())), Progress::Complete);
    drop((theirs, counter));
    assert_eq!(*locked(&host.holds), 0);
}
/// Thousands of opens are closed while the exporter reads no messages, because it is stopped, for example.
#[test]
fn closes_pile_up_no_messages_while_there_is_no_room_on_the_way_to_their_exporter() {
    const CLOSES: u64 = 4_000;
    let _alone = locked(&CONNECTION);
    let slot = arena::slot(Access::SameUser).unwrap();
    let (_export, envelope, bytes) = exported(&slot);
    let (host, _theirs) = fetched(&envelope, &bytes);
    let (ours, theirs) = socketpair(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
        None,
    )
    .unwrap();
    let before = std::mem::replace(&mut *locked(&host.socket), Arc::new(Guarded::new(ours)));
    for object in 0..CLOSES {
        host.end_lease((Kind::Memory, object), object % 2 == 0);
    }
    let pending = locked(&host.pending);
    let (ends, requests) = (pending.ends.len(), pending.requests.len());
    assert!(ends > 1_000, "there was room for all but {ends}");
    assert!(requests <= ends.div_ceil(ENDS), "{requests} messages for {ends} closes");
    drop(pending);
    let (mut said, mut space) = (Vec::new(), vec![0; 1 << 16]);
    while said.len() < CLOSES as usize {
        host.say_ends();
        let Ok((length, _)) = recv(&theirs, &mut *space, RecvFlags::empty()) else {
            panic!("only {} of {CLOSES} are said", said.len())
        };
        said.extend(decode_message(&space[..length]).expect("a message").ends);
    }
    assert!(said.iter().map(|(_, object)| *object).eq(0..CLOSES), "each once, in turn");
    assert_eq!(locked(&host.pending).requests.len(), 0);
    *locked(&host.socket) = before;
}
/// The open tries another connection, and if none lasts it reports that: what it never opened is not stale.
#[test]
fn an_open_over_a_connection_that_is_of_no_more_use_is_not_told_that_something_was_freed() {
    let _alone = locked(&CONNECTION);
    let slot = arena::slot(Access::SameUser).unwrap();
    let (_export, envelope, bytes) = exported(&slot);
    let (host, _theirs) = fetched(&envelope, &bytes);
    host.cut_off();
    let told = host.fetch(&envelope, &bytes, &Deadline::new()).map(drop).unwrap_err();
    assert_eq!(told.kind(), ErrorKind::ExporterGone, "{told}");
    assert_eq!(host.check().unwrap_err().kind(), ErrorKind::Freed, "what was opened before is");
    let (next, _theirs) = fetched(&envelope, &bytes);
    assert!(next.check().is_ok() && next.id() != host.id());
}
/// The watcher thread notices that it was refused before the request is made.
#[test]
fn why_a_connection_was_refused_is_told_also_if_its_end_is_noticed_first() {
    let _alone = locked(&CONNECTION);
    let slot = arena::slot(Access::SameUser).unwrap();
    let (_export, envelope, bytes) = exported(&slot);
    let (host, theirs) = fetched(&envelope, &bytes);
    drop(theirs);
    let (ours, theirs) =
        socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap();
    let before = std::mem::replace(&mut *locked(&host.socket), Arc::new(Guarded::new(ours)));
    send(&theirs, &encode_answer(0, &Answer::of(Verdict::Descriptors)), &[]).unwrap();
    drop(theirs);
    host.cut_off();
    let fetch = || host.fetch(&envelope, &bytes, &Deadline::new()).map(drop).unwrap_err().kind();
    assert_eq!(fetch(), ErrorKind::TooManyDescriptors);
    assert_eq!(fetch(), ErrorKind::ExporterGone, "that was all it said");
    drop(before);
}

/// Exports whose payloads are bytes.
fn of_bytes(count: usize) -> (Vec<Export>, Vec<Wanted>) {
    let one = |object: usize| {
        let export = export(Offer {
            kind: Kind::Memory,
            backend: 7,
            device: [1; 16],
            object: object as u64,
            offset: 0,
            length: 1,
            size: 1,
            payload: Payload::Bytes(b"handle"[..].into()),
            access: Access::SameUser,
        });
        let export = export.unwrap();
        let bytes = *export.bytes();
        (export, (Envelope::parse(&bytes).unwrap(), bytes))
    };
    (0..count).map(one).unzip()
}
/// Has `say` answer what this process asks meanwhile in `ask`, each request by its number and its place. Returns what `ask`
/// does, and the objects whose opens have ended, which the exporter was told or is to be told.
fn answered_by<T: Send>(
    host: &Arc<Host>,
    count: usize,
    say: impl Fn(u64, usize) -> Vec<(u64, Answer)> + Sync,
    ask: impl FnOnce() -> T + Send,
) -> (T, Vec<Object>) {
    let said_ends = Mutex::new(Vec::new());
    let hear = |bytes: &[u8]| {
        let message = decode_message(bytes)?;
        locked(&said_ends).extend(message.ends.iter().copied());
        Some(message)
    };
    let (ours, theirs) =
        socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap();
    set_socket_send_buffer_size(&ours, 1).unwrap(); // the least that there is
    set_socket_timeout(&ours, Timeout::Recv, Some(AT_A_TIME)).unwrap(); // as every connection has
    let before = std::mem::replace(&mut *locked(&host.socket), Arc::new(Guarded::new(ours)));
    let asked = std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut bytes = [0; MESSAGE_LEN];
            for place in 0..count {
                let (length, _) = recv(&theirs, &mut bytes[..], RecvFlags::empty()).unwrap();
                let Some(message) = hear(&bytes[..length]) else { return };
                assert!(matches!(message.request, Request::Fetch { has_ledger: true, .. }));
                for (number, answer) in say(message.number, place) {
                    if send(&theirs, &encode_answer(number, &answer), &[]).is_err() {
                        return; // it has hung up
                    }
                }
            }
        });
        ask()
    });
    // Another thread may have said some already.
    let mut pending = locked(&host.pending);
    let mut bytes = [0; MESSAGE_LEN];
    while let Ok((length, _)) = recv(&theirs, &mut bytes[..], RecvFlags::DONTWAIT) {
        if hear(&bytes[..length]).is_none() {
            break;
        }
    }
    let mut ends = said_ends.into_inner().unwrap();
    ends.append(&mut std::mem::take(&mut *pending).ends);
    drop(pending);
    *locked(&host.socket) = before;
    (asked, ends)
}
fn granted(place: usize) -> Answer {
    let payload = place.to_string().into_bytes();
    Answer { object: place as u64, payload, ..Answer::of(Verdict::Granted) }
}

#[test]
fn many_requests_are_under_way_as_far_as_there_is_room_and_each_has_its_own_answer() {
    let _alone = locked(&CONNECTION);
    let (_exports, wanted) = of_bytes(200);
    let (host, _first) = fetched(&wanted[0].0, &wanted[0].1);
    assert!(wanted.iter().all(|(envelope, _)| host.needs_no_descriptor(envelope)));
    let say = |number, place| match place {
        7 => vec![(number, Answer::of(Verdict::Withdrawn))],
        _ => vec![(number, granted(place))],
    };
    answered_by(&host, wanted.len(), say, || {
        let (fetched, asked) = host.fetch_many(&wanted, &Deadline::new());
        let is_right = |(place, one): (usize, &Option<Fetched>)| match one {
            None => place == 7,
            Some(Fetched { payload: crate::ArrivedPayload::Bytes(bytes), object, .. }) => {
                *object == place as u64 && *bytes == place.to_string().into_bytes()
            }
            Some(_) => false,
        };
        assert!(fetched.len() == wanted.len() && fetched.iter().enumerate().all(is_right));
        assert!(asked.is_ok());
    });
    assert!(host.check().is_ok());
}
#[test]
fn answers_of_another_number_or_with_something_to_acknowledge_end_the_connection() {
    let _alone = locked(&CONNECTION);
    type Says = fn(u64, usize) -> Vec<(u64, Answer)>;
    let wrong: [Says; 3] = [
        |number, place| vec![(number + u64::from(place == 3), granted(place))],
        |number, place| vec![(number, Answer { nonce: u64::from(place == 3), ..granted(place) })],
        |number, place| vec![(number, granted(place)); if place == 2 { 2 } else { 1 }],
    ];
    for say in wrong {
        let (_exports, wanted) = of_bytes(5);
        let (host, _first) = fetched(&wanted[0].0, &wanted[0].1);
        let (came, _) = answered_by(&host, wanted.len(), say, || {
            let (fetched, asked) = host.fetch_many(&wanted, &Deadline::new());
            assert_eq!(asked.unwrap_err().kind(), ErrorKind::PeerNonsense);
            fetched.iter().filter(|one| one.is_some()).count()
        });
        assert_eq!(came, 3, "those before are right");
        eventually(|| host.is_over());
    }
}
#[test]
fn what_many_requests_granted_that_were_given_up_is_given_back() {
    let _alone = locked(&CONNECTION);
    let (_exports, wanted) = of_bytes(4);
    let (host, _first) = fetched(&wanted[0].0, &wanted[0].1);
    let asked = Mutex::new(Vec::new());
    let say = |number, place| {
        locked(&asked).push((number, granted(place)));
        if place < 3 {
            return vec![];
        }
        eventually(|| locked(&host.overdue).len() == 4); // all of them, and the answers come late
        std::mem::take(&mut *locked(&asked))
    };
    let (_, mut ended) = answered_by(&host, wanted.len(), say, || {
        let (fetched, asked) = host.fetch_many(&wanted, &Deadline::new());
        assert!(fetched.iter().all(Option::is_none) && fetched.len() == 4);
        assert_eq!(asked.unwrap_err().kind(), ErrorKind::TimedOut);
        host.hear_overdue(soon()).unwrap();
    });
    ended.sort_unstable();
    assert_eq!(ended, [0, 1, 2, 3].map(|object| (Kind::Memory, object)));
    assert!(host.check().is_ok());
}
