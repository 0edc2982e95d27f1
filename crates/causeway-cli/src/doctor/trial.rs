//! Tries one adapter in a process of its own. The child announces each step before it begins; the parent
//! starts the child, reads its messages until it ends or its time is over, and reports how it ended.
use super::{End, Outcome, Step, Trial, Word};
use crate::failure::{Failure, Result};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::{Errno, fcntl_dupfd_cloexec, ioctl_fionbio, read},
    process::{
        Pid, PidfdFlags, Resource, Rlimit, Signal, WaitOptions, getpid, kill_process,
        kill_process_group, pidfd_open, set_child_subreaper, setrlimit, waitpid,
    },
    stdio::dup2_stdout,
};
use std::{
    fs::{self, File},
    io::{self, Write},
    mem::ManuallyDrop,
    os::{
        fd::OwnedFd,
        unix::process::{CommandExt, ExitStatusExt},
    },
    process::{Child, Command, ExitStatus, Stdio, exit},
    thread,
    time::{Duration, Instant},
};
use ur_loader::examine;

/// The hidden command of the child, which is followed by the indices of the adapter and of the place.
const COMMAND: &str = "doctor-trial";
/// The exit status of a child that finds its report pipe closed.
pub(super) const CLOSED: i32 = 119;
/// The maximal number of bytes that are read from a child, whose messages are a few lines.
const MOST: usize = 64 << 10;

/// The child's side. What the adapter prints goes to the standard error.
pub fn run(adapter: usize, place: usize) -> Result<()> {
    let failed = |error: Errno| Failure::system("set the trial up", &error.into());
    // Not closed on drop: the adapter may have closed it, and the descriptor number may be in use for another
    // file.
    let mut report =
        ManuallyDrop::new(File::from(fcntl_dupfd_cloexec(io::stdout(), 3).map_err(failed)?));
    dup2_stdout(io::stderr()).map_err(failed)?;
    // No core file is written if the adapter crashes.
    setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) }).map_err(failed)?;
    let mut say = |word: &Word| {
        let line = serde_json::to_string(word).map_err(io::Error::from)? + "\n";
        report.write_all(line.as_bytes())
    };
    let mut said = Ok(());
    let found = examine::examine(adapter, place, |step| {
        if said.is_ok() {
            said = say(&Word::Begins(step.into()));
        }
    });
    let found = found.ok_or_else(|| {
        Failure::said("the environment names other adapters now than when this was started")
    })?;
    match said.and_then(|()| say(&Word::Found(found.into()))) {
        Err(error) if error.raw_os_error() == Some(Errno::BADF.raw_os_error()) => exit(CLOSED),
        said => said.map_err(|error| Failure::system("report the trial", &error)),
    }
}
impl From<examine::Step> for Step {
    fn from(step: examine::Step) -> Self {
        match step {
            examine::Step::Open => Self::Open,
            examine::Step::Ask => Self::Ask,
            examine::Step::List => Self::List,
        }
    }
}
impl From<examine::Outcome> for Outcome {
    fn from(outcome: examine::Outcome) -> Self {
        match outcome {
            examine::Outcome::Missing => Self::Missing,
            examine::Outcome::Needs(what) => Self::Needs(what),
            examine::Outcome::Unusable(why) => Self::Unusable(why),
            examine::Outcome::Silent(code) => Self::Silent(format!("{code:?}")),
            examine::Outcome::Works { platforms, devices } => Self::Works { platforms, devices },
        }
    }
}

/// Starts a child that tries the adapter, and waits until it ends; after `patience` it is killed.
pub fn start(adapter: usize, place: usize, patience: Duration) -> Result<Trial> {
    let failed = |error| Failure::system("start a process to try an adapter in", &error);
    let program = std::env::current_exe().map_err(failed)?;
    let mut command = Command::new(program);
    command.arg(COMMAND).args([adapter.to_string(), place.to_string()]);
    // This process has already logged the loader's warnings about the environment.
    command.env("UR_LOG_LOADER", "level:quiet").process_group(0);
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    let orphans = Orphans::expect();
    let mut child = command.spawn().map_err(failed)?;
    let heard = listen(&mut child, Instant::now() + patience);
    // The child has not been waited for, so its process id is still its own. Its descendants are in its
    // process group, and would keep our output pipes open.
    let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
    let status = child.wait().map_err(failed)?;
    orphans.end();
    let (said, in_time) = heard.map_err(|error| failed(error.into()))?;
    let end = if in_time { end(status) } else { End::Late(patience) };
    let (step, outcome) = words(&said);
    Ok(Trial { step, outcome, end })
}
/// Processes that the child started and did not end, also outside its process group. This process is made
/// their subreaper, so it becomes their parent when the child ends.
struct Orphans {
    /// Children that this process already had, from a program that it replaced by exec.
    others: Vec<Pid>,
}
impl Orphans {
    /// How long killed processes may take to end.
    const PATIENCE: Duration = Duration::from_secs(1);

    /// Called before the child is started.
    fn expect() -> Self {
        // If this fails, such processes simply continue to run.
        let _ = set_child_subreaper(Some(getpid()));
        Self { others: children() }
    }
    /// Kills them and their descendants. The child has ended and was waited for.
    fn end(self) {
        let deadline = Instant::now() + Self::PATIENCE;
        loop {
            let mut left = children();
            left.retain(|pid| !self.others.contains(pid));
            if left.is_empty() || Instant::now() >= deadline {
                return;
            }
            for pid in left {
                // A child that has not been waited for keeps its process id.
                let _ = kill_process(pid, Signal::KILL);
                let _ = waitpid(Some(pid), WaitOptions::NOHANG);
            }
            thread::sleep(Duration::from_millis(1));
        }
    }
}
/// Returns the children of this process; none where there is no /proc.
fn children() -> Vec<Pid> {
    let us = getpid();
    let parent = |pid: Pid| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The parent's id is the second field after the name in parentheses, which may contain any character.
        let parent = stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()?;
        Pid::from_raw(parent)
    };
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.filter_map(Pid::from_raw).filter(|pid| parent(*pid) == Some(us)).collect()
}

/// Reads what the child writes until it ends; returns that, and whether it ended in time.
fn listen(child: &mut Child, deadline: Instant) -> rustix::io::Result<(Vec<u8>, bool)> {
    let ended = pidfd_open(Pid::from_child(child), PidfdFlags::empty())?;
    let mut from = child.stdout.take().map(OwnedFd::from);
    if let Some(from) = &from {
        ioctl_fionbio(from, true)?;
    }
    let mut said = Vec::new();
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let left = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
        let mut watched = vec![PollFd::new(&ended, PollFlags::IN)];
        watched.extend(from.as_ref().map(|from| PollFd::new(from, PollFlags::IN)));
        match poll(&mut watched, Some(&left)) {
            Ok(0) => return Ok((said, false)),
            Ok(_) => {}
            Err(Errno::INTR) => continue,
            Err(error) => return Err(error),
        }
        let over = !watched[0].revents().is_empty();
        // The pipe may be closed long before the process ends, or be kept open by a process that it started.
        if from.as_ref().is_some_and(|from| !take(from, &mut said)) {
            from = None;
        }
        if over {
            return Ok((said, true));
        }
    }
}
/// Reads what is available; returns whether there may be more.
fn take(from: &OwnedFd, said: &mut Vec<u8>) -> bool {
    let mut bytes = [0; 4096];
    while said.len() < MOST {
        match read(from, &mut bytes) {
            Ok(0) => return false,
            Ok(count) => said.extend_from_slice(&bytes[..count]),
            Err(Errno::INTR) => {}
            Err(error) => return error == Errno::AGAIN,
        }
    }
    false
}
/// Returns the last step and the outcome; lines that cannot be parsed are ignored.
fn words(said: &[u8]) -> (Option<Step>, Option<Outcome>) {
    let (mut step, mut outcome) = (None, None);
    for line in said.split(|byte| *byte == b'\n') {
        match serde_json::from_slice(line) {
            Ok(Word::Begins(begun)) => step = Some(begun),
            Ok(Word::Found(found)) => outcome = Some(found),
            Err(_) => {}
        }
    }
    (step, outcome)
}
fn end(status: ExitStatus) -> End {
    match (status.code(), status.signal()) {
        (Some(0), _) => End::Well,
        (Some(code), _) => End::Status(code),
        (None, Some(signal)) => {
            let name = signal_hook::low_level::signal_name(signal);
            End::Signal(name.map_or_else(|| format!("signal {signal}"), str::to_owned))
        }
        (None, None) => End::Well, // cannot happen: `wait` returns one of both
    }
}
