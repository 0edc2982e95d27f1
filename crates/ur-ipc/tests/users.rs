//! Which processes are admitted, and the second way to a descriptor for those that find no broker. Tests that need a
//! process of another user have to run as root, and are skipped otherwise.
mod common;
use common::*;
use common::{no_clone as cloned, no_fork as forked};
use std::{fs, process::ExitCode};

/// A third user who owns nothing: tests export to the others.
const ORDINARY: u32 = 41_236;

fn main() -> ExitCode {
    common::main(|| {
        vec![
            trial("what_root_tests_alone_an_ordinary_user_tests_too", as_an_ordinary_user),
            trial(
                "another_user_learns_nothing_of_tickets_that_are_not_its_own",
                another_user_learns_nothing_of_tickets_that_are_not_its_own,
            ),
            trial(
                "an_export_to_another_user_is_opened_by_that_user_alone",
                an_export_to_another_user_is_opened_by_that_user_alone,
            ),
            trial(
                "a_user_whom_the_kernel_cannot_name_is_never_admitted",
                a_user_whom_the_kernel_cannot_name_is_never_admitted,
            ),
            trial(
                "an_export_to_others_needs_a_directory_that_they_can_pass",
                an_export_to_others_needs_a_directory_that_they_can_pass,
            ),
            trial(
                "one_process_is_admitted_and_not_another_of_the_same_user",
                one_process_is_admitted_and_not_another_of_the_same_user,
            ),
            trial(
                "a_directory_that_cannot_be_used_is_named",
                a_directory_that_cannot_be_used_is_named,
            ),
            trial(
                "without_a_common_directory_a_descriptor_is_taken_by_pidfd",
                without_a_common_directory_a_descriptor_is_taken_by_pidfd,
            ),
            trial(
                "what_has_no_memory_of_its_own_is_not_taken_by_pidfd",
                what_has_no_memory_of_its_own_is_not_taken_by_pidfd,
            ),
            trial(
                "a_refusal_is_final_although_there_is_a_second_way",
                a_refusal_is_final_although_there_is_a_second_way,
            ),
        ]
    })
}
/// Runs all other tests of this binary in a process that root started as a user without privileges: exporter, importer
/// and the test itself run as that user.
fn as_an_ordinary_user() -> Verdict {
    may_be_others()?;
    let place = Place::with_mode(0o711);
    let theirs = place.0.join("theirs");
    fs::create_dir(&theirs).unwrap();
    std::os::unix::fs::chown(&theirs, Some(ORDINARY), Some(ORDINARY)).unwrap();
    let mut command = std::process::Command::new(program(&place));
    command.args(["--skip", "what_root_tests_alone", "--test-threads", "2"]);
    command.env("TMPDIR", &theirs).current_dir("/");
    // All user ids and group ids become the ordinary user's, and no supplementary group stays.
    std::os::unix::process::CommandExt::uid(&mut command, ORDINARY);
    std::os::unix::process::CommandExt::gid(&mut command, ORDINARY);
    let said = command.output().unwrap();
    let text = String::from_utf8_lossy(&said.stdout).into_owned();
    assert!(said.status.success(), "{text}{}", String::from_utf8_lossy(&said.stderr));
    // Checks that not all tests were skipped: those that need no second user have passed.
    for name in ["one_process_is_admitted", "a_directory_that_cannot", "a_refusal_is_final"] {
        let line = text.lines().find(|line| line.contains(name));
        assert!(line.is_some_and(|line| line.ends_with("ok")), "{name}: {text}");
    }
    Ok(())
}
fn another_user_learns_nothing_of_tickets_that_are_not_its_own() -> Verdict {
    may_be_others()?;
    let place = Place::with_mode(0o711);
    let mut exporter = Peer::at(&place.0);
    let private = exporter.ask("export private 1 same");
    let others = exporter.ask(&format!("export others 2 user:{OTHER}"));
    let put = exporter.ask(&format!("export put 3 user:{STRANGER}"));
    exporter.ask(&format!("put {put}"));
    let mut stranger = as_user(&place, STRANGER);
    // The kernel denies it access to the sockets of exporters that share with their own user only. A peer that the
    // exporter does not admit is told that there is no such export.
    for (ticket, kind) in [(&private, "Denied"), (&others, "Unknown"), (&put, "Unknown")] {
        let answer = stranger.ask(&format!("open {ticket}"));
        assert!(answer.starts_with(kind), "{answer}");
    }
    let answer = exporter.ask(&format!("open {put}"));
    assert!(answer.starts_with("Withdrawn"), "{answer}");
    Ok(())
}
fn an_export_to_another_user_is_opened_by_that_user_alone() -> Verdict {
    may_be_others()?;
    let place = Place::with_mode(0o711);
    let mut exporter = Peer::at(&place.0);
    let ticket = exporter.ask(&format!("export hello 1 user:{STRANGER}"));
    assert_eq!(as_user(&place, STRANGER).ask(&format!("open {ticket}")), "remote hello 16 32");
    assert!(as_user(&place, OTHER).ask(&format!("open {ticket}")).starts_with("Unknown"));
    // The exporter's own user is told the reason.
    assert!(Peer::at(&place.0).ask(&format!("open {ticket}")).starts_with("Denied"));
    Ok(())
}
fn a_user_whom_the_kernel_cannot_name_is_never_admitted() -> Verdict {
    may_be_others()?;
    let place = Place::with_mode(0o711);
    let mut exporter = Peer::at(&place.0);
    let ticket = exporter.ask("export hello 1 user:65534");
    assert!(as_user(&place, 65534).ask(&format!("open {ticket}")).starts_with("Unknown"));
    Ok(())
}
fn an_export_to_others_needs_a_directory_that_they_can_pass() -> Verdict {
    let place = Place::new();
    let mut exporter = Peer::at(&place.0);
    let answer = exporter.ask(&format!("export hello 1 user:{STRANGER}"));
    assert!(answer.starts_with("Directory") && answer.contains("0711"), "{answer}");
    Ok(())
}
fn one_process_is_admitted_and_not_another_of_the_same_user() -> Verdict {
    let place = Place::new();
    let (mut exporter, mut named, mut other) =
        (Peer::at(&place.0), Peer::at(&place.0), Peer::at(&place.0));
    let ticket = exporter.ask(&format!("export hello 1 process:{}", named.pid()));
    assert_eq!(named.ask(&format!("open {ticket}")), "remote hello 16 32");
    assert!(other.ask(&format!("open {ticket}")).starts_with("Denied"));
    Ok(())
}
fn a_directory_that_cannot_be_used_is_named() -> Verdict {
    let place = Place::new();
    let answer = Peer::at(&place.0.join("no/such")).ask("export hello 1 same");
    assert!(answer.starts_with("Directory"), "{answer}");
    assert!(answer.contains("no/such") && answer.contains("CAUSEWAY_DIR"), "{answer}");
    let open = Place::with_mode(0o700);
    fs::set_permissions(&open.0, std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    let answer = Peer::at(&open.0).ask("export hello 1 same");
    assert!(answer.starts_with("Directory") && answer.contains("others can write it"), "{answer}");
    Ok(())
}
fn without_a_common_directory_a_descriptor_is_taken_by_pidfd() -> Verdict {
    let (place, elsewhere) = (Place::new(), Place::new());
    let (mut exporter, mut importer) = (Peer::at(&place.0), Peer::at(&elsewhere.0));
    let ticket = exporter.ask("export hello 1 same");
    let answer = importer.ask(&format!("open {ticket}"));
    if answer.starts_with("Denied") {
        // The machine forbids it: then the error names the check, and the way out.
        assert!(answer.contains("gate") && answer.contains("CAUSEWAY_DIR"), "{answer}");
        return Err(Skip(format!("the kernel does not permit it here: {answer}")));
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
    Ok(())
}
fn what_has_no_memory_of_its_own_is_not_taken_by_pidfd() -> Verdict {
    let (place, elsewhere) = (Place::new(), Place::new());
    let (mut exporter, mut importer) = (Peer::at(&place.0), Peer::at(&elsewhere.0));
    exporter.ask("slot e");
    let part = exporter.ask("export-part hello 4096");
    let event = exporter.ask("export-slot e");
    let of_one = exporter.ask(&format!("export hello 1 process:{}", std::process::id()));
    for (how, ticket) in [("open", part), ("open-event", event), ("open", of_one)] {
        let answer = importer.ask(&format!("{how} {ticket}"));
        assert!(answer.starts_with("Unreachable") && answer.contains("CAUSEWAY_DIR"), "{answer}");
    }
    Ok(())
}
fn a_refusal_is_final_although_there_is_a_second_way() -> Verdict {
    let place = Place::new();
    let (mut exporter, mut importer) = (Peer::at(&place.0), Peer::at(&place.0));
    let keep = exporter.ask("export keep 1 same");
    let put = exporter.ask("export put 2 same");
    exporter.ask(&format!("put {put}"));
    assert!(importer.ask(&format!("open {put}")).starts_with("Withdrawn"));
    assert_eq!(importer.ask(&format!("open {keep}")), "remote keep 16 32");
    Ok(())
}
