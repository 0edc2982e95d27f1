//! Adapters that crash when they are asked for their tables. That is found out in a child process,
//! which dies of it and not the program. A signal handler that jumped out of the crash would leave the
//! program with whatever the adapter had half done; a child leaves nothing.
//!
//! The child is a fork that opens nothing, as the files are open already: it calls the getters, says
//! after each adapter that it lives, and ends without running anything of the program's. A file that
//! lived is noted (`verdicts`) and tried again when it has changed; one that did not is tried once in
//! a process. `UR_LOADER_PROBE=0` turns it off, and where no child can be had the adapter is taken as
//! it is. A file that crashes while it is opened is beyond this.
#![expect(unsafe_code, reason = "forks")]
use crate::{
    library::{Opened, Verdict},
    log, paths,
    verdicts::{self, Notes},
};
use std::{
    fs::File,
    io::Read,
    os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd},
    time::{Duration, Instant},
};

/// How long getters may take, all of an adapter's together. They only copy pointers.
const PATIENCE: Duration = Duration::from_secs(10);
const VARIABLE: &str = "UR_LOADER_PROBE";

/// Finds out about those of which nothing is known yet.
pub(crate) fn examine(notes: &Notes, all: impl Iterator<Item = &'static Opened>) {
    let mut rest: Vec<&Opened> = all.filter(|one| one.verdict().is_none()).collect();
    if rest.is_empty() || std::env::var_os(VARIABLE).is_some_and(|value| !paths::is_on(&value)) {
        return;
    }
    rest.retain(|one| match one.identity().is_some_and(|of| notes.have(of)) {
        true => {
            one.judge(Verdict::Fine);
            false
        }
        false => true,
    });
    let mut fresh = Vec::new();
    while !rest.is_empty() {
        let Some((lived, end)) = child(&rest) else {
            log::info("no child process could be had to try adapters in; they are taken untried");
            return;
        };
        for fine in rest.drain(..lived) {
            fine.judge(Verdict::Fine);
            fresh.extend(fine.identity());
        }
        if !rest.is_empty() {
            rest.remove(0).judge(Verdict::Deadly(end));
        }
    }
    verdicts::add(fresh.into_iter());
}

/// Calls getters in a child; gives how many adapters it lived through, and how it ended.
fn child(adapters: &[&Opened]) -> Option<(usize, String)> {
    let (from, to) = pipe()?;
    // SAFETY: the child calls nothing but what `rehearse_all` says.
    let pid = unsafe { libc::fork() };
    match pid {
        0 => rehearse_all(adapters, to.as_raw_fd()),
        -1 => None,
        pid => {
            drop(to);
            let (lived, in_time) = listen(from, adapters.len());
            if !in_time {
                // SAFETY: a child of ours that was not waited for yet.
                unsafe { libc::kill(pid, libc::SIGKILL) };
            }
            let end = wait(pid);
            let end = if in_time { end } else { "it does not come back".to_string() };
            Some((lived, end))
        }
    }
}
fn pipe() -> Option<(OwnedFd, OwnedFd)> {
    let mut ends = [-1; 2];
    // SAFETY: room for two descriptors.
    let made = unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) };
    if made != 0 {
        return None;
    }
    // SAFETY: a descriptor of ours alone.
    let from = unsafe { OwnedFd::from_raw_fd(ends[0]) };
    // SAFETY: as above.
    let to = unsafe { OwnedFd::from_raw_fd(ends[1]) };
    Some((from, to))
}

/// The child's whole life. Other threads of the program are not here, and locks that they held are
/// held for ever: nothing of Rust's is allocated, printed or dropped.
fn rehearse_all(adapters: &[&Opened], to: RawFd) -> ! {
    const DEADLY: [i32; 7] = [
        libc::SIGSEGV,
        libc::SIGBUS,
        libc::SIGILL,
        libc::SIGFPE,
        libc::SIGABRT,
        libc::SIGTRAP,
        libc::SIGSYS,
    ];
    for signal in DEADLY {
        // SAFETY: a crash is to end the child, not to run the program's handlers.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
    let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: a whole limit: crashes that are asked for leave no core files.
    unsafe { libc::setrlimit(libc::RLIMIT_CORE, &raw const none) };
    // SAFETY: a constant path.
    let nowhere = unsafe { libc::open(c"/dev/null".as_ptr(), libc::O_RDWR) };
    for output in [1, 2] {
        // SAFETY: what the adapter prints here it will print again in the program.
        unsafe { libc::dup2(nowhere, output) };
    }
    for adapter in adapters {
        adapter.rehearse();
        // SAFETY: one byte that is there.
        unsafe { libc::write(to, [1_u8].as_ptr().cast(), 1) };
    }
    // SAFETY: ends the child at once.
    unsafe { libc::_exit(0) }
}

/// How many bytes come before the other end closes, and whether it does in time.
fn listen(from: OwnedFd, all: usize) -> (usize, bool) {
    let deadline = Instant::now() + PATIENCE;
    let mut from = File::from(from);
    let mut lived = 0;
    while lived < all {
        let left = deadline.saturating_duration_since(Instant::now());
        let mut wait = libc::pollfd { fd: from.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        let milliseconds = i32::try_from(left.as_millis()).unwrap_or(i32::MAX);
        // SAFETY: one whole entry.
        let ready = unsafe { libc::poll(&raw mut wait, 1, milliseconds) };
        if ready == 0 {
            return (lived, false);
        }
        if ready < 0 {
            match std::io::Error::last_os_error().kind() {
                std::io::ErrorKind::Interrupted => continue,
                _ => break,
            }
        }
        let mut bytes = [0; 64];
        match from.read(&mut bytes) {
            Ok(0) => break,
            Ok(count) => lived += count,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    (lived.min(all), true)
}

/// How the child ended. The program may have reaped it first.
fn wait(pid: i32) -> String {
    let mut status = 0;
    loop {
        // SAFETY: a place for the status.
        let waited = unsafe { libc::waitpid(pid, &raw mut status, 0) };
        if waited == pid {
            break;
        }
        if std::io::Error::last_os_error().kind() != std::io::ErrorKind::Interrupted {
            return "it ends the process".to_string();
        }
    }
    match libc::WIFSIGNALED(status) {
        true => format!("it crashes with signal {}", libc::WTERMSIG(status)),
        false => format!("it ends the process with status {}", libc::WEXITSTATUS(status)),
    }
}
