//! What the two processes of the demo say to each other, out of band: lines of JSON over the second one's standard
//! input and output. Nothing that was shared goes this way but tickets and hashes.
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

/// What the first process asks the second.
#[derive(Serialize, Deserialize)]
pub enum Ask {
    /// Use this device.
    Device(usize),
    /// Open a page; open the whole, read it, then write your own pattern over it.
    Memory { page: Ticket<Buffer<u8>>, whole: Ticket<Buffer<u8>> },
    /// The same for physical memory, mapped.
    Physical { page: Ticket<PhysicalMemory>, whole: Ticket<PhysicalMemory> },
    /// Get ready for the chain.
    Chain { ping: Ticket<Event>, trail: Ticket<Buffer<u64>>, hops: usize },
    /// Submit this hop.
    Hop(usize),
    /// The chain is done: check the trail, which began with this token.
    Check { token: [u64; 4] },
}

/// What the second answers.
#[derive(Serialize, Deserialize)]
pub enum Answer {
    Ready,
    Shared(Shared),
    /// Ready for the chain; this event is signalled by the second process.
    Chain {
        pong: Ticket<Event>,
    },
    Submitted,
    /// So many hops left what they should have.
    Checked(usize),
    Failed(String),
}

/// What the second process did with shared memory.
#[derive(Serialize, Deserialize)]
pub struct Shared {
    pub opens: Opens,
    pub read: Duration,
    /// What it read, and what it wrote then.
    pub read_hash: String,
    pub written_hash: String,
}

/// What opening took.
#[derive(Serialize, Deserialize)]
pub struct Opens {
    /// Of the first ticket of this kind, for a page: what the processes say to each other.
    pub first: Duration,
    /// Of a large object, which includes the mapping of its pages.
    pub mapped: Duration,
    /// The median of more opens of that.
    pub later: Duration,
}

/// One line.
pub fn send(to: &mut impl Write, what: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(what)?;
    line.push(b'\n');
    to.write_all(&line)?;
    to.flush()
}

/// The next line, or none if the other end is closed.
pub fn receive<T: DeserializeOwned>(from: &mut impl BufRead) -> io::Result<Option<T>> {
    let mut line = String::new();
    if from.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    Ok(Some(serde_json::from_str(&line)?))
}

/// How long the second process may take for one answer.
const PATIENCE: Duration = Duration::from_secs(120);

/// The second process, as the first one holds it. It ends with this.
pub struct Second {
    child: Child,
    asks: ChildStdin,
    answers: mpsc::Receiver<io::Result<Answer>>,
}

impl Second {
    /// Starts this program again, in its other role; an `idle` one writes nothing.
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
        // A thread, so that an answer can be waited for with a deadline. It ends with the pipe.
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
    /// Asks, and waits for the answer.
    pub fn ask(&mut self, what: &Ask) -> Result<Answer> {
        // If it is gone, the missing answer says so better than the broken pipe.
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
    /// What an answer that does not fit its question comes to.
    pub fn nonsense() -> Failure {
        Failure::said(
            "the second process answered something else than it was asked: is it the same version?",
        )
    }
}
impl Drop for Second {
    fn drop(&mut self) {
        // It may have ended by itself, which is as good.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
