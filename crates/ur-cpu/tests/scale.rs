//! Many exports, many opens, several importers, and users who may not.
mod common;
use common::*;
use std::io::Write as _;
use std::{fs, os::unix::fs::PermissionsExt, os::unix::process::CommandExt};

#[test]
fn role() {
    common::role();
}
const MANY: usize = 10_000;

/// Nothing needs a descriptor for each export, nor for each open.
#[test]
fn ten_thousand_allocations_are_shared_and_opened_at_once_with_a_thousand_descriptors() {
    let (_place, mut exporter, mut importer) = Place::pair();
    exporter.must("limit 1024");
    importer.must("limit 1024");
    let tickets = exporter.must(&format!("many-get {MANY} 4096"));
    assert_eq!(tickets.split(' ').count(), MANY);
    assert!(exporter.number("descriptors") < 300);
    importer.must(&format!("many-open {tickets}"));
    assert!(importer.number("descriptors") < 300);
    // What is large has a descriptor of its own only while there are plenty.
    exporter.must("many-get 300 1048576");
    assert!(exporter.number("descriptors") < 600);
    importer.must("many-close");
}
#[test]
fn ten_thousand_exports_of_one_object_of_each_kind_stand_at_once_and_leave_nothing() {
    let (_place, mut exporter, mut importer) = Place::pair();
    exporter.must("limit 1024");
    exporter.must("alloc memory 100");
    exporter.must("physical physical 65536");
    exporter.must("event event");
    for kind in ["memory", "physical", "event"] {
        let ticket = exporter.must(&format!("get {kind} {kind}"));
        importer.must(&format!("cycle {kind} {ticket} 1"));
        let before = exporter.number("descriptors");
        exporter.must(&format!("many-share {kind} {kind} {MANY}"));
        assert!(exporter.number("descriptors") <= before + 16);
        let last = exporter.must(&format!("get {kind} {kind}"));
        importer.must(&format!("cycle {kind} {last} 2"));
        exporter.must(&format!("many-put {kind}"));
        importer.refused(&format!("open {kind} x {last}"), "INVALID_VALUE");
        importer.refused(&format!("open {kind} x {ticket}"), "INVALID_VALUE");
    }
}
#[test]
fn a_thousand_rounds_of_open_and_close_cost_no_descriptor_and_no_mapping() {
    let (_place, mut exporter, mut importer) = Place::pair();
    exporter.must("alloc memory 3000000");
    exporter.must("physical physical 65536");
    exporter.must("event event");
    for kind in ["memory", "physical", "event"] {
        let ticket = exporter.must(&format!("get {kind} {kind}"));
        importer.must(&format!("cycle {kind} {ticket} 3"));
        let mut count = || {
            let both = [&mut importer, &mut exporter];
            both.map(|peer| (peer.number("descriptors"), peer.number("memfds")))
        };
        let before = count();
        importer.must(&format!("cycle {kind} {ticket} 1000"));
        let mut count = || {
            let both = [&mut importer, &mut exporter];
            both.map(|peer| (peer.number("descriptors"), peer.number("memfds")))
        };
        eventually("nothing is left", || {
            count().iter().zip(&before).all(|(now, before)| now.0 <= before.0 && now.1 <= before.1)
        });
    }
}
#[test]
fn two_importers_open_and_close_at_once_while_the_exporter_shares_on() {
    let (place, mut exporter, mut one) = Place::pair();
    let mut two = place.peer();
    exporter.must("alloc memory 4096");
    exporter.must("fill memory 0 4096 3");
    exporter.must("event event");
    let memory = exporter.must("get memory memory");
    let event = exporter.must("get event event");
    for peer in [&mut one, &mut two] {
        peer.tell(&format!("cycle memory {memory} 500"));
        peer.tell(&format!("cycle event {event} 500"));
        peer.tell(&format!("open memory memory {memory}"));
    }
    for _ in 0..200 {
        let other = exporter.must("get memory memory");
        exporter.must(&format!("put memory {other}"));
    }
    for peer in [&mut one, &mut two] {
        (0..3).for_each(|_| assert_eq!(peer.hear(), "ok"));
        assert_eq!(peer.must("all memory 0 4096 3"), "true");
    }
}
/// Somebody who is neither this user nor root nor the overflow user.
const STRANGER: u32 = 12_345;

/// A copy of the test binary that everyone may run, and a directory that is the stranger's own.
struct Public(Place);
impl Public {
    /// `None` if this user cannot become another one.
    fn new() -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            // Past the capture of the harness: nobody must take this for a pass.
            let _ =
                writeln!(std::io::stderr(), "skipped: not root, so there is no other user to be");
            return None;
        }
        let place = Place::new();
        fs::set_permissions(&place.0, fs::Permissions::from_mode(0o755)).unwrap();
        let copy = place.0.join("peer");
        fs::copy(std::env::current_exe().unwrap(), &copy).unwrap();
        fs::set_permissions(&copy, fs::Permissions::from_mode(0o755)).unwrap();
        let own = place.0.join("own");
        fs::DirBuilder::new().create(&own).unwrap();
        std::os::unix::fs::chown(&own, Some(STRANGER), Some(STRANGER)).unwrap();
        fs::set_permissions(&own, fs::Permissions::from_mode(0o700)).unwrap();
        Some(Self(place))
    }
    /// A stranger who looks into `directory`.
    fn stranger(&self, directory: &std::path::Path) -> Peer {
        Peer::of(&self.0.0.join("peer"), directory, |command| {
            command.uid(STRANGER).gid(STRANGER).current_dir("/");
        })
    }
    fn own(&self) -> std::path::PathBuf {
        self.0.0.join("own")
    }
}
/// What is refused to a stranger is refused in the same words whether it exists, existed, or never did.
#[track_caller]
fn cannot_tell(peer: &mut Peer, exporter: &mut Peer) {
    exporter.must("alloc memory 4096");
    exporter.must("physical physical 65536");
    exporter.must("event event");
    for kind in ["memory", "physical", "event"] {
        let open = |ticket: &str| format!("open {kind} x {ticket}");
        let standing = exporter.must(&format!("get {kind} {kind}"));
        let put = exporter.must(&format!("get {kind} {kind}"));
        exporter.must(&format!("put {kind} {put}"));
        let answer = peer.ask(&open(&standing));
        assert!(answer.starts_with("!UR_RESULT_ERROR_INVALID_"), "{answer}");
        let says = ["permission", "not for this user", "another user", "may not", "not permitted"];
        let lower = answer.to_lowercase();
        assert!(says.iter().any(|word| lower.contains(word)), "{answer}");
        assert_eq!(peer.ask(&open(&put)), answer, "the same for what was put back");
    }
}
#[test]
fn another_user_is_refused_and_learns_nothing() {
    let Some(public) = Public::new() else { return };
    let place = Place::new();
    let mut exporter = place.peer();
    for directory in [place.0.clone(), public.own()] {
        let mut stranger = public.stranger(&directory);
        cannot_tell(&mut stranger, &mut exporter);
        for kind in ["memory", "physical", "event"] {
            exporter.must(&match kind {
                "memory" => "free memory".into(),
                "physical" => "drop-physical physical".into(),
                kind => format!("release {kind}"),
            });
        }
    }
}
/// Even root, whom no directory keeps out: the broker asks the kernel who is there.
#[test]
fn a_stranger_who_gets_as_far_as_the_socket_is_refused_by_the_exporter() {
    let Some(public) = Public::new() else { return };
    let mut exporter = public.stranger(&public.own());
    let mut root = Peer::start(&public.own(), |_| {});
    cannot_tell(&mut root, &mut exporter);
    assert!(exporter.number("descriptors") < 40);
}
