//! Another process: this program again, in its test `role`, which answers what it is asked, line by line.
#![allow(dead_code, reason = "each test binary uses its own part")]
use std::{
    io::{BufRead as _, BufReader, Write as _},
    os::unix::process::ExitStatusExt as _,
    process::{Child, Command, Stdio},
};

/// The other process: does what it is told to and answers.
pub struct Other(Child, BufReader<std::process::ChildStdout>);
impl Other {
    pub fn new() -> Self {
        Self::with(&[])
    }
    /// The same where these variables are set.
    pub fn with(variables: &[(&str, &str)]) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "role", "--nocapture"]).env("CAUSEWAY_ROLE", "other");
        command.envs(variables.iter().copied());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        Self(child, out)
    }
    pub fn ask(&mut self, what: &str) -> String {
        writeln!(self.0.stdin.as_mut().unwrap(), "{what}").unwrap();
        let answer = |line: String| line.split_once("answer ").map(|(_, text)| text.to_owned());
        let lines = (&mut self.1).lines().map(Result::unwrap);
        lines.into_iter().find_map(answer).expect("the other process answers")
    }
    /// Ends it without a chance to tidy up.
    pub fn kill(mut self) {
        self.0.kill().unwrap();
    }
}
impl Drop for Other {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let ended = self.0.wait().unwrap();
        let is_killed = ended.signal() == Some(9);
        assert!(std::thread::panicking() || ended.success() || is_killed);
    }
}
