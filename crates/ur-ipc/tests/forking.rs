//! Fork and exec on either side: a child does not accidentally share with its parent, and does not keep its resources
//! alive.
#![expect(unsafe_code, reason = "forks, as C programs do")]
mod common;
use common::*;
use std::{
    io::{Read, Write},
    time::{Duration, Instant},
};
use ur_ipc::{
    Access,
    arena::{self, Captured, Progress},
};

#[test]
fn role() {
    common::role();
}
/// Runs `then` in a forked child.
fn forked(stay: bool, then: impl FnOnce()) -> String {
    std::io::stdout().flush().unwrap();
    let mut pipe = stay.then(|| std::io::pipe().unwrap());
    // SAFETY: the child does only what is tested here, with the same restrictions as in any threaded program that
    // forks.
    match unsafe { libc::fork() } {
        0 => {
            then();
            if let Some((_, is_done)) = &mut pipe {
                is_done.write_all(b".").unwrap();
                stay_on()
            }
            // SAFETY: ends the child at once, without running its parent's exit handlers.
            unsafe { libc::_exit(0) }
        }
        child => {
            if let Some((done, _)) = &mut pipe {
                done.read_exact(&mut [0]).unwrap();
                return child.to_string();
            }
            let mut status = 0;
            // SAFETY: a child of this process, and a place for its status.
            assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
            format!("child ended with {status}")
        }
    }
}
/// A child that was not made through the C library.
fn cloned() -> String {
    // SAFETY: the bare system call; the child only sleeps.
    match unsafe { libc::syscall(libc::SYS_fork) } {
        0 => stay_on(),
        child => child.to_string(),
    }
}
fn stay_on() -> ! {
    // SAFETY: sets a timer, which ends this process even if its test has lost track of it.
    unsafe { libc::alarm(30) };
    loop {
        // SAFETY: only sleeps.
        unsafe { libc::pause() };
    }
}
/// A process that is killed when the test ends, whether or not it succeeds.
struct Stayer(i32);
impl Stayer {
    fn of(pid: &str) -> Self {
        Self(pid.parse().unwrap())
    }
}
impl Drop for Stayer {
    fn drop(&mut self) {
        let pid = rustix::process::Pid::from_raw(self.0).unwrap();
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
    }
}
const SOON: Duration = Duration::from_millis(100);

fn pair() -> (Place, Peer, Peer) {
    let place = Place::new();
    let (exporter, importer) = (Peer::at(&place.0), Peer::at(&place.0));
    (place, exporter, importer)
}

#[test]
fn a_child_neither_serves_nor_withdraws_its_parents_exports() {
    let (_place, mut exporter, mut importer) = pair();
    let ticket = exporter.ask("export hello 1 same");
    let said = exporter.ask(&format!("fork standing {ticket}"));
    assert!(said.starts_with("Forked"), "{said}");
    assert_eq!(exporter.hear(), "child ended with 0");
    assert_eq!(exporter.ask(&format!("fork put {ticket}")), "ok");
    assert_eq!(exporter.hear(), "child ended with 0");
    assert_eq!(exporter.ask("fork free 1"), "ok");
    assert_eq!(exporter.hear(), "child ended with 0");
    assert_eq!(exporter.ask(&format!("standing {ticket}")), "stands");
    assert_eq!(importer.ask(&format!("open {ticket}")), "remote hello 16 32");
}
#[test]
fn a_child_is_an_importer_like_any_other() {
    let (_place, mut exporter, _importer) = pair();
    let ticket = exporter.ask("export hello 1 same");
    assert_eq!(exporter.ask(&format!("fork open {ticket}")), "remote hello 16 32");
    assert_eq!(exporter.hear(), "child ended with 0");
    eventually("its lease ended with it", || exporter.ask("leased 1") == "false");
}
#[test]
fn a_child_is_an_exporter_of_its_own() {
    let (_place, mut exporter, mut importer) = pair();
    let ticket = exporter.ask("export hello 1 same");
    let (ours, theirs) = (exporter.ask("instance"), exporter.ask("fork instance"));
    exporter.hear();
    assert_ne!(ours, theirs);
    let childs = exporter.ask("fork-and-stay export child 1 same");
    let _child = Stayer::of(&exporter.hear());
    assert_eq!(importer.ask(&format!("open {childs}")), "remote child 16 32");
    assert_eq!(importer.ask(&format!("open {ticket}")), "remote hello 16 32");
}
#[test]
fn what_a_parent_opened_is_an_error_in_its_child_and_stays_open_in_itself() {
    let (_place, mut exporter, mut importer) = pair();
    let ticket = exporter.ask("export hello 1 same");
    importer.ask(&format!("open {ticket}"));
    let said = importer.ask(&format!("fork current {ticket}"));
    assert!(said.starts_with("Forked"), "{said}");
    assert_eq!(importer.hear(), "child ended with 0");
    assert_eq!(importer.ask(&format!("fork exporter-alive {ticket}")), "false");
    assert_eq!(importer.hear(), "child ended with 0");
    assert_eq!(importer.ask(&format!("exporter-alive {ticket}")), "true");
    assert_eq!(importer.ask(&format!("fork close {ticket}")), "ok");
    assert_eq!(importer.hear(), "child ended with 0");
    assert_eq!(importer.ask(&format!("fork open {ticket}")), "remote hello 16 32");
    assert_eq!(importer.hear(), "child ended with 0");
    assert_eq!(exporter.ask("leased 1"), "true");
    assert_eq!(importer.ask(&format!("current {ticket}")), "current");
}
#[test]
fn a_child_keeps_no_socket_and_no_lock_of_its_parents() {
    let (_place, mut exporter, mut importer) = pair();
    let ticket = exporter.ask("export hello 1 same");
    importer.ask(&format!("open {ticket}"));
    let (parents, childs) = (exporter.ask("descriptors"), exporter.ask("fork descriptors"));
    exporter.hear();
    // Listener, lock, connection, epoll and nudge.
    assert_eq!(parents.parse::<u32>().unwrap() - childs.parse::<u32>().unwrap(), 5);
}
#[test]
fn an_exporter_is_gone_although_its_child_lives() {
    for way in ["fork-and-stay idle", "clone-and-stay"] {
        let (place, mut exporter, mut importer) = pair();
        let ticket = exporter.ask("export hello 1 same");
        importer.ask(&format!("open {ticket}"));
        exporter.tell(way);
        if way.starts_with("fork") {
            assert_eq!(exporter.hear(), "ok");
        }
        let _child = Stayer::of(&exporter.hear());
        exporter.kill();
        let killed = Instant::now();
        eventually("its death is known", || {
            importer.ask(&format!("open {ticket}")).starts_with("ExporterGone")
        });
        assert!(killed.elapsed() < SOON, "{:?}", killed.elapsed());
        importer.ask(&format!("close {ticket}"));
        if way.starts_with("fork") {
            assert!(importer.ask(&format!("open {ticket}")).starts_with("ExporterGone"));
            importer.ask("export next 1 same");
            assert_eq!(place.names().len(), 2, "the dead one's are swept: the child holds no lock");
        }
    }
}
#[test]
fn an_importers_leases_end_although_its_child_lives() {
    for way in ["fork-and-stay idle", "clone-and-stay"] {
        let (_place, mut exporter, mut importer) = pair();
        let ticket = exporter.ask("export hello 1 same");
        importer.ask(&format!("open {ticket}"));
        importer.tell(way);
        if way.starts_with("fork") {
            assert_eq!(importer.hear(), "ok");
        }
        let _child = Stayer::of(&importer.hear());
        assert_eq!(exporter.ask("leased 1"), "true");
        importer.kill();
        let killed = Instant::now();
        eventually("its lease ends", || exporter.ask("leased 1") == "false");
        assert!(killed.elapsed() < SOON, "{:?}", killed.elapsed());
    }
}
#[test]
fn an_exporter_that_runs_another_program_is_gone() {
    let (_place, mut exporter, mut importer) = pair();
    let ticket = exporter.ask("export hello 1 same");
    let unopened = exporter.ask("export hello 2 same");
    importer.ask(&format!("open {ticket}"));
    exporter.tell("exec");
    eventually("its end is known", || {
        importer.ask(&format!("current {ticket}")).starts_with("ExporterGone")
    });
    assert!(importer.ask(&format!("open {unopened}")).starts_with("ExporterGone"));
}
#[test]
fn whoever_waits_for_an_exporter_that_runs_another_program_is_told() {
    let (_place, mut exporter, mut importer) = pair();
    exporter.ask("slot e");
    let ticket = exporter.ask("export-slot e");
    importer.ask(&format!("open-event {ticket}"));
    exporter.ask("signal e");
    assert_eq!(importer.ask(&format!("wait {ticket} 15000")), "waiting");
    exporter.tell("exec");
    let left = Instant::now();
    assert_eq!(importer.hear(), "Failed");
    assert!(left.elapsed() < Duration::from_secs(5));
    assert!(importer.ask(&format!("open-event {ticket}")).starts_with("ExporterGone"));
}
/// After a bare `clone` the child keeps the parent's sockets, so that peers do not see the parent hang up.
#[test]
fn whoever_waits_for_a_dead_exporter_is_told_although_its_child_holds_the_connection() {
    for way in ["fork-and-stay idle", "clone-and-stay"] {
        let (_place, mut exporter, mut importer) = pair();
        exporter.ask("slot e");
        let ticket = exporter.ask("export-slot e");
        importer.ask(&format!("open-event {ticket}"));
        exporter.ask("signal e");
        assert_eq!(importer.ask(&format!("wait-aside {ticket}")), "waiting");
        exporter.tell(way);
        if way.starts_with("fork") {
            assert_eq!(exporter.hear(), "ok");
        }
        let _child = Stayer::of(&exporter.hear());
        exporter.kill();
        let killed = Instant::now();
        assert_eq!(importer.ask("waited"), "Failed");
        assert!(killed.elapsed() < SOON, "{way}: {:?}", killed.elapsed());
        assert!(importer.ask(&format!("open-event {ticket}")).starts_with("ExporterGone"));
    }
}
#[test]
fn an_importers_leases_end_when_it_runs_another_program() {
    let (_place, mut exporter, mut importer) = pair();
    let ticket = exporter.ask("export hello 1 same");
    importer.ask(&format!("open {ticket}"));
    assert_eq!(exporter.ask("leased 1"), "true");
    importer.tell("exec");
    eventually("its lease ends", || exporter.ask("leased 1") == "false");
}
#[test]
fn a_signal_owed_by_a_process_that_runs_another_program_fails() {
    let (_place, mut exporter, mut importer) = pair();
    exporter.ask("slot e");
    let ticket = exporter.ask("export-slot e");
    importer.ask(&format!("open-event {ticket}"));
    importer.ask(&format!("signal {ticket}"));
    assert_eq!(exporter.ask("wait e 15000"), "waiting");
    importer.tell("exec");
    let left = Instant::now();
    assert_eq!(exporter.hear(), "Failed");
    assert!(left.elapsed() < Duration::from_secs(5));
}
#[test]
fn what_fails_in_a_child_is_none_of_its_parents_signals() {
    let slot = arena::slot(Access::SameUser).unwrap();
    let counter = slot.arena().take_counter().unwrap();
    let value = counter.reserve();
    slot.publish(&counter, value);
    assert_eq!(forked(false, || counter.fail()), "child ended with 0");
    let Captured::PendingSignal(signal) = slot.capture().unwrap() else { panic!("not pending") };
    assert_eq!(signal.progress(), Progress::Pending);
    counter.complete(value);
    assert_eq!(signal.progress(), Progress::Complete);
}
