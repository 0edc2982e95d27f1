//! Runs cases in worker processes: a crash or a hang of the adapter is the failure of one case, and the next
//! case gets a new worker. `report/` writes the results.
use crate::{
    bench::Subject,
    case::{Case, Outcome},
    worker::{DEVICE, MARK, READY},
};
use std::{
    io::{BufRead as _, BufReader, Write as _},
    os::unix::process::ExitStatusExt as _,
    process::{Child, ChildStdin, Command, Stdio},
    sync::{
        Mutex,
        mpsc::{Receiver, RecvTimeoutError, channel},
    },
    thread,
    time::Duration,
};

/// How long a worker may take to load the adapter.
const START: Duration = Duration::from_secs(60);

/// The idle workers.
pub struct Harness {
    subject: Subject,
    idle: Mutex<Vec<Worker>>,
}
struct Worker {
    child: Child,
    input: ChildStdin,
    answers: Receiver<String>,
}

/// Returns a command that runs this program again in another role.
pub fn again(subject: &Subject, role: &str) -> std::io::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("--adapter").arg(&subject.adapter);
    command.arg("--through").arg(subject.entry_path.to_string());
    command.arg("--device").arg(subject.device.to_string()).args(["--role", role]);
    command.args(subject.keep.then_some("--keep"));
    Ok(command)
}

impl Harness {
    /// Starts a first worker, so that an adapter that cannot be loaded, or that ends or holds up the process which
    /// loads it, is one error instead of one for each case. Also returns what is to be said if there is no device to judge.
    ///
    /// # Errors
    /// Returns a sentence.
    pub fn start(
        subject: Subject,
        deadline: Option<Duration>,
    ) -> Result<(Self, Option<String>), String> {
        let adapter = subject.adapter.display().to_string();
        let worker = Worker::start(&subject).map_err(|e| format!("{adapter}: {e}"))?;
        let (found, worker) = worker.ask(DEVICE, deadline.unwrap_or(START));
        let harness = Self { subject, idle: Mutex::new(worker.into_iter().collect()) };
        let missing = match found {
            Outcome::Passed => None,
            Outcome::Skipped(why) => {
                Some(format!("{why}: only what needs no device is judged, and the rest is skipped"))
            }
            Outcome::Failed(why) => Some(format!("asking for the device failed: {why}")),
        };
        Ok((harness, missing))
    }
    /// Judges one case. A worker that failed is not used again, because the adapter's state in it is unknown.
    pub fn judge(&self, case: &Case) -> Outcome {
        let idle = self.idle.lock().expect("nothing panics with the lock held").pop();
        let worker = match idle.map_or_else(|| Worker::start(&self.subject), Ok) {
            Ok(worker) => worker,
            Err(e) => return Outcome::Failed(format!("no process to run it in: {e}")),
        };
        let (outcome, worker) = worker.ask(&case.title(), case.deadline);
        if let Some(worker) = worker {
            self.idle.lock().expect("nothing panics with the lock held").push(worker);
        }
        outcome
    }
}
impl Worker {
    fn start(subject: &Subject) -> std::io::Result<Self> {
        let mut command = again(subject, "worker")?;
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let input = child.stdin.take().ok_or_else(|| std::io::Error::other("no pipe"))?;
        let output = child.stdout.take().ok_or_else(|| std::io::Error::other("no pipe"))?;
        let (said, answers) = channel();
        thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if let Some((_, answer)) = line.split_once(MARK)
                    && said.send(answer.to_owned()).is_err()
                {
                    return;
                }
            }
        });
        let mut worker = Self { child, input, answers };
        // The time to load the adapter does not count for any case.
        match worker.answers.recv_timeout(START) {
            Ok(answer) if answer == READY => Ok(worker),
            Ok(answer) => Err(std::io::Error::other(format!("it begins with {answer}"))),
            Err(RecvTimeoutError::Disconnected) => {
                let why = format!("it ended as it loaded the adapter: {}", worker.ended());
                Err(std::io::Error::other(why))
            }
            Err(RecvTimeoutError::Timeout) => {
                worker.kill();
                Err(std::io::Error::other(format!("not ready after {START:?}")))
            }
        }
    }
    fn ask(mut self, title: &str, deadline: Duration) -> (Outcome, Option<Self>) {
        if let Err(e) = writeln!(self.input, "{title}") {
            return (Outcome::Failed(format!("the worker is gone: {e}; {}", self.ended())), None);
        }
        match self.answers.recv_timeout(deadline) {
            Ok(answer) => {
                let outcome = serde_json::from_str(&answer)
                    .unwrap_or_else(|e| Outcome::Failed(format!("{answer} is no outcome: {e}")));
                let reusable = !matches!(outcome, Outcome::Failed(_));
                let kept = if reusable { Some(self) } else { self.kill() };
                (outcome, kept)
            }
            Err(RecvTimeoutError::Timeout) => {
                let why = format!("not over after {} s", deadline.as_secs());
                (Outcome::Failed(why), self.kill())
            }
            Err(RecvTimeoutError::Disconnected) => {
                (Outcome::Failed(format!("the process crashed: {}", self.ended())), None)
            }
        }
    }
    fn ended(&mut self) -> String {
        match self.child.wait() {
            Ok(status) => match status.signal() {
                Some(signal) => format!("ended by signal {signal}"),
                None => format!("ended with {status}"),
            },
            Err(e) => format!("and cannot be waited for: {e}"),
        }
    }
    /// Kills the worker; its peers end with it.
    fn kill(mut self) -> Option<Self> {
        let _already_dead = self.child.kill();
        let _reaped = self.child.wait();
        None
    }
}
impl Drop for Harness {
    /// Kills the idle workers, so that one that hangs on exit does not block the suite.
    fn drop(&mut self) {
        for worker in self.idle.get_mut().expect("nothing panics with the lock held").drain(..) {
            worker.kill();
        }
    }
}
