//! Users, namespaces and processes that deny tracing: where the kernel separates processes, and whether
//! handles work across.
use super::{
    SHARED, Shared,
    peer::{Peer, Place, STRANGER, has_program},
};
use crate::{
    bench::Bench,
    case::{Case, Stop, Verdict},
};
use std::{fs, os::unix::process::CommandExt as _};

pub fn cases() -> Vec<Case> {
    let mut all = Vec::new();
    for s in &SHARED {
        all.extend([
            s.case(s.open, "handles are for the same user", "another user's process is refused and learns nothing", other_user),
            s.case(s.open, "it works where ptrace is denied", "a user opens what a non-dumpable exporter shares, without CAP_SYS_PTRACE", not_dumpable),
            s.case(s.open, "it works where ptrace is denied", "a user opens where a filter denies pidfd_getfd", filtered),
            s.case(s.open, "it works where ptrace is denied", "a user opens where Yama restricts ptrace", yama),
            s.case(s.open, "it works where ptrace is denied", "a user without CAP_SYS_PTRACE opens what a non-dumpable exporter shares, where a filter denies pidfd_getfd", denied),
            s.case(s.open, "handles are for the same user", "another user is refused also by an exporter that is not dumpable, and where a filter denies pidfd_getfd", other_user_denied),
            s.case(s.open, "on the same host", "a process in a pid and a mount namespace of its own opens through a shared folder", namespaces),
            s.case(s.open, "on the same host", "what a process in a pid namespace shares is opened from outside", from_namespace),
            s.case(s.open, "a handle means one process's object", "an exporter that started again under its pid does not serve its predecessor's handle", same_pid),
        ]);
    }
    all
}
fn used(s: &Shared, exporter: &mut Peer, importer: &mut Peer, ticket: &str) -> Verdict {
    importer.must(&format!("open {} there {ticket}", s.kind))?;
    match s.has_bytes() {
        true => {
            exporter.must("set it 3")?;
            importer.must("is there 3")?;
        }
        false => {
            exporter.must("signal q it")?;
            importer.must("wait there")?;
        }
    }
    importer.must(&format!("close {} there", s.kind))?;
    Ok(())
}
fn other_user(b: &Bench, s: &Shared) -> Verdict {
    let place = Place::for_stranger(b)?;
    let (ours, theirs) = (place.folder("ours", 0)?, place.folder("theirs", STRANGER)?);
    let mut exporter = place.peer_by(&[], |command| {
        command.env("CAUSEWAY_DIR", &ours);
    })?;
    let ticket = exporter.shares(s.kind, "it")?;
    // If it looks in a folder of its own, it finds no exporter there, and no access is denied.
    for (folder, code) in [(&ours, denial(s)), (&theirs, "INVALID_VALUE")] {
        let mut importer = place.peer_by(&[], |command| {
            command.uid(STRANGER).gid(STRANGER).env("CAUSEWAY_DIR", folder);
        })?;
        importer.refused(&format!("open {} there {ticket}", s.kind), code)?;
    }
    exporter.must(&format!("cycle {} {ticket} 1", s.kind))?;
    Ok(())
}
/// The code for a process of another user: the kernel denies it the exporter's socket. Only for physical
/// memory does the specification have a code for that.
fn denial(s: &Shared) -> &'static str {
    match s.kind {
        "physical" => "INVALID_ARGUMENT",
        _ => "INVALID_VALUE",
    }
}
/// Starts two peers of a user without any capability.
fn of_user(place: &Place, name: &str) -> Verdict<(Peer, Peer)> {
    let folder = place.folder(name, STRANGER)?;
    let start = || {
        place.peer_by(&[], |command| {
            command.uid(STRANGER).gid(STRANGER).env("CAUSEWAY_DIR", &folder);
        })
    };
    Ok((start()?, start()?))
}
fn not_dumpable(b: &Bench, s: &Shared) -> Verdict {
    let place = Place::for_stranger(b)?;
    let (mut exporter, mut importer) = of_user(&place, "user")?;
    exporter.must("untraceable")?;
    let ticket = exporter.shares(s.kind, "it")?;
    used(s, &mut exporter, &mut importer, &ticket)
}
fn filtered(b: &Bench, s: &Shared) -> Verdict {
    let place = Place::new(b)?;
    let (mut exporter, mut importer) = (place.peer()?, place.peer()?);
    importer.must("no-getfd")?;
    let ticket = exporter.shares(s.kind, "it")?;
    used(s, &mut exporter, &mut importer, &ticket)
}
fn denied(b: &Bench, s: &Shared) -> Verdict {
    let place = Place::for_stranger(b)?;
    let (mut exporter, mut importer) = of_user(&place, "user")?;
    exporter.must("untraceable")?;
    importer.must("no-getfd")?;
    let ticket = exporter.shares(s.kind, "it")?;
    used(s, &mut exporter, &mut importer, &ticket)
}
fn other_user_denied(b: &Bench, s: &Shared) -> Verdict {
    let place = Place::for_stranger(b)?;
    let ours = place.folder("ours", 0)?;
    let mut exporter = place.peer_by(&[], |command| {
        command.env("CAUSEWAY_DIR", &ours);
    })?;
    exporter.must("untraceable")?;
    let ticket = exporter.shares(s.kind, "it")?;
    let mut importer = place.peer_by(&[], |command| {
        command.uid(STRANGER).gid(STRANGER).env("CAUSEWAY_DIR", &ours);
    })?;
    importer.must("no-getfd")?;
    importer.refused(&format!("open {} there {ticket}", s.kind), denial(s))?;
    exporter.must(&format!("cycle {} {ticket} 1", s.kind))?;
    Ok(())
}
fn yama(b: &Bench, s: &Shared) -> Verdict {
    let scope = fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope");
    let scope = scope.map_err(|_| Stop::skipped("this kernel has no Yama"))?;
    if scope.trim() == "0" {
        return Err(Stop::skipped("Yama allows what it would deny: ptrace_scope is 0"));
    }
    let place = Place::for_stranger(b)?;
    let (mut exporter, mut importer) = of_user(&place, "user")?;
    let ticket = exporter.shares(s.kind, "it")?;
    used(s, &mut exporter, &mut importer, &ticket)
}
/// The command that starts a process in namespaces of its own.
const UNSHARE: [&str; 5] = ["unshare", "--pid", "--mount", "--fork", "--kill-child"];

fn can_unshare() -> Verdict {
    has_program(UNSHARE[0])?;
    let mut command = std::process::Command::new(UNSHARE[0]);
    command.args(&UNSHARE[1..]).arg("true").stderr(std::process::Stdio::null());
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        _ => Err(Stop::skipped("namespaces are denied to this user")),
    }
}
fn namespaces(b: &Bench, s: &Shared) -> Verdict {
    can_unshare()?;
    let place = Place::new(b)?;
    let (mut exporter, mut importer) = (place.peer()?, place.peer_by(&UNSHARE, |_| {})?);
    importer.says("pid", "1")?;
    let ticket = exporter.shares(s.kind, "it")?;
    used(s, &mut exporter, &mut importer, &ticket)
}
fn from_namespace(b: &Bench, s: &Shared) -> Verdict {
    can_unshare()?;
    let place = Place::new(b)?;
    let (mut exporter, mut importer) = (place.peer_by(&UNSHARE, |_| {})?, place.peer()?);
    let ticket = exporter.shares(s.kind, "it")?;
    used(s, &mut exporter, &mut importer, &ticket)
}
fn same_pid(b: &Bench, s: &Shared) -> Verdict {
    can_unshare()?;
    let place = Place::new(b)?;
    let mut importer = place.peer()?;
    let mut first = place.peer_by(&UNSHARE, |_| {})?;
    first.says("pid", "1")?;
    let ticket = first.shares(s.kind, "it")?;
    importer.must(&format!("cycle {} {ticket} 1", s.kind))?;
    first.kill()?;
    let mut second = place.peer_by(&UNSHARE, |_| {})?;
    second.says("pid", "1")?;
    let fresh = second.shares(s.kind, "it")?;
    importer.refused(&format!("open {} there {ticket}", s.kind), "INVALID_VALUE")?;
    used(s, &mut second, &mut importer, &fresh)
}
