//! Who is let in, and the second way for those who find no broker. What needs another user's process needs to run as
//! root; without that, those tests have nobody to send and say so.
mod common;
use common::*;
use common::{no_clone as cloned, no_fork as forked};
use std::io::Write as _;
use std::{fs, os::unix::process::CommandExt};

#[test]
fn role() {
    common::role();
}

const STRANGER: u32 = 41_234;
const OTHER: u32 = 41_235;

/// This program, where other users can run it.
fn program(place: &Place) -> std::path::PathBuf {
    let copy = place.0.join("program");
    if !copy.exists() {
        fs::copy(std::env::current_exe().unwrap(), &copy).unwrap();
    }
    copy
}
fn as_user(place: &Place, uid: u32) -> Peer {
    let program = program(place);
    Peer::start(&place.0, |command| {
        let mut other = std::process::Command::new(program);
        other.args(["role", "--exact", "--nocapture"]).uid(uid).gid(uid).current_dir("/");
        other.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        other.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
        *command = other;
    })
}
fn may_be_others() -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        // Past the capture of the harness: nobody must take this for a pass.
        let _ = writeln!(std::io::stderr(), "skipped: not root, so there is nobody else to send");
    }
    root
}

#[test]
fn another_user_learns_nothing_of_tickets_that_are_not_its_own() {
    if !may_be_others() {
        return;
    }
    let place = Place::with_mode(0o711);
    let mut exporter = Peer::at(&place.0);
    let private = exporter.ask("export private 1 same");
    let others = exporter.ask(&format!("export others 2 user:{OTHER}"));
    let put = exporter.ask(&format!("export put 3 user:{STRANGER}"));
    exporter.ask(&format!("put {put}"));
    let mut stranger = as_user(&place, STRANGER);
    for ticket in [&private, &others, &put] {
        let answer = stranger.ask(&format!("open {ticket}"));
        assert!(answer.starts_with("Unknown"), "{answer}");
    }
    let answer = exporter.ask(&format!("open {put}"));
    assert!(answer.starts_with("Withdrawn"), "{answer}");
}
#[test]
fn an_export_to_another_user_is_opened_by_that_user_alone() {
    if !may_be_others() {
        return;
    }
    let place = Place::with_mode(0o711);
    let mut exporter = Peer::at(&place.0);
    let ticket = exporter.ask(&format!("export hello 1 user:{STRANGER}"));
    assert_eq!(as_user(&place, STRANGER).ask(&format!("open {ticket}")), "remote hello 16 32");
    assert!(as_user(&place, OTHER).ask(&format!("open {ticket}")).starts_with("Unknown"));
    // The exporter's own user is told why not.
    assert!(Peer::at(&place.0).ask(&format!("open {ticket}")).starts_with("Denied"));
}
#[test]
fn a_user_whom_the_kernel_cannot_name_is_never_admitted() {
    if !may_be_others() {
        return;
    }
    let place = Place::with_mode(0o711);
    let mut exporter = Peer::at(&place.0);
    let ticket = exporter.ask("export hello 1 user:65534");
    assert!(as_user(&place, 65534).ask(&format!("open {ticket}")).starts_with("Unknown"));
}
#[test]
fn an_export_to_others_needs_a_directory_that_they_can_pass() {
    let place = Place::new();
    let mut exporter = Peer::at(&place.0);
    let answer = exporter.ask(&format!("export hello 1 user:{STRANGER}"));
    assert!(answer.starts_with("Directory") && answer.contains("0711"), "{answer}");
}
#[test]
fn one_process_is_admitted_and_not_another_of_the_same_user() {
    let place = Place::new();
    let (mut exporter, mut named, mut other) =
        (Peer::at(&place.0), Peer::at(&place.0), Peer::at(&place.0));
    let ticket = exporter.ask(&format!("export hello 1 process:{}", named.pid()));
    assert_eq!(named.ask(&format!("open {ticket}")), "remote hello 16 32");
    assert!(other.ask(&format!("open {ticket}")).starts_with("Denied"));
}
#[test]
fn a_directory_that_cannot_be_used_is_named() {
    let place = Place::new();
    let answer = Peer::at(&place.0.join("no/such")).ask("export hello 1 same");
    assert!(answer.starts_with("Directory"), "{answer}");
    assert!(answer.contains("no/such") && answer.contains("CAUSEWAY_DIR"), "{answer}");
    let open = Place::with_mode(0o700);
    fs::set_permissions(&open.0, std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    let answer = Peer::at(&open.0).ask("export hello 1 same");
    assert!(answer.starts_with("Directory") && answer.contains("others can write it"), "{answer}");
}
#[test]
fn without_a_common_directory_a_descriptor_is_taken_by_pidfd() {
    let (place, elsewhere) = (Place::new(), Place::new());
    let (mut exporter, mut importer) = (Peer::at(&place.0), Peer::at(&elsewhere.0));
    let ticket = exporter.ask("export hello 1 same");
    let answer = importer.ask(&format!("open {ticket}"));
    if answer.starts_with("Denied") {
        // A machine that forbids it; then the gate is named, and the way out.
        assert!(answer.contains("gate") && answer.contains("CAUSEWAY_DIR"), "{answer}");
        return;
    }
    assert_eq!(answer, "remote hello 16 32");
    importer.ask(&format!("write {ticket} HOWDY"));
    assert_eq!(importer.ask(&format!("current {ticket}")), "current");
    exporter.ask(&format!("put {ticket}"));
    assert!(importer.ask(&format!("open {ticket}")).starts_with("Withdrawn"), "warm");
    importer.ask(&format!("close {ticket}"));
    assert!(importer.ask(&format!("open {ticket}")).starts_with("Withdrawn"), "cold");
    let dying = exporter.ask("export dying 2 same");
    assert_eq!(importer.ask(&format!("open {dying}")), "remote dying 16 32");
    exporter.kill();
    assert!(importer.ask(&format!("open {dying}")).starts_with("ExporterGone"));
}
#[test]
fn what_has_no_memory_of_its_own_is_not_taken_by_pidfd() {
    let (place, elsewhere) = (Place::new(), Place::new());
    let (mut exporter, mut importer) = (Peer::at(&place.0), Peer::at(&elsewhere.0));
    exporter.ask("slot e");
    let part = exporter.ask("export-part hello 4096");
    let event = exporter.ask("export-slot e");
    let of_one = exporter.ask(&format!("export hello 1 process:{}", std::process::id()));
    for (how, ticket) in [("open", part), ("open-event", event), ("open", of_one)] {
        let answer = importer.ask(&format!("{how} {ticket}"));
        assert!(answer.starts_with("Directory") && answer.contains("CAUSEWAY_DIR"), "{answer}");
    }
}
#[test]
fn a_refusal_is_final_although_there_is_a_second_way() {
    let place = Place::new();
    let (mut exporter, mut importer) = (Peer::at(&place.0), Peer::at(&place.0));
    let keep = exporter.ask("export keep 1 same");
    let put = exporter.ask("export put 2 same");
    exporter.ask(&format!("put {put}"));
    assert!(importer.ask(&format!("open {put}")).starts_with("Withdrawn"));
    assert_eq!(importer.ask(&format!("open {keep}")), "remote keep 16 32");
}
