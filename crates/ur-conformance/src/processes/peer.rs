//! Peers: this program run again, which executes commands line by line. Only handle bytes and commands go
//! through their pipes. A peer that does not answer in time is a failure.
use crate::{
    bench::Bench,
    case::{Stop, Verdict},
    ensure, same,
    worker::MARK,
};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open},
};
use std::{
    fs::{self, DirBuilder},
    io::{BufRead as _, BufReader, Write as _},
    os::unix::fs::{DirBuilderExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, Stdio},
    sync::{
        atomic::{AtomicU32, Ordering::Relaxed},
        mpsc::{Receiver, RecvTimeoutError, channel},
    },
    thread,
    time::{Duration, Instant},
};

/// Longer than any step takes, and shorter than the deadline of a case.
pub const PATIENCE: Duration = Duration::from_secs(20);
/// The id of a user that owns nothing.
pub const STRANGER: u32 = 65_533;

/// A folder of one case for the adapters' sockets, which is removed at the end of the case.
pub struct Place {
    pub path: PathBuf,
    subject: crate::bench::Subject,
    program: PathBuf,
}
fn io(e: std::io::Error) -> Stop {
    Stop::failed(e.to_string())
}
impl Place {
    pub fn new(bench: &Bench) -> Verdict<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let path = loop {
            let (pid, number) = (std::process::id(), NEXT.fetch_add(1, Relaxed));
            let path = std::env::temp_dir().join(format!("ur-conformance-{pid}-{number}"));
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => break path,
                // Left by a process with the same id that was killed.
                Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(e) => return Err(io(e)),
            }
        };
        let program = std::env::current_exe().map_err(io)?;
        Ok(Self { path, subject: bench.subject.clone(), program })
    }
    /// Prepares copies of the program and the adapter for the user `STRANGER`, who may have no access to the
    /// originals.
    pub fn for_stranger(bench: &Bench) -> Verdict<Self> {
        if !rustix::process::geteuid().is_root() {
            return Err(Stop::skipped("only root can start processes of other users"));
        }
        let mut place = Self::new(bench)?;
        let (program, adapter) = (place.path.join("program"), place.path.join("adapter.so"));
        fs::copy(&place.program, &program).map_err(io)?;
        fs::copy(&place.subject.adapter, &adapter).map_err(io)?;
        (place.program, place.subject.adapter) = (program, adapter);
        fs::set_permissions(&place.path, fs::Permissions::from_mode(0o755)).map_err(io)?;
        Ok(place)
    }
    /// Creates a folder in it that belongs to `owner`.
    pub fn folder(&self, name: &str, owner: u32) -> Verdict<PathBuf> {
        let path = self.path.join(name);
        DirBuilder::new().mode(0o700).create(&path).map_err(io)?;
        std::os::unix::fs::chown(&path, Some(owner), Some(owner)).map_err(io)?;
        Ok(path)
    }
    /// Whether it contains no socket.
    pub fn is_quiet(&self) -> bool {
        fs::read_dir(&self.path).is_ok_and(|mut entries| entries.next().is_none())
    }
    pub fn peer(&self) -> Verdict<Peer> {
        self.peer_by(&[], |_| {})
    }
    /// Starts a peer whose sockets are in the same directory as this process's.
    pub fn neighbour(&self) -> Verdict<Peer> {
        self.peer_by(&[], |command| {
            match std::env::var_os("CAUSEWAY_DIR") {
                Some(dir) => command.env("CAUSEWAY_DIR", dir),
                None => command.env_remove("CAUSEWAY_DIR"),
            };
        })
    }
    /// Starts a peer through another program, or with a prepared command.
    pub fn peer_by(&self, by: &[&str], prepare: impl FnOnce(&mut Command)) -> Verdict<Peer> {
        let mut command = match by {
            [] => Command::new(&self.program),
            [first, rest @ ..] => {
                let mut command = Command::new(first);
                command.args(rest).arg(&self.program);
                command
            }
        };
        command.arg("--adapter").arg(&self.subject.adapter);
        command.arg("--through").arg(self.subject.entry_path.to_string());
        command.arg("--device").arg(self.subject.device.to_string()).args(["--role", "peer"]);
        command.args(self.subject.keep.then_some("--keep"));
        command.env("CAUSEWAY_DIR", &self.path).stdin(Stdio::piped()).stdout(Stdio::piped());
        prepare(&mut command);
        Peer::start(&mut command)
    }
    /// Starts an exporter and an importer; the exporter shares an object of the kind under the name `it`,
    /// whose ticket is returned.
    pub fn shared(bench: &Bench, kind: &str) -> Verdict<(Self, Peer, Peer, String)> {
        let place = Self::new(bench)?;
        let (mut exporter, importer) = (place.peer()?, place.peer()?);
        let ticket = exporter.shares(kind, "it")?;
        Ok((place, exporter, importer, ticket))
    }
}
impl Drop for Place {
    fn drop(&mut self) {
        let _left_for_the_system = fs::remove_dir_all(&self.path);
    }
}

/// Processor time in ticks of 10 ms after which a call is considered to wait by spinning.
const SPINS: u64 = 20;
/// The state of a thread.
struct Thread {
    sleeps: bool,
    /// The processor time that it used, in user and kernel mode.
    ticks: u64,
}
/// The end of a killed process.
#[derive(Clone, Copy)]
pub struct Death {
    /// When the kernel reported it to the parent, which is when it reports it to every watcher.
    pub told: Instant,
    /// How long after the kill that was: milliseconds, or more than a second where a driver cleans up.
    pub took: Duration,
}
/// A process that executes commands.
pub struct Peer {
    child: Child,
    input: Option<ChildStdin>,
    answers: Receiver<String>,
}
impl Peer {
    fn start(command: &mut Command) -> Verdict<Self> {
        let mut child = command.spawn().map_err(|e| Stop::failed(format!("no peer: {e}")))?;
        let (said, answers) = channel();
        let output = child.stdout.take().ok_or_else(|| Stop::failed("no pipe"))?;
        thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if let Some((_, answer)) = line.split_once(MARK)
                    && said.send(answer.to_owned()).is_err()
                {
                    return;
                }
            }
        });
        let input = child.stdin.take();
        Ok(Self { child, input, answers })
    }
    /// Makes and shares an object of a kind under a name; returns the ticket.
    pub fn shares(&mut self, kind: &str, name: &str) -> Verdict<String> {
        self.must(&format!("make {kind} {name}"))?;
        self.must(&format!("get {kind} {name}"))
    }
    /// Sends a command; if the peer is dead this has no effect.
    pub fn tell(&mut self, line: &str) {
        if let Some(input) = &mut self.input {
            let _dead = input.write_all(format!("{line}\n").as_bytes());
        }
    }
    pub fn hear(&mut self, within: Duration) -> Verdict<String> {
        match self.answers.recv_timeout(within) {
            Ok(answer) => Ok(answer),
            Err(RecvTimeoutError::Timeout) => {
                Err(Stop::failed(format!("a peer does not answer within {within:?}")))
            }
            Err(RecvTimeoutError::Disconnected) => {
                Err(Stop::failed(format!("a peer has ended: {:?}", self.child.try_wait())))
            }
        }
    }
    pub fn ask(&mut self, line: &str) -> Verdict<String> {
        self.tell(line);
        self.hear(PATIENCE)
    }
    fn settled(line: &str, answer: String) -> Verdict<String> {
        let shown: String = line.chars().take(40).collect();
        match answer.split_at_checked(1) {
            Some(("?", why)) => Err(Stop::skipped(why)),
            Some(("#" | "!", why)) => Err(Stop::failed(format!("{shown}: {why}"))),
            _ => Ok(answer),
        }
    }
    /// Sends a command that must succeed; returns the answer.
    pub fn must(&mut self, line: &str) -> Verdict<String> {
        let answer = self.ask(line)?;
        Self::settled(line, answer)
    }
    /// As `must`, for a command that takes long.
    pub fn must_slowly(&mut self, line: &str) -> Verdict<String> {
        self.tell(line);
        let answer = self.hear(PATIENCE * 8)?;
        Self::settled(line, answer)
    }
    /// Sends a command that must be refused with a code; returns the message.
    pub fn refused(&mut self, line: &str, code: &str) -> Verdict<String> {
        let answer = self.ask(line)?;
        let shown: String = line.chars().take(40).collect();
        let Some(rest) = answer.strip_prefix('!') else {
            Self::settled(line, answer)?;
            return Err(Stop::failed(format!("{shown}: not refused")));
        };
        let (got, sentence) = rest.split_once(' ').unwrap_or((rest, ""));
        same!(got, format!("UR_RESULT_ERROR_{code}"), "{shown} ({sentence})");
        Ok(sentence.to_owned())
    }
    pub fn says(&mut self, line: &str, expected: &str) -> Verdict {
        same!(self.must(line)?, expected, "{line}");
        Ok(())
    }
    pub fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }
    /// Starts a command that will block, and waits until the peer's first thread sleeps in the kernel, or has
    /// spun for longer than any call that does not block, because some drivers wait by spinning.
    pub fn begin(&mut self, line: &str) -> Verdict {
        self.says(&format!("begin {line}"), "begun")?;
        let first = self.first_thread()?;
        eventually("it sleeps or turns on the spot", || {
            let now = self.first_thread();
            now.is_ok_and(|now| now.sleeps || now.ticks >= first.ticks + SPINS)
        })
    }
    fn first_thread(&self) -> Verdict<Thread> {
        let pid = self.child.id();
        let stat = fs::read_to_string(format!("/proc/{pid}/task/{pid}/stat")).map_err(io)?;
        // After the name, which may contain any character, come the state and numbers.
        let fields: Vec<&str> =
            stat.rsplit_once(") ").map_or("", |(_, rest)| rest).split(' ').collect();
        let number = |at: usize| fields.get(at).and_then(|word| word.parse::<u64>().ok());
        let (Some(user), Some(system)) = (number(11), number(12)) else {
            return Err(Stop::failed(format!("/proc/{pid} has no times: {stat}")));
        };
        Ok(Thread { sleeps: fields.first() == Some(&"S"), ticks: user + system })
    }
    /// Kills the process and waits until the kernel reports its death, which is after the cleanup of its
    /// drivers.
    pub fn kill(&mut self) -> Verdict<Death> {
        let killed = Instant::now();
        self.child.kill().map_err(io)?;
        self.child.wait().map_err(io)?;
        Ok(Death { told: Instant::now(), took: killed.elapsed() })
    }
    /// Sends SIGSTOP and waits until all threads are stopped.
    pub fn stop(&mut self) -> Verdict {
        self.send(Signal::STOP)?;
        eventually("all of its threads are stopped", || self.is_stopped())
    }
    /// Continues it after a stop.
    pub fn go_on(&mut self) -> Verdict {
        self.send(Signal::CONT)
    }
    fn send(&self, signal: Signal) -> Verdict {
        kill_process(self.pid(), signal).map_err(|e| Stop::failed(format!("{signal:?}: {e}")))
    }
    fn is_stopped(&self) -> bool {
        let Ok(threads) = fs::read_dir(format!("/proc/{}/task", self.child.id())) else {
            return false;
        };
        // The state follows the name.
        let is_stopped =
            |stat: String| stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T'));
        threads
            .flatten()
            .all(|thread| fs::read_to_string(thread.path().join("stat")).is_ok_and(is_stopped))
    }
    /// Closes the peer's input and waits until it exits with success.
    pub fn ends(&mut self) -> Verdict {
        self.input = None;
        let pidfd =
            pidfd_open(self.pid(), PidfdFlags::empty()).map_err(|e| Stop::failed(e.to_string()))?;
        let within = Timespec { tv_sec: PATIENCE.as_secs() as i64, tv_nsec: 0 };
        let ended = poll(&mut [PollFd::new(&pidfd, PollFlags::IN)], Some(&within));
        ensure!(ended == Ok(1), "a peer does not end");
        let status = self.child.wait().map_err(io)?;
        ensure!(status.success(), "a peer ended with {status}");
        Ok(())
    }
}
impl Drop for Peer {
    fn drop(&mut self) {
        let _gone = (self.child.kill(), self.child.wait());
    }
}
/// Waits until a condition is true.
pub fn eventually(what: &str, mut is_so: impl FnMut() -> bool) -> Verdict {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        ensure!(Instant::now() < deadline, "never: {what}");
        thread::yield_now();
    }
    Ok(())
}
/// Kills a process that this process did not start.
pub fn kill(pid: &str) {
    if let Some(pid) = pid.parse().ok().and_then(Pid::from_raw) {
        let _gone = kill_process(pid, Signal::KILL);
    }
}
/// Skips the case unless a program is installed.
pub fn has_program(name: &str) -> Verdict {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_there = std::env::split_paths(&path).any(|dir| Path::new(&dir).join(name).is_file());
    if is_there { Ok(()) } else { Err(Stop::skipped(format!("{name} is not installed"))) }
}
/// Pseudo-random numbers that are the same in every run.
pub struct Dice(pub u64);
impl Dice {
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        ((mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb) >> 11) % limit
    }
}
