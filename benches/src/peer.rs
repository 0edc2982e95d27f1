//! The other process of a benchmark: the same program again, asked line by line over its standard input.
use crate::Result;
use std::{
    env,
    io::{BufRead, BufReader, Write, stdin, stdout},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

const ROLE: &str = "CAUSEWAY_BENCH_ROLE";

/// The name of the part that this process plays; `None` in the one that a person started.
pub type Role = Option<String>;

/// Which part this process plays.
pub fn role() -> Role {
    env::var(ROLE).ok()
}

/// A second process, which ends with this.
#[derive(Debug)]
pub struct Peer {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}
impl Peer {
    /// Starts this program again as `role`.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn start(role: &str) -> Result<Self> {
        let mut command = Command::new(env::current_exe()?);
        command.env(ROLE, role).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn()?;
        let to = child.stdin.take().ok_or("the second process has no input")?;
        let from = child.stdout.take().ok_or("the second process has no output")?;
        Ok(Self { child, to, from: BufReader::new(from) })
    }
    /// Says something without waiting for an answer.
    ///
    /// # Errors
    /// The peer is gone.
    pub fn tell(&mut self, line: &str) -> Result<()> {
        writeln!(self.to, "{line}")?;
        Ok(self.to.flush()?)
    }
    /// The peer's next answer.
    ///
    /// # Errors
    /// The peer is gone.
    pub fn hear(&mut self) -> Result<String> {
        let mut line = String::new();
        match self.from.read_line(&mut line)? {
            0 => Err("the second process ended too early".into()),
            _ => Ok(line.trim().to_string()),
        }
    }
    /// Says something and waits for the answer.
    ///
    /// # Errors
    /// The peer is gone.
    pub fn ask(&mut self, line: &str) -> Result<String> {
        self.tell(line)?;
        self.hear()
    }
}
impl Drop for Peer {
    fn drop(&mut self) {
        // It may have ended by itself; either way it is reaped here.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// In the second process: what the first one says next; `None` when it is gone.
///
/// # Errors
/// What the kernel says.
pub fn asked() -> Result<Option<Vec<String>>> {
    let mut line = String::new();
    let more = stdin().lock().read_line(&mut line)? != 0;
    Ok(more.then(|| line.split_whitespace().map(str::to_string).collect()))
}
/// In the second process: an answer.
///
/// # Errors
/// The first process is gone.
pub fn answer(line: &str) -> Result<()> {
    let mut out = stdout().lock();
    writeln!(out, "{line}")?;
    Ok(out.flush()?)
}
