//! Starts threads of the adapter: named, and with all signals blocked, because signals are for the
//! application's threads.
use ur_hal::{Error, Result};

/// Starts a detached thread that runs `body`.
///
/// # Errors
/// `OUT_OF_RESOURCES` if the system cannot start a thread, `OUT_OF_HOST_MEMORY` if there is no memory for its
/// stack.
pub(super) fn start(name: &str, body: impl FnOnce() + Send + 'static) -> Result<()> {
    let started = ur_mapping::start_thread(name, body);
    started.map(drop).map_err(|error| Error::no_thread(name, &error))
}
/// Increases this thread's nice value by `nice`. The system may refuse this (a decrease needs a privilege),
/// which is ignored.
pub(super) fn be_nice(nice: i32) {
    use rustix::{process, thread};
    if nice == 0 {
        return;
    }
    // On Linux a thread id stands for this thread only.
    let me = Some(thread::gettid());
    if let Ok(before) = process::getpriority_process(me) {
        let _ = process::setpriority_process(me, (before + nice).clamp(-20, 19));
    }
}
