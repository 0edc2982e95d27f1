//! Ctrl-C and requests to end, noticed between two steps so that things are put back first. A second one ends at once,
//! and so does time: a step may wait for the other end of a pipe, which does not come.
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

/// From here on a write beyond the limit on file sizes (`ulimit -f`) is an error, not the end of the process.
pub fn outlive_file_limit() -> Result<()> {
    // Any handler will do; nobody reads the flag.
    flag::register(SIGXFSZ, Arc::default())
        .map(drop)
        .map_err(|error| Failure::system("prepare for the limit on file sizes", &error))
}

/// How long a step may take to come to its end when the user has asked to end.
const GRACE: Duration = Duration::from_secs(5);

/// Whether the user has asked to end.
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// From here on Ctrl-C is noticed, not obeyed at once.
    pub fn new() -> Result<Self> {
        // Not SIGHUP, which `nohup` has us ignore.
        const ENDS: [i32; 2] = [SIGINT, SIGTERM];
        let failed = |error| Failure::system("watch for Ctrl-C", &error);
        let asked = Arc::new(AtomicBool::new(false));
        for signal in ENDS {
            // The order matters: the second signal finds the flag that the first one set.
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
    /// Whether it was asked for by now.
    pub fn asked(&self) -> bool {
        self.0.load(Ordering::Relaxed) // alone: orders nothing
    }
    /// Ends the command if it was asked for.
    pub fn check(&self) -> Result<()> {
        if self.asked() { Err(Failure::Interrupted) } else { Ok(()) }
    }
    /// Waits until it is asked for or `done` says so, asking both now and then; tells whether it was `done`.
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
