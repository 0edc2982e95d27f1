//! Both ends of a connection in one process: cases that only the importer's side can bring about.
use super::*;
use crate::{
    Access, ENVELOPE_LEN, Export, Kind, Offer, Payload,
    arena::{self, Captured, Progress},
    deadline::Deadline,
    export::export,
    hosts,
    protocol::{ENDS, decode_message, send},
    standing::{Fetched, Standing},
};
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, recv, socketpair};
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
