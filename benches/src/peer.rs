//! The other process of a benchmark: the same program run again, which gets requests line by line over its
//! standard input.
use crate::Result;
use std::{
    env,
    io::{BufRead, BufReader, Write, stdin, stdout},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

const ROLE: &str = "CAUSEWAY_BENCH_ROLE";

/// The role of this process; `None` in the process that the user started.
pub type Role = Option<String>;

/// Returns the role of this process.
pub fn role() -> Role {
    env::var(ROLE).ok()
}

/// A second process, which is killed on drop.
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
    /// Returns the kernel's error.
    pub fn start(role: &str) -> Result<Self> {
        let mut command = Command::new(env::current_exe()?);
        command.env(ROLE, role).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn()?;
        let to = child.stdin.take().ok_or("the second process has no input")?;
        let from = child.stdout.take().ok_or("the second process has no output")?;
        Ok(Self { child, to, from: BufReader::new(from) })
    }
    /// Sends a line without waiting for an answer.
    ///
    /// # Errors
    /// Fails if the peer has ended.
    pub fn tell(&mut self, line: &str) -> Result<()> {
        writeln!(self.to, "{line}")?;
        Ok(self.to.flush()?)
    }
    /// Returns the peer's next answer.
    ///
    /// # Errors
    /// Fails if the peer has ended.
    pub fn hear(&mut self) -> Result<String> {
        let mut line = String::new();
        match self.from.read_line(&mut line)? {
            0 => Err("the second process ended too early".into()),
            _ => Ok(line.trim().to_string()),
        }
    }
    /// Sends a line and waits for the answer.
    ///
    /// # Errors
    /// Fails if the peer has ended.
    pub fn ask(&mut self, line: &str) -> Result<String> {
        self.tell(line)?;
        self.hear()
    }
}
impl Drop for Peer {
    fn drop(&mut self) {
        // It may have ended by itself; in any case it is reaped here.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// In the second process: reads the next request as words; `None` when the first process has ended.
///
/// # Errors
/// Returns the kernel's error.
pub fn asked() -> Result<Option<Vec<String>>> {
    let mut line = String::new();
    let more = stdin().lock().read_line(&mut line)? != 0;
    Ok(more.then(|| line.split_whitespace().map(str::to_string).collect()))
}
/// In the second process: sends an answer.
///
/// # Errors
/// Fails if the first process has ended.
pub fn answer(line: &str) -> Result<()> {
    let mut out = stdout().lock();
    writeln!(out, "{line}")?;
    Ok(out.flush()?)
}
