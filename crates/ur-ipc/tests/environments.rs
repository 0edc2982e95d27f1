//! How the environment of a process affects sharing: namespaces, cleaners of temporary directories, full disks, system
//! call filters, limits. Tests that the system does not permit are skipped, with the reason.
mod common;
use common::*;
use common::{no_clone as cloned, no_fork as forked};
use std::{
    fs,
    os::unix::fs::{PermissionsExt, chown},
    path::Path,
    process::ExitCode,
};

fn main() -> ExitCode {
    common::main(|| {
        vec![
            trial("an_exporter_that_is_shown_another_boot_id_is_reached", another_boot_id),
            trial("a_ticket_of_another_boot_that_nobody_answers_for_says_so", of_another_boot),
            trial("root_of_a_rootless_container_and_the_hosts_user_share_both_ways", rootless),
            trial("a_user_namespace_is_no_obstacle_in_the_runtime_directory", rootless_runtime),
            trial("another_user_of_the_host_is_nobody_to_a_rootless_container", other_user),
            trial("a_removed_directory_is_made_again_and_old_tickets_work", removed_directory),
            trial("a_removed_socket_name_is_bound_again_and_old_tickets_work", removed_name),
            trial(
                "an_importer_is_told_that_a_socket_name_was_removed_until_it_is_bound_again",
                removed_and_not_noticed,
            ),
            trial(
                "a_relative_directory_stays_where_it_was_when_the_exporter_goes_elsewhere",
                goes_elsewhere,
            ),
            trial("a_removed_lock_file_costs_no_exporter_its_socket", removed_lock),
            trial("a_moved_directory_is_made_again_and_old_tickets_work", moved_directory),
            trial("what_ends_leaves_no_name_behind_although_it_was_bound_again", ends_cleanly),
            trial("a_file_system_without_inodes_is_called_full", full_directory),
            trial("a_directory_that_others_can_list_is_refused_with_the_repair", listable),
            trial("an_umask_that_takes_every_right_harms_nobody", umask),
            trial("an_importer_to_whom_pidfd_open_is_denied_opens_events", no_pidfd_open),
            trial("both_sides_share_although_a_filter_denies_them_to_ask_for_limits", no_limits),
            trial("a_user_without_a_thread_left_is_told_so", no_threads),
            trial("a_panic_of_the_watcher_costs_one_connection_and_no_more", watcher_panics),
            trial("deaths_are_noticed_after_a_panic_of_the_watcher", watcher_goes_on),
        ]
    })
}

const GRANTED: &str = "remote hello 16 32";

/// Opens a ticket in a new process, which has to find the exporter first.
#[track_caller]
fn opens(place: &Path, ticket: &str) {
    assert_eq!(Peer::at(place).ask(&format!("open {ticket}")), GRANTED);
}

// Namespaces.

/// A command prefix that starts programs in a mount namespace with another boot id.
fn with_another_boot_id(place: &Place) -> Result<Vec<String>, Skip> {
    let fake = place.0.join("boot_id");
    fs::write(&fake, "11111111-2222-4333-8444-555555555555\n").unwrap();
    let mount = format!("mount --bind {} /proc/sys/kernel/random/boot_id", fake.display());
    let mut by: Vec<String> = vec!["unshare".into(), "--mount".into()];
    by.extend((!is_root()).then(|| "--map-root-user".into()));
    by.extend(["sh".into(), "-c".into()]);
    let mut tried: Vec<&str> = by.iter().map(String::as_str).collect();
    let alone = format!("{mount} && grep -q 11111111 /proc/sys/kernel/random/boot_id");
    tried.push(&alone);
    can(&tried)?;
    by.push(format!("{mount} && exec \"$0\" \"$@\""));
    Ok(by)
}
fn another_boot_id() -> Verdict {
    let place = Place::new();
    let by = with_another_boot_id(&place)?;
    let by: Vec<&str> = by.iter().map(String::as_str).collect();
    let (mut inside, mut outside) = (Peer::started_by(&place.0, &by), Peer::at(&place.0));
    for (exporter, importer) in [(0, 1), (1, 0)] {
        let peers = [&mut inside, &mut outside];
        let ticket = peers[exporter].ask("export hello 1 same");
        assert_eq!(peers[importer].ask(&format!("open {ticket}")), GRANTED);
        peers[exporter].ask(&format!("slot e{exporter}"));
        let event = peers[exporter].ask(&format!("export-slot e{exporter}"));
        let answer = peers[importer].ask(&format!("open-event {event}"));
        assert!(answer.starts_with("event"), "{answer}");
    }
    Ok(())
}
fn of_another_boot() -> Verdict {
    let (place, elsewhere) = (Place::new(), Place::new());
    let by = with_another_boot_id(&place)?;
    let by: Vec<&str> = by.iter().map(String::as_str).collect();
    let mut exporter = Peer::started_by(&place.0, &by);
    exporter.ask("slot e"); // an event, which cannot be taken by pidfd
    let ticket = exporter.ask("export-slot e");
    let answer = Peer::at(&elsewhere.0).ask(&format!("open-event {ticket}"));
    let known = ["/etc/machine-id", "/var/lib/dbus/machine-id"].map(|p| fs::read(p).is_ok());
    let kind = if known.contains(&true) { "OtherBoot:" } else { "OtherHost:" };
    assert!(answer.starts_with(kind) && answer.contains("CAUSEWAY_DIR"), "{answer}");
    exporter.kill();
    let answer = Peer::at(&place.0).ask(&format!("open-event {ticket}"));
    assert!(answer.starts_with("ExporterGone:"), "{answer}");
    Ok(())
}

/// Makes the user root in a user namespace.
const ROOTLESS: [&str; 2] = ["unshare", "--map-root-user"];
fn can_be_rootless() -> Verdict {
    let by: &[&str] = if is_root() { &["setpriv", "--reuid=41234"] } else { &[] };
    can(&[by, &ROOTLESS, &["true"]].concat())
}
/// Two peers of the user for whom namespaces are tested, with a folder of that user, started by another program: one on
/// the host, and one that is root in a namespace.
fn both_sides(place: &Place, by: &[&str]) -> [Peer; 2] {
    let rootless = [by, &ROOTLESS].concat();
    if is_root() {
        chown(&place.0, Some(STRANGER), Some(STRANGER)).unwrap();
        [as_user_by(place, STRANGER, by), as_user_by(place, STRANGER, &rootless)]
    } else {
        [Peer::started_by(&place.0, by), Peer::started_by(&place.0, &rootless)]
    }
}
#[track_caller]
fn share_both_ways(mut peers: [Peer; 2]) {
    for (exporter, importer) in [(0, 1), (1, 0)] {
        let ticket = peers[exporter].ask("export hello 1 same");
        assert_eq!(peers[importer].ask(&format!("open {ticket}")), GRANTED, "{exporter}");
        peers[exporter].ask("slot e");
        let event = peers[exporter].ask("export-slot e");
        let answer = peers[importer].ask(&format!("open-event {event}"));
        assert!(answer.starts_with("event"), "{answer}");
    }
}
fn rootless() -> Verdict {
    can_be_rootless()?;
    share_both_ways(both_sides(&Place::new(), &[]));
    Ok(())
}
fn rootless_runtime() -> Verdict {
    can_be_rootless()?;
    let place = Place::new();
    let runtime = format!("XDG_RUNTIME_DIR={}", place.0.display());
    share_both_ways(both_sides(&place, &["env", "-u", "CAUSEWAY_DIR", &runtime]));
    Ok(())
}
fn other_user() -> Verdict {
    may_be_others()?;
    can_be_rootless()?;
    let place = Place::new();
    let [_, mut rootless] = both_sides(&place, &[]);
    fs::set_permissions(&place.0, fs::Permissions::from_mode(0o711)).unwrap();
    let ticket = rootless.ask("export hello 1 same");
    let answer = as_user(&place, OTHER).ask(&format!("open {ticket}"));
    // Neither by the user id in the ticket nor by the kernel's own rules.
    assert!(answer.starts_with("Denied:"), "{answer}");
    assert_eq!(rootless.ask("leased 1"), "false");
    Ok(())
}

// Names that go away.

/// Whether the exporter has issued the notice that it has bound its socket again.
fn is_told(exporter: &mut Peer) -> bool {
    exporter.ask("notices").contains("it is bound again in")
}
fn removed_directory() -> Verdict {
    let place = Place::new();
    let mut exporter = Peer::at(&place.0);
    let ticket = exporter.ask("export hello 1 same");
    fs::remove_dir_all(&place.0).unwrap();
    eventually("it is there again", || place.0.exists() && !place.names().is_empty());
    eventually("it says so", || is_told(&mut exporter));
    assert_eq!(fs::metadata(&place.0).unwrap().permissions().mode() & 0o777, 0o700);
    opens(&place.0, &ticket);
    Ok(())
}
fn removed_name() -> Verdict {
    let place = Place::new();
    let mut exporter = Peer::at(&place.0);
    let ticket = exporter.ask("export hello 1 same");
    let mut old = Peer::at(&place.0);
    assert_eq!(old.ask(&format!("open {ticket}")), GRANTED);
    for _ in 0..2 {
        let socket = place.socket();
        fs::remove_file(&socket).unwrap();
        eventually("it is there again", || socket.exists());
        opens(&place.0, &ticket);
    }
    eventually("it says so", || is_told(&mut exporter));
    assert_eq!(old.ask(&format!("current {ticket}")), "current", "what was open stays so");
    Ok(())
}
fn removed_and_not_noticed() -> Verdict {
    let place = Place::new();
    let mut exporter = Peer::at(&place.0);
    let ticket = exporter.ask("export hello 1 same");
    let mut importer = Peer::at(&place.0);
    exporter.signal(rustix::process::Signal::STOP); // so that it does not notice the removal meanwhile
    fs::remove_file(place.socket()).unwrap();
    let said = importer.ask(&format!("open {ticket}"));
    assert!(said.starts_with("Unreachable") && said.contains("within two seconds"), "{said}");
    exporter.signal(rustix::process::Signal::CONT);
    eventually("it is bound again", || importer.ask(&format!("open {ticket}")) == GRANTED);
    importer.ask(&format!("close {ticket}"));
    // An exporter that no longer shares anything has no socket either.
    assert_eq!(exporter.ask(&format!("put {ticket}")), "ok");
    eventually("its door is closed", || place.names().is_empty());
    let said = importer.ask(&format!("open {ticket}"));
    assert!(said.starts_with("Withdrawn"), "{said}");
    Ok(())
}
fn goes_elsewhere() -> Verdict {
    let (place, elsewhere) = (Place::new(), Place::new());
    let mut exporter = Peer::start(&place.0, |command| {
        command.env("CAUSEWAY_DIR", "sockets").current_dir(&place.0);
    });
    let ticket = exporter.ask("export hello 1 same");
    let sockets = Place(place.0.join("sockets"));
    exporter.ask(&format!("chdir {}", elsewhere.0.display()));
    for _ in 0..2 {
        let socket = sockets.socket();
        fs::remove_file(&socket).unwrap();
        eventually("it is there again", || socket.exists());
        opens(&sockets.0, &ticket);
    }
    assert_eq!(elsewhere.names(), Vec::<String>::new(), "nothing is made there");
    Ok(())
}
fn removed_lock() -> Verdict {
    let place = Place::new();
    let mut exporter = Peer::at(&place.0);
    let ticket = exporter.ask("export hello 1 same");
    let lock = place.socket().with_extension("lock");
    fs::remove_file(&lock).unwrap();
    let socket = place.socket();
    let is = |path: &Path| std::os::unix::fs::MetadataExt::ino(&fs::metadata(path).unwrap());
    let was = is(&socket);
    let mut sweeper = Peer::at(&place.0);
    assert!(!sweeper.ask("export other 1 same").contains(':'));
    assert_eq!(is(&socket), was, "the sweeper has left it alone");
    opens(&place.0, &ticket);
    fs::remove_file(&lock).unwrap();
    eventually("there is a lock file again", || lock.exists());
    Ok(())
}
fn moved_directory() -> Verdict {
    let place = Place::new();
    let runtime = place.0.join("run");
    fs::create_dir(&runtime).unwrap();
    fs::set_permissions(&runtime, fs::Permissions::from_mode(0o700)).unwrap();
    let mut exporter = Peer::at(&runtime);
    let ticket = exporter.ask("export hello 1 same");
    fs::rename(&runtime, place.0.join("aside")).unwrap();
    eventually("it says so", || is_told(&mut exporter));
    opens(&runtime, &ticket);
    Ok(())
}
fn ends_cleanly() -> Verdict {
    let place = Place::new();
    let mut exporter = Peer::at(&place.0);
    let ticket = exporter.ask("export hello 1 same");
    fs::remove_file(place.socket()).unwrap();
    eventually("it says so", || is_told(&mut exporter));
    exporter.ask(&format!("put {ticket}"));
    eventually("no name is left", || place.names().is_empty());
    Ok(())
}

// Directories in an unsuitable state.

fn full_directory() -> Verdict {
    let place = Place::new();
    let at = place.0.display();
    // One inode for the directory, and one for the lock file.
    let mount = format!("mount -t tmpfs -o nr_inodes=2,mode=0700 tmpfs {at}");
    let mut by = vec!["unshare", "--mount"];
    by.extend((!is_root()).then_some("--map-root-user"));
    by.extend(["sh", "-c"]);
    can(&[&by[..], &[&mount]].concat())?;
    let and_run = format!("{mount} && exec \"$0\" \"$@\"");
    by.push(&and_run);
    let mut exporter = Peer::started_by(&place.0, &by);
    let answer = exporter.ask("export hello 1 same");
    assert!(answer.starts_with("NoSpace:"), "{answer}");
    assert!(answer.contains("file system is full") && answer.contains("CAUSEWAY_DIR"), "{answer}");
    Ok(())
}
fn listable() -> Verdict {
    let place = Place::with_mode(0o700);
    fs::set_permissions(&place.0, fs::Permissions::from_mode(0o755)).unwrap();
    let answer = Peer::at(&place.0).ask("export hello 1 same");
    assert!(answer.starts_with("Directory:"), "{answer}");
    assert!(answer.contains("others can list it") && answer.contains("chmod 0700"), "{answer}");
    Ok(())
}
fn umask() -> Verdict {
    let place = Place::new();
    if is_root() {
        // Root may traverse it whatever its mode.
        chown(&place.0, Some(STRANGER), Some(STRANGER)).unwrap();
    }
    let made = place.0.join("made");
    let dir = format!("CAUSEWAY_DIR={}", made.display());
    let by = ["env", &dir, "sh", "-c", "umask 0777; exec \"$0\" \"$@\""];
    let start = || match is_root() {
        true => as_user_by(&place, STRANGER, &by),
        false => Peer::started_by(&place.0, &by),
    };
    let (mut exporter, mut importer) = (start(), start());
    let ticket = exporter.ask("export hello 1 same");
    assert_eq!(importer.ask(&format!("open {ticket}")), GRANTED);
    assert_eq!(fs::metadata(&made).unwrap().permissions().mode() & 0o777, 0o700);
    Ok(())
}

// Denied system calls, and limits.

fn no_pidfd_open() -> Verdict {
    let place = Place::new();
    let (mut exporter, mut importer) = (Peer::at(&place.0), Peer::at(&place.0));
    exporter.ask("slot e");
    let ticket = exporter.ask("export-slot e");
    assert_eq!(importer.ask("no-pidfd-open"), "ok");
    let answer = importer.ask(&format!("open-event {ticket}"));
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut parts = release.split('.').map_while(|part| part.parse::<u32>().ok());
    if (parts.next(), parts.next()) < (Some(6), Some(5)) {
        return Err(Skip("this kernel has no SO_PEERPIDFD".into()));
    }
    assert!(answer.starts_with("event"), "{answer}");
    Ok(())
}
fn no_limits() -> Verdict {
    let place = Place::new();
    let (mut exporter, mut importer) = (Peer::at(&place.0), Peer::at(&place.0));
    for peer in [&mut exporter, &mut importer] {
        assert_eq!(peer.ask("no-limits"), "ok");
    }
    let ticket = exporter.ask("export hello 1 same");
    assert_eq!(importer.ask(&format!("open {ticket}")), GRANTED);
    exporter.ask("slot e");
    let event = exporter.ask("export-slot e");
    let answer = importer.ask(&format!("open-event {event}"));
    assert!(answer.starts_with("event"), "{answer}");
    Ok(())
}
fn no_threads() -> Verdict {
    let place = Place::new();
    let mut exporter = match is_root() {
        true => {
            chown(&place.0, Some(STRANGER), Some(STRANGER)).unwrap();
            as_user(&place, STRANGER) // the limit does not apply to root
        }
        false => Peer::at(&place.0),
    };
    assert_eq!(exporter.ask("no-threads"), "ok");
    let answer = exporter.ask("export hello 1 same");
    assert!(answer.starts_with("TooManyThreads:") && answer.contains("ulimit -u"), "{answer}");
    Ok(())
}

// Faults in this library.

fn panicking(place: &Place) -> Peer {
    Peer::start(&place.0, |command| {
        command.env("CAUSEWAY_PANIC_AT", "watcher.hear:1");
    })
}
fn watcher_panics() -> Verdict {
    let place = Place::new();
    let mut exporter = panicking(&place);
    let ticket = exporter.ask("export hello 1 same");
    let mut importer = Peer::at(&place.0);
    // The connection over which it makes its first request is given up, and it repeats the request.
    assert_eq!(importer.ask(&format!("open {ticket}")), GRANTED);
    assert!(exporter.ask("notices").contains("a fault in the thread"));
    opens(&place.0, &ticket);
    assert_eq!(importer.ask(&format!("current {ticket}")), "current");
    Ok(())
}
fn watcher_goes_on() -> Verdict {
    let place = Place::new();
    let mut exporter = panicking(&place);
    let ticket = exporter.ask("export hello 1 same");
    let mut importer = Peer::at(&place.0);
    assert_eq!(importer.ask(&format!("open {ticket}")), GRANTED);
    assert_eq!(exporter.ask("leased 1"), "true");
    importer.kill();
    eventually("its lease ends with it", || exporter.ask("leased 1") == "false");
    Ok(())
}
