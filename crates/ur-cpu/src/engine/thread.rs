//! Starting a thread of ours in a program that is not ours: named, and deaf to the program's
//! signals, which its own threads are there for.
use ur_adapter::error::{Error, Result};

/// Starts a thread that runs `body` and that nobody joins.
///
/// # Errors
/// `OUT_OF_RESOURCES` where the system has no thread for us, `OUT_OF_HOST_MEMORY` where it has no place for its stack.
pub(super) fn start(name: &str, body: impl FnOnce() + Send + 'static) -> Result<()> {
    let started = ur_mapping::start_thread(name, body);
    started.map(drop).map_err(|error| Error::no_thread(name, &error))
}
/// Makes this thread `nice` more than it was: a wish, which the system may refuse (less nice than the
/// program takes a privilege).
pub(super) fn be_nice(nice: i32) {
    use rustix::{process, thread};
    if nice == 0 {
        return;
    }
    // On Linux a thread's number stands for that thread alone here.
    let me = Some(thread::gettid());
    if let Ok(before) = process::getpriority_process(me) {
        let _ = process::setpriority_process(me, (before + nice).clamp(-20, 19));
    }
}
