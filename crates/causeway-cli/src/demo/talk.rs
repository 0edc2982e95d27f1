//! The messages between the two processes of the demo: lines of JSON over the second process's standard input
//! and output. They carry only tickets, hashes and times, not the shared data.
use crate::failure::{Failure, Result};
use causeway::{Buffer, Event, PhysicalMemory, Ticket};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::{
    io::{self, BufRead, BufReader, Write},
    process::{Child, ChildStdin, Command, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

/// A request of the first process.
#[derive(Serialize, Deserialize)]
pub enum Ask {
    /// Use this device.
    Device(usize),
    /// Open the page; then open the whole, read it, and overwrite it with the second process's own pattern.
    Memory { page: Ticket<Buffer<u8>>, whole: Ticket<Buffer<u8>> },
    /// The same for physical memory, which is mapped.
    Physical { page: Ticket<PhysicalMemory>, whole: Ticket<PhysicalMemory> },
    /// Get ready for the chain.
    Chain { ping: Ticket<Event>, trail: Ticket<Buffer<u64>>, hops: usize },
    /// Submit this hop.
    Hop(usize),
    /// The chain is complete: check the trail, which began with this token.
    Check { token: [u64; 4] },
}

/// An answer of the second process.
#[derive(Serialize, Deserialize)]
pub enum Answer {
    Ready,
    Shared(Shared),
    /// Ready for the chain; the second process signals this event.
    Chain {
        pong: Ticket<Event>,
    },
    Submitted,
    /// How many hops wrote what they should.
    Checked(usize),
    Failed(String),
}

/// What the second process did with shared memory.
#[derive(Serialize, Deserialize)]
pub struct Shared {
    pub opens: Opens,
    pub read: Duration,
    /// The hashes of what it read, and of what it then wrote.
    pub read_hash: String,
    pub written_hash: String,
}

/// How long opens took.
#[derive(Serialize, Deserialize)]
pub struct Opens {
    /// The first open of a ticket of this kind, for one page: mainly the exchange between the processes.
    pub first: Duration,
    /// The first open of a large object, which includes mapping its pages.
    pub mapped: Duration,
    /// The median of later opens of the large object.
    pub later: Duration,
}

/// Writes one message as a line.
pub fn send(to: &mut impl Write, what: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(what)?;
    line.push(b'\n');
    to.write_all(&line)?;
    to.flush()
}

/// Reads the next message; `None` if the other end is closed.
pub fn receive<T: DeserializeOwned>(from: &mut impl BufRead) -> io::Result<Option<T>> {
    let mut line = String::new();
    if from.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    Ok(Some(serde_json::from_str(&line)?))
}

/// How long the second process may take for one answer.
const PATIENCE: Duration = Duration::from_secs(120);

/// The first process's handle of the second process, which is killed on drop.
pub struct Second {
    child: Child,
    asks: ChildStdin,
    answers: mpsc::Receiver<io::Result<Answer>>,
}

impl Second {
    /// Starts this program again in its other role; an `idle` second process writes nothing.
    pub fn start(idle: bool) -> Result<Self> {
        let failed = |error| Failure::system("start a second process", &error);
        let program = std::env::current_exe().map_err(failed)?;
        let mut command = Command::new(program);
        command
            .arg("demo-peer")
            .args(idle.then_some("--idle"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut child = command.spawn().map_err(failed)?;
        let (Some(asks), Some(from)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(Failure::said("the second process has no pipes"));
        };
        let (to, answers) = mpsc::channel();
        // A thread reads the answers, so that waiting for one can have a deadline. It ends with the pipe.
        thread::spawn(move || {
            let mut from = BufReader::new(from);
            while let Some(answer) = receive(&mut from).transpose() {
                if to.send(answer).is_err() {
                    break;
                }
            }
        });
        Ok(Self { child, asks, answers })
    }
    pub fn id(&self) -> u32 {
        self.child.id()
    }
    /// Sends a request and waits for the answer.
    pub fn ask(&mut self, what: &Ask) -> Result<Answer> {
        // If the process is gone, the failed read explains that better than the failed write.
        let sent = send(&mut self.asks, what);
        match self.answers.recv_timeout(PATIENCE) {
            Ok(Ok(Answer::Failed(sentence))) => {
                Err(Failure::said(format!("the second process: {sentence}")))
            }
            Ok(Ok(answer)) => sent.map(|()| answer).map_err(|error| self.gone(&error.to_string())),
            Ok(Err(error)) => Err(self.gone(&error.to_string())),
            Err(mpsc::RecvTimeoutError::Timeout) => Err(Failure::said(format!(
                "the second process has not answered for {} s",
                PATIENCE.as_secs()
            ))),
            Err(mpsc::RecvTimeoutError::Disconnected) => Err(self.gone("it closed its pipe")),
        }
    }
    fn gone(&mut self, why: &str) -> Failure {
        match self.child.wait() {
            Ok(status) => {
                Failure::said(format!("the second process ended too early ({status}; {why})"))
            }
            Err(error) => Failure::system("learn how the second process ended", &error),
        }
    }
    /// The failure for an answer of the wrong kind.
    pub fn nonsense() -> Failure {
        Failure::said(
            "the second process answered something else than it was asked: is it the same version?",
        )
    }
}
impl Drop for Second {
    fn drop(&mut self) {
        // Killing fails if it has ended by itself, which is fine.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
