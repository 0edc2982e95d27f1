//! The C examples, compiled by a C compiler against the headers and the shared object, as two
//! processes; and the same under Valgrind's eyes.
mod common;
use common::{Dist, root};
use std::{
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

fn compile(dist: &Dist, name: &str) -> PathBuf {
    let program = dist.0.join(name);
    let mut cc = Command::new("cc");
    cc.args(["-std=c99", "-g", "-Wall", "-Wextra", "-Werror", "-pedantic"]);
    cc.arg("-I").arg(dist.0.join("include"));
    cc.arg(root().join(format!("examples/c/{name}.c"))).arg("-o").arg(&program).arg(dist.object());
    cc.arg(format!("-Wl,-rpath,{}", dist.0.display()));
    let out = cc.output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    program
}
/// Starts a program in front of which `before` stands, with the two pipes.
fn start(before: &[&str], program: &Path, pipes: &[PathBuf; 2]) -> Child {
    // Nothing here is to take long; a hang is a failure and not a blocked test.
    let mut command = Command::new("timeout");
    command.arg("120").args(before).arg(program).args(pipes);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}
fn end(child: Child, expected: &str) {
    let out = child.wait_with_output().unwrap();
    let (said, errors) =
        (String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    assert!(out.status.success(), "{}: {said}{errors}", out.status);
    assert_eq!(said, expected);
}
fn run_both(dist: &Dist, before: &[&str]) {
    let programs = ["producer", "consumer"].map(|name| compile(dist, name));
    let pipes = ["there", "back"].map(|name| dist.0.join(name));
    assert!(Command::new("mkfifo").args(&pipes).status().unwrap().success());
    let [producer, consumer] = programs.map(|program| start(before, &program, &pipes));
    end(consumer, "consumer: saw the producer's data in both memories\n");
    end(producer, "producer: both memories hold the consumer's answer\n");
}

#[test]
fn two_c_programs_share_both_kinds_of_memory_and_signal_each_other() {
    run_both(&Dist::build("c"), &[]);
}

#[test]
fn the_same_programs_leak_nothing_and_read_nothing_wrong() {
    if Command::new("valgrind").arg("--version").output().is_err() {
        println!("skipped: valgrind is not installed");
        return;
    }
    run_both(
        &Dist::build("c-valgrind"),
        &["valgrind", "--quiet", "--error-exitcode=9", "--leak-check=full"],
    );
}
