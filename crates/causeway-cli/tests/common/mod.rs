//! Runs the command as a user does and reads its output; directories and contents for tests.
#![allow(dead_code, reason = "each test program uses a part of it")]
use rustix::process::{Pid, Signal, kill_process};
use sha2::{Digest, Sha256};
use std::{
    fs,
    io::{BufRead, BufReader, Read},
    path::PathBuf,
    process::{Child, Command, ExitStatus, Output, Stdio},
    sync::{
        atomic::{AtomicU32, Ordering},
        mpsc,
    },
    thread,
    time::{Duration, Instant},
};

/// How long anything may take.
pub const PATIENCE: Duration = Duration::from_secs(60);

pub fn causeway(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_causeway"));
    command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs the command to its end.
pub fn run(args: &[&str]) -> Output {
    finish(causeway(args).spawn().unwrap())
}

pub fn finish(child: Child) -> Output {
    let (id, (done, waited)) = (child.id(), mpsc::channel());
    thread::spawn(move || done.send(child.wait_with_output().unwrap()));
    waited.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("process {id} does not end"))
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}
pub fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// Asserts that the command failed with a single sentence that contains `words`.
#[track_caller]
pub fn assert_says(output: &Output, words: &str) {
    let said = stderr(output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.starts_with("causeway: ") && said.lines().count() == 1, "{said}");
    assert!(said.contains(words), "{said}");
}

/// A directory of one test, which is removed on drop.
pub struct Directory(pub PathBuf);
impl Directory {
    pub fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let next = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("causeway-cli-{}-{next}", std::process::id()));
        fs::create_dir(&path).unwrap();
        Self(path)
    }
    pub fn file(&self, name: &str, contents: &[u8]) -> String {
        let path = self.0.join(name);
        fs::write(&path, contents).unwrap();
        path.to_str().unwrap().to_owned()
    }
    pub fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }
}
impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A `causeway share` that has printed its ticket. Killed on drop.
pub struct Sharer {
    pub child: Child,
    pub ticket: String,
}
impl Sharer {
    pub fn start(args: &[&str]) -> Self {
        Self::of(&mut causeway(&[&["share"], args].concat()))
    }
    pub fn of(command: &mut Command) -> Self {
        let mut child = command.spawn().unwrap();
        let (line, read) = mpsc::channel();
        let from = child.stdout.take().unwrap();
        thread::spawn(move || {
            let mut ticket = String::new();
            BufReader::new(from).read_line(&mut ticket).unwrap();
            let _ = line.send(ticket);
        });
        let ticket = read.recv_timeout(PATIENCE).unwrap().trim().to_owned();
        if ticket.is_empty() {
            let mut said = String::new();
            child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
            panic!("no ticket: {said}");
        }
        Self { child, ticket }
    }
    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }
    pub fn end(&mut self) -> ExitStatus {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(Instant::now() < deadline, "the sharer does not end");
            thread::yield_now();
        }
    }
}
impl Drop for Sharer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Bytes that do not repeat.
pub fn contents(length: usize) -> Vec<u8> {
    let words = (0_u64..).flat_map(|n| (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1).to_le_bytes());
    words.take(length).collect()
}
pub fn sha256(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}
