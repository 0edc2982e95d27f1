//! Peers for tests across processes: this same test binary, started again to do what it is told, line by line.
//! Handle bytes travel through their pipes, and nothing else does. The peers call the adapter as C programs do.
#![allow(dead_code, unused_macros, reason = "each test binary uses its own part")]
pub mod call;
pub mod code;
pub mod commands;
pub mod lanes;
pub mod mems;
pub mod scene;
pub mod stage;
pub mod ur;
pub mod ur_share;

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open},
};
use std::{
    fs::{self, DirBuilder},
    io::{BufRead, BufReader, ErrorKind, Write},
    os::unix::{fs::DirBuilderExt, process::ExitStatusExt},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, Stdio},
    sync::{
        atomic::{AtomicU32, Ordering::Relaxed},
        mpsc::{Receiver, RecvTimeoutError, channel},
    },
    thread,
    time::{Duration, Instant},
};

/// Longer than anything here takes, and no longer than one waits for a hung test.
pub const PATIENCE: Duration = Duration::from_secs(30);
const ROLE: &str = "CAUSEWAY_TEST_ROLE";
const ALONE: &str = "CAUSEWAY_TEST_ALONE";

/// To be called by a test named `role` in every test binary.
pub fn role() {
    if std::env::var_os(ROLE).is_some() {
        stage::Stage::new().play();
    }
}

/// A socket directory of the test's own, removed when it ends.
pub struct Place(pub PathBuf);
impl Place {
    pub fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("causeway-abi-{}-{}", std::process::id(), NEXT.fetch_add(1, Relaxed));
        let path = std::env::temp_dir().join(name);
        DirBuilder::new().mode(0o700).create(&path).unwrap();
        Self(path)
    }
    pub fn peer(&self) -> Peer {
        Peer::start(&self.0, |_| {})
    }
    pub fn peer_with(&self, name: &str, value: &str) -> Peer {
        Peer::start(&self.0, |command| {
            command.env(name, value);
        })
    }
    pub fn pair() -> (Self, Peer, Peer) {
        let place = Self::new();
        let (exporter, importer) = (place.peer(), place.peer());
        (place, exporter, importer)
    }
    /// What lies in it.
    pub fn names(&self) -> Vec<String> {
        let names = fs::read_dir(&self.0).unwrap();
        names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
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

/// Runs the body of a test in a process of its own, with a socket directory of its own: nothing disturbs it.
#[track_caller]
pub fn alone<F: FnOnce()>(body: F) {
    alone_within(PATIENCE, body);
}
/// As `alone`, for what takes its time.
#[track_caller]
pub fn alone_within<F: FnOnce()>(patience: Duration, body: F) {
    if let Some(done) = std::env::var_os(ALONE) {
        body();
        return fs::write(done, "").unwrap();
    }
    // The closure's name is the test's, whatever its thread is called.
    let name = std::any::type_name::<F>().trim_end_matches("::{{closure}}");
    let (_, test) = name.split_once("::").unwrap();
    let place = Place::new();
    let done = place.0.join("done");
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([test, "--exact", "--nocapture"]).env(ALONE, &done);
    command.env("CAUSEWAY_DIR", &place.0).stdout(Stdio::null());
    let mut child = command.spawn().unwrap();
    if !ends(&child, patience) {
        let _ = (child.kill(), child.wait());
        panic!("it hung");
    }
    assert!(child.wait().unwrap().success());
    assert!(done.exists(), "{test} ran to its end");
}
/// Whether a child ends in time; it is not reaped.
fn ends(child: &Child, within: Duration) -> bool {
    let pidfd = pidfd_open(pid(child), PidfdFlags::empty()).unwrap();
    let within = Timespec::try_from(within).unwrap();
    poll(&mut [PollFd::new(&pidfd, PollFlags::IN)], Some(&within)).unwrap() == 1
}
fn pid(child: &Child) -> Pid {
    Pid::from_raw(child.id().cast_signed()).unwrap()
}

/// A process that does what it is told.
pub struct Peer {
    child: Child,
    input: Option<ChildStdin>,
    answers: Receiver<String>,
}
impl Peer {
    pub fn start(place: &Path, prepare: impl FnOnce(&mut Command)) -> Self {
        Self::of(&std::env::current_exe().unwrap(), place, prepare)
    }
    /// The test binary may lie where another user cannot go: `binary` is it, or a copy of it.
    pub fn of(binary: &Path, place: &Path, prepare: impl FnOnce(&mut Command)) -> Self {
        let mut command = Command::new(binary);
        command.args(["role", "--exact", "--nocapture"]).env(ROLE, "peer");
        command.env_remove("RUST_TEST_THREADS"); // the thread that does it is named after the test
        command.env("CAUSEWAY_DIR", place).stdin(Stdio::piped()).stdout(Stdio::piped());
        prepare(&mut command);
        // A fresh copy is busy for as long as a child that another test forked while it was written
        // has not come to its exec.
        let mut child = None;
        eventually("the peer starts", || match command.spawn() {
            Err(error) if error.kind() == ErrorKind::ExecutableFileBusy => false,
            started => child.replace(started.unwrap()).is_none(),
        });
        let mut child = child.unwrap();
        let (said, answers) = channel();
        let output = BufReader::new(child.stdout.take().unwrap());
        thread::spawn(move || {
            // What the test harness prints of its own does not begin so.
            for line in output.lines().map_while(Result::ok) {
                if let Some((_, answer)) = line.split_once("@@")
                    && said.send(answer.to_owned()).is_err()
                {
                    return;
                }
            }
        });
        let input = child.stdin.take();
        Self { child, input, answers }
    }
}
impl Peer {
    /// Whoever is dead already hears nothing.
    pub fn tell(&mut self, line: &str) {
        let input = self.input.as_mut().expect("nobody said goodbye");
        let _ = input.write_all(format!("{line}\n").as_bytes());
    }
    /// An answer that comes in time.
    pub fn heard(&mut self, within: Duration) -> Option<String> {
        match self.answers.recv_timeout(within) {
            Ok(answer) => Some(answer),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => panic!("the peer is gone"),
        }
    }
    #[track_caller]
    pub fn hear(&mut self) -> String {
        self.answers.recv_timeout(PATIENCE).expect("the peer answers")
    }
    /// As `ask`, for who wants to say what came before: why there is no answer.
    pub fn answer(&mut self, line: &str) -> Result<String, &'static str> {
        self.tell(line);
        self.answers.recv_timeout(PATIENCE).map_err(|why| match why {
            RecvTimeoutError::Timeout => "it hangs",
            RecvTimeoutError::Disconnected => "it died",
        })
    }
    #[track_caller]
    pub fn ask(&mut self, line: &str) -> String {
        self.tell(line);
        self.hear()
    }
    /// For what must succeed: its answer.
    #[track_caller]
    pub fn must(&mut self, line: &str) -> String {
        let answer = self.ask(line);
        assert!(!answer.starts_with('!'), "{} {answer}", line.split(' ').next().unwrap());
        answer
    }
    /// For what must be refused with a code: the sentence.
    #[track_caller]
    pub fn refused(&mut self, line: &str, code: &str) -> String {
        let answer = self.ask(line);
        let shown: String = line.chars().take(60).collect();
        let rest = answer.strip_prefix('!').unwrap_or_else(|| panic!("not refused: {shown}"));
        let (got, sentence) = rest.split_once(' ').unwrap_or((rest, ""));
        assert_eq!(got, format!("UR_RESULT_ERROR_{code}"), "{shown}: {sentence}");
        assert!(sentence.len() > 10, "{shown} is refused without a reason: {answer}");
        sentence.to_owned()
    }
    pub fn number(&mut self, line: &str) -> usize {
        self.must(line).parse().unwrap()
    }
    pub fn pid(&self) -> u32 {
        self.child.id()
    }
    /// Has it begin what will block, and waits until it sleeps in the kernel.
    #[track_caller]
    pub fn begin(&mut self, line: &str) {
        assert_eq!(self.ask(&format!("begin {line}")), "begun");
        let tasks = format!("/proc/{}/task", self.pid());
        eventually("it sleeps", || {
            fs::read_dir(&tasks).unwrap().flatten().any(|task| {
                let stat = fs::read_to_string(task.path().join("stat")).unwrap_or_default();
                stat.contains("(role) S")
            })
        });
    }
    /// Stops all its threads, or has them go on.
    pub fn stop(&self, is_stopped: bool) {
        let signal = if is_stopped { Signal::STOP } else { Signal::CONT };
        kill_process(pid(&self.child), signal).unwrap();
    }
    /// SIGKILL, without reaping: a zombie is as dead.
    pub fn kill_unreaped(&mut self) {
        self.child.kill().unwrap();
    }
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
    /// Waits until it has died of SIGKILL, its own or anybody's.
    #[track_caller]
    pub fn dies(&mut self) {
        assert!(ends(&self.child, PATIENCE), "it should have died");
        assert_eq!(self.child.wait().unwrap().signal(), Some(9));
    }
    /// Closes its input and waits until it has ended well.
    #[track_caller]
    pub fn ends(&mut self) {
        self.input = None;
        assert!(ends(&self.child, PATIENCE), "it should have ended");
        assert!(self.child.wait().unwrap().success());
    }
}
impl Drop for Peer {
    fn drop(&mut self) {
        let _ = (self.child.kill(), self.child.wait());
    }
}
/// Kills a process that is nobody's `Child` here.
pub fn kill(pid: &str) {
    let _ = kill_process(Pid::from_raw(pid.parse().unwrap()).unwrap(), Signal::KILL);
}

/// Open descriptors of this process.
pub fn descriptors() -> usize {
    fs::read_dir("/proc/self/fd").unwrap().count() - 1 // the one that reads it
}
/// Mappings of memfds in this process.
pub fn memfds() -> usize {
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    maps.lines().filter(|line| line.contains("/memfd:")).count()
}
/// A generator of numbers that look random and are the same in every run.
pub struct Dice(u64);
impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        ((mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb) >> 11) % limit
    }
}
