//! Handles Ctrl-C and SIGTERM between two steps, so that commands can clean up. A second signal ends the
//! process at once, and so does a time limit, because a step may block on a pipe whose other end does
//! nothing.
use crate::failure::{Failure, Result};
use signal_hook::{
    consts::{SIGINT, SIGTERM, SIGXFSZ},
    flag,
    iterator::Signals,
    low_level::exit,
};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

/// Makes a write beyond the limit on file sizes (`ulimit -f`) an error instead of ending the process.
pub fn outlive_file_limit() -> Result<()> {
    // Any handler will do; the flag is not read.
    flag::register(SIGXFSZ, Arc::default())
        .map(drop)
        .map_err(|error| Failure::system("prepare for the limit on file sizes", &error))
}

/// How long a step may take to finish after the user asked to end.
const GRACE: Duration = Duration::from_secs(5);

/// Whether the user asked to end.
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Makes Ctrl-C and SIGTERM set a flag instead of ending the process at once.
    pub fn new() -> Result<Self> {
        // Not SIGHUP, which `nohup` makes programs ignore.
        const ENDS: [i32; 2] = [SIGINT, SIGTERM];
        let failed = |error| Failure::system("watch for Ctrl-C", &error);
        let asked = Arc::new(AtomicBool::new(false));
        for signal in ENDS {
            // The order matters: only the second signal finds the flag set by the first.
            flag::register_conditional_shutdown(signal, 128 + signal, asked.clone())
                .and_then(|_| flag::register(signal, asked.clone()))
                .map_err(failed)?;
        }
        let mut signals = Signals::new(ENDS).map_err(failed)?;
        let late = move || {
            if let Some(signal) = signals.forever().next() {
                thread::sleep(GRACE);
                exit(128 + signal);
            }
        };
        thread::Builder::new().name("stop".into()).spawn(late).map_err(failed)?;
        Ok(Self(asked))
    }
    /// Whether the user has asked to end by now.
    pub fn asked(&self) -> bool {
        self.0.load(Ordering::Relaxed) // Relaxed: the flag orders no other memory
    }
    /// Returns an error if the user asked to end.
    pub fn check(&self) -> Result<()> {
        if self.asked() { Err(Failure::Interrupted) } else { Ok(()) }
    }
    /// Waits until the user asks to end or `done` returns true, polling both; returns whether it was `done`.
    pub fn wait_or(&self, mut done: impl FnMut() -> Result<bool>) -> Result<bool> {
        const NOW_AND_THEN: Duration = Duration::from_millis(20);
        loop {
            if self.asked() {
                return Ok(false);
            }
            if done()? {
                return Ok(true);
            }
            thread::sleep(NOW_AND_THEN);
        }
    }
}
