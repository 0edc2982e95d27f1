//! The C examples, compiled by a C compiler against the headers and the loader, as two
//! processes; and the same under Valgrind's eyes.
mod common;
use common::{Dist, root};
use std::io::Write as _;
use std::{
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

fn compile(dist: &Dist, name: &str) -> PathBuf {
    let program = dist.0.join(name);
    let mut cc = Command::new("cc");
    cc.args(["-std=c99", "-g", "-Wall", "-Wextra", "-Werror", "-pedantic"]);
    cc.arg("-I").arg(dist.0.join("include"));
    cc.arg(root().join(format!("examples/c/{name}.c"))).arg("-o").arg(&program);
    cc.arg("-L").arg(&dist.0).arg("-lur_loader");
    cc.arg(format!("-Wl,-rpath,{}", dist.0.display()));
    let out = cc.output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    program
}
/// Starts a program in front of which `before` stands, with the two pipes.
fn start(dist: &Dist, before: &[&str], program: &Path, pipes: &[PathBuf; 2]) -> Child {
    // Nothing here is to take long; a hang is a failure and not a blocked test.
    let mut command = Command::new("timeout");
    command.arg("120").args(before).arg(program).args(pipes);
    command.env("UR_ADAPTERS_SEARCH_PATH", dist.adapter());
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}
/// Whether a program ended well, what it said, and its complaints.
fn end(child: Child) -> (bool, String, String) {
    let out = child.wait_with_output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (out.status.success(), text(&out.stdout), text(&out.stderr))
}
fn run_both(dist: &Dist, before: &[&str]) {
    let programs = ["producer", "consumer"].map(|name| compile(dist, name));
    let pipes = ["there", "back"].map(|name| dist.0.join(name));
    assert!(Command::new("mkfifo").args(&pipes).status().unwrap().success());
    let [producer, consumer] = programs.map(|program| start(dist, before, &program, &pipes));
    // Both have ended before anything is said of either: one's failure is often the other's.
    let ended = [end(producer), end(consumer)];
    let expected = [
        "producer: both memories hold the consumer's answer\n",
        "consumer: saw the producer's data in both memories\n",
    ];
    let complaints = format!("producer:\n{}\nconsumer:\n{}", ended[0].2, ended[1].2);
    for ((well, said, _), expected) in ended.iter().zip(expected) {
        assert!(*well && said == expected, "{said}\n{complaints}");
    }
}

#[test]
fn two_c_programs_share_both_kinds_of_memory_and_signal_each_other() {
    run_both(&Dist::build("c"), &[]);
}

#[test]
fn the_same_programs_leak_nothing_and_read_nothing_wrong() {
    if Command::new("valgrind").arg("--version").output().is_err() {
        // Past the capture of the harness: nobody must take this for a pass.
        let _ = writeln!(std::io::stderr(), "skipped: valgrind is not installed");
        return;
    }
    // Not those "possibly" lost: tables that live as long as the process have pointers into their middle.
    let valgrind = [
        "valgrind",
        "--quiet",
        "--error-exitcode=9",
        "--leak-check=full",
        "--show-leak-kinds=definite",
        "--errors-for-leak-kinds=definite",
    ];
    run_both(&Dist::build("c-valgrind"), &valgrind);
}
