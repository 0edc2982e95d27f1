//! The files that `causeway open` writes and leaves behind, and the behaviour of commands under resource
//! limits and without permissions.
mod common;

use common::*;
use rustix::fs::{Mode, OFlags};
use std::{
    fs,
    io::Write,
    path::Path,
    process::{Command, Output, Stdio},
    thread,
    time::Duration,
};

#[test]
fn what_is_written_over_keeps_its_mode_its_names_and_the_links_to_it() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
    let directory = Directory::new();
    let bytes = contents(5000);
    let sharer = Sharer::start(&[&directory.file("in", &bytes)]);
    let open = |to: &str| {
        let output = run(&["open", &sharer.ticket, "-o", to]);
        assert!(output.status.success(), "{}", stderr(&output));
    };
    let target = directory.file("target", &[1; 9000]);
    fs::set_permissions(&target, fs::Permissions::from_mode(0o640)).unwrap();
    let (link, second) = (directory.path("link"), directory.path("second"));
    symlink("target", &link).unwrap();
    open(&link);
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert!(fs::read(&target).unwrap() == bytes, "the target is not written");
    assert_eq!(fs::metadata(&target).unwrap().mode() & 0o777, 0o640);

    fs::write(&target, [1; 9000]).unwrap();
    fs::hard_link(&target, &second).unwrap();
    open(&target);
    assert!(fs::read(&second).unwrap() == bytes, "the other name has other contents");
    assert_eq!(fs::metadata(&second).unwrap().nlink(), 2);

    symlink("later", directory.path("dangling")).unwrap();
    open(&directory.path("dangling"));
    assert!(fs::read(directory.path("later")).unwrap() == bytes, "the link's target is not made");
    let left: Vec<_> = fs::read_dir(&directory.0)
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.contains(".part"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn an_opener_that_is_killed_leaves_no_part_of_a_file() {
    let directory = Directory::new();
    if !knows_nameless_files(&directory.0) {
        println!("skipped: the file system of {} has no O_TMPFILE", directory.0.display());
        return;
    }
    let sharer = Sharer::start(&[&directory.file("in", &contents(128 << 20))]);
    let before = fs::read_dir(&directory.0).unwrap().count();
    let mut opener = causeway(&["open", &sharer.ticket, "-o", &directory.path("out")]);
    let mut opener = opener.stderr(Stdio::null()).spawn().unwrap();
    // Waits until it is writing.
    let writes = |pid: u32| {
        let open = fs::read_dir(format!("/proc/{pid}/fd")).unwrap().flatten();
        let mut led = open.filter_map(|fd| fs::read_link(fd.path()).ok());
        led.any(|to| to.starts_with(&directory.0))
    };
    while opener.try_wait().unwrap().is_none() && !writes(opener.id()) {
        thread::sleep(Duration::from_micros(200));
    }
    opener.kill().unwrap();
    let in_time = !opener.wait().unwrap().success();
    let after = fs::read_dir(&directory.0).unwrap().count();
    assert_eq!(after, before + usize::from(!in_time), "in time: {in_time}");
}
fn knows_nameless_files(folder: &Path) -> bool {
    let flags = OFlags::TMPFILE | OFlags::WRONLY;
    rustix::fs::open(folder, flags, Mode::from_raw_mode(0o600)).is_ok()
}

/// Runs a command under `ulimit -f`, in blocks of 1 KiB.
fn limited(blocks: u32, args: &[&str]) -> Output {
    let mut shell = Command::new("bash");
    shell.args(["-c", "ulimit -f $0 && exec \"$@\""]).arg(blocks.to_string());
    shell.arg(env!("CARGO_BIN_EXE_causeway")).args(args);
    shell.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    finish(shell.spawn().unwrap())
}

#[test]
fn the_limit_on_file_sizes_is_an_error_and_kills_nobody() {
    let directory = Directory::new();
    let file = directory.file("in", &contents(3 << 20));
    assert_says(&limited(1024, &["share", &file]), "ulimit -f");
    let sharer = Sharer::start(&[&file]);
    let output = limited(1024, &["open", &sharer.ticket, "-o", &directory.path("out")]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(!Path::new(&directory.path("out")).exists());
}

#[test]
fn a_stream_that_memory_has_no_room_for_is_refused_with_a_sentence() {
    let mut shell = Command::new("bash");
    shell.args(["-c", "ulimit -v 700000 && exec \"$0\" share - < /dev/zero"]);
    shell.arg(env!("CARGO_BIN_EXE_causeway"));
    shell.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    assert_says(&finish(shell.spawn().unwrap()), "of standard input: memory is short");
}

#[test]
fn nobody_cannot_share_and_is_told_why_before_a_ticket_is_made() {
    use std::os::unix::{fs::PermissionsExt, process::CommandExt};
    if !rustix::process::geteuid().is_root() {
        let _ = writeln!(std::io::stderr(), "skipped: only root becomes another user");
        return;
    }
    let directory = Directory::new();
    fs::set_permissions(&directory.0, fs::Permissions::from_mode(0o755)).unwrap();
    let file = directory.file("in", b"some bytes");
    let program = directory.path("causeway");
    fs::copy(env!("CARGO_BIN_EXE_causeway"), &program).unwrap();
    let mut command = Command::new(program);
    command.args(["share", &file]).env_remove("XDG_RUNTIME_DIR").uid(65534).gid(65534);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    assert_says(&finish(command.spawn().unwrap()), "user 65534 (nobody)");
}

#[test]
fn a_demo_that_memory_has_no_room_for_fails_with_a_sentence() {
    // The last limit is hit in the second process.
    for kibibytes in ["56000", "65000", "80000", "200000", "212000"] {
        let mut shell = Command::new("bash");
        let limited = "ulimit -v $1 && exec \"$0\" demo --mib 16 --hops 10";
        shell.args(["-c", limited, env!("CARGO_BIN_EXE_causeway"), kibibytes]);
        shell.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let output = finish(shell.spawn().unwrap());
        let said = stderr(&output);
        // A limit may suffice, because the use of address space varies; then the demo must succeed.
        match output.status.code() {
            Some(0) => assert_eq!(said, ""),
            code => assert!(code == Some(1) && said.lines().count() == 1, "{code:?} {said}"),
        }
    }
}
