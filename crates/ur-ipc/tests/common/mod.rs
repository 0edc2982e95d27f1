//! Peers for tests across processes: this same test binary, started again to execute commands, line by line.
#![allow(dead_code, reason = "each test binary uses its own part")]
mod objects;
mod stage;

use libtest_mimic::{Arguments, Completion, Trial};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use std::{
    collections::HashMap,
    fs::{self, File},
    io::{BufRead, BufReader, Write},
    os::{
        fd::{AsFd, OwnedFd},
        unix::{
            fs::{DirBuilderExt, FileExt},
            process::CommandExt,
        },
    },
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, ExitCode, Stdio},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, AtomicU64, Ordering::Relaxed},
        mpsc::{Receiver, channel},
    },
    thread,
    time::{Duration, Instant},
};
use ur_ipc::*;

pub use objects::*;
use stage::Stage;

/// Longer than any step takes, and short enough to wait for a hung test.
const PATIENCE: Duration = Duration::from_secs(20);
const ROLE: &str = "CAUSEWAY_TEST_ROLE";
pub const DEVICE: [u8; 16] = *b"a test's device!";

/// A socket directory for one test, removed when the test ends.
pub struct Place(pub PathBuf);
impl Place {
    pub fn new() -> Self {
        Self::with_mode(0o700)
    }
    pub fn with_mode(mode: u32) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("causeway-test-{}-{}", std::process::id(), NEXT.fetch_add(1, Relaxed));
        let path = std::env::temp_dir().join(name);
        fs::DirBuilder::new().mode(mode).create(&path).unwrap();
        Self(path)
    }
    pub fn names(&self) -> Vec<String> {
        let names = fs::read_dir(&self.0).unwrap();
        names.map(|e| e.unwrap().file_name().into_string().unwrap()).collect()
    }
    /// The only socket in it.
    pub fn socket(&self) -> PathBuf {
        let name = self.names().into_iter().find(|name| !name.ends_with(".lock"));
        self.0.join(name.expect("an exporter listens"))
    }
}
impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Waits for something to become true.
#[track_caller]
pub fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "never: {what}");
        thread::yield_now();
    }
}

/// Why a test cannot run here. It counts neither as passed nor as failed.
pub struct Skip(pub String);
pub type Verdict = Result<(), Skip>;
/// A test that fails by panicking, and that is reported as ignored, with the reason, if it is skipped.
pub fn trial(name: &str, test: fn() -> Verdict) -> Trial {
    Trial::ignorable_test(name, move || {
        Ok(match test() {
            Ok(()) => Completion::Completed,
            Err(Skip(reason)) => Completion::ignored_with(reason),
        })
    })
}
/// Runs the tests of a binary, or the role in which a test started it.
pub fn main(trials: impl FnOnce() -> Vec<Trial>) -> ExitCode {
    if std::env::var_os(ROLE).is_some() {
        role();
        return ExitCode::SUCCESS;
    }
    libtest_mimic::run(&Arguments::from_args(), trials()).exit_code()
}

/// Users who own nothing.
pub const STRANGER: u32 = 41_234;
pub const OTHER: u32 = 41_235;
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}
/// Whether processes of other users can be started.
pub fn may_be_others() -> Verdict {
    match is_root() {
        true => Ok(()),
        false => Err(Skip("only root can start processes of other users".into())),
    }
}
/// A copy of this program that other users can run.
pub fn program(place: &Place) -> PathBuf {
    let copy = place.0.join("program");
    if !copy.exists() {
        // Copied by another process: a child that another thread of this process forks meanwhile would hold the copy
        // open for writing, and starting it would fail because it is busy.
        let mut copies = Command::new("cp");
        copies.arg(std::env::current_exe().unwrap()).arg(&copy);
        assert!(copies.status().unwrap().success());
    }
    copy
}
/// A peer that runs as another user.
pub fn as_user(place: &Place, uid: u32) -> Peer {
    as_user_by(place, uid, &[])
}
/// Like [`as_user`], started by another program.
pub fn as_user_by(place: &Place, uid: u32, by: &[&str]) -> Peer {
    let program = program(place);
    Peer::start(&place.0, |command| {
        let mut other = started_by(by, &program);
        other.uid(uid).gid(uid).current_dir("/");
        *command = like(command, other);
    })
}
/// A command that runs `program` through others, as `sudo` does.
pub fn started_by(by: &[&str], program: &Path) -> Command {
    match by {
        [] => Command::new(program),
        [first, rest @ ..] => {
            let mut command = Command::new(first);
            command.args(rest).arg(program);
            command
        }
    }
}
/// `other`, with the role of `command`.
pub fn like(command: &Command, mut other: Command) -> Command {
    other.args(["role", "--exact", "--nocapture"]);
    other.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    other.stdin(Stdio::piped()).stdout(Stdio::piped());
    other
}
/// Whether a command can run here and succeeds.
pub fn can(words: &[&str]) -> Verdict {
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => Err(Skip(format!("the system does not permit `{}`", words.join(" ")))),
        Err(e) => Err(Skip(format!("{} cannot be run: {e}", words[0]))),
    }
}

/// A process that executes commands.
pub struct Peer {
    pub child: Child,
    input: ChildStdin,
    answers: Receiver<String>,
}
impl Peer {
    pub fn at(place: &Path) -> Self {
        Self::start(place, |_| {})
    }
    /// A peer that another program starts.
    pub fn started_by(place: &Path, by: &[&str]) -> Self {
        let program = std::env::current_exe().unwrap();
        Self::start(place, |command| *command = like(command, started_by(by, &program)))
    }
    pub fn start(place: &Path, prepare: impl FnOnce(&mut Command)) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["role", "--exact", "--nocapture"]).env(ROLE, "peer");
        command.env("CAUSEWAY_DIR", place).stdin(Stdio::piped()).stdout(Stdio::piped());
        prepare(&mut command);
        let mut child = command.spawn().unwrap();
        let (said, answers) = channel();
        let output = BufReader::new(child.stdout.take().unwrap());
        thread::spawn(move || {
            // Lines of the test harness do not begin with this mark.
            for line in output.lines().map_while(Result::ok) {
                if let Some(answer) = line.split_once("@@").map(|(_, answer)| answer.to_owned())
                    && said.send(answer).is_err()
                {
                    return;
                }
            }
        });
        let input = child.stdin.take().unwrap();
        Self { child, input, answers }
    }
    pub fn tell(&mut self, line: &str) {
        writeln!(self.input, "{line}").unwrap();
    }
    #[track_caller]
    pub fn hear(&mut self) -> String {
        self.answers.recv_timeout(PATIENCE).expect("the peer answers")
    }
    #[track_caller]
    pub fn ask(&mut self, line: &str) -> String {
        self.tell(line);
        self.hear()
    }
    pub fn pid(&self) -> u32 {
        self.child.id()
    }
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
    /// Has it exit by itself, with everything that it holds, and without telling its peers.
    pub fn exits(&mut self) -> std::process::ExitStatus {
        self.tell("exit");
        let mut ended = None;
        eventually("it ends", || {
            ended = self.child.try_wait().unwrap();
            ended.is_some()
        });
        ended.unwrap()
    }
    /// Has it take counters in the arena of that event until it has `most` or gets no more; returns how many, and the
    /// last error.
    pub fn take_counters(&mut self, ticket: &str, most: usize) -> (usize, String) {
        let answer = self.ask(&format!("take-counters {ticket} {most}"));
        let (taken, refusal) = answer.split_once(' ').unwrap();
        (taken.parse().unwrap(), refusal.to_owned())
    }
    /// Kills it without reaping: a zombie counts as dead.
    pub fn kill_unreaped(&mut self) {
        self.child.kill().unwrap();
    }
    pub fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_raw(self.child.id().cast_signed()).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
        if signal == rustix::process::Signal::STOP {
            self.await_stop();
        }
    }
    #[track_caller]
    pub fn await_stop(&self) {
        eventually("it is stopped, all of it", || self.is_stopped());
    }
    fn is_stopped(&self) -> bool {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.pid())).unwrap().flatten();
        let mut stats = tasks.map(|task| fs::read_to_string(task.path().join("stat")).unwrap());
        stats.all(|stat| stat.rsplit_once(") ").unwrap().1.starts_with('T'))
    }
}
impl Drop for Peer {
    fn drop(&mut self) {
        let _ = (self.child.kill(), self.child.wait());
    }
}

/// To be called by a test named `role` in every test binary.
pub fn role() {
    if std::env::var_os(ROLE).is_some() {
        Stage::default().play();
    }
}

/// For test binaries that do not fork.
pub fn no_fork(_stay: bool, _then: impl FnOnce()) -> String {
    unreachable!("another test's")
}
pub fn no_clone() -> String {
    unreachable!("another test's")
}
